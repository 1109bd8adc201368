//! What the window, the tray and the notifications share: the running service and the latest snapshot.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandtray_core::engine::health::HealthHandle;
use sandtray_core::history::History;
use sandtray_core::owner::Owner;
use sandtray_core::service::Service;
use sandtray_core::supervisor::Supervisor;
use sandtray_core::visitors::Visitors;
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::dto::error::CommandError;
use crate::dto::snapshot::{Navigate, OwnerSnapshot, ServiceView, WindowEvent};
use crate::views::Views;

/// Capacity of one-time events for the window. Beyond it the oldest is dropped.
const SAID: usize = 16;

/// One for the life of the app.
#[derive(Debug)]
pub(crate) struct Desk {
    here: watch::Sender<Option<Arc<Here>>>,
    snapshots: watch::Sender<OwnerSnapshot>,
    /// Asks for another attempt to start the service.
    pub(crate) again: Notify,
    /// Ends the app: see [`crate::host`].
    pub(crate) quit: CancellationToken,
    pub(crate) views: Views,
    /// When running code was turned on, until the owner has seen it. In milliseconds since 1970.
    turned_on: watch::Sender<Option<u64>>,
    /// The page that the tray opens the next window at.
    next: Mutex<Option<Navigate>>,
    said: broadcast::Sender<WindowEvent>,
}

/// Handles of the running service.
#[derive(Debug)]
pub(crate) struct Here {
    pub(crate) supervisor: Supervisor,
    pub(crate) history: History,
    pub(crate) health: HealthHandle,
    pub(crate) owner: Owner,
    pub(crate) notices: Vec<String>,
    pub(crate) socket: String,
    pub(crate) visitors: Visitors,
}

impl Desk {
    pub(crate) fn new(snapshot: OwnerSnapshot) -> Self {
        Self {
            here: watch::Sender::new(None),
            snapshots: watch::Sender::new(snapshot),
            again: Notify::new(),
            quit: CancellationToken::new(),
            views: Views::default(),
            turned_on: watch::Sender::new(None),
            next: Mutex::new(None),
            said: broadcast::Sender::new(SAID),
        }
    }

    pub(crate) fn open(&self, service: &Service) -> Arc<Here> {
        let here = Arc::new(Here {
            supervisor: service.supervisor.clone(),
            history: service.history.clone(),
            health: service.health.clone(),
            owner: service.owner.clone(),
            notices: service.notices.clone(),
            socket: service.socket.display().to_string(),
            visitors: service.visitors.clone(),
        });
        self.here.send_replace(Some(Arc::clone(&here)));
        here
    }

    /// The service.
    ///
    /// # Errors
    ///
    /// The reason why there is no service, as an error for the window.
    pub(crate) fn here(&self) -> Result<Arc<Here>, CommandError> {
        self.here.borrow().clone().ok_or_else(|| match &self.snapshots.borrow().service {
            ServiceView::Starting | ServiceView::Here => {
                CommandError::new("starting", "Sandtray is still starting.").hint("Try again in a moment.")
            }
            ServiceView::Elsewhere { message, hint } => CommandError::new("elsewhere", message).hint(hint),
            ServiceView::Failed { message, hint } => CommandError::new("not_started", message).hint(hint),
        })
    }

    pub(crate) fn services(&self) -> watch::Receiver<Option<Arc<Here>>> {
        self.here.subscribe()
    }

    /// Drops the service's handles, before the service ends.
    pub(crate) fn close(&self) {
        self.here.send_replace(None);
    }

    pub(crate) fn snapshots(&self) -> watch::Receiver<OwnerSnapshot> {
        self.snapshots.subscribe()
    }

    pub(crate) fn snapshot(&self) -> OwnerSnapshot {
        self.snapshots.borrow().clone()
    }

    pub(crate) fn publish(&self, snapshot: OwnerSnapshot) {
        self.snapshots.send_if_modified(|current| {
            let changed = *current != snapshot;
            *current = snapshot;
            changed
        });
    }

    pub(crate) fn publish_state(&self, service: ServiceView) {
        self.publish(OwnerSnapshot { service, ..self.snapshot() });
    }

    pub(crate) fn turned_on(&self, at_ms: u64) {
        self.turned_on.send_replace(Some(at_ms));
    }

    pub(crate) fn saw_turned_on(&self) {
        self.turned_on.send_if_modified(|at| at.take().is_some());
    }

    pub(crate) fn unseen(&self) -> watch::Receiver<Option<u64>> {
        self.turned_on.subscribe()
    }

    /// Sends an event to the window, if it is open.
    pub(crate) fn say(&self, event: WindowEvent) {
        // Without a window there is no receiver.
        let _ = self.said.send(event);
    }

    pub(crate) fn said(&self) -> broadcast::Receiver<WindowEvent> {
        self.said.subscribe()
    }

    pub(crate) fn go_next(&self, to: Option<Navigate>) {
        *self.next() = to;
    }

    pub(crate) fn take_next(&self) -> Option<Navigate> {
        self.next().take()
    }

    fn next(&self) -> MutexGuard<'_, Option<Navigate>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
