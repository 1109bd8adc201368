//! What is kept, and for how long.

use std::time::Duration;

use bytes::Bytes;
use sandtray_core::history::{History, HistoryQuery, RunRecord, Stats};
use sandtray_core::run::{Captured, Outcome};
use sandtray_core::settings::{HistorySettings, Keep};

use super::{Folder, client, first_page, limits, minutes_ago, outcome, record_at, rich, spec};

/// Pruning happens behind the answers; this waits for it, with a bound.
pub(super) async fn settled(history: &History, done: impl Fn(Stats) -> bool) -> Stats {
    for _ in 0..1000 {
        let stats = history.stats().await.unwrap();
        if done(stats) {
            return stats;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the history was not pruned: {:?}", history.stats().await);
}

#[tokio::test]
async fn with_metrics_only_no_file_holds_code_or_output() {
    let folder = Folder::new();
    let settings = HistorySettings { keep: Keep::Metrics, ..HistorySettings::default() };
    let history = History::open(&folder.file(), settings).await.unwrap().history;
    let (mut asked, mut answered) = rich();
    asked.code = Bytes::from_static(b"secretcode = 1");
    asked.stdin = Bytes::from_static(b"secretstdin");
    answered.stdout.bytes = Bytes::from_static(b"secretstdout");
    answered.stderr.bytes = Bytes::from_static(b"secretstderr");
    answered.files[0].bytes = Bytes::from_static(b"secretfile");
    answered.left_behind = vec!["secretname".into()];
    let metrics = RunRecord::of(&asked, &client(), minutes_ago(1), Ok(&answered), Keep::Metrics);
    assert_eq!(metrics.body, None);
    // A record made before the owner changed the setting is stripped all the same.
    let late = RunRecord::of(&spec("secretcode"), &client(), minutes_ago(1), Ok(&answered), Keep::Everything);
    history.record(metrics.clone()).await.unwrap();
    history.record(late).await.unwrap();
    assert_eq!(history.get(metrics.row.run_id).await.unwrap(), Some(metrics.clone()));
    assert!(folder.holds("claude"));
    assert!(!folder.holds("secret"), "in the log");
    history.close().await.unwrap();
    assert!(!folder.holds("secret"), "in the database");
    let history = folder.open().await;
    let search = HistoryQuery { text: Some("secretcode".into()), ..HistoryQuery::default() };
    assert_eq!(history.list(search).await.unwrap().runs, []);
}

#[tokio::test]
async fn what_is_deleted_is_in_no_file() {
    let folder = Folder::new();
    let history = folder.open().await;
    let answered =
        Outcome { stdout: Captured { bytes: Bytes::from("deletedoutput ".repeat(2000)), produced: 1 }, ..outcome() };
    let record = RunRecord::of(&spec("x"), &client(), minutes_ago(2), Ok(&answered), Keep::Everything);
    history.record(record.clone()).await.unwrap();
    history.record(record_at(minutes_ago(1), "stays")).await.unwrap();
    assert!(folder.holds("deletedoutput"));
    assert!(history.delete(record.row.run_id).await.unwrap());
    assert!(!folder.holds("deletedoutput deletedoutput"));
    assert_eq!(history.get(record.row.run_id).await.unwrap(), None);
    assert_eq!(first_page(&history).await.runs.len(), 1);
    assert_eq!(history.stats().await.unwrap().runs, 1);
}

#[tokio::test]
async fn the_words_of_a_deleted_run_leave_the_index_soon_after() {
    let folder = Folder::new();
    let history = folder.open().await;
    let record = record_at(minutes_ago(2), "zqdeletedword");
    history.record(record.clone()).await.unwrap();
    // Merged with these into one segment, of which one deleted run is too small a part to be merged away by itself.
    for number in 0..300 {
        history.record(record_at(minutes_ago(3), &format!("word{number} other{number}"))).await.unwrap();
    }
    assert!(history.delete(record.row.run_id).await.unwrap());
    for _ in 0..1000 {
        if !folder.holds("zqdeletedword") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the index still holds the word");
}

#[tokio::test]
async fn clearing_leaves_nothing_and_work_goes_on() {
    let folder = Folder::new();
    let history = folder.open().await;
    for _ in 0..5 {
        history.record(record_at(minutes_ago(1), "clearedcode")).await.unwrap();
    }
    history.clear().await.unwrap();
    assert!(!folder.holds("clearedcode"));
    assert_eq!(history.stats().await.unwrap(), Stats::default());
    history.record(record_at(minutes_ago(1), "later")).await.unwrap();
    assert_eq!(first_page(&history).await.runs.len(), 1);
}

#[tokio::test]
async fn the_oldest_go_by_count_and_by_bytes() {
    let folder = Folder::new();
    let settings = HistorySettings { max_runs: 20, ..HistorySettings::default() };
    let history = History::open(&folder.file(), settings.clone()).await.unwrap().history;
    for number in 0..100 {
        history.record(record_at(minutes_ago(1000 - number), "x")).await.unwrap();
    }
    settled(&history, |stats| stats.runs == 20).await;
    let newest = minutes_ago(1000 - 80) - Duration::from_secs(30);
    assert!(first_page(&history).await.runs.iter().all(|run| run.queued_at >= newest));

    history.configure(HistorySettings { max_mb: 1, ..settings }).await.unwrap();
    let large = Outcome { stdout: Captured { bytes: vec![b'x'; 300_000].into(), produced: 300_000 }, ..outcome() };
    for _ in 0..6 {
        let record = RunRecord::of(&spec("x"), &client(), minutes_ago(0), Ok(&large), Keep::Everything);
        history.record(record).await.unwrap();
    }
    let stats = settled(&history, |stats| stats.bytes <= 1 << 20).await;
    assert_eq!(stats.runs, 3);
}

#[tokio::test]
async fn the_aged_go_at_the_start() {
    let folder = Folder::new();
    let history = folder.open().await;
    for days in 0..40 {
        history.record(record_at(minutes_ago(days * 24 * 60 + 1), "x")).await.unwrap();
    }
    history.close().await.unwrap();
    let settings = HistorySettings { max_days: 7, ..HistorySettings::default() };
    let history = History::open(&folder.file(), settings).await.unwrap().history;
    settled(&history, |stats| stats.runs == 7).await;
}

#[tokio::test]
async fn the_file_shrinks_when_the_owner_allows_less() {
    let folder = Folder::new();
    let history = folder.open().await;
    let large = Outcome { stdout: Captured { bytes: vec![b'x'; 1 << 20].into(), produced: 1 }, ..outcome() };
    for _ in 0..40 {
        let record = RunRecord::of(&spec("x"), &client(), minutes_ago(1), Ok(&large), Keep::Everything);
        history.record(record).await.unwrap();
    }
    history.configure(HistorySettings { max_runs: 1, ..HistorySettings::default() }).await.unwrap();
    settled(&history, |stats| stats.runs == 1).await;
    for _ in 0..1000 {
        if std::fs::metadata(folder.file()).unwrap().len() < 20 << 20 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the file still has {} bytes", std::fs::metadata(folder.file()).unwrap().len());
}

#[tokio::test]
async fn the_count_and_the_bytes_follow_every_change() {
    let folder = Folder::new();
    let history = folder.open().await;
    let empty = history.stats().await.unwrap();
    let (small, large) = (record_at(minutes_ago(2), "x"), record_at(minutes_ago(1), &"y".repeat(10_000)));
    history.record(small.clone()).await.unwrap();
    let one = history.stats().await.unwrap();
    history.record(large.clone()).await.unwrap();
    let two = history.stats().await.unwrap();
    assert!(two.runs == 2 && two.bytes > one.bytes + 10_000, "{one:?} {two:?}");
    history.delete(large.row.run_id).await.unwrap();
    assert_eq!(history.stats().await.unwrap(), one);
    history.delete(small.row.run_id).await.unwrap();
    assert_eq!(history.stats().await.unwrap(), empty);
    assert_eq!(small.row.limits, limits());
}
