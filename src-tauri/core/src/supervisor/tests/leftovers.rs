//! What is left of containers, and by whom and when it is removed: off, sweeps, and what an engine does badly.

use super::*;

const GO: &str = "golang:1.24-bookworm";

async fn instances(fake: &Fake) -> Vec<String> {
    let mut left: Vec<String> = fake.containers().await.unwrap().into_iter().map(|found| found.instance).collect();
    left.sort();
    left
}

/// Looks again and again. With the clock paused that takes no time.
async fn until_gone(fake: &Fake) {
    while !fake.containers().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn off_kills_what_runs_refuses_what_waits_and_leaves_no_container() {
    let rig = Rig::new();
    let running = [rig.start(1, "out before\nhang"), rig.start(1, "hang")];
    rig.running(2).await;
    let waiting = rig.start(2, "exit 0");
    rig.queued(1).await;
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    for run in running {
        let outcome = run.result().await.unwrap();
        assert_eq!((outcome.status, outcome.exit_code), (Status::Cancelled, 137));
    }
    assert_eq!(waiting.result().await, Err(RunError::Off));
    assert_eq!(rig.start(1, "exit 0").result().await, Err(RunError::Off));
    rig.supervisor.set_enabled(true).await;
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
}

#[tokio::test]
async fn off_while_a_container_is_being_made_leaves_none() {
    let rig = Rig::new();
    rig.fake.set_start_delay(Duration::from_millis(200));
    let run = rig.start(1, "exit 0");
    rig.running(1).await;
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    assert_eq!(run.status().await, Status::Cancelled);
}

/// A container that is on the engine already.
async fn found(fake: &Fake, home: &str, boot: &str) -> ContainerId {
    let spec = ContainerSpec {
        image: PYTHON.into(),
        language: Language::Python,
        limits: limits(),
        instance: InstanceId { home: home.into(), boot: boot.into() },
        run: RunId::generate(),
    };
    fake.create(&spec).await.unwrap()
}

#[tokio::test]
async fn containers_with_another_name_or_inherited_labels_are_left_alone() {
    let fake = Fake::new().with_image(PYTHON);
    let renamed = found(&fake, "home", "renamed").await;
    fake.rename(&renamed, "mine");
    let inherits = found(&fake, "home", "inherits").await;
    fake.hand_labels_down(&inherits);
    found(&fake, "home2", "longer").await;
    found(&fake, "home", "ours").await;
    let rig = Rig::with(fake, |_| ());
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.supervisor.set_enabled(false).await;
    assert_eq!(instances(&rig.fake).await, ["home-inherits", "home-renamed", "home2-longer"]);
}

#[tokio::test]
async fn what_nobody_of_this_data_folder_has_is_swept_and_what_others_own_is_not() {
    let fake = Fake::new().with_image(PYTHON);
    for (home, boot) in [("home", "before"), ("home", "boot"), ("neighbour", "before")] {
        found(&fake, home, boot).await;
    }
    let rig = Rig::with(fake, |_| ());
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.supervisor.set_enabled(false).await;
    assert_eq!(instances(&rig.fake).await, ["neighbour-before"]);
}

#[tokio::test]
async fn a_removal_that_fails_is_tried_again() {
    let rig = Rig::new();
    let run = rig.start(1, "hang");
    rig.running(1).await;
    rig.fake.set_trouble(Some(not_running()));
    assert!(rig.supervisor.stop(run.id).await);
    assert_eq!(run.status().await, Status::Cancelled);
    assert_eq!(rig.fake.containers().await, Err(EngineError::Unavailable(not_running())));
    rig.fake.set_trouble(None);
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_container_whose_making_was_never_answered_is_removed_within_the_same_start() {
    let rig = Rig::new();
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.lose_creations(1);
    assert_eq!(rig.start(1, "exit 0").result().await.unwrap_err().code(), "engine_unavailable");
    let since = Instant::now();
    until_gone(&rig.fake).await;
    assert!(since.elapsed() <= Duration::from_secs(65), "{:?}", since.elapsed());
}

#[tokio::test]
async fn off_leaves_no_container_whose_making_was_never_answered() {
    let rig = Rig::new();
    rig.fake.lose_creations(1);
    assert!(rig.start(1, "exit 0").result().await.is_err());
    assert_eq!(rig.containers().await, 1);
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_the_engine_would_not_remove_is_removed_once_it_will() {
    let rig = Rig::new();
    rig.fake.keep_containers(true);
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    // Longer than it is tried for: off waits no longer than that either.
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 1);
    rig.fake.keep_containers(false);
    until_gone(&rig.fake).await;
}

#[tokio::test(start_paused = true)]
async fn a_sweep_takes_nothing_that_runs_waits_or_is_being_made() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.limits.seconds = 600.0);
    let warm = tokio::spawn(rig.pool.clone().keep(CancellationToken::new()));
    let mut long = spec(Language::Python, "wait gate");
    long.limits.millis = 600_000;
    let running = rig.start_spec(1, long);
    rig.running(1).await;
    rig.fake.set_start_delay(Duration::from_secs(90));
    let slow = rig.start(2, "exit 0");
    // Two sweeps and more.
    tokio::time::sleep(Duration::from_secs(150)).await;
    rig.fake.open("gate");
    assert_eq!(running.status().await, Status::Ok);
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(200), slow.call).await.unwrap().unwrap().unwrap().status,
        Status::Ok
    );
    warm.abort();
}

#[tokio::test]
async fn off_waits_for_the_container_of_an_image_that_is_being_prepared() {
    let rig = Rig::with(Fake::new().with_image(GO), |_| ());
    rig.fake.hold_derivations();
    let run = rig.start_spec(1, spec(Language::Go, "exit 0"));
    while rig.containers().await == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
    assert_eq!(run.result().await, Err(RunError::Off));
}

#[tokio::test(start_paused = true)]
async fn off_is_answered_when_it_is_turned_on_again_before_all_is_gone() {
    let rig = Rig::new();
    rig.fake.keep_containers(true);
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    let supervisor = rig.supervisor.clone();
    let off = tokio::spawn(async move { supervisor.set_enabled(false).await });
    rig.until(|snapshot| !snapshot.enabled).await;
    rig.supervisor.set_enabled(true).await;
    // A run that does not end: no container ever more would be too late.
    let _running = rig.start(1, "hang");
    rig.running(1).await;
    rig.fake.keep_containers(false);
    tokio::time::timeout(Duration::from_secs(3600), off).await.expect("an answer to off").unwrap();
}
