//! What the door says of the switch, the engine and the history.

use std::time::Duration;

use sandtray_core::engine::{Endpoint, EngineState, EngineTrouble};
use sandtray_core::history::{Trouble, Why};
use sandtray_tests::scripted::{self, Scripted};
use serde_json::{Value, json};

use crate::client::connect;

#[tokio::test]
async fn while_it_is_off_the_capability_does_not_exist() {
    let product = Scripted::new();
    product.change(|s| s.enabled = false);
    let mut session = connect(&product);
    session.wire.ask(1, "hello", json!({})).await;
    assert_eq!(session.wire.get().await["result"]["capabilities"], json!([]));
    session.wire.ask(2, "code.run", json!({ "nonsense": 1 })).await;
    let error = session.wire.get().await["error"].clone();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32601), &json!("capability_off")));
}

#[tokio::test]
async fn a_subscriber_is_told_of_each_change_once() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.ask(1, "subscribe", json!({})).await;
    assert_eq!(session.wire.get().await["result"]["capabilities"].as_array().unwrap().len(), 1);
    product.change(|s| s.engine = EngineState::Checking);
    product.change(|s| s.enabled = false);
    let note = session.wire.get().await;
    assert_eq!((&note["method"], &note["params"]["capabilities"]), (&json!("capabilities.changed"), &json!([])));
    product.change(|s| s.enabled = true);
    assert_eq!(session.wire.get().await["params"]["capabilities"][0]["name"], "code.run");
    // A connection that did not ask is told nothing.
    let mut other = connect(&product);
    other.wire.ask(1, "hello", json!({})).await;
    other.wire.get().await;
    product.change(|s| s.enabled = false);
    other.wire.ask(2, "hello", json!({})).await;
    assert_eq!(other.wire.get().await["id"], 2);
}

#[tokio::test]
async fn status_and_history_are_told() {
    let product = Scripted::new();
    let endpoint = Endpoint { url: "unix:///x".into(), found: "x".into() };
    product.change(|s| s.engine = EngineState::Trouble(EngineTrouble::NotRunning { endpoint }));
    let mut session = connect(&product);
    session.wire.ask(1, "status", Value::Null).await;
    let status = session.wire.get().await["result"].clone();
    assert_eq!(status["capability"], json!({ "name": "code.run", "enabled": true }));
    assert_eq!((&status["engine"]["state"], &status["engine"]["trouble"]), (&json!("trouble"), &json!("not_running")));
    assert!(status["engine"]["hint"].is_string() && status["engine"]["message"].is_string());
    let mut ready = scripted::ready();
    let EngineState::Ready(info) = &mut ready else { unreachable!() };
    info.endpoint.url = "tcp://10.0.0.1:2375".into();
    for (state, warned) in [(scripted::ready(), false), (ready, true)] {
        product.change(|s| s.engine = state);
        session.wire.ask(3, "status", Value::Null).await;
        assert_eq!(session.wire.get().await["result"]["engine"]["warning"].is_string(), warned);
    }
    session.wire.ask(2, "code.history", json!({ "limit": 3, "before": "c" })).await;
    assert_eq!(session.wire.get().await["result"], json!({ "runs": [{ "limit": 3 }], "next": "c" }));
}

#[tokio::test]
async fn a_run_that_was_not_recorded_says_so_and_the_owner_reads_why() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "say hi").await;
    assert_eq!(session.wire.get().await["result"].get("recorded"), None);
    session.wire.run(2, "unrecorded").await;
    assert_eq!(session.wire.get().await["result"]["recorded"], false);
    let runs = json!([{ "language": "py", "code": "unrecorded" }, { "language": "py", "code": "exit 0" }]);
    session.wire.ask(3, "code.batch", json!({ "runs": runs })).await;
    let batch = session.wire.get().await;
    let results = &batch["result"]["results"];
    assert_eq!(
        (&results[0]["result"]["recorded"], results[1]["result"].get("recorded")),
        (&json!(false), None),
        "{batch}"
    );

    session.wire.ask(4, "status", json!({})).await;
    assert_eq!(session.wire.get().await["result"]["history"], json!({ "state": "ready" }));
    let since = std::time::UNIX_EPOCH + Duration::from_secs(1);
    product.history_in_trouble(Trouble { why: Why::DiskFull, since, unrecorded: 2, given_up: 1, records: false });
    session.wire.ask(5, "status", json!({})).await;
    assert_eq!(
        session.wire.get().await["result"]["history"],
        json!({
            "state": "trouble", "why": { "reason": "disk_full" }, "since": 1000, "unrecorded": 2, "given_up": 1, "records": false,
            "message": "Runs cannot be recorded, and 2 were not: the disk is full. Of 1 run only the figures are kept.",
            "hint": "Free some disk space. Recording then goes on by itself.",
        })
    );
}
