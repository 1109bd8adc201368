//! Finding a run again: by words of its output and inputs, by its day, by its name.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
use sandtray_core::history::{Cursor, History, HistoryQuery, RunRecord};
use sandtray_core::name::FileName;
use sandtray_core::run::{Captured, InputFile, Outcome, RunSpec};
use sandtray_core::settings::{HistorySettings, Keep};

use super::{Folder, client, first_page, minutes_ago, outcome, record_at, spec};

async fn found(history: &History, text: &str) -> usize {
    let query = HistoryQuery { text: Some(text.into()), ..HistoryQuery::default() };
    history.list(query).await.unwrap().runs.len()
}

fn captured(bytes: Vec<u8>) -> Captured {
    Captured { produced: bytes.len() as u64, bytes: bytes.into() }
}

/// So many bytes of another word, then the word.
fn behind(bytes: usize, word: &str) -> Vec<u8> {
    let mut text = "filler ".repeat(bytes / 7 + 1).into_bytes();
    text.truncate(bytes - 1);
    text.push(b' ');
    text.extend(word.as_bytes());
    text
}

#[tokio::test]
async fn a_search_looks_in_the_first_64_kb_of_output_and_inputs() {
    let folder = Folder::new();
    let history = folder.open().await;
    let file = |name: &str, bytes: Vec<u8>| InputFile { name: FileName::parse(name).unwrap(), bytes: bytes.into() };
    let asked = RunSpec {
        stdin: Bytes::from_static(b"stdinword\n"),
        files: vec![
            file("picture", b"\x89PNG\0binaryword ".to_vec()),
            file("a.csv", b"month,csvword\n".to_vec()),
            file("long.txt", behind(70 << 10, "lateinputword")),
        ],
        ..spec("codeword()")
    };
    let answered = Outcome {
        stdout: captured(behind(60 << 10, "stdoutword")),
        stderr: captured(b"Traceback\nKeyError: 'stderrword'\xff".to_vec()),
        ..outcome()
    };
    let late = Outcome { stdout: captured(behind(64 << 10, "latestdoutword")), ..outcome() };
    history.record(RunRecord::of(&asked, &client(), minutes_ago(1), Ok(&answered), Keep::Everything)).await.unwrap();
    history.record(RunRecord::of(&spec("x"), &client(), minutes_ago(1), Ok(&late), Keep::Everything)).await.unwrap();
    for word in ["codeword", "stdinword", "csvword", "stdoutword", "KeyError", "stderrword"] {
        assert_eq!(found(&history, word).await, 1, "{word}");
    }
    for word in ["binaryword", "lateinputword", "latestdoutword"] {
        assert_eq!(found(&history, word).await, 0, "{word}");
    }
    assert_eq!(found(&history, "filler").await, 2);
}

#[tokio::test]
async fn a_run_that_was_recorded_last_before_a_crash_can_be_searched_for_too() {
    let folder = Folder::new();
    let history = folder.open().await;
    for word in ["first", "second"] {
        let answered = Outcome { stdout: captured(format!("{word}output").into_bytes()), ..outcome() };
        history
            .record(RunRecord::of(&spec("x"), &client(), minutes_ago(1), Ok(&answered), Keep::Everything))
            .await
            .unwrap();
    }
    history.close().await.unwrap();
    let connection = Connection::open(folder.file()).unwrap();
    connection.execute("DELETE FROM search WHERE rowid = (SELECT max(seq) FROM run)", []).unwrap();
    drop(connection);
    let history = folder.open().await;
    assert_eq!((found(&history, "firstoutput").await, found(&history, "secondoutput").await), (1, 1));
}

#[tokio::test]
async fn a_day_is_a_filter_like_any_other() {
    let folder = Folder::new();
    let history = folder.open().await;
    for minutes in [1, 10, 20, 30, 40] {
        history.record(record_at(minutes_ago(minutes), "needle")).await.unwrap();
    }
    let place = |minutes: u64| Some(Cursor::before(minutes_ago(minutes)));
    let count = async |from: Option<u64>, until: Option<u64>, text: Option<&str>| {
        let (from, until) = (from.and_then(place), until.and_then(place));
        let text = text.map(str::to_owned);
        let query = HistoryQuery { from, until, text, limit: 2, ..HistoryQuery::default() };
        let first = history.list(query.clone()).await.unwrap();
        let rest = history.list(HistoryQuery { before: first.next, limit: 100, ..query }).await.unwrap();
        first.runs.len() + if first.next.is_some() { rest.runs.len() } else { 0 }
    };
    for text in [None, Some("need")] {
        assert_eq!(count(Some(31), None, text).await, 4);
        assert_eq!(count(None, Some(15), text).await, 3);
        assert_eq!(count(Some(35), Some(5), text).await, 3);
        assert_eq!(count(Some(5), Some(35), text).await, 0);
    }
    // A run of that very moment is of the day that begins with it.
    assert_eq!(count(Some(10), Some(1), None).await, 1);
}

#[tokio::test]
async fn a_run_without_a_label_is_named_by_its_program_and_with_figures_alone_by_nothing() {
    let folder = Folder::new();
    let history = folder.open().await;
    history.record(record_at(minutes_ago(2), "import csv\n# Sum the sales\nprint(1)")).await.unwrap();
    let labelled = RunSpec { label: Some("a label".into()), ..spec("# a comment") };
    let labelled = RunRecord::of(&labelled, &client(), minutes_ago(1), Ok(&outcome()), Keep::Everything);
    history.record(labelled).await.unwrap();
    let names = async |history: &History| {
        let page = first_page(history).await;
        page.runs.into_iter().map(|run| (run.label, run.title)).collect::<Vec<_>>()
    };
    let named = vec![(Some("a label".to_owned()), None), (None, Some("Sum the sales".to_owned()))];
    assert_eq!(names(&history).await, named);
    history.configure(HistorySettings { keep: Keep::Metrics, ..HistorySettings::default() }).await.unwrap();
    history.record(record_at(minutes_ago(0), "# secretcomment")).await.unwrap();
    assert_eq!(names(&history).await[0], (None, None));
    assert!(!folder.holds("secretcomment"));
    // Nor does it cross to an agent.
    let json = serde_json::to_string(&record_at(minutes_ago(0), "# secretcomment").row).unwrap();
    assert!(!json.contains("secretcomment"), "{json}");
}

#[tokio::test]
async fn one_record_is_read_from_the_file_without_the_service() {
    let folder = Folder::new();
    let history = folder.open().await;
    let record = record_at(minutes_ago(1), "x");
    history.record(record.clone()).await.unwrap();
    let read = || sandtray_core::history::read_record(&folder.file(), record.row.run_id).unwrap();
    assert_eq!(read().as_ref(), Some(&record), "while it is written by another");
    tokio::time::timeout(Duration::from_secs(10), history.close()).await.unwrap().unwrap();
    assert_eq!(read(), Some(record));
}
