//! The book of images by itself: what is begun, and what comes of each end.

use super::*;

fn images() -> Images {
    Images::of(["a".to_owned(), "b".to_owned()])
}

fn info(id: &str) -> ImageInfo {
    ImageInfo { id: id.into(), digest: None, size_bytes: 1 }
}

/// The name, and whether it is to be pulled.
fn begun(images: &mut Images, wanted: &str) -> Vec<(String, Ticket, bool)> {
    let work = images.begin(|name| name == wanted, |_| true, true);
    work.into_iter().map(|work| (work.name, work.ticket, work.pull.is_some())).collect()
}

/// Looked at, and not there.
fn absent() -> Images {
    let mut images = images();
    for (name, ticket, _) in begun(&mut images, "none") {
        images.settle(&name, ticket, Ok(Found::Nothing));
    }
    images
}

fn rate_limited() -> RunError {
    RunError::Image { image: "a".into(), error: PullError::RateLimited }
}

#[test]
fn each_is_looked_at_once_and_only_what_is_wanted_is_pulled_once() {
    let mut images = images();
    let looks = begun(&mut images, "a");
    assert_eq!(
        looks.iter().map(|(name, _, pull)| (name.as_str(), *pull)).collect::<Vec<_>>(),
        [("a", false), ("b", false)]
    );
    assert_eq!(begun(&mut images, "a"), []);
    for (name, ticket, _) in looks {
        assert_eq!(images.settle(&name, ticket, Ok(Found::Nothing)), Settled::Nothing);
    }
    assert!(images.begin(|_| true, |_| true, false).is_empty(), "not while it stops");
    let [(name, ticket, true)] = &begun(&mut images, "a")[..] else { panic!("one pull") };
    assert_eq!(begun(&mut images, "a"), []);
    assert_eq!(images.settle(name, *ticket, Ok(Found::Ready(info("1")))), Settled::Pulled);
    assert_eq!((images.ready("a"), images.here("a")), (Some(&info("1")), Some(&info("1"))));
    assert_eq!(begun(&mut images, "a"), []);
}

#[test]
fn a_failure_is_told_with_its_reason_and_the_next_who_wants_it_tries_again() {
    let mut images = absent();
    let work = images.begin(|name| name == "a", |_| true, true);
    assert!(work[0].pull.is_some());
    let settled = images.settle("a", work[0].ticket, Err(rate_limited()));
    assert_eq!(settled, Settled::Failed { error: rate_limited(), pull: Some(PullError::RateLimited) });
    assert_eq!(*images.state("a"), ImageState::Failed { error: PullError::RateLimited });
    assert_eq!(begun(&mut images, "none"), []);
    let [(_, ticket, true)] = &begun(&mut images, "a")[..] else { panic!("one more pull") };
    // The engine's own trouble says nothing about the image.
    let settled = images.settle("a", *ticket, Err(RunError::ShuttingDown));
    assert_eq!(settled, Settled::Failed { error: RunError::ShuttingDown, pull: None });
    assert_eq!(*images.state("a"), ImageState::Unknown);
    let look = images.begin(|_| true, |_| true, true).remove(0);
    assert_eq!((look.pull.is_some(), look.failures), (false, 1));
    images.settle("a", look.ticket, Ok(Found::Nothing));
    assert_eq!(images.begin(|_| true, |_| true, true)[0].failures, 0);
}

#[test]
fn the_end_of_a_task_of_before_is_no_news() {
    let mut images = images();
    let old = begun(&mut images, "a").remove(0).1;
    images.forget();
    assert_eq!(images.settle("a", old, Ok(Found::Ready(info("old")))), Settled::Nothing);
    let new = begun(&mut images, "a").remove(0).1;
    assert_eq!(images.settle("a", old, Ok(Found::Ready(info("old")))), Settled::Nothing);
    assert_eq!(*images.state("a"), ImageState::Unknown);
    images.settle("a", new, Ok(Found::Ready(info("new"))));
    assert_eq!(images.ready("a"), Some(&info("new")));
}

#[test]
fn whoever_asked_is_answered_whatever_becomes_of_it() {
    let mut images = images();
    let ask = |images: &mut Images, name: &str| {
        let (asker, answer) = oneshot::channel();
        images.ask(name, asker);
        answer
    };
    let (mut one, mut other) = (ask(&mut images, "a"), ask(&mut images, "b"));
    let work = begun(&mut images, "none");
    images.settle("a", work[0].1, Ok(Found::Ready(info("1"))));
    assert_eq!(one.try_recv(), Ok(Ok(())));
    assert_eq!(ask(&mut images, "a").try_recv(), Ok(Ok(())), "it is here");
    images.rename(&["a".to_owned(), "c".to_owned()]);
    let cancelled = RunError::Image { image: "b".into(), error: PullError::Cancelled };
    assert_eq!(other.try_recv(), Ok(Err(cancelled)));
    let mut last = ask(&mut images, "c");
    images.forget();
    assert!(last.try_recv().is_err(), "it waits for the next engine");
    images.refuse_askers(&RunError::ShuttingDown, |_| true);
    assert_eq!(last.try_recv(), Ok(Err(RunError::ShuttingDown)));
}

#[test]
fn one_that_is_here_and_not_prepared_is_left_so_until_it_is_wanted() {
    let mut images = images();
    for (name, ticket, _) in begun(&mut images, "none") {
        assert_eq!(images.settle(&name, ticket, Ok(Found::Unprepared(info("1")))), Settled::Nothing);
    }
    assert_eq!(*images.state("a"), ImageState::Unprepared(info("1")));
    assert_eq!(images.ready("a"), None, "nothing runs in it");
    assert_eq!(begun(&mut images, "none"), []);
    assert!(!images.progress("a", PullFigure::PREPARING) && !images.cancel_pull("a"));
    let [(_, ticket, true)] = &begun(&mut images, "a")[..] else { panic!("one that is wanted") };
    assert!(images.progress("a", PullFigure::PREPARING));
    assert_eq!(images.settle("a", *ticket, Ok(Found::Ready(info("2")))), Settled::Pulled);
    assert_eq!(images.ready("a"), Some(&info("2")));
}

#[test]
fn a_cancelled_one_is_looked_at_again_for_it_may_be_here() {
    let mut images = absent();
    let ticket = images.begin(|name| name == "a", |_| true, true).remove(0).ticket;
    let cancelled = RunError::Image { image: "a".into(), error: PullError::Cancelled };
    let settled = images.settle("a", ticket, Err(cancelled.clone()));
    assert_eq!(settled, Settled::Failed { error: cancelled, pull: Some(PullError::Cancelled) });
    let [(_, ticket, false)] = &begun(&mut images, "none")[..] else { panic!("one look") };
    images.settle("a", *ticket, Ok(Found::Unprepared(info("1"))));
    assert_eq!(*images.state("a"), ImageState::Unprepared(info("1")));
}

#[test]
fn cancelling_reaches_the_pull_that_is_under_way_and_nothing_else() {
    let mut images = absent();
    assert!(!images.cancel_pull("a"));
    let pull = images.begin(|name| name == "a", |_| true, true).remove(0).pull.unwrap();
    assert!(!images.cancel_pull("b") && !pull.is_cancelled());
    assert!(images.progress("a", PullFigure { fraction: 0.5, ..PullFigure::default() }));
    assert!(!images.progress("b", PullFigure::default()));
    assert!(images.cancel_pull("a") && pull.is_cancelled());
}

#[test]
fn a_second_run_that_found_it_gone_does_not_hide_the_pull() {
    let mut images = images();
    let look = begun(&mut images, "none").remove(0).1;
    images.settle("a", look, Ok(Found::Ready(info("1"))));
    images.gone("a");
    let pull = begun(&mut images, "a").remove(0).1;
    images.gone("a");
    assert_eq!(*images.state("a"), ImageState::Pulling(PullFigure::default()));
    assert_eq!(images.settle("a", pull, Ok(Found::Ready(info("1")))), Settled::Pulled);
}

#[test]
fn one_that_is_held_is_not_begun_and_a_doubted_one_is_looked_at_again() {
    let mut images = images();
    for (name, ticket, _) in begun(&mut images, "none") {
        images.settle(&name, ticket, Ok(Found::Ready(info("1"))));
    }
    let ticket = images.hold("a").unwrap();
    assert_eq!((images.hold("a"), images.ready("a")), (None, None));
    images.doubt("1");
    let [(name, ..)] = &begun(&mut images, "a")[..] else { panic!("one look") };
    assert_eq!(name, "b");
    images.settle("a", ticket, Ok(Found::Nothing));
    assert_eq!(*images.state("a"), ImageState::NotPulled);
}

#[test]
fn nothing_is_prepared_in_an_image_whose_walls_are_not_proved() {
    let mut images = absent();
    let pull = begun(&mut images, "a").remove(0);
    images.settle("a", pull.1, Ok(Found::Unprepared(info("1"))));
    assert_eq!((images.ready("a"), images.here("a")), (None, Some(&info("1"))));
    let work = |images: &mut Images, proved: &str| -> Vec<Option<String>> {
        images.begin(|name| name == "a", |id| id == proved, true).into_iter().map(|work| work.prepare).collect()
    };
    assert_eq!(work(&mut images, "another"), []);
    assert_eq!(work(&mut images, "1"), [Some("1".to_owned())]);
}
