//! The supervisor over the scripted engine: order, refusals, the switch, and that nothing is left behind.

mod cut_off;
mod images;
mod leftovers;
mod overstay;
mod owner;
mod recording;
mod verdicts;
mod waiting;
mod walls;

use super::*;
use crate::budget::{Account, Hold};
use crate::engine::fake::Fake;
use crate::engine::{
    ContainerId, ContainerSpec, Endpoint, EngineError, EngineState, EngineTrouble, InstanceId, LayerEvent, PullError,
    pull::LayerStep,
};
use crate::janitor::Janitor;
use crate::pool::Pool;
use crate::run::{Limits, Overflow, Status};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio_util::sync::CancellationToken;

const PYTHON: &str = "python:3.12-slim";
const SHELL: &str = "alpine:3.22";

#[derive(Debug, Default)]
struct Memory(Mutex<Vec<(RunId, String)>>, AtomicBool);

#[async_trait]
impl Recorder for Memory {
    async fn ready(&self) -> Result<(), RunError> {
        if self.1.load(Relaxed) { Err(unwritable()) } else { Ok(()) }
    }

    async fn record(&self, record: Record<'_>) -> bool {
        let word = record.result.map_or_else(|error| error.code().to_owned(), |outcome| outcome.status.to_string());
        self.0.lock().unwrap().push((record.spec.id, word));
        record.spec.label.as_deref() != Some("unrecorded")
    }
}

fn unwritable() -> RunError {
    RunError::History { message: "The disk is full.".into(), hint: "Free some.".into() }
}

#[derive(Debug)]
struct Trusting;

#[async_trait]
impl WallCheck for Trusting {
    async fn check(&self, _: &Arc<dyn Engine>, _: &ImageInfo, _: &Leases, _: &Limits) -> Result<Proof, Unproved> {
        Ok(Proof { launcher: Launcher::Sealed })
    }
}

struct Rig {
    supervisor: Supervisor,
    fake: Fake,
    memory: Arc<Memory>,
    connections: watch::Sender<Connection>,
    pool: Pool,
    budget: Budget,
}

impl Rig {
    fn with(fake: Fake, change: impl FnOnce(&mut Settings)) -> Self {
        Self::checked(fake, Arc::new(Trusting), change)
    }

    fn checked(fake: Fake, wall_check: Arc<dyn WallCheck>, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings { enabled: true, concurrency: Some(2), ..Settings::default() };
        change(&mut settings);
        let (janitor, _) = Janitor::spawn(CancellationToken::new());
        let instance = InstanceId { home: "home".into(), boot: "boot".into() };
        let memory = Arc::new(Memory::default());
        let (connections, receiver) = watch::channel(ready(&fake));
        let leases = Leases::new(janitor, instance);
        let (pool, budget) = (leases.pool.clone(), Budget::default());
        let (supervisor, _) = Supervisor::spawn(Parts {
            settings,
            leases,
            recorder: memory.clone(),
            wall_check,
            connections: receiver,
            nudge: Arc::new(|| ()),
            budget: budget.clone(),
        });
        Self { supervisor, fake, memory, connections, pool, budget }
    }

    fn new() -> Self {
        Self::with(Fake::new().with_image(PYTHON).with_image(SHELL), |_| ())
    }

    /// Starts a run without waiting for its end.
    fn start(&self, client: u64, program: &str) -> Started {
        self.start_spec(client, spec(Language::Python, program))
    }

    fn start_spec(&self, client: u64, spec: RunSpec) -> Started {
        self.start_with(client, spec, Progress::default())
    }

    /// A start for a connection of a client process.
    fn start_on(&self, account: &Account, client: u64, program: &str) -> Started {
        self.start_held(account.hold(), client, program)
    }

    fn start_held(&self, hold: Hold, client: u64, program: &str) -> Started {
        self.start_with(client, spec(Language::Python, program), Progress { hold, ..Progress::default() })
    }

    fn start_with(&self, client: u64, spec: RunSpec, progress: Progress) -> Started {
        let (id, supervisor) = (spec.id, self.supervisor.clone());
        let client = Client { id: ClientId(client), name: format!("client {client}"), pid: None, program: None };
        let call =
            tokio::spawn(
                async move { supervisor.submit(spec, client, progress, &Cancel::default()).await?.wait().await },
            );
        Started { id, call }
    }

    async fn pull(&self, language: Language) -> Result<(), RunError> {
        self.supervisor.start_pull(language).await?.wait().await
    }

    async fn until(&self, what: impl FnMut(&Snapshot) -> bool) {
        let mut snapshots = self.supervisor.watch();
        tokio::time::timeout(Duration::from_secs(5), snapshots.wait_for(what)).await.expect("in time").unwrap();
    }

    async fn running(&self, runs: usize) {
        self.until(|snapshot| snapshot.running.len() == runs).await;
    }

    async fn queued(&self, runs: usize) {
        self.until(|snapshot| snapshot.queued.len() == runs).await;
    }

    fn words(&self) -> Vec<String> {
        self.memory.0.lock().unwrap().iter().map(|(_, word)| word.clone()).collect()
    }

    fn order(&self) -> Vec<RunId> {
        self.memory.0.lock().unwrap().iter().map(|(run, _)| *run).collect()
    }

    async fn containers(&self) -> usize {
        self.fake.containers().await.unwrap().len()
    }
}

struct Started {
    id: RunId,
    call: JoinHandle<Result<Outcome, RunError>>,
}

impl Started {
    async fn result(self) -> Result<Outcome, RunError> {
        tokio::time::timeout(Duration::from_secs(5), self.call).await.expect("in time").unwrap()
    }

    async fn status(self) -> Status {
        self.result().await.unwrap().status
    }
}

fn ready(fake: &Fake) -> Connection {
    let endpoint = fake.endpoint().clone();
    let info = crate::engine::EngineInfo {
        name: "Fake".into(),
        version: "1".into(),
        api_version: "1.41".into(),
        endpoint,
        os: "linux".into(),
        arch: "x86_64".into(),
        cpus: 2,
        memory_bytes: 1 << 30,
        fingerprint: String::new(),
    };
    Connection { state: EngineState::Ready(info), engine: Some(Arc::new(fake.clone())), generation: 1 }
}

fn spec(language: Language, program: &str) -> RunSpec {
    RunSpec {
        id: RunId::generate(),
        language,
        code: program.to_owned().into(),
        args: Vec::new(),
        files: Vec::new(),
        stdin: "given".into(),
        limits: limits(),
        overflow: Overflow::Kill,
        label: None,
    }
}

fn limits() -> Limits {
    Settings::default().limits()
}

fn not_running() -> EngineTrouble {
    EngineTrouble::NotRunning { endpoint: Endpoint { url: "fake://".into(), found: "a test".into() } }
}

fn layer(step: LayerStep) -> Result<LayerEvent, PullError> {
    Ok(LayerEvent { layer: "one".into(), step })
}

#[tokio::test]
async fn a_run_comes_back_with_what_it_wrote() {
    let rig = Rig::new();
    let outcome = rig.start(1, "out hello\nerr oops\ncat\nfile a.txt kept\nexit 3").result().await.unwrap();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, 3));
    assert_eq!(outcome.stdout.bytes, "hello\ngiven");
    assert_eq!(outcome.stderr.bytes, "oops\n");
    assert_eq!(outcome.files.len(), 1);
    assert_eq!((outcome.files[0].name.as_str(), &outcome.files[0].bytes[..]), ("a.txt", &b"kept"[..]));
    assert_eq!(outcome.memory_bytes, Some(1_000_000));
    assert_eq!(outcome.cpu, Some(Duration::from_millis(5)));
    assert_eq!(outcome.image, "python:3.12-slim@sha256:digest-of-python:3.12-slim");
    assert_eq!(outcome.left_behind, Vec::<String>::new());
}

#[tokio::test]
async fn clients_take_turns_and_history_is_written_in_order_of_ending() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let first = rig.start(1, "wait gate");
    rig.running(1).await;
    let mut flood = Vec::new();
    for waiting in 1..=5 {
        flood.push(rig.start(1, "exit 0"));
        rig.queued(waiting).await;
    }
    let other = rig.start(2, "exit 0");
    rig.queued(6).await;
    rig.fake.open("gate");
    let ids: Vec<RunId> =
        [first.id, flood[0].id, other.id].into_iter().chain(flood[1..].iter().map(|run| run.id)).collect();
    for run in [first, other].into_iter().chain(flood) {
        assert_eq!(run.status().await, Status::Ok);
    }
    assert_eq!(rig.order(), ids);
}

#[tokio::test]
async fn a_run_is_taken_on_or_refused_before_anything_comes_of_it() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let submit = |program: &str, cancel: &Cancel| {
        let (spec, cancel, supervisor) = (spec(Language::Python, program), cancel.clone(), rig.supervisor.clone());
        let client = Client { id: ClientId(1), name: "client".into(), pid: None, program: None };
        async move { supervisor.submit(spec, client, Progress::default(), &cancel).await }
    };
    let cancel = Cancel::default();
    let running = submit("wait gate", &cancel).await.unwrap();
    rig.running(1).await;
    let waiting = submit("exit 0", &cancel).await.unwrap();
    let dropped = submit("exit 0", &cancel).await.unwrap();
    rig.queued(2).await;
    drop(dropped);
    rig.queued(1).await;
    assert!(!cancel.is_cancelled(), "what a handle cancels is its own run");
    // One cancel ends the one that runs and the one that waits.
    cancel.by(EndedBy::Client);
    for run in [waiting, running] {
        let outcome = run.wait().await.unwrap();
        assert_eq!((outcome.status, outcome.ended_by), (Status::Cancelled, EndedBy::Client));
    }
    rig.supervisor.set_enabled(false).await;
    assert_eq!(submit("exit 0", &cancel).await.unwrap_err(), RunError::Off);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_says_when_to_come_again() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| {
        settings.concurrency = Some(1);
        settings.queue = 2;
    });
    let running = rig.start(1, "wait gate");
    rig.running(1).await;
    let waiting = [rig.start(1, "exit 0"), rig.start(1, "exit 0")];
    rig.queued(2).await;
    let refused = rig.start(1, "exit 0").result().await.unwrap_err();
    assert_eq!(refused, RunError::QueueFull { waiting: 2, own: false, retry_after: Duration::from_secs(2) });
    // A client with nothing waiting is not kept out by one with runs waiting.
    let other = rig.start(2, "exit 0");
    rig.queued(3).await;
    rig.fake.open("gate");
    for run in [running, other].into_iter().chain(waiting) {
        assert_eq!(run.status().await, Status::Ok);
    }
}

#[tokio::test]
async fn the_connections_of_one_program_share_its_turns_and_its_share() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| {
        settings.concurrency = Some(1);
        settings.per_client = 3;
    });
    let (flood, other) = (rig.budget.account(), rig.budget.account());
    let running = rig.start_on(&flood, 1, "wait gate");
    rig.running(1).await;
    let mut waiting = Vec::new();
    for connection in 2..5 {
        waiting.push(rig.start_on(&flood, connection, "exit 0"));
        rig.queued(waiting.len()).await;
    }
    let refused = rig.start_on(&flood, 5, "exit 0").result().await.unwrap_err();
    assert_eq!(refused, RunError::QueueFull { waiting: 3, own: true, retry_after: Duration::from_secs(3) });
    let single = rig.start_on(&other, 6, "exit 0");
    rig.queued(4).await;
    let order = [running.id, waiting[0].id, single.id, waiting[1].id, waiting[2].id];
    // A run is cancelled by its own connection, not by another of the same program.
    assert!(!rig.supervisor.cancel(ClientId(3), waiting[0].id).await);
    rig.fake.open("gate");
    for run in [running, single].into_iter().chain(waiting) {
        assert_eq!(run.status().await, Status::Ok);
    }
    assert_eq!(rig.order(), order);
}

#[tokio::test]
async fn a_client_that_reads_nothing_starts_nothing_more_and_others_go_on() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let (hoarder, other) = (rig.budget.account(), rig.budget.account());
    let unread = hoarder.hold();
    unread.going(crate::budget::GOING_OF_ONE);
    let held_back = rig.start_on(&hoarder, 1, "exit 0");
    rig.queued(1).await;
    assert_eq!(rig.start_on(&other, 2, "exit 0").status().await, Status::Ok);
    assert_eq!(rig.start(3, "exit 0").status().await, Status::Ok);
    assert_eq!(rig.supervisor.snapshot().queued.len(), 1);
    // No other event happens that could wake the actor.
    drop(unread);
    assert_eq!(held_back.status().await, Status::Ok);
}

#[tokio::test]
async fn a_result_counts_from_the_end_of_its_run_until_its_caller_drops_it() {
    let rig = Rig::new();
    let account = rig.budget.account();
    let hold = account.hold();
    assert!(hold.coming(1 << 20));
    let run = rig.start_held(hold.clone(), 1, "file big 0123456789");
    assert_eq!(run.status().await, Status::Ok);
    let unread = account.hold();
    unread.going(crate::budget::GOING_OF_ONE - 1);
    assert!(!account.hold().may_begin(), "the result of ten bytes counts");
    assert!(account.hold().coming(crate::budget::COMING_OF_ONE), "its program does not any more");
    drop(hold);
    assert!(account.hold().may_begin());
}

#[tokio::test]
async fn a_client_with_its_share_waiting_is_refused_and_another_is_served() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| {
        settings.concurrency = Some(1);
        settings.per_client = 2;
    });
    let running = rig.start(1, "wait gate");
    rig.running(1).await;
    let waiting = [rig.start(1, "exit 0"), rig.start(1, "exit 0")];
    rig.queued(2).await;
    let refused = rig.start(1, "exit 0").result().await.unwrap_err();
    assert_eq!(refused, RunError::QueueFull { waiting: 2, own: true, retry_after: Duration::from_secs(2) });
    let other = rig.start(2, "exit 0");
    rig.queued(3).await;
    // A greater share holds from now on.
    let settings = Settings { enabled: true, concurrency: Some(1), per_client: 3, ..Settings::default() };
    rig.supervisor.configure(settings).await;
    let more = rig.start(1, "exit 0");
    rig.queued(4).await;
    rig.fake.open("gate");
    for run in [running, other, more].into_iter().chain(waiting) {
        assert_eq!(run.status().await, Status::Ok);
    }
}

#[tokio::test]
async fn cancel_ends_a_running_or_waiting_run_of_the_same_client_only() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let running = rig.start(1, "hang");
    rig.running(1).await;
    let waiting = rig.start(1, "exit 0");
    rig.queued(1).await;
    assert!(!rig.supervisor.cancel(ClientId(2), running.id).await);
    assert!(!rig.supervisor.cancel(ClientId(2), waiting.id).await);
    assert!(rig.supervisor.cancel(ClientId(1), waiting.id).await);
    assert_eq!(waiting.status().await, Status::Cancelled);
    assert!(rig.supervisor.stop(running.id).await);
    assert_eq!(running.status().await, Status::Cancelled);
    assert!(!rig.supervisor.stop(RunId::generate()).await);
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_its_run_and_frees_its_place() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let running = rig.start(1, "hang");
    rig.running(1).await;
    let waiting = rig.start(1, "hang");
    rig.queued(1).await;
    waiting.call.abort();
    rig.queued(0).await;
    running.call.abort();
    rig.running(0).await;
    assert_eq!(rig.start(2, "exit 0").status().await, Status::Ok);
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
}

#[tokio::test]
async fn a_missing_engine_refuses_in_its_own_words_and_recovers() {
    let rig = Rig::new();
    rig.connections.send_replace(Connection {
        state: EngineState::Trouble(not_running()),
        engine: None,
        generation: 1,
    });
    rig.until(|snapshot| snapshot.engine == EngineState::Trouble(not_running())).await;
    assert_eq!(rig.start(1, "exit 0").result().await, Err(RunError::Engine(not_running())));
    rig.connections.send_replace(ready(&rig.fake));
    rig.until(|snapshot| matches!(snapshot.engine, EngineState::Ready(_))).await;
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
}

#[tokio::test]
async fn an_engine_that_is_lost_answers_whoever_waits() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let running = rig.start(1, "hang");
    rig.running(1).await;
    let waiting = rig.start(1, "exit 0");
    rig.queued(1).await;
    rig.connections.send_replace(Connection {
        state: EngineState::Trouble(not_running()),
        engine: None,
        generation: 1,
    });
    assert_eq!(waiting.result().await, Err(RunError::Engine(not_running())));
    running.call.abort();
}

#[tokio::test]
async fn shutting_down_ends_everything_and_refuses_what_comes_later() {
    let rig = Rig::new();
    let running = rig.start(1, "hang");
    rig.running(1).await;
    rig.supervisor.shutdown().await;
    assert_eq!(rig.containers().await, 0);
    assert_eq!(running.status().await, Status::Cancelled);
    assert_eq!(rig.start(1, "exit 0").result().await, Err(RunError::ShuttingDown));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_changed_is_seen_by_whoever_is_told_that_it_is() {
    let rig = Rig::new();
    for round in 1..=500 {
        rig.supervisor.set_enabled(false).await;
        assert!(!rig.supervisor.snapshot().enabled, "round {round}");
        rig.supervisor.set_enabled(true).await;
        assert!(rig.supervisor.snapshot().enabled, "round {round}");
        let image = format!("python:{round}");
        let images = [(Language::Python, image.clone())].into();
        rig.supervisor.configure(Settings { enabled: true, images, ..Settings::default() }).await;
        assert_eq!(rig.supervisor.snapshot().images[0].image, image);
    }
}

#[tokio::test]
async fn whoever_comes_while_it_shuts_down_is_told_so() {
    let rig = Rig::new();
    let supervisor = rig.supervisor.clone();
    // The runs stand in line behind it before any of them is looked at.
    let shutdown = tokio::spawn(async move { supervisor.shutdown().await });
    let late: Vec<Started> = (0..200).map(|client| rig.start(client, "exit 0")).collect();
    for run in late {
        assert_eq!(run.result().await, Err(RunError::ShuttingDown));
    }
    shutdown.await.unwrap();
}

#[tokio::test]
async fn limits_that_were_lowered_reach_runs_that_wait() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    let first = rig.start(1, "wait gate");
    rig.running(1).await;
    let waiting = rig.start(1, "exit 0");
    rig.queued(1).await;
    let mut lower = Settings { enabled: true, concurrency: Some(1), ..Settings::default() };
    lower.limits.memory_mb = 64;
    rig.supervisor.configure(lower).await;
    rig.fake.open("gate");
    assert_eq!(first.result().await.unwrap().limits.memory_bytes, 512 << 20);
    assert_eq!(waiting.result().await.unwrap().limits.memory_bytes, 64 << 20);
}
