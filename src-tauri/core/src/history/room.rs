//! Recording on a full disk. Code, inputs and output of old runs are given up before the figures of new runs. Runs that
//! cannot be recorded are counted and reported through [`Trouble`].

use std::io;
use std::time::{Instant, SystemTime};

use super::HistoryError;
use super::record::{RunRecord, RunRow};
use super::reserve::WANTED;
use super::store::{self, Checkpoint};
use super::trouble::{Trouble, Why};
use super::worker::{RESERVE_EVERY, Worker};
use crate::disk;

/// Below this many free bytes an I/O error counts as a full disk.
const NO_ROOM: u64 = 64 << 10;
/// Free space left for the log when the database's growth is bounded. Without it the log could not be written back.
const LOG_ROOM: u64 = 4 << 20;
/// Space made beyond what a record needs, so that not every record has to make space.
const SLACK: u64 = 256 << 10;
/// Runs given up in one round, and rounds for one record: pages of removed rows may stay half full.
const MOST_GIVEN_UP: u32 = 64;
const ROUNDS: u32 = 3;
/// The pause between attempts to make the reserve is doubled this often: to about a minute.
const MOST_DOUBLINGS: u32 = 6;
/// Records above this many bytes give up no old runs for their output: on a full disk their figures are enough.
const LARGE: u64 = 1 << 20;

impl Worker {
    /// Writes a record and returns the run's place. On a full disk the record may be reduced to its figures.
    pub(super) fn write(&mut self, record: &mut RunRecord) -> Result<i64, HistoryError> {
        let written = match self.insert(record) {
            Err(HistoryError::DiskFull) => self.write_on_full_disk(record),
            written => written,
        };
        match &written {
            Ok(_) => self.recorded(),
            // The run is recorded already.
            Err(HistoryError::Sql(error))
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {}
            Err(error) => {
                tracing::error!(run = %record.row.run_id, %error, "a run could not be recorded");
                self.trouble(why(error), |trouble| {
                    (trouble.unrecorded, trouble.records) = (trouble.unrecorded + 1, false)
                });
            }
        }
        written
    }

    fn insert(&mut self, record: &RunRecord) -> Result<i64, HistoryError> {
        let inserted = self.with(|store| store.insert(record));
        inserted.map_err(|error| self.understood(error))
    }

    fn understood(&self, error: HistoryError) -> HistoryError {
        if self.is_for_want_of_room(&error) { HistoryError::DiskFull } else { error }
    }

    /// Whether an error is due to a full disk, which SQLite reports by several codes.
    pub(super) fn is_for_want_of_room(&self, error: &HistoryError) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, SystemIoFailure};
        match error {
            HistoryError::DiskFull => true,
            HistoryError::Sql(error) if matches!(error.sqlite_error_code(), Some(SystemIoFailure | CannotOpen)) => {
                disk::room(&self.path).is_some_and(|room| room < NO_ROOM)
            }
            HistoryError::File { source, .. } => is_full(source),
            HistoryError::Sql(_)
            | HistoryError::Unusable(_)
            | HistoryError::Thread(_)
            | HistoryError::Interrupted
            | HistoryError::Closed => false,
        }
    }

    fn write_on_full_disk(&mut self, record: &mut RunRecord) -> Result<i64, HistoryError> {
        if self.bounded && disk::room(&self.path).is_some_and(|room| room >= WANTED) {
            // The disk has space again, and only the earlier growth bound is in the way.
            self.with(|store| store.bound_growth(None))?;
            self.bounded = false;
            match self.insert(record) {
                Err(HistoryError::DiskFull) => {}
                written => return written,
            }
        }
        let weight = store::weight(record);
        let wanted = if weight <= LARGE { weight } else { 0 } + SLACK;
        for _ in 0..ROUNDS {
            let given_up = self.make_room(wanted);
            self.trouble(Why::DiskFull, |trouble| trouble.given_up += u64::from(given_up));
            if weight > LARGE || given_up == 0 {
                break;
            }
            match self.insert(record) {
                Err(HistoryError::DiskFull) => {}
                written => return written,
            }
        }
        let had_more = record.body.take().is_some();
        record.row = RunRow { title: None, given_up: had_more, ..record.row.clone() };
        let written = self.insert(record)?;
        self.trouble(Why::DiskFull, |trouble| trouble.given_up += u64::from(had_more));
        Ok(written)
    }

    /// Gives up the bodies of the oldest runs until `wanted` bytes are free. Returns how many runs were given up.
    fn make_room(&mut self, wanted: u64) -> u32 {
        self.reserved = false;
        self.reserve.give();
        // The log can be restarted only without readers.
        let _alone = self.alone_at_once();
        let path = self.path.clone();
        let Ok(store) = self.opened() else { return 0 };
        let (mut runs, mut bytes) = (0, 0);
        // Moves the log into the database, so that the next writes reuse the log's space.
        let tried = store.checkpoint(Checkpoint::Restart).and_then(|()| {
            // Overwriting the removed content would need the space that is missing.
            store.overwrite_removed(false)?;
            while runs < MOST_GIVEN_UP && bytes < wanted {
                let Some(freed) = store.give_up_oldest()? else { break };
                (runs, bytes) = (runs + 1, bytes + freed);
            }
            store.checkpoint(Checkpoint::Restart)
        });
        // The freed pages are the space to use. Free space beyond them may be taken by other programs.
        let growth = if runs > 0 { 0 } else { disk::room(&path).unwrap_or(0).saturating_sub(LOG_ROOM) };
        let tried = tried.and(store.overwrite_removed(true)).and(store.bound_growth(Some(growth)));
        (self.unwritten, self.bounded) = (0, true);
        if runs > 0 {
            tracing::warn!(runs, bytes, "the disk is full: of old runs only the figures are kept");
        } else if let Err(error) = tried {
            tracing::warn!(%error, "the disk is full, and no room could be made");
        }
        runs
    }

    fn recorded(&mut self) {
        self.news.trouble.send_if_modified(|trouble| {
            let Some(before) = trouble else { return false };
            match before.why {
                // The trouble ends once there is space for more than this record.
                Why::DiskFull => !std::mem::replace(&mut before.records, true),
                Why::NotUsable { .. } => trouble.take().is_some(),
            }
        });
    }

    pub(super) fn trouble(&mut self, why: Why, change: impl FnOnce(&mut Trouble)) {
        // Another error does not end a full disk, and does not reset its counts.
        let why = if self.bounded { Why::DiskFull } else { why };
        self.news.trouble.send_if_modified(|trouble| {
            let before = trouble.clone();
            let now = trouble.get_or_insert_with(|| Trouble {
                why: why.clone(),
                since: SystemTime::now(),
                unrecorded: 0,
                given_up: 0,
                records: true,
            });
            now.why = why;
            change(now);
            *trouble != before
        });
    }

    pub(super) fn in_trouble(&self) -> bool {
        self.news.trouble.borrow().is_some()
    }

    /// Makes a missing reserve and retries a history in trouble, once per interval, even while commands keep coming.
    pub(super) fn recover_when_due(&mut self) {
        let sound = self.reserved && !self.in_trouble();
        let pause = RESERVE_EVERY * 2_u32.pow(self.reserve_failures.min(MOST_DOUBLINGS));
        if !sound && self.last_look.is_none_or(|last| last.elapsed() >= pause) {
            self.recover();
        }
    }

    pub(super) fn recover(&mut self) {
        self.last_look = Some(Instant::now());
        if !self.reserved {
            self.reserved = self.reserve.is_there() || self.make_reserve();
        }
        let known = self.news.trouble.borrow().as_ref().map(|trouble| trouble.why.clone());
        let over = match known {
            None => return,
            Some(Why::DiskFull) if !self.reserved => return,
            Some(Why::DiskFull | Why::NotUsable { .. }) => {
                self.with(|store| store.bound_growth(None).and(store.touch()))
            }
        };
        match over.map_err(|error| self.understood(error)) {
            Ok(()) => {
                self.bounded = false;
                if let Some(over) = self.news.trouble.send_replace(None) {
                    tracing::warn!(unrecorded = over.unrecorded, "the history can be written again");
                }
            }
            Err(error) => self.trouble(why(&error), |trouble| trouble.records = false),
        }
    }

    fn make_reserve(&mut self) -> bool {
        if disk::room(&self.path).is_some_and(|room| room < WANTED) {
            return false;
        }
        match self.reserve.make() {
            Ok(()) => {
                self.reserve_failures = 0;
                true
            }
            // A quota, which the free space of the disk does not show. Each attempt writes until it is reached.
            Err(error) if is_full(&error) => {
                self.reserve_failures = self.reserve_failures.saturating_add(1);
                false
            }
            Err(error) => {
                tracing::warn!(%error, "no room could be set aside for a full disk");
                // A failure to make this file does not keep runs from being recorded.
                true
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn why(error: &HistoryError) -> Why {
    match error {
        HistoryError::DiskFull => Why::DiskFull,
        HistoryError::Sql(error) => Why::NotUsable { detail: error.to_string() },
        HistoryError::Unusable(_)
        | HistoryError::File { .. }
        | HistoryError::Thread(_)
        | HistoryError::Interrupted
        | HistoryError::Closed => Why::NotUsable { detail: error.to_string() },
    }
}
