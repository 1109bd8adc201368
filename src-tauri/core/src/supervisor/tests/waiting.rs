//! What each run waits for, as the snapshot says it.

use super::*;
use crate::event::{ImageState, Waiting};

const GO: &str = "golang:1.24-bookworm";

impl Rig {
    async fn waits(&self, run: &Started, what: impl Fn(Waiting) -> bool) {
        let waiting = |snapshot: &Snapshot| {
            let mut live = snapshot.queued.iter().chain(&snapshot.running);
            live.find(|live| live.run_id == run.id).and_then(|live| live.waiting)
        };
        self.until(|snapshot| waiting(snapshot).is_some_and(&what)).await;
    }

    async fn waits_for(&self, run: &Started, what: Waiting) {
        self.waits(run, |waiting| waiting == what).await;
    }

    async fn runs(&self, run: &Started) {
        self.until(|snapshot| snapshot.running.iter().any(|live| live.run_id == run.id && live.waiting.is_none()))
            .await;
    }
}

#[derive(Debug, Default)]
struct Endless(tokio::sync::Notify);

#[async_trait]
impl WallCheck for Endless {
    async fn check(&self, _: &Arc<dyn Engine>, _: &ImageInfo, _: &Leases, _: &Limits) -> Result<Proof, Unproved> {
        self.0.notified().await;
        Ok(Proof { launcher: Launcher::Sealed })
    }
}

#[tokio::test]
async fn a_queue_is_counted_in_the_order_in_which_it_is_served() {
    let rig = Rig::new();
    let busy = [rig.start(1, "wait a"), rig.start(1, "wait a")];
    for run in &busy {
        rig.runs(run).await;
    }
    let first = rig.start(1, "wait a");
    rig.queued(1).await;
    let third = rig.start(1, "wait a");
    rig.queued(2).await;
    let second = rig.start(2, "wait a");
    rig.waits_for(&first, Waiting::Turn { ahead: 0 }).await;
    rig.waits_for(&second, Waiting::Turn { ahead: 1 }).await;
    rig.waits_for(&third, Waiting::Turn { ahead: 2 }).await;
    let order: Vec<RunId> = rig.supervisor.snapshot().queued.iter().map(|live| live.run_id).collect();
    assert_eq!(order, [first.id, second.id, third.id]);
}

#[tokio::test]
async fn a_pull_is_no_queue_and_counts_for_nobodys_turn() {
    let rig = Rig::with(Fake::new().with_image(SHELL), |settings| settings.concurrency = Some(1));
    rig.fake.script_pull(PYTHON, vec![layer(LayerStep::Downloading { current: 8 << 20, total: 16 << 20 })]);
    rig.fake.hold_pull(PYTHON);
    let pulling = rig.start(1, "exit 0");
    // Half of what is three quarters of the way.
    rig.waits_for(&pulling, Waiting::Pull { fraction: 0.375, downloaded_bytes: 8 << 20, total_bytes: 16 << 20 }).await;
    let busy = rig.start_spec(2, spec(Language::Shell, "wait a"));
    rig.runs(&busy).await;
    let next = rig.start_spec(2, spec(Language::Shell, "wait a"));
    rig.waits_for(&next, Waiting::Turn { ahead: 0 }).await;
}

#[tokio::test]
async fn walls_that_are_being_proved_and_an_image_that_is_prepared_are_said() {
    let check = Arc::new(Endless::default());
    let rig = Rig::checked(Fake::new().with_image(GO), check.clone(), |_| ());
    rig.fake.hold_derivations();
    let run = rig.start_spec(1, spec(Language::Go, "exit 0"));
    rig.waits_for(&run, Waiting::Check).await;
    check.0.notify_one();
    rig.waits_for(&run, Waiting::Preparation).await;
}

#[tokio::test]
async fn an_engine_that_is_looked_for_is_said() {
    let rig = Rig::new();
    rig.until(|snapshot| snapshot.images.iter().all(|image| image.state != ImageState::Unknown)).await;
    rig.connections.send_replace(Connection { state: EngineState::Checking, engine: None, generation: 1 });
    let run = rig.start(1, "wait a");
    rig.waits_for(&run, Waiting::Engine).await;
    rig.connections.send_replace(ready(&rig.fake));
    rig.runs(&run).await;
}

#[tokio::test]
async fn a_run_is_starting_until_its_program_runs() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.warm = 0);
    rig.fake.set_start_delay(Duration::from_millis(300));
    let run = rig.start(1, "wait a");
    rig.waits_for(&run, Waiting::Starting).await;
    let asked = rig.supervisor.snapshot().running[0].since;
    rig.runs(&run).await;
    let began = rig.supervisor.snapshot().running[0].since;
    assert!(began.duration_since(asked).unwrap() >= Duration::from_millis(300), "time counts from the program's start");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_told_from_a_queue() {
    let rig = Rig::new();
    let hoarder = rig.budget.account();
    let unread = hoarder.hold();
    unread.going(crate::budget::GOING_OF_ONE);
    let run = rig.start_on(&hoarder, 1, "wait a");
    rig.waits_for(&run, Waiting::Unread).await;
    drop(unread);
    rig.runs(&run).await;
}
