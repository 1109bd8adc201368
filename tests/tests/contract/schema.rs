//! What the service reads and writes is what `docs/schema.json` says.

use jsonschema::Validator;
use sandtray_core::protocol::schema::document;
use sandtray_tests::rig::Rig;
use serde_json::{Value, json};

use crate::shell;

/// The part of the document at this place, with the definitions that it refers to.
fn part(document: &Value, pointer: &str) -> Validator {
    let schema = document.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer}"));
    let whole = json!({ "$schema": document["$schema"], "allOf": [schema], "$defs": document["$defs"] });
    jsonschema::validator_for(&whole).expect("a schema")
}

fn check(document: &Value, pointer: &str, value: &Value) {
    let faults: Vec<String> = part(document, pointer).iter_errors(value).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{pointer}: {faults:?} in {value}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_methods_answer_is_as_its_schema_says() {
    let document = document();
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let run = json!({
        "language": "python", "args": ["a"], "files": { "in": "x" }, "stdin": { "base64": "/w==" }, "label": "words",
        "limits": { "seconds": 30, "cpus": null }, "overflow": "truncate", "stream": true,
        "code": "import os\nos.write(1, b'\\xff')\nopen('in', 'a').write('y')\nopen('out/a', 'wb').write(b'\\xff')\nos.symlink('a', 'out/l')",
    });
    let once = json!({ "runs": [shell("exit 3"), shell("echo 1")], "max_parallel": 1, "stop_on_failure": true });
    for (method, params) in [
        ("hello", json!({ "name": "a robot" })),
        ("subscribe", json!({})),
        ("status", json!({})),
        ("code.run", run),
        ("code.run", shell("echo 1; exit 3")),
        ("code.batch", once),
        ("code.history", json!({ "limit": 2 })),
        ("code.cancel", json!({ "request_id": 4711 })),
    ] {
        check(&document, &format!("/methods/{method}/params"), &params);
        let result = agent.call(method, params).await.unwrap();
        check(&document, &format!("/methods/{method}/result"), &result);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_and_notifications_are_as_their_schemas_say() {
    let document = document();
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (method, params) in [
        ("code.run", json!({ "language": "perl", "code": "" })),
        ("code.run", json!({ "language": "sh", "code": "", "args": "x" })),
        ("nothing", json!({})),
    ] {
        let error = agent.call(method, params).await.unwrap_err();
        check(&document, "/error", &error);
    }
    // What is refused does not pass the schema of a request either.
    let request = part(&document, "/methods/code.run/params");
    for params in [
        json!({ "language": "sh" }),
        json!({ "language": "sh", "code": "", "timeout": 1 }),
        json!({ "language": "sh", "code": "", "args": [1] }),
        json!({ "language": "sh", "code": "", "files": { "a": { "hex": "00" } } }),
    ] {
        assert!(!request.is_valid(&params), "{params}");
        assert_eq!(agent.call("code.run", params).await.unwrap_err()["data"]["code"], "invalid_params");
    }
    let mut call = shell("printf '\\377'; echo text >&2");
    call["stream"] = json!(true);
    let id = agent.send("code.run", call).await;
    for name in ["code.started", "code.output", "code.output"] {
        let params = agent.notification(name).await;
        check(&document, &format!("/notifications/{name}"), &params);
    }
    agent.reply(id).await.unwrap();
    let id = agent.send("code.batch", json!({ "runs": [shell("echo 1")], "stream": true })).await;
    check(&document, "/notifications/code.result", &agent.notification("code.result").await);
    agent.reply(id).await.unwrap();
    agent.call("subscribe", json!({})).await.unwrap();
    rig.service.supervisor.set_enabled(false).await;
    check(&document, "/notifications/capabilities.changed", &agent.notification("capabilities.changed").await);
    check(&document, "/error", &agent.call("code.run", shell("echo 1")).await.unwrap_err());
    rig.stop().await;
}
