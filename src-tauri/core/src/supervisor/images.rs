//! The registry of images: the state of each, the task under way for it, and the callers that asked for it. It decides
//! the next work and the meaning of a task's result. The actor runs the tasks and sends the events.

use std::collections::BTreeMap;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::engine::{ImageInfo, PullError};
use crate::error::RunError;
use crate::event::{ImageState, PullFigure};

/// The reply channel of a caller that waits for an image. Runs in the queue are not among these.
pub(super) type Asker = oneshot::Sender<Result<(), RunError>>;

#[derive(Debug)]
pub(super) struct Images {
    known: BTreeMap<String, Image>,
    last: Ticket,
}

#[derive(Debug)]
struct Image {
    state: ImageState,
    /// The cancel token of the look, the pull or the removal under way.
    busy: Option<CancellationToken>,
    /// The ticket of the latest task. Results with an earlier ticket are ignored.
    ticket: Ticket,
    asked: Vec<Asker>,
    /// Looks in a row that failed to tell the image's state.
    failures: u32,
}

/// Identifies a task, so that the result of an outdated one, from before a change of engine or settings, is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticket(u64);

/// The state of an image on the engine.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// Not prepared yet. Preparation costs work, so it is put off until a run needs it.
    Unprepared(ImageInfo),
    Ready(ImageInfo),
}

/// A task to start now.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) name: String,
    pub(super) ticket: Ticket,
    /// The token that cancels the pull; `None` for a look only.
    pub(super) pull: Option<CancellationToken>,
    /// The image id whose walls are proved; the image is prepared only if it has this id.
    pub(super) prepare: Option<String>,
    /// Failed looks in a row; each makes the next one wait longer.
    pub(super) failures: u32,
}

/// The effect of a task's end on others.
#[derive(Debug, PartialEq)]
pub(super) enum Settled {
    Nothing,
    /// A pull has ended well.
    Pulled,
    /// Runs that wait for the image get `error`. `pull` is set if a pull failed.
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

    /// Sets the names in use. Requests for a dropped name are not moved to another.
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

    /// Adds a caller; answers at once if the image is ready.
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

    /// The work that can begin; each item is marked as under way. `wanted` tells whether a run waits for the image,
    /// `proved` whether programs may run in it.
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

    /// Reserves an image for its removal: until that ends, no run starts from it and no task looks at it. `None` while
    /// another task is under way.
    pub(super) fn hold(&mut self, name: &str) -> Option<Ticket> {
        let image = self.known.get_mut(name).filter(|image| image.busy.is_none())?;
        self.last = self.last.next();
        image.state = ImageState::Unknown;
        (image.ticket, image.busy) = (self.last, Some(CancellationToken::new()));
        Some(self.last)
    }

    /// The ticket of the task under way, for a task that has panicked.
    pub(super) fn ticket(&self, name: &str) -> Ticket {
        self.known.get(name).map(|image| image.ticket).unwrap_or_default()
    }

    /// Updates the progress. True while a pull is under way, so that the figure is reported.
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

    /// Applies a task's result: the image found, or the error.
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
                    // After a cancel the image may still be present: it may have been in preparation.
                    Some(PullError::Cancelled) | None => ImageState::Unknown,
                    Some(error) => ImageState::Failed { error: error.clone() },
                };
                image.answer_all(&Err(error.clone()));
                Settled::Failed { error, pull: why.filter(|_| was_pulling) }
            }
        }
    }

    /// A run found the image missing. Resets only an image that was ready; a pull that is already under way goes on.
    pub(super) fn gone(&mut self, name: &str) {
        if let Some(image) = self.known.get_mut(name).filter(|image| image.ready().is_some()) {
            image.state = ImageState::NotPulled;
        }
    }

    /// Looks again at the image with this id.
    pub(super) fn doubt(&mut self, id: &str) {
        for image in self.known.values_mut() {
            if image.busy.is_none() && image.here().is_some_and(|here| here.id == id) {
                image.state = ImageState::Unknown;
            }
        }
    }

    /// The engine has changed or is gone. Drops all states, and cancels the tasks for the previous engine.
    pub(super) fn forget(&mut self) {
        for image in self.known.values_mut() {
            image.cancel();
            *image = Image { asked: std::mem::take(&mut image.asked), ..Image::unknown() };
        }
    }

    /// Cancels all tasks under way.
    pub(super) fn cancel_all(&self) {
        self.known.values().for_each(Image::cancel);
    }

    /// Cancels a pull; false if none is under way.
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
            // Fails if the caller was cancelled.
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
