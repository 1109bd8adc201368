//! The worker's background work between commands, in small steps: pruning, merging the word index, returning pages to
//! the disk, and writing back the log.

use std::time::{Instant, SystemTime};

use tokio::sync::OwnedSemaphorePermit;

use super::retention;
use super::store::{self, Checkpoint};
use super::worker::{CATCH_UP_PAUSE, Tidy, Worker};

/// Most runs judged and pruned in one step.
const PRUNE_RUNS: u32 = 16;
/// Most bytes pruned in one step, unless a single run is larger.
const PRUNE_BYTES: u64 = 1 << 20;

impl Worker {
    /// Prunes enough to keep pace with the writes, even if commands never pause.
    pub(super) fn make_up_for(&mut self, added: u64) {
        let mut pruned = 0;
        while let Some(bytes) = self.prune() {
            pruned += bytes;
            let far = self.with(|store| store.stats()).is_ok_and(|totals| self.bounds.far_below(totals));
            // More than was added, so that the excess shrinks. Not all of it at once, because it may be large.
            if !far || pruned > added + PRUNE_BYTES {
                return;
            }
        }
    }

    /// One step of background work: pruning, indexing missed runs, merging the word index, or returning pages.
    pub(super) fn tidy(&mut self) -> Tidy {
        if self.prune().is_some() {
            return Tidy::More;
        }
        if self.catch_up() == Tidy::More {
            return Tidy::More;
        }
        let Some(store) = &self.store else { return Tidy::Done };
        // Not in trouble: merging needs space before it frees any, and returned pages may be taken by other programs.
        if self.in_trouble() {
            return Tidy::Done;
        }
        match store.merge().and_then(|more| if more { Ok(true) } else { store.shrink() }) {
            Ok(true) => {
                self.unwritten += store::STEP_BYTES;
                Tidy::More
            }
            Ok(false) => {
                if std::mem::take(&mut self.purging) {
                    self.purged = true;
                    self.ask_for_turn();
                }
                Tidy::Done
            }
            Err(error) => {
                tracing::warn!("the history could not be tidied: {error}");
                Tidy::Done
            }
        }
    }

    /// Indexes one run without an index entry. Skipped while in trouble: a full disk has no space for its words.
    pub(super) fn catch_up(&mut self) -> Tidy {
        let paused = self.no_room_at.is_some_and(|at| at.elapsed() < CATCH_UP_PAUSE);
        if !self.behind || paused || self.in_trouble() {
            return Tidy::Done;
        }
        let below = self.passed_over.unwrap_or(i64::MAX);
        match self.with(|store| store.missed(below)) {
            Ok(Some(seq)) => return self.index_missed(seq),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "runs that are recorded cannot be searched for"),
        }
        (self.behind, self.passed_over) = (false, None);
        Tidy::Done
    }

    fn index_missed(&mut self, seq: i64) -> Tidy {
        self.unwritten += store::STEP_BYTES;
        match self.with(|store| store.index_missed(seq)) {
            Ok(()) => Tidy::More,
            Err(error) if self.is_for_want_of_room(&error) => {
                self.no_room_at = Some(Instant::now());
                Tidy::Done
            }
            Err(error) => {
                tracing::warn!(%error, "a run that is recorded cannot be searched for");
                self.passed_over = Some(seq);
                Tidy::More
            }
        }
    }

    /// Writes back the log while there are no readers. On a busy history SQLite would do it in the middle of a commit.
    pub(super) fn write_back(&mut self, _no_reader: &OwnedSemaphorePermit) {
        let how = if std::mem::take(&mut self.purged) { Checkpoint::Truncate } else { Checkpoint::Passive };
        self.unwritten = 0;
        if let Some(Err(error)) = self.store.as_ref().map(|store| store.checkpoint(how)) {
            tracing::warn!("the history's log could not be written back: {error}");
        }
    }

    /// Prunes one step. Returns the bytes removed, or `None` if there was nothing to prune.
    fn prune(&mut self) -> Option<u64> {
        let (bounds, now) = (self.bounds, SystemTime::now());
        let pruned = self.with(|store| {
            let oldest = store.oldest(PRUNE_RUNS)?;
            let doomed = retention::doomed(&oldest, store.stats()?, &bounds, now);
            let mut bytes = 0;
            let fits = oldest.iter().take(doomed.len()).take_while(|run| {
                let first = bytes == 0;
                bytes += run.bytes;
                first || bytes <= PRUNE_BYTES
            });
            let step = &doomed[..fits.count()];
            if !step.is_empty() {
                store.remove(step)?;
            }
            Ok((step.len(), bytes))
        });
        match pruned {
            Ok((0, _)) => None,
            Ok((_, bytes)) => {
                self.unwritten += bytes;
                Some(bytes)
            }
            Err(error) => {
                // A trouble is told once, elsewhere.
                if !self.in_trouble() {
                    tracing::warn!("the history could not be pruned: {error}");
                }
                None
            }
        }
    }
}
