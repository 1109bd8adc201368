//! Watches the service for events that matter to the owner, and shows them as notifications.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod native;
pub(crate) mod notice;

use std::collections::HashSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use sandtray_core::engine::EngineState;
use sandtray_core::event::{Asker, Event};
use sandtray_core::history::{Cursor, HistoryQuery, RunRow};
use sandtray_core::language::Language;
use sandtray_core::run::{RunId, Status};
use sandtray_core::time::to_millis;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::app::App;
use crate::desk::Here;
use crate::dto::snapshot::WindowEvent;
#[cfg(target_os = "linux")]
pub(crate) use linux::Desktop;
#[cfg(target_os = "linux")]
use linux::show_alone;
#[cfg(not(target_os = "linux"))]
pub(crate) use native::Desktop;
#[cfg(not(target_os = "linux"))]
use native::show_alone;
use notice::{Gate, Notice, Opens, Why};

/// Most clients remembered as known. Beyond it they are looked up in the history again.
const KNOWN_CLIENTS: usize = 256;
/// Timeout for the notification of a failed start.
const NO_START: Duration = Duration::from_secs(3);

#[derive(Debug, Default)]
pub(crate) struct Gatekeeper {
    gate: Mutex<Gate>,
    desktop: Desktop,
}

impl Gatekeeper {
    /// Call it at the end of the app.
    pub(crate) async fn close(&self) {
        self.desktop.close().await;
    }
}

/// A notification's text and the target of a click.
struct Note {
    title: String,
    body: String,
    opens: Opens,
}

impl From<&Notice> for Note {
    fn from(notice: &Notice) -> Self {
        Self { title: notice.title(), body: notice.body(), opens: notice.opens() }
    }
}

/// Notifies the owner, unless the gate holds the notice back.
pub(crate) fn tell(app: &Arc<App>, notice: Notice) {
    let wanted = app.desk.here().is_ok_and(|here| here.owner.settings().notifications);
    let in_front = app.window.is_in_front();
    let mut gate = app.gatekeeper.gate.lock().unwrap_or_else(PoisonError::into_inner);
    let admitted = gate.admits(&notice, wanted, in_front, Instant::now());
    drop(gate);
    if !admitted {
        return missed(app, &notice);
    }
    let telling = Arc::clone(app);
    // In the background, because a desktop may be slow to answer.
    app.spawn(async move {
        if !telling.gatekeeper.desktop.show(&telling, Note::from(&notice)).await {
            missed(&telling, &notice);
        } else if notice == Notice::StaysInTray {
            telling.closing.was_told();
        }
    });
}

/// Handles a notice that was not shown. An alarm stays in the window and the tray until the owner has seen it. An open
/// window shows a new client itself.
fn missed(app: &App, notice: &Notice) {
    if *notice == Notice::StaysInTray {
        app.closing.say_it_in_the_window();
    }
    if notice.is_an_alarm() {
        app.desk.turned_on(to_millis(SystemTime::now()));
    }
    if let (Notice::NewClient { .. }, Opens::Window(to)) = (notice, notice.opens()) {
        app.desk.say(WindowEvent::Notice { text: notice.body(), to });
    }
}

/// Notifies of a failed start, when there is no app and the owner may have started it from a menu. The wait for the
/// desktop is bounded.
pub(crate) fn tell_of_no_start(why: &str) {
    let (told, telling) = sync_channel::<()>(0);
    let why = why.to_owned();
    let thread = thread::Builder::new().name("notice".into()).spawn(move || {
        let _told_or_not = show_alone("Sandtray cannot start", &why);
        drop(told);
    });
    if thread.is_ok() {
        // Always an error: either the timeout, or the end of the thread, which drops the sender.
        let _over = telling.recv_timeout(NO_START);
    }
}

/// Watches until the service ends.
pub(crate) async fn watch(app: Arc<App>, here: Arc<Here>, over: CancellationToken) {
    let mut events = here.supervisor.events();
    let mut troubles = here.history.troubles();
    // A trouble that existed at the start counts as a change.
    troubles.mark_changed();
    let mut told_of_history = false;
    let enabled = here.supervisor.snapshot().enabled;
    let mut watcher =
        Watcher { app, here, engine: EngineState::Checking, enabled, begun: SystemTime::now(), known: HashSet::new() };
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            Ok(()) = troubles.changed() => {
                let notice = Notice::of_history(told_of_history, troubles.borrow_and_update().as_ref());
                if let Some(notice) = notice {
                    told_of_history = matches!(notice, Notice::HistoryLost { .. });
                    tell(&watcher.app, notice);
                }
                continue;
            }
            () = over.cancelled() => return,
        };
        match event {
            Ok(event) => watcher.hear(event).await,
            // Missed events are outdated, except for the switch.
            Err(RecvError::Lagged(_)) => watcher.switched(watcher.here.supervisor.snapshot().enabled),
            Err(RecvError::Closed) => return,
        }
    }
}

struct Watcher {
    app: Arc<App>,
    here: Arc<Here>,
    engine: EngineState,
    enabled: bool,
    begun: SystemTime,
    /// Known pairs of name and program. The same name from another program is new.
    known: HashSet<Asker>,
}

impl Watcher {
    async fn hear(&mut self, event: Event) {
        let notice = match event {
            Event::EngineChanged { engine } => {
                let notice = Notice::of_engine(&self.engine, &engine);
                self.engine = engine;
                // While the switch is off, an engine's trouble does not matter.
                notice.filter(|_| self.here.supervisor.snapshot().enabled)
            }
            Event::PullFinished { image } => Some(Notice::PullFinished { image }),
            Event::PullFailed { error: sandtray_core::engine::PullError::Cancelled, .. } => None,
            Event::PullFailed { image, error } => Some(Notice::PullFailed { image, message: error.to_string() }),
            Event::RunQueued { by, .. } => self.newcomer(by).await,
            Event::RunFinished { run_id, status } => self.killed(run_id, status).await,
            Event::RunCutOff { run_id, .. } => self.cut_off(run_id).await,
            Event::EnabledChanged { enabled } => return self.switched(enabled),
            Event::PullProgress { .. } | Event::RunStarted { .. } | Event::RunRefused { .. } => None,
        };
        if let Some(notice) = notice {
            tell(&self.app, notice);
        }
    }

    /// Notifies when running code was turned on, also if the owner did it.
    fn switched(&mut self, enabled: bool) {
        let was = std::mem::replace(&mut self.enabled, enabled);
        if enabled && !was {
            tell(&self.app, Notice::TurnedOn);
        }
    }

    /// The notice of a new client, once per client. A client is known if the history had it before this service began;
    /// runs of this session do not count.
    async fn newcomer(&mut self, by: Asker) -> Option<Notice> {
        if by.own || self.known.contains(&by) {
            return None;
        }
        if self.known.len() >= KNOWN_CLIENTS {
            self.known.clear();
        }
        self.known.insert(by.clone());
        let Asker { name, program, .. } = by;
        let query = HistoryQuery {
            before: Some(Cursor::before(self.begun)),
            limit: 1,
            client: Some(name.clone()),
            // An empty one asks for runs whose program is unknown.
            program: Some(program.clone().unwrap_or_default()),
            ..HistoryQuery::default()
        };
        let page = self.here.history.list(query).await.inspect_err(|error| warn!(%error, "no look at the history"));
        page.is_ok_and(|page| page.runs.is_empty()).then_some(Notice::NewClient { client: name, program })
    }

    async fn killed(&self, run: RunId, status: Status) -> Option<Notice> {
        let why = Why::of(status)?;
        let row = self.here.history.row(run).await.ok()??;
        let (title, run_id) = (title(&row), run.to_string());
        Some(Notice::RunKilled { run_id, title, client: row.client, program: row.client_program, why })
    }

    async fn cut_off(&self, run: RunId) -> Option<Notice> {
        let row = self.here.history.row(run).await.ok()??;
        let (title, run_id) = (title(&row), run.to_string());
        Some(Notice::RunCutOff { run_id, title, sentence: row.error?, client: row.client, program: row.client_program })
    }
}

fn title(row: &RunRow) -> &'static str {
    row.language.parse().map_or("A program", |language: Language| language.recipe().title)
}
