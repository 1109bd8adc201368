//! Connections that only read, for lists: writes never wait for them. Two lists are read at a time, over all clients.
//!
//! While a reader uses the log, SQLite cannot restart it. So the worker may ask for a turn without readers: lists that
//! are asked for after it wait until the log is written back.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, InterruptHandle, OpenFlags};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::query;
use super::record::{HistoryQuery, Page};

/// Lists read at a time. Each may keep a thread and a core busy.
const LISTS: u32 = 2;
/// How long opening a connection may wait for a locked database.
const BUSY: Duration = Duration::from_secs(2);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Readers(Arc<Inner>);

struct Inner {
    path: PathBuf,
    turns: Arc<Semaphore>,
    /// Incremented when the file at the path is replaced: readers of an earlier file are dropped.
    era: AtomicU64,
    idle: Mutex<Vec<Reader>>,
    busy: Mutex<Vec<(u64, InterruptHandle)>>,
    next: AtomicU64,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("path", &self.path).finish_non_exhaustive()
    }
}

struct Reader {
    connection: Connection,
    era: u64,
}

/// Why there is no page.
#[derive(Debug)]
pub(super) enum Unread {
    Closed,
    /// The log had grown too long, so the list was ended.
    Interrupted,
    /// The worker may be able to repair it.
    Failed,
}

impl Readers {
    pub(super) fn of(path: &Path) -> Self {
        Self(Arc::new(Inner {
            path: path.to_owned(),
            turns: Arc::new(Semaphore::new(LISTS as usize)),
            era: AtomicU64::new(0),
            idle: Mutex::default(),
            busy: Mutex::default(),
            next: AtomicU64::new(0),
        }))
    }

    /// `then` runs on the reading thread, and counts as reading.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        asked: HistoryQuery,
        then: impl FnOnce(Page) -> T + Send + 'static,
    ) -> Result<T, Unread> {
        self.with(move |connection| query::page(connection, &asked).map(then)).await
    }

    /// Anything that only reads, on the reading thread.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unread> {
        let turn = Arc::clone(&self.0.turns).acquire_owned().await.map_err(|_| Unread::Closed)?;
        let inner = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || {
            // Held until the end, even if the caller is gone.
            let _turn = turn;
            inner.work(work)
        });
        reading.await.unwrap_or(Err(Unread::Failed))
    }

    /// Resolves once no list is read. None is read until the permit is dropped.
    pub(super) fn turn(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + use<> {
        Arc::clone(&self.0.turns).acquire_many_owned(LISTS)
    }

    /// Ends the lists that are read now.
    pub(super) fn interrupt(&self) {
        lock(&self.0.busy).iter().for_each(|(_, handle)| handle.interrupt());
    }

    /// To be called when the file at the path is replaced or about to be.
    pub(super) fn retire(&self) {
        self.0.era.fetch_add(1, SeqCst);
        lock(&self.0.idle).clear();
    }

    /// No list is read from now on.
    pub(super) fn close(&self) {
        self.0.turns.close();
        self.retire();
    }
}

impl Inner {
    fn work<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Unread> {
        let reader = self.reader().map_err(|_| Unread::Failed)?;
        let number = self.next.fetch_add(1, SeqCst);
        lock(&self.busy).push((number, reader.connection.get_interrupt_handle()));
        let done = work(&reader.connection);
        lock(&self.busy).retain(|(other, _)| *other != number);
        match done {
            Ok(made) => {
                if reader.era == self.era.load(SeqCst) {
                    lock(&self.idle).push(reader);
                }
                Ok(made)
            }
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
                Err(Unread::Interrupted)
            }
            Err(_) => Err(Unread::Failed),
        }
    }

    fn reader(&self) -> rusqlite::Result<Reader> {
        let era = self.era.load(SeqCst);
        // A connection would go on reading a file that was removed.
        let idle = if self.path.exists() { lock(&self.idle).pop() } else { None };
        if let Some(reader) = idle.filter(|reader| reader.era == era) {
            return Ok(reader);
        }
        let connection = Connection::open_with_flags(
            &self.path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        connection.busy_timeout(BUSY)?;
        connection.execute_batch("PRAGMA trusted_schema = OFF; PRAGMA cache_size = -1024;")?;
        Ok(Reader { connection, era })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
