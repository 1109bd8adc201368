//! The SQL: records in, pages out. It runs on the history's own thread and knows neither channels nor damaged files.

use std::time::SystemTime;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, named_params, params};

use super::clients::{self, ClientFigure};
use super::query;
use super::record::{Body, FileOut, HistoryQuery, Page, RunRecord, RunRow, Stats};
use super::retention::Kept;
use super::row;
use crate::run::RunId;
use crate::time::{from_millis, to_millis};

/// Runs that fit in one millisecond.
const TIE_BITS: u32 = 20;
/// The year 2248, where [`TIE_BITS`] and a signed 64-bit number leave off.
const MAX_MILLIS: u64 = (1 << (63 - TIE_BITS)) - 1;

/// Bytes that a row and its index entries take beside their texts.
const ROW_BYTES: u64 = 512;

/// Of the code, what can be searched. A word index of all of it would cost more than the run.
const SEARCHED_CODE: usize = 4 << 10;

const PAGE_BYTES: u64 = 4096;
/// Free pages are given back to the disk once there are this many, and once they are a quarter of the file.
const FREE_PAGES: u64 = 4096;
/// Pages given back in one step.
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

    /// Returns once a crash of this process loses nothing of it.
    pub(super) fn insert(&mut self, record: &RunRecord) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let seq = free_seq(&transaction, record.row.queued_at)?;
        let names = record.body.as_ref().map(row::names_of);
        let bytes = footprint(record, names.as_deref());
        row::insert(&transaction, seq, &record.row, bytes)?;
        if let (Some(body), Some(names)) = (&record.body, &names) {
            insert_body(&transaction, seq, body, names)?;
        }
        transaction
            .prepare_cached("INSERT INTO search (rowid, words) VALUES (?1, ?2)")?
            .execute(params![seq, words(record)])?;
        count(&transaction, 1, signed(bytes))?;
        transaction.commit()
    }

    pub(super) fn list(&self, asked: &HistoryQuery) -> rusqlite::Result<Page> {
        query::page(&self.connection, asked)
    }

    pub(super) fn row(&self, id: RunId) -> rusqlite::Result<Option<RunRow>> {
        Ok(row::by_id(&self.connection, id)?.map(|(_, row)| row))
    }

    pub(super) fn get(&self, id: RunId) -> rusqlite::Result<Option<RunRecord>> {
        let Some((seq, row)) = row::by_id(&self.connection, id)? else { return Ok(None) };
        let body = self
            .connection
            .prepare_cached("SELECT code, stdout, stderr, names FROM body WHERE seq = ?1")?
            .query_row([seq], |found| {
                let blob = |column| found.get::<_, Vec<u8>>(column).map(Bytes::from);
                let names = row::names_from(found.get_ref(3)?);
                Ok(Body { code: blob(0)?, stdout: blob(1)?, stderr: blob(2)?, ..names })
            })
            .optional()?;
        let Some(body) = body else { return Ok(Some(RunRecord { row, body: None })) };
        let files_out = self
            .connection
            .prepare_cached("SELECT name, bytes FROM file WHERE seq = ?1 ORDER BY rowid")?
            .query_map([seq], |found| {
                Ok(FileOut { name: row::text(found.get_ref(0)?), bytes: found.get::<_, Vec<u8>>(1)?.into() })
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Some(RunRecord { row, body: Some(Body { files_out, ..body }) }))
    }

    /// False where there is no such run. Afterwards its code and output are in no file of the history; single words of
    /// its code are in the index until [`Store::merge`] has gone through what [`Store::begin_purge`] began.
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
        self.connection
            .prepare_cached("SELECT runs, bytes FROM total")?
            .query_row([], |found| Ok(Stats { runs: unsigned(found.get(0)?), bytes: unsigned(found.get(1)?) }))
    }

    pub(super) fn clients(&self) -> rusqlite::Result<Vec<ClientFigure>> {
        clients::clients(&self.connection)
    }

    pub(super) fn oldest(&self, count: u32) -> rusqlite::Result<Vec<Kept>> {
        self.connection
            .prepare_cached("SELECT seq, bytes FROM run ORDER BY seq LIMIT ?1")?
            .query_map([count], |found| {
                let seq = found.get(0)?;
                Ok(Kept { seq, queued_at: time_of(seq), bytes: unsigned(found.get(1)?) })
            })?
            .collect()
    }

    /// In one transaction.
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

    /// Gives a few free pages back to the disk. False where there are too few to bother.
    pub(super) fn shrink(&self) -> rusqlite::Result<bool> {
        let number = |sql: &str| self.connection.query_row(sql, [], |found| found.get(0).map(unsigned));
        let (free, all) = (number("PRAGMA freelist_count")?, number("PRAGMA page_count")?);
        if free < FREE_PAGES || free < all / 4 {
            return Ok(false);
        }
        self.connection.execute_batch(&format!("PRAGMA incremental_vacuum({VACUUM_STEP})"))?;
        Ok(true)
    }

    /// Makes the coming merges rewrite the whole word index, and so drop the words of runs that are gone.
    pub(super) fn begin_purge(&self) -> rusqlite::Result<()> {
        self.merge_pages(-MERGE_STEP)
    }

    /// Merges a little of the word index. False where there was nothing to merge.
    pub(super) fn merge(&self) -> rusqlite::Result<bool> {
        let before = self.connection.total_changes();
        self.merge_pages(MERGE_STEP)?;
        // The statement itself is one change.
        Ok(self.connection.total_changes() - before >= 2)
    }

    /// FTS5 reads a negative number as the beginning of a merge of everything.
    fn merge_pages(&self, pages: i32) -> rusqlite::Result<()> {
        self.connection.prepare_cached("INSERT INTO search (search, rank) VALUES ('merge', ?1)")?.execute([pages])?;
        Ok(())
    }

    pub(super) fn checkpoint(&self, how: Checkpoint) -> rusqlite::Result<()> {
        self.connection.execute_batch(match how {
            Checkpoint::Passive => "PRAGMA wal_checkpoint(PASSIVE)",
            Checkpoint::Truncate => "PRAGMA wal_checkpoint(TRUNCATE)",
        })
    }

    pub(super) fn close(self) -> rusqlite::Result<()> {
        self.connection.close().map_err(|(_, error)| error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoint {
    /// What can be done at once.
    Passive,
    /// All of it; the log holds nothing any more.
    Truncate,
}

/// Bytes that a record adds to the log, about: the worker's measure for the next checkpoint.
pub(super) fn weight(record: &RunRecord) -> u64 {
    footprint(record, None) + 8 * PAGE_BYTES
}

pub(super) fn time_of(seq: i64) -> SystemTime {
    from_millis(unsigned(seq) >> TIE_BITS)
}

/// The first place among the runs of this millisecond.
pub(super) fn first_place(queued_at: SystemTime) -> i64 {
    signed(to_millis(queued_at).min(MAX_MILLIS) << TIE_BITS)
}

/// The next place within the run's millisecond.
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
    Ok(())
}

fn count(transaction: &Transaction<'_>, runs: i64, bytes: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE total SET runs = runs + :runs, bytes = bytes + :bytes")?
        .execute(named_params! { ":runs": runs, ":bytes": bytes })?;
    Ok(())
}

/// What counts towards the owner's limit of bytes.
fn footprint(record: &RunRecord, names: Option<&str>) -> u64 {
    let row = &record.row;
    let texts = [row.client_program.as_deref(), row.label.as_deref(), row.error.as_deref(), names];
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let body = record.body.as_ref().map_or(0, |body| {
        let files: usize = body.files_out.iter().map(|file| file.name.len() + file.bytes.len()).sum();
        body.code.len() + body.stdout.len() + body.stderr.len() + files + body.code.len().min(SEARCHED_CODE)
    });
    ROW_BYTES + (texts + body) as u64
}

/// What a search looks through.
fn words(record: &RunRecord) -> String {
    let code = record.body.as_ref().map_or(&[][..], |body| &body.code[..body.code.len().min(SEARCHED_CODE)]);
    let label = record.row.label.as_deref().unwrap_or_default();
    format!("{label}\n{}\n{}", record.row.client, String::from_utf8_lossy(code))
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
