//! Looks at an image, and pulls it: one pull for all that wait for it, with its layers folded into one figure.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::engine::pull::{PullFigure, PullFold};
use crate::engine::{Derivation, Engine, EngineError, ImageInfo, InstanceId, PullError};
use crate::error::RunError;
use crate::janitor::Janitor;
use crate::language::Language;
use crate::leases::Leases;
use crate::run::{Limits, RunId};
use crate::settings::Settings;

use super::images::{Found, Ticket};
use super::task::{Done, Note, pause_after};

/// Interval of progress notes. An engine reports each layer many times a second; a window needs ten figures a second.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// The preparation of an image, done once before programs run in it. It has one step for each language that needs one.
/// Each step starts from the result of the previous step.
#[derive(Debug, Clone)]
pub(super) struct Preparation {
    steps: Vec<Step>,
    limits: Limits,
    instance: InstanceId,
    janitor: Janitor,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    language: Language,
    script: &'static str,
}

/// The progress of an image's preparation.
#[derive(Debug)]
pub(super) struct Reached {
    /// The names of the images that were made, in order.
    pub(super) names: Vec<String>,
    /// The latest of these images, or the base if there are none.
    image: ImageInfo,
    /// The next step; `None` if all are done.
    next: Option<Step>,
}

impl Step {
    /// The name of the result. It differs for each base and each script.
    fn name(self, base: &ImageInfo) -> String {
        let hash = Sha256::digest(format!("{}\n{}", base.id, self.script));
        let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("sandtray/{}:{short}", self.language)
    }
}

impl Preparation {
    /// The preparation of this image; `None` if no language that the settings run in it needs one.
    pub(super) fn of(image: &str, settings: &Settings, limits: Limits, leases: &Leases) -> Option<Self> {
        let here = Language::ALL.into_iter().filter(|language| settings.image(*language) == image);
        let step = |language: Language| Some(Step { language, script: language.recipe().prepare? });
        let steps: Vec<Step> = here.filter_map(step).collect();
        let (instance, janitor) = (leases.instance.clone(), leases.janitor.clone());
        (!steps.is_empty()).then_some(Self { steps, limits, instance, janitor })
    }

    /// How far the image is prepared on this engine. Fails if the engine does not say which images are there.
    pub(super) async fn reached(&self, engine: &dyn Engine, base: &ImageInfo) -> Result<Reached, EngineError> {
        let mut reached = Reached { names: Vec::new(), image: base.clone(), next: None };
        for step in &self.steps {
            let name = step.name(&reached.image);
            let Some(made) = engine.image(&name).await? else {
                reached.next = Some(*step);
                break;
            };
            // An agent is told which official image ran, not the name of the image that we made from it.
            reached.image = ImageInfo { digest: base.digest.clone(), ..made };
            reached.names.push(name);
        }
        Ok(reached)
    }

    /// Prepares as far as possible: if a step fails, programs start more slowly but run correctly.
    async fn make(&self, engine: &Arc<dyn Engine>, base: &ImageInfo) -> Result<ImageInfo, EngineError> {
        for _ in &self.steps {
            let Reached { image, next: Some(step), .. } = self.reached(engine.as_ref(), base).await? else { break };
            if let Err(error) = self.derive(engine, step, &image).await {
                let language = step.language;
                warn!(%language, %error, "could not prepare the image; its programs will start slowly");
                return Ok(image);
            }
        }
        Ok(self.reached(engine.as_ref(), base).await?.image)
    }

    /// Runs as a separate task, so that a cancelled caller returns at once. The presence is held until the container is
    /// gone.
    async fn derive(&self, engine: &Arc<dyn Engine>, step: Step, base: &ImageInfo) -> Result<(), EngineError> {
        let derivation = Derivation {
            base: base.id.clone(),
            name: step.name(base),
            script: step.script,
            path: step.language.recipe().path,
            limits: self.limits,
            instance: self.instance.clone(),
            run: RunId::generate(),
        };
        let given_up = CancellationToken::new();
        let _guard = given_up.clone().drop_guard();
        let (engine, presence) = (Arc::clone(engine), self.janitor.expect(derivation.run));
        let whole = tokio::spawn(async move {
            let made = engine.derive(&derivation, &given_up).await;
            drop(presence);
            made
        });
        let broken = |error: JoinError| EngineError::Broken { doing: "prepare an image", message: error.to_string() };
        whole.await.unwrap_or_else(|error| Err(broken(error)))
    }
}

pub(super) async fn look(
    engine: Arc<dyn Engine>,
    image: String,
    ticket: Ticket,
    preparation: Option<Preparation>,
    failures: u32,
) -> Done {
    pause_after(failures).await;
    let found = async {
        let Some(base) = engine.image(&image).await? else { return Ok(Found::Nothing) };
        let Some(preparation) = preparation else { return Ok(Found::Ready(base)) };
        let reached = preparation.reached(engine.as_ref(), &base).await?;
        Ok(if reached.next.is_some() { Found::Unprepared(base) } else { Found::Ready(reached.image) })
    };
    let result = found.await.map_err(|error| unavailable(engine.as_ref(), error, &image));
    Done::Image { image, ticket, result }
}

pub(super) async fn pull(
    engine: Arc<dyn Engine>,
    image: String,
    ticket: Ticket,
    preparation: Option<Preparation>,
    proved: Option<String>,
    notes: mpsc::Sender<Note>,
    cancel: CancellationToken,
) -> Done {
    let result = tokio::select! {
        () = cancel.cancelled() => Err(failed(&image, PullError::Cancelled)),
        result = bring(&engine, &image, preparation, proved, &notes) => result,
    };
    Done::Image { image, ticket, result }
}

/// Fetches a missing image, and prepares one that needs it. Preparing runs programs of the image, so it is done only in
/// the image whose walls are `proved`; one that was just fetched comes back unprepared.
async fn bring(
    engine: &Arc<dyn Engine>,
    image: &str,
    preparation: Option<Preparation>,
    proved: Option<String>,
    notes: &mpsc::Sender<Note>,
) -> Result<Found, RunError> {
    let find = || async { engine.image(image).await.map_err(|error| unavailable(engine.as_ref(), error, image)) };
    let base = match find().await? {
        Some(here) => here,
        None => {
            if let Err(error) = fetch(engine.as_ref(), image, notes).await {
                return Err(blamed(engine.as_ref(), image, error).await);
            }
            find().await?.ok_or_else(|| {
                let message = "the engine says it fetched it, but does not have it.".into();
                failed(image, PullError::Other { message })
            })?
        }
    };
    let Some(preparation) = preparation else { return Ok(Found::Ready(base)) };
    let made = match preparation.reached(engine.as_ref(), &base).await {
        Ok(Reached { next: None, image, .. }) => Ok(Found::Ready(image)),
        Ok(Reached { next: Some(_), .. }) if proved.as_ref() == Some(&base.id) => {
            // Fails only at shutdown, when the receiver is gone.
            let _ = notes.send(Note::Pulling { image: image.to_owned(), figure: PullFigure::PREPARING }).await;
            preparation.make(engine, &base).await.map(Found::Ready)
        }
        Ok(Reached { next: Some(_), .. }) => Ok(Found::Unprepared(base)),
        Err(error) => Err(error),
    };
    made.map_err(|error| unavailable(engine.as_ref(), error, image))
}

async fn fetch(engine: &dyn Engine, image: &str, notes: &mpsc::Sender<Note>) -> Result<(), PullError> {
    let mut events = engine.pull(image);
    let mut fold = PullFold::default();
    let mut told = Instant::now() - TELL_EVERY;
    while let Some(event) = events.next().await {
        let figure = fold.apply(&event?);
        if told.elapsed() >= TELL_EVERY {
            told = Instant::now();
            // A full channel drops this figure; a later one replaces it.
            let _ = notes.try_send(Note::Pulling { image: image.to_owned(), figure });
        }
    }
    Ok(())
}

/// The error to report for a failed pull. A pull also breaks off when the engine goes away, so the engine is asked.
async fn blamed(engine: &dyn Engine, image: &str, error: PullError) -> RunError {
    let away = match &error {
        PullError::NoNetwork | PullError::Other { .. } => {
            engine.info().await.err().and_then(|error| error.trouble(engine.endpoint()))
        }
        PullError::NoSuchImage
        | PullError::RateLimited
        | PullError::Denied
        | PullError::DiskFull
        | PullError::Cancelled
        | PullError::DeclaresVolumes => None,
    };
    away.map_or_else(|| failed(image, error), RunError::Engine)
}

fn failed(image: &str, error: PullError) -> RunError {
    RunError::Image { image: image.to_owned(), error }
}

fn unavailable(engine: &dyn Engine, error: EngineError, image: &str) -> RunError {
    match (error.trouble(engine.endpoint()), error) {
        (Some(trouble), _) => RunError::Engine(trouble),
        (None, EngineError::DeclaresVolumes) => failed(image, PullError::DeclaresVolumes),
        (None, error) => failed(image, PullError::Other { message: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineTrouble;
    use crate::engine::fake::Fake;

    #[test]
    fn an_engine_that_hangs_up_says_nothing_of_an_image() {
        let (engine, image) = (Fake::new(), "python:3.12-slim");
        let endpoint = engine.endpoint().clone();
        let broke = EngineError::Broken { doing: "look for an image", message: "connection closed".into() };
        let trouble = RunError::Engine(EngineTrouble::NotAnswering { endpoint });
        assert_eq!(unavailable(&engine, broke, image), trouble);
        let refused = EngineError::Refused { doing: "look for an image", message: "no".into() };
        let message = refused.to_string();
        assert_eq!(unavailable(&engine, refused, image), failed(image, PullError::Other { message }));
        let volumes = failed(image, PullError::DeclaresVolumes);
        assert_eq!(unavailable(&engine, EngineError::DeclaresVolumes, image), volumes);
    }
}
