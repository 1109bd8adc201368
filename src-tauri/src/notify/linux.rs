//! Notifications over D-Bus, by the freedesktop.org specification. A click on one opens what it reports.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tracing::debug;
use zbus::proxy::{CacheProperties, SignalStream};
use zbus::zvariant::Value;
use zbus::{Connection, Message, Proxy, fdo, proxy};

use super::{Note, Opens};
use crate::app::App;
use crate::window;

const SERVICE: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
/// Timeout for the notification service, which the bus may have to start first.
const ANSWERING: Duration = Duration::from_secs(10);
/// Most notifications that still react to a click. Beyond it the oldest is forgotten.
const PRESSABLE: usize = 32;
/// The action of a click on the notification itself.
const PRESS: &str = "default";

/// The connection to the service, opened by the first notification.
#[derive(Debug, Default)]
pub(crate) struct Desktop(Mutex<Option<Arc<Line>>>);

impl Desktop {
    /// Shows a notification. False if the desktop did not take it, which is only logged.
    pub(super) async fn show(&self, app: &Arc<App>, note: Note) -> bool {
        let showing = async { self.line(app).await?.notify(&note.title, &note.body, note.opens).await };
        match timeout(ANSWERING, showing).await {
            Ok(Ok(())) => true,
            Ok(Err(failure)) => {
                debug!(%failure, "no notification");
                false
            }
            Err(_) => {
                debug!("no notification: the desktop does not answer");
                false
            }
        }
    }

    /// Call it inside the runtime, which closing the connection to the bus needs.
    pub(super) async fn close(&self) {
        drop(self.0.lock().await.take());
    }

    async fn line(&self, app: &Arc<App>) -> zbus::Result<Arc<Line>> {
        let mut held = self.0.lock().await;
        if let Some(line) = held.as_ref().filter(|line| !line.over.load(Ordering::Relaxed)) {
            return Ok(Arc::clone(line));
        }
        let (line, signals) = Line::connect().await?;
        let line = Arc::new(line);
        app.spawn(listen(Arc::clone(app), Arc::clone(&line), signals));
        *held = Some(Arc::clone(&line));
        Ok(line)
    }
}

/// Shows a notification without an app, and blocks for it. Clicks have no effect.
pub(super) fn show_alone(title: &str, body: &str) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return false };
    runtime.block_on(async {
        let shown = async { Line::connect().await?.0.notify(title, body, Opens::Nothing).await };
        matches!(timeout(ANSWERING, shown).await, Ok(Ok(())))
    })
}

struct Line {
    bus: fdo::DBusProxy<'static>,
    service: Proxy<'static>,
    able: Mutex<Option<Able>>,
    /// Locked during the call to the service, so that a click cannot arrive before its notification is entered.
    shown: Mutex<VecDeque<(u32, Opens)>>,
    /// Whether the connection has ended.
    over: AtomicBool,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

/// The capabilities of a service, queried once.
#[derive(Debug, Clone)]
struct Able {
    /// The service's unique name on the bus, which changes on a restart.
    owner: String,
    /// Whether the service parses the body as markup.
    markup: bool,
    actions: bool,
}

impl Line {
    async fn connect() -> zbus::Result<(Self, SignalStream<'static>)> {
        let connection = Connection::session().await?;
        let service: Proxy<'static> = proxy::Builder::new(&connection)
            .destination(SERVICE)?
            .path(PATH)?
            .interface(SERVICE)?
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        let signals = service.receive_all_signals().await?;
        let bus = fdo::DBusProxy::new(&connection).await?;
        let line = Self { bus, service, able: Mutex::default(), shown: Mutex::default(), over: AtomicBool::new(false) };
        Ok((line, signals))
    }

    async fn notify(&self, title: &str, body: &str, opens: Opens) -> zbus::Result<()> {
        let Able { markup, actions, .. } = self.able().await?;
        let body = if markup { escaped(body) } else { body.to_owned() };
        let pressable = actions && opens != Opens::Nothing;
        let actions: &[&str] = if pressable { &[PRESS, "Open"] } else { &[] };
        let hints = HashMap::from([("desktop-entry", Value::from("sandtray-app"))]);
        let mut shown = self.shown.lock().await;
        let call = ("Sandtray", 0_u32, "sandtray-app", title, body.as_str(), actions, hints, -1_i32);
        let id: u32 = self.service.call("Notify", &call).await?;
        if pressable {
            shown.truncate(PRESSABLE - 1);
            shown.push_front((id, opens));
        }
        Ok(())
    }

    async fn able(&self) -> zbus::Result<Able> {
        let mut able = self.able.lock().await;
        // The well-known name has no owner until the service has started.
        let owner = self.owner().await.ok();
        if let Some(known) = able.as_ref().filter(|known| Some(&known.owner) == owner.as_ref()) {
            return Ok(known.clone());
        }
        let words: Vec<String> = self.service.call("GetCapabilities", &()).await?;
        let can = |word: &str| words.iter().any(|known| known == word);
        // The call has started the service, so the name has an owner now.
        let now = Able { owner: self.owner().await?, markup: can("body-markup"), actions: can("actions") };
        self.shown.lock().await.clear();
        *able = Some(now.clone());
        Ok(now)
    }

    async fn owner(&self) -> zbus::Result<String> {
        let name = SERVICE.try_into()?;
        Ok(self.bus.get_name_owner(name).await?.to_string())
    }

    /// Whether a message is from the service in use. Ids of another service are not ours.
    async fn is_of_service(&self, message: &Message) -> bool {
        let header = message.header();
        let sender = header.sender().map(|name| name.as_str());
        self.able.lock().await.as_ref().is_some_and(|able| Some(able.owner.as_str()) == sender)
    }

    async fn opens(&self, id: u32) -> Option<Opens> {
        self.shown.lock().await.iter().find(|(shown, _)| *shown == id).map(|(_, opens)| opens.clone())
    }

    async fn closed(&self, id: u32) {
        self.shown.lock().await.retain(|(shown, _)| *shown != id);
    }
}

async fn listen(app: Arc<App>, line: Arc<Line>, mut signals: SignalStream<'static>) {
    // The activation token arrives just before the action that it belongs to.
    let mut leave: Option<(u32, String)> = None;
    loop {
        let signal = tokio::select! {
            signal = signals.next() => signal,
            () = app.desk.quit.cancelled() => return,
        };
        let Some(signal) = signal else { break };
        if !line.is_of_service(&signal).await {
            continue;
        }
        let (header, body) = (signal.header(), signal.body());
        match header.member().map(|member| member.as_str()) {
            Some("ActivationToken") => leave = body.deserialize().ok(),
            Some("ActionInvoked") => {
                let Ok((id, action)) = body.deserialize::<(u32, String)>() else { continue };
                let leave = leave.take().filter(|(of, _)| *of == id).map(|(_, leave)| leave);
                if action == PRESS
                    && let Some(Opens::Window(to)) = line.opens(id).await
                {
                    window::open(&app, to, leave);
                }
            }
            Some("NotificationClosed") => {
                if let Ok((id, _why)) = body.deserialize::<(u32, u32)>() {
                    line.closed(id).await;
                }
            }
            Some(_) | None => {}
        }
    }
    line.over.store(true, Ordering::Relaxed);
}

fn escaped(body: &str) -> String {
    body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
