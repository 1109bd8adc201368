//! What a session can do with the rest of the product. It can change no setting, so no agent can turn anything on.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::watch;

use crate::budget::{Budget, Hold};
use crate::error::RunError;
use crate::event::Snapshot;
use crate::history::{History, HistoryError, HistoryQuery, Page, Trouble};
use crate::protocol::request::HistoryRequest;
use crate::run::{Cancel, Client, ClientId, Limits, Outcome, RunId, RunSpec};
use crate::supervisor::{Progress, Supervisor};
use crate::visitors::Visitors;

/// Least interval between two lists of one client process. A list costs more than a call and would slow down others.
const LIST_EVERY: Duration = Duration::from_millis(100);

/// The backend of a session. It is a trait, so that a session can be tested without an engine.
pub trait Runs: Clone + Send + Sync + 'static {
    /// Performs a run. `cancel` ends it, and so does dropping the future.
    fn run(
        &self,
        spec: RunSpec,
        client: Client,
        progress: Progress,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<Outcome, RunError>> + Send;

    fn cancel(&self, client: ClientId, run: RunId) -> impl Future<Output = bool> + Send;

    /// The state of the service; the receiver holds the latest snapshot.
    fn watch(&self) -> watch::Receiver<Snapshot>;

    /// The owner's limits as they are now.
    fn limits(&self) -> Limits;

    /// How many runs of one batch to hand over at a time. More would only wait, or be refused.
    fn at_once(&self) -> usize;

    /// A page of past runs as JSON, `{runs, next}`: figures only, neither code nor output. `hold` counts its bytes once
    /// they are read.
    fn history(
        &self,
        request: HistoryRequest,
        hold: Hold,
    ) -> impl Future<Output = Result<Box<RawValue>, RunError>> + Send;

    /// Set while runs cannot be recorded, or not in full.
    fn history_trouble(&self) -> Option<Trouble>;

    /// The memory budget of all clients.
    fn budget(&self) -> Budget;

    /// The registry of clients that the owner sees.
    fn visitors(&self) -> Visitors;
}

/// The backend in the service: supervisor, settings and history.
#[derive(Clone)]
pub struct Door {
    pub supervisor: Supervisor,
    pub limits: Arc<dyn Fn() -> Limits + Send + Sync>,
    pub at_once: Arc<dyn Fn() -> usize + Send + Sync>,
    pub history: History,
    pub budget: Budget,
    pub visitors: Visitors,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl Runs for Door {
    async fn run(
        &self,
        spec: RunSpec,
        client: Client,
        progress: Progress,
        cancel: &Cancel,
    ) -> Result<Outcome, RunError> {
        self.supervisor.submit(spec, client, progress, cancel).await?.wait().await
    }

    async fn cancel(&self, client: ClientId, run: RunId) -> bool {
        self.supervisor.cancel(client, run).await
    }

    fn watch(&self) -> watch::Receiver<Snapshot> {
        self.supervisor.watch()
    }

    fn limits(&self) -> Limits {
        (self.limits)()
    }

    fn at_once(&self) -> usize {
        (self.at_once)()
    }

    fn history_trouble(&self) -> Option<Trouble> {
        self.history.troubles().borrow().clone()
    }

    fn budget(&self) -> Budget {
        self.budget.clone()
    }

    fn visitors(&self) -> Visitors {
        self.visitors.clone()
    }

    async fn history(&self, request: HistoryRequest, hold: Hold) -> Result<Box<RawValue>, RunError> {
        let fault = |_| RunError::invalid("before", "`before` is not the `next` of another page.");
        let before = request.before.map(|text| text.parse().map_err(fault)).transpose()?;
        hold.turn(LIST_EVERY).await;
        let query = HistoryQuery { before, limit: request.limit as usize, ..HistoryQuery::default() };
        let read = move |page: Page| {
            let page = to_raw_value(&page).map_err(|error| RunError::Internal(error.to_string()))?;
            // Checked on the reading thread, so that concurrent requests cannot all pass the check.
            if !hold.may_begin() {
                return Err(RunError::NoRoom { own: true });
            }
            hold.going(page.get().len());
            Ok(page)
        };
        self.history.read(query, read).await.map_err(unreadable)?
    }
}

/// Maps a failed read to an error. Its message is the history's own, which names the cause: a timeout or the file.
fn unreadable(error: HistoryError) -> RunError {
    let hint = match &error {
        HistoryError::Closed => return RunError::ShuttingDown,
        HistoryError::Interrupted => "Try again in about 1 s.",
        HistoryError::DiskFull
        | HistoryError::Sql(_)
        | HistoryError::Unusable(_)
        | HistoryError::File { .. }
        | HistoryError::Thread(_) => "Try again; Sandtray's log says more.",
    };
    RunError::History { message: error.to_string(), hint: hint.into() }
}
