//! The history on a disk that is really full: a small one of its own, filled to the last byte.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it by panicking")]

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use sandtray_core::history::{History, HistoryQuery, RunRecord, Why};
use sandtray_core::run::Captured;
use sandtray_core::settings::HistorySettings;
use sandtray_tests::long_history::{self, Prints};
use sandtray_tests::rig::{PATIENCE, eventually};
use sandtray_tests::small_disk::SmallDisk;
use tempfile::TempDir;

const RUNS: u32 = 400;
/// What each of the later runs prints.
const OUTPUT: usize = 30_000;

struct Place {
    disk: SmallDisk,
    folder: TempDir,
}

impl Place {
    fn new(megabytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { disk: SmallDisk::over(&folder, megabytes), folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("history.sqlite")
    }

    fn reserve(&self) -> PathBuf {
        self.folder.path().join("history.sqlite-reserve")
    }

    async fn open(&self) -> History {
        History::open(&self.file(), HistorySettings::default()).await.unwrap().history
    }

    async fn until_reserved(&self) {
        eventually("room is set aside", || async {
            std::fs::metadata(self.reserve()).is_ok_and(|found| found.len() == 16 << 20)
        })
        .await;
    }
}

fn start() -> SystemTime {
    long_history::start(RUNS)
}

/// The run of that number, with much output.
fn record(number: u32) -> RunRecord {
    let mut record = long_history::record(number, start(), Prints::ALine);
    let text = format!("run {number} ").repeat(OUTPUT / 8);
    let captured = Captured { produced: text.len() as u64, bytes: text.into() };
    record.body.as_mut().unwrap().stdout = captured.bytes;
    record
}

async fn rows(history: &History) -> Vec<sandtray_core::history::RunRow> {
    history.list(HistoryQuery::default()).await.unwrap().runs
}

#[tokio::test]
async fn old_output_is_given_up_before_the_figures_of_new_runs() {
    let place = Place::new(48);
    let history = place.open().await;
    for number in 0..100 {
        history.record(record(number)).await.unwrap();
    }
    place.until_reserved().await;
    assert_eq!(*history.troubles().borrow(), None);
    place.disk.fill();
    // The first of these fit into the log, whose room is taken already.
    for number in 100..300 {
        history.record(record(number)).await.unwrap_or_else(|error| panic!("run {number}: {error}"));
        // Others take what becomes free.
        place.disk.fill();
    }
    let all = rows(&history).await;
    assert_eq!(all.len(), 300, "no row is lost");
    let given_up: Vec<bool> = all.iter().rev().map(|run| run.given_up).collect();
    let oldest = given_up.iter().take_while(|given_up| **given_up).count();
    assert!((1..250).contains(&oldest), "the oldest are given up and no more than is needed: {oldest}");
    let trouble = history.troubles().borrow().clone().unwrap();
    assert_eq!((&trouble.why, trouble.unrecorded, trouble.records), (&Why::DiskFull, 0, true));
    assert_eq!(trouble.given_up, given_up.iter().filter(|given_up| **given_up).count() as u64);
    for run in &all {
        let body = history.get(run.run_id).await.unwrap().unwrap().body;
        assert_eq!(body.is_none(), run.given_up);
    }
    place.disk.empty();
    eventually("the trouble is over", || async { history.troubles().borrow().is_none() }).await;
    place.until_reserved().await;
    history.record(record(350)).await.unwrap();
    let newest = rows(&history).await.remove(0);
    assert_eq!(history.get(newest.run_id).await.unwrap().unwrap().body, record(350).body);
    let unindexed = "SELECT count(*) FROM run WHERE seq NOT IN (SELECT id FROM search_docsize)";
    eventually("what had no room in the index is in it", || async {
        let connection = rusqlite::Connection::open(place.file()).unwrap();
        connection.query_row(unindexed, [], |found| found.get::<_, i64>(0)).is_ok_and(|count| count == 0)
    })
    .await;
    history.close().await.unwrap();
    // Nothing is damaged by all this.
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let check: String = connection.query_row("PRAGMA integrity_check", [], |found| found.get(0)).unwrap();
    assert_eq!(check, "ok");
    let sums = |sql: &str| connection.query_row(sql, [], |found| found.get::<_, i64>(0)).unwrap();
    assert_eq!(sums("SELECT bytes FROM total"), sums("SELECT sum(bytes) FROM run"), "and the count holds");
}

#[tokio::test]
async fn a_history_without_a_quiet_moment_notices_that_there_is_room_again() {
    let place = Place::new(48);
    let history = place.open().await;
    for number in 0..100 {
        history.record(record(number)).await.unwrap();
    }
    place.until_reserved().await;
    place.disk.fill();
    let given_up = || history.troubles().borrow().as_ref().map(|trouble| trouble.given_up);
    let mut number = 100;
    while given_up().is_none_or(|runs| runs == 0) {
        assert!(number < RUNS, "the disk is never full");
        history.record(record(number)).await.unwrap();
        place.disk.fill();
        number += 1;
    }
    place.disk.empty();
    let before = given_up();
    let begun = Instant::now();
    while let Some(now) = given_up() {
        assert_eq!(Some(now), before, "nothing is given up while there is room");
        assert!(begun.elapsed() < PATIENCE, "the trouble goes on");
        number += 1;
        history.record(long_history::record(number, start(), Prints::ALine)).await.unwrap();
    }
    history.close().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_recorded_is_counted_until_it_can_be() {
    let place = Place::new(32);
    let history = place.open().await;
    history.record(record(0)).await.unwrap();
    place.until_reserved().await;
    place.disk.fill();
    let mut unrecorded = 0;
    for number in 1..200 {
        if history.record(record(number)).await.is_err() {
            unrecorded += 1;
        }
        place.disk.fill();
        if unrecorded == 3 {
            break;
        }
    }
    let trouble = history.troubles().borrow().clone().unwrap();
    assert_eq!((trouble.unrecorded, trouble.records, &trouble.why), (3, false, &Why::DiskFull));
    assert!(trouble.to_string().starts_with("Runs cannot be recorded, and 3 were not: the disk is full."), "{trouble}");
    assert_eq!(history.ready().await.unwrap_err().why, Why::DiskFull);
    place.disk.empty();
    // A run that asks does not wait for the next look.
    history.ready().await.unwrap();
    assert_eq!(*history.troubles().borrow(), None);
    history.record(record(300)).await.unwrap();
    history.close().await.unwrap();
}

#[tokio::test]
async fn a_service_starts_on_a_full_disk_and_records_when_there_is_room() {
    let place = Place::new(32);
    let history = place.open().await;
    history.record(record(0)).await.unwrap();
    place.until_reserved().await;
    history.close().await.unwrap();
    std::fs::remove_file(place.reserve()).unwrap();
    place.disk.fill();
    let history = place.open().await;
    let trouble = history.troubles().borrow().clone().unwrap();
    assert_eq!((trouble.unrecorded, trouble.records, trouble.why), (0, false, Why::DiskFull));
    history.record(record(1)).await.unwrap_err();
    place.disk.empty();
    eventually("the trouble is over", || async { history.troubles().borrow().is_none() }).await;
    history.record(record(2)).await.unwrap();
    assert_eq!(rows(&history).await.len(), 2);
    history.close().await.unwrap();
}

#[tokio::test]
async fn the_owner_can_clear_a_history_that_filled_the_disk() {
    let place = Place::new(32);
    let history = place.open().await;
    for number in 0..40 {
        history.record(record(number)).await.unwrap();
    }
    place.until_reserved().await;
    place.disk.fill();
    history.clear().await.unwrap();
    history.record(record(60)).await.unwrap();
    assert_eq!(rows(&history).await.len(), 1);
    tokio::time::timeout(Duration::from_secs(10), history.close()).await.unwrap().unwrap();
}
