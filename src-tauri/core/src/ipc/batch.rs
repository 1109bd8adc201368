//! Answers one `code.batch`: starts its runs in order, a bounded number at a time, and replies once all have ended.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::AsyncWrite;
use tokio::task::{self, JoinError, JoinSet};

use super::call::{self, Wanted};
use super::door::Runs;
use super::outbox::{Answered, Outbox, line};
use crate::budget::{Account, Hold};
use crate::error::RunError;
use crate::protocol::batch::{BatchReply, Finished, Item, Results};
use crate::protocol::reply::{About, RunReply};
use crate::protocol::{Id, Notification, Response};
use crate::run::{Cancel, Client, Outcome, RunSpec, Status};

pub(super) struct Batch<D, W> {
    pub(super) door: D,
    pub(super) client: Client,
    pub(super) outbox: Arc<Outbox<W>>,
    pub(super) id: Id,
    pub(super) specs: Vec<RunSpec>,
    /// At least 1.
    pub(super) at_once: usize,
    pub(super) stop_on_failure: bool,
    pub(super) stream: bool,
    /// Ends the runs that were started and keeps the others from starting.
    pub(super) cancel: Cancel,
    pub(super) answered: Answered,
    /// Counts the bytes of the programs that have not started, and of the results until the reply is written.
    pub(super) hold: Hold,
    pub(super) account: Account,
}

/// The result of one run of a batch.
struct Ended {
    item: Item,
    good: bool,
}

impl<D: Runs, W: AsyncWrite + Unpin + Send + 'static> Batch<D, W> {
    pub(super) async fn answer(mut self) {
        let specs = std::mem::take(&mut self.specs);
        let (id, outbox, answered) = (self.id.clone(), Arc::clone(&self.outbox), self.answered.clone());
        let hold = self.hold.clone();
        let reply = self.perform(specs).await;
        hold.going(reply.bytes());
        let reply = || {
            let (reply, _hold) = (reply, hold);
            line(&Response::new(&id, Ok(reply)))
        };
        // The session notices by itself when the client is gone.
        let _ = outbox.answer(reply, &answered).await;
    }

    async fn perform(self, specs: Vec<RunSpec>) -> BatchReply {
        let batch = Arc::new(self);
        let mut results = Results::new(specs.len(), batch.stream);
        let mut waiting = specs.into_iter().enumerate();
        // Dropping this future drops the set, which ends the runs that are left.
        let mut runs = JoinSet::new();
        let mut indexes: HashMap<task::Id, usize> = HashMap::new();
        let mut failed = None;
        loop {
            let stopped = batch.cancel.is_cancelled() || (batch.stop_on_failure && failed.is_some());
            while !stopped && runs.len() < batch.at_once {
                let Some((index, spec)) = waiting.next() else { break };
                let task = runs.spawn(Arc::clone(&batch).one(index, spec));
                indexes.insert(task.id(), index);
            }
            let Some(joined) = runs.join_next_with_id().await else { break };
            let (task, ended) = settled(joined);
            let Some(index) = indexes.remove(&task) else { continue };
            if !ended.good {
                failed.get_or_insert(index);
            }
            let item = ended.item;
            let kept = results.bytes_with(&item);
            let room = kept.is_none_or(|bytes| batch.hold.keeps(bytes));
            results.put(index, if room { item } else { Item::no_room(index, batch.stream) });
        }
        results.finish(|| not_started(batch.cancel.is_cancelled(), failed))
    }

    /// Performs one run. It counts as running until its client has been told, which bounds the results kept at a time.
    async fn one(self: Arc<Self>, index: usize, spec: RunSpec) -> Ended {
        let about = About { request_id: &self.id, index: Some(index), run_id: spec.id };
        let (client, outbox) = (self.client.clone(), self.outbox.as_ref());
        let kept = self.account.hold();
        let wanted = Wanted { spec, stream: self.stream, hold: kept.clone() };
        let result = call::perform(&self.door, client, outbox, about, wanted, &self.cancel).await;
        let good = matches!(&result, Ok(Outcome { status: Status::Ok, .. }));
        let item = Item::of(result.as_ref().map(|outcome| RunReply::new(about.run_id, outcome)).map_err(Into::into));
        drop(result);
        kept.going(item.bytes());
        if self.stream {
            let _ = self.outbox.send(&Notification::new("code.result", Finished { about, item: &item })).await;
        }
        Ended { item, good }
    }
}

/// A panic in one run becomes an error in its item; the other runs of the batch go on.
fn settled(joined: Result<(task::Id, Ended), JoinError>) -> (task::Id, Ended) {
    joined.unwrap_or_else(|error| {
        tracing::error!(%error, "a run of a batch failed");
        let item = Item::Error(RunError::Internal("the run broke off; the log says more".into()).into());
        (error.id(), Ended { item, good: false })
    })
}

fn not_started(cancelled: bool, failed: Option<usize>) -> String {
    match failed {
        Some(index) if !cancelled => {
            format!("Not started: `runs[{index}]` did not end with ok, and `stop_on_failure` was asked for.")
        }
        Some(_) | None => "Not started: the batch was cancelled.".into(),
    }
}
