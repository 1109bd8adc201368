//! The named pipe. Its default security descriptor lets only its owner, administrators and the system write to it, and a
//! request is a write; remote clients are refused.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, NamedPipeServer, ServerOptions};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::door::Runs;
use super::session::{self, Link};
use super::{ACCEPT_PAUSE, BindError, Connections, Peer, next_client, turned_away};

#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    next: NamedPipeServer,
}

impl Listener {
    /// Opens the door at a pipe's name, `\\.\pipe\...`. The first instance of a name is the lock on it.
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let next = pipe(path, true).map_err(|source| {
            let path = path.to_owned();
            let taken = source.kind() == io::ErrorKind::PermissionDenied;
            if taken { BindError::AlreadyRunning { path } } else { BindError::Io { path, source } }
        })?;
        Ok(Self { path: path.to_owned(), next })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. Cancel-safe.
    pub async fn accept(&mut self) -> io::Result<(NamedPipeServer, Peer)> {
        self.next.connect().await?;
        // The next instance is there before this one is served, or a client would find no pipe.
        match pipe(&self.path, false) {
            Ok(next) => Ok((std::mem::replace(&mut self.next, next), Peer::default())),
            Err(error) => {
                let _ = self.next.disconnect();
                Err(error)
            }
        }
    }

    /// Accepts until `stop` is cancelled, then waits for the connections to end.
    pub async fn serve<D: Runs>(mut self, door: D, stop: CancellationToken) {
        let mut connections = Connections::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                () = connections.reap() => continue,
                accepted = self.accept() => accepted,
            };
            match accepted {
                Ok((pipe, peer)) => welcome(pipe, peer, &mut connections, &door, &stop),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self);
        connections.finish().await;
    }
}

fn pipe(path: &Path, first: bool) -> io::Result<NamedPipeServer> {
    ServerOptions::new().first_pipe_instance(first).reject_remote_clients(true).create(path)
}

/// The client's side.
pub async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
    ClientOptions::new().open(path)
}

fn welcome<D: Runs>(
    pipe: NamedPipeServer,
    peer: Peer,
    connections: &mut Connections,
    door: &D,
    stop: &CancellationToken,
) {
    let Some(place) = connections.place() else {
        let _ = pipe.try_write(&turned_away());
        return;
    };
    let (reader, writer) = tokio::io::split(pipe);
    // A pipe has no half-close: its end is the end.
    let link = Link { reader, writer, hung_up: Box::new(|| true) };
    connections.add(place, session::serve(link, (next_client(), peer), door.clone(), stop.clone()));
}
