//! The bench measures long histories that SQL has made. They must be what the history itself would have made.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it by panicking")]

use std::path::Path;

use rusqlite::{Connection, types::Value};
use sandtray_core::history::{History, HistoryQuery};
use sandtray_tests::long_history::{self, Prints};

const RUNS: u32 = 1500;

/// FTS5's own segments, cut as it pleased at the time. What they say is read through `fts5vocab`.
const SEGMENTS: [&str; 2] = ["search_data", "search_idx"];

#[tokio::test]
async fn a_history_that_was_filled_equals_one_that_was_recorded() {
    equal(Prints::ALine).await;
}

#[tokio::test]
async fn so_does_one_whose_runs_print_much() {
    equal(Prints::TwoKilobytes).await;
}

async fn equal(prints: Prints) {
    let folder = tempfile::tempdir().unwrap();
    let (filled, recorded) = (folder.path().join("filled.sqlite"), folder.path().join("recorded.sqlite"));
    let start = long_history::start(RUNS);
    long_history::fill(&filled, RUNS, start, prints).await;
    let history = History::open(&recorded, long_history::settings()).await.unwrap().history;
    for number in 0..RUNS {
        history.record(long_history::record(number, start, prints)).await.unwrap();
    }
    history.close().await.unwrap();
    let (filled_tables, recorded_tables) = (tables(&filled), tables(&recorded));
    assert!(filled_tables.iter().any(|(name, rows)| name == "run" && rows.len() == RUNS as usize));
    for (filled, recorded) in filled_tables.iter().zip(&recorded_tables) {
        assert_eq!(filled.0, recorded.0);
        assert!(filled.1 == recorded.1, "table {} differs", filled.0);
    }
    assert_eq!(filled_tables.len(), recorded_tables.len());

    // And the history reads it as its own.
    let history = History::open(&filled, long_history::settings()).await.unwrap();
    assert_eq!(history.set_aside, None);
    let last = long_history::record(RUNS - 1, start, prints);
    assert_eq!(history.history.get(last.row.run_id).await.unwrap(), Some(last.clone()));
    let asked = HistoryQuery { limit: 1, text: Some(format!("{} json", last.row.client)), ..HistoryQuery::default() };
    assert_eq!(history.history.list(asked).await.unwrap().runs, [last.row]);
}

/// Every table and index with all that is in it, in an order of its own.
fn tables(file: &Path) -> Vec<(String, Vec<Vec<Value>>)> {
    let connection = Connection::open(file).unwrap();
    connection.execute_batch("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, search, instance)").unwrap();
    let mut names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
    let names: Vec<String> = names.query_map([], |found| found.get(0)).unwrap().map(Result::unwrap).collect();
    let stored = names.into_iter().filter(|name| name != "search" && !SEGMENTS.contains(&name.as_str()));
    let mut all: Vec<_> = stored.map(|name| (name.clone(), rows(&connection, &name))).collect();
    all.push(("words".into(), rows(&connection, "words")));
    let schema = rows(&connection, "(SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name)");
    all.push(("schema".into(), schema));
    all
}

fn rows(connection: &Connection, source: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {source} ORDER BY 1, 2")).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |found| (0..columns).map(|column| found.get(column)).collect()).unwrap();
    rows.map(Result::unwrap).collect()
}
