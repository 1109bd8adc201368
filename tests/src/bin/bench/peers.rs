//! What a call is compared with: `docker run` with the same walls, `docker exec` into a container that runs already, and
//! the bare interpreter on this machine.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sandtray_core::engine::seccomp;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::stats::Sample;

pub(crate) struct Peer {
    pub(crate) image: &'static str,
    /// In the image, reading its program from standard input.
    pub(crate) command: &'static [&'static str],
    /// On this machine; the program's file follows, as in a container.
    pub(crate) bare: &'static [&'static str],
    pub(crate) program: &'static str,
}

pub(crate) fn peer(language: &str) -> Peer {
    match language {
        "python" => Peer {
            image: "python:3.12-slim",
            command: &["python3", "-"],
            bare: &["python3", "-u"],
            program: "print(1)",
        },
        "javascript" => {
            Peer { image: "node:22-slim", command: &["node", "-"], bare: &["node"], program: "console.log(1)" }
        }
        _ => Peer { image: "alpine:3.22", command: &["sh"], bare: &["sh"], program: "echo 1" },
    }
}

/// The walls that the command line can express, which are all but two of the masks.
fn walls(seccomp_file: &std::path::Path) -> Vec<String> {
    let profile = format!("seccomp={}", seccomp_file.display());
    [
        "--network",
        "none",
        "--read-only",
        "--cap-drop",
        "ALL",
        "--ipc",
        "none",
        "--user",
        "65534:65534",
        "--security-opt",
        "no-new-privileges",
        "--security-opt",
        &profile,
        "--pids-limit",
        "128",
        "--memory",
        "512m",
        "--memory-swap",
        "512m",
        "--cpus",
        "1",
        "--log-driver",
        "none",
        "--hostname",
        "sandbox",
        "--tmpfs",
        "/sandbox:rw,exec,nosuid,nodev,size=64m,mode=1777",
        "--tmpfs",
        "/tmp:rw,noexec,nosuid,nodev,size=16m,mode=1777",
        "--ulimit",
        "core=0",
        "--ulimit",
        "nofile=1024",
    ]
    .map(str::to_owned)
    .into()
}

pub(crate) struct Peers {
    folder: tempfile::TempDir,
    python: OnceCell<String>,
}

impl Peers {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("seccomp.json"), seccomp::profile()).unwrap();
        Self { folder, python: OnceCell::new() }
    }

    pub(crate) async fn docker_run(&self, peer: &Peer) -> Duration {
        let mut command = Command::new("docker");
        command.args(["run", "--rm", "-i"]).args(walls(&self.folder.path().join("seccomp.json")));
        timed(command.arg(peer.image).args(peer.command), peer.program).await
    }

    /// The container's name, for [`Peers::docker_exec`].
    pub(crate) async fn start(&self, peer: &Peer) -> String {
        let mut command = Command::new("docker");
        command.args(["run", "-d", "--rm"]).args(walls(&self.folder.path().join("seccomp.json")));
        let output = command.args([peer.image, "sleep", "3600"]).output().await.unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) async fn docker_exec(&self, container: &str, peer: &Peer) -> Duration {
        let mut command = Command::new("docker");
        timed(command.args(["exec", "-i", container]).args(peer.command), peer.program).await
    }

    /// Of all the Pythons on the path the one that starts soonest: version managers put scripts of their own before them,
    /// and what is installed beside an interpreter slows its start.
    async fn interpreter(&self, name: &'static str) -> String {
        if name != "python3" {
            return name.into();
        }
        self.python.get_or_init(fastest_python).await.clone()
    }

    pub(crate) async fn stop(&self, container: &str) {
        let _ = Command::new("docker").args(["rm", "-f", container]).output().await;
    }

    pub(crate) async fn bare(&self, peer: &Peer) -> Duration {
        let file = self.folder.path().join("main");
        std::fs::write(&file, peer.program).unwrap();
        let mut command = Command::new(self.interpreter(peer.bare[0]).await);
        // The interpreter is asked for before the clock starts.
        timed(command.args(&peer.bare[1..]).arg(file), "").await
    }
}

async fn fastest_python() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found = Vec::new();
    for folder in std::env::split_paths(&path) {
        let mut asking = Command::new(folder.join("python3"));
        let Ok(asked) = asking.args(["-c", "import sys; print(sys.executable)"]).output().await else { continue };
        let python = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        let mut sample = Sample::default();
        for _ in 0..10 {
            sample.add(timed(Command::new(&python).args(["-c", "print(1)"]), "").await);
        }
        found.push((sample.median(), python));
    }
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found.into_iter().next().expect("a Python on the path").1
}

async fn timed(command: &mut Command, program: &str) -> Duration {
    let begun = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(program.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let took = begun.elapsed();
    assert_eq!(output.stdout, b"1\n", "{command:?}");
    took
}
