//! What only the owner may ask: settings that hold from now on, images that go, and a look at any live run.

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

/// Why an image is still there.
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
    /// Everything but the switch, from now on: what runs already keeps the limits that it was started with.
    pub async fn configure(&self, settings: Settings) {
        let _ = self.owner(|reply| Command::Configure { settings: Box::new(settings), reply }).await;
    }

    /// Whoever waits for the image is told that it was cancelled. False where no pull is under way.
    pub async fn cancel_pull(&self, language: Language) -> bool {
        self.owner(|reply| Command::CancelPull { language, reply }).await.unwrap_or(false)
    }

    /// Returns once it is gone. An image that is used by nothing of ours may still be used by others; the engine knows.
    pub async fn remove_image(&self, language: Language) -> Result<(), RemoveError> {
        self.owner(|reply| Command::RemoveImage { language, reply }).await.unwrap_or(Err(RemoveError::ShuttingDown))
    }

    /// Ends every run, running or waiting, whoever asked for it. Says how many there were.
    pub async fn stop_all(&self) -> usize {
        self.owner(|reply| Command::StopAll { reply }).await.unwrap_or(0)
    }

    /// The output of a run that runs or waits; `None` where there is no such run any more.
    pub async fn look(&self, run: RunId) -> Option<Onlooker> {
        self.owner(|reply| Command::Look { run, reply }).await.ok().flatten()
    }

    /// What a run that runs or waits was asked to do; `None` where there is no such run any more.
    pub async fn request(&self, run: RunId) -> Option<Request> {
        self.owner(|reply| Command::Request { run, reply }).await.ok().flatten()
    }

    async fn owner<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, RunError> {
        self.ask(|reply| actor::Command::Owner(command(reply))).await
    }
}

/// Runs at once: as many as the owner says, or as the machine has cores.
pub fn concurrency(settings: &Settings) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    settings.concurrency.map_or(cores, |runs| runs as usize).max(1)
}

pub(super) fn caps(settings: &Settings) -> Caps {
    Caps { all: settings.queue as usize, per_client: settings.per_client as usize }
}

impl Actor {
    pub(super) fn obey_owner(&mut self, command: Command) {
        // Whoever asked may be gone; what was asked is done all the same.
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
        // Held only once there is an engine: a removal has to follow, which lets go of it.
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

/// Then looks at what is there: the engine may have kept it.
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

/// First what was made of it, or the engine keeps the layers.
async fn remove_both(engine: &dyn Engine, image: &str, preparation: Option<&Preparation>) -> Result<(), EngineError> {
    let base = match engine.image(image).await {
        // Nothing was made of one that is not used, and it can go like any other.
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

/// Warm containers of the image are being let go of at this moment; until they are gone the engine refuses.
async fn remove_patiently(engine: &dyn Engine, image: &str) -> Result<(), EngineError> {
    for _ in 1..REMOVE_TRIES {
        match engine.remove_image(image).await {
            Err(EngineError::Refused { .. }) => tokio::time::sleep(REMOVE_PAUSE).await,
            settled => return settled,
        }
    }
    engine.remove_image(image).await
}
