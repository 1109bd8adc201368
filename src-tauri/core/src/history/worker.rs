//! The thread that owns the database. It answers one command after the other, and tidies up between them in small steps.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use tokio::runtime::Runtime;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, mpsc, oneshot, watch};

use super::HistoryError;
use super::clients::ClientFigure;
use super::readers::Readers;
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
/// Bytes written since the last checkpoint, before the next list waits for one: while lists are read the log only
/// grows.
const LOG_BYTES: u64 = 8 << 20;
/// Bytes written since the last checkpoint, before lists under way are ended for one.
const LONGEST_LOG_BYTES: u64 = 32 << 20;
/// Commands in a row, before a step of tidying runs even though more commands wait.
const COMMANDS_IN_A_ROW: u32 = 32;
/// How long an operation on the whole file waits for lists under way.
const ALONE: Duration = Duration::from_secs(2);
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
    Clients(Answer<Vec<ClientFigure>>),
    Configure(HistorySettings),
    Close(Answer<()>),
}

pub(super) struct Worker {
    path: PathBuf,
    keep: Keep,
    bounds: Bounds,
    /// `None` where the last attempt to open it failed; the next command tries again.
    store: Option<Store>,
    set_asides: u32,
    news: watch::Sender<Option<SetAside>>,
    unwritten: u64,
    readers: Readers,
    /// The next moment without readers, asked for to write the log back.
    turn: Option<Turn>,
    waits: Runtime,
    /// A run was deleted by the owner, and words of it may still be in the index.
    purging: bool,
    /// No words are left in the index, but they may still be in the log.
    purged: bool,
}

type Turn = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// What the thread does next.
enum Next {
    Command(Command),
    Tidy,
    /// No list is read.
    Alone(OwnedSemaphorePermit),
    Quiet,
    Ended,
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
        readers: Readers,
        waits: Runtime,
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
            readers,
            turn: None,
            waits,
            purging: false,
            purged: false,
        };
        worker.opened()?;
        Ok(worker)
    }

    /// Ends after [`Command::Close`], or once nobody holds a handle.
    pub(super) fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        let (mut tidy, mut in_a_row) = (Tidy::More, 0);
        loop {
            let next = self.next(&mut commands, tidy);
            match next {
                Next::Command(Command::Close(answer)) => {
                    commands.close();
                    let _ = answer.send(self.close_for_good());
                    return;
                }
                Next::Command(command) => {
                    tidy = self.answer(command);
                    in_a_row += 1;
                    if in_a_row == COMMANDS_IN_A_ROW {
                        (tidy, in_a_row) = (self.tidy(), 0);
                    }
                }
                Next::Tidy => (tidy, in_a_row) = (self.tidy(), 0),
                Next::Alone(alone) => self.write_back(&alone),
                Next::Quiet => {
                    self.ask_for_turn();
                    tidy = Tidy::More;
                }
                Next::Ended => break,
            }
            if self.unwritten > LOG_BYTES {
                self.ask_for_turn();
            }
            if self.unwritten > LONGEST_LOG_BYTES {
                self.readers.interrupt();
            }
        }
        if let Err(error) = self.close_for_good() {
            tracing::warn!("the history did not close cleanly: {error}");
        }
    }

    fn next(&mut self, commands: &mut mpsc::Receiver<Command>, tidy: Tidy) -> Next {
        if let Some(granted) = self.turn.as_mut().and_then(|turn| turn.now_or_never()) {
            self.turn = None;
            return granted.map_or(Next::Ended, Next::Alone);
        }
        match (commands.try_recv(), tidy) {
            (Ok(command), _) => return Next::Command(command),
            (Err(mpsc::error::TryRecvError::Disconnected), _) => return Next::Ended,
            (Err(mpsc::error::TryRecvError::Empty), Tidy::More) => return Next::Tidy,
            (Err(mpsc::error::TryRecvError::Empty), Tidy::Done) => {}
        }
        let wait = if self.unwritten > CHECKPOINT_BYTES && self.turn.is_none() { QUIET } else { IDLE };
        let turn = &mut self.turn;
        let next = self.waits.block_on(async {
            tokio::select! {
                biased;
                granted = granted(turn) => granted.map_or(Next::Ended, Next::Alone),
                command = commands.recv() => command.map_or(Next::Ended, Next::Command),
                () = tokio::time::sleep(wait) => Next::Quiet,
            }
        });
        if matches!(next, Next::Alone(_)) {
            self.turn = None;
        }
        next
    }

    /// A caller that has gone away does not need its answer; what it asked for is done all the same.
    fn answer(&mut self, command: Command) -> Tidy {
        match command {
            Command::Record(record, answer) => {
                let added = store::weight(&record);
                let _ = answer.send(self.record(*record));
                self.make_up_for(added);
            }
            Command::List(asked, answer) => drop(answer.send(self.with(|store| store.list(&asked)))),
            Command::Get(id, answer) => drop(answer.send(self.with(|store| store.get(id)))),
            Command::Row(id, answer) => drop(answer.send(self.with(|store| store.row(id)))),
            Command::Delete(id, answer) => drop(answer.send(self.delete(id))),
            Command::Clear(answer) => drop(answer.send(self.clear())),
            Command::Clients(answer) => drop(answer.send(self.with(|store| store.clients()))),
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

    /// Prunes enough to keep up with the writes even if there is never a quiet moment.
    fn make_up_for(&mut self, added: u64) {
        let mut pruned = 0;
        while let Some(bytes) = self.prune() {
            pruned += bytes;
            let far = self.with(|store| store.stats()).is_ok_and(|totals| self.bounds.far_below(totals));
            // More than was added, so that it ends some time. Not all of the excess, which may be a lot.
            if !far || pruned > added + PRUNE_BYTES {
                return;
            }
        }
    }

    fn delete(&mut self, id: RunId) -> Result<bool, HistoryError> {
        // The log is written back at once, and that works only without readers.
        let _alone = self.alone();
        let deleted = self.with(|store| store.delete(id))?;
        if deleted {
            self.with(|store| store.begin_purge())?;
            self.purging = true;
        }
        Ok(deleted)
    }

    /// Starts a new file: nothing of the old one is left anywhere.
    fn clear(&mut self) -> Result<(), HistoryError> {
        let _alone = self.alone();
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
        self.readers.retire();
        self.store.take().map_or(Ok(()), Store::close).map_err(HistoryError::from)
    }

    fn close_for_good(&mut self) -> Result<(), HistoryError> {
        let _alone = self.alone();
        self.readers.close();
        self.close()
    }

    /// Waits for lists under way, up to a bound. No list is read while the permit is held.
    fn alone(&mut self) -> Option<OwnedSemaphorePermit> {
        // A turn that was already asked for is first in the queue.
        let turn = self.turn.take().unwrap_or_else(|| Box::pin(self.readers.turn()));
        self.waits.block_on(async { tokio::time::timeout(ALONE, turn).await.ok()?.ok() })
    }

    fn ask_for_turn(&mut self) {
        if (self.unwritten > 0 || self.purged) && self.turn.is_none() {
            self.turn = Some(Box::pin(self.readers.turn()));
        }
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
            self.readers.retire();
            self.store = Some(store);
        }
        self.store.as_mut().ok_or(HistoryError::Closed)
    }

    fn set_aside(&mut self, reason: String) -> Result<(), HistoryError> {
        // Closed first: Windows renames no open file, and closing keeps the log with its database.
        let _alone = self.alone();
        self.readers.retire();
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
        if self.prune().is_some() {
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
                    self.purged = true;
                    self.ask_for_turn();
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
    fn write_back(&mut self, _nobody_reads: &OwnedSemaphorePermit) {
        let how = if std::mem::take(&mut self.purged) { Checkpoint::Truncate } else { Checkpoint::Passive };
        self.unwritten = 0;
        if let Some(Err(error)) = self.store.as_ref().map(|store| store.checkpoint(how)) {
            tracing::warn!("the history's log could not be written back: {error}");
        }
    }

    /// Prunes one step. Returns the bytes removed; none if there was nothing to prune.
    fn prune(&mut self) -> Option<u64> {
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
            Ok((0, _)) => None,
            Ok((_, bytes)) => {
                self.unwritten += bytes;
                Some(bytes)
            }
            Err(error) => {
                tracing::warn!("the history could not be pruned: {error}");
                None
            }
        }
    }
}

/// Never resolves if none was asked for.
async fn granted(turn: &mut Option<Turn>) -> Result<OwnedSemaphorePermit, AcquireError> {
    match turn {
        Some(turn) => turn.await,
        None => std::future::pending().await,
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
