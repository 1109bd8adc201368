//! A run that waits for its turn, and the single way to answer its caller.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::budget::Hold;
use crate::error::RunError;
use crate::event::{Asker, LiveRun};
use crate::executor::{Asked, Progress};
use crate::run::{Cancel, Client, ClientId, CutBy, Outcome, RunSpec};

use super::{Record, Recorder};

#[derive(Debug)]
pub(super) struct Pending {
    /// Shared with readers on the owner's side.
    pub(super) spec: Arc<RunSpec>,
    /// The title shown when the run has no label.
    pub(super) title: Option<String>,
    pub(super) client: Client,
    pub(super) asked: Asked,
    pub(super) progress: Progress,
    /// The same hold as in `progress`, which moves to the run's task.
    pub(super) hold: Hold,
    pub(super) reply: oneshot::Sender<Result<Outcome, RunError>>,
    pub(super) cancel: Cancel,
    /// Set once the image was gone when the container was to be made. The image is then pulled again, but only once.
    pub(super) retried: bool,
    /// How often the proof of the walls was doubted while the run was set up.
    pub(super) doubts: u32,
}

/// The unit of fairness in the queue: one client process, or one of the owner's own runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Turn {
    Account(u64),
    Client(ClientId),
}

impl Pending {
    pub(super) fn turn(&self) -> Turn {
        self.hold.account().map_or(Turn::Client(self.client.id), Turn::Account)
    }

    /// Writes the history, then replies. Returns how the run ended, for the event that follows.
    pub(super) async fn answer(self, recorder: &dyn Recorder, mut result: Result<Outcome, RunError>) -> Answered {
        let Self { spec, client, asked, reply, hold, .. } = self;
        let record = Record { spec: &spec, client: &client, asked: asked.wall_clock, result: result.as_ref() };
        let recorded = recorder.record(record).await;
        match &mut result {
            Ok(outcome) => outcome.recorded = recorded,
            Err(RunError::Interrupted(cut)) => cut.recorded = recorded,
            // The other runs did not happen, so their replies carry no `recorded` mark.
            Err(_) => {}
        }
        let answered = match &result {
            Ok(outcome) => Answered::Ended { outcome: outcome.status, wall: outcome.wall },
            Err(RunError::Interrupted(cut)) => Answered::CutOff(cut.by),
            Err(error) => Answered::Refused(error.clone()),
        };
        // Counted before the next run starts, because its start depends on this client's unread bytes.
        hold.going(result.as_ref().map_or_else(RunError::weight, Outcome::weight));
        // Fails if the caller was cancelled; the run is in the history all the same.
        let _ = reply.send(result);
        answered
    }

    pub(super) fn asker(&self) -> Asker {
        let Client { id, name, program, .. } = &self.client;
        Asker { name: name.clone(), program: program.clone(), own: id.is_of_owner() }
    }

    /// The request, for the owner to look at.
    pub(super) fn request(&self) -> Request {
        Request { spec: Arc::clone(&self.spec), client: self.client.clone() }
    }

    pub(super) fn live(&self) -> LiveRun {
        LiveRun {
            run_id: self.spec.id,
            language: self.spec.language,
            client: self.client.name.clone(),
            program: self.client.program.clone(),
            label: self.spec.label.clone(),
            title: self.title.clone(),
            since: self.asked.wall_clock,
            limit_seconds: self.spec.limits.wall().as_secs_f64(),
            waiting: None,
        }
    }
}

/// The request of a run, and its client. Shares the bytes instead of copying them.
#[derive(Debug, Clone)]
pub struct Request {
    pub spec: Arc<RunSpec>,
    pub client: Client,
}

#[derive(Debug)]
pub(super) enum Answered {
    Ended { outcome: crate::run::Status, wall: std::time::Duration },
    CutOff(CutBy),
    Refused(RunError),
}
