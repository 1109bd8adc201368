//! The history of runs, kept for the owner: SQLite on its own thread, behind a handle that is cheap to clone.
//!
//! [`History::record`] returns after the commit. Listing never reads code or output. A file that cannot be used is set
//! aside and reported, at the start or whenever the damage shows; then a new file is started.

mod clients;
mod inputs;
mod opening;
mod query;
mod readers;
mod reading;
mod record;
mod reserve;
mod retention;
mod room;
mod row;
mod schema;
mod store;
mod tidying;
mod trouble;
mod words;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use crate::disk::SetAside;
use crate::run::RunId;
use crate::settings::HistorySettings;
use bytes::Bytes;
use readers::{Readers, Unread};
use rusqlite::Connection;
use worker::{Answer, Command, News, Worker};

pub use clients::{ClientFigure, MAX_CLIENTS};
pub use record::{
    Body, Cursor, FileFigure, FileIn, FileOut, HistoryQuery, MAX_PAGE, NotACursor, Page, RunRecord, RunRow, Side,
    Stats, StreamFigure,
};
pub use trouble::{Trouble, Why};

/// Capacity of the command channel. At this bound senders wait (backpressure).
const MAX_WAITING: usize = 64;

/// Time limit for the attempt to write a history that is in trouble, before a run starts.
const TRY: Duration = Duration::from_secs(2);

/// The handle. The thread ends when the last handle is dropped, or at [`History::close`].
#[derive(Debug, Clone)]
pub struct History {
    commands: mpsc::Sender<Command>,
    readers: Readers,
    news: watch::Receiver<Option<SetAside>>,
    trouble: watch::Receiver<Option<Trouble>>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

#[derive(Debug)]
pub struct Opened {
    pub history: History,
    /// The existing file, if it could not be used.
    pub set_aside: Option<SetAside>,
}

#[derive(Debug, Error)]
pub enum HistoryError {
    #[error("The disk is full, so the history cannot be written.")]
    DiskFull,
    #[error("The history cannot be used: {0}")]
    Sql(#[source] rusqlite::Error),
    #[error("The history cannot be used: {0}.")]
    Unusable(String),
    #[error("The history cannot use {path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("The history's thread cannot be started: {0}")]
    Thread(#[source] io::Error),
    #[error("The history has too much to write just now to be read; try again.")]
    Interrupted,
    #[error("The history is closed.")]
    Closed,
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull,
            Some(_) | None => Self::Sql(error),
        }
    }
}

impl History {
    /// Opens or creates the file. Its folder must exist.
    ///
    /// # Errors
    ///
    /// If the thread or the file cannot be opened. A full disk is not an error here: see [`History::troubles`].
    pub async fn open(path: &Path, settings: HistorySettings) -> Result<Opened, HistoryError> {
        let (commands, inbox) = mpsc::channel(MAX_WAITING);
        let ((asides, news), (troubles, trouble)) = (watch::channel(None), watch::channel(None));
        let (opened, is_open) = oneshot::channel();
        let (path, readers) = (path.to_owned(), Readers::of(path));
        let of_worker = readers.clone();
        let work = move || match start(path, &settings, of_worker, News { asides, trouble: troubles }) {
            Ok(worker) => {
                // The caller may be gone. Then the channel is closed and the thread ends.
                let _ = opened.send(Ok(()));
                worker.run(inbox);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("history".into()).spawn(work).map_err(HistoryError::Thread)?;
        is_open.await.map_err(|_| HistoryError::Closed)??;
        let set_aside = news.borrow().clone();
        let thread = Arc::new(Mutex::new(Some(thread)));
        Ok(Opened { history: Self { commands, readers, news, trouble, thread }, set_aside })
    }

    /// Records a run. Returns once it is committed: a crash of this process after that loses nothing.
    ///
    /// # Errors
    ///
    /// Those of the file, and [`HistoryError::Closed`].
    pub async fn record(&self, record: RunRecord) -> Result<(), HistoryError> {
        self.ask(|answer| Command::Record(Box::new(record), answer)).await
    }

    /// A page of runs, newest first.
    ///
    /// # Errors
    ///
    /// Those of [`History::read`].
    pub async fn list(&self, query: HistoryQuery) -> Result<Page, HistoryError> {
        self.read(query, |page| page).await
    }

    /// A page of runs, with `then` applied to it on the thread that read it. At most two pages are read at a time;
    /// records are written meanwhile.
    ///
    /// # Errors
    ///
    /// Those of the file, and [`HistoryError::Interrupted`] if the read delayed writes for too long, twice.
    pub async fn read<T: Send + 'static>(
        &self,
        query: HistoryQuery,
        then: impl FnOnce(Page) -> T + Clone + Send + 'static,
    ) -> Result<T, HistoryError> {
        if query.text.is_some() {
            // Words are indexed after a record is answered, so a search waits for the index.
            self.ask(Command::Settle).await?;
        }
        let asked = query.clone();
        let again = then.clone();
        match self.beside(move |connection| query::page(connection, &asked).map(again.clone())).await? {
            Some(made) => Ok(made),
            None => self.ask(|answer| Command::List(query, answer)).await.map(then),
        }
    }

    /// The clients that ran something, latest first: at most [`MAX_CLIENTS`]. Does not hold up writes.
    pub async fn clients(&self) -> Result<Vec<ClientFigure>, HistoryError> {
        match self.beside(clients::clients).await? {
            Some(found) => Ok(found),
            None => self.ask(Command::Clients).await,
        }
    }

    pub async fn get(&self, id: RunId) -> Result<Option<RunRecord>, HistoryError> {
        match self.beside(move |connection| reading::record(connection, id)).await? {
            Some(record) => Ok(record),
            None => self.ask(|answer| Command::Get(id, answer)).await,
        }
    }

    /// The list's figures of one run, without its code and output.
    pub async fn row(&self, id: RunId) -> Result<Option<RunRow>, HistoryError> {
        match self.beside(move |connection| reading::row(connection, id)).await? {
            Some(row) => Ok(row),
            None => self.ask(|answer| Command::Row(id, answer)).await,
        }
    }

    /// One file of a run, read alone. `None` if it is not kept.
    pub async fn file(&self, id: RunId, side: Side) -> Result<Option<Bytes>, HistoryError> {
        let asked = side.clone();
        match self.beside(move |connection| reading::file(connection, id, &asked)).await? {
            Some(file) => Ok(file),
            None => self.ask(|answer| Command::File(id, side, answer)).await,
        }
    }

    /// Reads on a read-only connection, concurrently with writes. `None` if that failed: then the worker must read,
    /// because it owns the file, sets a damaged one aside and recreates a missing one.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Clone + Send + 'static,
    ) -> Result<Option<T>, HistoryError> {
        let mut unread = self.readers.read(work.clone()).await;
        if matches!(unread, Err(Unread::Interrupted)) {
            // The retry waits for the checkpoint for which the read was interrupted.
            unread = self.readers.read(work).await;
        }
        match unread {
            Ok(made) => Ok(Some(made)),
            Err(Unread::Failed) => Ok(None),
            Err(Unread::Closed) => Err(HistoryError::Closed),
            Err(Unread::Interrupted) => Err(HistoryError::Interrupted),
        }
    }

    /// Deletes a run. False if there is no such run.
    pub async fn delete(&self, id: RunId) -> Result<bool, HistoryError> {
        self.ask(|answer| Command::Delete(id, answer)).await
    }

    pub async fn clear(&self) -> Result<(), HistoryError> {
        self.ask(Command::Clear).await
    }

    pub async fn stats(&self) -> Result<Stats, HistoryError> {
        self.ask(Command::Stats).await
    }

    /// Applies new settings from the next record on. Existing runs are pruned to the new bounds in the background.
    pub async fn configure(&self, settings: HistorySettings) -> Result<(), HistoryError> {
        self.commands.send(Command::Configure(settings)).await.map_err(|_| HistoryError::Closed)
    }

    /// The latest file that was set aside, at the start or later.
    pub fn set_asides(&self) -> watch::Receiver<Option<SetAside>> {
        self.news.clone()
    }

    /// The trouble, while the history cannot be written or not in full.
    pub fn troubles(&self) -> watch::Receiver<Option<Trouble>> {
        self.trouble.clone()
    }

    /// Whether the next run can be recorded. If the last one could not be, tries to write; otherwise it does not ask
    /// the history's thread.
    ///
    /// # Errors
    ///
    /// The trouble that keeps runs from being recorded.
    pub async fn ready(&self) -> Result<(), Trouble> {
        if self.refuses().is_none() {
            return Ok(());
        }
        // If the thread is gone or too slow, the trouble stays as it was.
        let _ = tokio::time::timeout(TRY, self.ask(Command::Try)).await;
        self.refuses().map_or(Ok(()), Err)
    }

    fn refuses(&self) -> Option<Trouble> {
        self.trouble.borrow().as_ref().filter(|trouble| !trouble.records).cloned()
    }

    /// Finishes the commands before it, closes the file and ends the thread. From then on every handle gets
    /// [`HistoryError::Closed`].
    pub async fn close(&self) -> Result<(), HistoryError> {
        let closed = self.ask(Command::Close).await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The thread has answered its last command, so the join is short.
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the history's thread panicked");
            }
        }
        closed
    }

    async fn ask<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Result<T, HistoryError> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(command(answer)).await.map_err(|_| HistoryError::Closed)?;
        answered.await.map_err(|_| HistoryError::Closed)?
    }
}

/// Reads one run from the file in another process than the service's. Needs permission to read the file.
///
/// # Errors
///
/// Those of the file, and [`HistoryError::Unusable`] if it is of another version.
pub fn read_record(path: &Path, id: RunId) -> Result<Option<RunRecord>, HistoryError> {
    let connection = schema::open_to_read(path)?;
    match schema::is_current(&connection) {
        Ok(true) => Ok(reading::record(&connection, id)?),
        Ok(false) => Err(HistoryError::Unusable("it was written by another version of Sandtray".into())),
        Err(error) => Err(HistoryError::Unusable(error.to_string())),
    }
}

/// Opens the worker. The runtime is used only for waits with a timeout.
fn start(path: PathBuf, settings: &HistorySettings, readers: Readers, news: News) -> Result<Worker, HistoryError> {
    let waits = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(HistoryError::Thread)?;
    Worker::open(path, settings, readers, waits, news)
}
