//! Who ran something.

use std::time::SystemTime;

use sandtray_core::history::{MAX_CLIENTS, RunRecord};

use super::{Folder, minutes_ago, record_at};

/// Asked for now, by this client.
fn run_of(name: &str, program: Option<&str>, minutes: u64) -> RunRecord {
    let mut record = record_at(minutes_ago(minutes), "x");
    (record.row.client, record.row.client_program) = (name.into(), program.map(str::to_owned));
    record
}

#[tokio::test]
async fn who_ran_something_is_counted_by_name_and_program() {
    let folder = Folder::new();
    let history = folder.open().await;
    for (name, program, minutes) in [
        ("claude", Some("node"), 9),
        ("claude", Some("node"), 5),
        ("claude", Some("python3"), 7),
        ("unnamed", None, 3),
        ("claude", Some("node"), 6),
    ] {
        history.record(run_of(name, program, minutes)).await.unwrap();
    }
    let found = history.clients().await.unwrap();
    let minutes = |time: SystemTime| SystemTime::now().duration_since(time).unwrap().as_secs() / 60;
    let told: Vec<_> = found
        .iter()
        .map(|one| (one.name.as_str(), one.program.as_deref(), one.runs, minutes(one.first), minutes(one.last)))
        .collect();
    let expected =
        [("unnamed", None, 1, 3, 3), ("claude", Some("node"), 3, 9, 5), ("claude", Some("python3"), 1, 7, 7)];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn of_very_many_names_the_latest_are_told() {
    let folder = Folder::new();
    let history = folder.open().await;
    for number in 0..MAX_CLIENTS + 3 {
        history.record(run_of(&format!("agent {number}"), Some("node"), 1000 - u64::from(number))).await.unwrap();
    }
    let found = history.clients().await.unwrap();
    assert_eq!(found.len(), MAX_CLIENTS as usize);
    assert_eq!(found[0].name, format!("agent {}", MAX_CLIENTS + 2));
    assert_eq!(found[MAX_CLIENTS as usize - 1].name, "agent 3");
}

/// A file of the version before has no index for it.
#[tokio::test]
async fn a_history_of_an_earlier_version_is_counted_too() {
    let folder = Folder::new();
    let history = folder.open().await;
    history.record(run_of("claude", Some("node"), 1)).await.unwrap();
    history.close().await.unwrap();
    folder.to_first_version();
    let found = folder.open().await.clients().await.unwrap();
    assert_eq!((found.len(), found[0].runs), (1, 1));
}
