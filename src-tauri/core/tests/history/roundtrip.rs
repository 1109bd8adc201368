//! What goes in comes out.

use std::time::Duration;

use sandtray_core::engine::EngineTrouble;
use sandtray_core::error::RunError;
use sandtray_core::history::{FileFigure, FileIn, HistoryError, HistoryQuery, RunRecord, StreamFigure};
use sandtray_core::run::{Captured, CutBy, Interrupted, RunId};
use sandtray_core::settings::Keep;

use super::{Folder, client, first_page, minutes_ago, record_at, rich, spec};

#[tokio::test]
async fn everything_of_a_run_comes_back_after_a_restart() {
    let folder = Folder::new();
    let (asked, answered) = rich();
    let record = RunRecord::of(&asked, &client(), minutes_ago(5), Ok(&answered), Keep::Everything);
    let history = folder.open().await;
    history.record(record.clone()).await.unwrap();
    history.close().await.unwrap();

    let history = folder.open().await;
    assert_eq!(history.get(record.row.run_id).await.unwrap().as_ref(), Some(&record));
    assert_eq!(first_page(&history).await.runs, [record.row]);
}

#[tokio::test]
async fn a_record_says_what_the_outcome_said() {
    let (asked, answered) = rich();
    let record = RunRecord::of(&asked, &client(), minutes_ago(5), Ok(&answered), Keep::Everything);
    let row = &record.row;
    assert_eq!((row.status.as_str(), row.exit_code, row.happened()), ("out_of_memory", Some(137), true));
    assert_eq!(row.files_out, FileFigure { count: 2, bytes: 6 });
    assert_eq!(row.stderr, StreamFigure { produced: 10, returned: 10 });
    assert_eq!((row.stdin_bytes, row.code_bytes, row.skipped_files), (5, 18, 1));
    let body = record.body.unwrap();
    let bytes = Some(bytes::Bytes::from_static(b"a,b\n"));
    assert_eq!(body.files_in, [FileIn { name: "in/da ta.csv".into(), size: 4, bytes }]);
    assert_eq!(body.stdin.as_deref(), Some(&b"stdin"[..]));
    assert_eq!((body.code, body.left_behind), (asked.code, answered.left_behind));
}

#[tokio::test]
async fn the_hash_is_that_of_the_code() {
    let record = record_at(minutes_ago(1), "abc");
    assert_eq!(record.row.code_sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

#[tokio::test]
async fn a_run_that_did_not_happen_is_kept_with_its_error() {
    let folder = Folder::new();
    let history = folder.open().await;
    let error = RunError::Engine(EngineTrouble::Absent { looked_at: Vec::new() });
    let record = RunRecord::of(&spec("print(1)"), &client(), minutes_ago(1), Err(&error), Keep::Everything);
    history.record(record.clone()).await.unwrap();
    let found = history.get(record.row.run_id).await.unwrap().unwrap();
    assert_eq!(found.row.status, "engine_unavailable");
    assert_eq!(found.row.error.as_deref(), Some("Docker isn't installed on this computer."));
    assert_eq!((found.row.exit_code, found.row.wall, found.row.happened()), (None, None, false));
    assert_eq!(found, record);
}

#[tokio::test]
async fn a_run_that_was_cut_off_happened_and_is_kept_with_its_output_and_the_cause() {
    let folder = Folder::new();
    let history = folder.open().await;
    let (asked, answered) = rich();
    let cut = Interrupted {
        run: asked.id,
        by: CutBy::Engine,
        engine: "Docker",
        wall: Duration::from_millis(3700),
        queued: Duration::from_micros(3),
        stdout: answered.stdout,
        stderr: Captured { bytes: "oops".into(), produced: 9 },
        memory_bytes: Some(5 << 20),
        cpu: Some(Duration::from_micros(7)),
        image: "python@sha256:1".into(),
        limits: asked.limits,
        recorded: true,
    };
    let error = RunError::Interrupted(Box::new(cut.clone()));
    let record = RunRecord::of(&asked, &client(), minutes_ago(1), Err(&error), Keep::Everything);
    history.record(record.clone()).await.unwrap();
    let found = history.get(asked.id).await.unwrap().unwrap();
    assert_eq!(found, record);
    let (row, body) = (found.row, found.body.unwrap());
    assert_eq!((row.status.as_str(), row.ended_by.as_deref(), row.happened()), ("interrupted", Some("engine"), true));
    assert_eq!(row.error.as_deref(), Some("Cut off after 3.7 s: Docker went away."));
    assert_eq!((row.exit_code, row.wall, row.memory_bytes), (None, Some(cut.wall), cut.memory_bytes));
    assert_eq!((row.stderr, &body.stderr[..]), (StreamFigure { produced: 9, returned: 4 }, &b"oops"[..]));
    assert_eq!((body.stdout, body.code), (cut.stdout.bytes, asked.code));
    let query = HistoryQuery { status: Some("interrupted".into()), ..HistoryQuery::default() };
    assert_eq!(history.list(query).await.unwrap().runs.len(), 1);
}

#[tokio::test]
async fn one_run_is_recorded_once_and_an_unknown_one_is_not_there() {
    let folder = Folder::new();
    let history = folder.open().await;
    let record = record_at(minutes_ago(1), "x");
    history.record(record.clone()).await.unwrap();
    history.record(record).await.unwrap_err();
    assert_eq!(history.stats().await.unwrap().runs, 1);
    assert_eq!(history.get(RunId::generate()).await.unwrap(), None);
    assert!(!history.delete(RunId::generate()).await.unwrap());
}

#[tokio::test]
async fn a_closed_history_says_so_and_a_second_close_too() {
    let folder = Folder::new();
    let history = folder.open().await;
    let other = history.clone();
    history.record(record_at(minutes_ago(1), "x")).await.unwrap();
    history.close().await.unwrap();
    for result in [other.close().await, other.record(record_at(minutes_ago(1), "y")).await] {
        assert!(matches!(result, Err(HistoryError::Closed)), "{result:?}");
    }
    assert!(!folder.root.path().join("history.sqlite-wal").exists(), "closing writes the log back");
}

#[tokio::test]
async fn a_row_crosses_to_a_window_with_plain_figures() {
    let json = serde_json::to_value(record_at(minutes_ago(1), "x").row).unwrap();
    assert_eq!(json["seconds"], 0.020_001);
    assert_eq!(json["queued_seconds"], 0.003_002);
    assert_eq!(json["cpu_seconds"], 0.012_003);
    assert!(json["queued_at"].is_u64());
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let history = folder.open().await;
    history.record(record_at(minutes_ago(1), "x")).await.unwrap();
    for entry in std::fs::read_dir(folder.root.path()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
}
