//! A whole service on a real engine, in a folder of its own, and agents that talk to it over its socket.

use std::path::Path;
use std::time::Duration;

use sandtray_core::event::{ImageState, ImageStatus};
use sandtray_core::instance::Instance;
use sandtray_core::paths::Paths;
use sandtray_core::service::{self, Options, Service};
use sandtray_core::settings::Settings;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine; a first call may pull its image.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Rig {
    pub service: Service,
    folder: TempDir,
}

impl Rig {
    /// On, with the default settings.
    pub async fn start() -> Self {
        Self::start_with(|_| ()).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in(tempfile::tempdir().expect("a folder for the test"), change).await
    }

    /// In a folder that an earlier service may have used.
    pub async fn start_in(folder: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let paths = Paths::under(folder.path());
        paths.ensure().expect("folders");
        let mut settings = Settings { enabled: true, ..Settings::default() };
        change(&mut settings);
        settings.save(&paths.settings_file()).expect("settings that are valid");
        let service = service::start(Options { paths, enable: false, socket: None }).await.expect("a service");
        let rig = Self { service, folder };
        rig.wait_for_engine().await;
        rig
    }

    async fn wait_for_engine(&self) {
        let mut snapshots = self.service.supervisor.watch();
        let ready = |snapshot: &sandtray_core::event::Snapshot| {
            !matches!(snapshot.engine, sandtray_core::engine::EngineState::Checking)
        };
        let snapshot = timeout(PATIENCE, snapshots.wait_for(ready)).await.expect("an answer about the engine");
        let engine = snapshot.expect("a supervisor").engine.clone();
        assert!(
            matches!(engine, sandtray_core::engine::EngineState::Ready(_)),
            "THESE TESTS NEED A CONTAINER ENGINE, and there is none: {engine:?}. `make test` starts one."
        );
    }

    pub async fn agent(&self) -> Agent {
        Agent::connect(&self.service.socket).await
    }

    /// Waits until the walls were proved in every image that is here. Then each container belongs to a run or is warm.
    pub async fn proved(&self) {
        let here = |image: &ImageStatus| matches!(image.state, ImageState::Unprepared(_) | ImageState::Ready(_));
        let looked_at = |image: &ImageStatus| image.launcher.is_some() || image.wall_missing.is_some();
        let known = |image: &ImageStatus| !matches!(image.state, ImageState::Unknown);
        eventually("each image that is here was looked at", || async {
            let images = self.service.supervisor.snapshot().images;
            images.iter().all(|image| known(image) && (!here(image) || looked_at(image)))
        })
        .await;
        eventually("the probes' containers are gone", || async { self.used_containers().await == 0 }).await;
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Containers of this service that the engine still knows.
    pub async fn containers(&self) -> usize {
        let engine = self.service.health.watch().borrow().engine.clone().expect("an engine");
        let home = self.home();
        let all = engine.containers().await.expect("a list of containers");
        all.iter().filter(|container| container.instance.starts_with(&home)).count()
    }

    /// Those that are not warm and waiting for a call.
    pub async fn used_containers(&self) -> usize {
        self.containers().await.saturating_sub(self.service.supervisor.snapshot().warm)
    }

    /// What the labels of this service's containers begin with.
    pub fn home(&self) -> String {
        Instance::home_of(&Paths::under(self.folder.path())).expect("a data folder with an id")
    }

    pub async fn stop(self) -> TempDir {
        let Self { service, folder } = self;
        service.shutdown().await;
        folder
    }
}

/// One connection. Calls are answered in any order, so notifications and other replies are kept until asked for.
pub struct Agent {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    next_id: u64,
    replies: Vec<Value>,
    pub notifications: Vec<Value>,
}

impl Agent {
    pub async fn connect(socket: &Path) -> Self {
        let (reader, writer) = UnixStream::connect(socket).await.expect("a service on its socket").into_split();
        let lines = BufReader::new(reader).lines();
        Self { lines, writer, next_id: 1, replies: Vec::new(), notifications: Vec::new() }
    }

    /// Sends a call and waits for its reply: `Ok(result)` or `Err(error)`.
    pub async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.reply(id).await
    }

    /// `code.run`, for which a refusal fails the test.
    pub async fn run(&mut self, params: Value) -> Value {
        self.call("code.run", params).await.expect("a result")
    }

    pub async fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send_line(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await;
        id
    }

    pub async fn send_line(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.expect("a service that reads");
    }

    pub async fn reply(&mut self, id: u64) -> Result<Value, Value> {
        let mut message = loop {
            if let Some(at) = self.replies.iter().position(|reply| reply["id"] == id) {
                break self.replies.remove(at);
            }
            let message = self.next().await;
            if message.get("method").is_some() { self.notifications.push(message) } else { self.replies.push(message) }
        };
        match message.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(message["result"].take()),
        }
    }

    /// The next notification of that method, past ones included.
    pub async fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notifications.iter().position(|seen| seen["method"] == method) {
                return self.notifications.remove(at)["params"].take();
            }
            let message = self.next().await;
            if message.get("method").is_some() { self.notifications.push(message) } else { self.replies.push(message) }
        }
    }

    /// The next message, whatever it is.
    pub async fn next(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("an answer in time").expect("a connection");
        serde_json::from_str(&line.expect("a message rather than the end")).expect("JSON")
    }
}

/// Waits until a condition holds, looking again and again.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(timeout(PATIENCE, looking).await.is_ok(), "in vain: {what}");
}

/// Where the bench's registry listens.
pub fn registry() -> String {
    let port = std::env::var("SANDTRAY_BENCH_REGISTRY_PORT").unwrap_or_else(|_| "5055".into());
    format!("127.0.0.1:{port}")
}

/// `sandtray serve` in a process that a test may kill. The program is built beside the tests.
pub fn serving_process(folder: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(built("sandtray"));
    command.args(["serve", "--enable"]).env("SANDTRAY_HOME", folder);
    command
}

/// A program of this workspace. `cargo test --workspace` builds it; on its own, `cargo build` does.
pub fn built(name: &str) -> std::path::PathBuf {
    let this = std::env::current_exe().expect("the path of this program");
    // A test is in target/PROFILE/deps, the bench in target/PROFILE itself.
    let beside =
        |levels| Some(this.ancestors().nth(levels)?.join(name).with_extension(std::env::consts::EXE_EXTENSION));
    let program = [1, 2].into_iter().filter_map(beside).find(|program| program.exists());
    program.unwrap_or_else(|| panic!("{name} is not built: run `cargo build --workspace` first"))
}
