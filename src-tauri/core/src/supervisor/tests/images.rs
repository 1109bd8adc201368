//! Images that come once for all who wait, fail in their own words, and are prepared.

use super::*;

#[tokio::test]
async fn ten_runs_that_wait_for_one_image_cause_one_pull() {
    let rig = Rig::with(Fake::new(), |_| ());
    rig.fake
        .script_pull(PYTHON, vec![layer(LayerStep::Downloading { current: 1, total: 2 }), layer(LayerStep::Complete)]);
    let runs: Vec<Started> = (0..10).map(|client| rig.start(client, "exit 0")).collect();
    for run in runs {
        assert_eq!(run.status().await, Status::Ok);
    }
    assert_eq!(rig.fake.pulls_begun(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_fails_before_anybody_knows_is_not_asked_in_a_spin() {
    let rig = Rig::with(Fake::new().with_image(PYTHON), |_| ());
    rig.until(|snapshot| snapshot.images.iter().all(|image| image.state != crate::event::ImageState::Unknown)).await;
    rig.fake.set_trouble(Some(not_running()));
    let before = rig.fake.looks();
    let settings = Settings { images: [(Language::Python, "other:1".into())].into(), ..Settings::default() };
    rig.supervisor.configure(settings).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let looks = rig.fake.looks() - before;
    assert!((2..20).contains(&looks), "{looks}");
    rig.fake.set_trouble(None);
    rig.until(|snapshot| snapshot.images[0].state == crate::event::ImageState::NotPulled).await;
}

#[tokio::test]
async fn a_failed_pull_tells_every_waiting_caller_why_and_others_run_on() {
    let rig = Rig::with(Fake::new().with_image(SHELL), |_| ());
    rig.fake.script_pull(PYTHON, vec![layer(LayerStep::Waiting), Err(PullError::RateLimited)]);
    let runs = [rig.start(1, "exit 0"), rig.start(2, "exit 0")];
    let shell = rig.start_spec(1, spec(Language::Shell, "exit 0"));
    for run in runs {
        let error = run.result().await.unwrap_err();
        assert_eq!(error, RunError::Image { image: PYTHON.into(), error: PullError::RateLimited });
    }
    assert_eq!(shell.status().await, Status::Ok);
    rig.fake.script_pull(PYTHON, vec![]);
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
}

/// The registry is not to blame, and the image is neither.
#[tokio::test]
async fn an_engine_that_goes_away_while_it_pulls_is_told_as_such() {
    let rig = Rig::with(Fake::new(), |_| ());
    let broke = PullError::Other { message: "the connection to the engine broke".into() };
    rig.fake.script_pull(PYTHON, vec![Err(broke.clone())]);
    rig.fake.hold_pulls();
    let run = rig.start(1, "exit 0");
    let pulling = |snapshot: &Snapshot| matches!(snapshot.images[0].state, crate::event::ImageState::Pulling(_));
    rig.until(pulling).await;
    rig.fake.set_trouble(Some(not_running()));
    rig.fake.open("pull");
    assert_eq!(run.result().await, Err(RunError::Engine(not_running())));
    rig.fake.set_trouble(None);
    // One that answers has failed by itself.
    assert_eq!(rig.start(1, "exit 0").result().await, Err(RunError::Image { image: PYTHON.into(), error: broke }));
}

#[tokio::test]
async fn an_image_that_declares_volumes_is_refused_in_its_own_words_and_can_be_removed() {
    let rig = Rig::with(Fake::new(), |_| ());
    rig.fake.script_pull(PYTHON, vec![]);
    rig.fake.declare_volumes(PYTHON);
    for _ in 0..2 {
        let error = rig.start(1, "exit 0").result().await.unwrap_err();
        assert_eq!(error, RunError::Image { image: PYTHON.into(), error: PullError::DeclaresVolumes });
        assert_eq!(
            error.to_string(),
            "The image python:3.12-slim can't be used: it declares volumes, which are places on the host's disk that a \
             program could write to."
        );
        assert!(error.hint().unwrap().starts_with("Choose another image in Sandtray's settings"));
    }
    assert_eq!(rig.fake.pulls_begun(), 1, "it is here");
    rig.supervisor.remove_image(Language::Python).await.unwrap();
    assert_eq!(rig.fake.image(PYTHON).await, Ok(None));
}

#[tokio::test]
async fn an_image_that_was_removed_is_fetched_once_more() {
    let rig = Rig::new();
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    rig.fake.forget_image(PYTHON);
    rig.fake.script_pull(PYTHON, vec![layer(LayerStep::Complete)]);
    assert_eq!(rig.start(1, "exit 0").status().await, Status::Ok);
    assert_eq!(rig.fake.pulls_begun(), 1);
}

#[tokio::test]
async fn a_language_that_needs_it_runs_in_an_image_that_was_prepared_once() {
    const GO: &str = "golang:1.24-bookworm";
    let rig = Rig::with(Fake::new(), |_| ());
    rig.fake.script_pull(GO, vec![]);
    for _ in 0..3 {
        let outcome = rig.start_spec(1, spec(Language::Go, "exit 0")).result().await.unwrap();
        assert_eq!(outcome.image, format!("{GO}@sha256:digest-of-{GO}"), "an agent hears of the official image");
    }
    assert_eq!((rig.fake.pulls_begun(), rig.fake.derived()), (1, 1));
}

#[tokio::test]
async fn an_image_for_several_languages_is_prepared_for_each_that_needs_it() {
    const ALL: &str = "all-in-one:1";
    let rig = Rig::with(Fake::new().with_image(ALL), |settings| {
        settings.images = Language::ALL.map(|language| (language, ALL.to_owned())).into();
    });
    for language in [Language::Python, Language::Go, Language::Shell] {
        let outcome = rig.start_spec(1, spec(language, "exit 0")).result().await.unwrap();
        assert_eq!(outcome.image, format!("{ALL}@sha256:digest-of-{ALL}"));
    }
    assert_eq!(rig.fake.derived(), 1, "only Go needs it");
    let made = rig.fake.images();
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(made[1].starts_with("sandtray/go:"), "{made:?}");
    rig.supervisor.set_enabled(false).await;
    rig.supervisor.remove_image(Language::Python).await.unwrap();
    assert_eq!(rig.fake.images(), Vec::<String>::new(), "what was made of it goes with it");
}

#[tokio::test]
async fn an_image_that_cannot_be_prepared_is_used_as_it_is() {
    let rig = Rig::with(Fake::new().with_image("golang:1.24-bookworm"), |_| ());
    rig.fake.refuse_to_derive();
    assert_eq!(rig.start_spec(1, spec(Language::Go, "exit 0")).status().await, Status::Ok);
    assert_eq!(rig.fake.pulls_begun(), 0, "the image was here");
}

#[tokio::test]
async fn what_becomes_of_a_pull_on_an_engine_that_was_left_is_no_word_about_the_next_one() {
    let rig = Rig::with(Fake::new(), |_| ());
    rig.fake.script_pull(PYTHON, vec![Err(PullError::RateLimited)]);
    rig.fake.hold_pulls();
    let run = rig.start(1, "out from the other");
    let pulling = |snapshot: &Snapshot| matches!(snapshot.images[0].state, crate::event::ImageState::Pulling(_));
    rig.until(pulling).await;
    let other = Fake::new().with_image(PYTHON);
    rig.connections.send_replace(ready(&other));
    rig.fake.open("pull");
    assert_eq!(run.result().await.unwrap().stdout.bytes, "from the other\n");
}
