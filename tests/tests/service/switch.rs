//! The switch: while it is off there is nothing for an agent, and turning it off leaves nothing running.

use sandtray_tests::rig::{Rig, eventually};
use serde_json::json;

use crate::{shell, told};

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_off_the_capability_does_not_exist() {
    let rig = Rig::start_with(|settings| settings.enabled = false).await;
    let mut agent = rig.agent().await;
    let hello = agent.call("hello", json!({ "name": "test" })).await.unwrap();
    assert_eq!(hello["capabilities"], json!([]));
    let error = agent.call("code.run", shell("echo hi")).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32601), &json!("capability_off")));
    agent.call("subscribe", json!({})).await.unwrap();

    rig.service.supervisor.set_enabled(true).await;
    let changed = agent.notification("capabilities.changed").await;
    let capability = &changed["capabilities"][0];
    assert_eq!((&capability["name"], &capability["kind"]), (&json!("code.run"), &json!("read")));
    assert_eq!(agent.run(shell("echo hi")).await["stdout"], "hi\n");
    let hello = agent.call("hello", json!({ "name": "test" })).await.unwrap();
    assert_eq!(hello["capabilities"], changed["capabilities"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn off_kills_what_runs_refuses_what_waits_and_leaves_no_container() {
    let rig = Rig::start_with(|settings| settings.concurrency = Some(2)).await;
    let mut agent = rig.agent().await;
    let mut running = Vec::new();
    for _ in 0..2 {
        running.push(agent.send("code.run", told("echo before; trap '' TERM INT; while :; do sleep 1; done")).await);
        agent.notification("code.started").await;
    }
    let waiting = agent.send("code.run", shell("echo never")).await;
    eventually("it waits", || async { rig.service.supervisor.snapshot().queued.len() == 1 }).await;
    eventually("two are used", || async { rig.used_containers().await == 2 }).await;

    rig.service.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    for id in running {
        let result = agent.reply(id).await.unwrap();
        assert_eq!((&result["status"], &result["stdout"]), (&json!("cancelled"), &json!("before\n")));
    }
    assert_eq!(agent.reply(waiting).await.unwrap_err()["data"]["code"], "capability_off");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_the_service_answers_its_callers_and_leaves_no_container() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let id = agent.send("code.run", told("echo before; sleep 1000")).await;
    agent.notification("code.started").await;
    let engine = rig.service.health.watch().borrow().engine.clone().unwrap();
    let home = rig.home();
    rig.stop().await;
    assert_eq!(agent.reply(id).await.unwrap()["status"], "cancelled");
    let left = engine.containers().await.unwrap();
    assert_eq!(left.iter().filter(|container| container.instance.starts_with(&home)).count(), 0);
}
