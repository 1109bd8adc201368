//! The tray: shows what [`crate::menu`] returns and performs the chosen actions. While something runs, the menu is
//! updated each second for the elapsed times, otherwise only after a change.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod native;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use sandtray_core::time::to_millis;
use tokio::sync::watch;

use crate::app::App;
use crate::dto::snapshot::{Navigate, OwnerSnapshot, Page};
use crate::menu::{self, Action, Icon, Item};
use crate::picture::COALESCE;
use crate::{act, window};

#[cfg(target_os = "linux")]
pub(crate) use linux::hold;
#[cfg(not(target_os = "linux"))]
pub(crate) use native::hold;

const TICK: Duration = Duration::from_secs(1);

/// Whether this desktop shows a tray, as far as known.
#[derive(Debug, Default)]
pub(crate) struct Presence(AtomicBool);

impl Presence {
    pub(crate) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, there: bool) {
        self.0.store(there, Ordering::Relaxed);
    }
}

/// The tray's content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Face {
    items: Vec<Item>,
    icon: Icon,
    /// The state as text.
    words: String,
}

impl Face {
    fn of(snapshot: &OwnerSnapshot) -> Self {
        let now = to_millis(SystemTime::now());
        Self { items: menu::menu(snapshot, now), icon: menu::icon(snapshot), words: menu::words(snapshot) }
    }
}

/// Yields the tray's contents when they are due, until the app quits.
struct Faces {
    app: Arc<App>,
    snapshots: watch::Receiver<OwnerSnapshot>,
    /// Whether the current content shows elapsed times and must be updated each second. `None` before the first.
    ticks: Option<bool>,
}

impl Faces {
    fn of(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), snapshots: app.desk.snapshots(), ticks: None }
    }

    async fn next(&mut self) -> Option<Face> {
        if let Some(ticks) = self.ticks {
            tokio::select! {
                changed = self.snapshots.changed() => changed.ok()?,
                () = tokio::time::sleep(TICK), if ticks => {}
                () = self.app.desk.quit.cancelled() => return None,
            }
            tokio::time::sleep(COALESCE).await;
        }
        let snapshot = self.snapshots.borrow_and_update().clone();
        self.ticks = Some(!snapshot.running.is_empty());
        Some(Face::of(&snapshot))
    }
}

/// Performs an action. `leave` is the desktop's activation token.
fn perform(app: &Arc<App>, action: Action, leave: Option<String>) {
    match action {
        Action::Toggle => act::toggle(app),
        Action::Stop => act::stop_all(app),
        Action::Open(page) => window::open(app, page.map(|page| Navigate { page, run_id: None }), leave),
        Action::OpenRun(run) => window::open(app, Some(Navigate { page: Page::Runs, run_id: Some(run) }), leave),
        Action::Retry => app.desk.again.notify_one(),
        Action::Quit => app.desk.quit.cancel(),
    }
}
