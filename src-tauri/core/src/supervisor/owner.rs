//! Requests that only the owner may make: new settings, removal of images, and a look at any live run.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::oneshot;

use crate::engine::{Engine, EngineError, EngineState, EngineTrouble};
use crate::error::RunError;
use crate::language::Language;
use crate::queue::Caps;
use crate::run::RunId;
use crate::settings::Settings;
use crate::tap::Onlooker;

use super::actor::{Actor, Purpose};
use super::image::{self, Preparation};
use super::images::Ticket;
use super::pending::{Pending, Request};
use super::task::Done;
use super::{Supervisor, actor};

const REMOVE_TRIES: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(150);

#[derive(Debug)]
pub(super) enum Command {
    Configure { settings: Box<Settings>, reply: oneshot::Sender<()> },
    CancelPull { language: Language, reply: oneshot::Sender<bool> },
    RemoveImage { language: Language, reply: oneshot::Sender<Result<(), RemoveError>> },
    StopAll { reply: oneshot::Sender<usize> },
    Look { run: RunId, reply: oneshot::Sender<Option<Onlooker>> },
    Request { run: RunId, reply: oneshot::Sender<Option<Request>> },
}

/// The reason why an image was not removed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RemoveError {
    #[error("A program is running in the image {image}.")]
    InUse { image: String },
    #[error("The image {image} is being fetched.")]
    Busy { image: String },
    #[error("{0}")]
    Engine(EngineTrouble),
    #[error("The engine did not remove the image {image}: {reason}.")]
    Refused { image: String, reason: String },
    #[error("Sandtray is shutting down.")]
    ShuttingDown,
}

impl Supervisor {
    /// Applies all settings but the switch. Runs under way keep the limits that they started with.
    pub async fn configure(&self, settings: Settings) {
        let _ = self.owner(|reply| Command::Configure { settings: Box::new(settings), reply }).await;
    }

    /// Cancels a pull. Runs and callers that wait for the image get the error `Cancelled`. False if no pull is under
    /// way.
    pub async fn cancel_pull(&self, language: Language) -> bool {
        self.owner(|reply| Command::CancelPull { language, reply }).await.unwrap_or(false)
    }

    /// Removes an image, and returns once it is gone. Other programs' containers may still use it; the engine refuses
    /// then.
    ///
    /// # Errors
    ///
    /// If the image is in use or busy, the engine is in trouble or refuses, or Sandtray is shutting down.
    pub async fn remove_image(&self, language: Language) -> Result<(), RemoveError> {
        self.owner(|reply| Command::RemoveImage { language, reply }).await.unwrap_or(Err(RemoveError::ShuttingDown))
    }

    /// Ends every run, live or queued, of every client. Returns their number.
    pub async fn stop_all(&self) -> usize {
        self.owner(|reply| Command::StopAll { reply }).await.unwrap_or(0)
    }

    /// A reader of a run's output, live or queued; `None` if there is no such run any more.
    pub async fn look(&self, run: RunId) -> Option<Onlooker> {
        self.owner(|reply| Command::Look { run, reply }).await.ok().flatten()
    }

    /// The request of a run, live or queued; `None` if there is no such run any more.
    pub async fn request(&self, run: RunId) -> Option<Request> {
        self.owner(|reply| Command::Request { run, reply }).await.ok().flatten()
    }

    async fn owner<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, RunError> {
        self.ask(|reply| actor::Command::Owner(command(reply))).await
    }
}

/// The number of runs that may be live: the owner's setting, or the number of cores.
pub fn concurrency(settings: &Settings) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    settings.concurrency.map_or(cores, |runs| runs as usize).max(1)
}

pub(super) fn caps(settings: &Settings) -> Caps {
    Caps { all: settings.queue as usize, per_client: settings.per_client as usize }
}

impl Actor {
    pub(super) fn obey_owner(&mut self, command: Command) {
        // The caller may be gone; the command takes effect all the same.
        match command {
            Command::Configure { settings, reply } => {
                self.configure(*settings);
                self.publish();
                let _ = reply.send(());
            }
            Command::CancelPull { language, reply } => drop(reply.send(self.cancel_pull(language))),
            Command::RemoveImage { language, reply } => self.remove_image(language, reply),
            Command::StopAll { reply } => drop(reply.send(self.stop_all())),
            Command::Look { run, reply } => drop(reply.send(self.look(run))),
            Command::Request { run, reply } => drop(reply.send(self.request(run))),
        }
    }

    fn configure(&mut self, settings: Settings) {
        self.concurrency = concurrency(&settings);
        self.queue.set_caps(caps(&settings));
        self.parts.settings = settings;
        self.walls.doubt_missing();
        self.images.rename(&Language::ALL.map(|language| self.parts.settings.image(language).to_owned()));
    }

    fn cancel_pull(&self, language: Language) -> bool {
        self.images.cancel_pull(self.parts.settings.image(language))
    }

    fn remove_image(&mut self, language: Language, reply: oneshot::Sender<Result<(), RemoveError>>) {
        match self.removable(language) {
            Ok((engine, image, ticket)) => {
                let preparation =
                    Preparation::of(&image, &self.parts.settings, self.limits_of_preparing(), &self.parts.leases);
                let removal = remove(engine, image.clone(), ticket, preparation, reply);
                self.spawn(Purpose::Image(image), removal);
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    fn removable(&mut self, language: Language) -> Result<(Arc<dyn Engine>, String, Ticket), RemoveError> {
        if let EngineState::Trouble(trouble) = self.health() {
            return Err(RemoveError::Engine(trouble));
        }
        let name = self.parts.settings.image(language).to_owned();
        let settings = &self.parts.settings;
        if self.live.values().any(|live| settings.image(live.run.language) == name) {
            return Err(RemoveError::InUse { image: name });
        }
        // Reserved only if there is an engine, because only the end of the removal releases the reservation.
        let held = self.engine.as_ref().and_then(|engine| Some((Arc::clone(engine), self.images.hold(&name)?)));
        match held {
            Some((engine, ticket)) => Ok((engine, name, ticket)),
            None => Err(RemoveError::Busy { image: name }),
        }
    }

    fn stop_all(&mut self) -> usize {
        let waiting: Vec<RunId> = self.queue.iter().map(|pending| pending.spec.id).collect();
        let runs: Vec<RunId> = self.live.keys().copied().chain(waiting).collect();
        runs.into_iter().filter(|run| self.cancel(None, *run)).count()
    }

    fn look(&self, run: RunId) -> Option<Onlooker> {
        let waiting = || self.waiting(run).map(|pending| &pending.progress.tap);
        self.live.get(&run).map(|live| &live.tap).or_else(waiting).map(crate::tap::Tap::onlooker)
    }

    fn request(&self, run: RunId) -> Option<Request> {
        let waiting = || self.waiting(run).map(Pending::request);
        self.live.get(&run).map(|live| live.request.clone()).or_else(waiting)
    }

    fn waiting(&self, run: RunId) -> Option<&Pending> {
        self.queue.iter().map(Box::as_ref).find(|pending| pending.spec.id == run)
    }
}

/// Removes the image, then looks at it again, because the engine may have kept it.
async fn remove(
    engine: Arc<dyn Engine>,
    image: String,
    ticket: Ticket,
    preparation: Option<Preparation>,
    reply: oneshot::Sender<Result<(), RemoveError>>,
) -> Done {
    let removed = remove_both(engine.as_ref(), &image, preparation.as_ref()).await.map_err(|error| match error {
        EngineError::Unavailable(trouble) => RemoveError::Engine(trouble),
        error @ (EngineError::NoImage
        | EngineError::NoContainer
        | EngineError::DeclaresVolumes
        | EngineError::Refused { .. }
        | EngineError::Broken { .. }) => RemoveError::Refused { image: image.clone(), reason: error.to_string() },
    });
    let done = image::look(engine, image, ticket, preparation, 0).await;
    let _ = reply.send(removed);
    done
}

/// Removes the prepared images first; otherwise the engine keeps the layers.
async fn remove_both(engine: &dyn Engine, image: &str, preparation: Option<&Preparation>) -> Result<(), EngineError> {
    let base = match engine.image(image).await {
        // An image that declares volumes is never used, so nothing was made from it. It is removed like any other.
        Err(EngineError::DeclaresVolumes) => None,
        other => other?,
    };
    if let (Some(preparation), Some(base)) = (preparation, base) {
        for made in preparation.reached(engine, &base).await?.names.iter().rev() {
            remove_patiently(engine, made).await?;
        }
    }
    remove_patiently(engine, image).await
}

/// Retries, because the engine refuses until the image's warm containers are gone, and those are being removed now.
async fn remove_patiently(engine: &dyn Engine, image: &str) -> Result<(), EngineError> {
    for _ in 1..REMOVE_TRIES {
        match engine.remove_image(image).await {
            Err(EngineError::Refused { .. }) => tokio::time::sleep(REMOVE_PAUSE).await,
            settled => return settled,
        }
    }
    engine.remove_image(image).await
}
