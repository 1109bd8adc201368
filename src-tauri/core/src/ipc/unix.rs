//! The Unix socket: in a folder that only its user may enter, with a lock file against a second service. The peer must
//! be the same user.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::net::unix::UCred;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::door::Runs;
use super::session::{self, Link};
use super::{ACCEPT_PAUSE, BindError, Peer, Places, next_client, process, turned_away};

const FOLDER_MODE: u32 = 0o700;
const SOCKET_MODE: u32 = 0o600;

/// A bound socket. Dropping it removes the socket file and then releases the lock.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket that this listener made. A socket that replaced it is not removed.
    made: (u64, u64),
    _lock: fs::File,
}

impl Listener {
    /// Binds `path`. Call it inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Those of [`BindError`].
    pub fn bind(path: &Path) -> Result<Self, BindError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        own_folder(folder)?;
        let failed = |source| BindError::Io { path: path.to_owned(), source };
        let lock = lock(path)?;
        clear(path)?;
        let socket = UnixListener::bind(path).map_err(failed)?;
        // No race: until then the folder's mode keeps other users out.
        fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE)).map_err(failed)?;
        let made = fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino())).map_err(failed)?;
        Ok(Self { socket, path: path.to_owned(), made, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection of the same user; those of other users are closed. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Those of the system's accept.
    pub async fn accept(&mut self) -> io::Result<(UnixStream, Peer)> {
        loop {
            let (stream, _) = self.socket.accept().await?;
            match admit(&stream) {
                Ok(peer) => return Ok((stream, peer)),
                Err(error) => tracing::warn!(%error, "a connection was refused"),
            }
        }
    }

    /// Accepts until `stop` is cancelled, then waits for the connections to end.
    pub async fn serve<D: Runs>(mut self, door: D, stop: CancellationToken) {
        let mut places = Places::new(door.budget());
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                () = places.reap() => {}
                accepted = self.accept() => match accepted {
                    Ok((stream, peer)) => welcome(stream, peer, &mut places, &door, &stop),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // Removes the socket first, so that no client connects while the last replies are written.
        drop(self);
        places.finish().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.made);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn welcome<D: Runs>(stream: UnixStream, peer: Peer, places: &mut Places, door: &D, stop: &CancellationToken) {
    let admitted = match places.admit(&peer, || peer.pid.is_some_and(process::is_owners)) {
        Ok(admitted) => admitted,
        Err(refused) => {
            tracing::warn!(?peer, ?refused, "a connection found no place");
            // The socket's buffer is empty, so the write either completes at once or is not worth waiting for.
            let _ = stream.try_write(&turned_away(refused));
            return;
        }
    };
    match link(stream) {
        Ok(link) => {
            let seat = places.seat(&admitted);
            let session = session::serve(link, (next_client(), peer), seat.clone(), door.clone(), stop.clone());
            places.add(admitted, seat, session);
        }
        Err(error) => tracing::warn!(%error, "a connection could not be served"),
    }
}

/// Connects as a client, only to a service of the same user: the client sends that user's data and trusts the answers.
///
/// # Errors
///
/// Those of the system, and `PermissionDenied` if another user listens.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path).await?;
    same_user(&stream)?;
    Ok(stream)
}

/// Splits a connection into what a session needs.
///
/// # Errors
///
/// Those of duplicating the file descriptor.
pub fn link(stream: UnixStream) -> io::Result<Link<tokio::net::unix::OwnedReadHalf, tokio::net::unix::OwnedWriteHalf>> {
    let eye = stream.as_fd().try_clone_to_owned()?;
    let (reader, writer) = stream.into_split();
    Ok(Link { reader, writer, hung_up: Box::new(move || hung_up(&eye)) })
}

/// Whether the other side closed both directions. After a half-close it still waits for an answer.
fn hung_up(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::empty())];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        Err(_) => false,
    }
}

/// Admits only the same user. The folder keeps other users out already; this check holds if its mode was changed.
fn admit(stream: &UnixStream) -> io::Result<Peer> {
    let pid = same_user(stream)?.pid().and_then(|pid| u32::try_from(pid).ok());
    Ok(Peer { pid, process: pid.map(process::of), program: pid.and_then(process::program) })
}

fn same_user(stream: &UnixStream) -> io::Result<UCred> {
    let credentials = stream.peer_cred()?;
    let ours = rustix::process::geteuid().as_raw();
    if credentials.uid() != ours {
        let message = format!("the peer is user {}, not {ours}", credentials.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(credentials)
}

/// Makes the folder if it is missing. An existing one must be a real folder of this user, closed to other users.
/// An open one is refused instead of closed: it may be a home folder.
fn own_folder(folder: &Path) -> Result<(), BindError> {
    let refuse = |why: String| BindError::Folder { path: folder.to_owned(), why };
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::DirBuilder::new()
            .recursive(true)
            .mode(FOLDER_MODE)
            .create(folder)
            .map_err(|error| refuse(format!("can't be made: {error}")))?,
        Err(error) => return Err(refuse(format!("can't be looked at: {error}"))),
        Ok(_) => {}
    }
    let meta = fs::symlink_metadata(folder).map_err(|error| refuse(format!("can't be looked at: {error}")))?;
    if !meta.is_dir() {
        return Err(refuse("is not a folder (a symbolic link is not followed)".into()));
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse(format!("belongs to another user ({})", meta.uid())));
    }
    if meta.mode() & 0o077 != 0 {
        let mode = meta.mode() & 0o777;
        return Err(refuse(format!("is open to other users (mode {mode:o}); close it with `chmod 700`")));
    }
    Ok(())
}

/// Takes the lock. The lock file is never removed: two services could then hold locks on two files of one name.
fn lock(socket: &Path) -> Result<fs::File, BindError> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let failed = |source: io::Error| BindError::Io { path: socket.to_owned(), source };
    let file = fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(SOCKET_MODE)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
        .map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::AlreadyRunning { path: socket.to_owned() }),
        Err(error) => Err(failed(error.into())),
    }
}

/// Removes a stale socket. Call it with the lock held. A socket that answers is left alone.
fn clear(path: &Path) -> Result<(), BindError> {
    let failed = |source| BindError::Io { path: path.to_owned(), source };
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !meta.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.to_owned() });
    }
    // The lock file may have been removed under a service that still runs.
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(BindError::AlreadyRunning { path: path.to_owned() });
    }
    fs::remove_file(path).map_err(failed)
}
