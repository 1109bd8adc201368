//! The walls as an agent meets them: the attacks of `walls_config`, this time through the launcher and all of the product.

use sandtray_tests::rig::{Rig, eventually};
use serde_json::{Value, json};
use tokio::net::TcpListener;

macro_rules! attack {
    ($name:literal) => {
        ($name, include_str!(concat!("../../programs/walls/", $name)))
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_gets_through() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let target = json!({ "hosts": ["172.17.0.1"], "port": listener.local_addr().unwrap().port() });
    let heard = tokio::spawn(async move { listener.accept().await });
    for (name, code) in [
        attack!("network.py"),
        attack!("write.py"),
        attack!("privileges.py"),
        attack!("syscalls.py"),
        attack!("host.py"),
        attack!("pid1.py"),
        attack!("sysfs.py"),
        attack!("terminal.py"),
        attack!("sockopts.py"),
    ] {
        if name == "pid1.py" {
            eventually("a container is warm", || async { rig.service.supervisor.snapshot().warm > 0 }).await;
        }
        let stdin = if name == "network.py" { target.to_string() } else { String::new() };
        let result = agent.run(json!({ "language": "python", "code": code, "stdin": stdin })).await;
        let said: Value = serde_json::from_str(result["stdout"].as_str().unwrap_or_default()).unwrap_or_default();
        assert_eq!(said["succeeded"], json!([]), "{name}: {result}");
        // PID 1, and the half of its watchdog that waits for the other.
        assert!(name != "pid1.py" || said["tried"] == 2 * 13, "{said}");
    }
    assert!(!heard.is_finished(), "somebody was heard outside");
    heard.abort();
    rig.stop().await;
}
