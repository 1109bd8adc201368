//! What the page has asked and not been answered, and its channels.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandtray_app::dto::error::CommandError;
use sandtray_app::link::{AskId, ChannelId, FromWindow, MAX_ASKED, MAX_LINE, RETURNED_FILE, SAVE_FILE};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tauri::ipc::{Channel, Invoke, InvokeBody, InvokeResolver, InvokeResponseBody, JavaScriptChannelId};
use tauri::{AppHandle, Webview, Wry};
use tracing::{debug, warn};

use crate::save;

/// More than the page may watch at a time.
const MAX_CHANNELS: usize = 256;
/// What the page calls first; whatever an earlier page had is over.
const SUBSCRIBE: &str = "subscribe";
const CHANNEL: &str = "channel";

pub(crate) struct Page {
    say: SyncSender<FromWindow>,
    last: AtomicU32,
    waiting: Mutex<HashMap<AskId, Waiting>>,
    channels: Mutex<HashMap<ChannelId, Channel<InvokeResponseBody>>>,
}

struct Waiting {
    resolver: InvokeResolver<Wry>,
    /// The owner wants this file of the answer saved.
    save: Option<String>,
}

impl Page {
    pub(crate) fn new(say: SyncSender<FromWindow>) -> Self {
        Self { say, last: AtomicU32::new(0), waiting: Mutex::default(), channels: Mutex::default() }
    }

    pub(crate) fn say(&self, message: FromWindow) {
        if let Err(failure) = self.say.try_send(message) {
            debug!(%failure, "the app was not told");
        }
    }

    /// What came this far is one of the page's permissions. Always true: it is answered here.
    pub(crate) fn ask(&self, invoke: Invoke<Wry>) -> bool {
        let Invoke { message, resolver, .. } = invoke;
        let InvokeBody::Json(arguments) = message.payload() else {
            resolver.reject(CommandError::new("invalid_params", "The window asked for it in another form."));
            return true;
        };
        if let Err(refusal) = self.open_channel(message.command(), arguments, message.webview_ref()) {
            resolver.reject(refusal);
            return true;
        }
        let (command, save) = match message.command() {
            SAVE_FILE => (RETURNED_FILE, arguments["name"].as_str().map(str::to_owned)),
            command => (command, None),
        };
        match to_raw_value(&json!({ "command": command, "args": arguments })) {
            Ok(request) if request.get().len() < MAX_LINE => self.send(request, Waiting { resolver, save }),
            Ok(_) => resolver.reject(CommandError::new("too_large", "That is too much at once.")),
            Err(failure) => resolver.reject(CommandError::new("invalid_params", failure.to_string())),
        }
        true
    }

    fn send(&self, request: Box<RawValue>, asker: Waiting) {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_ASKED {
            asker.resolver.reject(CommandError::new("busy", "Sandtray is still busy with what was asked before."));
            return;
        }
        waiting.insert(id, asker);
        if self.say.try_send(FromWindow::Ask { id, request }).is_ok() {
            return;
        }
        if let Some(asker) = waiting.remove(&id) {
            asker.resolver.reject(CommandError::new("internal", "Sandtray does not answer its window."));
        }
    }

    fn open_channel(&self, command: &str, arguments: &Value, webview: &Webview) -> Result<(), CommandError> {
        let Some(name) = arguments[CHANNEL].as_str() else { return Ok(()) };
        let wrong = |_| CommandError::new("invalid_params", "The window named a channel that is none.");
        let id: JavaScriptChannelId = name.parse().map_err(wrong)?;
        let mut channels = lock(&self.channels);
        if command == SUBSCRIBE {
            channels.clear();
        }
        if channels.len() >= MAX_CHANNELS {
            return Err(CommandError::new("too_many", "The window watches too much at once."));
        }
        channels.insert(name.to_owned(), id.channel_on(webview.clone()));
        Ok(())
    }

    pub(crate) fn answered(self: &Arc<Self>, app: &AppHandle, id: AskId, answer: Result<Box<RawValue>, Box<RawValue>>) {
        let Some(Waiting { resolver, save }) = lock(&self.waiting).remove(&id) else {
            warn!(id, "an answer to nothing");
            return;
        };
        match (answer, save) {
            (Ok(file), Some(name)) => save::ask(app, &file, &name, resolver),
            (Ok(value), None) => resolver.resolve(json(value)),
            (Err(refusal), _) => match serde_json::from_str::<Value>(refusal.get()) {
                Ok(refusal) => resolver.reject(refusal),
                Err(failure) => resolver.reject(CommandError::new("internal", failure.to_string())),
            },
        }
    }

    pub(crate) fn tell(&self, channel: &ChannelId, message: Box<RawValue>) -> tauri::Result<()> {
        match lock(&self.channels).entry(channel.clone()) {
            Entry::Occupied(open) => open.get().send(json(message)),
            // Of a page that has gone.
            Entry::Vacant(_) => Ok(()),
        }
    }

    pub(crate) fn end(&self, channel: &ChannelId) {
        lock(&self.channels).remove(channel);
    }
}

fn json(value: Box<RawValue>) -> InvokeResponseBody {
    InvokeResponseBody::Json(Box::<str>::from(value).into_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
