//! Batches: in order, so many at once, and one end for all of them.

use std::time::{Duration, Instant};

use sandtray_tests::rig::{Agent, Rig, built, eventually};
use serde_json::{Value, json};

use crate::{shell, told};

async fn ask(agent: &mut Agent, codes: &[&str], more: Value) -> u64 {
    let runs: Vec<Value> = codes.iter().map(|code| shell(code)).collect();
    let mut params = json!({ "runs": runs });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.send("code.batch", params).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_come_back_in_order_and_the_one_that_fails_is_told_apart() {
    let rig = Rig::start_with(|settings| settings.concurrency = Some(4)).await;
    let mut agent = rig.agent().await;
    // The first ones take the longest, so they end last.
    let codes: Vec<String> = (0..10)
        .map(|n| if n == 3 { "echo no >&2; exit 9".into() } else { format!("sleep 0.{}; echo {n}", 9 - n) })
        .collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    let id = ask(&mut agent, &codes, json!({ "stream": true })).await;
    let reply = agent.reply(id).await.unwrap();
    let results = reply["results"].as_array().unwrap();
    assert_eq!(results.len(), 10);
    for (n, item) in results.iter().enumerate() {
        let result = &item["result"];
        let got = (result["status"].as_str(), result["exit_code"].as_i64(), result["stdout"].as_str());
        let want = if n == 3 { (Some("failed"), Some(9), Some("")) } else { (Some("ok"), Some(0), None) };
        assert_eq!((got.0, got.1), (want.0, want.1), "{n}: {item}");
        assert_eq!(got.2, Some(want.2.map_or_else(|| format!("{n}\n"), str::to_owned).as_str()), "{n}: {item}");
    }
    let mut told: Vec<u64> = Vec::new();
    for note in agent.notifications.iter().filter(|note| note["method"] == "code.result") {
        let index = note["params"]["index"].as_u64().unwrap();
        assert_eq!(note["params"]["result"], results[index as usize]["result"]);
        told.push(index);
    }
    assert_ne!(told, (0..10).collect::<Vec<_>>(), "told as they end");
    told.sort_unstable();
    assert_eq!(told, (0..10).collect::<Vec<_>>());
    let page = agent.call("code.history", json!({ "limit": 20 })).await.unwrap();
    assert_eq!(page["runs"].as_array().unwrap().len(), 10, "each is a run of its own in the history");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_run_at_once_than_the_batch_asks_for() {
    let rig = Rig::start_with(|settings| settings.concurrency = Some(4)).await;
    let mut agent = rig.agent().await;
    agent.run(shell("true")).await;
    let supervisor = rig.service.supervisor.clone();
    let mut snapshots = supervisor.watch();
    let watching = tokio::spawn(async move {
        let mut most = (0, 0);
        while snapshots.changed().await.is_ok() {
            let snapshot = snapshots.borrow_and_update();
            most = (most.0.max(snapshot.running.len()), most.1.max(snapshot.running.len() + snapshot.queued.len()));
            if snapshot.running.iter().any(|run| run.label.as_deref() == Some("last")) {
                break;
            }
        }
        most
    });
    let id = ask(&mut agent, &["sleep 0.4"; 6], json!({ "max_parallel": 2 })).await;
    let reply = agent.reply(id).await.unwrap();
    assert!(reply["results"].as_array().unwrap().iter().all(|item| item["result"]["status"] == "ok"), "{reply}");
    agent.run(json!({ "language": "shell", "code": "sleep 0.2", "label": "last" })).await;
    assert_eq!(watching.await.unwrap(), (2, 2), "running, and handed over");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cancel_or_a_client_that_goes_away_ends_all_of_them() {
    let rig = Rig::start_with(|settings| settings.concurrency = Some(3)).await;
    let mut agent = rig.agent().await;
    agent.run(shell("true")).await;
    let id = ask(&mut agent, &["echo begun; while :; do :; done"; 5], json!({ "stream": true })).await;
    for _ in 0..3 {
        agent.notification("code.output").await;
    }
    let asked = Instant::now();
    let cancel = agent.send("code.cancel", json!({ "request_id": id })).await;
    assert_eq!(agent.reply(cancel).await.unwrap()["cancelled"], true);
    let reply = agent.reply(id).await.unwrap();
    eventually("no container of theirs is left", || async { rig.used_containers().await == 0 }).await;
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    for index in 0..3 {
        let result = &reply["results"][index]["result"];
        assert_eq!((&result["status"], &result["stdout"]), (&json!("cancelled"), &json!("begun\n")), "{reply}");
    }
    for index in 3..5 {
        assert_eq!(reply["results"][index]["error"]["data"]["code"], "not_started", "{reply}");
    }

    ask(&mut agent, &["while :; do :; done"; 5], json!({})).await;
    eventually("three run", || async { rig.service.supervisor.snapshot().running.len() == 3 }).await;
    drop(agent);
    eventually("nothing of a client that is gone is left", || async {
        let snapshot = rig.service.supervisor.snapshot();
        snapshot.running.is_empty() && snapshot.queued.is_empty() && rig.used_containers().await == 0
    })
    .await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_its_share_waiting_is_refused_and_another_is_served() {
    let rig = Rig::start_with(|settings| {
        settings.concurrency = Some(1);
        settings.per_client = 2;
    })
    .await;
    let mut flood = rig.agent().await;
    let mut calls = vec![flood.send("code.run", told("sleep 2")).await];
    flood.notification("code.started").await;
    for _ in 0..2 {
        calls.push(flood.send("code.run", shell("true")).await);
    }
    eventually("two wait", || async { rig.service.supervisor.snapshot().queued.len() == 2 }).await;
    let error = flood.call("code.run", shell("echo no")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "queue_full", "{error}");
    assert_eq!(error["message"], "2 runs of this client are waiting already.");
    assert!(error["data"]["retry_after_seconds"].as_f64().unwrap() > 0.0, "{error}");
    // All connections of one process are one client, so the other is a process of its own.
    let mut other = tokio::process::Command::new(built("sandtray"));
    other.args(["run", "-l", "shell", "-c", "echo mine", "--socket"]).arg(&rig.service.socket);
    let output = other.output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "mine\n", "{}", String::from_utf8_lossy(&output.stderr));
    for call in calls {
        assert_eq!(flood.reply(call).await.unwrap()["status"], "ok");
    }
    rig.stop().await;
}
