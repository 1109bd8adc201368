//! What the owner may ask while runs come and go.

use super::*;
use crate::event::{ImageState, PullFigure};
use crate::run::Stream;

fn one_at_a_time() -> Rig {
    Rig::with(Fake::new().with_image(PYTHON), |settings| settings.concurrency = Some(1))
}

fn image_of(snapshot: &Snapshot, language: Language) -> ImageState {
    snapshot.images.iter().find(|image| image.language == language).unwrap().state.clone()
}

#[tokio::test]
async fn new_settings_hold_for_what_waits_and_what_comes() {
    let rig = one_at_a_time();
    let runs = [rig.start(1, "wait gate"), rig.start(1, "wait gate"), rig.start(1, "wait gate")];
    rig.queued(2).await;
    rig.supervisor.configure(Settings { concurrency: Some(2), queue: 1, ..Settings::default() }).await;
    rig.running(2).await;
    // One waits, and one may.
    let refused = rig.start(1, "exit 0").result().await.unwrap_err();
    assert!(matches!(refused, RunError::QueueFull { waiting: 1, .. }), "{refused:?}");
    rig.fake.open("gate");
    for run in runs {
        assert_eq!(run.status().await, Status::Ok);
    }
}

#[tokio::test]
async fn a_language_with_a_new_image_is_looked_for_and_runs_there() {
    let rig = Rig::with(Fake::new().with_image(PYTHON).with_image("python:3.13"), |_| ());
    assert!(rig.start(1, "exit 0").result().await.unwrap().image.starts_with(PYTHON));
    let mut settings = Settings::default();
    settings.images.insert(Language::Python, "python:3.13".into());
    rig.supervisor.configure(settings).await;
    rig.until(|snapshot| matches!(image_of(snapshot, Language::Python), ImageState::Ready(_))).await;
    assert!(rig.start(1, "exit 0").result().await.unwrap().image.starts_with("python:3.13@"));
}

#[tokio::test]
async fn a_cancelled_pull_answers_who_waits_and_can_be_asked_for_again() {
    let rig = Rig::with(Fake::new(), |_| ());
    rig.fake.hold_pull(PYTHON);
    let run = rig.start(1, "exit 0");
    rig.until(|snapshot| matches!(image_of(snapshot, Language::Python), ImageState::Pulling(_))).await;
    assert!(!rig.supervisor.cancel_pull(Language::Go).await);
    assert!(rig.supervisor.cancel_pull(Language::Python).await);
    let error = run.result().await.unwrap_err();
    assert_eq!(error, RunError::Image { image: PYTHON.into(), error: PullError::Cancelled });
    rig.until(|snapshot| image_of(snapshot, Language::Python) == ImageState::NotPulled).await;
    rig.fake.script_pull(PYTHON, vec![layer(LayerStep::Complete)]);
    assert_eq!(rig.pull(Language::Python).await, Ok(()));
}

#[tokio::test]
async fn an_image_that_is_here_and_not_prepared_says_so_until_somebody_wants_it() {
    const GO: &str = "golang:1.24-bookworm";
    let rig = Rig::with(Fake::new().with_image(GO), |_| ());
    let go = |snapshot: &Snapshot| image_of(snapshot, Language::Go);
    let unprepared =
        |snapshot: &Snapshot| matches!(go(snapshot), ImageState::Unprepared(info) if info.size_bytes == 1000);
    rig.until(unprepared).await;
    rig.fake.hold_derivations();
    let run = rig.start_spec(1, spec(Language::Go, "exit 0"));
    rig.until(|snapshot| go(snapshot) == ImageState::Pulling(PullFigure::PREPARING)).await;
    // Cancelled, it is still here.
    assert!(rig.supervisor.cancel_pull(Language::Go).await);
    assert!(run.result().await.is_err());
    rig.until(unprepared).await;
    assert_eq!(rig.supervisor.remove_image(Language::Go).await, Ok(()));
    rig.until(|snapshot| go(snapshot) == ImageState::NotPulled).await;
    assert_eq!(rig.fake.pulls_begun(), 0);
}

#[tokio::test]
async fn an_image_in_use_stays_and_an_idle_one_goes() {
    let rig = one_at_a_time();
    let run = rig.start(1, "wait gate");
    rig.running(1).await;
    let in_use = Err(RemoveError::InUse { image: PYTHON.into() });
    assert_eq!(rig.supervisor.remove_image(Language::Python).await, in_use);
    rig.fake.open("gate");
    assert_eq!(run.status().await, Status::Ok);
    rig.running(0).await;
    assert_eq!(rig.supervisor.remove_image(Language::Python).await, Ok(()));
    rig.until(|snapshot| image_of(snapshot, Language::Python) == ImageState::NotPulled).await;
}

#[tokio::test]
async fn stop_all_ends_what_runs_and_what_waits() {
    let rig = one_at_a_time();
    let runs = [rig.start(1, "hang"), rig.start(2, "hang")];
    rig.queued(1).await;
    assert_eq!(rig.supervisor.stop_all().await, 2);
    for run in runs {
        assert_eq!(run.status().await, Status::Cancelled);
    }
    assert_eq!(rig.supervisor.stop_all().await, 0);
}

#[tokio::test]
async fn an_onlooker_sees_output_figures_and_the_end_after_the_record() {
    let rig = one_at_a_time();
    let run = rig.start(1, "out before\nerr oops\nwait gate\nout after");
    let id = run.id;
    rig.running(1).await;
    let mut onlooker = rig.supervisor.look(id).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        assert!(onlooker.changed().await);
        seen.extend(onlooker.take().into_iter().map(|chunk| (chunk.stream, chunk.bytes)));
    }
    assert_eq!(seen, [(Stream::Stdout, "before\n".into()), (Stream::Stderr, "oops\n".into())]);
    let usage = onlooker.meter().unwrap().read().await.unwrap();
    assert_eq!(usage.memory_bytes, 1_000_000);
    rig.fake.open("gate");
    while onlooker.changed().await {}
    assert_eq!(onlooker.take().len(), 1);
    assert_eq!(rig.order(), [id]);
    assert_eq!(run.status().await, Status::Ok);
    assert!(rig.supervisor.look(id).await.is_none());
}

#[tokio::test]
async fn a_run_that_waits_can_be_looked_at_until_it_has_run() {
    let rig = one_at_a_time();
    let first = rig.start(1, "wait gate");
    rig.running(1).await;
    let second = rig.start(1, "out hello");
    rig.queued(1).await;
    let mut onlooker = rig.supervisor.look(second.id).await.unwrap();
    assert!(onlooker.meter().is_none());
    rig.fake.open("gate");
    while onlooker.changed().await {}
    assert_eq!(onlooker.take().len(), 1);
    assert_eq!((first.status().await, second.status().await), (Status::Ok, Status::Ok));
}

#[tokio::test]
async fn what_a_run_was_asked_to_do_is_shown_while_it_waits_and_runs_and_no_longer() {
    let rig = one_at_a_time();
    let first = rig.start(1, "wait gate");
    rig.running(1).await;
    let second = rig.start(2, "wait other");
    let ids = [first.id, second.id];
    rig.queued(1).await;
    let waits = rig.supervisor.request(second.id).await.unwrap();
    assert_eq!((&waits.spec.code[..], waits.client.id), (&b"wait other"[..], ClientId(2)));
    assert_eq!(rig.supervisor.request(first.id).await.unwrap().spec.code, "wait gate");
    rig.fake.open("gate");
    assert_eq!(first.status().await, Status::Ok);
    rig.queued(0).await;
    // The very bytes that wait, although its limits were set anew at its start.
    let runs = rig.supervisor.request(second.id).await.unwrap();
    assert_eq!(runs.spec.code.as_ptr(), waits.spec.code.as_ptr());
    rig.fake.open("other");
    assert_eq!(second.status().await, Status::Ok);
    rig.running(0).await;
    for id in ids {
        assert!(rig.supervisor.request(id).await.is_none());
    }
}
