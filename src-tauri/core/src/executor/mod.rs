//! One run in one leased container: send, watch the deadline and the caps, collect, and say honestly how it ended.

mod output;

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::budget::Hold;
use crate::engine::{Attached, EngineError, Frame};
use crate::error::RunError;
use crate::launcher::{self, Beside, Ending, Harvest, Nonce, Report, Step};
use crate::lease::{Container, Lease};
use crate::run::{Captured, Limits, Missed, Outcome, OutputChunk, RunSpec, Status, Stream};
use crate::tap::Tap;

use output::Output;

/// From the header to the start line: unpacking 6 MB takes a fraction of a second on a slow machine.
const SETUP_LIMIT: Duration = Duration::from_secs(30);
/// From the trailer to the end of the tar.
const COLLECT_LIMIT: Duration = Duration::from_secs(10);
/// From the run's own limit to the end of the tar, for a program that ended just in time.
const COLLECT_GRACE: Duration = Duration::from_secs(2);
/// For the engine's word on a container that ended without its own.
const EXIT_LIMIT: Duration = Duration::from_secs(5);
const EXIT_POLL: Duration = Duration::from_millis(50);

/// The launcher waits this long for what a program left running.
const LINGER: Duration = Duration::from_millis(100);
/// Most names of files outside `out/` that are reported.
const MAX_LEFT_BEHIND: usize = 100;

/// Of what a container said that never started its program, for the error.
const MAX_SAID: usize = 300;

/// 128 + SIGKILL: what a shell would say of a program that Sandtray killed.
const KILLED: i32 = 137;
/// PID 1's own exit code where its watchdog ended the run.
const WATCHDOG: i32 = 124;
/// And where the program did not get to its interpreter whole.
const NOT_FED: i32 = 125;

/// Where a run's progress goes while it runs. A receiver that is too slow loses output, counted in `missed`, never the verdict.
#[derive(Debug, Default)]
pub struct Progress {
    /// The program has been started.
    pub started: Option<oneshot::Sender<()>>,
    pub output: Option<mpsc::Sender<OutputChunk>>,
    /// What `output` had no room for; whoever reads it tells of that last.
    pub missed: Missed,
    /// For the owner, who may look on.
    pub tap: Tap,
    /// The bytes kept for the run, counted on its client's account.
    pub hold: Hold,
}

/// What is known before the container is.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub at: Instant,
    pub wall_clock: SystemTime,
}

/// Runs the program and lets the container go. Cancelling ends it with the verdict `cancelled` and what it printed so far.
pub async fn execute(
    lease: Lease,
    spec: &RunSpec,
    image: String,
    asked: Asked,
    progress: &mut Progress,
    cancel: &CancellationToken,
) -> Result<Outcome, RunError> {
    let nonce = Nonce::random();
    let opening = launcher::opening(spec, &nonce, asked.wall_clock)
        .map_err(|error| RunError::Internal(format!("the files could not be packed: {error}")))?;
    let Lease { mut container, attached } = lease;
    container.occupy();
    let mut run = Run::new(spec, &nonce, asked.at, progress);
    let cause = run.watch(attached, opening, spec.stdin.clone(), cancel).await;
    run.judge(cause, container, spec, image).await
}

/// What is known before a run that never got a container.
pub fn cancelled_early(spec: &RunSpec, image: String, asked: Asked) -> Outcome {
    Outcome {
        status: Status::Cancelled,
        exit_code: KILLED,
        stdout: Captured::default(),
        stderr: Captured::default(),
        files: Vec::new(),
        skipped_files: Vec::new(),
        left_behind: Vec::new(),
        wall: Duration::ZERO,
        queued: asked.at.elapsed(),
        memory_bytes: None,
        cpu: None,
        oom_kills: 0,
        image,
        limits: spec.limits,
        recorded: true,
    }
}

/// Why a run is over.
#[derive(Debug)]
enum Cause {
    /// The trailer and all files are in.
    Complete,
    Cancelled,
    /// The current phase took longer than it may.
    Deadline,
    OutputLimit,
    /// The container's streams ended before the launcher said so.
    StreamEnded,
    StreamFailed(EngineError),
    /// What came cannot be the launcher's: its image lacks a tool, or the program wrote over its lines.
    Broken(&'static str),
}

struct Run<'a> {
    limit: Duration,
    asked_at: Instant,
    started: &'a mut Option<oneshot::Sender<()>>,
    /// When the program started; before that the launcher is at work.
    began: Option<Instant>,
    /// When the program ended; after that its files come.
    ended: Option<Instant>,
    /// Whether the trailer is certainly from the launcher: the program cannot know the nonce.
    sealed: bool,
    report: Report,
    complete: bool,
    stdout: Output,
    stderr: Output,
    /// Splits the program's standard error from what follows the launcher's mark.
    stderr_mark: Option<launcher::Splitter>,
    steps: Vec<Step>,
}

impl<'a> Run<'a> {
    fn new(spec: &RunSpec, nonce: &Nonce, asked_at: Instant, progress: &'a mut Progress) -> Self {
        let output = |stream| {
            let (watcher, missed) = (progress.output.clone(), progress.missed.clone());
            Output::new(stream, &spec.limits, spec.overflow, watcher, missed, progress.tap.clone())
        };
        Self {
            limit: spec.limits.wall(),
            asked_at,
            stdout: output(Stream::Stdout),
            stderr: output(Stream::Stderr),
            started: &mut progress.started,
            began: None,
            ended: None,
            sealed: false,
            report: Report::new(nonce, spec.limits.file_bytes),
            complete: false,
            stderr_mark: Some(launcher::Splitter::new(&nonce.mark())),
            steps: Vec::new(),
        }
    }

    /// Feeds and reads until there is a cause to stop. Returning drops both directions of the attachment.
    async fn watch(&mut self, attached: Attached, opening: Bytes, stdin: Bytes, cancel: &CancellationToken) -> Cause {
        let Attached { mut input, mut output } = attached;
        // A program that does not read its stdin closes it under us; that is no failure of anybody.
        let feed = async move {
            let _ = input.write_all(&opening).await;
            let _ = input.write_all(&stdin).await;
            let _ = input.shutdown().await;
            input
        };
        tokio::pin!(feed);
        let mut fed = None;
        let mut deadline = Instant::now() + SETUP_LIMIT;
        loop {
            let frame = tokio::select! {
                // In this order: a flood of frames must starve neither the deadline nor the program's stdin.
                biased;
                () = cancel.cancelled() => return Cause::Cancelled,
                () = tokio::time::sleep_until(deadline) => return Cause::Deadline,
                input = &mut feed, if fed.is_none() => {
                    fed = Some(input);
                    continue;
                }
                frame = output.next() => frame,
            };
            match frame {
                Some(Ok(frame)) => {
                    if let Some(cause) = self.take(frame, &mut deadline) {
                        return cause;
                    }
                }
                Some(Err(error)) => return Cause::StreamFailed(error),
                None => return Cause::StreamEnded,
            }
        }
    }

    fn take(&mut self, frame: Frame, deadline: &mut Instant) -> Option<Cause> {
        match frame.stream {
            Stream::Stdout => self.take_stdout(frame.bytes, deadline),
            Stream::Stderr => {
                self.take_stderr(frame.bytes);
                None
            }
        }
        .or_else(|| self.is_over_cap().then_some(Cause::OutputLimit))
        .or_else(|| (self.complete && self.stderr_mark.is_none()).then_some(Cause::Complete))
    }

    /// Not before the start line was read: the two streams have no common order, and a flood on one may overtake it.
    fn is_over_cap(&self) -> bool {
        self.began.is_some() && (self.stdout.is_fatal() || self.stderr.is_fatal())
    }

    fn take_stdout(&mut self, bytes: Bytes, deadline: &mut Instant) -> Option<Cause> {
        let mut steps = std::mem::take(&mut self.steps);
        self.report.push(bytes, &mut steps);
        let mut cause = None;
        for step in steps.drain(..) {
            match step {
                Step::Started { sealed } => {
                    self.sealed = sealed;
                    let now = Instant::now();
                    self.began = Some(now);
                    *deadline = now + self.limit;
                    if let Some(started) = self.started.take() {
                        let _ = started.send(());
                    }
                }
                Step::Output(bytes) => self.stdout.push(bytes),
                Step::Ended => {
                    let now = Instant::now();
                    self.ended = Some(now);
                    // A program that writes a trailer of its own must not live longer for it.
                    let latest = self.began.map_or(now, |began| began + self.limit + COLLECT_GRACE);
                    *deadline = (now + COLLECT_LIMIT).min(latest);
                }
                Step::Complete => self.complete = true,
                Step::UnpackFailed => cause = Some(Cause::Broken("the program and its files could not be unpacked")),
                Step::Broken(what) => cause = Some(Cause::Broken(what)),
            }
        }
        self.steps = steps;
        cause
    }

    fn take_stderr(&mut self, bytes: Bytes) {
        let Some(splitter) = &mut self.stderr_mark else { return };
        let scan = splitter.push(bytes);
        self.stderr.push(scan.before);
        if scan.after.is_some() {
            self.stderr_mark = None;
        }
    }

    async fn judge(
        mut self,
        cause: Cause,
        container: Container,
        spec: &RunSpec,
        image: String,
    ) -> Result<Outcome, RunError> {
        let over = Instant::now();
        let Some(began) = self.began else { return self.never_began(cause, container, spec, image).await };
        if !matches!(cause, Cause::OutputLimit) {
            self.flush_held();
        }
        let ending = self.report.ending();
        let at_rest = self.sealed && matches!(cause, Cause::Complete) && ending.is_some();
        let (status, exit_code, oom_kills) = match (cause, ending) {
            (Cause::OutputLimit, _) => (Status::OutputLimit, KILLED, 0),
            (Cause::Cancelled, _) => (Status::Cancelled, KILLED, 0),
            (_, Some(ending)) => verdict(&ending),
            (Cause::Deadline, None) => (Status::Timeout, KILLED, 0),
            (Cause::Complete | Cause::StreamEnded | Cause::StreamFailed(_), None) => last_words(&container).await?,
            (Cause::Broken(_), None) => (Status::Failed, KILLED, 0),
        };
        // From here on the container is on its way out, while the reply is on its own.
        if at_rest {
            container.rest();
        } else {
            drop(container);
        }
        let (beside, harvest) = self.report.into_parts();
        let wall = wall(began, self.ended.unwrap_or(over), ending, &spec.limits);
        let Harvest { files, skipped } = if ending.is_some() { harvest } else { Harvest::default() };
        Ok(Outcome {
            status,
            exit_code,
            stdout: self.stdout.finish(),
            stderr: self.stderr.finish(),
            files,
            skipped_files: skipped,
            left_behind: left_behind(beside, spec),
            wall,
            queued: began - self.asked_at,
            memory_bytes: ending.and_then(|ending| ending.peak_bytes),
            cpu: ending.map(|ending| ending.cpu),
            oom_kills,
            image,
            limits: spec.limits,
            recorded: true,
        })
    }

    /// The program was never started: cancelled in time, or our own failing.
    async fn never_began(
        self,
        cause: Cause,
        container: Container,
        spec: &RunSpec,
        image: String,
    ) -> Result<Outcome, RunError> {
        let said = self.stderr.finish().bytes;
        let said: String = String::from_utf8_lossy(&said).trim().chars().take(MAX_SAID).collect();
        let fault = match cause {
            Cause::Cancelled => {
                drop(container);
                let asked = Asked { at: self.asked_at, wall_clock: SystemTime::now() };
                return Ok(cancelled_early(spec, image, asked));
            }
            Cause::StreamFailed(EngineError::Unavailable(trouble)) => return Err(RunError::Engine(trouble)),
            Cause::StreamFailed(error) => error.to_string(),
            Cause::Deadline => format!("the container of {image} was not ready within {} s", SETUP_LIMIT.as_secs()),
            Cause::Broken(what) => format!("the image {image} cannot run programs ({what}); it said: {said}"),
            Cause::StreamEnded | Cause::Complete | Cause::OutputLimit => {
                format!("the container of {image} ended before the program started; it said: {said}")
            }
        };
        Err(RunError::Internal(fault))
    }

    fn flush_held(&mut self) {
        let mut steps = Vec::new();
        self.report.finish(&mut steps);
        for step in steps {
            if let Step::Output(bytes) = step {
                self.stdout.push(bytes);
            }
        }
        if let Some(mut splitter) = self.stderr_mark.take() {
            self.stderr.push(splitter.finish());
        }
    }
}

/// The program's time. The wait for what it left running does not count, up to the bound that the launcher keeps where the
/// program leaves it the CPU for that. Both ends are read when their lines arrive, on a busy machine together: the program
/// took at least as long as its CPU time takes.
fn wall(began: Instant, ended: Instant, ending: Option<Ending>, limits: &Limits) -> Duration {
    let measured = ended - began;
    let Some(ending) = ending else { return measured };
    let cpus = f64::from(limits.milli_cpus) / 1000.0;
    let least = ending.cpu.div_f64(cpus.max(1.0)).min(limits.wall());
    measured.saturating_sub(ending.linger.min(LINGER)).max(least)
}

/// From what PID 1 says of a program that it saw end.
fn verdict(ending: &Ending) -> (Status, i32, u32) {
    let exit_code = i32::from(ending.exit_code);
    let status = match (exit_code, ending.oom_kills) {
        (0, _) => Status::Ok,
        (_, 0) => Status::Failed,
        (_, _) => Status::OutOfMemory,
    };
    (status, exit_code, ending.oom_kills)
}

/// PID 1 is gone without a trailer: out of memory took it, its watchdog ended the run, or the engine broke off.
async fn last_words(container: &Container) -> Result<(Status, i32, u32), RunError> {
    // Its pipes may close some time before the engine has noticed that it ended.
    let ended = async {
        loop {
            match container.exit().await {
                Ok(exit) if exit.running => tokio::time::sleep(EXIT_POLL).await,
                settled => return settled,
            }
        }
    };
    let exit = match tokio::time::timeout(EXIT_LIMIT, ended).await {
        Ok(Ok(exit)) => exit,
        Ok(Err(EngineError::Unavailable(trouble))) => return Err(RunError::Engine(trouble)),
        Ok(Err(error)) => return Err(RunError::Internal(error.to_string())),
        Err(_) => return Err(RunError::Internal("the connection to the running container broke".into())),
    };
    if exit.exit_code == NOT_FED && !exit.oom_killed {
        return Err(RunError::Internal("the program could not be handed to its interpreter; run it again".into()));
    }
    Ok(match exit.exit_code {
        _ if exit.oom_killed => (Status::OutOfMemory, KILLED, 1),
        WATCHDOG => (Status::Timeout, KILLED, 0),
        _ => (Status::Failed, KILLED, 0),
    })
}

/// The files that the program wrote outside `out/`, its rewritten inputs included. Files that Sandtray put there and
/// Python's caches are left out; no agent means to keep those.
fn left_behind(beside: Vec<Beside>, spec: &RunSpec) -> Vec<String> {
    let inputs: HashSet<&str> = spec.files.iter().map(|file| file.name.as_str()).collect();
    let folders: HashSet<&str> = spec.files.iter().flat_map(|file| file.name.parents()).collect();
    let is_left = |Beside { name, written }: &Beside| {
        let name = name.as_str();
        let ours = name == spec.language.recipe().program || folders.contains(name);
        let cache = name.split('/').any(|component| component == "__pycache__");
        !ours && !cache && (*written || !inputs.contains(name))
    };
    beside.into_iter().filter(is_left).map(|entry| entry.name).take(MAX_LEFT_BEHIND).collect()
}

#[cfg(test)]
mod tests;
