//! Answers one `code.run`, and sends the notifications about its progress until the reply.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::door::Runs;
use super::outbox::{Answered, Gone, Outbox, line};
use crate::budget::Hold;
use crate::error::RunError;
use crate::event::{Snapshot, Waiting};
use crate::language::Language;
use crate::protocol::reply::{About, Output, RunReply, WaitingNote};
use crate::protocol::{Id, Notification, Response};
use crate::run::{Cancel, Captured, Client, Missed, Outcome, OutputChunk, RunId, RunSpec, Stream};
use crate::supervisor::Progress;

/// Capacity of the channel of output to a client that reads slowly. The supervisor counts the bytes it drops beyond it.
const OUTPUT_CHUNKS: usize = 64;
/// The largest chunk of output that an engine delivers, in bytes.
const CHUNK: usize = 32 << 10;
/// Interval of `code.waiting` notifications. A run that starts sooner gets none.
const WAITING_EVERY: Duration = Duration::from_millis(100);

pub(super) struct Call<D, W> {
    pub(super) door: D,
    pub(super) client: Client,
    pub(super) outbox: Arc<Outbox<W>>,
    pub(super) id: Id,
    pub(super) spec: RunSpec,
    pub(super) stream: bool,
    pub(super) cancel: Cancel,
    pub(super) answered: Answered,
    /// Counts the bytes that the call keeps: its program, then its result.
    pub(super) hold: Hold,
}

impl<D: Runs, W: AsyncWrite + Unpin> Call<D, W> {
    pub(super) async fn answer(self) {
        let run = self.spec.id;
        let Self { door, client, outbox, id, spec, stream, cancel, answered, hold } = self;
        let about = About { request_id: &id, index: None, run_id: run };
        let kept = hold.clone();
        let result = perform(&door, client, &outbox, about, Wanted { spec, stream, hold }, &cancel).await;
        let reply = || {
            // Both are dropped with the line made: the outbox then counts its bytes, and no other copy of the result
            // exists.
            let (result, _kept) = (result, kept);
            let reply = result.as_ref().map(|outcome| RunReply::new(run, outcome)).map_err(Into::into);
            line(&Response::new(&id, reply))
        };
        // The session notices by itself when the client is gone.
        let _ = outbox.answer(reply, &answered).await;
    }
}

/// A run, whether it streams its progress, and the account of the bytes kept for it.
pub(super) struct Wanted {
    pub(super) spec: RunSpec,
    pub(super) stream: bool,
    pub(super) hold: Hold,
}

/// Performs the run to its end. `cancel` ends it early.
pub(super) async fn perform<D: Runs, W: AsyncWrite + Unpin>(
    door: &D,
    client: Client,
    outbox: &Outbox<W>,
    about: About<'_>,
    wanted: Wanted,
    cancel: &Cancel,
) -> Result<Outcome, RunError> {
    let Wanted { spec, stream, hold } = wanted;
    let progress = Progress { hold, ..Progress::default() };
    if stream {
        streamed(door, client, outbox, about, (spec, progress), cancel).await
    } else {
        door.run(spec, client, progress, cancel).await
    }
}

/// Performs a run and streams its progress. A slow client does not hold up the run; both have ended before the reply.
async fn streamed<D: Runs, W: AsyncWrite + Unpin>(
    door: &D,
    client: Client,
    outbox: &Outbox<W>,
    about: About<'_>,
    (spec, progress): (RunSpec, Progress),
    cancel: &Cancel,
) -> Result<Outcome, RunError> {
    let hold = progress.hold.clone();
    let (started, has_started) = oneshot::channel();
    let (output, chunks) = mpsc::channel(OUTPUT_CHUNKS);
    let missed = Missed::default();
    let over = CancellationToken::new();
    let mut teller = Teller {
        outbox,
        about,
        language: spec.language,
        snapshots: door.watch(),
        has_started: Some(has_started),
        chunks,
        missed: missed.clone(),
        waiting: None,
        ticks: ticks(),
    };
    let run = async {
        let progress = Progress { started: Some(started), output: Some(output), missed, ..progress };
        let result = door.run(spec, client, progress, cancel).await;
        match &result {
            Ok(outcome) => hold.going(outcome.weight() + untold(&outcome.stdout, &outcome.stderr)),
            Err(RunError::Interrupted(cut)) => hold.going(cut.weight() + untold(&cut.stdout, &cut.stderr)),
            Err(_) => {}
        }
        over.cancel();
        result
    };
    let (result, _) = tokio::join!(run, teller.tell(&over));
    result
}

/// Upper bound of the bytes of output that wait to be sent, beside the outcome.
fn untold(stdout: &Captured, stderr: &Captured) -> usize {
    let produced = usize::try_from(stdout.produced.saturating_add(stderr.produced));
    produced.unwrap_or(usize::MAX).min(OUTPUT_CHUNKS * CHUNK)
}

fn ticks() -> Interval {
    let mut ticks = interval_at(tokio::time::Instant::now() + WAITING_EVERY, WAITING_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

struct Teller<'a, W> {
    outbox: &'a Outbox<W>,
    about: About<'a>,
    language: Language,
    snapshots: watch::Receiver<Snapshot>,
    /// None once it is known that the run started, or that it never will.
    has_started: Option<oneshot::Receiver<()>>,
    chunks: mpsc::Receiver<OutputChunk>,
    missed: Missed,
    waiting: Option<Waiting>,
    ticks: Interval,
}

impl<W: AsyncWrite + Unpin> Teller<'_, W> {
    /// Sends notifications until the run is over and all its output is sent.
    async fn tell(&mut self, over: &CancellationToken) -> Result<(), Gone> {
        loop {
            tokio::select! {
                biased;
                happened = started(&mut self.has_started) => {
                    self.has_started = None;
                    if happened {
                        self.tell_started().await?;
                    }
                }
                Some(chunk) = self.chunks.recv() => self.tell_output(&chunk).await?,
                () = over.cancelled() => break,
                _ = self.ticks.tick(), if self.has_started.is_some() => self.tell_waiting().await?,
            }
        }
        // The run is over, so the channel gets no more chunks.
        while let Ok(chunk) = self.chunks.try_recv() {
            self.tell_output(&chunk).await?;
        }
        for stream in [Stream::Stdout, Stream::Stderr] {
            let missed = self.missed.take(stream);
            if missed > 0 {
                self.tell_output(&OutputChunk { stream, bytes: Bytes::new(), missed }).await?;
            }
        }
        Ok(())
    }

    async fn tell_started(&self) -> Result<(), Gone> {
        self.outbox.send(&Notification::new("code.started", self.about)).await
    }

    async fn tell_output(&mut self, chunk: &OutputChunk) -> Result<(), Gone> {
        // `started` and output come over different channels and may race. Output implies that the run has started.
        if self.has_started.take().is_some() {
            self.tell_started().await?;
        }
        self.outbox.send(&Notification::new("code.output", Output::new(self.about, chunk))).await
    }

    async fn tell_waiting(&mut self) -> Result<(), Gone> {
        let (waiting, image) = {
            let snapshot = self.snapshots.borrow();
            let waiting = waiting(&snapshot, self.about.run_id);
            (waiting, waiting.and_then(|waiting| image(&snapshot, self.language, waiting)))
        };
        if waiting == self.waiting {
            return Ok(());
        }
        self.waiting = waiting;
        let Some(waiting) = waiting else { return Ok(()) };
        let note = WaitingNote { about: self.about, image: image.as_deref(), waiting };
        self.outbox.send(&Notification::new("code.waiting", note)).await
    }
}

/// Whether the run started. Pending forever once that is known.
async fn started(receiver: &mut Option<oneshot::Receiver<()>>) -> bool {
    match receiver {
        Some(receiver) => receiver.await.is_ok(),
        None => pending().await,
    }
}

fn waiting(snapshot: &Snapshot, run: RunId) -> Option<Waiting> {
    let live = || snapshot.queued.iter().chain(&snapshot.running);
    live().find(|live| live.run_id == run)?.waiting
}

/// The image's name, if the run waits for its image.
fn image(snapshot: &Snapshot, language: Language, waiting: Waiting) -> Option<String> {
    match waiting {
        Waiting::Pull { .. } | Waiting::Preparation | Waiting::Check => {
            let status = snapshot.images.iter().find(|status| status.language == language)?;
            Some(status.image.clone())
        }
        Waiting::Turn { .. } | Waiting::Unread | Waiting::Engine | Waiting::Starting => None,
    }
}
