//! The local door: who may connect, and how many. What is said over a connection is [`session`]'s to know.
//! Sockets and pipes are named in this folder only.

mod batch;
mod call;
pub mod door;
mod outbox;
pub mod session;
#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::protocol::error::ErrorObject;
use crate::protocol::{Id, Response};
use crate::run::ClientId;

#[cfg(unix)]
pub use unix::{Listener, connect};
#[cfg(windows)]
pub use windows::{Listener, connect};

/// Connections at once. Each may hold one frame of [`crate::codec::MAX_FRAME`] while it arrives.
pub const MAX_CONNECTIONS: usize = 64;
/// How long to leave the door alone when the system refuses to open it, for want of file descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// At shutdown: how long runs may take to be answered. The supervisor ends them within five seconds.
const FAREWELL: Duration = Duration::from_secs(8);

/// Why the door could not be opened.
#[derive(Debug, Error)]
pub enum BindError {
    #[error("Sandtray runs already: another service listens at {}.", path.display())]
    AlreadyRunning { path: PathBuf },
    #[error("The folder of the socket can't be used: {} {why}.", path.display())]
    Folder { path: PathBuf, why: String },
    #[error("{} is in the way: it is not a socket. Move it, or choose another path.", path.display())]
    NotASocket { path: PathBuf },
    #[error("The socket {} can't be made: {source}.", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Who is on the other side, by the kernel's word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peer {
    pub pid: Option<u32>,
    /// The file name of the program.
    pub program: Option<String>,
}

/// Every connection of one process has its own id, whichever listener it came by.
pub fn next_client() -> ClientId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    ClientId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The connections of one listener, and the places left for more.
struct Connections {
    places: Arc<Semaphore>,
    sessions: JoinSet<()>,
}

impl Connections {
    fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_CONNECTIONS)), sessions: JoinSet::new() }
    }

    fn place(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    fn add(&mut self, place: tokio::sync::OwnedSemaphorePermit, session: impl Future<Output = ()> + Send + 'static) {
        self.sessions.spawn(async move {
            session.await;
            drop(place);
        });
    }

    /// Reads the results of those that ended. Never ready while there is none, so it can stand in a `select!`.
    async fn reap(&mut self) {
        match self.sessions.join_next().await {
            Some(Ok(())) => {}
            Some(Err(error)) if error.is_panic() => tracing::error!(%error, "a connection failed"),
            Some(Err(_)) => {}
            None => std::future::pending().await,
        }
    }

    /// Waits for the sessions, which end by themselves once their token is cancelled; one that is stuck in a write to a
    /// client that does not read is not waited for.
    async fn finish(mut self) {
        let ended = async {
            while !self.sessions.is_empty() {
                self.reap().await;
            }
        };
        if timeout(FAREWELL + ACCEPT_PAUSE, ended).await.is_err() {
            self.sessions.shutdown().await;
        }
    }
}

/// What a client is told that comes when every place is taken.
fn turned_away() -> Vec<u8> {
    let id = Id::null();
    let response = Response::<()>::new(&id, Err(ErrorObject::too_many_connections(MAX_CONNECTIONS)));
    outbox::line(&response).unwrap_or_default()
}

/// Stops the accept loop of a [`Listener`] and waits until every connection has got its replies.
#[derive(Debug)]
pub struct Serving {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    /// Call it while the supervisor shuts down: connections live on until their runs have been answered.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the listener failed");
        }
    }
}

/// Serves in the background.
pub fn serve<D: door::Runs>(listener: Listener, door: D) -> Serving {
    let stop = CancellationToken::new();
    let task = tokio::spawn(listener.serve(door, stop.clone()));
    Serving { stop, task }
}
