//! A client that says exactly what it is told to, line by line.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::{Fuse, FusedFuture};
use sandtray_core::budget::Account;
use sandtray_core::ipc::door::Runs;
use sandtray_core::ipc::session::Link;
use sandtray_core::ipc::{Peer, Seat, next_client, session, unix};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use sandtray_tests::scripted::{PATIENCE, Scripted};

pub(crate) struct Wire {
    pub(crate) reader: BufReader<OwnedReadHalf>,
    pub(crate) writer: OwnedWriteHalf,
}

impl Wire {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader: BufReader::new(reader), writer }
    }

    pub(crate) async fn raw(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, id: i64, method: &str, params: Value) {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.raw(&format!("{line}\n")).await;
    }

    pub(crate) async fn run(&mut self, id: i64, code: &str) {
        self.ask(id, "code.run", json!({ "language": "python", "code": code })).await;
    }

    pub(crate) async fn stream(&mut self, id: i64, code: &str) {
        self.ask(id, "code.run", json!({ "language": "python", "code": code, "stream": true })).await;
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = timeout(PATIENCE, self.reader.read_line(&mut line)).await.expect("an answer in time");
        (read.unwrap() > 0).then(|| serde_json::from_str(&line).expect(&line))
    }

    pub(crate) async fn get(&mut self) -> Value {
        self.next().await.expect("an answer")
    }
}

/// A session over a socket pair.
pub(crate) struct Session {
    pub(crate) wire: Wire,
    pub(crate) stop: CancellationToken,
    /// The account of the client's process.
    pub(crate) account: Account,
    task: JoinHandle<()>,
}

pub(crate) fn connect(product: &Scripted) -> Session {
    let (theirs, ours) = UnixStream::pair().unwrap();
    over(product, theirs, unix::link(ours).unwrap())
}

/// Over a socket that delivers what is written, and says that it did only once the sender says true.
pub(crate) fn connect_reluctant(product: &Scripted) -> (Session, watch::Sender<bool>) {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let (flushes, mut may) = watch::channel(false);
    let Link { reader, writer, hung_up } = unix::link(ours).unwrap();
    let may: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
        let _ = may.wait_for(|may| *may).await;
    });
    let link = Link { reader, writer: Reluctant { writer, may: may.fuse() }, hung_up };
    (over(product, theirs, link), flushes)
}

fn over<W>(product: &Scripted, theirs: UnixStream, link: Link<OwnedReadHalf, W>) -> Session
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    let stop = CancellationToken::new();
    let peer = Peer { pid: Some(7), program: Some("tester".into()), ..Peer::default() };
    let account = product.budget().account();
    let seat = Seat::new(account.clone());
    let session = session::serve(link, (next_client(), peer), seat, product.clone(), stop.clone());
    Session { wire: Wire::new(theirs), stop, account, task: tokio::spawn(session) }
}

struct Reluctant {
    writer: OwnedWriteHalf,
    may: Fuse<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl AsyncWrite for Reluctant {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.may.is_terminated() && self.may.poll_unpin(context).is_pending() {
            return Poll::Pending;
        }
        Pin::new(&mut self.writer).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(context)
    }
}

impl Session {
    /// Waits for the session to end by itself.
    pub(crate) async fn ended(self) {
        timeout(PATIENCE, self.task).await.expect("the session ends").unwrap();
    }
}
