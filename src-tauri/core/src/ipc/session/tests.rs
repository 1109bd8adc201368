//! Waits of minutes, on a clock that the test moves.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};

use super::*;
use crate::budget::Budget;
use crate::engine::EngineState;
use crate::ipc::next_client;
use crate::protocol::request::HistoryRequest;
use crate::run::{Limits, Outcome};
use crate::settings::Settings;
use crate::supervisor::Progress;
use crate::visitors::Visitors;

/// A product that runs nothing.
#[derive(Clone)]
struct Idle(watch::Receiver<Snapshot>);

impl Runs for Idle {
    async fn run(&self, _: RunSpec, _: Client, _: Progress, _: &Cancel) -> Result<Outcome, RunError> {
        std::future::pending().await
    }

    async fn cancel(&self, _: ClientId, _: RunId) -> bool {
        false
    }

    fn watch(&self) -> watch::Receiver<Snapshot> {
        self.0.clone()
    }

    fn limits(&self) -> Limits {
        Settings::default().limits()
    }

    fn at_once(&self) -> usize {
        1
    }

    async fn history(&self, _: HistoryRequest, _: Hold) -> Result<Box<RawValue>, RunError> {
        Ok(to_raw_value(&()).unwrap())
    }

    fn history_trouble(&self) -> Option<crate::history::Trouble> {
        None
    }

    fn budget(&self) -> Budget {
        Budget::default()
    }

    fn visitors(&self) -> Visitors {
        Visitors::default()
    }
}

fn connect() -> BufReader<DuplexStream> {
    let (theirs, ours) = duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let snapshot = Snapshot {
        enabled: true,
        engine: EngineState::Checking,
        images: Vec::new(),
        running: Vec::new(),
        queued: Vec::new(),
        warm: 0,
    };
    let link = Link { reader, writer, hung_up: Box::new(|| true) };
    let (product, seat) = (Idle(watch::channel(snapshot).1), Seat::new(Budget::default().account()));
    tokio::spawn(serve(link, (next_client(), Peer::default()), seat, product, CancellationToken::new()));
    BufReader::new(theirs)
}

/// The next message; none at the end of the stream.
async fn next(wire: &mut BufReader<DuplexStream>) -> Option<Value> {
    let mut line = String::new();
    let read = wire.read_line(&mut line).await.unwrap();
    (read > 0).then(|| serde_json::from_str(&line).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_is_told_and_closed() {
    let (mut wire, begun) = (connect(), Instant::now());
    let told = next(&mut wire).await.unwrap();
    assert_eq!((&told["id"], &told["error"]["data"]["code"]), (&Value::Null, &json!("invalid_request")));
    assert_eq!(next(&mut wire).await, None);
    assert!((FIRST_WORD..FIRST_WORD + Duration::from_secs(2)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_asked_may_be_silent_for_a_day_and_wait_for_another() {
    const DAY: Duration = Duration::from_secs(86_400);
    let mut wire = connect();
    for id in [1, 2] {
        let hello = json!({ "jsonrpc": "2.0", "id": id, "method": "hello" });
        wire.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
        assert_eq!(next(&mut wire).await.unwrap()["id"], id);
        assert!(timeout(DAY, next(&mut wire)).await.is_err());
    }
    let run = json!({ "jsonrpc": "2.0", "id": 3, "method": "code.run", "params": { "language": "py", "code": "" } });
    wire.write_all(format!("{run}\n").as_bytes()).await.unwrap();
    assert!(timeout(DAY, next(&mut wire)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_finished_ends_the_connection() {
    let (mut wire, begun) = (connect(), Instant::now());
    wire.write_all(b"{\"jsonrpc\": \"2.0\"").await.unwrap();
    assert_eq!(next(&mut wire).await, None);
    assert!(begun.elapsed() < 2 * crate::codec::READ_STALL, "{:?}", begun.elapsed());
}
