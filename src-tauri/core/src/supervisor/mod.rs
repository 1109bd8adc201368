//! The one owner of the state: the switch, the queue, the live runs, the engine, the images.

use tokio::sync::{broadcast, watch};

use crate::error::RunError;
pub use crate::executor::Progress;
use crate::event::{Event, Snapshot};
use crate::run::{Client, ClientId, Outcome, RunId, RunSpec};

/// What a connection holds. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Supervisor {
    snapshots: watch::Receiver<Snapshot>,
    events: broadcast::Sender<Event>,
}


impl Supervisor {
    /// Queues the run and waits for what comes of it. Dropping the future cancels the run.
    /// The outcome is in the history before it is returned.
    pub async fn run(&self, _spec: RunSpec, _client: Client, _progress: Progress) -> Result<Outcome, RunError> {
        Err(RunError::ShuttingDown)
    }

    /// Ends one of the client's own runs; its caller gets the verdict `cancelled`. False where the client has no such run.
    pub async fn cancel(&self, _client: ClientId, _run: RunId) -> bool {
        false
    }

    /// Off: kills what runs, refuses what waits, and returns once no container is left.
    pub async fn set_enabled(&self, _enabled: bool) {}

    /// Fetches a language's image ahead of its first run; joins a pull that is under way.
    pub async fn pull(&self, _language: crate::language::Language) -> Result<(), RunError> {
        Err(RunError::ShuttingDown)
    }

    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }

    /// Every change of the snapshot, the latest state at any time.
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// A receiver that falls behind is told how many events it lost; it then takes a snapshot.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Refuses new runs, kills what runs, and returns once no container is left, at the latest after five seconds.
    pub async fn shutdown(&self) {}
}
