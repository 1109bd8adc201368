//! Files that cannot be used: set aside, reported, never overwritten, and work goes on.

use std::fs;
use std::io::{Seek, SeekFrom, Write};

use sandtray_core::disk::SetAside;
use sandtray_core::history::{History, HistoryError, Opened};
use sandtray_core::settings::HistorySettings;

use super::{Folder, first_page, minutes_ago, record_at, set_aside_files};

const RUNS: usize = 300;
const PAGE: u64 = 4096;

async fn open(folder: &Folder) -> Opened {
    History::open(&folder.file(), HistorySettings::default()).await.unwrap()
}

/// A history of many pages, closed.
async fn filled() -> Folder {
    let folder = Folder::new();
    let history = folder.open().await;
    for number in 0..RUNS {
        history.record(record_at(minutes_ago(number as u64), &format!("code{number} ").repeat(200))).await.unwrap();
    }
    history.close().await.unwrap();
    folder
}

async fn works(history: &History, runs: usize) {
    history.record(record_at(minutes_ago(0), "after")).await.unwrap();
    assert_eq!(first_page(history).await.runs.len(), runs);
}

#[tokio::test]
async fn what_is_no_database_of_ours_is_set_aside_whole() {
    let foreign = |sql: &'static str| {
        move |folder: &Folder| {
            let database = rusqlite::Connection::open(folder.file()).unwrap();
            database.execute_batch(sql).unwrap();
        }
    };
    let bytes = |content: &'static [u8]| move |folder: &Folder| fs::write(folder.file(), content.repeat(3000)).unwrap();
    type Make<'a> = &'a dyn Fn(&Folder);
    let cases: [(Make<'_>, &str); 5] = [
        (&bytes(b"garbage \0\xff"), "not a database"),
        (&bytes(b"SQLite format 3\0"), "damaged"),
        (&foreign("CREATE TABLE cookies (x); INSERT INTO cookies VALUES (1)"), "another program"),
        (
            &foreign("PRAGMA application_id = 0x53616e64; CREATE TABLE run (x); PRAGMA user_version = 99"),
            "newer Sandtray",
        ),
        (&foreign("PRAGMA application_id = 0x53616e64; CREATE TABLE run (x)"), "does not fit"),
    ];
    for (make, reason) in cases {
        let folder = Folder::new();
        make(&folder);
        let before = fs::read(folder.file()).unwrap();
        let Opened { history, set_aside } = open(&folder).await;
        let SetAside { kept_as, reason: said, .. } = set_aside.unwrap();
        assert!(said.contains(reason), "{said}");
        assert_eq!(fs::read(&kept_as).unwrap(), before);
        works(&history, 1).await;
        history.close().await.unwrap();
        works(&folder.open().await, 2).await;
    }
}

#[tokio::test]
async fn an_empty_file_is_a_new_history() {
    let folder = Folder::new();
    fs::write(folder.file(), "").unwrap();
    works(&folder.open().await, 1).await;
}

#[tokio::test]
async fn a_truncated_file_is_set_aside() {
    let folder = filled().await;
    let length = fs::metadata(folder.file()).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(folder.file()).unwrap();
    file.set_len(length / 2 / PAGE * PAGE + 100).unwrap();
    let Opened { history, set_aside } = open(&folder).await;
    assert!(set_aside.is_some());
    works(&history, 1).await;
    assert_eq!(set_aside_files(folder.root.path()).len(), 1);
}

#[tokio::test]
async fn damage_met_later_is_set_aside_and_the_run_that_met_it_is_kept() {
    let folder = filled().await;
    let length = fs::metadata(folder.file()).unwrap().len();
    // Every second half of a page but the first page's: opening succeeds, whatever comes then does not.
    let mut file = fs::OpenOptions::new().write(true).open(folder.file()).unwrap();
    for page in 1..length / PAGE {
        file.seek(SeekFrom::Start(page * PAGE)).unwrap();
        file.write_all(&[0xa5; PAGE as usize / 2]).unwrap();
    }
    drop(file);
    let opened = History::open(&folder.file(), HistorySettings::default()).await.unwrap();
    let history = opened.history;
    let record = record_at(minutes_ago(0), "met the damage");
    history.record(record.clone()).await.unwrap();
    assert_eq!(history.get(record.row.run_id).await.unwrap(), Some(record));
    let aside = history.set_asides().borrow().clone().unwrap();
    assert!(aside.to_string().starts_with("Sandtray could not use its history file and goes on without it"), "{aside}");
    assert_eq!(fs::metadata(&aside.kept_as).unwrap().len(), length);
    works(&history, 2).await;
}

#[tokio::test]
async fn damage_under_an_open_history_is_met_by_reading_too() {
    let folder = filled().await;
    let history = folder.open().await;
    let length = fs::metadata(folder.file()).unwrap().len();
    let mut file = fs::OpenOptions::new().write(true).open(folder.file()).unwrap();
    file.seek(SeekFrom::Start(PAGE)).unwrap();
    file.write_all(&vec![0xa5; (length - PAGE) as usize]).unwrap();
    assert_eq!(first_page(&history).await.runs, [], "read from the new file");
    works(&history, 1).await;
    assert!(history.set_asides().borrow().is_some());
}

#[tokio::test]
async fn a_history_removed_under_us_is_begun_anew() {
    let folder = filled().await;
    let history = folder.open().await;
    for name in ["history.sqlite", "history.sqlite-wal", "history.sqlite-shm"] {
        let _ = fs::remove_file(folder.root.path().join(name));
    }
    works(&history, 1).await;
    history.close().await.unwrap();
    works(&folder.open().await, 2).await;
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error_with_its_name() {
    let folder = Folder::new();
    let path = folder.root.path().join("no/such/history.sqlite");
    let error = History::open(&path, HistorySettings::default()).await.unwrap_err();
    assert!(matches!(&error, HistoryError::File { path: named, .. } if *named == path), "{error}");
}
