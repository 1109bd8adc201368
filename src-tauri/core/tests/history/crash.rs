//! A process that dies loses nothing that was acknowledged.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use sandtray_core::history::History;
use sandtray_core::run::RunId;
use sandtray_core::settings::HistorySettings;

use super::{Folder, minutes_ago, record_at};

/// Set only in the child: the history that it writes.
const CHILD: &str = "SANDTRAY_TEST_HISTORY";
const ACKNOWLEDGED: usize = 400;

/// The body of the child process; does nothing in an ordinary run of the tests.
#[tokio::test]
async fn child_that_records_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let history = History::open(Path::new(&path), HistorySettings::default()).await.unwrap().history;
    let mut out = std::io::stdout();
    loop {
        let record = record_at(minutes_ago(0), &"line of code\n".repeat(300));
        let id = record.row.run_id;
        history.record(record).await.unwrap();
        writeln!(out, "\nkept {id}").unwrap();
        out.flush().unwrap();
    }
}

#[tokio::test]
async fn a_killed_process_loses_no_acknowledged_run() {
    let folder = Folder::new();
    for round in 1..=3 {
        let acknowledged = record_and_kill(&folder);
        assert!(acknowledged.len() >= ACKNOWLEDGED);
        let history = folder.open().await;
        for id in &acknowledged {
            assert!(history.get(*id).await.unwrap().is_some(), "{id} is lost in round {round}");
        }
        assert!(history.stats().await.unwrap().runs as usize >= ACKNOWLEDGED * round);
        history.close().await.unwrap();
    }
}

/// The runs whose acknowledgement was read, those in flight at the kill included.
fn record_and_kill(folder: &Folder) -> Vec<RunId> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_records_until_it_is_killed", "--nocapture"])
        .env(CHILD, folder.file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if let Some(id) = line.unwrap().strip_prefix("kept ").and_then(|id| id.parse().ok()) {
            acknowledged.push(id);
        }
        if acknowledged.len() == ACKNOWLEDGED {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    acknowledged
}
