use std::time::{Duration, Instant};

use sandtray_core::budget::{COMING, COMING_OF_ONE, Hold};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::client::{connect, connect_reluctant};
use sandtray_core::ipc::door::Runs;
use sandtray_tests::rig::eventually;
use sandtray_tests::scripted::{PATIENCE, Scripted};

#[tokio::test]
async fn a_call_is_answered_in_the_form_of_the_contract() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.ask(1, "hello", json!({ "name": "agent" })).await;
    let hello = session.wire.get().await;
    assert_eq!(hello["result"]["capabilities"][0]["name"], "code.run");
    assert_eq!(hello["result"]["protocol"], 1);
    session.wire.run(2, "say hi").await;
    let reply = session.wire.get().await;
    assert_eq!(
        (&reply["id"], &reply["result"]["stdout"], &reply["result"]["status"]),
        (&json!(2), &json!("hi"), &json!("ok"))
    );
    let client = product.clients().remove(0);
    assert_eq!((client.name.as_str(), client.pid, client.program.as_deref()), ("agent", Some(7), Some("tester")));
}

#[tokio::test]
async fn a_run_that_was_cut_off_is_an_error_with_its_output_alone_and_in_a_batch() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "cut so far").await;
    let alone = session.wire.get().await["error"].take();
    let run = json!({ "language": "py", "code": "cut so far" });
    session.wire.ask(2, "code.batch", json!({ "runs": [run, { "language": "py", "code": "say hi" }] })).await;
    let reply = session.wire.get().await;
    assert_eq!(reply["result"]["results"][1]["result"]["ended_by"], "program");
    for error in [&alone, &reply["result"]["results"][0]["error"]] {
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32009), &json!("run_interrupted")), "{error}");
        assert_eq!(error["message"], "Cut off after 3.7 s: Docker went away.");
        let data = &error["data"];
        assert_eq!((&data["cause"], &data["seconds"]), (&json!("engine"), &json!(3.7)));
        assert_eq!((&data["stdout"], &data["stderr"]), (&json!("so far"), &json!("\u{fffd}")));
        assert_eq!((data.get("stdout_base64"), &data["stderr_base64"]), (None, &json!("/w==")));
        assert_eq!(data["run_id"].as_str().map(str::len), Some(32));
    }
}

#[tokio::test]
async fn a_client_without_a_name_has_that_of_its_program() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "say hi").await;
    session.wire.get().await;
    assert_eq!(product.clients()[0].name, "tester");
}

#[tokio::test]
async fn runs_go_on_beside_each_other_and_are_answered_as_they_end() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "hold").await;
    session.wire.run(2, "hold").await;
    session.wire.run(3, "say quick").await;
    assert_eq!(session.wire.get().await["id"], 3);
    session.wire.ask(4, "code.cancel", json!({ "request_id": 2 })).await;
    let mut got = [session.wire.get().await, session.wire.get().await];
    got.sort_by_key(|message| message["id"].as_i64());
    assert_eq!((&got[0]["id"], &got[0]["result"]["status"]), (&json!(2), &json!("cancelled")));
    assert_eq!(got[1]["result"]["cancelled"], true);
    product.until_running(1).await;
}

#[tokio::test]
async fn a_run_is_cancelled_by_its_id_and_only_by_its_own_client() {
    let product = Scripted::new();
    let (mut one, mut other) = (connect(&product), connect(&product));
    one.wire.stream(1, "hold").await;
    let started = one.wire.get().await;
    assert_eq!((&started["method"], &started["params"]["request_id"]), (&json!("code.started"), &json!(1)));
    let run = started["params"]["run_id"].clone();
    other.wire.ask(1, "code.cancel", json!({ "run_id": run })).await;
    assert_eq!(other.wire.get().await["result"]["cancelled"], false);
    one.wire.ask(2, "code.cancel", json!({ "run_id": run })).await;
    let got = [one.wire.get().await, one.wire.get().await];
    assert!(got.iter().any(|message| message["result"]["run_id"] == run && message["result"]["status"] == "cancelled"));
}

#[tokio::test]
async fn a_cancel_right_behind_its_run_is_not_lost() {
    for _ in 0..50 {
        let product = Scripted::new();
        let mut session = connect(&product);
        let run = r#"{"jsonrpc":"2.0","id":1,"method":"code.run","params":{"language":"py","code":"hold"}}"#;
        let cancel = r#"{"jsonrpc":"2.0","method":"code.cancel","params":{"request_id":1}}"#;
        session.wire.raw(&format!("{run}\n{cancel}\n")).await;
        assert_eq!(session.wire.get().await["result"]["status"], "cancelled");
    }
}

#[tokio::test]
async fn a_cancel_is_not_lost_on_a_run_that_the_product_hears_of_late() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "late").await;
    session.wire.ask(2, "code.cancel", json!({ "request_id": 1 })).await;
    assert_eq!(session.wire.get().await["result"]["cancelled"], true);
    assert_eq!(session.wire.get().await["result"]["status"], "cancelled");
    let run = json!({ "language": "py", "code": "late" });
    session.wire.ask(3, "code.batch", json!({ "runs": [run] })).await;
    product.until_running(1).await;
    session.wire.ask(4, "code.cancel", json!({ "request_id": 3 })).await;
    assert_eq!(session.wire.get().await["result"]["cancelled"], true);
    assert_eq!(session.wire.get().await["result"]["results"][0]["result"]["status"], "cancelled");
}

#[tokio::test]
async fn whatever_is_sent_is_answered_and_survived() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let nest = "[".repeat(100_000);
    for (line, code, word) in [
        ("{", -32700, "parse_error"),
        ("[]", -32600, "invalid_request"),
        (&nest, -32700, "parse_error"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"code.walk"}"#, -32601, "method_not_found"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"code.batch"}"#, -32602, "invalid_params"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"code.run","params":[]}"#, -32602, "invalid_params"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"code.run","params":{"language":"py","code":"\ud800"}}"#,
            -32602,
            "invalid_params",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"code.run","params":{"language":"py","code":"full"}}"#,
            -32003,
            "queue_full",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"code.run","params":{"language":"py","code":"panic"}}"#,
            -32603,
            "internal",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"code.cancel","params":{}}"#, -32602, "invalid_params"),
    ] {
        session.wire.raw(&format!("{line}\r\n\n")).await;
        let error = session.wire.get().await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(code), &json!(word)), "{line}");
    }
    session.wire.writer.write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(session.wire.get().await["error"]["code"], -32700);
    // Notifications are not answered, whatever they say.
    session.wire.raw("{\"jsonrpc\":\"2.0\",\"method\":\"nothing\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"code.cancel\",\"params\":5}\n").await;
    session.wire.run(2, "say hi").await;
    assert_eq!(session.wire.get().await["id"], 2);
}

#[tokio::test]
async fn a_frame_of_the_greatest_size_passes_and_a_longer_one_is_skipped() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let flood = "x".repeat(17 << 20);
    let line =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "code.run", "params": { "language": "py", "code": flood } });
    session.wire.raw(&format!("{line}\n")).await;
    let error = session.wire.get().await["error"].clone();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32006), &json!("message_too_long")));
    session.wire.run(2, "say hi").await;
    assert_eq!(session.wire.get().await["id"], 2);
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_so_is_a_run_too_many() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "hold").await;
    session.wire.run(1, "hold").await;
    assert_eq!(session.wire.get().await["error"]["code"], -32600);
    for id in 2..=64 {
        session.wire.run(id, "hold").await;
    }
    session.wire.run(65, "hold").await;
    let refused = session.wire.get().await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(65), &json!("queue_full")));
    // What frees places still gets through.
    session.wire.ask(66, "code.cancel", json!({ "request_id": 1 })).await;
    let got = [session.wire.get().await["id"].clone(), session.wire.get().await["id"].clone()];
    assert!(got.contains(&json!(66)) && got.contains(&json!(1)));
}

/// The session learns that a reply is written only after the client can have read it.
#[tokio::test]
async fn an_id_and_its_place_are_free_once_the_reply_is_read() {
    for (first, params) in [
        ("code.run", json!({ "language": "py", "code": "say hi" })),
        ("code.batch", json!({ "runs": [{ "language": "py", "code": "say hi" }] })),
    ] {
        let product = Scripted::new();
        let (mut session, flushes) = connect_reluctant(&product);
        for id in 2..=64 {
            session.wire.run(id, "hold").await;
        }
        session.wire.ask(1, first, params).await;
        assert_eq!(session.wire.get().await["id"], 1);
        // As far as the session knows the reply is still on its way.
        session.wire.run(1, "hold").await;
        product.until_running(64).await;
        // And a cancel by that id means the run that goes on.
        session.wire.raw("{\"jsonrpc\":\"2.0\",\"method\":\"code.cancel\",\"params\":{\"request_id\":1}}\n").await;
        product.until_running(63).await;
        flushes.send_replace(true);
        let reply = session.wire.get().await;
        assert_eq!((&reply["id"], &reply["result"]["status"]), (&json!(1), &json!("cancelled")));
    }
}

#[tokio::test]
async fn a_client_that_is_gone_takes_its_runs_with_it() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "hold").await;
    session.wire.stream(2, "hold").await;
    session.wire.run(3, "wait").await;
    product.until_running(3).await;
    let other = connect(&product);
    let crate::client::Session { wire, .. } = session;
    drop(wire);
    product.until_dropped(3).await;
    drop(other);
}

#[tokio::test]
async fn a_client_that_closed_only_its_own_side_gets_its_replies() {
    let product = Scripted::new();
    let mut session = connect(&product);
    // The last line has no newline, as `printf` leaves it.
    session.wire.stream(1, "hold").await;
    let run = r#"{"jsonrpc":"2.0","id":2,"method":"code.run","params":{"language":"py","code":"say hi"}}"#;
    session.wire.raw(run).await;
    session.wire.writer.shutdown().await.unwrap();
    let mut got = [session.wire.get().await, session.wire.get().await];
    got.sort_by_key(|message| message["id"].as_i64());
    assert_eq!((&got[0]["method"], &got[1]["id"]), (&json!("code.started"), &json!(2)));
    // Long after: still served, not cancelled.
    assert!(timeout(Duration::from_millis(600), session.wire.next()).await.is_err());
    assert_eq!(product.dropped(), 0);
    session.stop.cancel();
    product.change(|s| s.enabled = false);
}

#[tokio::test]
async fn a_client_that_closed_its_own_side_and_then_everything_is_gone() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "hold").await;
    session.wire.writer.shutdown().await.unwrap();
    product.until_running(1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(product.dropped(), 0);
    let crate::client::Session { wire, .. } = session;
    drop(wire);
    product.until_dropped(1).await;
}

#[tokio::test]
async fn the_session_ends_once_a_half_closed_client_has_its_replies() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "say hi").await;
    session.wire.writer.shutdown().await.unwrap();
    assert_eq!(session.wire.get().await["id"], 1);
    assert_eq!(session.wire.next().await, None);
    session.ended().await;
}

#[tokio::test]
async fn a_client_that_never_reads_costs_bounded_memory_and_its_output_is_counted() {
    let product = Scripted::new();
    let mut session = connect(&product);
    // 400 MB of output that is not read.
    session.wire.stream(1, "chunks 4000 100000").await;
    let started = Instant::now();
    while product.chunks_dropped() < 3000 && started.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(product.chunks_dropped() >= 3000, "{} dropped", product.chunks_dropped());
    // It then reads after all: everything adds up, and the reply is the last.
    let mut told = 0;
    loop {
        let message = session.wire.get().await;
        if message["id"] == 1 {
            assert_eq!(message["result"]["output_bytes"]["stdout"], 400_000_000);
            break;
        }
        told += message["params"]["text"].as_str().map_or(0, str::len);
        assert!(message["params"]["missed"].as_u64().is_none_or(|missed| missed > 0));
    }
    assert!(told < 100 * 100_000, "{told} bytes were kept");
}

#[tokio::test]
async fn requests_nobody_reads_the_answers_of_are_not_read_on() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n".repeat(1000);
    let mut sent = 0;
    let flood = async {
        loop {
            session.wire.raw(&hello).await;
            sent += hello.len();
        }
    };
    assert!(timeout(Duration::from_millis(1500), flood).await.is_err());
    assert!(sent < 8 << 20, "{sent} bytes of requests were taken without an answer being read");
}

#[tokio::test]
async fn a_stop_lets_runs_be_answered_first() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.stream(1, "hold").await;
    let run = session.wire.get().await["params"]["run_id"].as_str().unwrap().parse().unwrap();
    session.stop.cancel();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(product.cancel(product.clients()[0].id, run).await);
    assert_eq!(session.wire.get().await["result"]["status"], "cancelled");
    assert_eq!(session.wire.next().await, None);
    session.ended().await;
}

#[tokio::test]
async fn a_large_reply_arrives_whole() {
    let product = Scripted::new();
    let mut session = connect(&product);
    session.wire.run(1, "files 5000000").await;
    assert_eq!(session.wire.get().await["result"]["files"]["big"].as_str().unwrap().len(), 5_000_000);
}

#[tokio::test]
async fn replies_count_until_they_are_read() {
    let product = Scripted::new();
    let mut session = connect(&product);
    for id in 1..=4 {
        session.wire.run(id, "files 5000000").await;
    }
    let account = session.account.clone();
    eventually("20 MB wait to be read", || async { !account.hold().may_begin() }).await;
    for _ in 1..=4 {
        assert_eq!(session.wire.get().await["result"]["status"], "ok");
    }
    eventually("nothing does", || async { account.hold().may_begin() }).await;
}

#[tokio::test]
async fn a_long_call_without_room_is_refused_by_its_id_and_the_next_goes_on() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let others: Vec<Hold> = (0..2).map(|_| product.budget().account().hold()).collect();
    assert!(others.iter().all(|hold| hold.coming(COMING / 2)));
    let long = "x".repeat(1 << 20);
    session
        .wire
        .raw(&format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"code.run\",\"params\":\"{long}\"}}\n"))
        .await;
    let refused = session.wire.get().await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["code"]), (&json!(7), &json!("queue_full")), "{refused}");
    // A short message needs no room.
    session.wire.run(8, "say hi").await;
    assert_eq!(session.wire.get().await["result"]["stdout"], "hi");
    drop(others);
    let files = json!({ "language": "py", "code": "say hi", "files": { "long": long } });
    session.wire.ask(9, "code.run", files).await;
    assert_eq!(session.wire.get().await["result"]["stdout"], "hi");
}

#[tokio::test]
async fn a_program_counts_until_its_run_is_over() {
    let product = Scripted::new();
    let mut session = connect(&product);
    let long = "x".repeat(5 << 20);
    for id in 1..=3 {
        let files = json!({ "language": "py", "code": "hold", "files": { "long": long } });
        session.wire.ask(id, "code.run", files).await;
        product.until_running(usize::try_from(id).unwrap()).await;
    }
    let room = |bytes: usize| session.account.hold().coming(bytes);
    assert!(room(COMING_OF_ONE - 3 * (5 << 20) - 4096) && !room(COMING_OF_ONE - 3 * (5 << 20)));
    session.wire.ask(4, "code.cancel", json!({ "request_id": 1 })).await;
    session.wire.get().await;
    session.wire.get().await;
    assert!(session.account.hold().coming(COMING_OF_ONE - 2 * (5 << 20) - 4096));
}
