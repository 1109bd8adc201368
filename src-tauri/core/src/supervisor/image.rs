//! Looking at an image, and fetching it: one pull whoever waits for it, its many layers folded into one figure.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::pull::PullFold;
use crate::engine::{Engine, EngineError, ImageInfo, PullError};
use crate::error::RunError;

use super::task::{Done, Note};

/// An engine reports each layer many times a second; a window needs ten.
const TELL_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn look(engine: Arc<dyn Engine>, image: String) -> Done {
    let result = engine.image(&image).await.map_err(|error| unavailable(error, &image));
    Done::Image { image, result }
}

pub(super) async fn pull(
    engine: Arc<dyn Engine>,
    image: String,
    notes: mpsc::Sender<Note>,
    cancel: CancellationToken,
) -> Done {
    let fetched = tokio::select! {
        () = cancel.cancelled() => Err(PullError::Cancelled),
        fetched = fetch(engine.as_ref(), &image, &notes) => fetched,
    };
    let result = match fetched {
        Ok(()) => match engine.image(&image).await {
            Ok(Some(info)) => Ok(Some(info)),
            Ok(None) => Err(failed(
                &image,
                PullError::Other { message: "the engine says it fetched it, but does not have it.".into() },
            )),
            Err(error) => Err(unavailable(error, &image)),
        },
        Err(error) => Err(failed(&image, error)),
    };
    Done::Image { image, result }
}

async fn fetch(engine: &dyn Engine, image: &str, notes: &mpsc::Sender<Note>) -> Result<(), PullError> {
    let mut events = engine.pull(image);
    let mut fold = PullFold::default();
    let mut told = Instant::now() - TELL_EVERY;
    while let Some(event) = events.next().await {
        let figure = fold.apply(&event?);
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            // Full: the next figure says more.
            let _ = notes.try_send(Note::Pulling { image: image.to_owned(), figure });
        }
    }
    Ok(())
}

fn failed(image: &str, error: PullError) -> RunError {
    RunError::Image { image: image.to_owned(), error }
}

fn unavailable(error: EngineError, image: &str) -> RunError {
    match error {
        EngineError::Unavailable(trouble) => RunError::Engine(trouble),
        error @ (EngineError::NoImage
        | EngineError::NoContainer
        | EngineError::Refused { .. }
        | EngineError::Broken { .. }) => failed(image, PullError::Other { message: error.to_string() }),
    }
}

/// What is known of an image, and who has asked for it.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) state: crate::event::ImageState,
    /// A look or a pull is under way.
    pub(super) busy: Option<CancellationToken>,
    /// The owner's requests; runs that wait for it are in the queue.
    pub(super) asked: Vec<tokio::sync::oneshot::Sender<Result<(), RunError>>>,
}

impl Image {
    pub(super) fn unknown() -> Self {
        Self { state: crate::event::ImageState::Unknown, busy: None, asked: Vec::new() }
    }

    pub(super) fn ready(&self) -> Option<&ImageInfo> {
        match &self.state {
            crate::event::ImageState::Ready(info) => Some(info),
            crate::event::ImageState::Unknown
            | crate::event::ImageState::NotPulled
            | crate::event::ImageState::Pulling(_)
            | crate::event::ImageState::Failed { .. } => None,
        }
    }
}
