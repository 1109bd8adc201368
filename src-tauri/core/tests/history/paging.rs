//! Pages, filters and searches.

use std::collections::HashSet;

use sandtray_core::error::RunError;
use sandtray_core::history::{Cursor, History, HistoryQuery, RunRecord};
use sandtray_core::language::Language;
use sandtray_core::run::{Client, Outcome, RunId, RunSpec, Status};
use sandtray_core::settings::Keep;

use super::{Folder, client, minutes_ago, outcome, record_at, spec};

#[tokio::test]
async fn pages_meet_every_run_once_though_times_are_equal_and_runs_arrive() {
    let folder = Folder::new();
    let history = folder.open().await;
    let mut all = Vec::new();
    // Out of order, and seven to each moment.
    for number in 0..70_u64 {
        let record = record_at(minutes_ago(10 + number * 7 % 10), "x");
        all.push(record.row.clone());
        history.record(record).await.unwrap();
    }
    let (mut seen, mut query) = (Vec::new(), HistoryQuery { limit: 4, ..HistoryQuery::default() });
    loop {
        let page = history.list(query.clone()).await.unwrap();
        assert!(page.runs.len() <= 4);
        seen.extend(page.runs);
        let Some(next) = page.next else { break };
        // A cursor crosses the wire as text.
        query.before = Some(next.to_string().parse().unwrap());
        history.record(record_at(minutes_ago(0), "new")).await.unwrap();
    }
    assert_eq!(seen.len(), 70);
    assert!(seen.is_sorted_by(|one, next| one.queued_at >= next.queued_at), "newest first");
    let ids: HashSet<RunId> = seen.iter().map(|row| row.run_id).collect();
    assert_eq!(ids, all.iter().map(|row| row.run_id).collect());
}

#[tokio::test]
async fn a_page_that_ends_exactly_at_the_end_has_no_next() {
    let folder = Folder::new();
    let history = folder.open().await;
    for _ in 0..4 {
        history.record(record_at(minutes_ago(1), "x")).await.unwrap();
    }
    for (limit, next) in [(3, true), (4, false), (5, false), (0, false), (usize::MAX, false)] {
        let page = history.list(HistoryQuery { limit, ..HistoryQuery::default() }).await.unwrap();
        assert_eq!(page.next.is_some(), next, "{limit}");
    }
}

#[test]
fn what_is_no_cursor_is_refused() {
    for text in ["", "-1", "xyz", "ffffffffffffffffff", "8000000000000000"] {
        assert!(text.parse::<Cursor>().is_err(), "{text}");
    }
}

async fn filled(history: &History) {
    let runs: [(Language, Status, &str, &str, Option<&str>); 5] = [
        (Language::Python, Status::Ok, "claude", "import pandas\npd.read_csv('Umsätze.csv')", None),
        (Language::Python, Status::Failed, "claude", "import numpy", Some("Quarterly report")),
        (Language::Go, Status::Ok, "codex", "package main", None),
        (Language::Go, Status::Timeout, "claude", "for {}", Some("50% \"quoted\" AND * (")),
        (Language::Shell, Status::Ok, "codex", "cat x | grep \0 pandas", None),
    ];
    for (minute, (language, status, name, code, label)) in (0_u64..).zip(runs) {
        let asked = RunSpec { language, label: label.map(str::to_owned), ..spec(code) };
        let who = Client { name: name.into(), ..client() };
        let answered = Outcome { status, ..outcome() };
        let record = RunRecord::of(&asked, &who, minutes_ago(minute), Ok(&answered), Keep::Everything);
        history.record(record).await.unwrap();
    }
    let refused = RunRecord::of(&spec("x"), &client(), minutes_ago(9), Err(&RunError::ShuttingDown), Keep::Everything);
    history.record(refused).await.unwrap();
}

/// The languages and statuses of what is found, in the list's order.
async fn found(history: &History, change: impl FnOnce(&mut HistoryQuery)) -> Vec<String> {
    let mut query = HistoryQuery::default();
    change(&mut query);
    let page = history.list(query).await.unwrap();
    page.runs.into_iter().map(|run| format!("{} {}", run.language, run.status)).collect()
}

#[tokio::test]
async fn every_filter_narrows_the_list_and_they_narrow_it_together() {
    let folder = Folder::new();
    let history = folder.open().await;
    filled(&history).await;
    let word = |text: &str| Some(text.to_owned());
    assert_eq!(found(&history, |q| q.language = word("go")).await, ["go ok", "go timeout"]);
    assert_eq!(found(&history, |q| q.status = word("ok")).await, ["python ok", "go ok", "shell ok"]);
    assert_eq!(found(&history, |q| q.status = word("shutting_down")).await, ["python shutting_down"]);
    assert_eq!(found(&history, |q| q.client = word("codex")).await, ["go ok", "shell ok"]);
    assert_eq!(found(&history, |q| q.client = word("code")).await, [""; 0]);
    let both = |q: &mut HistoryQuery| (q.language, q.status) = (word("go"), word("ok"));
    assert_eq!(found(&history, both).await, ["go ok"]);
    let three = |q: &mut HistoryQuery| (q.language, q.status, q.client) = (word("go"), word("timeout"), word("claude"));
    assert_eq!(found(&history, three).await, ["go timeout"]);
    let searched = |q: &mut HistoryQuery| (q.language, q.text) = (word("shell"), word("pandas"));
    assert_eq!(found(&history, searched).await, ["shell ok"]);
}

#[tokio::test]
async fn a_search_finds_words_of_label_client_and_code_by_how_they_start() {
    let folder = Folder::new();
    let history = folder.open().await;
    filled(&history).await;
    for (text, runs) in [
        ("pandas", &["python ok", "shell ok"][..]),
        ("PAND", &["python ok", "shell ok"]),
        ("read_csv", &["python ok"]),
        ("csv pandas", &["python ok"]),
        ("umsatze", &["python ok"]),
        ("quarter", &["python failed"]),
        ("codex", &["go ok", "shell ok"]),
        ("50%", &["go timeout"]),
        ("\"quoted\"", &["go timeout"]),
        ("AND", &["go timeout"]),
        ("absent", &[]),
        ("pandas absent", &[]),
        ("==", &[]),
        ("\0", &["python ok", "python failed", "go ok", "go timeout", "shell ok", "python shutting_down"]),
        (" ", &["python ok", "python failed", "go ok", "go timeout", "shell ok", "python shutting_down"]),
        ("words:pandas", &[]),
        ("NEAR(", &[]),
        ("'; DROP TABLE run; --", &[]),
        ("\u{fffd}\u{301}", &[]),
    ] {
        assert_eq!(found(&history, |query| query.text = Some(text.into())).await, runs, "{text:?}");
    }
    let long = "ä".repeat(100_000);
    assert_eq!(found(&history, |query| query.text = Some(long)).await, [""; 0]);
}

#[tokio::test]
async fn a_search_has_pages_too() {
    let folder = Folder::new();
    let history = folder.open().await;
    for number in 0..25 {
        history.record(record_at(minutes_ago(number % 3), "needle")).await.unwrap();
        history.record(record_at(minutes_ago(number % 3), "hay")).await.unwrap();
    }
    let mut query = HistoryQuery { limit: 10, text: Some("needle".into()), ..HistoryQuery::default() };
    let mut sizes = Vec::new();
    loop {
        let page = history.list(query.clone()).await.unwrap();
        sizes.push(page.runs.len());
        let Some(next) = page.next else { break };
        query.before = Some(next);
    }
    assert_eq!(sizes, [10, 10, 5]);
}

#[tokio::test]
async fn a_name_is_known_together_with_its_program() {
    let folder = Folder::new();
    let history = folder.open().await;
    history.record(record_at(minutes_ago(1), "x")).await.unwrap();
    let found = async |name: &str, program: Option<&str>| {
        let (client, program) = (Some(name.to_owned()), program.map(str::to_owned));
        history.list(HistoryQuery { client, program, ..HistoryQuery::default() }).await.unwrap().runs.len()
    };
    let until = async |minutes: u64| {
        let before = Some(Cursor::before(minutes_ago(minutes)));
        history.list(HistoryQuery { before, ..HistoryQuery::default() }).await.unwrap().runs.len()
    };
    assert_eq!((until(2).await, until(0).await), (0, 1), "by when it was asked for");
    assert_eq!(found("claude", None).await, 1);
    assert_eq!(found("claude", Some("/usr/bin/claude")).await, 1);
    assert_eq!(found("claude", Some("/tmp/claude")).await, 0);
    assert_eq!(found("other", Some("/usr/bin/claude")).await, 0);
    assert_eq!(found("claude", Some("")).await, 0, "its program is known");
    let unknown = Client { program: None, ..client() };
    let record = RunRecord::of(&spec("y"), &unknown, minutes_ago(1), Ok(&outcome()), Keep::Everything);
    history.record(record).await.unwrap();
    assert_eq!((found("claude", Some("")).await, found("claude", None).await), (1, 2));
}
