//! The page's unanswered requests and its channels.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandtray_app::dto::error::CommandError;
use sandtray_app::link::{
    AskId, ChannelId, FromWindow, MAX_ASKED, MAX_REQUEST, OPEN_SAVED, RETURNED_FILE, RETURNED_FILES, SAVE_ALL,
    SAVE_FILE,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tauri::ipc::{Channel, Invoke, InvokeBody, InvokeResolver, InvokeResponseBody, JavaScriptChannelId};
use tauri::{AppHandle, Manager, Webview, Wry};
use tracing::{debug, warn};

use crate::places::Places;
use crate::{save, save_all};

/// More channels than the page may have watches.
const MAX_CHANNELS: usize = 256;
/// The first request of a page. It ends the channels of an earlier page.
const SUBSCRIBE: &str = "subscribe";
const CHANNEL: &str = "channel";

pub(crate) struct Page {
    say: SyncSender<FromWindow>,
    last: AtomicU32,
    waiting: Mutex<HashMap<AskId, Waiting>>,
    channels: Mutex<HashMap<ChannelId, Channel<InvokeResponseBody>>>,
    places: Arc<Places>,
}

struct Waiting {
    resolver: InvokeResolver<Wry>,
    /// Whether the answer is to be saved as files.
    save: Option<Save>,
    /// The channel that the page opened for this request. It is closed if the request is refused.
    channel: Option<ChannelId>,
}

enum Save {
    /// One file, by the name that its program gave it.
    One(String),
    All,
}

impl Page {
    pub(crate) fn new(say: SyncSender<FromWindow>) -> Self {
        Self {
            say,
            last: AtomicU32::new(0),
            waiting: Mutex::default(),
            channels: Mutex::default(),
            places: Arc::default(),
        }
    }

    pub(crate) fn say(&self, message: FromWindow) {
        if let Err(failure) = self.say.try_send(message) {
            debug!(%failure, "the app was not told");
        }
    }

    /// Handles a command of the page. Tauri has checked the page's permission for it. Always true, because each command
    /// is answered here.
    pub(crate) fn ask(&self, invoke: Invoke<Wry>) -> bool {
        let Invoke { message, resolver, .. } = invoke;
        let InvokeBody::Json(arguments) = message.payload() else {
            resolver.reject(CommandError::new("invalid_params", "The window asked for it in another form."));
            return true;
        };
        if message.command() == OPEN_SAVED {
            self.places.open(message.webview_ref().app_handle(), arguments["place"].as_u64(), resolver);
            return true;
        }
        let channel = match self.open_channel(message.command(), arguments, message.webview_ref()) {
            Ok(channel) => channel,
            Err(refusal) => {
                resolver.reject(refusal);
                return true;
            }
        };
        let (command, save) = match message.command() {
            SAVE_FILE => (RETURNED_FILE, arguments["name"].as_str().map(|name| Save::One(name.to_owned()))),
            SAVE_ALL => (RETURNED_FILES, Some(Save::All)),
            command => (command, None),
        };
        match to_raw_value(&json!({ "command": command, "args": arguments })) {
            Ok(request) if request.get().len() < MAX_REQUEST => {
                self.send(request, Waiting { resolver, save, channel });
            }
            Ok(_) => {
                let refusal = CommandError::new("too_large", "That is too much at once.");
                self.refuse(Waiting { resolver, save, channel }, refusal);
            }
            Err(failure) => {
                let refusal = CommandError::new("invalid_params", failure.to_string());
                self.refuse(Waiting { resolver, save, channel }, refusal);
            }
        }
        true
    }

    fn refuse(&self, asker: Waiting, refusal: impl Serialize) {
        if let Some(channel) = asker.channel {
            self.end(&channel);
        }
        asker.resolver.reject(refusal);
    }

    fn send(&self, request: Box<RawValue>, asker: Waiting) {
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_ASKED {
            drop(waiting);
            self.refuse(asker, CommandError::new("busy", "Sandtray is still busy with what was asked before."));
            return;
        }
        waiting.insert(id, asker);
        if self.say.try_send(FromWindow::Ask { id, request }).is_ok() {
            return;
        }
        if let Some(asker) = waiting.remove(&id) {
            drop(waiting);
            self.refuse(asker, CommandError::new("internal", "Sandtray does not answer its window."));
        }
    }

    fn open_channel(
        &self,
        command: &str,
        arguments: &Value,
        webview: &Webview,
    ) -> Result<Option<ChannelId>, CommandError> {
        let Some(name) = arguments[CHANNEL].as_str() else { return Ok(None) };
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
        Ok(Some(name.to_owned()))
    }

    pub(crate) fn answered(&self, app: &AppHandle, id: AskId, answer: Result<Box<RawValue>, Box<RawValue>>) {
        let Some(asker) = lock(&self.waiting).remove(&id) else {
            warn!(id, "an answer to nothing");
            return;
        };
        match (answer, asker) {
            (Ok(file), Waiting { resolver, save: Some(Save::One(name)), .. }) => {
                save::ask(app, &file, &name, Arc::clone(&self.places), resolver);
            }
            (Ok(files), Waiting { resolver, save: Some(Save::All), .. }) => {
                save_all::ask(app, &files, Arc::clone(&self.places), resolver);
            }
            (Ok(value), Waiting { resolver, .. }) => resolver.resolve(json(value)),
            (Err(refusal), asker) => match serde_json::from_str::<Value>(refusal.get()) {
                Ok(refusal) => self.refuse(asker, refusal),
                Err(failure) => self.refuse(asker, CommandError::new("internal", failure.to_string())),
            },
        }
    }

    pub(crate) fn tell(&self, channel: &ChannelId, message: Box<RawValue>) -> tauri::Result<()> {
        match lock(&self.channels).entry(channel.clone()) {
            Entry::Occupied(open) => open.get().send(json(message)),
            // A channel of an earlier page.
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
