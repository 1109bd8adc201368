//! The history through its public API, on real files.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; Clippy knows only functions with #[test]"
)]

mod clients;
mod crash;
mod damage;
mod finding;
mod flood;
mod inputs;
mod keeping;
mod paging;
mod roundtrip;

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use sandtray_core::history::{History, HistoryQuery, Page, RunRecord};
use sandtray_core::language::Language;
use sandtray_core::name::FileName;
use sandtray_core::run::{
    Captured, Client, ClientId, EndedBy, InputFile, Limits, Outcome, OutputFile, Overflow, RunId, RunSpec, SkipReason,
    SkippedFile, Status,
};
use sandtray_core::settings::{HistorySettings, Keep, Settings};
use sandtray_core::time::from_millis;

/// Runs of a fixed date would be pruned for their age one day.
fn minutes_ago(minutes: u64) -> SystemTime {
    // Whole milliseconds, as the history keeps them.
    from_millis(sandtray_core::time::to_millis(SystemTime::now()) - minutes * 60_000)
}

struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.root.path().join("history.sqlite")
    }

    /// Makes of a closed file what the first version had made of the same runs.
    fn to_first_version(&self) {
        let connection = rusqlite::Connection::open(self.file()).unwrap();
        connection
            .execute_batch(
                "DROP TABLE input; DROP TABLE content; DROP INDEX run_by_agent; ALTER TABLE run DROP COLUMN title;
                 ALTER TABLE run DROP COLUMN ended_by; ALTER TABLE run DROP COLUMN overflow; ALTER TABLE run DROP COLUMN given_up;
                 UPDATE total SET bytes = bytes - inputs; ALTER TABLE total DROP COLUMN inputs;
                 UPDATE body SET names = '{\"files_in\":[{\"name\":\"a.csv\",\"size\":3}],\"skipped_files\":[],\"left_behind\":[]}';
                 PRAGMA user_version = 1;",
            )
            .unwrap();
    }

    async fn open(&self) -> History {
        let opened = History::open(&self.file(), HistorySettings::default()).await.unwrap();
        assert_eq!(opened.set_aside, None);
        opened.history
    }

    /// Every byte of every file of the history, the log and what was set aside included.
    fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(self.root.path()).unwrap() {
            all.extend(std::fs::read(entry.unwrap().path()).unwrap());
        }
        all
    }

    fn holds(&self, needle: &str) -> bool {
        let bytes = self.bytes();
        bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
    }
}

fn limits() -> Limits {
    Settings::default().limits()
}

fn client() -> Client {
    Client { id: ClientId(7), name: "claude".into(), pid: Some(4711), program: Some("/usr/bin/claude".into()) }
}

fn spec(code: &str) -> RunSpec {
    RunSpec {
        id: RunId::generate(),
        language: Language::Python,
        code: Bytes::copy_from_slice(code.as_bytes()),
        args: Vec::new(),
        files: Vec::new(),
        stdin: Bytes::new(),
        limits: limits(),
        overflow: Overflow::Kill,
        label: None,
    }
}

fn outcome() -> Outcome {
    Outcome {
        status: Status::Ok,
        ended_by: EndedBy::Program,
        exit_code: 0,
        stdout: Captured::default(),
        stderr: Captured::default(),
        files: Vec::new(),
        skipped_files: Vec::new(),
        left_behind: Vec::new(),
        wall: Duration::from_micros(20_001),
        queued: Duration::from_micros(3002),
        memory_bytes: Some(9 << 20),
        cpu: Some(Duration::from_micros(12_003)),
        oom_kills: 0,
        image: "python:3.12-slim@sha256:0123".into(),
        limits: limits(),
        recorded: true,
    }
}

/// An outcome with every field in use and every kind of unfriendly byte.
fn rich() -> (RunSpec, Outcome) {
    let asked = RunSpec {
        files: vec![InputFile { name: FileName::parse("in/da ta.csv").unwrap(), bytes: Bytes::from_static(b"a,b\n") }],
        stdin: Bytes::from_static(b"stdin"),
        label: Some("a label \u{0}\u{1b}[31m \u{1f980} ' \" ; DROP TABLE run".into()),
        ..spec("print('hello')\0\u{feff}")
    };
    let answered = Outcome {
        status: Status::OutOfMemory,
        ended_by: EndedBy::Limit,
        exit_code: 137,
        // SQLite's numbers end at 2^63.
        stdout: Captured { bytes: Bytes::from_static(b"\xff\xfe\0 not text"), produced: i64::MAX as u64 },
        stderr: Captured { bytes: Bytes::from_static(b"Traceback\n"), produced: 10 },
        files: vec![
            OutputFile { name: FileName::parse("z\n.png").unwrap(), bytes: Bytes::from_static(b"\x89PNG\0\xff") },
            OutputFile { name: FileName::parse("a/empty").unwrap(), bytes: Bytes::new() },
        ],
        skipped_files: vec![SkippedFile { name: "link\u{fffd}".into(), reason: SkipReason::Symlink }],
        left_behind: vec!["result.txt".into()],
        memory_bytes: None,
        cpu: None,
        oom_kills: 3,
        ..outcome()
    };
    (asked, answered)
}

fn record_at(queued_at: SystemTime, code: &str) -> RunRecord {
    RunRecord::of(&spec(code), &client(), queued_at, Ok(&outcome()), Keep::Everything)
}

async fn first_page(history: &History) -> Page {
    history.list(HistoryQuery::default()).await.unwrap()
}

fn set_aside_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".damaged-"))
        .collect();
    files.sort();
    files
}
