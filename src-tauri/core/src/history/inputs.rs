//! The inputs of a run: its files, and its standard input, which has no name. Large contents are stored once for all
//! runs that were given the same.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use sha2::{Digest, Sha256};

use super::record::{Body, FileIn};
use super::row;
use super::store::{signed, unsigned};

/// Contents of at least this many bytes are deduplicated. For a smaller one the digest and the index lookup cost more
/// than they save.
const SHARED: usize = 16 << 10;

pub(super) fn insert(transaction: &Transaction<'_>, seq: i64, body: &Body) -> rusqlite::Result<()> {
    let stdin = body.stdin.as_ref().filter(|bytes| !bytes.is_empty()).map(|bytes| (None, bytes));
    let files = body.files_in.iter().filter_map(|file| Some((Some(file.name.as_str()), file.bytes.as_ref()?)));
    for (name, bytes) in stdin.into_iter().chain(files) {
        let content = if bytes.len() < SHARED { None } else { Some(shared(transaction, bytes)?) };
        let own = content.is_none().then_some(&bytes[..]);
        transaction
            .prepare_cached("INSERT INTO input (seq, name, size, content, bytes) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![seq, name, signed(bytes.len() as u64), content, own])?;
    }
    Ok(())
}

/// The id of a shared content, inserted if it is new.
fn shared(transaction: &Transaction<'_>, bytes: &Bytes) -> rusqlite::Result<i64> {
    let digest = Sha256::digest(bytes);
    let known = transaction
        .prepare_cached("SELECT id FROM content WHERE sha256 = ?1")?
        .query_row([&digest[..]], |found| found.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    transaction.prepare_cached("INSERT INTO content (sha256, size, bytes) VALUES (?1, ?2, ?3)")?.execute(params![
        &digest[..],
        signed(bytes.len() as u64),
        &bytes[..]
    ])?;
    Ok(transaction.last_insert_rowid())
}

const OF_RUN: &str = "SELECT input.name, coalesce(input.bytes, content.bytes) FROM input \
    LEFT JOIN content ON content.id = input.content WHERE input.seq = ?1";

/// Standard input and the files, in the order of the request.
pub(super) fn read(connection: &Connection, seq: i64) -> rusqlite::Result<(Option<Bytes>, Vec<FileIn>)> {
    let mut statement = connection.prepare_cached(&format!("{OF_RUN} ORDER BY input.rowid"))?;
    let mut found = statement.query([seq])?;
    let (mut stdin, mut files) = (None, Vec::new());
    while let Some(columns) = found.next()? {
        let bytes = Bytes::from(columns.get::<_, Vec<u8>>(1)?);
        match row::maybe_text(columns.get_ref(0)?) {
            None => stdin = Some(bytes),
            Some(name) => files.push(FileIn { name, size: bytes.len() as u64, bytes: Some(bytes) }),
        }
    }
    Ok((stdin, files))
}

/// One input: the file of that name, or standard input for `None`.
pub(super) fn one(connection: &Connection, seq: i64, name: Option<&str>) -> rusqlite::Result<Option<Bytes>> {
    connection
        .prepare_cached(&format!("{OF_RUN} AND input.name IS ?2"))?
        .query_row(params![seq, name], |found| found.get::<_, Vec<u8>>(1))
        .optional()
        .map(|bytes| bytes.map(Bytes::from))
}

/// Bytes freed when a run is deleted together with all before it: its own inputs, and the shared contents that no later
/// run uses.
pub(super) fn bytes_freed(connection: &Connection, seq: i64) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT (SELECT coalesce(sum(size), 0) FROM input WHERE seq = ?1 AND content IS NULL) \
             + (SELECT coalesce(sum(size), 0) FROM content WHERE id IN (SELECT content FROM input WHERE seq = ?1) \
                AND NOT EXISTS (SELECT 1 FROM input WHERE content = content.id AND seq > ?1))",
        )?
        .query_row([seq], |found| found.get(0).map(unsigned))
}
