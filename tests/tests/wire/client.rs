//! A client that says exactly what it is told to, line by line.

use sandtray_core::ipc::{Peer, next_client, session, unix};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
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
    task: JoinHandle<()>,
}

pub(crate) fn connect(product: &Scripted) -> Session {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let stop = CancellationToken::new();
    let peer = Peer { pid: Some(7), program: Some("tester".into()) };
    let session = session::serve(unix::link(ours).unwrap(), (next_client(), peer), product.clone(), stop.clone());
    Session { wire: Wire::new(theirs), stop, task: tokio::spawn(session) }
}

impl Session {
    /// Waits for the session to end by itself.
    pub(crate) async fn ended(self) {
        timeout(PATIENCE, self.task).await.expect("the session ends").unwrap();
    }
}
