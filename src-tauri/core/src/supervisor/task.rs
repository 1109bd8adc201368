//! The actor's background work: one task per run, per image, per check. Each reports its end as one [`Done`].

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::engine::{Endpoint, Engine, EngineError, EngineTrouble, ImageInfo, PullError};
use crate::error::RunError;
use crate::event::PullFigure;
use crate::executor::{self, Failed, Progress};
use crate::lease::Lease;
use crate::leases::{Leases, Taken};
use crate::run::{Cancel, Limits, Outcome, RunId};
use crate::settings;

use super::images::{Found, Ticket};
use super::pending::{Answered, Pending};
use super::walls::Check;
use super::{Proof, Recorder, Unproved, WallCheck};

/// The first delay before a retry; doubled for each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Containers that one run may lose before its program starts. Warm ones are not counted.
const MOST_LOST: u32 = 2;
/// How often a run goes back into the queue because the walls were doubted. After that its caller gets an engine error.
const MOST_DOUBTS: u32 = 8;

/// Exponential backoff: an engine that fails quickly would otherwise be asked in a busy loop.
pub(super) async fn pause_after(failures: u32) {
    if let Some(doublings) = failures.checked_sub(1) {
        tokio::time::sleep((FIRST_PAUSE * 2u32.saturating_pow(doublings.min(8))).min(LONGEST_PAUSE)).await;
    }
}

/// The result of a task.
#[derive(Debug)]
pub(super) enum Done {
    Run {
        run: RunId,
        answered: Answered,
    },
    /// The image was gone when the container was to be made; the run goes back into the queue.
    NeedsImage(Box<Pending>),
    Image {
        image: String,
        /// The ticket of the look or the pull that has ended.
        ticket: Ticket,
        result: Result<Found, RunError>,
    },
    /// The walls were doubted before the run had its container; the run goes back into the queue.
    NeedsProof(Box<Pending>),
    Walls {
        /// The id of the image that the probe ran in.
        image: String,
        check: Check,
        result: Result<Proof, Unproved>,
    },
    Swept,
    /// The callers that waited for the last container to go were answered.
    Quiet,
}

/// Progress of a task.
#[derive(Debug)]
pub(super) enum Note {
    Started(RunId),
    Pulling { image: String, figure: PullFigure },
}

/// The parts of a run's task.
pub(super) struct RunTask {
    pub(super) pending: Pending,
    /// Set when the program begins.
    pub(super) started: Arc<OnceLock<SystemTime>>,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) image_name: String,
    pub(super) image: ImageInfo,
    /// Cancelled when the proof of the walls in that image is doubted.
    pub(super) doubted: CancellationToken,
    pub(super) leases: Leases,
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) notes: mpsc::Sender<Note>,
}

impl RunTask {
    pub(super) async fn run(mut self) -> Done {
        let run = self.pending.spec.id;
        let recorder = Arc::clone(&self.recorder);
        let performed = match recorder.ready().await {
            Ok(()) => self.perform().await,
            Err(error) => Err(Failure::Run(error)),
        };
        let result = match performed {
            Err(Failure::NoImage) if !self.pending.retried => {
                self.pending.retried = true;
                return Done::NeedsImage(Box::new(self.pending));
            }
            Err(Failure::Doubted) if self.pending.doubts < MOST_DOUBTS => {
                self.pending.doubts += 1;
                return Done::NeedsProof(Box::new(self.pending));
            }
            Err(failure) => Err(failure.of_run(&self.image_name, self.engine.endpoint())),
            Ok(outcome) => Ok(outcome),
        };
        let answered = self.pending.answer(self.recorder.as_ref(), result).await;
        Done::Run { run, answered }
    }

    async fn perform(&mut self) -> Result<Outcome, Failure> {
        let spec = &self.pending.spec;
        let image = match &self.image.digest {
            // The name of a pinned image contains the digest already.
            Some(digest) if !settings::is_pinned(&self.image_name) => format!("{}@{digest}", self.image_name),
            Some(_) | None => self.image_name.clone(),
        };
        let cancel = self.pending.cancel.clone();
        let mut progress = std::mem::take(&mut self.pending.progress);
        let (started, starts) = oneshot::channel();
        let caller = progress.started.replace(started);
        let (notes, began) = (&self.notes, &self.started);
        let tell = async {
            if starts.await.is_err() {
                return caller;
            }
            began.get_or_init(SystemTime::now);
            // A full channel drops the note; the next snapshot shows the start in any case.
            let _ = notes.try_send(Note::Started(spec.id));
            let _ = caller.map(|caller| caller.send(()));
            None
        };
        let execute = async {
            let result = self.execute(image, &mut progress, &cancel).await;
            drop(progress.started.take());
            result
        };
        let (result, caller) = tokio::join!(execute, tell);
        // Kept in case the run goes back into the queue.
        self.pending.progress = Progress { started: caller, ..progress };
        result
    }

    /// Replaces a container that was lost before the program started: a warm one always, one made for this run once.
    /// The caller does not notice.
    async fn execute(&self, image: String, progress: &mut Progress, cancel: &Cancel) -> Result<Outcome, Failure> {
        let (spec, asked) = (&self.pending.spec, self.pending.asked);
        let cancelled = || executor::cancelled_early(spec, image.clone(), asked, cancel.who());
        let taken = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(cancelled()),
            taken = self.leases.take(&self.engine, &self.image, spec) => taken,
        };
        let (mut lease, mut warm, _busy) = match taken {
            Ok(Taken { lease, warm, busy }) => (Ok(lease), warm, Some(busy)),
            Err(error) => (Err(error), false, None),
        };
        let mut lost = 0;
        loop {
            match self.attempt(lease, &image, progress, cancel).await {
                Err(Failure::Lost(error)) if !warm && lost + 1 >= MOST_LOST => return Err(Failure::Run(error)),
                Err(Failure::Lost(_)) => lost += u32::from(!warm),
                // A warm container may have died of any cause before it was taken, so any error counts as a loss.
                Err(Failure::Run(_)) if warm && progress.started.is_some() => {}
                settled => return settled,
            }
            debug!(run = %spec.id, warm, "a container was dead before its program started; making a new one");
            warm = false;
            lease = tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(cancelled()),
                lease = self.leases.make(&self.engine, &self.image, spec) => lease,
            };
        }
    }

    async fn attempt(
        &self,
        lease: Result<Lease, EngineError>,
        image: &str,
        progress: &mut Progress,
        cancel: &Cancel,
    ) -> Result<Outcome, Failure> {
        let lease = lease.map_err(|error| Failure::of(error, self.engine.endpoint()))?;
        // The container may have been made after the doubt, by an engine that was not checked.
        if self.doubted.is_cancelled() {
            return Err(Failure::Doubted);
        }
        progress.tap.meter(lease.container.meter());
        let (spec, asked) = (&self.pending.spec, self.pending.asked);
        executor::execute(lease, spec, image.to_owned(), asked, progress, cancel).await.map_err(|failed| match failed {
            Failed::Run(error) => Failure::Run(error),
            Failed::Lost(error) => Failure::Lost(error),
        })
    }
}

#[derive(Debug)]
enum Failure {
    NoImage,
    Doubted,
    /// The container was lost before its program started. The error is reported if its replacement is lost too.
    Lost(RunError),
    Run(RunError),
}

impl Failure {
    fn of(error: EngineError, endpoint: &Endpoint) -> Self {
        match error {
            EngineError::NoImage => Self::NoImage,
            EngineError::NoContainer => Self::Lost(RunError::ContainerRemoved),
            error @ (EngineError::Unavailable(_)
            | EngineError::DeclaresVolumes
            | EngineError::Refused { .. }
            | EngineError::Broken { .. }) => Self::Run(run_error(&error, endpoint)),
        }
    }

    /// The error for the run's caller.
    fn of_run(self, image: &str, endpoint: &Endpoint) -> RunError {
        match self {
            Self::NoImage => {
                let message = "it was removed again while the run was set up.".into();
                RunError::Image { image: image.to_owned(), error: PullError::Other { message } }
            }
            Self::Doubted => RunError::Engine(EngineTrouble::NotAnswering { endpoint: endpoint.clone() }),
            Self::Lost(error) | Self::Run(error) => error,
        }
    }
}

/// The run's error for an engine error that concerns a container. Tells an engine that went away from one that refuses.
pub fn run_error(error: &EngineError, endpoint: &Endpoint) -> RunError {
    match error.trouble(endpoint) {
        Some(trouble) => RunError::Engine(trouble),
        None => RunError::Internal(error.to_string()),
    }
}

/// Removes containers that earlier starts left behind, and those that this one has lost.
pub(super) async fn sweep(engine: Arc<dyn Engine>, leases: Leases) -> Done {
    if let Err(error) = leases.janitor.sweep(&engine, &leases.instance).await {
        warn!(%error, "could not look for containers that were left behind");
    }
    Done::Swept
}

pub(super) async fn check_walls(
    wall_check: Arc<dyn WallCheck>,
    engine: Arc<dyn Engine>,
    image: ImageInfo,
    leases: Leases,
    limits: Limits,
    (check, failures): (Check, u32),
) -> Done {
    pause_after(failures).await;
    let result = wall_check.check(&engine, &image, &leases, &limits).await;
    Done::Walls { image: image.id, check, result }
}

/// Answers the callers once no container is left, or once `void` is cancelled.
pub(super) async fn quiet(
    engine: Option<Arc<dyn Engine>>,
    leases: Leases,
    void: CancellationToken,
    waiting: Vec<oneshot::Sender<()>>,
) -> Done {
    let quiet = async {
        leases.janitor.idle().await;
        if let Some(engine) = engine {
            // A container whose creation was never answered has no presence, so a sweep looks for it.
            sweep(engine, leases.clone()).await;
            leases.janitor.idle().await;
        }
    };
    tokio::select! {
        () = quiet => {}
        () = void.cancelled() => {}
    }
    for reply in waiting {
        let _ = reply.send(());
    }
    Done::Quiet
}
