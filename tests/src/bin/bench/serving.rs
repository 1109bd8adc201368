//! A service in a process of its own, as users have it, and what the system says of that process.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use sandtray_core::paths::Paths;
use sandtray_core::settings::Settings;
use sandtray_tests::rig::{Agent, eventually, serving_process};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Serving {
    process: tokio::process::Child,
    paths: Paths,
    _folder: TempDir,
}

impl Serving {
    pub(crate) async fn start(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), change).await
    }

    pub(crate) async fn start_in(folder: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let paths = Paths::under(folder.path());
        paths.ensure().unwrap();
        let mut settings = Settings::default();
        change(&mut settings);
        settings.save(&paths.settings_file()).unwrap();
        let mut command = serving_process(folder.path());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let socket = paths.socket_file().unwrap();
        eventually("the service listens", || async { tokio::net::UnixStream::connect(&socket).await.is_ok() }).await;
        Self { process, paths, _folder: folder }
    }

    pub(crate) async fn agent(&self) -> Agent {
        Agent::connect(&self.paths.socket_file().unwrap()).await
    }

    /// Waits until as many containers are warm as there were calls, at most the cap.
    pub(crate) async fn warm(&self, agent: &mut Agent, wanted: u64) {
        for _ in 0..2_000 {
            let status = agent.call("status", json!({})).await.unwrap();
            if status["warm"].as_u64().unwrap_or(0) >= wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the pool did not fill to {wanted}");
    }

    /// Kibibytes: resident now, and the most there ever were.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let status = self.proc("status");
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or(0)
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    /// Kibibytes of its own, with a fair share of what it shares.
    pub(crate) fn proportional(&self) -> u64 {
        let rollup = self.proc("smaps_rollup");
        let line = rollup.lines().find(|line| line.starts_with("Pss:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or(0)
    }

    /// CPU so far. The clock ticks a hundred times a second.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    pub(crate) async fn stop(mut self) {
        let pid = self.process.id().unwrap_or_default().to_string();
        let _ = tokio::process::Command::new("kill").args(["-TERM", &pid]).status().await;
        let _ = tokio::time::timeout(Duration::from_secs(10), self.process.wait()).await;
    }

    fn proc(&self, file: &str) -> String {
        let pid = self.process.id().expect("a running service");
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    }
}

pub(crate) fn target_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(2).unwrap().to_owned()
}

pub(crate) fn print_call(language: &str) -> Value {
    let code = match language {
        "python" => "print(1)",
        "javascript" => "console.log(1)",
        "shell" => "echo 1",
        "go" => "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }",
        _ => "fn main() { println!(\"1\") }",
    };
    json!({ "language": language, "code": code })
}
