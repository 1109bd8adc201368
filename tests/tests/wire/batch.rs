use std::time::Duration;

use sandtray_core::budget::{Hold, KEPT};
use sandtray_core::ipc::door::Runs;
use sandtray_tests::scripted::{AT_ONCE, Scripted};
use serde_json::{Value, json};

use crate::client::{Session, Wire, connect};

fn runs(codes: &[&str]) -> Value {
    codes.iter().map(|code| json!({ "language": "python", "code": code })).collect()
}

async fn ask(session: &mut Session, id: i64, codes: &[&str], more: Value) {
    let mut params = json!({ "runs": runs(codes) });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    session.wire.ask(id, "code.batch", params).await;
}

/// The status of each result, or the word of its error.
fn words(reply: &Value) -> Vec<String> {
    let word = |item: &Value| {
        let word =
            if item.get("result").is_some() { &item["result"]["status"] } else { &item["error"]["data"]["code"] };
        word.as_str().unwrap().to_owned()
    };
    reply["result"]["results"].as_array().unwrap_or_else(|| panic!("{reply}")).iter().map(word).collect()
}

/// All up to the reply, and the reply.
async fn until_reply(wire: &mut Wire) -> (Vec<Value>, Value) {
    let mut notes = Vec::new();
    loop {
        let message = wire.get().await;
        if message.get("method").is_none() {
            return (notes, message);
        }
        notes.push(message);
    }
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_runs_and_one_that_fails_stops_no_other() {
    let product = Scripted::new();
    let mut session = connect(&product);
    ask(&mut session, 1, &["say a", "exit 3", "full", "panic", "timeout", "say b"], json!({})).await;
    let reply = session.wire.get().await;
    assert_eq!(reply["id"], 1);
    assert_eq!(words(&reply), ["ok", "failed", "queue_full", "internal", "timeout", "ok"]);
    let results = &reply["result"]["results"];
    assert_eq!((&results[0]["result"]["stdout"], &results[5]["result"]["stdout"]), (&json!("a"), &json!("b")));
    assert_eq!(results[1]["result"]["exit_code"], 3);
    assert_eq!(results[2]["error"]["data"]["retry_after_seconds"], 2);
    let ids: Vec<_> = (0..2).map(|index| results[index]["result"]["run_id"].as_str().unwrap().to_owned()).collect();
    assert_ne!(ids[0], ids[1], "each is a run of its own");
    assert_eq!(product.specs().len(), 6);
}

#[tokio::test]
async fn a_bad_run_refuses_the_batch_before_any_starts() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let good = json!({ "language": "python", "code": "say a" });
    for (bad, field) in [
        (json!({ "language": "python", "code": "", "files": { "../x": "" } }), "runs[3].files[\"../x\"]"),
        (json!({ "language": "python", "code": "", "limits": { "seconds": 0 } }), "runs[3].limits.seconds"),
        (json!({ "language": "perl", "code": "" }), "runs[3].language"),
        (json!({ "language": "python", "code": "", "label": "x".repeat(201) }), "runs[3].label"),
        (json!([]), "runs[3]"),
    ] {
        session.wire.ask(1, "code.batch", json!({ "runs": [good, good, good, bad] })).await;
        let error = session.wire.get().await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["field"]), (&json!(-32602), &json!(field)), "{error}");
    }
    assert_eq!(product.specs(), []);
    product.change(|s| s.enabled = false);
    session.wire.ask(2, "code.batch", json!({ "nonsense": 1 })).await;
    assert_eq!(session.wire.get().await["error"]["data"]["code"], "capability_off");
}

#[tokio::test]
async fn with_stream_each_is_told_as_it_goes_and_as_it_ends() {
    let product = Scripted::new();
    let mut session = connect(&product);
    ask(&mut session, 7, &["say a", "exit 3", "full"], json!({ "stream": true, "max_parallel": 1 })).await;
    let (notes, reply) = until_reply(&mut session.wire).await;
    let told: Vec<_> = notes
        .iter()
        .map(|note| (note["method"].as_str().unwrap(), note["params"]["index"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("code.started", 0),
            ("code.output", 0),
            ("code.result", 0),
            ("code.started", 1),
            ("code.result", 1),
            ("code.started", 2),
            ("code.result", 2),
        ]
    );
    assert!(notes.iter().all(|note| note["params"]["request_id"] == 7 && note["params"]["run_id"].is_string()));
    // The same as in the reply.
    let results = &reply["result"]["results"];
    for (note, index) in [(2, 0), (4, 1)] {
        assert_eq!(notes[note]["params"]["result"], results[index]["result"]);
        assert_eq!(notes[note]["params"]["run_id"], results[index]["result"]["run_id"]);
    }
    assert_eq!(notes[6]["params"]["error"], results[2]["error"]);
    assert_eq!(notes[6]["params"]["error"]["data"]["code"], "queue_full");
}

#[tokio::test]
async fn as_many_as_asked_for_go_on_at_once_and_never_more_than_the_owner_lets() {
    for (asked, at_once) in [(json!(2), 2), (json!(null), AT_ONCE), (json!(64), AT_ONCE)] {
        let product = Scripted::new();
        let mut session = connect(&product);
        ask(&mut session, 1, &["hold"; 7], json!({ "stream": true, "max_parallel": asked })).await;
        let mut ids = Vec::new();
        for index in 0..at_once {
            let started = session.wire.get().await["params"].clone();
            assert_eq!(started["index"], index);
            ids.push(started["run_id"].clone());
        }
        product.until_running(at_once).await;
        // One of them ends: the next begins.
        session.wire.ask(2, "code.cancel", json!({ "run_id": ids[0] })).await;
        let mut got = [session.wire.get().await, session.wire.get().await, session.wire.get().await];
        got.sort_by_key(|message| message["params"]["index"].as_i64());
        assert_eq!(got[0]["result"]["cancelled"], true);
        assert_eq!((&got[1]["method"], &got[1]["params"]["index"]), (&json!("code.result"), &json!(0)));
        assert_eq!((&got[2]["method"], &got[2]["params"]["index"]), (&json!("code.started"), &json!(at_once)));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(product.specs().len(), at_once + 1);
        product.until_running(at_once).await;
    }
}

#[tokio::test]
async fn one_cancel_ends_all_of_them() {
    let product = Scripted::new();
    let mut session = connect(&product);
    ask(&mut session, 1, &["hold", "wait", "hold", "hold", "hold"], json!({ "max_parallel": 2 })).await;
    product.until_running(2).await;
    session.wire.ask(2, "code.cancel", json!({ "request_id": 1 })).await;
    let mut got = [session.wire.get().await, session.wire.get().await];
    got.sort_by_key(|message| message["id"].as_i64());
    assert_eq!(got[1]["result"]["cancelled"], true);
    assert_eq!(words(&got[0]), ["cancelled", "cancelled", "not_started", "not_started", "not_started"]);
    assert_eq!(got[0]["result"]["results"][4]["error"]["message"], "Not started: the batch was cancelled.");
    assert_eq!((product.specs().len(), product.dropped()), (2, 0));
    session.wire.ask(3, "code.cancel", json!({ "request_id": 1 })).await;
    assert_eq!(session.wire.get().await["result"]["cancelled"], false);
}

#[tokio::test]
async fn a_cancel_right_behind_its_batch_is_not_lost() {
    for _ in 0..20 {
        let product = Scripted::new();
        let mut session = connect(&product);
        let batch =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "code.batch", "params": { "runs": runs(&["hold"; 6]) } });
        let cancel = r#"{"jsonrpc":"2.0","method":"code.cancel","params":{"request_id":1}}"#;
        session.wire.raw(&format!("{batch}\n{cancel}\n")).await;
        let reply = session.wire.get().await;
        assert!(words(&reply).iter().all(|word| matches!(word.as_str(), "cancelled" | "not_started")), "{reply}");
    }
}

#[tokio::test]
async fn a_failure_keeps_the_others_from_starting_only_where_asked_for() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let codes = ["say a", "exit 1", "say b", "say c"];
    ask(&mut session, 1, &codes, json!({ "max_parallel": 1, "stop_on_failure": true })).await;
    let reply = session.wire.get().await;
    assert_eq!(words(&reply), ["ok", "failed", "not_started", "not_started"]);
    let error = &reply["result"]["results"][2]["error"];
    assert_eq!(error["code"], -32007);
    assert_eq!(error["message"], "Not started: `runs[1]` did not end with ok, and `stop_on_failure` was asked for.");
    for (bad, word) in [("full", "queue_full"), ("panic", "internal"), ("timeout", "timeout")] {
        ask(&mut session, 1, &[bad, "say b"], json!({ "max_parallel": 1, "stop_on_failure": true })).await;
        assert_eq!(words(&session.wire.get().await), [word, "not_started"]);
    }
    ask(&mut session, 1, &codes, json!({ "max_parallel": 1 })).await;
    assert_eq!(words(&session.wire.get().await), ["ok", "failed", "ok", "ok"]);
}

#[tokio::test]
async fn what_was_started_before_a_failure_goes_on_to_its_end() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let more = json!({ "max_parallel": 2, "stop_on_failure": true, "stream": true });
    ask(&mut session, 1, &["hold", "exit 1", "say b"], more).await;
    let mut held = Value::Null;
    loop {
        let note = session.wire.get().await;
        if note["params"]["index"] == 0 {
            held = note["params"]["run_id"].clone();
        }
        if note["method"] == "code.result" {
            assert_eq!(note["params"]["index"], 1);
            break;
        }
    }
    product.until_running(1).await;
    session.wire.ask(2, "code.cancel", json!({ "run_id": held })).await;
    let reply = loop {
        let message = session.wire.get().await;
        if message["id"] == 1 {
            break message;
        }
    };
    assert_eq!(words(&reply), ["cancelled", "failed", "not_started"]);
}

#[tokio::test]
async fn a_client_that_is_gone_takes_its_batch_with_it() {
    let product = Scripted::new();
    let mut session = connect(&product);
    ask(&mut session, 1, &["hold"; 10], json!({ "max_parallel": 3 })).await;
    product.until_running(3).await;
    let Session { wire, .. } = session;
    drop(wire);
    product.until_dropped(3).await;
    product.until_running(0).await;
    assert_eq!(product.specs().len(), 3, "no more of them were started");
}

#[tokio::test]
async fn a_reply_never_outgrows_a_frame_and_with_stream_nothing_is_lost() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let codes = ["files 5000000", "say a", "files 5000000", "files 5000000", "files 5000000", "say b"];
    let kept = ["ok", "ok", "ok", "ok", "reply_too_large", "ok"];
    ask(&mut session, 1, &codes, json!({})).await;
    let reply = session.wire.get().await;
    assert_eq!(words(&reply), kept);
    assert!(reply.to_string().len() <= 16 << 20);
    let error = &reply["result"]["results"][4]["error"];
    assert!(error["data"]["hint"].as_str().unwrap().contains("`stream: true`"), "{error}");
    ask(&mut session, 2, &codes, json!({ "stream": true })).await;
    let (notes, reply) = until_reply(&mut session.wire).await;
    assert_eq!(words(&reply), kept);
    let results: Vec<_> = notes.iter().filter(|note| note["method"] == "code.result").collect();
    assert_eq!(results.len(), 6);
    let fifth = results.iter().find(|note| note["params"]["index"] == 4).unwrap();
    assert_eq!(fifth["params"]["result"]["files"]["big"].as_str().unwrap().len(), 5_000_000);
}

#[tokio::test]
async fn a_batch_counts_as_all_its_runs() {
    let product = Scripted::new();
    let mut session = connect(&product);
    ask(&mut session, 1, &["hold"; 63], json!({})).await;
    session.wire.run(1, "say a").await;
    assert_eq!(session.wire.get().await["error"]["code"], -32600, "its id is in use");
    ask(&mut session, 2, &["say a", "say b"], json!({})).await;
    let error = session.wire.get().await["error"].clone();
    assert_eq!(
        (&error["data"]["code"], &error["message"]),
        (&json!("queue_full"), &json!("63 runs of this client are waiting already."))
    );
    session.wire.run(3, "say a").await;
    assert_eq!(session.wire.get().await["result"]["stdout"], "a");
}

#[tokio::test]
async fn a_client_that_closed_only_its_own_side_gets_its_batch() {
    use tokio::io::AsyncWriteExt;
    let product = Scripted::new();
    let mut session = connect(&product);
    ask(&mut session, 1, &["say a", "say b", "say c"], json!({ "max_parallel": 1 })).await;
    session.wire.writer.shutdown().await.unwrap();
    assert_eq!(words(&session.wire.get().await), ["ok", "ok", "ok"]);
    assert_eq!(session.wire.next().await, None);
    session.ended().await;
}

#[tokio::test]
async fn a_batch_without_room_for_its_results_says_so_and_still_streams_them() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let others: Vec<Hold> = (0..2).map(|_| product.budget().account().hold()).collect();
    assert!(others.iter().all(|hold| hold.keeps(KEPT / 2)));
    let runs = json!([{ "language": "py", "code": "files 100000" }, { "language": "py", "code": "say small" }]);
    session.wire.ask(1, "code.batch", json!({ "runs": runs })).await;
    let results = session.wire.get().await["result"]["results"].clone();
    assert_eq!(results[0]["error"]["data"]["code"], "reply_too_large", "{results}");
    assert_eq!(results[1]["result"]["stdout"], "small");
    drop(others);
    session.wire.ask(2, "code.batch", json!({ "runs": runs })).await;
    let results = session.wire.get().await["result"]["results"].clone();
    assert_eq!(results[0]["result"]["files"]["big"].as_str().unwrap().len(), 100_000);
}
