//! Reads one run from the database: its row, its whole record, or one of its files. Used by the worker and the readers.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::inputs;
use super::record::{Body, FileOut, RunRecord, RunRow, Side};
use super::row;
use crate::run::RunId;

pub(super) fn row(connection: &Connection, id: RunId) -> rusqlite::Result<Option<RunRow>> {
    Ok(row::by_id(connection, id)?.map(|(_, row)| row))
}

/// Reads a whole run from one snapshot: a run that is pruned meanwhile is returned in full or not at all.
pub(super) fn record(connection: &Connection, id: RunId) -> rusqlite::Result<Option<RunRecord>> {
    let moment = connection.unchecked_transaction()?;
    let found = row::by_id(&moment, id)?;
    found.map(|(seq, row)| Ok(RunRecord { body: body(&moment, seq, &row)?, row })).transpose()
}

pub(super) fn body(connection: &Connection, seq: i64, row: &RunRow) -> rusqlite::Result<Option<Body>> {
    let body = connection
        .prepare_cached("SELECT code, stdout, stderr, names FROM body WHERE seq = ?1")?
        .query_row([seq], |found| {
            let blob = |column| found.get::<_, Vec<u8>>(column).map(Bytes::from);
            let names = row::names_from(found.get_ref(3)?);
            Ok(Body { code: blob(0)?, stdout: blob(1)?, stderr: blob(2)?, ..names })
        })
        .optional()?;
    let Some(body) = body else { return Ok(None) };
    let files_out = connection
        .prepare_cached("SELECT name, bytes FROM file WHERE seq = ?1 ORDER BY rowid")?
        .query_map([seq], |found| {
            Ok(FileOut { name: row::text(found.get_ref(0)?), bytes: found.get::<_, Vec<u8>>(1)?.into() })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let (stdin, mut files_in) = inputs::read(connection, seq)?;
    // The first version stored only the names and sizes of files, in the body.
    files_in.extend(body.files_in);
    let stdin = stdin.or((row.stdin_bytes == 0).then(Bytes::new));
    Ok(Some(Body { stdin, files_in, files_out, ..body }))
}

pub(super) fn file(connection: &Connection, id: RunId, side: &Side) -> rusqlite::Result<Option<Bytes>> {
    let seq: Option<i64> = connection
        .prepare_cached("SELECT seq FROM run WHERE id = ?1")?
        .query_row([id.to_string()], |found| found.get(0))
        .optional()?;
    let Some(seq) = seq else { return Ok(None) };
    match side {
        Side::Out(name) => connection
            .prepare_cached("SELECT bytes FROM file WHERE seq = ?1 AND name = ?2")?
            .query_row(params![seq, name], |found| found.get::<_, Vec<u8>>(0))
            .optional()
            .map(|bytes| bytes.map(Bytes::from)),
        Side::In(name) => inputs::one(connection, seq, Some(name)),
        Side::Stdin => inputs::one(connection, seq, None),
    }
}
