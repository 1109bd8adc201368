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
    /// Fetches the image, until it is cancelled; without this it is only looked at.
    pub(super) pull: Option<CancellationToken>,
    /// Prepares the image if it has this id: its walls are proved.
    pub(super) prepare: Option<String>,
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

    pub(super) fn state(&self, name: &str) -> &ImageState {
        self.known.get(name).map_or(&ImageState::Unknown, |image| &image.state)
    }

    pub(super) fn ready(&self, name: &str) -> Option<&ImageInfo> {
        self.known.get(name).and_then(Image::ready)
    }

    /// The image that programs would run in, prepared or not.
    pub(super) fn here(&self, name: &str) -> Option<&ImageInfo> {
        self.known.get(name).and_then(Image::here)
    }

    pub(super) fn is_asked_for(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|image| !image.asked.is_empty())
    }

    /// Answers at once where it is here.
    pub(super) fn ask(&mut self, name: &str, asker: Asker) {
        let image = self.known.entry(name.to_owned()).or_insert_with(Image::unknown);
        image.asked.push(asker);
        if image.ready().is_some() {
            image.answer_all(&Ok(()));
        }
    }

    pub(super) fn refuse_askers(&mut self, error: &RunError, matches: impl Fn(&str) -> bool) {
        for (_, image) in self.known.iter_mut().filter(|(name, _)| matches(name)) {
            image.answer_all(&Err(error.clone()));
        }
    }

    /// The work that can begin; each item is marked as under way. `wanted` tells which images a run waits for, `proved`
    /// in which programs may run.
    pub(super) fn begin(
        &mut self,
        wanted: impl Fn(&str) -> bool,
        proved: impl Fn(&str) -> bool,
        may_pull: bool,
    ) -> Vec<Work> {
        let mut all = Vec::new();
        for (name, image) in self.known.iter_mut().filter(|(_, image)| image.busy.is_none()) {
            let wanted = may_pull && (wanted(name) || !image.asked.is_empty());
            let busy = CancellationToken::new();
            let prepare = match &image.state {
                ImageState::Unprepared(info) if proved(&info.id) => Some(info.id.clone()),
                ImageState::Unprepared(_) => continue,
                ImageState::Unknown
                | ImageState::NotPulled
                | ImageState::Pulling(_)
                | ImageState::Ready(_)
                | ImageState::Failed { .. } => None,
            };
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
            all.push(Work { name: name.clone(), ticket: image.ticket, pull, prepare, failures: image.failures });
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
            if image.busy.is_none() && image.here().is_some_and(|here| here.id == id) {
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

    fn here(&self) -> Option<&ImageInfo> {
        match &self.state {
            ImageState::Ready(info) | ImageState::Unprepared(info) => Some(info),
            ImageState::Unknown | ImageState::NotPulled | ImageState::Pulling(_) | ImageState::Failed { .. } => None,
        }
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
mod tests;
