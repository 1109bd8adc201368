//! Removes containers. Whoever lets go of a container, on whatever path, it ends up here; somebody always awaits its end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::engine::{ContainerId, Engine, EngineError};

/// Removals at once. Each costs the engine about 30 ms of a CPU.
const WORKERS: usize = 4;
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// Then the next sweep has to find it.
const ATTEMPTS: u32 = 12;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Janitor {
    /// Not bounded by itself: one entry for each container that exists, and those are bounded by who makes them.
    jobs: mpsc::UnboundedSender<Job>,
    pending: Arc<watch::Sender<usize>>,
}

#[derive(Debug)]
struct Job {
    engine: Arc<dyn Engine>,
    id: ContainerId,
}

impl Janitor {
    /// The task ends when it is cancelled; what is pending then is left to the next start's sweep.
    pub fn spawn(cancel: CancellationToken) -> (Self, tokio::task::JoinHandle<()>) {
        let (jobs, queue) = mpsc::unbounded_channel();
        let pending = Arc::new(watch::Sender::new(0));
        let task = tokio::spawn(work(queue, Arc::clone(&pending), cancel));
        (Self { jobs, pending }, task)
    }

    /// Never blocks: it is called when things are dropped.
    pub fn discard(&self, engine: Arc<dyn Engine>, id: ContainerId) {
        self.pending.send_modify(|count| *count += 1);
        if self.jobs.send(Job { engine, id }).is_err() {
            self.pending.send_modify(|count| *count -= 1);
        }
    }

    /// Returns once nothing is left to remove.
    pub async fn idle(&self) {
        // It cannot fail: this handle holds the sender.
        let _ = self.pending.subscribe().wait_for(|count| *count == 0).await;
    }
}

async fn work(mut queue: mpsc::UnboundedReceiver<Job>, pending: Arc<watch::Sender<usize>>, cancel: CancellationToken) {
    let mut workers = JoinSet::new();
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            Some(_) = workers.join_next(), if !workers.is_empty() => pending.send_modify(|count| *count -= 1),
            job = queue.recv(), if workers.len() < WORKERS => match job {
                Some(job) => drop(workers.spawn(remove(job))),
                None if workers.is_empty() => break,
                None => {
                    let _ = workers.join_next().await;
                    pending.send_modify(|count| *count -= 1);
                }
            },
        }
    }
}

async fn remove(job: Job) {
    let mut pause = FIRST_RETRY;
    for _ in 0..ATTEMPTS {
        match job.engine.remove(&job.id).await {
            Ok(()) | Err(EngineError::NoContainer) => return,
            Err(error) => debug!(container = %job.id, %error, "could not remove a container yet"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_RETRY);
    }
    warn!(container = %job.id, "could not remove a container; the next sweep will try again");
}
