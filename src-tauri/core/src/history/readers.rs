//! Connections that only read, for lists: what is written never waits for them. Two lists are read at a time, whoever asks.
//!
//! While a reader looks at the log, SQLite cannot begin it anew. So the worker may ask for a turn in which nobody reads:
//! lists that come behind it wait, for as long as the log takes to be written back.

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
/// How long the database may be locked for whoever opens it.
const BUSY: Duration = Duration::from_secs(2);

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Readers(Arc<Inner>);

struct Inner {
    path: PathBuf,
    turns: Arc<Semaphore>,
    /// Counts the files that were at the path: a reader of another one is of no use.
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
    /// The log had grown too long for it.
    Interrupted,
    /// The worker may know what to do.
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

    /// `then` is done on the reading thread, and counts as reading.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        asked: HistoryQuery,
        then: impl FnOnce(Page) -> T + Send + 'static,
    ) -> Result<T, Unread> {
        let turn = Arc::clone(&self.0.turns).acquire_owned().await.map_err(|_| Unread::Closed)?;
        let inner = Arc::clone(&self.0);
        let reading = tokio::task::spawn_blocking(move || {
            // Held until the end, whether or not anybody still waits for it.
            let _turn = turn;
            inner.page(&asked).map(then)
        });
        reading.await.unwrap_or(Err(Unread::Failed))
    }

    /// Resolves once nobody reads, and nobody does until the permit is dropped.
    pub(super) fn turn(&self) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + use<> {
        Arc::clone(&self.0.turns).acquire_many_owned(LISTS)
    }

    /// Ends what is read now.
    pub(super) fn interrupt(&self) {
        lock(&self.0.busy).iter().for_each(|(_, handle)| handle.interrupt());
    }

    /// The file at the path is, or is about to be, another one.
    pub(super) fn retire(&self) {
        self.0.era.fetch_add(1, SeqCst);
        lock(&self.0.idle).clear();
    }

    /// No list is read any more.
    pub(super) fn close(&self) {
        self.0.turns.close();
        self.retire();
    }
}

impl Inner {
    fn page(&self, asked: &HistoryQuery) -> Result<Page, Unread> {
        let reader = self.reader().map_err(|_| Unread::Failed)?;
        let number = self.next.fetch_add(1, SeqCst);
        lock(&self.busy).push((number, reader.connection.get_interrupt_handle()));
        let page = query::page(&reader.connection, asked);
        lock(&self.busy).retain(|(other, _)| *other != number);
        match page {
            Ok(page) => {
                if reader.era == self.era.load(SeqCst) {
                    lock(&self.idle).push(reader);
                }
                Ok(page)
            }
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
                Err(Unread::Interrupted)
            }
            Err(_) => Err(Unread::Failed),
        }
    }

    fn reader(&self) -> rusqlite::Result<Reader> {
        let era = self.era.load(SeqCst);
        // Of a file that was removed a connection would go on reading.
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
