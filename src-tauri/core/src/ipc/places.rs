//! Admits connections: limits them in total and per process, and picks the one to close when all places are taken.
//! Only the listener's task decides; sessions just record their activity.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::task::{self, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{ACCEPT_PAUSE, FAREWELL, Peer};
use crate::budget::{Account, Budget};

/// Concurrent connections, not counting the owner's places.
pub const MAX_CONNECTIONS: usize = 64;
/// Additional places for the owner's own program, which is recognised by its file. There are several because one run of
/// the owner's may hold a connection for a minute.
pub const OWNERS_PLACES: usize = 4;
/// Concurrent connections of one process.
pub const MAX_OF_PROCESS: usize = 16;
/// Closing connections that may still be open at a time.
const MAX_LEAVING: usize = 16;
/// Grace period in which a closing connection may read the reason.
const LEAVING: Duration = Duration::from_secs(1);

/// A process as the kernel identifies it. A pid may be reused, but not within the clock tick of its process's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    pub started: u64,
}

/// A session's view of its place.
#[derive(Debug, Clone)]
pub struct Seat {
    pub(super) account: Account,
    marks: Arc<Marks>,
    leave: CancellationToken,
}

#[derive(Debug)]
struct Marks {
    born: Instant,
    /// Milliseconds from `born` to the last request or reply.
    active: AtomicU64,
    runs: AtomicUsize,
    subscribed: AtomicBool,
}

impl Seat {
    pub fn new(account: Account) -> Self {
        let marks = Marks {
            born: Instant::now(),
            active: AtomicU64::new(0),
            runs: AtomicUsize::new(0),
            subscribed: AtomicBool::new(false),
        };
        Self { account, marks: Arc::new(marks), leave: CancellationToken::new() }
    }

    /// Records a request or the end of a run, and the number of runs in progress.
    pub(super) fn active(&self, runs: usize) {
        let now = self.marks.born.elapsed().as_millis();
        self.marks.active.store(u64::try_from(now).unwrap_or(u64::MAX), Relaxed);
        self.marks.runs.store(runs, Relaxed);
    }

    pub(super) fn subscribed(&self) {
        self.marks.subscribed.store(true, Relaxed);
    }

    /// Resolves once the connection must close to make room for another.
    pub(super) async fn asked_to_leave(&self) {
        self.leave.cancelled().await;
    }

    fn idle_since(&self) -> Instant {
        self.marks.born + Duration::from_millis(self.marks.active.load(Relaxed))
    }

    fn runs(&self) -> bool {
        self.marks.runs.load(Relaxed) > 0
    }

    fn is_subscribed(&self) -> bool {
        self.marks.subscribed.load(Relaxed)
    }
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    All,
    OfProcess,
}

impl Refused {
    pub(super) fn message(self) -> String {
        match self {
            Self::All => format!("Sandtray serves {MAX_CONNECTIONS} connections at once, and has as many already."),
            Self::OfProcess => format!("A program may have {MAX_OF_PROCESS} connections, and this one has as many."),
        }
    }
}

/// The connections of one listener.
pub(super) struct Places {
    budget: Budget,
    taken: HashMap<task::Id, Taken>,
    sessions: JoinSet<()>,
}

struct Taken {
    process: Option<Process>,
    seat: Seat,
    /// Whether it has one of the places kept for the owner's own program.
    owners: bool,
}

impl Places {
    pub(super) fn new(budget: Budget) -> Self {
        Self { budget, taken: HashMap::new(), sessions: JoinSet::new() }
    }

    /// Admits a new connection, closing an idle one if needed. `owns` is called only if its answer matters.
    pub(super) fn admit(&mut self, peer: &Peer, owns: impl Fn() -> bool) -> Result<Admitted, Refused> {
        while let Some(done) = self.sessions.try_join_next_with_id() {
            self.gone(done);
        }
        let of_process = self.of(peer.process).count();
        let admitted = |owners| Admitted { process: peer.process, owners };
        let all = self.taken.values().filter(|taken| !taken.owners).count();
        if all < MAX_CONNECTIONS && of_process < MAX_OF_PROCESS {
            return Ok(admitted(false));
        }
        let crowded = self.sessions.len() >= MAX_CONNECTIONS + OWNERS_PLACES + MAX_LEAVING;
        let owners = self.taken.values().filter(|taken| taken.owners).count();
        if owners < OWNERS_PLACES && owns() {
            return Ok(admitted(true));
        }
        if crowded {
            return Err(Refused::All);
        }
        let idle_owner = self.taken.iter().filter(|(_, taken)| taken.owners && !taken.seat.runs());
        let idle_owner = idle_owner.min_by_key(|(_, taken)| taken.seat.idle_since()).map(|(id, _)| *id);
        if let Some(before) = idle_owner
            && owns()
        {
            self.ask_to_leave(before);
            return Ok(admitted(true));
        }
        if of_process >= MAX_OF_PROCESS {
            return Err(Refused::OfProcess);
        }
        let victim = if of_process == 0 { self.longest_idle() } else { None };
        self.ask_to_leave(victim.ok_or(Refused::All)?);
        Ok(admitted(false))
    }

    pub(super) fn seat(&self, admitted: &Admitted) -> Seat {
        // All connections of a process share one account.
        let account = self.of(admitted.process).next().map(|taken| taken.seat.account.clone());
        Seat::new(account.unwrap_or_else(|| self.budget.account()))
    }

    pub(super) fn add(&mut self, admitted: Admitted, seat: Seat, session: impl Future<Output = ()> + Send + 'static) {
        let leave = seat.leave.clone();
        let task = self.sessions.spawn(async move {
            let asked = async {
                leave.cancelled().await;
                tokio::time::sleep(LEAVING).await;
            };
            tokio::select! {
                () = session => {}
                () = asked => {}
            }
        });
        let Admitted { process, owners } = admitted;
        self.taken.insert(task.id(), Taken { process, seat, owners });
    }

    /// Reads the results of sessions that ended. Pending while there are no sessions, so it can be used in a `select!`.
    pub(super) async fn reap(&mut self) {
        match self.sessions.join_next_with_id().await {
            Some(done) => self.gone(done),
            None => std::future::pending().await,
        }
    }

    /// Waits for the sessions, which end by themselves once their token is cancelled. Sessions whose client does not
    /// read are aborted after a bound.
    pub(super) async fn finish(mut self) {
        let ended = async {
            while !self.sessions.is_empty() {
                self.reap().await;
            }
        };
        if timeout(FAREWELL + ACCEPT_PAUSE, ended).await.is_err() {
            self.sessions.shutdown().await;
        }
    }

    fn gone(&mut self, done: Result<(task::Id, ()), task::JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(error) => {
                if error.is_panic() {
                    tracing::error!(%error, "a connection failed");
                }
                error.id()
            }
        };
        self.taken.remove(&id);
    }

    fn ask_to_leave(&mut self, id: task::Id) {
        if let Some(taken) = self.taken.remove(&id) {
            taken.seat.leave.cancel();
        }
    }

    /// The connections of a process. A connection whose process is unknown counts as a process of its own.
    fn of(&self, process: Option<Process>) -> impl Iterator<Item = &Taken> {
        self.taken.values().filter(move |taken| process.is_some() && taken.process == process)
    }

    /// The connection to close: the longest idle one without runs. Prefers connections without a subscription, then
    /// those whose process has others. A subscribed connection is closed only if its process has others.
    fn longest_idle(&self) -> Option<task::Id> {
        let candidates = self.taken.iter().filter(|(_, taken)| !taken.owners && !taken.seat.runs());
        let ranked = candidates.map(|(id, taken)| {
            let single = self.of(taken.process).nth(1).is_none();
            (taken.seat.is_subscribed(), single, taken.seat.idle_since(), *id)
        });
        let bearable = ranked.filter(|(subscribed, single, ..)| !(*subscribed && *single));
        bearable.min_by_key(|(subscribed, single, since, _)| (*subscribed, *single, *since)).map(|(.., id)| id)
    }
}

/// A granted place that is not taken yet.
#[derive(Debug)]
pub(super) struct Admitted {
    process: Option<Process>,
    owners: bool,
}
