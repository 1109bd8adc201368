//! The product behind the door, doing what the program's text says:
//!
//! - `say WORDS`: prints the words.
//! - `early WORDS`: the same, before it is told that the program started.
//! - `hold`, `sleep`: starts, then runs until it is cancelled.
//! - `late`: cannot be cancelled for half a second, as where the product has much to do; then like `hold`.
//! - `wait`: never starts; runs until it is cancelled.
//! - `chunks COUNT SIZE`: prints so many pieces of so many bytes, dropping and counting those that are not read.
//! - `files SIZE`: returns one file.
//! - `binary`: prints bytes that are not text on both streams.
//! - `cut WORDS`: prints the words, then is cut off since its engine went away.
//! - `unrecorded`: the history does not take it.
//! - `exit CODE`, `timeout`, `full`, `panic`.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, though no test stands in them")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sandtray_core::budget::{Budget, Hold};
use sandtray_core::engine::{Endpoint, EngineInfo, EngineState};
use sandtray_core::error::RunError;
use sandtray_core::event::{ImageState, ImageStatus, LiveRun, PullFigure, Snapshot};
use sandtray_core::history::Trouble;
use sandtray_core::ipc::door::Runs;
use sandtray_core::language::Language;
use sandtray_core::name::FileName;
use sandtray_core::protocol::request::HistoryRequest;
use sandtray_core::run::{
    Cancel, Captured, Client, ClientId, CutBy, EndedBy, Interrupted, Limits, Outcome, OutputChunk, OutputFile, RunId,
    RunSpec, Status, Stream,
};
use sandtray_core::settings::Settings;
use sandtray_core::supervisor::Progress;
use sandtray_core::visitors::Visitors;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

/// Far above what anything here takes; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Runs of one batch at once where it does not ask for fewer.
pub const AT_ONCE: usize = 4;

pub const BINARY: &[u8] = b"a\xff\x1b[2J\x00\r\n";

#[derive(Clone)]
pub struct Scripted(Arc<Inner>);

struct Inner {
    snapshot: watch::Sender<Snapshot>,
    live: Mutex<Vec<(ClientId, RunId, Cancel)>>,
    running: watch::Sender<usize>,
    dropped: watch::Sender<usize>,
    seen: Mutex<Vec<(Client, RunSpec)>>,
    chunks_dropped: AtomicUsize,
    budget: Budget,
    visitors: Visitors,
    trouble: Mutex<Option<Trouble>>,
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Scripted {
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            snapshot: watch::channel(snapshot()).0,
            live: Mutex::default(),
            trouble: Mutex::default(),
            running: watch::channel(0).0,
            dropped: watch::channel(0).0,
            seen: Mutex::default(),
            chunks_dropped: AtomicUsize::new(0),
            budget: Budget::default(),
            visitors: Visitors::default(),
        }))
    }

    pub fn change(&self, change: impl FnOnce(&mut Snapshot)) {
        self.0.snapshot.send_modify(change);
    }

    pub async fn until_running(&self, count: usize) {
        until(self.0.running.subscribe(), count).await;
    }

    /// Waits until so many runs were ended by dropping their future.
    pub async fn until_dropped(&self, count: usize) {
        until(self.0.dropped.subscribe(), count).await;
    }

    /// From now on the history cannot be written.
    pub fn history_in_trouble(&self, trouble: Trouble) {
        *self.0.trouble.lock().unwrap() = Some(trouble);
    }

    pub fn dropped(&self) -> usize {
        *self.0.dropped.borrow()
    }

    pub fn chunks_dropped(&self) -> usize {
        self.0.chunks_dropped.load(Ordering::SeqCst)
    }

    pub fn specs(&self) -> Vec<RunSpec> {
        self.0.seen.lock().unwrap().iter().map(|(_, spec)| spec.clone()).collect()
    }

    pub fn clients(&self) -> Vec<Client> {
        self.0.seen.lock().unwrap().iter().map(|(client, _)| client.clone()).collect()
    }

    fn print(&self, progress: &mut Progress, count: usize, size: usize) -> u64 {
        let mut missed = 0;
        for _ in 0..count {
            let bytes = Bytes::from(vec![b'x'; size]);
            let chunk = OutputChunk { stream: Stream::Stdout, bytes, missed };
            let taken = progress.output.as_ref().is_some_and(|output| output.try_send(chunk).is_ok());
            missed = if taken { 0 } else { missed + size as u64 };
            self.0.chunks_dropped.fetch_add(usize::from(!taken), Ordering::SeqCst);
        }
        (count * size) as u64
    }

    async fn act(&self, spec: &RunSpec, cancel: &Cancel, mut progress: Progress) -> Result<Outcome, RunError> {
        let code = String::from_utf8(spec.code.to_vec()).unwrap();
        let (word, rest) = code.split_once(' ').unwrap_or((&code, ""));
        let numbers: Vec<usize> = rest.split(' ').filter_map(|number| number.parse().ok()).collect();
        let mut outcome = outcome(spec);
        if word == "early" {
            let bytes = Bytes::from(rest.to_owned());
            let told = progress.output.as_ref().expect("a client that streams");
            told.send(OutputChunk { stream: Stream::Stdout, bytes, missed: 0 }).await.unwrap();
            // Until it was taken: only then has the client to be told of anything.
            while told.capacity() < told.max_capacity() {
                tokio::task::yield_now().await;
            }
        }
        if word != "wait" {
            progress.started.take().map(|started| started.send(()));
        }
        match word {
            "say" => {
                if let Some(output) = &progress.output {
                    let bytes = Bytes::from(rest.to_owned());
                    let _ = output.try_send(OutputChunk { stream: Stream::Stdout, bytes, missed: 0 });
                }
                outcome.stdout = Captured { bytes: Bytes::from(rest.to_owned()), produced: rest.len() as u64 };
            }
            "early" | "unrecorded" => {}
            "hold" | "late" | "wait" | "sleep" => {
                cancel.cancelled().await;
                outcome.status = Status::Cancelled;
                outcome.ended_by = EndedBy::Client;
                outcome.exit_code = 137;
            }
            "chunks" => outcome.stdout.produced = self.print(&mut progress, numbers[0], numbers[1]),
            "files" => {
                let name = FileName::parse("big").unwrap();
                outcome.files = vec![OutputFile { name, bytes: vec![b'x'; numbers[0]].into() }];
            }
            "binary" => {
                for (stream, bytes) in [(Stream::Stdout, BINARY), (Stream::Stderr, b"\x1b[2J\x00err".as_slice())] {
                    let bytes = Bytes::from_static(bytes);
                    let captured = Captured { bytes: bytes.clone(), produced: bytes.len() as u64 };
                    match stream {
                        Stream::Stdout => outcome.stdout = captured,
                        Stream::Stderr => outcome.stderr = captured,
                    }
                    let chunk = OutputChunk { stream, bytes, missed: 0 };
                    progress.output.as_ref().map(|output| output.try_send(chunk));
                }
            }
            "exit" => {
                outcome.status = Status::Failed;
                outcome.exit_code = numbers[0] as i32;
            }
            "timeout" => {
                outcome.status = Status::Timeout;
                outcome.ended_by = EndedBy::Limit;
                outcome.exit_code = 137;
                outcome.left_behind = vec!["x.png".into()];
            }
            "cut" => {
                let stdout = Captured { bytes: Bytes::from(rest.to_owned()), produced: rest.len() as u64 };
                return Err(RunError::Interrupted(Box::new(interrupted(spec, stdout))));
            }
            "full" => return Err(RunError::QueueFull { waiting: 3, own: false, retry_after: Duration::from_secs(2) }),
            "panic" => panic!("as the script says"),
            other => panic!("no such word: {other}"),
        }
        Ok(outcome)
    }
}

async fn until(mut figure: watch::Receiver<usize>, count: usize) {
    let reached = figure.wait_for(|figure| *figure == count);
    tokio::time::timeout(PATIENCE, reached).await.expect("the runs get there").unwrap();
}

/// Notices that a run's future was dropped before it ended.
struct Guard<'a> {
    inner: &'a Inner,
    ended: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.inner.running.send_modify(|running| *running -= 1);
        if !self.ended {
            self.inner.dropped.send_modify(|dropped| *dropped += 1);
        }
    }
}

impl Runs for Scripted {
    async fn run(
        &self,
        spec: RunSpec,
        client: Client,
        progress: Progress,
        cancel: &Cancel,
    ) -> Result<Outcome, RunError> {
        self.0.running.send_modify(|running| *running += 1);
        let mut guard = Guard { inner: &self.0, ended: false };
        let cancel = cancel.child();
        if spec.code.starts_with(b"late") {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.0.live.lock().unwrap().push((client.id, spec.id, cancel.clone()));
        self.0.seen.lock().unwrap().push((client, spec.clone()));
        let hold = progress.hold.clone();
        let result = self.act(&spec, &cancel, progress).await;
        hold.going(result.as_ref().map_or_else(RunError::weight, Outcome::weight));
        guard.ended = true;
        result
    }

    async fn cancel(&self, client: ClientId, run: RunId) -> bool {
        let live = self.0.live.lock().unwrap();
        let found = live.iter().find(|(owner, id, _)| (*owner, *id) == (client, run));
        found.map(|(_, _, cancel)| cancel.by(EndedBy::Client)).is_some()
    }

    fn watch(&self) -> watch::Receiver<Snapshot> {
        self.0.snapshot.subscribe()
    }

    fn limits(&self) -> Limits {
        Settings::default().limits()
    }

    fn at_once(&self) -> usize {
        AT_ONCE
    }

    async fn history(&self, request: HistoryRequest, _: Hold) -> Result<Box<RawValue>, RunError> {
        let page = json!({ "runs": [{ "limit": request.limit }], "next": request.before });
        Ok(to_raw_value(&page).expect("JSON"))
    }

    fn history_trouble(&self) -> Option<Trouble> {
        self.0.trouble.lock().unwrap().clone()
    }

    fn budget(&self) -> Budget {
        self.0.budget.clone()
    }

    fn visitors(&self) -> Visitors {
        self.0.visitors.clone()
    }
}

fn interrupted(spec: &RunSpec, stdout: Captured) -> Interrupted {
    Interrupted {
        run: spec.id,
        by: CutBy::Engine,
        engine: "Docker",
        wall: Duration::from_millis(3700),
        queued: Duration::ZERO,
        stdout,
        stderr: Captured { bytes: Bytes::from_static(b"\xff"), produced: 1 },
        memory_bytes: None,
        cpu: None,
        image: "scripted".into(),
        limits: spec.limits,
        recorded: true,
    }
}

fn outcome(spec: &RunSpec) -> Outcome {
    Outcome {
        status: Status::Ok,
        ended_by: EndedBy::Program,
        exit_code: 0,
        stdout: Captured::default(),
        stderr: Captured::default(),
        files: Vec::new(),
        skipped_files: Vec::new(),
        left_behind: Vec::new(),
        wall: Duration::from_millis(5),
        queued: Duration::ZERO,
        memory_bytes: None,
        cpu: None,
        oom_kills: 0,
        image: "scripted".into(),
        limits: spec.limits,
        recorded: !spec.code.starts_with(b"unrecorded"),
    }
}

pub fn ready() -> EngineState {
    EngineState::Ready(EngineInfo {
        name: "Scripted".into(),
        version: "1".into(),
        api_version: "1".into(),
        endpoint: Endpoint { url: "unix:///x".into(), found: "the script".into() },
        os: "linux".into(),
        arch: "x86_64".into(),
        cpus: 2,
        memory_bytes: 1 << 30,
        fingerprint: String::new(),
    })
}

fn snapshot() -> Snapshot {
    Snapshot { enabled: true, engine: ready(), images: Vec::new(), running: Vec::new(), queued: Vec::new(), warm: 0 }
}

pub fn pulling(fraction: f64) -> ImageStatus {
    let figure = PullFigure { fraction, downloaded_bytes: 10, total_bytes: 20, preparing: false };
    ImageStatus {
        language: Language::Python,
        image: "python:3.12-slim".into(),
        state: ImageState::Pulling(figure),
        wall_missing: None,
        launcher: None,
    }
}

pub fn live(run_id: RunId) -> LiveRun {
    LiveRun {
        run_id,
        language: Language::Python,
        client: "c".into(),
        program: None,
        label: None,
        title: None,
        since: SystemTime::UNIX_EPOCH,
        limit_seconds: 60.0,
        waiting: None,
    }
}
