//! An engine of the soak's own, which may be stopped and killed: `dockerd` with its own network, data and socket.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sandtray_tests::rig::{eventually, registry};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{relay, target_folder};

/// One that is asked to stop ends its containers first.
const STOP_BOUND: Duration = Duration::from_secs(30);
/// A command of `docker`, on an engine that may be just going away.
const COMMAND_BOUND: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Asked,
    Killed,
}

pub(crate) struct Engine {
    root: PathBuf,
    /// The process whose network the engine has.
    network: Child,
    process: Mutex<Option<Child>>,
}

impl Engine {
    pub(crate) async fn start(root: &Path) -> Self {
        let registry = registry();
        let (socket, port) = (root.join("registry.sock"), registry.rsplit(':').next().unwrap().to_owned());
        let outside = socket.clone();
        tokio::spawn(async move { relay::outside(&outside, registry).await });
        let mut relay = Command::new("unshare");
        relay.arg("--net").arg(std::env::current_exe().unwrap()).args(["relay", &port]).arg(&socket);
        let network = relay.stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let engine = Self { root: root.to_owned(), network, process: Mutex::new(None) };
        engine.again().await;
        engine
    }

    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.root.join("docker.sock").display())
    }

    /// Starts it, and returns once it answers.
    pub(crate) async fn again(&self) {
        let path = |name: &str| self.root.join(name).display().to_string();
        let log = std::fs::File::options().create(true).append(true).open(target_folder().join("dockerd.log")).unwrap();
        let network = self.network.id().expect("the engine's network");
        let mirror = format!("http://{}/", registry());
        let mut dockerd = Command::new("nsenter");
        dockerd
            .arg(format!("--net=/proc/{network}/ns/net"))
            .args(["dockerd", "--iptables=false", "--ip6tables=false", "--registry-mirror", &mirror])
            .args(["--host", &self.url(), "--data-root", &path("data"), "--exec-root", &path("exec")])
            .args(["--pidfile", &path("pid")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        *self.process.lock().await = Some(dockerd.spawn().expect("dockerd, and the right to start it"));
        eventually("an engine of the soak's own", || async { self.docker("docker version").await }).await;
    }

    /// False where it does not run.
    pub(crate) async fn stop(&self, how: Stop) -> bool {
        let Some(mut process) = self.process.lock().await.take() else { return false };
        match how {
            Stop::Asked => {
                let pid = process.id().unwrap_or_default().to_string();
                assert!(Command::new("kill").arg(pid).status().await.unwrap().success());
                timeout(STOP_BOUND, process.wait()).await.expect("an engine that ends").unwrap();
            }
            Stop::Killed => process.kill().await.unwrap(),
        }
        true
    }

    /// A line of shell whose `docker` speaks to this engine. False where it failed, or did not end in time.
    pub(crate) async fn docker(&self, line: &str) -> bool {
        self.output(line).await.is_some()
    }

    /// What it printed.
    pub(crate) async fn output(&self, line: &str) -> Option<String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env("DOCKER_HOST", self.url()).stdin(Stdio::null()).kill_on_drop(true);
        let ended = timeout(COMMAND_BOUND, shell.stderr(Stdio::null()).output()).await.ok()?.ok()?;
        ended.status.success().then(|| String::from_utf8_lossy(&ended.stdout).into_owned())
    }
}
