//! The SQL: writes records, reads pages. Runs on the history's thread. Does not handle channels or damaged files.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Transaction, named_params, params};

use super::clients::{self, ClientFigure};
use super::record::{Body, HistoryQuery, Page, RunRecord, Stats};
use super::retention::Kept;
use super::{inputs, query, reading, row, words};
use crate::run::RunId;
use crate::time::{from_millis, to_millis};

/// Bits of a run's place within its millisecond.
const TIE_BITS: u32 = 20;
/// In the year 2248: the bits that [`TIE_BITS`] leaves of a signed 64-bit number.
const MAX_MILLIS: u64 = (1 << (63 - TIE_BITS)) - 1;

/// Estimated bytes of a row and its index entries, without their texts.
const ROW_BYTES: u64 = 512;

/// Of this many latest runs, those without an index entry are found: the last run of a service that was killed, and
/// runs whose words a full disk had no space for.
const INDEX_LOOK: u32 = 1000;

const PAGE_BYTES: u64 = 4096;
/// SQLite's own maximum.
const MAX_PAGES: u64 = 4_294_967_294;
/// Free pages are returned to the disk once there are this many and they are a quarter of the file.
const FREE_PAGES: u64 = 4096;
/// Pages returned in one step.
const VACUUM_STEP: u64 = 256;
/// Pages of the word index merged in one step.
const MERGE_STEP: i32 = 16;
pub(super) const STEP_BYTES: u64 = VACUUM_STEP * PAGE_BYTES;

#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
}

impl Store {
    pub(super) fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Inserts a run and returns its place. A crash of this process after that loses nothing. A search finds it only
    /// after [`Store::index`].
    pub(super) fn insert(&mut self, record: &RunRecord) -> rusqlite::Result<i64> {
        let transaction = self.connection.transaction()?;
        let seq = free_seq(&transaction, record.row.queued_at)?;
        let names = record.body.as_ref().map(row::names_of);
        let bytes = footprint(record, names.as_deref());
        row::insert(&transaction, seq, &record.row, bytes)?;
        if let (Some(body), Some(names)) = (&record.body, &names) {
            insert_body(&transaction, seq, body, names)?;
        }
        count(&transaction, 1, signed(bytes))?;
        transaction.commit()?;
        Ok(seq)
    }

    pub(super) fn index(&self, seq: i64, record: &RunRecord) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("INSERT INTO search (rowid, words) VALUES (?1, ?2)")?
            .execute(params![seq, words::of(record)])?;
        Ok(())
    }

    /// The latest run before this place without an index entry.
    pub(super) fn missed(&self, below: i64) -> rusqlite::Result<Option<i64>> {
        let missed: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT seq FROM (SELECT seq FROM run ORDER BY seq DESC LIMIT ?1) \
                 WHERE seq < ?2 AND seq NOT IN (SELECT id FROM search_docsize) LIMIT 1",
            )?
            .query_row([i64::from(INDEX_LOOK), below], |found| found.get(0))
            .optional()?;
        if missed.is_none() {
            // Frees the cache: the pages read for this are not needed again.
            self.connection.execute_batch("PRAGMA shrink_memory")?;
        }
        Ok(missed)
    }

    pub(super) fn index_missed(&self, seq: i64) -> rusqlite::Result<()> {
        let Some(row) = row::by_seq(&self.connection, seq)? else { return Ok(()) };
        let body = reading::body(&self.connection, seq, &row)?;
        self.index(seq, &RunRecord { row, body })
    }

    /// Tests whether a small change can be written.
    pub(super) fn touch(&self) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE total SET runs = runs", []).map(drop)
    }

    pub(super) fn list(&self, asked: &HistoryQuery) -> rusqlite::Result<Page> {
        query::page(&self.connection, asked)
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Deletes a run. False if there is no such run. Afterwards its code, inputs and output are in no file of the
    /// history. Single words of them stay in the index until [`Store::begin_purge`] and enough of [`Store::merge`] have
    /// removed them.
    pub(super) fn delete(&mut self, id: RunId) -> rusqlite::Result<bool> {
        let seq: Option<i64> = self
            .connection
            .query_row("SELECT seq FROM run WHERE id = ?1", [id.to_string()], |found| found.get(0))
            .optional()?;
        let Some(seq) = seq else { return Ok(false) };
        self.remove(&[seq])?;
        self.checkpoint(Checkpoint::Truncate)?;
        Ok(true)
    }

    pub(super) fn stats(&self) -> rusqlite::Result<Stats> {
        self.connection.prepare_cached("SELECT runs, bytes, inputs FROM total")?.query_row([], |found| {
            let number = |column| found.get(column).map(unsigned);
            Ok(Stats { runs: number(0)?, bytes: number(1)?, inputs: number(2)? })
        })
    }

    pub(super) fn clients(&self) -> rusqlite::Result<Vec<ClientFigure>> {
        clients::clients(&self.connection)
    }

    pub(super) fn oldest(&self, count: u32) -> rusqlite::Result<Vec<Kept>> {
        self.connection
            .prepare_cached("SELECT seq, bytes FROM run ORDER BY seq LIMIT ?1")?
            .query_map([count], |found| {
                let seq = found.get(0)?;
                let bytes = unsigned(found.get(1)?) + inputs::bytes_freed(&self.connection, seq)?;
                Ok(Kept { seq, queued_at: time_of(seq), bytes })
            })?
            .collect()
    }

    /// Removes the body of the oldest run that has one, and keeps its figures. Returns the freed bytes, or `None` if no
    /// run has a body.
    pub(super) fn give_up_oldest(&mut self) -> rusqlite::Result<Option<u64>> {
        let transaction = self.connection.transaction()?;
        let oldest: Option<(i64, i64)> = transaction
            .prepare_cached(
                "SELECT seq, length(code) + length(stdout) + length(stderr) + length(names) \
                 + (SELECT coalesce(sum(length(bytes)), 0) FROM file WHERE file.seq = body.seq) \
                 FROM body ORDER BY seq LIMIT 1",
            )?
            .query_row([], |found| Ok((found.get(0)?, found.get(1)?)))
            .optional()?;
        let Some((seq, own)) = oldest else { return Ok(None) };
        let inputs = inputs::bytes_freed(&transaction, seq)?;
        for table in ["body", "file", "input"] {
            transaction.prepare_cached(&format!("DELETE FROM {table} WHERE seq = ?1"))?.execute([seq])?;
        }
        transaction
            .prepare_cached("UPDATE run SET given_up = 1, bytes = bytes - ?2 WHERE seq = ?1")?
            .execute([seq, own])?;
        count(&transaction, 0, -own)?;
        transaction.commit()?;
        Ok(Some(unsigned(own) + inputs))
    }

    /// Whether removed content is overwritten. That takes as much disk space again until the log is written back.
    pub(super) fn overwrite_removed(&self, overwrite: bool) -> rusqlite::Result<()> {
        self.connection.execute_batch(if overwrite {
            "PRAGMA secure_delete = ON"
        } else {
            "PRAGMA secure_delete = FAST"
        })
    }

    /// Deletes runs in one transaction.
    pub(super) fn remove(&mut self, seqs: &[i64]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let (mut runs, mut bytes) = (0, 0);
        for seq in seqs {
            let freed: Option<i64> = transaction
                .prepare_cached("DELETE FROM run WHERE seq = ?1 RETURNING bytes")?
                .query_row([seq], |found| found.get(0))
                .optional()?;
            if let Some(freed) = freed {
                transaction.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([seq])?;
                runs += 1;
                bytes += freed;
            }
        }
        count(&transaction, -runs, -bytes)?;
        transaction.commit()
    }

    /// Returns some free pages to the disk. False if there are too few to be worth it.
    pub(super) fn shrink(&self) -> rusqlite::Result<bool> {
        let number = |sql: &str| self.connection.query_row(sql, [], |found| found.get(0).map(unsigned));
        let (free, all) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
        if free < FREE_PAGES || free < all / 4 {
            return Ok(false);
        }
        self.connection.execute_batch(&format!("PRAGMA incremental_vacuum({VACUUM_STEP})"))?;
        Ok(true)
    }

    /// Starts a rewrite of the whole word index by the next merges, which drops the words of deleted runs.
    pub(super) fn begin_purge(&self) -> rusqlite::Result<()> {
        self.merge_pages(-MERGE_STEP)
    }

    /// Merges a few pages of the word index. False if there was nothing to merge.
    pub(super) fn merge(&self) -> rusqlite::Result<bool> {
        let before = self.connection.total_changes();
        self.merge_pages(MERGE_STEP)?;
        // The statement itself counts as one change.
        Ok(self.connection.total_changes() - before >= 2)
    }

    /// To FTS5 a negative number starts a merge of the whole index.
    fn merge_pages(&self, pages: i32) -> rusqlite::Result<()> {
        self.connection.prepare_cached("INSERT INTO search (search, rank) VALUES ('merge', ?1)")?.execute([pages])?;
        Ok(())
    }

    /// Bounds the growth of the database from now on, in bytes. `None` lifts the bound.
    pub(super) fn bound_growth(&self, bytes: Option<u64>) -> rusqlite::Result<()> {
        let pages = match bytes {
            None => MAX_PAGES,
            Some(bytes) => {
                let now: i64 = self.connection.query_row("PRAGMA page_count", [], |found| found.get(0))?;
                MAX_PAGES.min(unsigned(now) + bytes / PAGE_BYTES)
            }
        };
        self.connection.execute_batch(&format!("PRAGMA max_page_count = {pages}"))
    }

    pub(super) fn checkpoint(&self, how: Checkpoint) -> rusqlite::Result<()> {
        self.connection.execute_batch(match how {
            Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
            Checkpoint::Restart => "PRAGMA wal_checkpoint(RESTART)",
            Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
        })
    }

    pub(super) fn close(self) -> rusqlite::Result<()> {
        self.connection.close().map_err(|(_, error)| error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// Writes back as much as is possible without waiting.
    Passive,
    /// Writes back everything; the next writes overwrite the log in place.
    Restart,
    /// Writes back everything and empties the log file.
    Truncate,
}

/// Estimated bytes that a record adds to the log. The worker schedules checkpoints by it.
pub(super) fn weight(record: &RunRecord) -> u64 {
    let body = record.body.iter();
    let inputs =
        body.flat_map(|body| body.stdin.iter().chain(body.files_in.iter().filter_map(|file| file.bytes.as_ref())));
    footprint(record, None) + inputs.map(|bytes| bytes.len() as u64).sum::<u64>() + 8 * PAGE_BYTES
}

pub(super) fn time_of(seq: i64) -> SystemTime {
    from_millis(unsigned(seq) >> TIE_BITS)
}

/// The first place within a millisecond.
pub(super) fn first_place(queued_at: SystemTime) -> i64 {
    signed(to_millis(queued_at).min(MAX_MILLIS) << TIE_BITS)
}

/// The next free place within the run's millisecond.
fn free_seq(transaction: &Transaction<'_>, queued_at: SystemTime) -> rusqlite::Result<i64> {
    let first = first_place(queued_at);
    let last = first + ((1 << TIE_BITS) - 1);
    let taken: Option<i64> = transaction
        .prepare_cached("SELECT max(seq) FROM run WHERE seq BETWEEN ?1 AND ?2")?
        .query_row([first, last], |found| found.get(0))?;
    Ok(taken.map_or(first, |taken| taken.saturating_add(1)))
}

fn insert_body(transaction: &Transaction<'_>, seq: i64, body: &Body, names: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT INTO body (seq, code, stdout, stderr, names) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![seq, &body.code[..], &body.stdout[..], &body.stderr[..], names])?;
    for file in &body.files_out {
        transaction.prepare_cached("INSERT INTO file (seq, name, bytes) VALUES (?1, ?2, ?3)")?.execute(params![
            seq,
            file.name,
            &file.bytes[..]
        ])?;
    }
    inputs::insert(transaction, seq, body)
}

fn count(transaction: &Transaction<'_>, runs: i64, bytes: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE total SET runs = runs + :runs, bytes = bytes + :bytes")?
        .execute(named_params! { ":runs": runs, ":bytes": bytes })?;
    Ok(())
}

/// Bytes of a record that count towards the owner's limit. Inputs are counted separately, when they are inserted.
fn footprint(record: &RunRecord, names: Option<&str>) -> u64 {
    let row = &record.row;
    let texts =
        [row.client_program.as_deref(), row.label.as_deref(), row.title.as_deref(), row.error.as_deref(), names];
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let body = record.body.as_ref().map_or(0, |body| {
        let files: usize = body.files_out.iter().map(|file| file.name.len() + file.bytes.len()).sum();
        body.code.len() + body.stdout.len() + body.stderr.len() + files
    });
    ROW_BYTES + (texts + body + words::bytes(record)) as u64
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
