//! Experimental and untested: this is type-checked for Windows, and has never run there.
//!
//! The named pipe. Its security descriptor admits its owner and the system only, for reading too; remote clients are
//! refused. Missing compared with the Unix socket: no place is kept for the owner's own program, and a client does not
//! check whose service it speaks to. Both would need unsafe code.

use std::io;
use std::path::{Path, PathBuf};

use futures_util::FutureExt;
use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::named_pipe::{PipeListenerOptions, pipe_mode};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use tokio::io::AsyncWriteExt;
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use widestring::{U16CStr, u16cstr};

use super::door::Runs;
use super::session::{self, Link};
use super::{ACCEPT_PAUSE, BindError, Peer, Places, Process, next_client, turned_away};

/// Not inherited (`P`). All rights for the owner of the pipe (`OW`), which is the user who made it, and for the system
/// (`SY`).
const WHO_MAY: &U16CStr = u16cstr!("D:P(A;;GA;;;OW)(A;;GA;;;SY)");
const BUFFER: u32 = 64 << 10;

type Pipe = DuplexPipeStream<pipe_mode::Bytes>;

#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    pipe: PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>,
}

impl Listener {
    /// Opens a pipe by its name, `\\.\pipe\...`. The first instance of a name locks it.
    ///
    /// # Errors
    ///
    /// [`BindError::AlreadyRunning`] if the name is taken, otherwise [`BindError::Io`].
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        let descriptor = SecurityDescriptor::deserialize(WHO_MAY).map_err(failed)?;
        let options = PipeListenerOptions::new()
            .path(path)
            .security_descriptor(Some(descriptor))
            .accept_remote(false)
            .input_buffer_size_hint(BUFFER)
            .output_buffer_size_hint(BUFFER);
        let pipe = options.create_tokio_duplex::<pipe_mode::Bytes>().map_err(|source| {
            let taken = matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::AddrInUse);
            if taken { BindError::AlreadyRunning { path: path.to_owned() } } else { failed(source) }
        })?;
        Ok(Self { path: path.to_owned(), pipe })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub async fn accept(&mut self) -> io::Result<(Pipe, Peer)> {
        let pipe = self.pipe.accept().await?;
        let pid = pipe.client_process_id().ok();
        let process = pid.map(|pid| Process { pid, started: 0 });
        Ok((pipe, Peer { pid, process, program: None }))
    }

    /// Accepts until `stop` is cancelled, then waits for the connections to end.
    pub async fn serve<D: Runs>(mut self, door: D, stop: CancellationToken) {
        let mut places = Places::new(door.budget());
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                () = places.reap() => continue,
                accepted = self.accept() => accepted,
            };
            match accepted {
                Ok((pipe, peer)) => welcome(pipe, peer, &mut places, &door, &stop),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self);
        places.finish().await;
    }
}

/// Connects as a client.
///
/// # Errors
///
/// Those of the system.
pub async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
    ClientOptions::new().open(path)
}

fn welcome<D: Runs>(pipe: Pipe, peer: Peer, places: &mut Places, door: &D, stop: &CancellationToken) {
    let admitted = match places.admit(&peer, || false) {
        Ok(admitted) => admitted,
        Err(refused) => {
            // The pipe's buffer is empty, so the write either completes at once or is not worth waiting for.
            let (_, mut writer) = pipe.split();
            let _ = writer.write_all(&turned_away(refused)).now_or_never();
            return;
        }
    };
    let (reader, writer) = pipe.split();
    // A pipe has no half-close: end-of-file means that the client is gone.
    let link = Link { reader, writer, hung_up: Box::new(|| true) };
    let seat = places.seat(&admitted);
    let session = session::serve(link, (next_client(), peer), seat.clone(), door.clone(), stop.clone());
    places.add(admitted, seat, session);
}
