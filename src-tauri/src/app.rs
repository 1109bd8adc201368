//! The state that the parts of the app share, in one place.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerWaitFuture;

use crate::clipboard::Clipboard;
use crate::closing::Closing;
use crate::desk::Desk;
use crate::host;
use crate::notify::Gatekeeper;
use crate::thumbnail::Studio;
use crate::tray::Presence;
use crate::window::{self, Window};

/// The shared state. One for the life of the app.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) clipboard: Clipboard,
    pub(crate) closing: Closing,
    pub(crate) desk: Desk,
    pub(crate) gatekeeper: Gatekeeper,
    pub(crate) studio: Studio,
    pub(crate) tray: Presence,
    pub(crate) window: Window,
    /// The system started the app at login, so it opens no window by itself.
    pub(crate) quiet: bool,
    /// The activation token of the app's start, for the first window: see [`crate::window::open`].
    leave: Mutex<Option<String>>,
    tasks: TaskTracker,
}

impl App {
    pub(crate) fn new(quiet: bool) -> Arc<Self> {
        Arc::new(Self {
            clipboard: Clipboard::default(),
            closing: Closing::default(),
            desk: Desk::new(host::blank()),
            gatekeeper: Gatekeeper::default(),
            studio: Studio::default(),
            tray: Presence::default(),
            window: Window::default(),
            quiet,
            leave: Mutex::new(window::own_leave()),
            tasks: TaskTracker::new(),
        })
    }

    /// Takes the activation token, which can be used once.
    pub(crate) fn take_leave(&self) -> Option<String> {
        self.leave.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Spawns a task that the app waits for at its end. The task must end by itself or on [`Desk::quit`].
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Resolves once all spawned tasks have ended.
    pub(crate) fn ended(&self) -> TaskTrackerWaitFuture<'_> {
        self.tasks.close();
        self.tasks.wait()
    }
}
