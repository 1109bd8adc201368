//! The thread that owns the database. It handles one command at a time, and does background work in between.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::runtime::Runtime;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, mpsc, oneshot, watch};

use super::HistoryError;
use super::clients::ClientFigure;
use super::readers::Readers;
use super::reading;
use super::record::{HistoryQuery, Page, RunRecord, RunRow, Side, Stats};
use super::reserve::Reserve;
use super::retention::Bounds;
use super::store::{self, Store};
use super::trouble::{Trouble, Why};
use crate::disk::{self, SetAside};
use crate::run::RunId;
use crate::settings::{HistorySettings, Keep};

/// Bytes written since the last checkpoint, above which the next pause of commands is used for one.
const CHECKPOINT_BYTES: u64 = 2 << 20;
/// Bytes written since the last checkpoint, above which the next read waits for one: while there are readers, the log
/// only grows.
const LOG_BYTES: u64 = 8 << 20;
/// The same bound in trouble, when there is no space for a longer log.
const SHORT_LOG_BYTES: u64 = 512 << 10;
/// Bytes written since the last checkpoint, above which reads in progress are interrupted for one.
const LONGEST_LOG_BYTES: u64 = 32 << 20;
/// Commands after which a step of background work runs, even if more commands wait.
const COMMANDS_IN_A_ROW: u32 = 32;
/// Timeout for reads in progress, before an operation on the whole file.
const ALONE: Duration = Duration::from_secs(2);
/// Pause of commands before the log is written back, which costs some milliseconds of disk.
const QUIET: Duration = Duration::from_millis(200);
/// Runs indexed before a search, if they were missed earlier.
const MOST_SETTLED: u32 = 16;
/// After an attempt to index a run that met a full disk.
pub(super) const CATCH_UP_PAUSE: Duration = Duration::from_secs(10);
/// Interval of attempts to make the reserve, and in trouble to write the history.
pub(super) const RESERVE_EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a command. Then old runs are pruned.
const IDLE: Duration = Duration::from_secs(60 * 60);

pub(super) type Answer<T> = oneshot::Sender<Result<T, HistoryError>>;

#[derive(Debug)]
pub(super) enum Command {
    Record(Box<RunRecord>, Answer<()>),
    List(HistoryQuery, Answer<Page>),
    Get(RunId, Answer<Option<RunRecord>>),
    Row(RunId, Answer<Option<RunRow>>),
    File(RunId, Side, Answer<Option<Bytes>>),
    Delete(RunId, Answer<bool>),
    Clear(Answer<()>),
    Stats(Answer<Stats>),
    Clients(Answer<Vec<ClientFigure>>),
    /// Tries to write. The latest trouble has the result.
    Try(Answer<()>),
    /// Answered once all earlier records are indexed for search.
    Settle(Answer<()>),
    Configure(HistorySettings),
    Close(Answer<()>),
}

pub(super) struct Worker {
    pub(super) path: PathBuf,
    keep: Keep,
    pub(super) bounds: Bounds,
    /// `None` if the last attempt to open it failed; the next command tries again.
    pub(super) store: Option<Store>,
    pub(super) set_asides: u32,
    pub(super) news: News,
    pub(super) unwritten: u64,
    pub(super) readers: Readers,
    pub(super) reserve: Reserve,
    pub(super) reserved: bool,
    /// Consecutive attempts to make the reserve that met a full disk.
    pub(super) reserve_failures: u32,
    /// Time of the last attempt to make the reserve and to end the trouble.
    pub(super) last_look: Option<Instant>,
    /// The open database has a growth bound, because the disk was full.
    pub(super) bounded: bool,
    /// Some recorded runs may not be indexed yet.
    pub(super) behind: bool,
    /// The last run that could not be indexed for another reason than a full disk. Only older ones are tried.
    pub(super) passed_over: Option<i64>,
    /// Time of the last attempt to index a run that met a full disk.
    pub(super) no_room_at: Option<Instant>,
    /// The requested turn without readers, for writing back the log.
    turn: Option<Turn>,
    waits: Runtime,
    /// The owner deleted a run whose words may still be in the index.
    pub(super) purging: bool,
    /// The words of deleted runs are gone from the index, but may still be in the log.
    pub(super) purged: bool,
}

/// The worker's reports to its handles.
pub(super) struct News {
    pub(super) asides: watch::Sender<Option<SetAside>>,
    pub(super) trouble: watch::Sender<Option<Trouble>>,
}

type Turn = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// The worker's next action.
enum Next {
    Command(Command),
    Tidy,
    /// A turn without readers.
    Alone(OwnedSemaphorePermit),
    Quiet,
    Ended,
}

/// Whether background work remains after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tidy {
    More,
    Done,
}

impl Worker {
    pub(super) fn open(
        path: PathBuf,
        settings: &HistorySettings,
        readers: Readers,
        waits: Runtime,
        news: News,
    ) -> Result<Self, HistoryError> {
        let mut worker = Self {
            reserve: Reserve::beside(&path),
            reserved: false,
            reserve_failures: 0,
            last_look: None,
            bounded: false,
            behind: true,
            passed_over: None,
            no_room_at: None,
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
        worker.begin()?;
        Ok(worker)
    }

    /// Opens the file at the start. A full disk does not keep the service from starting; any other error does.
    fn begin(&mut self) -> Result<(), HistoryError> {
        let mut opened = self.opened().map(drop);
        if self.is_full(&opened) && self.reserve.give() {
            opened = self.opened().map(drop);
        }
        if self.is_full(&opened) {
            self.trouble(Why::DiskFull, |trouble| trouble.records = false);
            return Ok(());
        }
        opened
    }

    fn is_full(&self, opened: &Result<(), HistoryError>) -> bool {
        opened.as_ref().is_err_and(|error| self.is_for_want_of_room(error))
    }

    /// Handles commands until [`Command::Close`], or until the last handle is dropped.
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
                    self.recover_when_due();
                    in_a_row += 1;
                    if in_a_row == COMMANDS_IN_A_ROW {
                        (tidy, in_a_row) = (self.tidy(), 0);
                    }
                }
                Next::Tidy => (tidy, in_a_row) = (self.tidy(), 0),
                Next::Alone(alone) => self.write_back(&alone),
                Next::Quiet => {
                    self.recover_when_due();
                    self.ask_for_turn();
                    tidy = Tidy::More;
                }
                Next::Ended => break,
            }
            let most = if self.in_trouble() { SHORT_LOG_BYTES } else { LOG_BYTES };
            if self.unwritten > most {
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
        let wait = match (self.unwritten > CHECKPOINT_BYTES && self.turn.is_none(), self.reserved && !self.in_trouble())
        {
            (true, _) => QUIET,
            (false, false) => RESERVE_EVERY,
            (false, true) => IDLE,
        };
        let wait = if self.behind { wait.min(CATCH_UP_PAUSE) } else { wait };
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

    /// Handles one command. It is carried out even if its caller is gone.
    fn answer(&mut self, command: Command) -> Tidy {
        match command {
            Command::Record(record, answer) => {
                let added = store::weight(&record);
                self.record(*record, answer);
                self.make_up_for(added);
            }
            Command::List(asked, answer) => drop(answer.send(self.with(|store| store.list(&asked)))),
            Command::Get(id, answer) => drop(answer.send(self.with(|store| reading::record(store.connection(), id)))),
            Command::Row(id, answer) => drop(answer.send(self.with(|store| reading::row(store.connection(), id)))),
            Command::File(id, side, answer) => {
                drop(answer.send(self.with(|store| reading::file(store.connection(), id, &side))));
            }
            Command::Delete(id, answer) => drop(answer.send(self.delete(id))),
            Command::Clear(answer) => drop(answer.send(self.clear())),
            Command::Clients(answer) => drop(answer.send(self.with(|store| store.clients()))),
            Command::Stats(answer) => drop(answer.send(self.with(|store| store.stats()))),
            Command::Try(answer) => {
                self.recover();
                let _ = answer.send(Ok(()));
            }
            Command::Settle(answer) => {
                // A longer backlog is left to the tidying: finished runs wait for this thread.
                for _ in 0..MOST_SETTLED {
                    if self.catch_up() == Tidy::Done {
                        break;
                    }
                }
                let _ = answer.send(Ok(()));
            }
            Command::Configure(settings) => {
                self.keep = settings.keep;
                self.bounds = Bounds::of(&settings);
            }
            Command::Close(answer) => drop(answer.send(self.close())),
        }
        Tidy::More
    }

    fn record(&mut self, mut record: RunRecord, answer: Answer<()>) {
        // The setting may have changed since the record was made.
        if self.keep == Keep::Metrics {
            record = record.without_words();
        }
        self.unwritten += store::weight(&record);
        let written = self.write(&mut record);
        let seq = written.as_ref().ok().copied();
        let _ = answer.send(written.map(drop));
        // Indexed after the answer, because only searches need it.
        if let Some(seq) = seq
            && let Err(error) = self.with(|store| store.index(seq, &record))
        {
            tracing::warn!(run = %record.row.run_id, %error, "a run cannot be searched for yet");
            self.behind = true;
        }
    }

    fn delete(&mut self, id: RunId) -> Result<bool, HistoryError> {
        // The log is written back at once, which works only without readers.
        let _alone = self.alone();
        let deleted = self.with(|store| store.delete(id))?;
        if deleted {
            self.with(|store| store.begin_purge())?;
            self.purging = true;
        }
        Ok(deleted)
    }

    /// Starts a new file. Nothing of the old one remains.
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
        // SQLite writes back and removes the log when the last connection closes.
        self.readers.retire();
        self.store.take().map_or(Ok(()), Store::close).map_err(HistoryError::from)
    }

    fn close_for_good(&mut self) -> Result<(), HistoryError> {
        let _alone = self.alone();
        self.readers.close();
        self.close()
    }

    /// Waits for reads in progress, up to a timeout. No read starts while the permit is held.
    pub(super) fn alone(&mut self) -> Option<OwnedSemaphorePermit> {
        // A turn requested earlier is ahead in the queue.
        let turn = self.turn.take().unwrap_or_else(|| Box::pin(self.readers.turn()));
        self.waits.block_on(async { tokio::time::timeout(ALONE, turn).await.ok()?.ok() })
    }

    /// The same, and ends reads under way. The turn is queued before that, so that a retried read waits for it.
    pub(super) fn alone_at_once(&mut self) -> Option<OwnedSemaphorePermit> {
        let mut turn = self.turn.take().unwrap_or_else(|| Box::pin(self.readers.turn()));
        if let Some(granted) = (&mut turn).now_or_never() {
            return granted.ok();
        }
        self.readers.interrupt();
        self.turn = Some(turn);
        self.alone()
    }

    pub(super) fn ask_for_turn(&mut self) {
        if (self.unwritten > 0 || self.purged) && self.turn.is_none() {
            self.turn = Some(Box::pin(self.readers.turn()));
        }
    }
}

/// Waits for a requested turn. Pending forever without one.
async fn granted(turn: &mut Option<Turn>) -> Result<OwnedSemaphorePermit, AcquireError> {
    match turn {
        Some(turn) => turn.await,
        None => std::future::pending().await,
    }
}
