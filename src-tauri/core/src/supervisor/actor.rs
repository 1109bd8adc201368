//! The state and what changes it. Nothing here waits: slow work is a task, and the task reports its end as a message.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::engine::{Engine, EngineState, EngineTrouble};
use crate::error::RunError;
use crate::event::{Event, ImageStatus, LiveRun, Snapshot, Waiting};
use crate::executor::cancelled_early;
use crate::language::Language;
use crate::pool::Stock;
use crate::queue::{FairQueue, Full};
use crate::run::{Cancel, ClientId, CutBy, EndedBy, RunId};
use crate::tap::Tap;

use super::Parts;
use super::images::{Found, Images, Settled, Ticket};
use super::owner;
use super::pending::{Answered, Pending, Request, Turn};
use super::task::{Done, Note};
use super::walls::{Check, Walls};

/// Bound on queued notes from tasks. A task drops its note when the channel is full.
const NOTES: usize = 256;
/// Mean run time that is assumed before the first run has ended.
const FIRST_GUESS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Command {
    Submit {
        pending: Box<Pending>,
        accepted: oneshot::Sender<Result<(), RunError>>,
    },
    /// `client` is `None` when the owner stops the run.
    Cancel {
        client: Option<ClientId>,
        run: RunId,
        reply: oneshot::Sender<bool>,
    },
    Enable {
        enabled: bool,
        reply: oneshot::Sender<()>,
    },
    Pull {
        language: Language,
        accepted: oneshot::Sender<Result<(), RunError>>,
        reply: oneshot::Sender<Result<(), RunError>>,
    },
    Owner(owner::Command),
    Shutdown {
        reply: oneshot::Sender<()>,
    },
    /// Sent after a cancel: wakes the actor, which then drops cancelled runs from the queue.
    Tidy,
}

pub(super) struct Actor {
    pub(super) parts: Parts,
    pub(super) concurrency: usize,
    pub(super) enabled: bool,
    pub(super) stopping: bool,
    pub(super) engine: Option<Arc<dyn Engine>>,
    /// The engine's generation at the last update. A new one puts the walls in doubt.
    generation: u64,
    pub(super) walls: Walls,
    /// The stock that the pool was given last.
    pub(super) stocked: Option<Stock>,
    pub(super) images: Images,
    pub(super) queue: FairQueue<Turn, Box<Pending>>,
    pub(super) live: HashMap<RunId, Live>,
    /// Moving average of run times. Gives a refused caller its retry delay.
    usual: Duration,
    /// Replies due once no container is left.
    pub(super) quiet: Vec<oneshot::Sender<()>>,
    /// Cancelled when the switch is turned on again. Ends the wait for the last container, which could otherwise last
    /// as long as runs go on.
    pub(super) noise: CancellationToken,
    pub(super) next_sweep: Instant,
    tasks: JoinSet<Done>,
    /// The purpose of each task, for handling a panic.
    purposes: HashMap<Id, Purpose>,
    pub(super) notes: (mpsc::Sender<Note>, mpsc::Receiver<Note>),
    snapshots: watch::Sender<Snapshot>,
    events: broadcast::Sender<Event>,
}

pub(super) struct Live {
    pub(super) client: ClientId,
    pub(super) run: LiveRun,
    /// The start time of its program; empty until then.
    pub(super) started: Arc<OnceLock<SystemTime>>,
    pub(super) cancel: Cancel,
    /// Kept until the run is in the history, so that readers see end-of-stream only then.
    pub(super) tap: Tap,
    pub(super) request: Request,
}

impl Live {
    fn shown(&self) -> LiveRun {
        match self.started.get() {
            Some(since) => LiveRun { since: *since, ..self.run.clone() },
            None => LiveRun { waiting: Some(Waiting::Starting), ..self.run.clone() },
        }
    }
}

#[derive(Clone)]
pub(super) enum Purpose {
    Run(RunId),
    Image(String),
    Walls(String, Check),
    Other,
}

impl Actor {
    pub(super) fn new(parts: Parts, events: broadcast::Sender<Event>) -> (Self, watch::Receiver<Snapshot>) {
        let images = Images::of(Language::ALL.map(|language| parts.settings.image(language).to_owned()));
        let snapshot = Snapshot {
            enabled: parts.settings.enabled,
            engine: EngineState::Checking,
            images: Vec::new(),
            running: Vec::new(),
            queued: Vec::new(),
            warm: 0,
        };
        let (snapshots, receiver) = watch::channel(snapshot);
        let mut actor = Self {
            concurrency: owner::concurrency(&parts.settings),
            enabled: parts.settings.enabled,
            stopping: false,
            engine: None,
            generation: 0,
            walls: Walls::default(),
            stocked: None,
            images,
            queue: FairQueue::new(owner::caps(&parts.settings)),
            live: HashMap::new(),
            usual: FIRST_GUESS,
            quiet: Vec::new(),
            noise: CancellationToken::new(),
            next_sweep: Instant::now(),
            tasks: JoinSet::new(),
            purposes: HashMap::new(),
            notes: mpsc::channel(NOTES),
            snapshots,
            events,
            parts,
        };
        actor.meet_engine();
        actor.publish();
        (actor, receiver)
    }

    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let mut warm = self.parts.leases.pool.watch();
        let mut overstaying = self.parts.leases.janitor.watch_overstaying();
        let budget = self.parts.budget.clone();
        loop {
            tokio::select! {
                Ok(()) = warm.changed() => {}
                Ok(()) = overstaying.changed() => {}
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                Ok(()) = self.parts.connections.changed() => self.meet_engine(),
                Some(note) = self.notes.1.recv() => self.hear(note),
                Some(ended) = self.tasks.join_next_with_id() => self.conclude(ended),
                // A client has read replies, so its next run may be allowed to start.
                () = budget.taken() => {}
                () = sleep_until(self.next_sweep), if self.engine.is_some() => self.sweep(),
            }
            self.advance();
            self.stock();
            self.publish();
            self.settle();
            if self.stopping && self.tasks.is_empty() {
                break;
            }
        }
        self.tasks.shutdown().await;
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Submit { pending, accepted } => drop(accepted.send(self.submit(pending))),
            Command::Cancel { client, run, reply } => {
                let _ = reply.send(self.cancel(client, run));
            }
            Command::Enable { enabled, reply } => self.enable(enabled, reply),
            Command::Pull { language, accepted, reply } => drop(accepted.send(self.pull(language, reply))),
            Command::Owner(command) => self.obey_owner(command),
            Command::Shutdown { reply } => {
                self.stopping = true;
                self.end_everything(&RunError::ShuttingDown, EndedBy::Shutdown);
                self.quiet.push(reply);
            }
            Command::Tidy => {}
        }
    }

    fn submit(&mut self, pending: Box<Pending>) -> Result<(), RunError> {
        if let Some(error) = self.refusal(pending.spec.language) {
            return Err(error);
        }
        let (run_id, by) = (pending.spec.id, pending.asker());
        match self.queue.push(pending.turn(), pending) {
            Ok(()) => self.tell(Event::RunQueued { run_id, by }),
            Err(Full { waiting, own, .. }) => {
                let rounds = waiting.div_ceil(self.concurrency).max(1);
                let retry_after = self.usual.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
                return Err(RunError::QueueFull { waiting, own, retry_after });
            }
        }
        Ok(())
    }

    fn refusal(&self, language: Language) -> Option<RunError> {
        if self.stopping {
            return Some(RunError::ShuttingDown);
        }
        if !self.enabled {
            return Some(RunError::Off);
        }
        match self.health() {
            EngineState::Trouble(trouble) => {
                (self.parts.nudge)();
                Some(RunError::Engine(trouble))
            }
            EngineState::Checking | EngineState::Ready(_) => {
                self.wall_missing(self.parts.settings.image(language)).map(RunError::Engine)
            }
        }
    }

    pub(super) fn cancel(&mut self, client: Option<ClientId>, run: RunId) -> bool {
        let may = |owner: ClientId| client.is_none_or(|client| client == owner);
        let by = if client.is_some() { EndedBy::Client } else { EndedBy::Owner };
        if let Some(live) = self.live.get(&run) {
            if may(live.client) {
                live.cancel.by(by);
            }
            return may(live.client);
        }
        let found = self.queue.take_where(|pending| pending.spec.id == run && may(pending.client.id));
        let any = !found.is_empty();
        for pending in found {
            let image = self.parts.settings.image(pending.spec.language).to_owned();
            let outcome = cancelled_early(&pending.spec, image, pending.asked, by);
            self.answer(pending, Ok(outcome));
        }
        any
    }

    fn pull(&mut self, language: Language, reply: oneshot::Sender<Result<(), RunError>>) -> Result<(), RunError> {
        if let EngineState::Trouble(trouble) = self.health() {
            return Err(RunError::Engine(trouble));
        }
        self.walls.doubt_missing();
        self.images.ask(self.parts.settings.image(language), reply);
        Ok(())
    }

    /// The engine came, went or changed.
    fn meet_engine(&mut self) {
        let connection = self.parts.connections.borrow_and_update().clone();
        let same = match (&self.engine, &connection.engine) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let again = std::mem::replace(&mut self.generation, connection.generation) != connection.generation;
        if !same || again {
            self.walls.doubt_all();
        }
        if !same {
            self.engine = connection.engine;
            self.images.forget();
            self.sweep();
        }
        // No event if only the generation is new: subscribers need not know that the engine may have been restarted.
        if !same || !again {
            self.tell(Event::EngineChanged { engine: self.engine_state() });
        }
    }

    fn hear(&mut self, note: Note) {
        match note {
            Note::Started(run_id) => {
                if self.live.contains_key(&run_id) {
                    self.tell(Event::RunStarted { run_id });
                }
            }
            Note::Pulling { image, figure } => {
                if self.images.progress(&image, figure) {
                    self.tell(Event::PullProgress { image, figure });
                }
            }
        }
    }

    fn conclude(&mut self, ended: Result<(Id, Done), JoinError>) {
        match ended {
            Ok((id, done)) => {
                self.purposes.remove(&id);
                self.finish(done);
            }
            Err(failure) => {
                error!(%failure, "a task failed");
                match self.purposes.remove(&failure.id()) {
                    // The reply channel was dropped with the task, and that answers the caller.
                    Some(Purpose::Run(run)) => drop(self.live.remove(&run)),
                    Some(Purpose::Image(image)) => {
                        let ticket = self.images.ticket(&image);
                        let error = RunError::Internal("fetching the image failed inside Sandtray".into());
                        self.finish(Done::Image { image, ticket, result: Err(error) });
                    }
                    Some(Purpose::Walls(image, check)) => self.walls.broke_off(&image, check),
                    Some(Purpose::Other) | None => {}
                }
            }
        }
    }

    fn finish(&mut self, done: Done) {
        match done {
            Done::Run { run, answered } => {
                self.live.remove(&run);
                self.tell_answer(run, answered);
            }
            Done::NeedsImage(pending) => {
                self.live.remove(&pending.spec.id);
                self.images.gone(self.parts.settings.image(pending.spec.language));
                self.queue.put_back(pending.turn(), pending);
            }
            Done::Image { image, ticket, result } => self.know_image(image, ticket, result),
            Done::NeedsProof(pending) => {
                self.live.remove(&pending.spec.id);
                self.queue.put_back(pending.turn(), pending);
            }
            Done::Walls { image, check, result } => self.know_walls(&image, check, result),
            Done::Swept | Done::Quiet => {}
        }
    }

    fn know_image(&mut self, name: String, ticket: Ticket, result: Result<Found, RunError>) {
        match self.images.settle(&name, ticket, result) {
            Settled::Nothing => {}
            Settled::Pulled => self.tell(Event::PullFinished { image: name }),
            Settled::Failed { error, pull } => {
                if matches!(error, RunError::Engine(_)) {
                    (self.parts.nudge)();
                }
                if let Some(error) = pull {
                    self.tell(Event::PullFailed { image: name.clone(), error });
                }
                let settings = self.parts.settings.clone();
                self.refuse_waiting(&error, |pending| settings.image(pending.spec.language) == name);
            }
        }
    }

    pub(super) fn refuse_waiting(&mut self, error: &RunError, matches: impl Fn(&Pending) -> bool) {
        for pending in self.queue.take_where(|pending| matches(pending)) {
            self.answer(pending, Err(error.clone()));
        }
    }

    /// Answers a run that never had a container.
    pub(super) fn answer(&mut self, pending: Box<Pending>, result: Result<crate::run::Outcome, RunError>) {
        let (run, recorder) = (pending.spec.id, Arc::clone(&self.parts.recorder));
        let task = async move { Done::Run { run, answered: pending.answer(recorder.as_ref(), result).await } };
        self.spawn(Purpose::Run(run), task);
    }

    pub(super) fn spawn(&mut self, purpose: Purpose, task: impl Future<Output = Done> + Send + 'static) {
        let id = self.tasks.spawn(task).id();
        self.purposes.insert(id, purpose);
    }

    fn tell_answer(&mut self, run_id: RunId, answered: Answered) {
        match answered {
            Answered::Ended { outcome, wall } => {
                self.usual = (self.usual * 7 + wall) / 8;
                self.tell(Event::RunFinished { run_id, status: outcome });
            }
            Answered::CutOff(by) => {
                if by == CutBy::Engine {
                    // The engine may be another one when it comes back.
                    self.walls.doubt_all();
                    (self.parts.nudge)();
                }
                self.tell(Event::RunCutOff { run_id, by });
            }
            Answered::Refused(error) => {
                if let RunError::Engine(trouble) = &error
                    && !matches!(trouble, EngineTrouble::WallMissing { .. })
                {
                    // The engine may be another one when it comes back.
                    self.walls.doubt_all();
                    (self.parts.nudge)();
                }
                self.tell(Event::RunRefused { run_id, code: error.code().to_owned() });
            }
        }
    }

    pub(super) fn tell(&self, event: Event) {
        // Fails only without subscribers.
        let _ = self.events.send(event);
    }

    /// Publishes the snapshot. Called before a change is confirmed too, so that the caller sees it in the snapshot at
    /// once.
    pub(super) fn publish(&self) {
        let image_status = |language| {
            let image = self.parts.settings.image(language);
            let here = self.images.here(image).map(|info| info.id.as_str());
            ImageStatus {
                language,
                image: image.to_owned(),
                state: self.images.state(image).clone(),
                wall_missing: here.and_then(|id| self.walls.missing(id)).map(str::to_owned),
                launcher: here.and_then(|id| self.walls.held(id)).map(|held| held.proof.launcher),
            }
        };
        let mut running: Vec<LiveRun> = self.live.values().map(Live::shown).collect();
        running.sort_by_key(|run| run.run_id);
        let snapshot = Snapshot {
            enabled: self.enabled,
            engine: self.engine_state(),
            images: Language::ALL.map(image_status).into(),
            running,
            queued: self.queued(),
            warm: self.parts.leases.pool.warm(),
        };
        self.snapshots.send_if_modified(|current| {
            let changed = *current != snapshot;
            *current = snapshot;
            changed
        });
    }
}
