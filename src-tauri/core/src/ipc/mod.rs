//! The local transport: who may connect, and how many connections there are. [`session`] handles what is said over one.
//! No other folder names sockets or pipes.

mod batch;
mod call;
pub mod door;
mod outbox;
mod places;
#[cfg(unix)]
mod process;
pub mod session;
#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::protocol::error::ErrorObject;
use crate::protocol::{Id, Response};
use crate::run::ClientId;

pub use places::{MAX_CONNECTIONS, MAX_OF_PROCESS, OWNERS_PLACES, Process, Seat};
use places::{Places, Refused};
#[cfg(unix)]
pub use unix::{Listener, connect};
#[cfg(windows)]
pub use windows::{Listener, connect};

/// Pause after a failed accept, for example when the system has no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// At shutdown: how long connections wait for the replies of their runs. The supervisor ends runs within five seconds.
const FAREWELL: Duration = Duration::from_secs(8);

/// Why the listener could not be opened.
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

/// The process at the other end of a connection, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peer {
    pub pid: Option<u32>,
    /// None if the kernel does not report it.
    pub process: Option<Process>,
    /// The file name of the program.
    pub program: Option<String>,
}

/// A connection id, unique in this process over all listeners.
pub fn next_client() -> ClientId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    ClientId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The error for a client that gets no place, as a line.
fn turned_away(refused: Refused) -> Vec<u8> {
    let id = Id::null();
    let response = Response::<()>::new(&id, Err(ErrorObject::too_many_connections(refused.message())));
    outbox::line(&response).unwrap_or_default()
}

/// A running accept loop. [`Serving::stop`] ends it.
#[derive(Debug)]
pub struct Serving {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Serving {
    /// Stops accepting and waits until every connection has its replies. Call it while the supervisor shuts down:
    /// connections stay open until their runs have been answered.
    pub async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the listener failed");
        }
    }
}

/// Spawns the accept loop of a listener.
pub fn serve<D: door::Runs>(listener: Listener, door: D) -> Serving {
    let stop = CancellationToken::new();
    let task = tokio::spawn(listener.serve(door, stop.clone()));
    Serving { stop, task }
}
