//! The state and what changes it. Nothing here waits: what takes time is a task, and its end is a message.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::engine::{Engine, EngineState, EngineTrouble, PullError};
use crate::error::RunError;
use crate::event::{Event, ImageState, ImageStatus, LiveRun, Snapshot};
use crate::executor::cancelled_early;
use crate::language::Language;
use crate::pool::Stock;
use crate::queue::{FairQueue, Full};
use crate::run::{ClientId, RunId};
use crate::tap::Tap;

use super::image::{Found, Image, Ticket};
use super::owner;
use super::pending::{Answered, Pending};
use super::task::{self, Done, Note};
use super::{Parts, visible_state};

/// Notes of tasks that may wait; a task that finds no room drops its note.
const NOTES: usize = 256;
/// Until runs have shown how long they take.
const FIRST_GUESS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) enum Command {
    Submit(Box<Pending>),
    /// Without a client: the owner's Stop.
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
        reply: oneshot::Sender<Result<(), RunError>>,
    },
    Owner(owner::Command),
    Shutdown {
        reply: oneshot::Sender<()>,
    },
    /// A caller went away.
    Tidy,
}

pub(super) struct Actor {
    pub(super) parts: Parts,
    pub(super) concurrency: usize,
    pub(super) enabled: bool,
    pub(super) stopping: bool,
    pub(super) engine: Option<Arc<dyn Engine>>,
    pub(super) walls: Walls,
    /// Checks in a row that came to no result.
    pub(super) wall_failures: u32,
    /// What the pool was told last.
    pub(super) stocked: Option<Stock>,
    pub(super) images: BTreeMap<String, Image>,
    pub(super) tickets: Ticket,
    pub(super) queue: FairQueue<Box<Pending>>,
    pub(super) live: HashMap<RunId, Live>,
    /// Mean of recent runs, for telling a refused caller when to come again.
    usual: Duration,
    /// Waiting for the last run to end.
    quiet: Vec<oneshot::Sender<()>>,
    tasks: JoinSet<Done>,
    /// What a task was for, should it panic.
    purposes: HashMap<Id, Purpose>,
    pub(super) notes: (mpsc::Sender<Note>, mpsc::Receiver<Note>),
    snapshots: watch::Sender<Snapshot>,
    events: broadcast::Sender<Event>,
}

pub(super) struct Live {
    pub(super) client: ClientId,
    pub(super) shown: LiveRun,
    pub(super) cancel: CancellationToken,
    /// Kept until the run is in the history: only then onlookers are told that it is over.
    pub(super) tap: Tap,
}

/// Whether the current engine has been seen to hold every wall.
pub(super) enum Walls {
    Unproved,
    Checking,
    Held,
    Missing(EngineTrouble),
}

#[derive(Clone)]
pub(super) enum Purpose {
    Run(RunId),
    Image(String),
    Walls,
    Other,
}

impl Actor {
    pub(super) fn new(parts: Parts, events: broadcast::Sender<Event>) -> (Self, watch::Receiver<Snapshot>) {
        let images = Language::ALL.map(|language| (parts.settings.image(language).to_owned(), Image::unknown()));
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
            walls: Walls::Unproved,
            wall_failures: 0,
            stocked: None,
            images: images.into(),
            tickets: Ticket::default(),
            queue: FairQueue::new(owner::caps(&parts.settings)),
            live: HashMap::new(),
            usual: FIRST_GUESS,
            quiet: Vec::new(),
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
        loop {
            tokio::select! {
                Ok(()) = warm.changed() => {}
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                Ok(()) = self.parts.connections.changed() => self.meet_engine(),
                Some(note) = self.notes.1.recv() => self.hear(note),
                Some(ended) = self.tasks.join_next_with_id() => self.conclude(ended),
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
            Command::Submit(pending) => self.submit(pending),
            Command::Cancel { client, run, reply } => {
                let _ = reply.send(self.cancel(client, run));
            }
            Command::Enable { enabled, reply } => self.enable(enabled, reply),
            Command::Pull { language, reply } => self.pull(language, reply),
            Command::Owner(command) => self.obey_owner(command),
            Command::Shutdown { reply } => {
                self.stopping = true;
                self.end_everything(&RunError::ShuttingDown);
                self.quiet.push(reply);
            }
            Command::Tidy => {}
        }
    }

    fn submit(&mut self, pending: Box<Pending>) {
        if let Some(error) = self.refusal() {
            let _ = pending.reply.send(Err(error));
            return;
        }
        let run_id = pending.spec.id;
        match self.queue.push(pending.client.id, pending) {
            Ok(()) => self.tell(Event::RunQueued { run_id }),
            Err(Full { item: pending, waiting, own }) => {
                let rounds = waiting.div_ceil(self.concurrency).max(1);
                let retry_after = self.usual.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
                let _ = pending.reply.send(Err(RunError::QueueFull { waiting, own, retry_after }));
            }
        }
    }

    fn refusal(&self) -> Option<RunError> {
        if self.stopping {
            return Some(RunError::ShuttingDown);
        }
        if !self.enabled {
            return Some(RunError::Off);
        }
        match self.engine_state() {
            EngineState::Trouble(trouble) => {
                (self.parts.nudge)();
                Some(RunError::Engine(trouble))
            }
            EngineState::Checking | EngineState::Ready(_) => None,
        }
    }

    pub(super) fn cancel(&mut self, client: Option<ClientId>, run: RunId) -> bool {
        let may = |owner: ClientId| client.is_none_or(|client| client == owner);
        if let Some(live) = self.live.get(&run) {
            if may(live.client) {
                live.cancel.cancel();
            }
            return may(live.client);
        }
        let found = self.queue.take_where(|pending| pending.spec.id == run && may(pending.client.id));
        let any = !found.is_empty();
        for pending in found {
            let image = self.parts.settings.image(pending.spec.language).to_owned();
            let outcome = cancelled_early(&pending.spec, image, pending.asked);
            self.answer(pending, Ok(outcome));
        }
        any
    }

    fn enable(&mut self, enabled: bool, reply: oneshot::Sender<()>) {
        if self.enabled != enabled {
            self.enabled = enabled;
            self.tell(Event::EnabledChanged { enabled });
        }
        if enabled {
            self.doubt_walls();
            (self.parts.nudge)();
            let _ = reply.send(());
        } else {
            self.end_everything(&RunError::Off);
            self.quiet.push(reply);
        }
    }

    fn pull(&mut self, language: Language, reply: oneshot::Sender<Result<(), RunError>>) {
        if let EngineState::Trouble(trouble) = self.engine_state() {
            let _ = reply.send(Err(RunError::Engine(trouble)));
            return;
        }
        let name = self.parts.settings.image(language).to_owned();
        let image = self.images.entry(name).or_insert_with(Image::unknown);
        if image.ready().is_some() {
            let _ = reply.send(Ok(()));
        } else {
            image.asked.push(reply);
        }
    }

    /// Kills what runs, refuses what waits, stops fetching.
    fn end_everything(&mut self, error: &RunError) {
        for live in self.live.values() {
            live.cancel.cancel();
        }
        self.refuse_waiting(error, |_| true);
        for image in self.images.values_mut() {
            if let Some(busy) = &image.busy {
                busy.cancel();
            }
        }
    }

    /// The engine came, went or changed.
    fn meet_engine(&mut self) {
        let connection = self.parts.connections.borrow_and_update().clone();
        let same = match (&self.engine, &connection.engine) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !same {
            self.engine = connection.engine;
            self.walls = Walls::Unproved;
            self.wall_failures = 0;
            for image in self.images.values_mut() {
                // What is under way is of the engine that was.
                if let Some(busy) = image.busy.take() {
                    busy.cancel();
                }
                image.ticket = Ticket::default();
                image.state = ImageState::Unknown;
            }
            if let Some(engine) = self.engine.clone() {
                let leases = self.parts.leases.clone();
                let janitor = leases.janitor.clone();
                self.spawn(Purpose::Other, task::sweep(engine, leases, janitor));
            }
        }
        self.tell(Event::EngineChanged { engine: self.engine_state() });
    }

    fn hear(&mut self, note: Note) {
        match note {
            Note::Started(run_id) => {
                if let Some(live) = self.live.get_mut(&run_id) {
                    live.shown.since = SystemTime::now();
                    self.tell(Event::RunStarted { run_id });
                }
            }
            Note::Pulling { image, figure } => {
                if let Some(known) = self.images.get_mut(&image)
                    && matches!(known.state, ImageState::Pulling(_))
                {
                    known.state = ImageState::Pulling(figure);
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
                    // Its caller's channel was dropped with it, which answers the call.
                    Some(Purpose::Run(run)) => drop(self.live.remove(&run)),
                    Some(Purpose::Image(image)) => {
                        let ticket = self.images.get(&image).map(|image| image.ticket).unwrap_or_default();
                        let error = RunError::Internal("fetching the image failed inside Sandtray".into());
                        self.finish(Done::Image { image, ticket, result: Err(error) });
                    }
                    Some(Purpose::Walls) => self.walls = Walls::Unproved,
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
                if let Some(image) = self.images.get_mut(self.parts.settings.image(pending.spec.language)) {
                    image.state = ImageState::NotPulled;
                }
                self.queue.put_back(pending.client.id, pending);
            }
            Done::Image { image, ticket, result } => self.know_image(image, ticket, result),
            Done::Walls { engine, image, result } => self.know_walls(&engine, &image, result),
            Done::Swept | Done::Quiet => {}
        }
    }

    fn know_image(&mut self, name: String, ticket: Ticket, result: Result<Found, RunError>) {
        let Some(image) = self.images.get_mut(&name).filter(|image| image.ticket == ticket) else { return };
        image.busy = None;
        let was_pulling = matches!(image.state, ImageState::Pulling(_));
        match result {
            Ok(Found::Ready(info)) => {
                image.state = ImageState::Ready(info);
                for asked in image.asked.drain(..) {
                    let _ = asked.send(Ok(()));
                }
                if was_pulling {
                    self.tell(Event::PullFinished { image: name });
                }
            }
            Ok(Found::Unprepared(info)) => image.state = ImageState::Unprepared(info),
            Ok(Found::Nothing) => image.state = ImageState::NotPulled,
            Err(error) => {
                image.state = if let RunError::Image { error, .. } = &error {
                    // It may be here all the same: it was being prepared.
                    let cancelled = *error == PullError::Cancelled;
                    if cancelled { ImageState::Unknown } else { ImageState::Failed { error: error.clone() } }
                } else {
                    ImageState::Unknown
                };
                for asked in image.asked.drain(..) {
                    let _ = asked.send(Err(error.clone()));
                }
                if let (true, RunError::Image { error, .. }) = (was_pulling, &error) {
                    self.tell(Event::PullFailed { image: name.clone(), error: error.clone() });
                }
                let settings = self.parts.settings.clone();
                self.refuse_waiting(&error, |pending| settings.image(pending.spec.language) == name);
            }
        }
    }

    /// A wall that was missing may have been so for a reason that the owner has just mended.
    pub(super) fn doubt_walls(&mut self) {
        if matches!(self.walls, Walls::Missing(_)) {
            self.walls = Walls::Unproved;
        }
    }

    fn know_walls(&mut self, engine: &Arc<dyn Engine>, image: &str, result: Result<(), RunError>) {
        if !self.engine.as_ref().is_some_and(|current| Arc::ptr_eq(current, engine)) {
            return;
        }
        match result {
            Ok(()) => {
                self.walls = Walls::Held;
                self.wall_failures = 0;
            }
            Err(RunError::Engine(trouble @ EngineTrouble::WallMissing { .. })) => {
                self.walls = Walls::Missing(trouble.clone());
                self.refuse_waiting(&RunError::Engine(trouble), |_| true);
                self.tell(Event::EngineChanged { engine: self.engine_state() });
            }
            Err(error) => {
                // The image may be what is wrong: it is looked at again, and the next check waits longer.
                self.walls = Walls::Unproved;
                self.wall_failures += 1;
                for known in self.images.values_mut() {
                    if known.busy.is_none() && known.ready().is_some_and(|ready| ready.id == image) {
                        known.state = ImageState::Unknown;
                    }
                }
                (self.parts.nudge)();
                self.refuse_waiting(&error, |_| true);
            }
        }
    }

    pub(super) fn refuse_waiting(&mut self, error: &RunError, matches: impl Fn(&Pending) -> bool) {
        for pending in self.queue.take_where(|pending| matches(pending)) {
            self.answer(pending, Err(error.clone()));
        }
    }

    /// For a run that never had a container.
    pub(super) fn answer(&mut self, pending: Box<Pending>, result: Result<crate::run::Outcome, RunError>) {
        let (run, recorder) = (pending.spec.id, Arc::clone(&self.parts.recorder));
        let task = async move { Done::Run { run, answered: pending.answer(recorder.as_ref(), result).await } };
        self.spawn(Purpose::Run(run), task);
    }

    pub(super) fn spawn(&mut self, purpose: Purpose, task: impl Future<Output = Done> + Send + 'static) {
        let id = self.tasks.spawn(task).id();
        self.purposes.insert(id, purpose);
    }

    /// Tells those who wait for quiet, once nothing runs and nothing is left to remove.
    fn settle(&mut self) {
        if self.quiet.is_empty() || !self.live.is_empty() {
            return;
        }
        let (quiet, janitor) = (std::mem::take(&mut self.quiet), self.parts.leases.janitor.clone());
        self.spawn(Purpose::Other, task::quiet(janitor, quiet));
    }

    fn tell_answer(&mut self, run_id: RunId, answered: Answered) {
        match answered {
            Answered::Ended { outcome, wall } => {
                self.usual = (self.usual * 7 + wall) / 8;
                self.tell(Event::RunFinished { run_id, status: outcome });
            }
            Answered::Refused(error) => {
                if matches!(error, RunError::Engine(_)) {
                    (self.parts.nudge)();
                }
                self.tell(Event::RunRefused { run_id, code: error.code().to_owned() });
            }
        }
    }

    fn tell(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.events.send(event);
    }

    pub(super) fn engine_state(&self) -> EngineState {
        let missing = match &self.walls {
            Walls::Missing(trouble) => Some(trouble),
            Walls::Unproved | Walls::Checking | Walls::Held => None,
        };
        visible_state(&self.parts.connections.borrow(), missing)
    }

    fn publish(&self) {
        let image_status = |language| {
            let image = self.parts.settings.image(language);
            let state = self.images.get(image).map_or(ImageState::Unknown, |image| image.state.clone());
            ImageStatus { language, image: image.to_owned(), state }
        };
        let mut running: Vec<LiveRun> = self.live.values().map(|live| live.shown.clone()).collect();
        running.sort_by_key(|run| run.run_id);
        let snapshot = Snapshot {
            enabled: self.enabled,
            engine: self.engine_state(),
            images: Language::ALL.map(image_status).into(),
            running,
            queued: self.queue.iter().map(|pending| pending.live()).collect(),
            warm: self.parts.leases.pool.warm(),
        };
        self.snapshots.send_if_modified(|current| {
            let changed = *current != snapshot;
            *current = snapshot;
            changed
        });
    }
}
