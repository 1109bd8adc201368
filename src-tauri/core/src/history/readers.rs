//! Read-only connections for lists and records, at most two at a time over all clients. Writes never wait for them.
//!
//! SQLite cannot restart the log while a reader uses it. So the worker can ask for a turn without readers; reads that
//! come after it wait until the log is written back.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, InterruptHandle};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::schema;

/// Concurrent reads of lists and records. Each may keep a thread and a core busy.
const LISTS: u32 = 2;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Readers(Arc<Inner>);

struct Inner {
    path: PathBuf,
    turns: Arc<Semaphore>,
    /// Incremented when the file at the path is replaced, so that connections to the earlier file are dropped.
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

/// Why a read failed.
#[derive(Debug)]
pub(super) enum Unread {
    Closed,
    /// Interrupted, because the log had grown too long.
    Interrupted,
    /// Any other error. The worker may be able to repair the file.
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

    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unread> {
        let turn = Arc::clone(&self.0.turns).acquire_owned().await.map_err(|_| Unread::Closed)?;
        let inner = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || {
            // Held until the read ends, even if the caller is gone.
            let _turn = turn;
            inner.read(work)
        });
        reading.await.unwrap_or(Err(Unread::Failed))
    }

    /// Resolves once no reads are in progress. No read starts until the permit is dropped.
    pub(super) fn turn(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + use<> {
        Arc::clone(&self.0.turns).acquire_many_owned(LISTS)
    }

    /// Interrupts the reads in progress.
    pub(super) fn interrupt(&self) {
        lock(&self.0.busy).iter().for_each(|(_, handle)| handle.interrupt());
    }

    /// Drops the idle connections. Call it when the file at the path is replaced or about to be.
    pub(super) fn retire(&self) {
        self.0.era.fetch_add(1, SeqCst);
        lock(&self.0.idle).clear();
    }

    /// Ends reading: no read starts from now on.
    pub(super) fn close(&self) {
        self.0.turns.close();
        self.retire();
    }
}

impl Inner {
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Unread> {
        let reader = self.reader().map_err(|_| Unread::Failed)?;
        let number = self.next.fetch_add(1, SeqCst);
        lock(&self.busy).push((number, reader.connection.get_interrupt_handle()));
        let made = work(&reader.connection);
        lock(&self.busy).retain(|(other, _)| *other != number);
        match made {
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
        // An open connection would go on reading a removed file.
        let idle = if self.path.exists() { lock(&self.idle).pop() } else { None };
        if let Some(reader) = idle.filter(|reader| reader.era == era) {
            return Ok(reader);
        }
        let connection = schema::open_to_read(&self.path)?;
        Ok(Reader { connection, era })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
