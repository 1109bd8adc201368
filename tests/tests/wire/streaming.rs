//! What a caller is sent while its run waits and runs.

use sandtray_core::event::{LiveRun, Waiting};
use sandtray_tests::scripted::{Scripted, live, pulling};
use serde_json::json;

use crate::client::connect;

#[tokio::test]
async fn output_comes_before_its_reply_and_after_the_start() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.stream(1, "chunks 20 100").await;
    assert_eq!(session.wire.get().await["method"], "code.started");
    for _ in 0..20 {
        let chunk = session.wire.get().await;
        assert_eq!((&chunk["method"], &chunk["params"]["stream"]), (&json!("code.output"), &json!("stdout")));
        assert_eq!(chunk["params"]["text"].as_str().unwrap().len(), 100);
    }
    assert_eq!(session.wire.get().await["result"]["output_bytes"]["stdout"], 2000);
}

#[tokio::test]
async fn output_that_overtakes_the_start_is_told_after_it_all_the_same() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.stream(1, "early words").await;
    let (started, output, reply) = (session.wire.get().await, session.wire.get().await, session.wire.get().await);
    assert_eq!((&started["method"], &output["method"]), (&json!("code.started"), &json!("code.output")));
    assert_eq!((&output["params"]["text"], &reply["id"]), (&json!("words"), &json!(1)));
}

#[tokio::test]
async fn without_stream_a_call_is_one_line_in_and_one_line_out() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "chunks 3 10").await;
    assert_eq!(session.wire.get().await["id"], 1);
}

#[tokio::test]
async fn a_caller_that_waits_is_told_why() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.stream(1, "wait").await;
    product.until_running(1).await;
    let run = product.specs()[0].id;
    let queued = |waiting| vec![LiveRun { waiting: Some(waiting), ..live(run) }];
    let pull = |fraction| Waiting::Pull { fraction, downloaded_bytes: 1, total_bytes: 4 };
    let mut told = Vec::new();
    for waiting in
        [Waiting::Engine, pull(0.25), pull(0.5), Waiting::Check, Waiting::Turn { ahead: 2 }, Waiting::Turn { ahead: 1 }]
    {
        product.change(|s| (s.queued, s.images) = (queued(waiting), vec![pulling(0.25)]));
        let note = session.wire.get().await;
        assert_eq!((&note["method"], &note["params"]["request_id"]), (&json!("code.waiting"), &json!(1)));
        let params = &note["params"];
        told.push(json!([params["why"], params["image"], params["fraction"], params["ahead"]]));
    }
    let image = "python:3.12-slim";
    assert_eq!(
        told,
        [
            json!(["engine", null, null, null]),
            json!(["pull", image, 0.25, null]),
            json!(["pull", image, 0.5, null]),
            json!(["check", image, null, null]),
            json!(["turn", null, null, 2]),
            json!(["turn", null, null, 1]),
        ]
    );
    // With a place, and still without a container.
    product.change(|s| (s.running, s.queued) = (queued(Waiting::Starting), Vec::new()));
    assert_eq!(session.wire.get().await["params"]["why"], "starting");
}
