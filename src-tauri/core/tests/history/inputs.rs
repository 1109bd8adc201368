//! What came in with a run: kept, kept once, counted, and gone with the last run that had it.

use bytes::Bytes;
use rusqlite::Connection;
use sandtray_core::history::{Body, FileIn, History, RunRecord, Side, Stats};
use sandtray_core::name::FileName;
use sandtray_core::run::{InputFile, RunId, RunSpec};
use sandtray_core::settings::Keep;

use super::{Folder, client, minutes_ago, outcome, spec};

const LONG: usize = 100_000;

/// A run that was asked for so long ago, with these files and this input.
fn given(minutes: u64, files: &[(&str, Bytes)], stdin: Bytes) -> RunRecord {
    let file = |(name, bytes): &(&str, Bytes)| InputFile { name: FileName::parse(name).unwrap(), bytes: bytes.clone() };
    let asked = RunSpec { files: files.iter().map(file).collect(), stdin, ..spec("x") };
    RunRecord::of(&asked, &client(), minutes_ago(minutes), Ok(&outcome()), Keep::Everything)
}

/// No text, so not in the index of words.
fn long(byte: u8) -> Bytes {
    let mut bytes = vec![byte; LONG];
    bytes[0] = 0;
    bytes.into()
}

fn contents(folder: &Folder) -> i64 {
    let connection = Connection::open(folder.file()).unwrap();
    connection.query_row("SELECT count(*) FROM content", [], |found| found.get(0)).unwrap()
}

/// The counts that are kept and those that the tables hold.
fn counted(folder: &Folder) -> [(i64, i64); 2] {
    let connection = Connection::open(folder.file()).unwrap();
    let of = |sql: &str| connection.query_row(sql, [], |found| Ok((found.get(0)?, found.get(1)?))).unwrap();
    let inputs = "(SELECT coalesce(sum(size), 0) FROM input WHERE content IS NULL) + (SELECT coalesce(sum(size), 0) FROM content)";
    [
        of("SELECT bytes, inputs FROM total"),
        of(&format!("SELECT (SELECT coalesce(sum(bytes), 0) FROM run) + {inputs}, {inputs}")),
    ]
}

#[tokio::test]
async fn inputs_come_back_byte_for_byte_and_one_by_one() {
    let folder = Folder::new();
    let history = folder.open().await;
    let files =
        [("z.bin", Bytes::from_static(b"\xff\0")), ("a/long", long(1)), ("empty", Bytes::new()), ("same", long(1))];
    let record = given(1, &files, long(2));
    history.record(record.clone()).await.unwrap();
    assert_eq!(history.get(record.row.run_id).await.unwrap().as_ref(), Some(&record));
    let one = async |side| history.file(record.row.run_id, side).await.unwrap();
    assert_eq!(one(Side::In("a/long".into())).await, Some(long(1)));
    assert_eq!(one(Side::In("z.bin".into())).await.as_deref(), Some(&b"\xff\0"[..]));
    assert_eq!(one(Side::Stdin).await, Some(long(2)));
    assert_eq!(one(Side::In("stdin".into())).await, None);
    assert_eq!(one(Side::Out("a/long".into())).await, None);
    assert_eq!(history.file(RunId::generate(), Side::Stdin).await.unwrap(), None);
    let none = given(1, &[], Bytes::new());
    history.record(none.clone()).await.unwrap();
    assert_eq!(history.get(none.row.run_id).await.unwrap().unwrap().body.unwrap().stdin, Some(Bytes::new()));
}

#[tokio::test]
async fn the_same_long_input_is_kept_once_and_goes_with_its_last_run() {
    let folder = Folder::new();
    let history = folder.open().await;
    let empty = history.stats().await.unwrap();
    let runs = [3, 2, 1].map(|minute| given(minute, &[("data.csv", long(7))], Bytes::from_static(b"short")));
    for run in &runs {
        history.record(run.clone()).await.unwrap();
    }
    assert_eq!(history.stats().await.unwrap().inputs, LONG as u64 + 3 * 5, "one content, and three short ones");
    assert_eq!(contents(&folder), 1);
    for (at, run) in runs.iter().enumerate() {
        assert!(history.delete(run.row.run_id).await.unwrap());
        assert_eq!(contents(&folder), i64::from(at < 2));
        let [kept, held] = counted(&folder);
        assert_eq!(kept, held);
        for left in &runs[at + 1..] {
            assert_eq!(history.get(left.row.run_id).await.unwrap().as_ref(), Some(left));
        }
    }
    assert_eq!(history.stats().await.unwrap(), empty);
}

#[tokio::test]
async fn inputs_count_and_are_pruned_with_their_runs() {
    let folder = Folder::new();
    let settings = sandtray_core::settings::HistorySettings { max_mb: 1, ..Default::default() };
    let history = History::open(&folder.file(), settings).await.unwrap().history;
    // A content of the older half, one of the newer half, and one of their own.
    let data = |number: u8| long(if number < 10 { 100 } else { 101 });
    for number in 0..20_u8 {
        history
            .record(given(100 - u64::from(number), &[("own", long(number)), ("data", data(number))], Bytes::new()))
            .await
            .unwrap();
    }
    let fits = |stats: Stats| stats.bytes <= 1 << 20;
    super::keeping::settled(&history, fits).await;
    let [kept, held] = counted(&folder);
    assert_eq!(kept, held);
    let left = super::first_page(&history).await.runs.len();
    // Nine of their own, and the one that they share: 1,000,000 of 1,048,576 bytes.
    assert_eq!((left, contents(&folder)), (9, 10));
    history.close().await.unwrap();
}

#[tokio::test]
async fn a_history_of_the_first_version_is_read_and_written_on() {
    let folder = Folder::new();
    let history = folder.open().await;
    let record = given(5, &[("a.csv", Bytes::from_static(b"1,2"))], Bytes::from_static(b"in"));
    history.record(record.clone()).await.unwrap();
    history.close().await.unwrap();
    folder.to_first_version();
    let history = folder.open().await;
    let found = history.get(record.row.run_id).await.unwrap().unwrap();
    assert_eq!((found.row.title.as_deref(), found.row.overflow, found.row.given_up), (None, None, false));
    assert_eq!((found.row.ended_by, record.row.ended_by.as_deref()), (None, Some("program")));
    let Body { files_in, stdin, .. } = found.body.unwrap();
    assert_eq!((files_in, stdin), (vec![FileIn { name: "a.csv".into(), size: 3, bytes: None }], None));
    let next = given(1, &[("a.csv", long(3))], Bytes::new());
    history.record(next.clone()).await.unwrap();
    assert_eq!(history.get(next.row.run_id).await.unwrap(), Some(next));
    let [kept, held] = counted(&folder);
    assert_eq!(kept, held);
}
