//! Lists without end: they stop no pruning, let no file grow, and delay no write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sandtray_core::history::{History, HistoryQuery, RunRecord};
use sandtray_core::name::FileName;
use sandtray_core::run::{Captured, Outcome, OutputFile};
use sandtray_core::settings::{HistorySettings, Keep};

use super::{Folder, client, minutes_ago, outcome, record_at, spec};

const LISTERS: usize = 60;
const MB: u64 = 1 << 20;

fn record_of(megabytes: usize, minute: u64) -> RunRecord {
    let name = FileName::parse("big").unwrap();
    let files = vec![OutputFile { name, bytes: Bytes::from(vec![7; megabytes << 20]) }];
    let answered = Outcome { files, ..outcome() };
    RunRecord::of(&spec("x"), &client(), minutes_ago(minute), Ok(&answered), Keep::Everything)
}

/// Lists that are read over and over until this is dropped.
struct Flood {
    over: Arc<AtomicBool>,
    lists: Arc<AtomicUsize>,
}

impl Flood {
    fn of(history: &History) -> Self {
        let flood = Self { over: Arc::default(), lists: Arc::default() };
        for _ in 0..LISTERS {
            let (history, over, lists) = (history.clone(), Arc::clone(&flood.over), Arc::clone(&flood.lists));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    // A list that was ended because of the log is asked for again.
                    if history.list(HistoryQuery { limit: 500, ..HistoryQuery::default() }).await.is_ok() {
                        lists.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        flood
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_lists_stops_no_pruning_and_lets_no_file_grow() {
    let folder = Folder::new();
    let settings = HistorySettings { max_mb: 4, ..HistorySettings::default() };
    let history = History::open(&folder.file(), settings).await.unwrap().history;
    // Small records, which a step prunes few bytes of, ahead of large ones.
    for _ in 0..400 {
        history.record(record_at(minutes_ago(200), "small")).await.unwrap();
    }
    let flood = Flood::of(&history);
    let log = folder.root.path().join("history.sqlite-wal");
    for minute in (1..=100).rev() {
        history.record(record_of(2, minute)).await.unwrap();
        let kept = history.stats().await.unwrap().bytes;
        // The bound and a tenth, the run just written, and a step.
        assert!(kept < 4 * MB + 4 * MB / 10 + 2 * MB + MB, "{kept} bytes are kept");
        let bytes = [folder.file(), log.clone()].map(|path| std::fs::metadata(path).unwrap().len());
        assert!(bytes.iter().sum::<u64>() < 40 * MB, "{bytes:?}");
    }
    assert!(flood.lists.load(Ordering::Relaxed) > 100, "lists were read meanwhile");
    drop(flood);
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_waits_for_no_list() {
    let folder = Folder::new();
    let history = folder.open().await;
    for _ in 0..1000 {
        history.record(record_at(minutes_ago(2), "one of many")).await.unwrap();
    }
    let begun = Instant::now();
    history.list(HistoryQuery { limit: 500, ..HistoryQuery::default() }).await.unwrap();
    let list = begun.elapsed();
    let flood = Flood::of(&history);
    while flood.lists.load(Ordering::Relaxed) < LISTERS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut took = Vec::new();
    for _ in 0..21 {
        let begun = Instant::now();
        history.record(record_at(minutes_ago(1), "one more")).await.unwrap();
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    // If it queued behind them, it would wait for about sixty lists.
    assert!(took[10] < list * 20, "{:?}, where a list takes {list:?}", took[10]);
    drop(flood);
    history.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_runs_are_gone_from_all_files_while_lists_are_read() {
    let folder = Folder::new();
    let history = folder.open().await;
    let stdout = Captured { bytes: Bytes::from("deletedoutput ".repeat(2000)), produced: 28_000 };
    let answered = Outcome { stdout, ..outcome() };
    let doomed = RunRecord::of(&spec("x"), &client(), minutes_ago(2), Ok(&answered), Keep::Everything);
    history.record(doomed.clone()).await.unwrap();
    history.record(record_at(minutes_ago(1), "stays")).await.unwrap();
    assert!(folder.holds("deletedoutput"));
    let flood = Flood::of(&history);
    assert!(history.delete(doomed.row.run_id).await.unwrap());
    assert!(!folder.holds("deletedoutput deletedoutput"));
    history.clear().await.unwrap();
    assert_eq!(history.list(HistoryQuery::default()).await.unwrap().runs, []);
    history.record(record_at(minutes_ago(1), "anew")).await.unwrap();
    assert_eq!(history.list(HistoryQuery::default()).await.unwrap().runs.len(), 1);
    drop(flood);
    history.close().await.unwrap();
}
