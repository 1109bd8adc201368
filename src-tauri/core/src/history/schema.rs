//! The tables, and the migrations from older versions.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// "Sand" in ASCII. Tells our database from another program's.
const APPLICATION_ID: i32 = 0x5361_6e64;

/// Timeout for a lock that another program (a backup, `sqlite3`) holds.
const BUSY: Duration = Duration::from_secs(2);

/// Entry N migrates a database from version N to N + 1, in one transaction.
const MIGRATIONS: &[&str] = &[V1, V2];

/// `run.seq` is `milliseconds << 20 | tie`. So the table is in the order of the list, a place in the list is one
/// number, and every index ends in that order, the word index included. `run` holds the columns of the list. `body` and
/// `file` hold what can be large, so listing never reads it. `search` is contentless: it holds the word index without a
/// copy of the text. Its automatic merge of segments is off, because it would take 100 ms inside commits; the worker
/// merges between commands, in small steps.
const V1: &str = "
CREATE TABLE run (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  client TEXT NOT NULL,
  client_pid INTEGER,
  client_program TEXT,
  language TEXT NOT NULL,
  label TEXT,
  status TEXT NOT NULL,
  error TEXT,
  exit_code INTEGER,
  wall_us INTEGER,
  queued_us INTEGER,
  memory_bytes INTEGER,
  cpu_us INTEGER,
  oom_kills INTEGER NOT NULL,
  code_bytes INTEGER NOT NULL,
  code_sha256 TEXT NOT NULL,
  stdin_bytes INTEGER NOT NULL,
  stdout_produced INTEGER NOT NULL,
  stdout_returned INTEGER NOT NULL,
  stderr_produced INTEGER NOT NULL,
  stderr_returned INTEGER NOT NULL,
  files_in INTEGER NOT NULL,
  files_in_bytes INTEGER NOT NULL,
  files_out INTEGER NOT NULL,
  files_out_bytes INTEGER NOT NULL,
  skipped_files INTEGER NOT NULL,
  image TEXT NOT NULL,
  limits TEXT NOT NULL,
  bytes INTEGER NOT NULL
);
CREATE INDEX run_by_client ON run (client);
CREATE INDEX run_by_status ON run (status);
CREATE INDEX run_by_language ON run (language);
CREATE INDEX run_by_language_and_status ON run (language, status);
CREATE TABLE body (
  seq INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
  code BLOB NOT NULL,
  stdout BLOB NOT NULL,
  stderr BLOB NOT NULL,
  names TEXT NOT NULL
);
CREATE TABLE file (
  seq INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  name TEXT NOT NULL,
  bytes BLOB NOT NULL
);
CREATE INDEX file_by_seq ON file (seq);
CREATE VIRTUAL TABLE search USING fts5 (
  words, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO search (search, rank) VALUES ('automerge', 0), ('crisismerge', 64);
CREATE TABLE total (runs INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0, 0);
";

/// `input` holds the input files, and standard input, which has no name. Large ones are in `content`, once for all runs
/// that were given the same. Triggers count the bytes of both, because a content is freed only with the last run that
/// uses it; `run.bytes` holds the other bytes of a run. `run_by_agent` covers the count of runs per client, and lists
/// the runs of one client.
const V2: &str = "
CREATE INDEX run_by_agent ON run (client, client_program);
ALTER TABLE run ADD COLUMN ended_by TEXT;
ALTER TABLE run ADD COLUMN title TEXT;
ALTER TABLE run ADD COLUMN overflow TEXT;
ALTER TABLE run ADD COLUMN given_up INTEGER;
ALTER TABLE total ADD COLUMN inputs INTEGER NOT NULL DEFAULT 0;
CREATE TABLE content (
  id INTEGER PRIMARY KEY,
  sha256 BLOB NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  bytes BLOB NOT NULL
);
CREATE TABLE input (
  seq INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
  name TEXT,
  size INTEGER NOT NULL,
  content INTEGER REFERENCES content,
  bytes BLOB
);
CREATE INDEX input_by_seq ON input (seq);
CREATE INDEX input_by_content ON input (content, seq) WHERE content IS NOT NULL;
CREATE TRIGGER input_kept AFTER INSERT ON input WHEN new.content IS NULL BEGIN
  UPDATE total SET bytes = bytes + new.size, inputs = inputs + new.size;
END;
CREATE TRIGGER input_gone AFTER DELETE ON input WHEN old.content IS NULL BEGIN
  UPDATE total SET bytes = bytes - old.size, inputs = inputs - old.size;
END;
CREATE TRIGGER input_let_go AFTER DELETE ON input WHEN old.content IS NOT NULL BEGIN
  DELETE FROM content WHERE id = old.content AND NOT EXISTS (SELECT 1 FROM input WHERE content = old.content);
END;
CREATE TRIGGER content_kept AFTER INSERT ON content BEGIN
  UPDATE total SET bytes = bytes + new.size, inputs = inputs + new.size;
END;
CREATE TRIGGER content_gone AFTER DELETE ON content BEGIN
  UPDATE total SET bytes = bytes - old.size, inputs = inputs - old.size;
END;
";

/// Why a file cannot be opened as the history.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    /// The file must be set aside.
    #[error("{0}")]
    Unusable(String),
    #[error("{0}")]
    Sql(#[from] rusqlite::Error),
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Opens the database read-only. Another program may be writing it.
pub(super) fn open_to_read(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cache_size = -1024;")?;
    Ok(connection)
}

/// Whether the database is a history of this version.
pub(super) fn is_current(connection: &Connection) -> Result<bool, OpenError> {
    Ok(version(connection)? == MIGRATIONS.len())
}

/// Opens or creates the database and migrates it. Its cost does not depend on the size.
pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    make_private(path)?;
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    let version = version(&connection)?;
    // `auto_vacuum` takes effect only before the first table is made and before WAL mode writes the first page.
    connection.execute_batch(
        "PRAGMA auto_vacuum = INCREMENTAL;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = NORMAL;
         PRAGMA foreign_keys = ON;
         PRAGMA secure_delete = ON;
         PRAGMA trusted_schema = OFF;
         PRAGMA cache_size = -4096;
         PRAGMA journal_size_limit = 16777216;
         PRAGMA wal_autocheckpoint = 4000;",
    )?;
    migrate(&mut connection, version)?;
    Ok(connection)
}

/// Creates a missing file with mode 0600. SQLite gives the log and its index the mode of the database.
fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The database's version. 0 for an empty database.
fn version(connection: &Connection) -> Result<usize, OpenError> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version")?;
    let ours = number("PRAGMA application_id")? == i64::from(APPLICATION_ID);
    let empty = number("SELECT count(*) FROM sqlite_master")? == 0;
    if !ours && !empty {
        return Err(OpenError::Unusable("it is a database of another program".into()));
    }
    match usize::try_from(version) {
        Ok(version) if version <= MIGRATIONS.len() && (version == 0) == empty => Ok(version),
        Ok(version) if version > MIGRATIONS.len() => Err(OpenError::Unusable(format!(
            "it was written by a newer Sandtray (version {version} of the file; this one reads {})",
            MIGRATIONS.len()
        ))),
        Ok(_) | Err(_) => Err(OpenError::Unusable("its version does not fit its content".into())),
    }
}

fn migrate(connection: &mut Connection, from: usize) -> rusqlite::Result<()> {
    for (version, sql) in (1_i64..).zip(MIGRATIONS).skip(from) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
