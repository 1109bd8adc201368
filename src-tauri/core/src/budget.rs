//! Limits on the bytes that the service keeps for its clients: messages and programs that came in, and results that are
//! to go out. It counts and refuses. The owner of kept bytes holds a [`Hold`] for as long. Knows neither runs nor
//! sockets.
//!
//! There are three parts, so that one kind of use cannot exhaust another. Each part has a share per client process, so
//! that one program cannot exhaust the others. Small items (a message up to 256 KiB, a program up to 64 KiB) are not
//! counted: the numbers of connections and of runs bound them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Messages while they come in, and the programs, files and stdin of runs until they end. A long message reserves the
/// maximum length, since its own length is not known yet.
pub const COMING: usize = 96 << 20;
pub const COMING_OF_ONE: usize = 48 << 20;
/// Results that batches keep until their last run has ended. A result without room is left out, and its client is told.
pub const KEPT: usize = 64 << 20;
pub const KEPT_OF_ONE: usize = 32 << 20;
/// Results and other replies that their client has not read yet. A run under way cannot be refused its result, so the
/// bound is on starts: past its share, no run of that client starts. The results of runs under way may exceed it.
pub const GOING: usize = 96 << 20;
pub const GOING_OF_ONE: usize = 16 << 20;
/// From here on, only runs of clients without unread replies start.
const SCARCE: usize = GOING / 2;

/// The budget of the whole service. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    coming: Ledger,
    kept: Ledger,
    going: Ledger,
    accounts: AtomicU64,
    /// Notified when room for incoming bytes is freed.
    room: Notify,
    /// Whether a waiter wants to hear of each reply that a client has read.
    watched: AtomicBool,
    taken: Notify,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            coming: Ledger::of(COMING),
            kept: Ledger::of(KEPT),
            going: Ledger::of(GOING),
            accounts: AtomicU64::new(0),
            room: Notify::new(),
            watched: AtomicBool::new(false),
            taken: Notify::new(),
        }
    }
}

impl Budget {
    /// The account of one client process, for all its connections.
    pub fn account(&self) -> Account {
        Account(Arc::new(Inner {
            shared: Arc::clone(&self.0),
            number: self.0.accounts.fetch_add(1, SeqCst),
            born: Instant::now(),
            turns_until: AtomicU64::new(0),
            coming: Ledger::of(COMING_OF_ONE),
            kept: Ledger::of(KEPT_OF_ONE),
            going: Ledger::of(GOING_OF_ONE),
        }))
    }

    /// Whether there is a waiter in [`Budget::taken`]. Set before the last check of what may start.
    pub fn watch(&self, wanted: bool) {
        self.0.watched.store(wanted, SeqCst);
    }

    /// Resolves when a client has read something, while watched. For one waiter. Cancel-safe.
    pub async fn taken(&self) {
        self.0.taken.notified().await;
    }
}

/// The share of one client process in the budget. Cheap to clone; all clones are one account.
#[derive(Debug, Clone)]
pub struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    number: u64,
    born: Instant,
    /// Microseconds from `born` to the next free turn.
    turns_until: AtomicU64,
    coming: Ledger,
    kept: Ledger,
    going: Ledger,
}

impl Account {
    pub fn hold(&self) -> Hold {
        let held = Held {
            account: self.clone(),
            coming: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            going: AtomicUsize::new(0),
        };
        Hold(Some(Arc::new(held)))
    }

    /// Waits until there is room for `bytes` of incoming data. The caller sets the timeout. Cancel-safe.
    pub async fn room(&self, bytes: usize) -> Hold {
        let hold = self.hold();
        loop {
            let mut freed = std::pin::pin!(self.0.shared.room.notified());
            // Enabled before the check, so that room freed in between is not missed.
            freed.as_mut().enable();
            if hold.coming(bytes) {
                return hold;
            }
            freed.await;
        }
    }

    /// Waits for a turn. The client process has one turn per `every`.
    async fn turn(&self, every: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = micros(self.0.born.elapsed());
        let taken = |free: u64| Some(free.max(now).saturating_add(micros(every)));
        let free = self.0.turns_until.fetch_update(SeqCst, SeqCst, taken).unwrap_or_else(|free| free);
        if free > now {
            tokio::time::sleep(Duration::from_micros(free - now)).await;
        }
    }

    /// Whether this client holds less than half of its own share of incoming data.
    pub fn has_room(&self) -> bool {
        self.0.coming.now() < self.0.coming.most / 2
    }

    /// Whether another run or call may start whose reply goes to this client.
    fn may_begin(&self) -> bool {
        let (own, all) = (self.0.going.now(), self.0.shared.going.now());
        match own {
            0 => all < GOING,
            own => own < GOING_OF_ONE && all < SCARCE,
        }
    }

    fn take(&self, part: Part, bytes: usize) -> bool {
        let (own, all) = self.ledgers(part);
        if !own.take(bytes) {
            return false;
        }
        let taken = all.take(bytes);
        if !taken {
            own.give(bytes);
        }
        taken
    }

    fn give(&self, part: Part, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let (own, all) = self.ledgers(part);
        own.give(bytes);
        all.give(bytes);
        match part {
            Part::Coming => self.0.shared.room.notify_waiters(),
            Part::Kept => {}
            Part::Going if self.0.shared.watched.load(SeqCst) => self.0.shared.taken.notify_one(),
            Part::Going => {}
        }
    }

    fn ledgers(&self, part: Part) -> (&Ledger, &Ledger) {
        let (own, all) = (&*self.0, &*self.0.shared);
        match part {
            Part::Coming => (&own.coming, &all.coming),
            Part::Kept => (&own.kept, &all.kept),
            Part::Going => (&own.going, &all.going),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Coming,
    Kept,
    Going,
}

/// The bytes kept for one message, run or reply. Dropping the last clone frees them. Without an account nothing is
/// counted: that is for the owner's own runs.
#[derive(Debug, Clone, Default)]
pub struct Hold(Option<Arc<Held>>);

#[derive(Debug)]
struct Held {
    account: Account,
    coming: AtomicUsize,
    kept: AtomicUsize,
    going: AtomicUsize,
}

impl Hold {
    /// The number of the client process's account; `None` for the owner.
    pub fn account(&self) -> Option<u64> {
        self.0.as_ref().map(|held| held.account.0.number)
    }

    /// Waits for a turn of the client process, one per `every`. For requests whose cost does not show in their size.
    pub async fn turn(&self, every: Duration) {
        if let Some(held) = &self.0 {
            held.account.turn(every).await;
        }
    }

    /// Sets the incoming bytes that are kept. A smaller number is always granted; false if there is no room for more.
    pub fn coming(&self, bytes: usize) -> bool {
        self.set(Part::Coming, bytes)
    }

    /// Sets the bytes that an unfinished batch keeps. False if there is no room for more.
    pub fn keeps(&self, bytes: usize) -> bool {
        self.set(Part::Kept, bytes)
    }

    /// Sets the bytes that wait to be read by the client. Frees the other two parts: the input is used up, and kept
    /// results are part of the reply.
    pub fn going(&self, bytes: usize) {
        let Some(held) = &self.0 else { return };
        held.account.0.going.force(bytes);
        held.account.0.shared.going.force(bytes);
        let before = held.going.swap(bytes, SeqCst);
        held.account.give(Part::Going, before);
        held.release(Part::Coming);
        held.release(Part::Kept);
    }

    /// Whether the run may start: its client has read enough of its replies.
    pub fn may_begin(&self) -> bool {
        self.0.as_ref().is_none_or(|held| held.account.may_begin())
    }

    /// Not for concurrent calls on one hold.
    fn set(&self, part: Part, bytes: usize) -> bool {
        let Some(held) = &self.0 else { return true };
        let now = held.part(part).load(SeqCst);
        if bytes > now && !held.account.take(part, bytes - now) {
            return false;
        }
        held.part(part).store(bytes, SeqCst);
        held.account.give(part, now.saturating_sub(bytes));
        true
    }
}

impl Held {
    fn part(&self, part: Part) -> &AtomicUsize {
        match part {
            Part::Coming => &self.coming,
            Part::Kept => &self.kept,
            Part::Going => &self.going,
        }
    }

    fn release(&self, part: Part) {
        self.account.give(part, self.part(part).swap(0, SeqCst));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for part in [Part::Coming, Part::Kept, Part::Going] {
            self.release(part);
        }
    }
}

#[derive(Debug)]
struct Ledger {
    held: AtomicUsize,
    most: usize,
}

impl Ledger {
    fn of(most: usize) -> Self {
        Self { held: AtomicUsize::new(0), most }
    }

    fn now(&self) -> usize {
        self.held.load(SeqCst)
    }

    fn take(&self, bytes: usize) -> bool {
        let room = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.most);
        self.held.fetch_update(SeqCst, SeqCst, room).is_ok()
    }

    /// Adds without checking the bound.
    fn force(&self, bytes: usize) {
        self.held.fetch_add(bytes, SeqCst);
    }

    fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, SeqCst);
    }
}

#[cfg(test)]
mod tests;
