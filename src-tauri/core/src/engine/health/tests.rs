use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::BoxStream;

use super::*;
use crate::engine::{Attached, ContainerId, ContainerInfo, ContainerSpec, Exit, ImageInfo, LayerEvent, PullError};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Mood {
    Refused,
    Denied,
    Hung,
    Ready(&'static str),
}

/// The computer: which sockets there are, and how what is behind each behaves.
#[derive(Debug, Default)]
struct World {
    moods: Mutex<BTreeMap<String, Mood>>,
    connects: AtomicUsize,
    asks: AtomicUsize,
    watches: AtomicUsize,
    /// Ends the watch.
    restart: Notify,
}

const DEFAULT: &str = "/var/run/docker.sock";
const ROOTLESS: &str = "/run/user/1/docker.sock";
const PODMAN: &str = "/run/user/1/podman/podman.sock";

impl World {
    fn set(&self, path: &str, mood: Mood) {
        self.moods.lock().unwrap().insert(path.into(), mood);
    }

    fn remove(&self, path: &str) {
        self.moods.lock().unwrap().remove(path);
    }

    fn mood(&self, endpoint: &Endpoint) -> Mood {
        let path = endpoint.url.trim_start_matches("unix://");
        self.moods.lock().unwrap().get(path).copied().unwrap_or(Mood::Refused)
    }

    async fn answer(&self, endpoint: &Endpoint) -> Result<EngineInfo, EngineTrouble> {
        let endpoint = endpoint.clone();
        match self.mood(&endpoint) {
            Mood::Refused => Err(EngineTrouble::NotRunning { endpoint }),
            Mood::Denied => Err(EngineTrouble::PermissionDenied { endpoint }),
            Mood::Hung => std::future::pending().await,
            Mood::Ready(version) => Ok(info(&endpoint, version)),
        }
    }
}

fn info(endpoint: &Endpoint, version: &str) -> EngineInfo {
    EngineInfo {
        name: "Docker".into(),
        version: version.into(),
        api_version: "1.41".into(),
        endpoint: endpoint.clone(),
        os: "linux".into(),
        arch: "amd64".into(),
        cpus: 2,
        memory_bytes: 1 << 30,
        fingerprint: String::new(),
    }
}

#[derive(Debug)]
struct Scripted(Arc<World>, Endpoint);

#[async_trait]
impl Engine for Scripted {
    fn endpoint(&self) -> &Endpoint {
        &self.1
    }
    async fn info(&self) -> Result<EngineInfo, EngineError> {
        self.0.asks.fetch_add(1, Ordering::Relaxed);
        self.0.answer(&self.1).await.map_err(EngineError::Unavailable)
    }
    fn watch(&self) -> futures_util::future::BoxFuture<'static, Watched> {
        let world = self.0.clone();
        Box::pin(async move {
            world.watches.fetch_add(1, Ordering::Relaxed);
            world.restart.notified().await;
            Watched::Changed
        })
    }
    async fn image(&self, _: &str) -> Result<Option<ImageInfo>, EngineError> {
        unreachable!("health asks for no image")
    }
    fn pull(&self, _: &str) -> BoxStream<'static, Result<LayerEvent, PullError>> {
        unreachable!("health pulls nothing")
    }
    async fn remove_image(&self, _: &str) -> Result<(), EngineError> {
        unreachable!("health removes nothing")
    }
    async fn derive(&self, _: &crate::engine::Derivation, _: &CancellationToken) -> Result<(), EngineError> {
        unreachable!("health creates nothing")
    }

    async fn create(&self, _: &ContainerSpec) -> Result<ContainerId, EngineError> {
        unreachable!("health creates nothing")
    }
    async fn start(&self, _: &ContainerId) -> Result<Attached, EngineError> {
        unreachable!("health starts nothing")
    }
    async fn exit(&self, _: &ContainerId) -> Result<Exit, EngineError> {
        unreachable!("health asks for no exit")
    }
    async fn last_events(&self, _: &ContainerId) -> Result<super::super::LastEvents, EngineError> {
        unreachable!("health asks for no end")
    }
    async fn usage(&self, _: &ContainerId) -> Result<super::super::Usage, EngineError> {
        unreachable!("health asks for no figures")
    }
    async fn remove(&self, _: &ContainerId) -> Result<(), EngineError> {
        unreachable!("health removes nothing")
    }
    async fn containers(&self) -> Result<Vec<ContainerInfo>, EngineError> {
        unreachable!("health lists nothing")
    }
    async fn run_label_of_image(&self, _: &str) -> Result<Option<String>, EngineError> {
        unreachable!("health asks for no image")
    }
}

struct ScriptedConnector(Arc<World>);

#[async_trait]
impl Connector for ScriptedConnector {
    async fn connect(&self, endpoint: &Endpoint) -> Result<Arc<dyn Engine>, EngineTrouble> {
        self.0.connects.fetch_add(1, Ordering::Relaxed);
        self.0.answer(endpoint).await?;
        Ok(Arc::new(Scripted(self.0.clone(), endpoint.clone())))
    }
}

struct Bench {
    world: Arc<World>,
    handle: HealthHandle,
    watch: watch::Receiver<Connection>,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

fn bench(moods: &[(&str, Mood)], environment: &[(&str, &str)]) -> Bench {
    let world = Arc::new(World::default());
    for (path, mood) in moods {
        world.set(path, *mood);
    }
    let environment = environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let places = Places { chosen: None, environment, home: None, uid: Some(1) };
    let seen = world.clone();
    let probe: Probe = Arc::new(move |path| {
        let there = path.to_str().is_some_and(|path| seen.moods.lock().unwrap().contains_key(path));
        if there { Presence::There { real: path.into() } } else { Presence::Missing }
    });
    let cancel = CancellationToken::new();
    let connector = Arc::new(ScriptedConnector(world.clone()));
    let (handle, task) = Health::spawn(HealthConfig { places, probe, connector }, cancel.clone());
    Bench { world, watch: handle.watch(), handle, cancel, task }
}

impl Bench {
    async fn until(&mut self, wanted: impl Fn(&EngineState) -> bool) -> Connection {
        let waiting = self.watch.wait_for(|connection| wanted(&connection.state));
        timeout(Duration::from_secs(600), waiting).await.expect("the state never came").unwrap().clone()
    }

    async fn until_kind(&mut self, kind: &str) -> EngineTrouble {
        let connection =
            self.until(|state| matches!(state, EngineState::Trouble(trouble) if trouble.kind() == kind)).await;
        assert!(connection.engine.is_none());
        let EngineState::Trouble(trouble) = connection.state else { panic!("not in trouble") };
        trouble
    }

    async fn until_ready(&mut self, path: &str) -> Arc<dyn Engine> {
        let url = format!("unix://{path}");
        let ready = |state: &EngineState| matches!(state, EngineState::Ready(info) if info.endpoint.url == url);
        self.until(ready).await.engine.expect("ready without an engine")
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_anywhere_is_absent_and_says_where_it_looked() {
    let mut bench = bench(&[], &[]);
    let EngineTrouble::Absent { looked_at } = bench.until_kind("absent").await else { panic!("not absent") };
    let looked_at: BTreeSet<_> = looked_at.iter().map(String::as_str).collect();
    assert!(looked_at.contains("unix:///var/run/docker.sock") && looked_at.contains("unix:///run/podman/podman.sock"));
}

#[tokio::test(start_paused = true)]
async fn a_named_endpoint_without_a_socket_is_not_running() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[("DOCKER_HOST", "unix:///gone.sock")]);
    let endpoint = Endpoint { url: "unix:///gone.sock".into(), found: "DOCKER_HOST".into() };
    assert_eq!(bench.until_kind("not_running").await, EngineTrouble::NotRunning { endpoint });
}

#[tokio::test(start_paused = true)]
async fn an_address_that_cannot_be_used_is_never_connected_to() {
    let mut bench = bench(&[], &[("DOCKER_HOST", "ssh://host")]);
    bench.until_kind("unusable").await;
    assert_eq!(bench.world.connects.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn the_first_ready_candidate_is_taken_even_behind_a_hung_one() {
    let mut bench = bench(&[(DEFAULT, Mood::Hung), (ROOTLESS, Mood::Ready("1")), (PODMAN, Mood::Ready("2"))], &[]);
    bench.until_ready(ROOTLESS).await;
}

#[tokio::test(start_paused = true)]
async fn of_several_troubles_the_one_that_tells_most_is_shown() {
    let mut bench = bench(&[(DEFAULT, Mood::Refused), (ROOTLESS, Mood::Denied), (PODMAN, Mood::Hung)], &[]);
    let trouble = bench.until_kind("permission_denied").await;
    assert_eq!(trouble.endpoint().unwrap().url, format!("unix://{ROOTLESS}"));
    bench.world.remove(ROOTLESS);
    bench.until_kind("not_answering").await;
    bench.world.remove(PODMAN);
    bench.until_kind("not_running").await;
    bench.world.remove(DEFAULT);
    bench.until_kind("absent").await;
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_comes_back_is_noticed_and_is_the_same_engine() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[]);
    let first = bench.until_ready(DEFAULT).await;
    bench.world.set(DEFAULT, Mood::Refused);
    bench.until_kind("not_running").await;
    bench.world.set(DEFAULT, Mood::Ready("1"));
    let second = bench.until_ready(DEFAULT).await;
    assert!(Arc::ptr_eq(&first, &second));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_was_updated_is_another_engine() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[]);
    let first = bench.until_ready(DEFAULT).await;
    bench.world.set(DEFAULT, Mood::Ready("2"));
    let connection = bench.until(|state| matches!(state, EngineState::Ready(info) if info.version == "2")).await;
    assert!(!Arc::ptr_eq(&first, &connection.engine.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn one_slow_answer_is_no_trouble_and_two_are() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[]);
    bench.until_ready(DEFAULT).await;
    bench.world.set(DEFAULT, Mood::Hung);
    let began = Instant::now();
    bench.until_kind("not_answering").await;
    assert!(began.elapsed() > PING_BOUND * 2 && began.elapsed() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_restarts_is_waited_for_before_another_takes_its_place() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1")), (PODMAN, Mood::Ready("2"))], &[]);
    bench.until_ready(DEFAULT).await;
    bench.world.remove(DEFAULT);
    bench.until_kind("not_running").await;
    let lost = Instant::now();
    bench.until_ready(PODMAN).await;
    assert!(lost.elapsed() >= LOYALTY);
}

#[tokio::test(start_paused = true)]
async fn a_ready_engine_is_asked_now_and_then_and_subscribers_hear_only_changes() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[]);
    bench.until_ready(DEFAULT).await;
    let asked = bench.world.asks.load(Ordering::Relaxed);
    sleep(READY_INTERVAL * 6 + Duration::from_secs(1)).await;
    assert_eq!(bench.world.asks.load(Ordering::Relaxed) - asked, 6);
    assert_eq!(bench.world.connects.load(Ordering::Relaxed), 1);
    assert!(!bench.watch.has_changed().unwrap());
}

#[tokio::test(start_paused = true)]
async fn trouble_is_looked_at_ever_more_seldom_until_a_nudge() {
    let mut bench = bench(&[(DEFAULT, Mood::Refused)], &[]);
    bench.until_kind("not_running").await;
    sleep(Duration::from_secs(1 + 2 + 4 + 8 + 16)).await;
    let before = bench.world.connects.load(Ordering::Relaxed);
    sleep(Duration::from_secs(90)).await;
    assert!(bench.world.connects.load(Ordering::Relaxed) - before <= 4);
    bench.world.set(DEFAULT, Mood::Ready("1"));
    let nudged = Instant::now();
    bench.handle.nudge();
    bench.until_ready(DEFAULT).await;
    assert!(nudged.elapsed() <= NUDGE_GAP);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_nudges_makes_few_checks() {
    let mut bench = bench(&[(DEFAULT, Mood::Refused)], &[]);
    bench.until_kind("not_running").await;
    let before = bench.world.connects.load(Ordering::Relaxed);
    for _ in 0..1000 {
        bench.handle.nudge();
        sleep(Duration::from_millis(1)).await;
    }
    assert!(bench.world.connects.load(Ordering::Relaxed) - before <= 4);
}

#[tokio::test(start_paused = true)]
async fn the_owners_new_choice_takes_effect_at_once() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1")), (PODMAN, Mood::Ready("2"))], &[]);
    bench.until_ready(DEFAULT).await;
    bench.handle.choose(Some(format!("unix://{PODMAN}")));
    bench.until_ready(PODMAN).await;
    bench.handle.choose(None);
    bench.until_ready(DEFAULT).await;
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_it_is_told_to_even_in_the_middle_of_a_check() {
    let bench = bench(&[(DEFAULT, Mood::Hung)], &[]);
    tokio::task::yield_now().await;
    bench.cancel.cancel();
    let began = Instant::now();
    bench.task.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(bench.handle.state(), EngineState::Checking);
}

#[cfg(unix)]
mod on_real_sockets {
    use tokio::net::UnixListener;

    use super::*;
    use crate::engine::docker::DockerConnector;

    fn spawn(socket: &Path) -> (HealthHandle, CancellationToken) {
        let environment = BTreeMap::from([("DOCKER_HOST".to_owned(), format!("unix://{}", socket.display()))]);
        let places = Places { environment, ..Places::default() };
        let probe = Arc::new(discovery::on_disk);
        let config = HealthConfig { places, probe, connector: Arc::new(DockerConnector) };
        let cancel = CancellationToken::new();
        (Health::spawn(config, cancel.clone()).0, cancel)
    }

    async fn kind(handle: &HealthHandle, kind: &str) {
        let mut watch = handle.watch();
        let waiting = watch.wait_for(
            |connection| matches!(&connection.state, EngineState::Trouble(trouble) if trouble.kind() == kind),
        );
        assert!(timeout(Duration::from_secs(20), waiting).await.is_ok(), "{kind}: {:?}", handle.state());
    }

    #[tokio::test]
    async fn a_listener_that_never_answers_hangs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("docker.sock");
        drop(UnixListener::bind(&socket).unwrap());
        let (handle, cancel) = spawn(&socket);
        kind(&handle, "not_running").await;
        std::fs::remove_file(&socket).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let accepting = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        });
        handle.nudge();
        kind(&handle, "not_answering").await;
        accepting.abort();
        cancel.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_restarted_between_two_checks_is_the_same_and_must_be_proved_again() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[]);
    let before = bench.until(|state| matches!(state, EngineState::Ready(_))).await;
    bench.world.restart.notify_one();
    let mut watch = bench.watch.clone();
    let after = watch.wait_for(|shown| shown.generation > before.generation).await.unwrap().clone();
    assert!(Arc::ptr_eq(before.engine.as_ref().unwrap(), after.engine.as_ref().unwrap()));
    // It is watched again, and proofs made in between are made once more.
    watch.wait_for(|shown| shown.generation > after.generation).await.unwrap();
    assert_eq!(bench.world.watches.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_ends_at_once_is_given_up() {
    let mut bench = bench(&[(DEFAULT, Mood::Ready("1"))], &[]);
    bench.until(|state| matches!(state, EngineState::Ready(_))).await;
    for _ in 0..100 {
        bench.world.restart.notify_one();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(bench.world.watches.load(Ordering::Relaxed), BRIEF_WATCHES as usize);
}
