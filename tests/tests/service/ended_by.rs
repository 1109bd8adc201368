//! Every run says who ended it: in its reply and in the history.

use sandtray_tests::rig::{Agent, Rig, eventually};
use serde_json::{Value, json};

use crate::{shell, told};

async fn rig() -> Rig {
    let rig = Rig::start_with(|settings| settings.concurrency = Some(1)).await;
    rig.proved().await;
    rig
}

async fn latest(rig: &Rig) -> Value {
    rig.agent().await.call("code.history", json!({ "limit": 1 })).await.unwrap()["runs"][0].take()
}

async fn start(agent: &mut Agent) -> u64 {
    let call = agent.send("code.run", told("echo before; sleep 1000")).await;
    agent.notification("code.output").await;
    call
}

/// Behind another run, so that it waits.
async fn wait(rig: &Rig, agent: &mut Agent) -> u64 {
    let call = agent.send("code.run", shell("echo never")).await;
    eventually("it waits", || async { rig.service.supervisor.snapshot().queued.len() == 1 }).await;
    call
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_and_its_limits_are_told_apart() {
    let rig = rig().await;
    let mut agent = rig.agent().await;
    let mut slow = shell("sleep 60");
    slow["limits"] = json!({ "seconds": 0.3 });
    for (call, status, by) in [
        (shell("true"), "ok", "program"),
        (shell("exit 3"), "failed", "program"),
        (slow, "timeout", "limit"),
        (shell("yes"), "output_limit", "limit"),
    ] {
        let result = agent.run(call).await;
        assert_eq!((&result["status"], &result["ended_by"]), (&json!(status), &json!(by)), "{result}");
        assert_eq!(latest(&rig).await["ended_by"], by);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_says_who_cancelled_it_whether_it_ran_or_waited() {
    let rig = rig().await;
    let supervisor = &rig.service.supervisor;
    for waiting in [false, true] {
        for by in ["client", "client_left", "owner", "owner of all"] {
            let (mut first, mut agent) = (rig.agent().await, rig.agent().await);
            let call = start(if waiting { &mut first } else { &mut agent }).await;
            let call = if waiting { wait(&rig, &mut agent).await } else { call };
            let snapshot = supervisor.snapshot();
            let run = if waiting { snapshot.queued[0].run_id } else { snapshot.running[0].run_id };
            match by {
                "client" => drop(agent.call("code.cancel", json!({ "request_id": call })).await.unwrap()),
                "owner" => assert!(supervisor.stop(run).await),
                "owner of all" => assert_eq!(supervisor.stop_all().await, 1 + usize::from(waiting)),
                _ => {}
            }
            if by == "client_left" {
                drop(agent);
            } else {
                let result = agent.reply(call).await.unwrap();
                let expected = if by == "client" { "client" } else { "owner" };
                assert_eq!((&result["status"], &result["ended_by"]), (&json!("cancelled"), &json!(expected)));
            }
            eventually("it is in the history", || async { rig.service.history.row(run).await.unwrap().is_some() })
                .await;
            let row = serde_json::to_value(rig.service.history.row(run).await.unwrap()).unwrap();
            let expected = by.split(' ').next().unwrap();
            assert_eq!((&row["status"], &row["ended_by"]), (&json!("cancelled"), &json!(expected)), "waits: {waiting}");
            drop(first);
            eventually("nothing runs", || async { supervisor.snapshot().running.is_empty() }).await;
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_switch_and_a_shutdown_are_named_too() {
    let rig = rig().await;
    let mut agent = rig.agent().await;
    let call = start(&mut agent).await;
    rig.service.supervisor.set_enabled(false).await;
    assert_eq!(agent.reply(call).await.unwrap()["ended_by"], "switch");
    assert_eq!(latest(&rig).await["ended_by"], "switch");
    rig.service.supervisor.set_enabled(true).await;
    let call = start(&mut agent).await;
    let folder = rig.stop().await;
    assert_eq!(agent.reply(call).await.unwrap()["ended_by"], "shutdown");
    let rig = Rig::start_in(folder, |_| ()).await;
    assert_eq!(latest(&rig).await["ended_by"], "shutdown");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_run_keeps_the_figures_that_were_read_while_it_ran() {
    let rig = rig().await;
    let mut agent = rig.agent().await;
    let call = start(&mut agent).await;
    let run = rig.service.supervisor.snapshot().running[0].run_id;
    let meter = rig.service.supervisor.look(run).await.unwrap().meter().unwrap();
    let mut most = 0;
    for _ in 0..3 {
        most = most.max(meter.read().await.unwrap().memory_bytes);
    }
    assert!(rig.service.supervisor.stop(run).await);
    let result = agent.reply(call).await.unwrap();
    assert_eq!(result["memory_bytes"], most, "{result}");
    assert!(result["cpu_seconds"].as_f64().is_some_and(|cpu| (0.0..60.0).contains(&cpu)), "{result}");
    assert_eq!(latest(&rig).await["memory_bytes"], most);
    // Without anybody looking there is nothing to tell.
    let call = start(&mut agent).await;
    let run = rig.service.supervisor.snapshot().running[0].run_id;
    assert!(rig.service.supervisor.stop(run).await);
    assert_eq!(agent.reply(call).await.unwrap()["memory_bytes"], Value::Null);
    rig.stop().await;
}
