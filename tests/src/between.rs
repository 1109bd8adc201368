//! A proxy between the service and its engine. It loses the answers that a test names, and it can close and open again.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, though no test stands in them")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Larger than any request's head, which arrives in one piece.
const PIECE: usize = 64 << 10;
const CREATE: &[u8] = b"POST /containers/create";

pub struct Between {
    url: String,
    to_lose: Arc<AtomicUsize>,
    here: watch::Sender<bool>,
    /// As its task has made it so.
    listens: watch::Receiver<bool>,
    _connections: JoinSet<()>,
    _folder: TempDir,
}

impl Between {
    /// `engine` is the socket of the real one.
    pub fn new(engine: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("engine.sock");
        let url = format!("unix://{}", socket.display());
        let listener = UnixListener::bind(&socket).unwrap();
        let to_lose = Arc::new(AtomicUsize::new(0));
        let ((here, wanted), (told, listens)) = (watch::channel(true), watch::channel(true));
        let mut connections = JoinSet::new();
        let (engine, lost) = (engine.to_owned(), Arc::clone(&to_lose));
        connections.spawn(stand(listener, socket, engine, lost, wanted, told));
        Self { url, to_lose, here, listens, _connections: connections, _folder: folder }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// The engine makes the next so many containers, and its answers are lost.
    pub fn lose_creations(&self, creations: usize) {
        self.to_lose.store(creations, Ordering::SeqCst);
    }

    /// Breaks every connection; nothing listens any more. The engine itself knows nothing of it.
    pub async fn go_away(&self) {
        self.be(false).await;
    }

    pub async fn come_back(&self) {
        self.be(true).await;
    }

    async fn be(&self, here: bool) {
        self.here.send_replace(here);
        self.listens.clone().wait_for(|listens| *listens == here).await.unwrap();
    }
}

async fn stand(
    mut listener: UnixListener,
    socket: PathBuf,
    engine: PathBuf,
    to_lose: Arc<AtomicUsize>,
    mut wanted: watch::Receiver<bool>,
    told: watch::Sender<bool>,
) {
    loop {
        let all = tokio::select! {
            () = accept(&listener, &engine, &to_lose) => return,
            gone = wanted.wait_for(|here| !here) => gone.map(drop),
        };
        drop(listener);
        std::fs::remove_file(&socket).unwrap();
        told.send_replace(false);
        if all.is_err() || wanted.wait_for(|here| *here).await.is_err() {
            return;
        }
        listener = UnixListener::bind(&socket).unwrap();
        told.send_replace(true);
    }
}

/// Dropping it breaks the connections.
async fn accept(listener: &UnixListener, engine: &Path, to_lose: &Arc<AtomicUsize>) {
    let mut all = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = UnixStream::connect(engine).await.unwrap();
        all.spawn(carry(client, server, Arc::clone(to_lose)));
    }
}
async fn carry(client: UnixStream, server: UnixStream, to_lose: Arc<AtomicUsize>) {
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let lost = AtomicBool::new(false);
    let up = async {
        requests(from_client, to_server, &to_lose, &lost).await;
        // The client has said all it will; the engine may have not.
        std::future::pending().await
    };
    tokio::select! {
        () = up => {}
        () = answers(from_server, to_client, &lost) => {}
    }
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, to_lose: &AtomicUsize, lost: &AtomicBool) {
    let mut piece = vec![0; PIECE];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        let one_less = |left: usize| left.checked_sub(1);
        if piece[..read].starts_with(CREATE)
            && to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
        {
            lost.store(true, Ordering::SeqCst);
        }
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, lost: &AtomicBool) {
    let mut piece = vec![0; PIECE];
    while let Ok(read @ 1..) = from.read(&mut piece).await {
        if lost.load(Ordering::SeqCst) || to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
