//! The single owner of the state: the switch, the queue, the live runs, the engine, the images. [`Supervisor`] is the
//! handle for callers. [`actor`] and [`schedule`] decide, one message at a time; tasks do the work and report back.

mod actor;
mod image;
mod images;
mod owner;
mod pending;
mod proving;
mod quiet;
mod schedule;
mod task;
mod waiting;
mod walls;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::budget::Budget;
use crate::engine::health::Connection;
use crate::engine::walls::Launcher;
use crate::engine::{Engine, ImageInfo};
use crate::error::RunError;
use crate::event::{Event, Snapshot};
use crate::executor::Asked;
pub use crate::executor::Progress;
use crate::language::Language;
use crate::leases::Leases;
use crate::run::{Cancel, Client, ClientId, EndedBy, Limits, Outcome, RunId, RunSpec};
use crate::settings::Settings;
use crate::title;

use actor::{Actor, Command};
pub use owner::{RemoveError, concurrency};
use pending::Pending;
pub use pending::Request;
pub use task::run_error;

/// Bound on messages to the actor. A sender waits for room, so none is lost.
const COMMANDS: usize = 256;
/// Events that a slow receiver may fall behind.
const EVENTS: usize = 256;
/// Bound on shutdown, whatever the engine does. The next start sweeps the containers that are left.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// The handle of a connection. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Supervisor {
    commands: mpsc::Sender<Command>,
    snapshots: watch::Receiver<Snapshot>,
    events: broadcast::Sender<Event>,
}

/// The parts that the supervisor is made of.
pub struct Parts {
    pub settings: Settings,
    pub leases: Leases,
    pub recorder: Arc<dyn Recorder>,
    pub wall_check: Arc<dyn WallCheck>,
    pub connections: watch::Receiver<Connection>,
    /// Checks the engine now instead of at the next interval.
    pub nudge: Arc<dyn Fn() + Send + Sync>,
    /// The budget for the clients that ask for runs.
    pub budget: Budget,
}

/// Writes finished runs to the history before their callers get the outcome.
#[async_trait]
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Waits until runs may start. Returns at once while the history can be written.
    ///
    /// # Errors
    ///
    /// If runs may not start; the run then gets this error.
    async fn ready(&self) -> Result<(), RunError>;

    /// Returns when the record would survive a crash of this process; false if it could not be written.
    async fn record(&self, record: Record<'_>) -> bool;
}

#[derive(Debug)]
pub struct Record<'a> {
    pub spec: &'a RunSpec,
    pub client: &'a Client,
    pub asked: SystemTime,
    pub result: Result<&'a Outcome, &'a RunError>,
}

/// Proves with a real run that an engine holds every wall around the programs of an image.
#[async_trait]
pub trait WallCheck: fmt::Debug + Send + Sync {
    /// Checks one image. It has a time limit.
    ///
    /// # Errors
    ///
    /// If a wall is missing, the image is gone, or the check gave no result.
    async fn check(
        &self,
        engine: &Arc<dyn Engine>,
        image: &ImageInfo,
        leases: &Leases,
        limits: &Limits,
    ) -> Result<Proof, Unproved>;
}

/// The result of a check that found every wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    pub launcher: Launcher,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Unproved {
    /// The name of the wall. It ends a sentence about missing walls.
    Missing(String),
    /// The image is gone.
    NoImage,
    /// The check failed and says nothing about the walls.
    Failed(RunError),
}

impl Supervisor {
    /// The task ends after [`Supervisor::shutdown`], or when the last handle is gone.
    pub fn spawn(parts: Parts) -> (Self, JoinHandle<()>) {
        let (commands, queue) = mpsc::channel(COMMANDS);
        let events = broadcast::Sender::new(EVENTS);
        let (actor, snapshots) = Actor::new(parts, events.clone());
        let task = tokio::spawn(actor.run(queue));
        (Self { commands, snapshots, events }, task)
    }

    /// Queues the run. `cancel` ends it, whether it waits or runs, and so does dropping the handle.
    ///
    /// # Errors
    ///
    /// If the run is not taken on: the capability is off, the engine is in trouble, or the queue is full.
    pub async fn submit(
        &self,
        spec: RunSpec,
        client: Client,
        progress: Progress,
        cancel: &Cancel,
    ) -> Result<RunHandle, RunError> {
        let cancel = cancel.child();
        let abandon = Abandon { cancel: cancel.clone(), commands: self.commands.clone() };
        let (reply, answer) = oneshot::channel();
        let asked = Asked { at: Instant::now(), wall_clock: SystemTime::now() };
        let hold = progress.hold.clone();
        let title = title::beside(spec.label.as_deref(), spec.language, &spec.code);
        let spec = Arc::new(spec);
        let pending = Pending { spec, title, client, asked, progress, hold, reply, cancel, retried: false, doubts: 0 };
        self.ask(|accepted| Command::Submit { pending: Box::new(pending), accepted }).await??;
        Ok(RunHandle { answer, abandon })
    }

    /// Ends one of the client's own runs; its caller gets the verdict `cancelled`. False if the client has no such run.
    pub async fn cancel(&self, client: ClientId, run: RunId) -> bool {
        self.ask(|reply| Command::Cancel { client: Some(client), run, reply }).await.unwrap_or(false)
    }

    /// The owner's Stop: ends a run of any client.
    pub async fn stop(&self, run: RunId) -> bool {
        self.ask(|reply| Command::Cancel { client: None, run, reply }).await.unwrap_or(false)
    }

    /// Turns the switch. Off kills live runs, refuses queued ones, and returns once no container is left.
    pub async fn set_enabled(&self, enabled: bool) {
        let _ = self.ask(|reply| Command::Enable { enabled, reply }).await;
    }

    /// Pulls a language's image ahead of its first run, or joins a pull that is under way. The pull goes on if its
    /// handle is dropped.
    ///
    /// # Errors
    ///
    /// If the engine is in trouble.
    pub async fn start_pull(&self, language: Language) -> Result<PullHandle, RunError> {
        let (reply, answer) = oneshot::channel();
        self.ask(|accepted| Command::Pull { language, accepted, reply }).await??;
        Ok(PullHandle { answer })
    }

    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.borrow().clone()
    }

    /// Follows the snapshot. A slow receiver sees the latest state only.
    pub fn watch(&self) -> watch::Receiver<Snapshot> {
        self.snapshots.clone()
    }

    /// A receiver that falls behind is told how many events it lost. It should then take a snapshot.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Refuses new runs, kills live ones, and returns once no container is left, after five seconds at the latest.
    pub async fn shutdown(&self) {
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, self.ask(|reply| Command::Shutdown { reply })).await;
    }

    async fn send(&self, command: Command) -> Result<(), RunError> {
        self.commands.send(command).await.map_err(|_| RunError::ShuttingDown)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, RunError> {
        let (reply, answer) = oneshot::channel();
        self.send(command(reply)).await?;
        answer.await.map_err(|_| RunError::ShuttingDown)
    }
}

/// A run that was taken on. Dropping the handle cancels the run.
#[derive(Debug)]
pub struct RunHandle {
    answer: oneshot::Receiver<Result<Outcome, RunError>>,
    abandon: Abandon,
}

impl RunHandle {
    /// Waits for the outcome. The run is in the history before this returns.
    ///
    /// # Errors
    ///
    /// If the program did not run, or was cut off.
    pub async fn wait(mut self) -> Result<Outcome, RunError> {
        let answer = tokio::select! {
            biased;
            answer = &mut self.answer => answer,
            () = self.abandon.cancel.cancelled() => {
                self.abandon.wake();
                self.answer.await
            }
        };
        answer.unwrap_or_else(|_| {
            let stopped = self.abandon.commands.is_closed();
            let failed = || RunError::Internal("the run ended without an answer".into());
            Err(if stopped { RunError::ShuttingDown } else { failed() })
        })
    }
}

/// A pull that was requested.
#[derive(Debug)]
pub struct PullHandle {
    answer: oneshot::Receiver<Result<(), RunError>>,
}

impl PullHandle {
    /// Waits until the image is present.
    ///
    /// # Errors
    ///
    /// If the image could not be pulled.
    pub async fn wait(self) -> Result<(), RunError> {
        self.answer.await.unwrap_or(Err(RunError::ShuttingDown))
    }
}

/// Drop guard: cancels the run when its handle is dropped.
#[derive(Debug)]
struct Abandon {
    cancel: Cancel,
    commands: mpsc::Sender<Command>,
}

impl Abandon {
    /// Wakes the actor, so that it drops cancelled runs from the queue. A full channel means that it is awake and will
    /// look anyway.
    fn wake(&self) {
        let _ = self.commands.try_send(Command::Tidy);
    }
}

impl Drop for Abandon {
    fn drop(&mut self) {
        self.cancel.by(EndedBy::ClientLeft);
        self.wake();
    }
}

#[cfg(test)]
mod tests;
