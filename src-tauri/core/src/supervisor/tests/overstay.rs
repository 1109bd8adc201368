//! A container that may still run a program takes a place until it is gone. One whose launcher cannot lie does not.

use super::*;

/// Longer than all attempts to remove what takes no place. With the clock paused it takes no time.
const LONG: Duration = Duration::from_secs(600);

fn one_at_a_time() -> Rig {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| {
        settings.concurrency = Some(1);
        settings.warm = 0;
    });
    rig.fake.keep_containers(true);
    rig
}

#[tokio::test(start_paused = true)]
async fn a_container_ended_by_an_honest_launcher_holds_no_place() {
    let rig = one_at_a_time();
    for _ in 0..3 {
        assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    }
    assert_eq!(rig.containers().await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_container_with_a_readable_launcher_holds_its_place_until_it_is_gone() {
    let rig = one_at_a_time();
    assert_eq!(rig.start(1, "open\nstay").status().await, Status::Ok);
    let next = rig.start(1, "exit 0");
    rig.queued(1).await;
    tokio::time::sleep(LONG).await;
    let snapshot = rig.supervisor.snapshot();
    assert_eq!((snapshot.queued.len(), snapshot.running.len()), (1, 0));
    rig.fake.keep_containers(false);
    assert_eq!(next.call.await.unwrap().unwrap().status, Status::Ok);
}

#[tokio::test(start_paused = true)]
async fn an_ended_container_that_cannot_be_removed_holds_no_place() {
    let rig = one_at_a_time();
    assert_eq!(rig.start(1, "open").status().await, Status::Ok);
    assert_eq!(rig.start(1, "exit 0").call.await.unwrap().unwrap().status, Status::Ok);
    assert_eq!(rig.containers().await, 2);
}

/// A run that is cancelled or exceeds its time is killed; until then its container may still run the program.
#[tokio::test(start_paused = true)]
async fn a_container_being_killed_holds_its_place() {
    let rig = one_at_a_time();
    let run = rig.start(1, "hang");
    rig.running(1).await;
    assert!(rig.supervisor.stop(run.id).await);
    assert_eq!(run.status().await, Status::Cancelled);
    let next = rig.start(1, "exit 0");
    rig.queued(1).await;
    tokio::time::sleep(LONG).await;
    assert_eq!(rig.supervisor.snapshot().queued.len(), 1);
    rig.fake.keep_containers(false);
    assert_eq!(next.call.await.unwrap().unwrap().status, Status::Ok);
}

/// An engine that was away comes back: its places are free again with it, and not some retry later.
#[tokio::test(start_paused = true)]
async fn one_on_an_engine_that_is_away_holds_no_place_when_it_is_back() {
    let rig = one_at_a_time();
    let run = rig.start(1, "hang");
    rig.running(1).await;
    let away = EngineTrouble::NotRunning { endpoint: rig.fake.endpoint().clone() };
    rig.fake.set_trouble(Some(away));
    assert!(rig.supervisor.stop(run.id).await);
    assert_eq!(run.status().await, Status::Cancelled);
    tokio::time::sleep(LONG).await;
    rig.fake.keep_containers(false);
    rig.fake.set_trouble(None);
    let begun = tokio::time::Instant::now();
    assert_eq!(rig.start(1, "exit 0").call.await.unwrap().unwrap().status, Status::Ok);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
