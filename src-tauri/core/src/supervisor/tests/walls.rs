//! Nothing runs in an image before the walls are proved in it.

use std::collections::BTreeMap;

use super::*;

/// The result of a check, by the image's id; by default the walls hold.
#[derive(Debug, Default)]
struct Findings {
    missing: Mutex<BTreeMap<String, &'static str>>,
    /// Checks of these images do not end.
    endless: Mutex<Vec<String>>,
    /// These images are listed, and gone when they are used.
    absent: Mutex<Vec<String>>,
    /// Image ids, in the order of the checks.
    checked: Mutex<Vec<String>>,
}

impl Findings {
    fn missing(&self, image: &str, wall: &'static str) {
        self.missing.lock().unwrap().insert(id(image), wall);
    }

    fn checks(&self, image: &str) -> usize {
        self.checked.lock().unwrap().iter().filter(|other| **other == id(image)).count()
    }
}

#[async_trait]
impl WallCheck for Findings {
    async fn check(&self, _: &Arc<dyn Engine>, image: &ImageInfo, _: &Leases, _: &Limits) -> Result<Proof, Unproved> {
        self.checked.lock().unwrap().push(image.id.clone());
        if self.endless.lock().unwrap().contains(&image.id) {
            std::future::pending::<()>().await;
        }
        if self.absent.lock().unwrap().contains(&image.id) {
            return Err(Unproved::NoImage);
        }
        match self.missing.lock().unwrap().get(&image.id) {
            Some(wall) => Err(Unproved::Missing((*wall).into())),
            None => Ok(Proof { launcher: Launcher::Readable }),
        }
    }
}

fn id(image: &str) -> String {
    format!("sha256:id-of-{image}")
}

fn wall_missing(image: &str, wall: &str) -> RunError {
    let endpoint = Endpoint { url: "fake://".into(), found: "a test".into() };
    RunError::Engine(EngineTrouble::WallMissing { endpoint, image: image.into(), wall: wall.into() })
}

fn shell(rig: &Rig) -> Started {
    rig.start_spec(1, spec(Language::Shell, "exit 0"))
}

/// The same engine, restarted.
fn restart(rig: &Rig) {
    rig.connections.send_modify(|connection| connection.generation += 1);
}

fn of<'a>(snapshot: &'a Snapshot, image: &str) -> &'a crate::event::ImageStatus {
    snapshot.images.iter().find(|status| status.image == image).unwrap()
}

#[tokio::test]
async fn an_engine_without_a_wall_runs_nothing() {
    let findings = Arc::new(Findings::default());
    findings.missing(PYTHON, "the memory limit");
    let rig = Rig::checked(Fake::new().with_image(PYTHON), findings, |_| ());
    for _ in 0..2 {
        assert_eq!(rig.start(1, "exit 0").result().await, Err(wall_missing(PYTHON, "the memory limit")));
    }
    assert_eq!(rig.fake.created(), 0);
    assert!(matches!(rig.supervisor.snapshot().engine, EngineState::Trouble(EngineTrouble::WallMissing { .. })));
}

#[tokio::test]
async fn a_wall_that_is_missing_in_one_image_stops_no_other() {
    let findings = Arc::new(Findings::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON).with_image(SHELL), findings.clone(), |_| ());
    assert_eq!((rig.start(1, "exit 0").status().await, shell(&rig).status().await), (Status::Ok, Status::Ok));
    // Restarted, with a device that only Python's image asks for.
    findings.missing(PYTHON, "a device of the machine's can be reached");
    restart(&rig);
    let error = rig.start(1, "exit 0").result().await.unwrap_err();
    assert_eq!(error, wall_missing(PYTHON, "a device of the machine's can be reached"));
    assert!(error.to_string().contains("of the image python:3.12-slim in: a device"), "{error}");
    assert_eq!(shell(&rig).status().await, Status::Ok);
    assert_eq!((findings.checks(PYTHON), findings.checks(SHELL)), (2, 2));
    let snapshot = rig.supervisor.snapshot();
    assert!(matches!(snapshot.engine, EngineState::Ready(_)), "{:?}", snapshot.engine);
    assert_eq!(of(&snapshot, PYTHON).wall_missing.as_deref(), Some("a device of the machine's can be reached"));
    assert_eq!((of(&snapshot, SHELL).wall_missing.as_deref(), of(&snapshot, PYTHON).launcher), (None, None));
    // The owner has mended it, and says so.
    findings.missing.lock().unwrap().clear();
    rig.pull(Language::Python).await.unwrap();
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    assert_eq!(findings.checks(SHELL), 2, "what held was not doubted");
}

#[tokio::test]
async fn an_image_that_is_listed_and_cannot_be_used_is_told_to_what_waits_for_it() {
    let findings = Arc::new(Findings::default());
    findings.absent.lock().unwrap().push(id(PYTHON));
    let rig = Rig::checked(Fake::new().with_image(PYTHON), findings.clone(), |_| ());
    let error = rig.start(1, "exit 0").result().await.unwrap_err();
    let says = "The image python:3.12-slim could not be fetched: the engine lists it, and says that it is not there when it is used.";
    assert_eq!((error.to_string().as_str(), findings.checks(PYTHON)), (says, 2));
    findings.absent.lock().unwrap().clear();
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
}

#[tokio::test]
async fn walls_are_proved_once_and_the_launchers_seal_is_shown() {
    let findings = Arc::new(Findings::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON), findings.clone(), |_| ());
    for _ in 0..20 {
        assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    }
    assert_eq!(findings.checks(PYTHON), 1);
    let shown = serde_json::to_value(of(&rig.supervisor.snapshot(), PYTHON)).unwrap();
    assert_eq!((&shown["state"], &shown["launcher"]), (&"ready".into(), &"readable".into()));
}

#[tokio::test]
async fn a_slow_proof_delays_no_other_image() {
    let findings = Arc::new(Findings::default());
    findings.endless.lock().unwrap().push(id(PYTHON));
    let rig = Rig::checked(Fake::new().with_image(PYTHON).with_image(SHELL), findings, |_| ());
    let waiting = rig.start(1, "exit 0");
    rig.queued(1).await;
    assert_eq!(shell(&rig).status().await, Status::Ok);
    assert!(!waiting.call.is_finished());
    waiting.call.abort();
}

/// The container was asked from one engine and made by another.
#[tokio::test]
async fn a_run_whose_container_is_made_while_the_engine_starts_again_waits_for_the_new_proof() {
    let findings = Arc::new(Findings::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON), findings.clone(), |_| ());
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.set_start_delay(Duration::from_millis(300));
    let before = rig.fake.created();
    let run = rig.start(1, "exit 0");
    tokio::time::timeout(Duration::from_secs(5), async {
        while rig.fake.created() == before {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("a container");
    findings.missing(PYTHON, "the network is not cut off");
    restart(&rig);
    assert_eq!(run.result().await, Err(wall_missing(PYTHON, "the network is not cut off")));
    assert_eq!(findings.checks(PYTHON), 2);
}

/// An engine takes its time to remove a container, and gives no other one its name meanwhile.
#[tokio::test]
async fn a_run_that_waits_for_a_new_proof_gets_its_container_while_the_first_is_still_there() {
    let findings = Arc::new(Findings::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON), findings.clone(), |settings| settings.warm = 0);
    rig.fake.keep_containers(true);
    rig.fake.set_start_delay(Duration::from_millis(300));
    let run = rig.start(1, "exit 0");
    tokio::time::timeout(Duration::from_secs(5), async {
        while rig.fake.created() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("a container");
    restart(&rig);
    assert_eq!(run.result().await.map(|outcome| outcome.status), Ok(Status::Ok));
    assert_eq!((findings.checks(PYTHON), rig.containers().await), (2, 2));
}

#[tokio::test]
async fn nothing_is_prepared_behind_missing_walls() {
    const GO: &str = "golang:1.24-bookworm";
    let findings = Arc::new(Findings::default());
    findings.missing(GO, "swap is not limited");
    let rig = Rig::checked(Fake::new(), findings.clone(), |settings| settings.enabled = false);
    rig.fake.script_pull(GO, vec![]);
    assert_eq!(rig.pull(Language::Go).await, Err(wall_missing(GO, "swap is not limited")));
    assert_eq!((rig.fake.derived(), findings.checks(GO)), (0, 1));
    findings.missing.lock().unwrap().clear();
    rig.pull(Language::Go).await.unwrap();
    assert_eq!((rig.fake.derived(), rig.fake.pulls_begun()), (1, 1));
}

#[tokio::test]
async fn an_image_that_is_not_proved_is_not_kept_warm() {
    let findings = Arc::new(Findings::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON).with_image(SHELL), findings.clone(), |_| ());
    tokio::spawn(rig.pool.clone().keep(CancellationToken::new()));
    assert_eq!((rig.start(1, "exit 0").status().await, shell(&rig).status().await), (Status::Ok, Status::Ok));
    rig.until(|snapshot| snapshot.warm == 2).await;
    findings.endless.lock().unwrap().push(id(PYTHON));
    restart(&rig);
    rig.until(|snapshot| snapshot.warm == 0).await;
    rig.until(|snapshot| of(snapshot, SHELL).launcher.is_some() && snapshot.warm == 1).await;
    assert_eq!(of(&rig.supervisor.snapshot(), PYTHON).launcher, None);
}

/// A check that fails for a reason of its own: the image is gone, say.
#[derive(Debug, Default)]
struct Failing(std::sync::atomic::AtomicU32);

#[async_trait]
impl WallCheck for Failing {
    async fn check(&self, _: &Arc<dyn Engine>, _: &ImageInfo, _: &Leases, _: &Limits) -> Result<Proof, Unproved> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0..=1 => Err(Unproved::Failed(RunError::Internal("the image is not there".into()))),
            _ => Ok(Proof { launcher: Launcher::Sealed }),
        }
    }
}

#[tokio::test]
async fn a_wall_check_without_a_result_is_made_again_but_not_in_a_spin() {
    let check = Arc::new(Failing::default());
    let rig = Rig::checked(Fake::new().with_image(PYTHON), check.clone(), |_| ());
    tokio::time::timeout(Duration::from_secs(5), async { while rig.start(1, "exit 0").result().await.is_err() {} })
        .await
        .expect("the third check to hold");
    assert_eq!(check.0.load(std::sync::atomic::Ordering::Relaxed), 3);
}
