//! `sandtray serve` in a process that may be killed, on a small disk of its own that may be filled.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sandtray_core::paths::Paths;
use sandtray_core::settings::Settings;
use sandtray_tests::rig::serving_process;
use sandtray_tests::small_disk::SmallDisk;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::target_folder;

/// Mebibytes of the disk.
const DISK_MB: u32 = 96;
/// Runs at once. More than the machine has cores, so that more of them are hit at a time.
const CONCURRENCY: u32 = 4;
/// Until it listens again.
pub(crate) const START_BOUND: Duration = Duration::from_secs(10);
/// Until one that was asked to stop has ended: it ends runs for 5 s and says goodbye for 8 s.
pub(crate) const STOP_BOUND: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Asked,
    Killed,
}

pub(crate) struct Service {
    pub(crate) disk: SmallDisk,
    home: TempDir,
    process: Mutex<Option<Child>>,
    /// Kibibytes: the most that any of its processes took.
    peak: std::sync::Mutex<u64>,
}

impl Service {
    /// With its disk, and nothing on it but the settings.
    pub(crate) fn new(root: &Path, engine: String) -> Self {
        let home = TempDir::new_in(root).unwrap();
        let disk = SmallDisk::over(&home, DISK_MB);
        let paths = Paths::under(home.path());
        paths.ensure().unwrap();
        let settings = Settings { engine: Some(engine), concurrency: Some(CONCURRENCY), ..Settings::default() };
        settings.save(&paths.settings_file()).unwrap();
        Self { disk, home, process: Mutex::new(None), peak: std::sync::Mutex::new(0) }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn paths(&self) -> Paths {
        Paths::under(self.home())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.paths().socket_file().unwrap()
    }

    /// Starts it; fails where it does not listen in time.
    pub(crate) async fn start(&self) -> Result<(), String> {
        let log = std::fs::File::options().create(true).append(true).open(target_folder().join("service.log")).unwrap();
        let mut command = serving_process(self.home());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let since = Instant::now();
        let result = loop {
            if UnixStream::connect(self.socket()).await.is_ok() {
                break Ok(());
            }
            if let Ok(Some(status)) = process.try_wait() {
                break Err(format!("the service ended at its start with {status}; target/soak/service.log says why"));
            }
            if since.elapsed() > START_BOUND {
                break Err(format!("the service did not listen within {} s", START_BOUND.as_secs()));
            }
            sleep(Duration::from_millis(10)).await;
        };
        *self.process.lock().await = Some(process);
        result
    }

    /// Fails where it does not end in time; then it is killed.
    pub(crate) async fn stop(&self, how: Stop) -> Result<(), String> {
        self.weigh().await;
        let Some(mut process) = self.process.lock().await.take() else { return Ok(()) };
        if let (Stop::Asked, Some(pid)) = (how, process.id()) {
            let _ = Command::new("kill").arg(pid.to_string()).status().await;
            if timeout(STOP_BOUND, process.wait()).await.is_err() {
                let _ = process.kill().await;
                return Err(format!("the service did not end within {} s", STOP_BOUND.as_secs()));
            }
            return Ok(());
        }
        let _ = process.kill().await;
        Ok(())
    }

    /// Whether the process that should serve does.
    pub(crate) async fn lives(&self) -> bool {
        self.process.lock().await.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    /// Kibibytes that it takes now; remembers the most there ever were.
    pub(crate) async fn weigh(&self) -> u64 {
        let Some(pid) = self.process.lock().await.as_ref().and_then(Child::id) else { return 0 };
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|figure| figure.parse().ok()).unwrap_or(0)
        };
        let mut peak = self.peak.lock().unwrap();
        *peak = (*peak).max(field("VmHWM:"));
        field("VmRSS:")
    }

    pub(crate) fn peak(&self) -> u64 {
        *self.peak.lock().unwrap()
    }
}
