//! What ran, kept for the owner: SQLite on a thread of its own, behind a handle that anybody may clone.
//!
//! [`History::record`] answers after the commit. Listing never reads code or output. A file that cannot be used is set
//! aside and reported, at the start or whenever the damage shows, and work goes on with a new one.

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

/// Commands that wait for the thread; who sends one more waits too.
const MAX_WAITING: usize = 64;

/// How long a run waits to hear whether a history in trouble can be written.
const TRY: Duration = Duration::from_secs(2);

/// The handle. The thread ends with the last one, or at [`History::close`].
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
    /// The file that was there and could not be used.
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
    /// Opens or makes the file. Its folder must exist.
    pub async fn open(path: &Path, settings: HistorySettings) -> Result<Opened, HistoryError> {
        let (commands, inbox) = mpsc::channel(MAX_WAITING);
        let ((asides, news), (troubles, trouble)) = (watch::channel(None), watch::channel(None));
        let (opened, is_open) = oneshot::channel();
        let (path, readers) = (path.to_owned(), Readers::of(path));
        let of_worker = readers.clone();
        let work = move || match start(path, &settings, of_worker, News { asides, trouble: troubles }) {
            Ok(worker) => {
                // Whoever opened it may be gone; then the inbox is closed and the thread ends.
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

    /// Returns once the run is committed: a crash of this process after that loses nothing.
    pub async fn record(&self, record: RunRecord) -> Result<(), HistoryError> {
        self.ask(|answer| Command::Record(Box::new(record), answer)).await
    }

    /// Newest first.
    pub async fn list(&self, query: HistoryQuery) -> Result<Page, HistoryError> {
        self.read(query, |page| page).await
    }

    /// The same, with `then` applied to the page on the thread that read it. Two pages are read at a time; records are
    /// written meanwhile.
    ///
    /// # Errors
    ///
    /// Those of the file, and [`HistoryError::Interrupted`] if reading held up writing for too long, twice.
    pub async fn read<T: Send + 'static>(
        &self,
        query: HistoryQuery,
        then: impl FnOnce(Page) -> T + Clone + Send + 'static,
    ) -> Result<T, HistoryError> {
        if query.text.is_some() {
            // Words are indexed behind the answer of a record.
            self.ask(Command::Settle).await?;
        }
        let asked = query.clone();
        let again = then.clone();
        match self.beside(move |connection| query::page(connection, &asked).map(again.clone())).await? {
            Some(made) => Ok(made),
            None => self.ask(|answer| Command::List(query, answer)).await.map(then),
        }
    }

    /// Who ran something, the latest first: at most [`MAX_CLIENTS`]. Read beside the lists, so no record waits for it.
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

    /// What the list shows of it: never reads code or output.
    pub async fn row(&self, id: RunId) -> Result<Option<RunRow>, HistoryError> {
        match self.beside(move |connection| reading::row(connection, id)).await? {
            Some(row) => Ok(row),
            None => self.ask(|answer| Command::Row(id, answer)).await,
        }
    }

    /// One of its files, and nothing else of it. `None` where it is not kept.
    pub async fn file(&self, id: RunId, side: Side) -> Result<Option<Bytes>, HistoryError> {
        let asked = side.clone();
        match self.beside(move |connection| reading::file(connection, id, &asked)).await? {
            Some(file) => Ok(file),
            None => self.ask(|answer| Command::File(id, side, answer)).await,
        }
    }

    /// Reads beside the writes. `None` where that failed: the worker owns the file, and sets a damaged one aside and
    /// makes a missing one anew.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Clone + Send + 'static,
    ) -> Result<Option<T>, HistoryError> {
        let mut unread = self.readers.read(work.clone()).await;
        if matches!(unread, Err(Unread::Interrupted)) {
            // It waits until the log is written back, which is what it was ended for.
            unread = self.readers.read(work).await;
        }
        match unread {
            Ok(made) => Ok(Some(made)),
            Err(Unread::Failed) => Ok(None),
            Err(Unread::Closed) => Err(HistoryError::Closed),
            Err(Unread::Interrupted) => Err(HistoryError::Interrupted),
        }
    }

    /// False where there is no such run.
    pub async fn delete(&self, id: RunId) -> Result<bool, HistoryError> {
        self.ask(|answer| Command::Delete(id, answer)).await
    }

    pub async fn clear(&self) -> Result<(), HistoryError> {
        self.ask(Command::Clear).await
    }

    pub async fn stats(&self) -> Result<Stats, HistoryError> {
        self.ask(Command::Stats).await
    }

    /// From the next record on. What is kept already is pruned to the new bounds in the background.
    pub async fn configure(&self, settings: HistorySettings) -> Result<(), HistoryError> {
        self.commands.send(Command::Configure(settings)).await.map_err(|_| HistoryError::Closed)
    }

    /// The latest file that was set aside, at the start or later.
    pub fn set_asides(&self) -> watch::Receiver<Option<SetAside>> {
        self.news.clone()
    }

    /// While it cannot be written, or not all of it.
    pub fn troubles(&self) -> watch::Receiver<Option<Trouble>> {
        self.trouble.clone()
    }

    /// Tries to write where the last run could not be recorded. Otherwise no question is asked of the history's thread.
    ///
    /// # Errors
    ///
    /// What keeps runs from being recorded.
    pub async fn ready(&self) -> Result<(), Trouble> {
        if self.refuses().is_none() {
            return Ok(());
        }
        // A thread that is gone leaves the trouble as it was.
        let _ = tokio::time::timeout(TRY, self.ask(Command::Try)).await;
        self.refuses().map_or(Ok(()), Err)
    }

    fn refuses(&self) -> Option<Trouble> {
        self.trouble.borrow().as_ref().filter(|trouble| !trouble.records).cloned()
    }

    /// Finishes what waits, closes the file and ends the thread. Every handle gets [`HistoryError::Closed`] from then on.
    pub async fn close(&self) -> Result<(), HistoryError> {
        let closed = self.ask(Command::Close).await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It has answered, so it is at its end.
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

/// One run out of the file itself, for a program that is not the service. Only who may read the file can.
///
/// # Errors
///
/// Those of the file, and that it is of another version.
pub fn read_record(path: &Path, id: RunId) -> Result<Option<RunRecord>, HistoryError> {
    let connection = schema::open_to_read(path)?;
    match schema::is_current(&connection) {
        Ok(true) => Ok(reading::record(&connection, id)?),
        Ok(false) => Err(HistoryError::Unusable("it was written by another version of Sandtray".into())),
        Err(error) => Err(HistoryError::Unusable(error.to_string())),
    }
}

/// The runtime is for waiting with a bound, nothing else.
fn start(path: PathBuf, settings: &HistorySettings, readers: Readers, news: News) -> Result<Worker, HistoryError> {
    let waits = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(HistoryError::Thread)?;
    Worker::open(path, settings, readers, waits, news)
}
