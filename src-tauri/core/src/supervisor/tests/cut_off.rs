//! Runs that neither ended themselves nor were ended by Sandtray, and containers that are lost before they can run.

use super::*;
use crate::run::{CutBy, EndedBy, Interrupted};

fn cut(result: Result<Outcome, RunError>) -> Interrupted {
    match result {
        Err(RunError::Interrupted(cut)) => *cut,
        other => panic!("not cut off: {other:?}"),
    }
}

#[tokio::test]
async fn a_run_whose_container_is_ended_has_its_output_and_the_cause() {
    let rig = Rig::new();
    for (end, by) in [
        ("die killed", CutBy::Outside),
        ("die removed", CutBy::Outside),
        ("open\ndie killed", CutBy::Outside),
        ("die", CutBy::Unknown),
        ("die unrecorded", CutBy::Unknown),
        ("die 0", CutBy::Engine),
    ] {
        let run = rig.start(1, &format!("out so far\nerr oops\n{end}"));
        let id = run.id;
        let cut = cut(run.result().await);
        assert_eq!((cut.by, cut.run), (by, id), "{end}");
        assert_eq!((&cut.stdout.bytes[..], &cut.stderr.bytes[..]), (&b"so far\n"[..], &b"oops\n"[..]), "{end}");
        assert!(cut.wall > Duration::ZERO && cut.image.starts_with(PYTHON), "{cut:?}");
        assert_eq!(rig.words().pop().unwrap(), "run_interrupted");
    }
}

#[tokio::test]
async fn an_engine_that_is_away_when_the_output_ends_has_gone_away() {
    let rig = Rig::new();
    let (started, has_started) = oneshot::channel();
    let progress = Progress { started: Some(started), ..Progress::default() };
    let run = rig.start_with(1, spec(Language::Python, "out so far\nwait gate\ndie"), progress);
    has_started.await.unwrap();
    let mut events = rig.supervisor.events();
    rig.fake.set_trouble(Some(not_running()));
    rig.fake.open("gate");
    let id = run.id;
    let cut = cut(run.result().await);
    assert_eq!((cut.by, &cut.stdout.bytes[..]), (CutBy::Engine, &b"so far\n"[..]));
    assert!(cut.to_string().ends_with(" s: Docker went away."), "{cut}");
    rig.running(0).await;
    let told = std::iter::from_fn(|| events.try_recv().ok()).find(|event| matches!(event, Event::RunCutOff { .. }));
    assert_eq!(told, Some(Event::RunCutOff { run_id: id, by: CutBy::Engine }));
}

#[tokio::test]
async fn who_ends_a_run_first_is_the_one_who_did() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1));
    for waits in [false, true] {
        for (by, end) in [(EndedBy::Client, 0), (EndedBy::Owner, 1), (EndedBy::Owner, 2)] {
            let first = waits.then(|| rig.start(9, "hang"));
            rig.running(usize::from(waits)).await;
            let run = rig.start(1, "hang");
            if waits {
                rig.queued(1).await
            } else {
                rig.running(1).await
            }
            match end {
                0 => assert!(rig.supervisor.cancel(ClientId(1), run.id).await),
                1 => assert!(rig.supervisor.stop(run.id).await),
                _ => assert_eq!(rig.supervisor.stop_all().await, 1 + usize::from(waits)),
            }
            assert!(!waits || !rig.supervisor.cancel(ClientId(2), run.id).await);
            let outcome = run.result().await.unwrap();
            assert_eq!((outcome.status, outcome.ended_by), (Status::Cancelled, by), "waits: {waits}");
            first.inspect(|first| first.call.abort());
            rig.running(0).await;
        }
    }
    let run = rig.start(1, "hang");
    rig.running(1).await;
    rig.supervisor.set_enabled(false).await;
    assert_eq!(run.result().await.unwrap().ended_by, EndedBy::Switch);
    rig.supervisor.set_enabled(true).await;
    let run = rig.start(1, "hang");
    rig.running(1).await;
    rig.supervisor.shutdown().await;
    assert_eq!(run.result().await.unwrap().ended_by, EndedBy::Shutdown);
}

#[tokio::test]
async fn a_container_that_was_removed_before_its_program_is_replaced_once() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |settings| settings.warm = 0);
    rig.fake.lose_containers(1);
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.lose_containers(2);
    let refused = rig.start(1, "exit 0").result().await;
    assert_eq!(refused, Err(RunError::ContainerRemoved));
    assert_eq!(refused.unwrap_err().code(), "engine_unavailable");
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.lose_creations(1);
    let refused = rig.start(1, "exit 0").result().await.unwrap_err();
    assert!(matches!(refused, RunError::Engine(EngineTrouble::NotAnswering { .. })), "{refused:?}");
}

/// The engine is started again between the death of a warm container and the making of the next.
#[tokio::test]
async fn a_run_whose_engine_is_started_again_waits_for_the_next_proof() {
    let rig = Rig::new();
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.make_frail(1);
    let keeping = tokio::spawn(rig.pool.clone().keep(CancellationToken::new()));
    rig.until(|snapshot| snapshot.warm == 1).await;
    keeping.abort();
    rig.fake.set_start_delay(Duration::from_millis(300));
    let (started, has_started) = oneshot::channel();
    let run = rig.start_with(
        1,
        spec(Language::Python, "out fine"),
        Progress { started: Some(started), ..Progress::default() },
    );
    let made = rig.fake.created();
    tokio::time::timeout(Duration::from_secs(5), async {
        while rig.fake.created() == made {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("the dead one is being replaced");
    rig.connections.send_modify(|connection| connection.generation += 1);
    let outcome = run.result().await.unwrap();
    assert_eq!((outcome.status, &outcome.stdout.bytes[..]), (Status::Ok, &b"fine\n"[..]));
    assert_eq!(has_started.await, Ok(()), "its caller is told of the start, though it was set up twice");
}

#[tokio::test]
async fn a_warm_container_that_dies_under_a_call_is_replaced() {
    let rig = Rig::new();
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.make_frail(1);
    tokio::spawn(rig.pool.clone().keep(CancellationToken::new()));
    tokio::time::timeout(Duration::from_secs(5), async {
        while rig.pool.warm() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await
    .expect("a warm container");
    let outcome = rig.start(1, "out fine").result().await.unwrap();
    assert_eq!((outcome.status, &outcome.stdout.bytes[..]), (Status::Ok, &b"fine\n"[..]));
    rig.supervisor.set_enabled(false).await;
    assert_eq!(rig.containers().await, 0);
}
