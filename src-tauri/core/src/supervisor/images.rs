//! The book of images: what is known of each, what is under way for it, and who has asked for it. It decides what is to be
//! done next and what comes of a task's end; who does it, and who is told, is the actor's.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::{ImageInfo, PullError};
use crate::error::RunError;
use crate::event::{ImageState, PullFigure};

/// One who waits for an image, beside the runs in the queue.
pub(super) type Asker = oneshot::Sender<Result<(), RunError>>;

#[derive(Debug)]
pub(super) struct Images {
    known: BTreeMap<String, Image>,
    last: Ticket,
}

#[derive(Debug)]
struct Image {
    state: ImageState,
    /// A look, a pull or a removal is under way.
    busy: Option<CancellationToken>,
    /// The latest task's. What an earlier one finds is of no interest.
    ticket: Ticket,
    asked: Vec<Asker>,
    /// Looks in a row that told nothing of the image.
    failures: u32,
}

/// Tells the end of one task from that of another for the same name: of an engine or a setting that was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticket(u64);

/// What the engine has of an image.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// Preparing is work, and nobody may want it: it is done when somebody does.
    Unprepared(ImageInfo),
    Ready(ImageInfo),
}

/// What is to be done now.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) name: String,
    pub(super) ticket: Ticket,
    /// To be fetched and prepared, as far as it needs that, until it is cancelled; otherwise only looked at.
    pub(super) pull: Option<CancellationToken>,
    /// Looks before it that told nothing: it waits longer for each.
    pub(super) failures: u32,
}

/// What others have to hear of a task's end.
#[derive(Debug, PartialEq)]
pub(super) enum Settled {
    Nothing,
    /// It was pulled.
    Pulled,
    /// The runs that wait for it get this error; `pull`, where a pull failed.
    Failed {
        error: RunError,
        pull: Option<PullError>,
    },
}

impl Images {
    pub(super) fn of(names: impl IntoIterator<Item = String>) -> Self {
        let known = names.into_iter().map(|name| (name, Image::unknown())).collect();
        Self { known, last: Ticket::default() }
    }

    /// From now on these are the names. What was asked of one that goes is not asked of another.
    pub(super) fn rename(&mut self, names: &[String]) {
        let forgotten: Vec<String> = self.known.keys().filter(|name| !names.contains(name)).cloned().collect();
        for (name, image) in forgotten.into_iter().filter_map(|name| self.known.remove_entry(&name)) {
            image.cancel();
            image.answer(&Err(RunError::Image { image: name, error: PullError::Cancelled }));
        }
        for name in names {
            self.known.entry(name.clone()).or_insert_with(Image::unknown);
        }
    }

    pub(super) fn state(&self, name: &str) -> ImageState {
        self.known.get(name).map_or(ImageState::Unknown, |image| image.state.clone())
    }

    pub(super) fn ready(&self, name: &str) -> Option<&ImageInfo> {
        self.known.get(name).and_then(Image::ready)
    }

    pub(super) fn any_ready(&self) -> Option<&ImageInfo> {
        self.known.values().find_map(Image::ready)
    }

    /// Answers at once where it is here.
    pub(super) fn ask(&mut self, name: &str, asker: Asker) {
        let image = self.known.entry(name.to_owned()).or_insert_with(Image::unknown);
        image.asked.push(asker);
        if image.ready().is_some() {
            image.answer_all(&Ok(()));
        }
    }

    pub(super) fn refuse_askers(&mut self, error: &RunError) {
        for image in self.known.values_mut() {
            image.answer_all(&Err(error.clone()));
        }
    }

    /// What can be begun: each is noted as under way. `wanted` says for which a run waits.
    pub(super) fn begin(&mut self, wanted: impl Fn(&str) -> bool, may_pull: bool) -> Vec<Work> {
        let mut all = Vec::new();
        for (name, image) in self.known.iter_mut().filter(|(_, image)| image.busy.is_none()) {
            let wanted = may_pull && (wanted(name) || !image.asked.is_empty());
            let busy = CancellationToken::new();
            let pull = match image.state {
                ImageState::Unknown => None,
                ImageState::NotPulled | ImageState::Unprepared(_) | ImageState::Failed { .. } if wanted => {
                    image.state = ImageState::Pulling(PullFigure::default());
                    Some(busy.clone())
                }
                ImageState::NotPulled
                | ImageState::Unprepared(_)
                | ImageState::Failed { .. }
                | ImageState::Pulling(_)
                | ImageState::Ready(_) => continue,
            };
            self.last = self.last.next();
            (image.ticket, image.busy) = (self.last, Some(busy));
            all.push(Work { name: name.clone(), ticket: image.ticket, pull, failures: image.failures });
        }
        all
    }

    /// For a removal: nothing starts from it, and nothing looks at it, until that has ended. None where it is busy.
    pub(super) fn hold(&mut self, name: &str) -> Option<Ticket> {
        let image = self.known.get_mut(name).filter(|image| image.busy.is_none())?;
        self.last = self.last.next();
        image.state = ImageState::Unknown;
        (image.ticket, image.busy) = (self.last, Some(CancellationToken::new()));
        Some(self.last)
    }

    /// Of the task that is under way, for one that cannot say it itself any more.
    pub(super) fn ticket(&self, name: &str) -> Ticket {
        self.known.get(name).map(|image| image.ticket).unwrap_or_default()
    }

    /// Whether the figure is news.
    pub(super) fn progress(&mut self, name: &str, figure: PullFigure) -> bool {
        match self.known.get_mut(name).map(|image| &mut image.state) {
            Some(ImageState::Pulling(shown)) => {
                *shown = figure;
                true
            }
            Some(
                ImageState::Unknown
                | ImageState::NotPulled
                | ImageState::Unprepared(_)
                | ImageState::Ready(_)
                | ImageState::Failed { .. },
            )
            | None => false,
        }
    }

    /// A task has ended: with what is here now, or with why it is not.
    pub(super) fn settle(&mut self, name: &str, ticket: Ticket, result: Result<Found, RunError>) -> Settled {
        let Some(image) = self.known.get_mut(name).filter(|image| image.ticket == ticket) else {
            return Settled::Nothing;
        };
        image.busy = None;
        let was_pulling = matches!(image.state, ImageState::Pulling(_));
        let told = matches!(result, Ok(_) | Err(RunError::Image { .. }));
        image.failures = if told { 0 } else { image.failures + 1 };
        match result {
            Ok(Found::Ready(info)) => {
                image.state = ImageState::Ready(info);
                image.answer_all(&Ok(()));
                if was_pulling { Settled::Pulled } else { Settled::Nothing }
            }
            Ok(Found::Unprepared(info)) => {
                image.state = ImageState::Unprepared(info);
                Settled::Nothing
            }
            Ok(Found::Nothing) => {
                image.state = ImageState::NotPulled;
                Settled::Nothing
            }
            Err(error) => {
                let why = if let RunError::Image { error, .. } = &error { Some(error.clone()) } else { None };
                image.state = match &why {
                    // A cancelled one may be here all the same: it was being prepared.
                    Some(PullError::Cancelled) | None => ImageState::Unknown,
                    Some(error) => ImageState::Failed { error: error.clone() },
                };
                image.answer_all(&Err(error.clone()));
                Settled::Failed { error, pull: why.filter(|_| was_pulling) }
            }
        }
    }

    /// It was seen to be missing. Others may have seen that before, and what they began goes on.
    pub(super) fn gone(&mut self, name: &str) {
        if let Some(image) = self.known.get_mut(name).filter(|image| image.ready().is_some()) {
            image.state = ImageState::NotPulled;
        }
    }

    /// Something was wrong with what has this id: it is looked at again.
    pub(super) fn doubt(&mut self, id: &str) {
        for image in self.known.values_mut() {
            if image.busy.is_none() && image.ready().is_some_and(|ready| ready.id == id) {
                image.state = ImageState::Unknown;
            }
        }
    }

    /// Another engine, or none: what is known and what is under way is of the one that was.
    pub(super) fn forget(&mut self) {
        for image in self.known.values_mut() {
            image.cancel();
            *image = Image { asked: std::mem::take(&mut image.asked), ..Image::unknown() };
        }
    }

    /// Whatever is under way.
    pub(super) fn cancel_all(&self) {
        self.known.values().for_each(Image::cancel);
    }

    /// False where no pull is under way.
    pub(super) fn cancel_pull(&self, name: &str) -> bool {
        let pulling = |image: &&Image| matches!(image.state, ImageState::Pulling(_)) && image.busy.is_some();
        self.known.get(name).filter(pulling).inspect(|image| image.cancel()).is_some()
    }
}

impl Image {
    fn unknown() -> Self {
        Self { state: ImageState::Unknown, busy: None, ticket: Ticket::default(), asked: Vec::new(), failures: 0 }
    }

    fn ready(&self) -> Option<&ImageInfo> {
        match &self.state {
            ImageState::Ready(info) => Some(info),
            ImageState::Unknown
            | ImageState::NotPulled
            | ImageState::Pulling(_)
            | ImageState::Unprepared(_)
            | ImageState::Failed { .. } => None,
        }
    }

    fn cancel(&self) {
        if let Some(busy) = &self.busy {
            busy.cancel();
        }
    }

    fn answer_all(&mut self, result: &Result<(), RunError>) {
        for asker in self.asked.drain(..) {
            // Whoever asked may be gone.
            let _ = asker.send(result.clone());
        }
    }

    fn answer(mut self, result: &Result<(), RunError>) {
        self.answer_all(result);
    }
}

impl Ticket {
    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images() -> Images {
        Images::of(["a".to_owned(), "b".to_owned()])
    }

    fn info(id: &str) -> ImageInfo {
        ImageInfo { id: id.into(), digest: None, size_bytes: 1 }
    }

    /// The name, and whether it is to be pulled.
    fn begun(images: &mut Images, wanted: &str) -> Vec<(String, Ticket, bool)> {
        let work = images.begin(|name| name == wanted, true);
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
        assert!(images.begin(|_| true, false).is_empty(), "not while it stops");
        let [(name, ticket, true)] = &begun(&mut images, "a")[..] else { panic!("one pull") };
        assert_eq!(begun(&mut images, "a"), []);
        assert_eq!(images.settle(name, *ticket, Ok(Found::Ready(info("1")))), Settled::Pulled);
        assert_eq!((images.ready("a"), images.any_ready()), (Some(&info("1")), Some(&info("1"))));
        assert_eq!(begun(&mut images, "a"), []);
    }

    #[test]
    fn a_failure_is_told_with_its_reason_and_the_next_who_wants_it_tries_again() {
        let mut images = absent();
        let work = images.begin(|name| name == "a", true);
        assert!(work[0].pull.is_some());
        let settled = images.settle("a", work[0].ticket, Err(rate_limited()));
        assert_eq!(settled, Settled::Failed { error: rate_limited(), pull: Some(PullError::RateLimited) });
        assert_eq!(images.state("a"), ImageState::Failed { error: PullError::RateLimited });
        assert_eq!(begun(&mut images, "none"), []);
        let [(_, ticket, true)] = &begun(&mut images, "a")[..] else { panic!("one more pull") };
        // The engine's own trouble says nothing about the image.
        let settled = images.settle("a", *ticket, Err(RunError::ShuttingDown));
        assert_eq!(settled, Settled::Failed { error: RunError::ShuttingDown, pull: None });
        assert_eq!(images.state("a"), ImageState::Unknown);
        let look = images.begin(|_| true, true).remove(0);
        assert_eq!((look.pull.is_some(), look.failures), (false, 1));
        images.settle("a", look.ticket, Ok(Found::Nothing));
        assert_eq!(images.begin(|_| true, true)[0].failures, 0);
    }

    #[test]
    fn the_end_of_a_task_of_before_is_no_news() {
        let mut images = images();
        let old = begun(&mut images, "a").remove(0).1;
        images.forget();
        assert_eq!(images.settle("a", old, Ok(Found::Ready(info("old")))), Settled::Nothing);
        let new = begun(&mut images, "a").remove(0).1;
        assert_eq!(images.settle("a", old, Ok(Found::Ready(info("old")))), Settled::Nothing);
        assert_eq!(images.state("a"), ImageState::Unknown);
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
        images.refuse_askers(&RunError::ShuttingDown);
        assert_eq!(last.try_recv(), Ok(Err(RunError::ShuttingDown)));
    }

    #[test]
    fn one_that_is_here_and_not_prepared_is_left_so_until_it_is_wanted() {
        let mut images = images();
        for (name, ticket, _) in begun(&mut images, "none") {
            assert_eq!(images.settle(&name, ticket, Ok(Found::Unprepared(info("1")))), Settled::Nothing);
        }
        assert_eq!(images.state("a"), ImageState::Unprepared(info("1")));
        assert_eq!((images.ready("a"), images.any_ready()), (None, None), "nothing runs in it");
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
        let ticket = images.begin(|name| name == "a", true).remove(0).ticket;
        let cancelled = RunError::Image { image: "a".into(), error: PullError::Cancelled };
        let settled = images.settle("a", ticket, Err(cancelled.clone()));
        assert_eq!(settled, Settled::Failed { error: cancelled, pull: Some(PullError::Cancelled) });
        let [(_, ticket, false)] = &begun(&mut images, "none")[..] else { panic!("one look") };
        images.settle("a", *ticket, Ok(Found::Unprepared(info("1"))));
        assert_eq!(images.state("a"), ImageState::Unprepared(info("1")));
    }

    #[test]
    fn cancelling_reaches_the_pull_that_is_under_way_and_nothing_else() {
        let mut images = absent();
        assert!(!images.cancel_pull("a"));
        let pull = images.begin(|name| name == "a", true).remove(0).pull.unwrap();
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
        assert_eq!(images.state("a"), ImageState::Pulling(PullFigure::default()));
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
        assert_eq!(images.state("a"), ImageState::NotPulled);
    }
}
