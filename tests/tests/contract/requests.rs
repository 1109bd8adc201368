//! Requests that cannot be served: each is refused by the name of its field, and the connection lives on.

use sandtray_tests::rig::Rig;
use serde_json::json;

use crate::python;

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused_by_field_and_nothing_is_lost() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (params, field) in [
        (json!({ "language": "perl", "code": "" }), "language"),
        (json!({ "language": "python" }), "code"),
        (json!({ "language": "python", "code": "x".repeat((1 << 20) + 1) }), "code"),
        (json!({ "language": "python", "code": "", "files": { "../x": "" } }), "files[\"../x\"]"),
        (json!({ "language": "python", "code": "", "files": { "main.py": "" } }), "files[\"main.py\"]"),
        (json!({ "language": "python", "code": "", "files": { "out": "" } }), "files[\"out\"]"),
        (json!({ "language": "python", "code": "", "files": { "a": "x".repeat(6 << 20) } }), "files"),
        (json!({ "language": "python", "code": "", "limits": { "cpus": 1e-9 } }), "limits.cpus"),
        (json!({ "language": "python", "code": "", "limits": { "memory_mb": 1 } }), "limits.memory_mb"),
        (json!({ "language": "python", "code": "", "limits": { "seconds": 0 } }), "limits.seconds"),
        (json!({ "language": "python", "code": "", "timeout": 5 }), "timeout"),
    ] {
        let error = agent.call("code.run", params).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("invalid_params")), "{field}");
        assert_eq!(error["data"]["field"], field, "{error}");
    }
    let lone_surrogate =
        r#"{"jsonrpc":"2.0","id":99,"method":"code.run","params":{"language":"python","code":"\ud800"}}"#;
    agent.send_line(lone_surrogate).await;
    let error = agent.reply(99).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["field"]), (&json!(-32602), &json!("code")));
    agent.send_line("{ this is no JSON").await;
    assert_eq!(agent.next().await["error"]["code"], -32700);
    assert_eq!(agent.run(python("print('alive')")).await["stdout"], "alive\n");
    rig.stop().await;
}
