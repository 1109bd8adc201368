//! The thread that owns the database. It answers one command after the other, and tidies up between them in small steps.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot, watch};

use super::HistoryError;
use super::record::{HistoryQuery, Page, RunRecord, RunRow, Stats};
use super::retention::{self, Bounds};
use super::schema::{self, OpenError};
use super::store::{self, Checkpoint, Store};
use crate::disk::{self, SetAside};
use crate::run::RunId;
use crate::settings::{HistorySettings, Keep};

/// Files that belong to the database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];
/// Damaged files set aside by one service. A disk that breaks every file would else be filled with them.
const MAX_SET_ASIDE: u32 = 5;
/// Runs judged, and pruned at most, in one step.
const PRUNE_RUNS: u32 = 16;
/// Bytes pruned in one step, or one run.
const PRUNE_BYTES: u64 = 1 << 20;
/// Written since the last checkpoint, before a quiet moment is used for the next.
const CHECKPOINT_BYTES: u64 = 2 << 20;
/// How long nobody must have asked for anything before the log is written back: it costs some milliseconds of disk.
const QUIET: Duration = Duration::from_millis(200);
/// How often the age of runs is looked at when nothing else happens.
const IDLE: Duration = Duration::from_secs(60 * 60);

pub(super) type Answer<T> = oneshot::Sender<Result<T, HistoryError>>;

#[derive(Debug)]
pub(super) enum Command {
    Record(Box<RunRecord>, Answer<()>),
    List(HistoryQuery, Answer<Page>),
    Get(RunId, Answer<Option<RunRecord>>),
    Row(RunId, Answer<Option<RunRow>>),
    Delete(RunId, Answer<bool>),
    Clear(Answer<()>),
    Stats(Answer<Stats>),
    Configure(HistorySettings),
    Close(Answer<()>),
}

#[derive(Debug)]
pub(super) struct Worker {
    path: PathBuf,
    keep: Keep,
    bounds: Bounds,
    /// `None` where the last attempt to open it failed; the next command tries again.
    store: Option<Store>,
    set_asides: u32,
    news: watch::Sender<Option<SetAside>>,
    unwritten: u64,
    /// A run was deleted by the owner, and words of it may still be in the index.
    purging: bool,
}

/// Work that is left after a step of tidying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tidy {
    More,
    Done,
}

impl Worker {
    pub(super) fn open(
        path: PathBuf,
        settings: &HistorySettings,
        news: watch::Sender<Option<SetAside>>,
    ) -> Result<Self, HistoryError> {
        let mut worker = Self {
            path,
            keep: settings.keep,
            bounds: Bounds::of(settings),
            store: None,
            set_asides: 0,
            news,
            unwritten: 0,
            purging: false,
        };
        worker.opened()?;
        Ok(worker)
    }

    /// Ends after [`Command::Close`], or once nobody holds a handle.
    pub(super) fn run(mut self, mut commands: mpsc::Receiver<Command>, waits: &tokio::runtime::Runtime) {
        let mut tidy = Tidy::More;
        loop {
            let command = match (tidy, commands.try_recv()) {
                (_, Ok(command)) => Some(command),
                (_, Err(mpsc::error::TryRecvError::Disconnected)) => break,
                (Tidy::More, Err(mpsc::error::TryRecvError::Empty)) => None,
                (Tidy::Done, Err(mpsc::error::TryRecvError::Empty)) => {
                    let wait = if self.unwritten > CHECKPOINT_BYTES { QUIET } else { IDLE };
                    match waits.block_on(async { tokio::time::timeout(wait, commands.recv()).await }) {
                        Ok(Some(command)) => Some(command),
                        Ok(None) => break,
                        Err(_) => {
                            self.checkpoint(Checkpoint::Passive);
                            None
                        }
                    }
                }
            };
            match command {
                Some(Command::Close(answer)) => {
                    commands.close();
                    let _ = answer.send(self.close());
                    return;
                }
                Some(command) => tidy = self.answer(command),
                None => tidy = self.tidy(),
            }
        }
        if let Err(error) = self.close() {
            tracing::warn!("the history did not close cleanly: {error}");
        }
    }

    /// A caller that has gone away does not need its answer; what it asked for is done all the same.
    fn answer(&mut self, command: Command) -> Tidy {
        match command {
            Command::Record(record, answer) => {
                let _ = answer.send(self.record(*record));
                // One step for each record: pruning keeps up even where there is never a quiet moment.
                self.prune();
            }
            Command::List(asked, answer) => drop(answer.send(self.with(|store| store.list(&asked)))),
            Command::Get(id, answer) => drop(answer.send(self.with(|store| store.get(id)))),
            Command::Row(id, answer) => drop(answer.send(self.with(|store| store.row(id)))),
            Command::Delete(id, answer) => drop(answer.send(self.delete(id))),
            Command::Clear(answer) => drop(answer.send(self.clear())),
            Command::Stats(answer) => drop(answer.send(self.with(|store| store.stats()))),
            Command::Configure(settings) => {
                self.keep = settings.keep;
                self.bounds = Bounds::of(&settings);
            }
            Command::Close(answer) => drop(answer.send(self.close())),
        }
        Tidy::More
    }

    fn record(&mut self, mut record: RunRecord) -> Result<(), HistoryError> {
        // The owner may have changed their mind since the record was made.
        if self.keep == Keep::Metrics {
            record.body = None;
        }
        self.unwritten += store::weight(&record);
        self.with(|store| store.insert(&record))
    }

    fn delete(&mut self, id: RunId) -> Result<bool, HistoryError> {
        let deleted = self.with(|store| store.delete(id))?;
        if deleted {
            self.with(|store| store.begin_purge())?;
            self.purging = true;
        }
        Ok(deleted)
    }

    /// Starts a new file: nothing of the old one is left anywhere.
    fn clear(&mut self) -> Result<(), HistoryError> {
        self.close()?;
        for path in [&self.path, &disk::appended(&self.path, "-wal"), &disk::appended(&self.path, "-shm")] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(HistoryError::File { path: path.clone(), source: error });
                }
                Ok(()) | Err(_) => {}
            }
        }
        self.opened().map(drop)
    }

    fn close(&mut self) -> Result<(), HistoryError> {
        // SQLite writes the log into the database and removes it when the last connection closes.
        self.store.take().map_or(Ok(()), Store::close).map_err(HistoryError::from)
    }

    /// Does `work`. Where that meets damage, the file is set aside and the work is done once more, on a new one.
    fn with<T>(&mut self, mut work: impl FnMut(&mut Store) -> rusqlite::Result<T>) -> Result<T, HistoryError> {
        match work(self.opened()?) {
            Err(error) if is_damage(&error) => {
                self.set_aside(format!("it is damaged ({error})"))?;
                Ok(work(self.opened()?)?)
            }
            result => Ok(result?),
        }
    }

    fn opened(&mut self) -> Result<&mut Store, HistoryError> {
        // Somebody removed the file under an open connection: what is written there is gone at the next start.
        if self.store.is_some() && !self.path.exists() {
            self.store = None;
        }
        if self.store.is_none() {
            let store = match open(&self.path) {
                Err(Refusal::Unusable(reason)) => {
                    self.set_aside(reason)?;
                    match open(&self.path) {
                        Err(Refusal::Unusable(reason)) => return Err(HistoryError::Unusable(reason)),
                        Err(Refusal::Failed(error)) => return Err(error),
                        Ok(store) => store,
                    }
                }
                Err(Refusal::Failed(error)) => return Err(error),
                Ok(store) => store,
            };
            self.store = Some(store);
        }
        self.store.as_mut().ok_or(HistoryError::Closed)
    }

    fn set_aside(&mut self, reason: String) -> Result<(), HistoryError> {
        // Closed first: Windows renames no open file, and closing keeps the log with its database.
        self.store = None;
        if self.set_asides == MAX_SET_ASIDE {
            return Err(HistoryError::Unusable(reason));
        }
        self.set_asides += 1;
        let aside = disk::set_aside("history", &self.path, &COMPANIONS, reason, SystemTime::now())
            .map_err(|source| HistoryError::File { path: self.path.clone(), source })?;
        tracing::warn!("{aside}");
        self.news.send_replace(Some(aside));
        Ok(())
    }

    /// One step of what can wait: pruning, then merging the word index, then giving pages back.
    fn tidy(&mut self) -> Tidy {
        if self.prune() == Tidy::More {
            return Tidy::More;
        }
        let Some(store) = &self.store else { return Tidy::Done };
        match store.merge().and_then(|more| if more { Ok(true) } else { store.shrink() }) {
            Ok(true) => {
                self.unwritten += store::STEP_BYTES;
                Tidy::More
            }
            Ok(false) => {
                if std::mem::take(&mut self.purging) {
                    self.checkpoint(Checkpoint::Truncate);
                }
                Tidy::Done
            }
            Err(error) => {
                tracing::warn!("the history could not be tidied: {error}");
                Tidy::Done
            }
        }
    }

    /// SQLite does this by itself too, in the middle of some commit, where nobody is ever quiet.
    fn checkpoint(&mut self, how: Checkpoint) {
        self.unwritten = 0;
        if let Some(Err(error)) = self.store.as_ref().map(|store| store.checkpoint(how)) {
            tracing::warn!("the history's log could not be written back: {error}");
        }
    }

    /// One step. [`Tidy::More`] where there may be more to do.
    fn prune(&mut self) -> Tidy {
        let (bounds, now) = (self.bounds, SystemTime::now());
        let pruned = self.with(|store| {
            let oldest = store.oldest(PRUNE_RUNS)?;
            let doomed = retention::doomed(&oldest, store.stats()?, &bounds, now);
            let mut bytes = 0;
            let fits = oldest.iter().take(doomed.len()).take_while(|run| {
                let first = bytes == 0;
                bytes += run.bytes;
                first || bytes <= PRUNE_BYTES
            });
            let step = &doomed[..fits.count()];
            if !step.is_empty() {
                store.remove(step)?;
            }
            Ok((step.len(), bytes))
        });
        match pruned {
            Ok((0, _)) => Tidy::Done,
            Ok((_, bytes)) => {
                self.unwritten += bytes;
                Tidy::More
            }
            Err(error) => {
                tracing::warn!("the history could not be pruned: {error}");
                Tidy::Done
            }
        }
    }
}

enum Refusal {
    /// The file is to be set aside.
    Unusable(String),
    Failed(HistoryError),
}

fn open(path: &Path) -> Result<Store, Refusal> {
    schema::open(path).map(Store::new).map_err(|error| match error {
        OpenError::Unusable(reason) => Refusal::Unusable(reason),
        OpenError::Sql(error) if is_damage(&error) => Refusal::Unusable(format!("it is damaged ({error})")),
        OpenError::Sql(error) => Refusal::Failed(error.into()),
        OpenError::Io(source) => Refusal::Failed(HistoryError::File { path: path.to_owned(), source }),
    })
}

/// What no repetition mends. A full disk, a lock or a missing right is not damage.
fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase))
}
