//! Clients that hoard: the service keeps a bounded amount for them, and other clients do not wait. Each is a process of
//! its own, and so is the service, whose memory is measured.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use sandtray_core::paths::Paths;
use sandtray_core::settings::Settings;
use sandtray_tests::hoarder::Hoarder;
use sandtray_tests::rig::{built, eventually, serving_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Most memory of the service at its worst, in KB.
const MOST_MEMORY: u64 = 400 << 10;
/// Longest time that another client's call may take meanwhile.
const PROMPT: Duration = Duration::from_secs(5);
/// The tests here load the machine so much that they take turns.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

struct Served {
    process: Child,
    folder: tempfile::TempDir,
    socket: PathBuf,
}

impl Served {
    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::under(folder.path());
        paths.ensure().unwrap();
        let mut settings = Settings::default();
        change(&mut settings);
        settings.save(&paths.settings_file()).unwrap();
        let socket = paths.socket_file().unwrap();
        let mut command = serving_process(folder.path());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        eventually("the service listens", || async { tokio::net::UnixStream::connect(&socket).await.is_ok() }).await;
        let served = Self { process, folder, socket };
        served.call().await;
        served
    }

    fn hoarder(&self, mode: &str, connections: usize) -> Hoarder {
        Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &self.socket, mode, connections)
    }

    /// Four processes that hold all 64 places. A place of a connection before them may not be free yet, so they are started
    /// until each connection has one.
    async fn crowd(&self, mode: &str) -> Vec<Hoarder> {
        const ATTEMPTS: usize = 10;
        for _ in 0..ATTEMPTS {
            let crowd: Vec<Hoarder> = (0..4).map(|_| self.hoarder(mode, 16)).collect();
            eventually("each connection has a place or is refused", || async {
                crowd.iter().all(|hoarder| hoarder.said("open") + hoarder.said("closed") >= 16)
            })
            .await;
            if crowd.iter().all(|hoarder| hoarder.said("closed") == 0) {
                return crowd;
            }
        }
        panic!("{ATTEMPTS} crowds found no place");
    }

    async fn sandtray(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(built("sandtray"));
        command.args(arguments).env("SANDTRAY_HOME", self.folder.path()).stdin(Stdio::null());
        command.kill_on_drop(true).output().await.unwrap()
    }

    /// A call of another client, from connecting to its end.
    async fn call(&self) -> Duration {
        let begun = Instant::now();
        let output = self.sandtray(&["run", "-l", "shell", "-c", "echo hi"]).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hi\n", "{told}");
        begun.elapsed()
    }

    async fn prompt_call(&self) -> Duration {
        timeout(PROMPT, self.call()).await.expect("a call of another client is answered promptly")
    }

    /// The peak memory of the service, in KB.
    fn peak(&self) -> u64 {
        let pid = self.process.id().expect("a service that runs");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    async fn stop(mut self) {
        self.process.kill().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_results_are_bounded_and_cost_their_hoarder_its_connections() {
    let _turn = TURN.lock().await;
    let served = Served::with(|_| ()).await;
    let hoarder = served.hoarder("results", 16);
    hoarder.until_said("open", 16).await;
    let begun = Instant::now();
    // A client with a reply to read; the runs of the others do not start meanwhile, or were refused.
    while hoarder.said("closed") == 0 && begun.elapsed() < Duration::from_secs(90) {
        served.prompt_call().await;
    }
    assert!(hoarder.said("closed") > 0, "those that do not read what they asked for are cut off");
    assert!(served.peak() < MOST_MEMORY, "{} KB", served.peak());
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_messages_are_bounded_and_cost_their_hoarder_its_connections() {
    let _turn = TURN.lock().await;
    let served = Served::with(|_| ()).await;
    let hoarders: Vec<Hoarder> = (0..4).map(|_| served.hoarder("unfinished", 16)).collect();
    let ended = || hoarders.iter().map(|hoarder| hoarder.said("closed")).sum::<usize>();
    eventually("the messages are sent", || async {
        hoarders.iter().map(|hoarder| hoarder.said("sent")).sum::<usize>() + ended() >= 6
    })
    .await;
    let begun = Instant::now();
    while ended() < 64 && begun.elapsed() < Duration::from_secs(90) {
        served.prompt_call().await;
    }
    assert_eq!(ended(), 64, "those that finish nothing are cut off");
    assert!(served.peak() < MOST_MEMORY, "{} KB", served.peak());
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn status_gets_through_when_others_hold_all_places() {
    let _turn = TURN.lock().await;
    let served = Served::with(|settings| settings.concurrency = Some(1)).await;
    for mode in ["idle", "running"] {
        let crowd = served.crowd(mode).await;
        // A run of the owner's own holds a place meanwhile: it waits behind the crowd's.
        let run = served.sandtray(&["run", "-l", "shell", "-c", "true"]);
        let looks = async {
            for _ in 0..3 {
                let output = timeout(PROMPT, served.sandtray(&["status"])).await.expect("an answer");
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && output.stdout.starts_with(b"Running code is on."), "{mode}: {told}");
            }
        };
        tokio::pin!(run, looks);
        tokio::select! {
            biased;
            ended = &mut run => {
                assert!(mode == "idle" && ended.status.success(), "{mode}: {ended:?}");
                looks.as_mut().await;
            }
            () = &mut looks => {}
        }
        drop(crowd);
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_lists_neither_stop_pruning_nor_delay_others() {
    let _turn = TURN.lock().await;
    const MOST_HISTORY: u64 = 40 << 20;
    const MEASURED: usize = 9;
    const ROUNDS: usize = 6;
    let served = Served::with(|settings| settings.history.max_mb = 8).await;
    // A history that is worth listing. The delay that storing alone causes is measured first, without lists.
    let storing = served.hoarder("stores", 1);
    storing.until_said("stored", 4).await;
    let idle = median(&served, MEASURED).await;
    let listing: Vec<Hoarder> = (0..4).map(|_| served.hoarder("lists", 15)).collect();
    for hoarder in &listing {
        hoarder.until_said("open", 15).await;
    }
    let file = Paths::under(served.folder.path()).history_file();
    let watched = tokio::spawn(async move { watch(&file, Duration::from_secs(10)).await });
    // Other load on the machine may spoil one measurement; a flood that delays others spoils all of them.
    let mut busy = median(&served, MEASURED).await;
    for _ in 1..ROUNDS {
        if busy >= 4 * idle {
            busy = median(&served, MEASURED).await;
        }
    }
    let most = watched.await.unwrap();
    drop(listing);
    // The load of other tests may have begun after the first measurement.
    let idle = idle.max(median(&served, MEASURED).await);
    assert!(storing.said("stored") >= 5, "{} runs were stored", storing.said("stored"));
    assert!(most < MOST_HISTORY, "{most} bytes");
    assert!(busy < 4 * idle, "{busy:?} instead of {idle:?}");
    served.stop().await;
}

/// The largest size of a history and its log together.
async fn watch(file: &Path, time: Duration) -> u64 {
    let log = file.with_file_name("history.sqlite-wal");
    let (begun, mut most) = (Instant::now(), 0);
    while begun.elapsed() < time {
        let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        most = most.max(bytes(file) + bytes(&log));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    most
}

async fn median(served: &Served, calls: usize) -> Duration {
    let mut took = Vec::new();
    for _ in 0..calls {
        took.push(served.call().await);
    }
    took.sort_unstable();
    took[calls / 2]
}
