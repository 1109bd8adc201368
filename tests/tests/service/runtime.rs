//! An engine that is restarted with another runtime between two checks. The runtime gives devices to the one image that
//! asks for them. The engine is a `dockerd` of this test's own: with its own network, data and socket.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sandtray_core::language::Language;
use sandtray_tests::rig::{Agent, Rig, eventually};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

/// Asks the runtime of `programs/walls/runtime.py` for more than the engine was asked for.
const ASKING: &str = "sandtray-test/asking:1";

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_gives_one_image_devices_is_found_out_before_a_program_runs_there() {
    let engine = Dockerd::new();
    let mut process = engine.start("runc").await;
    engine.fill().await;
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

struct Dockerd {
    folder: tempfile::TempDir,
}

impl Dockerd {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn url(&self) -> String {
        format!("unix://{}", self.path("docker.sock").display())
    }

    async fn start(&self, runtime: &str) -> Child {
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/walls/runtime.py");
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).expect("a log");
        let process = Command::new("unshare")
            .args(["--net", "dockerd", "--iptables=false", "--ip6tables=false", "--default-runtime", runtime])
            .arg(format!("--add-runtime=shim={}", shim.display()))
            .arg(format!("--host={}", self.url()))
            .arg(format!("--data-root={}", self.path("data").display()))
            .arg(format!("--exec-root={}", self.path("exec").display()))
            .arg(format!("--pidfile={}", self.path("pid").display()))
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .expect("dockerd, and the right to start it");
        eventually("an engine of the test's own", || async { self.docker(&["version"]).await }).await;
        process
    }

    /// Stops it as its service manager would: with its containers and its containerd.
    async fn stop(&self, process: &mut Child) {
        let pid = process.id().expect("an engine that runs").to_string();
        assert!(Command::new("kill").arg(pid).status().await.expect("kill").success());
        let ended = tokio::time::timeout(Duration::from_secs(30), process.wait()).await;
        ended.expect("an engine that ends").expect("its end");
    }

    async fn fill(&self) {
        let copy = format!("docker save alpine:3.22 python:3.12-slim | docker --host {} load", self.url());
        assert!(Command::new("sh").args(["-c", &copy]).stdout(Stdio::null()).status().await.expect("sh").success());
        assert!(self.docker(&["create", "--name", "made", "python:3.12-slim", "true"]).await);
        let environment = "--change=ENV SANDTRAY_TEST_DEVICES=all";
        assert!(self.docker(&["commit", environment, "made", ASKING]).await && self.docker(&["rm", "made"]).await);
    }

    async fn docker(&self, arguments: &[&str]) -> bool {
        let mut docker = Command::new("docker");
        docker.arg("--host").arg(self.url()).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        docker.status().await.is_ok_and(|status| status.success())
    }
}
