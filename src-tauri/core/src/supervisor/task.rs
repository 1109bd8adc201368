//! What the actor has done for it: one task per run, per image, per check. Each reports back as one [`Done`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::engine::{Engine, EngineError, ImageInfo};
use crate::error::RunError;
use crate::event::PullFigure;
use crate::executor::{self, Progress};
use crate::leases::{Leases, Taken};
use crate::run::{Limits, Outcome, RunId};
use crate::settings;

use super::images::{Found, Ticket};
use super::pending::{Answered, Pending};
use super::walls::Check;
use super::{Proof, Recorder, Unproved, WallCheck};

/// Before something that came to no result is tried again; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// After so many failures in a row: not at once, or an engine that fails quickly would be asked in a spin.
pub(super) async fn pause_after(failures: u32) {
    if let Some(doublings) = failures.checked_sub(1) {
        tokio::time::sleep((FIRST_PAUSE * 2u32.saturating_pow(doublings.min(8))).min(LONGEST_PAUSE)).await;
    }
}

/// The end of a task.
#[derive(Debug)]
pub(super) enum Done {
    Run {
        run: RunId,
        answered: Answered,
    },
    /// The image went away between the look at it and the container; the run goes back into the queue.
    NeedsImage(Box<Pending>),
    Image {
        image: String,
        /// Of the look or the pull that this is the end of.
        ticket: Ticket,
        result: Result<Found, RunError>,
    },
    /// The engine's walls were doubted before the run had its container: it goes back into the queue.
    NeedsProof(Box<Pending>),
    Walls {
        /// The id of the image that the probe ran in.
        image: String,
        check: Check,
        result: Result<Proof, Unproved>,
    },
    Swept,
    /// Those who waited for the last container to go have been told.
    Quiet,
}

/// Something worth telling while a task goes on.
#[derive(Debug)]
pub(super) enum Note {
    Started(RunId),
    Pulling { image: String, figure: PullFigure },
}

/// What a run's task needs.
pub(super) struct RunTask {
    pub(super) pending: Pending,
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
            Err(Failure::Doubted) => return Done::NeedsProof(Box::new(self.pending)),
            Err(failure) => Err(failure.into()),
            Ok(outcome) => Ok(outcome),
        };
        let answered = self.pending.answer(self.recorder.as_ref(), result).await;
        Done::Run { run, answered }
    }

    async fn perform(&mut self) -> Result<Outcome, Failure> {
        let spec = &self.pending.spec;
        let image = match &self.image.digest {
            // A pinned image has the digest in its name.
            Some(digest) if !settings::is_pinned(&self.image_name) => format!("{}@{digest}", self.image_name),
            Some(_) | None => self.image_name.clone(),
        };
        let cancel = self.pending.cancel.clone();
        let taken = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(executor::cancelled_early(spec, image, self.pending.asked)),
            taken = self.leases.take(&self.engine, &self.image, spec) => taken.map_err(Failure::of)?,
        };
        // A new or a warm container may have been made after the doubt, by an engine that was not checked.
        if self.doubted.is_cancelled() {
            return Err(Failure::Doubted);
        }
        self.pending.progress.tap.meter(taken.lease.container.meter());
        let mut progress = std::mem::take(&mut self.pending.progress);
        let (started, starts) = oneshot::channel();
        let caller = progress.started.replace(started);
        let notes = &self.notes;
        let tell = async {
            if starts.await.is_ok() {
                // Full: many notes are under way already, and the snapshot shows the run in any case.
                let _ = notes.try_send(Note::Started(spec.id));
                let _ = caller.map(|caller| caller.send(()));
            }
        };
        let execute = self.execute(taken, image, progress, &cancel);
        let (result, ()) = tokio::join!(execute, tell);
        result
    }

    /// A warm container that turns out to be dead is made good by a new one, and the caller notices nothing.
    async fn execute(
        &self,
        taken: Taken,
        image: String,
        mut progress: Progress,
        cancel: &CancellationToken,
    ) -> Result<Outcome, Failure> {
        let (spec, asked) = (&self.pending.spec, self.pending.asked);
        let Taken { lease, warm, busy: _busy } = taken;
        let result = executor::execute(lease, spec, image.clone(), asked, &mut progress, cancel).await;
        let may_have_died = warm && result.is_err() && progress.started.is_some();
        if !may_have_died {
            return result.map_err(Failure::Run);
        }
        debug!(run = %spec.id, "a warm container was dead; making a new one");
        let lease = tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(executor::cancelled_early(spec, image, asked)),
            lease = self.leases.make(&self.engine, &self.image, spec) => lease.map_err(Failure::of)?,
        };
        if self.doubted.is_cancelled() {
            let message = "the engine was started again while the run was set up; run it once more".into();
            return Err(Failure::Run(RunError::Internal(message)));
        }
        progress.tap.meter(lease.container.meter());
        executor::execute(lease, spec, image, asked, &mut progress, cancel).await.map_err(Failure::Run)
    }
}

enum Failure {
    NoImage,
    Doubted,
    Run(RunError),
}

impl Failure {
    fn of(error: EngineError) -> Self {
        match error {
            EngineError::NoImage => Self::NoImage,
            EngineError::Unavailable(trouble) => Self::Run(RunError::Engine(trouble)),
            error @ (EngineError::NoContainer
            | EngineError::DeclaresVolumes
            | EngineError::Refused { .. }
            | EngineError::Broken { .. }) => Self::Run(RunError::Internal(error.to_string())),
        }
    }
}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoImage => Self::Internal("the image was removed while it was in use".into()),
            Failure::Doubted => Self::Internal("the engine changed while the run was set up".into()),
            Failure::Run(error) => error,
        }
    }
}

/// Removes what earlier starts of this service left behind, and what this one has lost.
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

/// Answers once no container is left, or once that is no longer what is wanted.
pub(super) async fn quiet(
    engine: Option<Arc<dyn Engine>>,
    leases: Leases,
    void: CancellationToken,
    waiting: Vec<oneshot::Sender<()>>,
) -> Done {
    let quiet = async {
        leases.janitor.idle().await;
        if let Some(engine) = engine {
            // One whose making was never answered is in nobody's book.
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
