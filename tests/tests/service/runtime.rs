//! An engine that is restarted with another runtime between two checks. The runtime gives devices to the one image that
//! asks for them. The engine is a `dockerd` of this test's own: with its own network, data and socket.

use std::time::Duration;

use sandtray_core::language::Language;
use sandtray_tests::dockerd::{ASKING, Dockerd};
use sandtray_tests::rig::{Agent, Rig, eventually};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_gives_one_image_devices_is_found_out_before_a_program_runs_there() {
    let engine = Dockerd::new();
    let mut process = engine.start("runc").await;
    engine.fill(&["alpine:3.22", "python:3.12-slim"]).await;
    engine.make_asking().await;
    let rig = Rig::start_with(|settings| {
        settings.engine = Some(engine.url());
        settings.images.insert(Language::Python, ASKING.into());
    })
    .await;
    let mut agent = rig.agent().await;
    for run in [python(), shell()] {
        assert_eq!(agent.run(run).await["status"], "ok");
    }

    engine.stop(&mut process).await;
    process = engine.start("shim").await;

    // From the first moment on. While the engine starts, calls fail for that reason; none may succeed.
    let refused = loop {
        let error = agent.call("code.run", python()).await.expect_err("a program ran before the walls were proved");
        if error["data"]["trouble"] == "wall_missing" {
            break error["message"].as_str().unwrap_or_default().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    for words in [ASKING, "something of the host's disk is mounted", "a device of the machine's can be reached"] {
        assert!(refused.contains(words), "{refused}");
    }
    for _ in 0..3 {
        assert_eq!(agent.run(shell()).await["status"], "ok");
        assert_eq!(agent.call("code.run", python()).await.unwrap_err()["data"]["trouble"], "wall_missing");
    }
    let image = image(&mut agent, "python").await;
    assert!(image["wall_missing"].as_str().is_some_and(|wall| wall.contains("device")), "{image}");

    // With the earlier runtime, everything works as before.
    engine.stop(&mut process).await;
    process = engine.start("runc").await;
    eventually("Python runs again", || async {
        rig.agent().await.call("code.run", python()).await.is_ok_and(|result| result["status"] == "ok")
    })
    .await;
    rig.stop().await;
    engine.stop(&mut process).await;
}

fn python() -> Value {
    json!({ "language": "python", "code": "print(1)" })
}

fn shell() -> Value {
    json!({ "language": "shell", "code": "echo 1" })
}

async fn image(agent: &mut Agent, language: &str) -> Value {
    let mut status = agent.call("status", json!({})).await.expect("a status");
    let images = status["images"].as_array_mut().expect("images");
    images.iter_mut().find(|image| image["language"] == language).expect("a language").take()
}
