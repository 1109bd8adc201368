//! How many bytes the service keeps for its clients: messages and programs that came in, results that are to go out. It
//! counts and refuses; whoever keeps something holds a [`Hold`] for as long. Knows neither runs nor sockets.
//!
//! Three parts, so that no kind of hoarding takes the room of another, and in each part a share of one client process,
//! so that no program takes the room of others. What is small (a message of 256 KiB, a program of 64 KiB) is not counted:
//! it is bounded by the number of connections and of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Messages while they come in, and the programs, files and stdin of runs until they end. A long message takes room for the
/// longest there may be, since nobody knows yet how long it is.
pub const COMING: usize = 96 << 20;
pub const COMING_OF_ONE: usize = 48 << 20;
/// Results that batches keep until their last run has ended. What has no room is left out, and its client told.
pub const KEPT: usize = 64 << 20;
pub const KEPT_OF_ONE: usize = 32 << 20;
/// Results and other replies that their client has not taken yet. A run that goes on cannot be refused its result, so the
/// bound is on beginning: past its share, none of that client's runs starts. Beyond it are the results of those that run.
pub const GOING: usize = 96 << 20;
pub const GOING_OF_ONE: usize = 16 << 20;
/// From here on only those start whose client has taken all that was sent to it.
const SCARCE: usize = GOING / 2;

/// The service's. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    coming: Ledger,
    kept: Ledger,
    going: Ledger,
    accounts: AtomicU64,
    /// Room came free for what comes in.
    room: Notify,
    /// Whether somebody waits for replies to be taken: then a taken one is told.
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
    /// For one client process, however many connections it has.
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

    /// Whether [`Budget::taken`] is waited for. Set before the last look at what may start.
    pub fn watch(&self, wanted: bool) {
        self.0.watched.store(wanted, SeqCst);
    }

    /// Resolves when a client has taken something, while that is watched. For one waiter. Cancel-safe.
    pub async fn taken(&self) {
        self.0.taken.notified().await;
    }
}

/// What one client process has of the budget. Cheap to clone; all clones are one account.
#[derive(Debug, Clone)]
pub struct Account(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    number: u64,
    born: Instant,
    /// Microseconds from then to the next turn that nobody has.
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

    /// Waits until there is room for so much that comes in. Whoever calls it says for how long. Cancel-safe.
    pub async fn room(&self, bytes: usize) -> Hold {
        let hold = self.hold();
        loop {
            let mut freed = std::pin::pin!(self.0.shared.room.notified());
            // Before the look, so that what comes free in between is not missed.
            freed.as_mut().enable();
            if hold.coming(bytes) {
                return hold;
            }
            freed.await;
        }
    }

    /// Waits for a turn of this client process, which has one in so much time.
    async fn turn(&self, every: Duration) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = micros(self.0.born.elapsed());
        let taken = |free: u64| Some(free.max(now).saturating_add(micros(every)));
        let free = self.0.turns_until.fetch_update(SeqCst, SeqCst, taken).unwrap_or_else(|free| free);
        if free > now {
            tokio::time::sleep(Duration::from_micros(free - now)).await;
        }
    }

    /// Whether this client could hold more that comes in, if there were room for all.
    pub fn has_room(&self) -> bool {
        self.0.coming.now() < self.0.coming.most / 2
    }

    /// Whether more may be begun that ends in a reply to this client.
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

/// What is kept for one message, run or reply. The last clone gives it back. Without an account it counts nothing: the
/// owner's own runs.
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
    /// The client process, by a number of its own; none for the owner.
    pub fn account(&self) -> Option<u64> {
        self.0.as_ref().map(|held| held.account.0.number)
    }

    /// Waits for a turn of the client process, which has one in so much time: for what costs more than it says.
    pub async fn turn(&self, every: Duration) {
        if let Some(held) = &self.0 {
            held.account.turn(every).await;
        }
    }

    /// So much of it came in and is kept. Less is always granted; false where there is no room for more.
    pub fn coming(&self, bytes: usize) -> bool {
        self.set(Part::Coming, bytes)
    }

    /// So much is kept by a batch that is not over. False where there is no room for more.
    pub fn keeps(&self, bytes: usize) -> bool {
        self.set(Part::Kept, bytes)
    }

    /// What came in is used up, what was kept is part of the reply, and so much waits to be taken.
    pub fn going(&self, bytes: usize) {
        let Some(held) = &self.0 else { return };
        held.account.0.going.force(bytes);
        held.account.0.shared.going.force(bytes);
        let before = held.going.swap(bytes, SeqCst);
        held.account.give(Part::Going, before);
        held.release(Part::Coming);
        held.release(Part::Kept);
    }

    /// Whether what it is for may begin: its client has taken enough of what was sent to it.
    pub fn may_begin(&self) -> bool {
        self.0.as_ref().is_none_or(|held| held.account.may_begin())
    }

    /// By one holder at a time.
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

    /// Past the bound, if need be.
    fn force(&self, bytes: usize) {
        self.held.fetch_add(bytes, SeqCst);
    }

    fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, SeqCst);
    }
}

#[cfg(test)]
mod tests;
