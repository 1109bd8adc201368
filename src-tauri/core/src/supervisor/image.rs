//! Looking at an image, and fetching it: one pull whoever waits for it, its many layers folded into one figure.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::engine::pull::PullFold;
use crate::engine::{Derivation, Engine, EngineError, ImageInfo, InstanceId, PullError};
use crate::error::RunError;
use crate::event::PullFigure;
use crate::language::Language;
use crate::settings::Settings;

use super::task::{Done, Note};

/// An engine reports each layer many times a second; a window needs ten.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// What is to be done once to an image before programs run in it.
#[derive(Debug, Clone)]
pub(super) struct Preparation {
    pub(super) language: Language,
    pub(super) script: &'static str,
    pub(super) instance: InstanceId,
}

impl Preparation {
    /// Of the images that settings name, those of a language that needs it.
    pub(super) fn of(image: &str, settings: &Settings, instance: &InstanceId) -> Option<Self> {
        let language = Language::ALL.into_iter().find(|language| settings.image(*language) == image)?;
        let script = language.recipe().prepare?;
        Some(Self { language, script, instance: instance.clone() })
    }

    /// Another for each base and for each script.
    pub(super) fn name(&self, base: &ImageInfo) -> String {
        let hash = Sha256::digest(format!("{}\n{}", base.id, self.script));
        let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("sandtray/{}:{short}", self.language)
    }

    /// The prepared image of this base, where it has been made.
    async fn find(&self, engine: &dyn Engine, base: &ImageInfo) -> Result<Option<ImageInfo>, EngineError> {
        let made = engine.image(&self.name(base)).await?;
        // An agent is told which official image ran, not our own name for what we made of it.
        Ok(made.map(|made| ImageInfo { digest: base.digest.clone(), ..made }))
    }

    /// Slower, but none the worse, where it cannot be made.
    async fn make(&self, engine: &dyn Engine, base: ImageInfo) -> Result<ImageInfo, EngineError> {
        if let Some(made) = self.find(engine, &base).await? {
            return Ok(made);
        }
        let derivation = Derivation {
            base: base.id.clone(),
            name: self.name(&base),
            script: self.script,
            path: self.language.recipe().path,
            instance: self.instance.clone(),
        };
        match engine.derive(&derivation).await {
            Ok(()) => Ok(self.find(engine, &base).await?.unwrap_or(base)),
            Err(error) => {
                warn!(language = %self.language, %error, "could not prepare the image; its programs will start slowly");
                Ok(base)
            }
        }
    }
}

/// What the engine has of an image.
#[derive(Debug)]
pub(super) enum Found {
    Nothing,
    /// Preparing is work, and nobody may want it: it is done when somebody does.
    Unprepared(ImageInfo),
    Ready(ImageInfo),
}

pub(super) async fn look(
    engine: Arc<dyn Engine>,
    image: String,
    ticket: Ticket,
    preparation: Option<Preparation>,
) -> Done {
    let found = async {
        let Some(base) = engine.image(&image).await? else { return Ok(Found::Nothing) };
        let Some(preparation) = preparation else { return Ok(Found::Ready(base)) };
        Ok(preparation.find(engine.as_ref(), &base).await?.map_or(Found::Unprepared(base), Found::Ready))
    };
    let result = found.await.map_err(|error| unavailable(error, &image));
    Done::Image { image, ticket, result }
}

pub(super) async fn pull(
    engine: Arc<dyn Engine>,
    image: String,
    ticket: Ticket,
    preparation: Option<Preparation>,
    notes: mpsc::Sender<Note>,
    cancel: CancellationToken,
) -> Done {
    let result = tokio::select! {
        () = cancel.cancelled() => Err(failed(&image, PullError::Cancelled)),
        result = bring(engine.as_ref(), &image, preparation, &notes) => result.map(Found::Ready),
    };
    Done::Image { image, ticket, result }
}

/// Fetches what is not here, and prepares what needs it.
async fn bring(
    engine: &dyn Engine,
    image: &str,
    preparation: Option<Preparation>,
    notes: &mpsc::Sender<Note>,
) -> Result<ImageInfo, RunError> {
    let find = || async { engine.image(image).await.map_err(|error| unavailable(error, image)) };
    let base = match find().await? {
        Some(here) => here,
        None => {
            fetch(engine, image, notes).await.map_err(|error| failed(image, error))?;
            find().await?.ok_or_else(|| {
                let message = "the engine says it fetched it, but does not have it.".into();
                failed(image, PullError::Other { message })
            })?
        }
    };
    match preparation {
        Some(preparation) => {
            // Nobody listens any more: nobody needs to know.
            let _ = notes.send(Note::Pulling { image: image.to_owned(), figure: PullFigure::PREPARING }).await;
            preparation.make(engine, base).await.map_err(|error| unavailable(error, image))
        }
        None => Ok(base),
    }
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

/// Tells the end of one task from that of another for the same name: of an engine or a setting that was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ticket(u64);

impl Ticket {
    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// What is known of an image, and who has asked for it.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) state: crate::event::ImageState,
    /// A look or a pull is under way.
    pub(super) busy: Option<CancellationToken>,
    /// The latest task's. What an earlier one finds is of no interest.
    pub(super) ticket: Ticket,
    /// The owner's requests; runs that wait for it are in the queue.
    pub(super) asked: Vec<tokio::sync::oneshot::Sender<Result<(), RunError>>>,
}

impl Image {
    pub(super) fn unknown() -> Self {
        Self { state: crate::event::ImageState::Unknown, busy: None, ticket: Ticket::default(), asked: Vec::new() }
    }

    pub(super) fn ready(&self) -> Option<&ImageInfo> {
        match &self.state {
            crate::event::ImageState::Ready(info) => Some(info),
            crate::event::ImageState::Unknown
            | crate::event::ImageState::NotPulled
            | crate::event::ImageState::Pulling(_)
            | crate::event::ImageState::Unprepared(_)
            | crate::event::ImageState::Failed { .. } => None,
        }
    }
}
