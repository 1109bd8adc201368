//! Decides which connections get a place: how many there are in all and per program, and which one gives way when all
//! places are taken. Only the listener's task decides; sessions just record their activity.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use tokio::task::{self, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{ACCEPT_PAUSE, FAREWELL, Peer};
use crate::budget::{Account, Budget};

/// Connections at once, not counting the owner's places.
pub const MAX_CONNECTIONS: usize = 64;
/// More connections, for the owner's own program alone, which is told by its file. More than one: a run of the owner's may
/// hold one for a minute.
pub const OWNERS_PLACES: usize = 4;
/// Connections of one process.
pub const MAX_OF_PROCESS: usize = 16;
/// Connections that were asked to leave and have not left.
const MAX_LEAVING: usize = 16;
/// How long a connection that was asked to leave has to read why.
const LEAVING: Duration = Duration::from_secs(1);

/// A process as the kernel identifies it. A pid is reused, but not within the clock tick in which its process began.
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
    /// Milliseconds from `born` to the last request or the last reply.
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

    /// Records that a request came or a run ended, and how many runs go on.
    pub(super) fn active(&self, runs: usize) {
        let now = self.marks.born.elapsed().as_millis();
        self.marks.active.store(u64::try_from(now).unwrap_or(u64::MAX), Relaxed);
        self.marks.runs.store(runs, Relaxed);
    }

    pub(super) fn subscribed(&self) {
        self.marks.subscribed.store(true, Relaxed);
    }

    /// Resolves once the place is given to another connection.
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

    /// A place for a new connection; an idle one may be closed for it. `owns` is called only if the answer matters.
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
        // One account for all connections of a process.
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

    /// Reads the results of sessions that ended. Never ready while there is none, so it can be used in a `select!`.
    pub(super) async fn reap(&mut self) {
        match self.sessions.join_next_with_id().await {
            Some(done) => self.gone(done),
            None => std::future::pending().await,
        }
    }

    /// Waits for the sessions, which end by themselves once their token is cancelled. It does not wait for a session
    /// whose client does not read.
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

    /// Connections of an unknown process count as one process each.
    fn of(&self, process: Option<Process>) -> impl Iterator<Item = &Taken> {
        self.taken.values().filter(move |taken| process.is_some() && taken.process == process)
    }

    /// The connection to close: it has no run and no subscription, its program has other connections, it has been idle
    /// longest. A subscribed one is closed only if its program has others.
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

/// Permission to take a place.
#[derive(Debug)]
pub(super) struct Admitted {
    process: Option<Process>,
    owners: bool,
}
