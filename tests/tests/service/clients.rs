//! Clients: fair turns, a polite refusal when it is too much, and the end of a client is the end of its runs.

use std::time::{Duration, Instant};

use sandtray_tests::rig::{Rig, built, eventually};
use serde_json::{Value, json};

use crate::{shell, told};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_cancels_its_runs() {
    let rig = Rig::start().await;
    rig.proved().await;
    let mut agent = rig.agent().await;
    let mut other = rig.agent().await;
    agent.send("code.run", told("while :; do :; done")).await;
    agent.notification("code.started").await;
    let kept = other.send("code.run", told("sleep 1; echo kept")).await;
    other.notification("code.started").await;
    drop(agent);
    let gone = Instant::now();
    eventually("only the other's container is left", || async { rig.used_containers().await == 1 }).await;
    assert!(gone.elapsed() < Duration::from_secs(1), "{:?}", gone.elapsed());
    assert_eq!(other.reply(kept).await.unwrap()["stdout"], "kept\n");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_by_one_client_keeps_another_waiting_for_one_turn_only() {
    let rig = Rig::start_with(|settings| settings.concurrency = Some(1)).await;
    let mut flood = rig.agent().await;
    flood.run(shell("true")).await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        calls.push(flood.send("code.run", shell("sleep 0.3")).await);
    }
    eventually("the flood waits", || async { rig.service.supervisor.snapshot().queued.len() == 7 }).await;
    // All connections of one process take turns together, so the other client is a process of its own.
    let mut other = tokio::process::Command::new(built("sandtray"));
    other.args(["run", "-l", "shell", "-c", "echo mine", "--socket"]).arg(&rig.service.socket);
    assert_eq!(other.output().await.unwrap().stdout, b"mine\n");
    let waiting = rig.service.supervisor.snapshot().queued.len();
    assert!(waiting >= 5, "the single call came second, not last: {waiting} of the flood still wait");
    for call in calls {
        assert_eq!(flood.reply(call).await.unwrap()["status"], "ok");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_the_queue_holds_is_refused_at_once_with_when_to_come_again() {
    let rig = Rig::start_with(|settings| {
        settings.concurrency = Some(1);
        settings.queue = 2;
    })
    .await;
    let mut agent = rig.agent().await;
    let mut calls = vec![agent.send("code.run", told("sleep 2")).await];
    agent.notification("code.started").await;
    for _ in 0..2 {
        calls.push(agent.send("code.run", shell("echo later")).await);
    }
    eventually("two wait", || async { rig.service.supervisor.snapshot().queued.len() == 2 }).await;
    let error = agent.call("code.run", shell("echo no")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "queue_full", "{error}");
    assert!(error["data"]["retry_after_seconds"].as_f64().unwrap() > 0.0, "{error}");
    for call in calls {
        assert_eq!(agent.reply(call).await.unwrap()["status"], "ok");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_tells_figures_and_no_code() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    agent.call("hello", json!({ "name": "tester" })).await.unwrap();
    let result = agent.run(json!({ "language": "shell", "code": "echo secret; exit 3", "label": "a label" })).await;
    let page = agent.call("code.history", json!({ "limit": 10 })).await.unwrap();
    let runs = page["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    let run = &runs[0];
    assert_eq!((&run["status"], &run["exit_code"], &run["language"]), (&json!("failed"), &json!(3), &json!("shell")));
    assert_eq!(run["label"], "a label");
    assert_eq!(run["id"].as_str().or(run["run_id"].as_str()), result["run_id"].as_str(), "{run}");
    assert!(!page.to_string().contains("secret"), "{page}");
    rig.stop().await;
}

/// The reader is this very process, so what is flat must be what the service keeps for the client: it is measured by
/// how much the service lets the program write, which stops when the output is not read.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_told_how_much_it_missed() {
    let rig = Rig::start_with(|settings| settings.limits.output_kb = 512).await;
    let mut agent = rig.agent().await;
    let code = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); head -c 1000000 /dev/zero | tr '\\0' x; done";
    let call = json!({ "language": "shell", "code": code, "stream": true, "overflow": "truncate" });
    let id = agent.send("code.run", call).await;
    eventually("the run began", || async { rig.service.supervisor.snapshot().running.len() == 1 }).await;
    // Nothing is read until the run is over for the service.
    eventually("the run ended", || async {
        let snapshot = rig.service.supervisor.snapshot();
        snapshot.running.is_empty() && snapshot.queued.is_empty() && rig.used_containers().await == 0
    })
    .await;
    let result = agent.reply(id).await.unwrap();
    assert_eq!(result["output_bytes"], json!({ "stdout": 40_000_000, "stderr": 0 }), "{}", result["status"]);
    let told: u64 = agent
        .notifications
        .iter()
        .filter_map(|note| note["params"]["text"].as_str())
        .map(|text| text.len() as u64)
        .sum();
    let missed: u64 = agent.notifications.iter().filter_map(|note: &Value| note["params"]["missed"].as_u64()).sum();
    assert!(missed > 0, "it was slow, so it missed something");
    assert_eq!(told + missed, 40_000_000, "every byte was told or counted");
    rig.stop().await;
}
