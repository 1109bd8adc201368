//! The clients that ran something, from the kept runs. The index `run_by_agent` covers the query, so no row is read.

use std::time::SystemTime;

use rusqlite::Connection;

use super::row;
use super::store::{time_of, unsigned};

/// Most clients listed: those with the latest runs.
pub const MAX_CLIENTS: u32 = 256;

/// The runs of one client, which is a name together with a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFigure {
    pub name: String,
    pub program: Option<String>,
    pub runs: u64,
    /// When the oldest kept run was requested.
    pub first: SystemTime,
    pub last: SystemTime,
}

const CLIENTS: &str = "SELECT client, client_program, count(*), min(seq), max(seq) AS last FROM run \
    INDEXED BY run_by_agent GROUP BY client, client_program ORDER BY last DESC LIMIT ?1";

/// The clients, latest run first.
pub(super) fn clients(connection: &Connection) -> rusqlite::Result<Vec<ClientFigure>> {
    let mut statement = connection.prepare_cached(CLIENTS)?;
    let found = statement.query_map([MAX_CLIENTS], |found| {
        Ok(ClientFigure {
            name: row::text(found.get_ref(0)?),
            program: row::maybe_text(found.get_ref(1)?),
            runs: unsigned(found.get(2)?),
            first: time_of(found.get(3)?),
            last: time_of(found.get(4)?),
        })
    })?;
    found.collect()
}
