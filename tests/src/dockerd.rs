//! An engine of a test's own, with its own network, data and socket: it may be stopped, restarted and killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::rig::eventually;

/// Asking the runtime of `programs/walls/runtime.py` for more than the engine was asked for.
pub const ASKING: &str = "sandtray-test/asking:1";

/// Ends with its process, which is ended with the test.
pub struct Dockerd {
    folder: tempfile::TempDir,
}

impl Dockerd {
    #[expect(clippy::new_without_default, reason = "a folder is made")]
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn url(&self) -> String {
        format!("unix://{}", self.path("docker.sock").display())
    }

    /// With this runtime: `runc`, or `shim`, which gives an image that asks for them devices of the machine's.
    pub async fn start(&self, runtime: &str) -> Child {
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
    pub async fn stop(&self, process: &mut Child) {
        let pid = process.id().expect("an engine that runs").to_string();
        assert!(Command::new("kill").arg(pid).status().await.expect("kill").success());
        let ended = tokio::time::timeout(Duration::from_secs(30), process.wait()).await;
        ended.expect("an engine that ends").expect("its end");
    }

    /// Ends it at once, as a crash does, and then what it leaves behind. It does not start again after that.
    pub async fn crash(&self, process: &mut Child) {
        let script = "docker --host $1 ps -q | xargs -r docker --host $1 inspect -f '{{.State.Pid}}'";
        let running = self.shell(script).await;
        process.kill().await.expect("an engine that ends");
        // The engine says 0 of a container that has just ended, and `kill 0` would end the tests themselves.
        let script = "for pid in $2; do \
                [ \"$pid\" -gt 1 ] || continue; \
                shim=$(ps -o ppid= -p \"$pid\") && [ $shim -gt 1 ] && kill -9 $shim \"$pid\"; \
            done; \
            awk -v at=\"$3/\" 'index($2, at) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount";
        let folder = self.folder.path().display().to_string();
        let left = Command::new("sh").args(["-c", script, "sh", "", &running, &folder]).status().await;
        assert!(left.expect("sh").success());
    }

    /// What it says, with the engine's address as `$1`.
    async fn shell(&self, script: &str) -> String {
        let said = Command::new("sh").args(["-c", script, "sh", &self.url()]).output().await.expect("sh");
        assert!(said.status.success(), "{script}");
        String::from_utf8(said.stdout).expect("text")
    }

    /// Gives it these images of the machine's engine.
    pub async fn fill(&self, images: &[&str]) {
        let copy = format!("docker save {} | docker --host {} load", images.join(" "), self.url());
        assert!(Command::new("sh").args(["-c", &copy]).stdout(Stdio::null()).status().await.expect("sh").success());
    }

    /// Makes [`ASKING`] of its image for Python.
    pub async fn make_asking(&self) {
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
