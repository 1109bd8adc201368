//! One run in one leased container: sends the program, enforces the deadline and the caps, collects the results, and
//! decides how the run ended.

mod ending;
mod output;

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::budget::Hold;
use crate::engine::{Attached, EngineError, EngineTrouble, Frame};
use crate::error::RunError;
use crate::launcher::{self, Beside, Ending, Harvest, Nonce, Report, Step};
use crate::lease::{Container, Lease};
use crate::run::{
    Cancel, Captured, EndedBy, Interrupted, Limits, Missed, Outcome, OutputChunk, RunSpec, Status, Stream,
};
use crate::tap::Tap;

use ending::{Channel, Early, End, KILLED, Verdict};
use output::Output;

/// Bound on the time from the header to the start line. Unpacking 6 MB takes a fraction of a second on a slow machine.
const SETUP_LIMIT: Duration = Duration::from_secs(30);
/// Bound on the time from the trailer to the end of the tar.
const COLLECT_LIMIT: Duration = Duration::from_secs(10);
/// Bound on the time from the run's own limit to the end of the tar, for a program that ended just in time.
const COLLECT_GRACE: Duration = Duration::from_secs(2);

/// The launcher waits this long for processes that the program left running.
const LINGER: Duration = Duration::from_millis(100);
/// Bound on the reported names of files outside `out/`.
const MAX_LEFT_BEHIND: usize = 100;

/// Characters of standard error that are quoted if the program did not start.
const MAX_SAID: usize = 300;

/// The receivers of a run's progress. A slow one loses output, which is counted in `missed`, but never the verdict.
#[derive(Debug, Default)]
pub struct Progress {
    /// The program has been started.
    pub started: Option<oneshot::Sender<()>>,
    pub output: Option<mpsc::Sender<OutputChunk>>,
    /// The bytes that `output` had no room for. The reader reports them last.
    pub missed: Missed,
    /// The live output, for the owner.
    pub tap: Tap,
    /// The bytes kept for the run, counted on its client's account.
    pub hold: Hold,
}

/// The time of a request, known before there is a container.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub at: Instant,
    pub wall_clock: SystemTime,
}

/// The reason why there is no outcome.
#[derive(Debug)]
pub enum Failed {
    Run(RunError),
    /// The container was lost before its program started; another one can take its place. The error is reported if that
    /// one is lost too.
    Lost(RunError),
}

/// Runs the program and releases the container. A cancel ends the run with the verdict `cancelled` and the output so
/// far.
///
/// # Errors
///
/// If the files cannot be packed, the program never started, or the run was cut off.
pub async fn execute(
    lease: Lease,
    spec: &RunSpec,
    image: String,
    asked: Asked,
    progress: &mut Progress,
    cancel: &Cancel,
) -> Result<Outcome, Failed> {
    let nonce = Nonce::random();
    let opening = launcher::opening(spec, &nonce, asked.wall_clock)
        .map_err(|error| Failed::Run(RunError::Internal(format!("the files could not be packed: {error}"))))?;
    let Lease { mut container, attached } = lease;
    container.occupy();
    let mut run = Run::new(spec, &nonce, asked.at, progress);
    let cause = run.watch(attached, opening, spec.stdin.clone(), cancel).await;
    run.judge(cause, container, spec, image).await
}

/// The outcome of a run that was cancelled before it had a container.
pub fn cancelled_early(spec: &RunSpec, image: String, asked: Asked, by: EndedBy) -> Outcome {
    Outcome {
        status: Status::Cancelled,
        ended_by: by,
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

/// The reason why a run is over.
#[derive(Debug)]
enum Cause {
    /// The trailer and all files are in.
    Complete,
    Cancelled(EndedBy),
    /// The current phase exceeded its time limit.
    Deadline,
    OutputLimit,
    /// The container's streams ended before the trailer and all files were in.
    StreamEnded,
    StreamFailed(EngineError),
    /// The output cannot be the launcher's: the image lacks a tool, or the program wrote over the launcher's lines.
    Broken(&'static str),
}

struct Run<'a> {
    limit: Duration,
    asked_at: Instant,
    started: &'a mut Option<oneshot::Sender<()>>,
    /// The program's start; `None` while the launcher is at work.
    began: Option<Instant>,
    /// The program's end; its files follow.
    ended: Option<Instant>,
    /// Whether the trailer is certainly the launcher's, because the program cannot know the nonce.
    sealed: bool,
    report: Report,
    complete: bool,
    stdout: Output,
    stderr: Output,
    /// Splits the program's standard error from the text after the launcher's mark.
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

    /// Writes the input and reads the output until there is a cause to stop. Returning drops both directions of the
    /// attachment.
    async fn watch(&mut self, attached: Attached, opening: Bytes, stdin: Bytes, cancel: &Cancel) -> Cause {
        let Attached { mut input, mut output } = attached;
        // Write errors are ignored: a program may end without reading its stdin.
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
                // Biased, so that a flood of frames starves neither the deadline nor the program's stdin.
                biased;
                () = cancel.cancelled() => return Cause::Cancelled(cancel.who()),
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

    /// False before the start line: the two streams have no common order, so a flood on one may overtake that line.
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
                    // A program that forges a trailer must not live longer for it.
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
    ) -> Result<Outcome, Failed> {
        let over = Instant::now();
        let Some(began) = self.began else { return self.never_began(cause, container, spec, image).await };
        if !matches!(cause, Cause::OutputLimit) {
            self.flush_held();
        }
        let ending = self.report.ending();
        let at_rest = self.sealed && matches!(cause, Cause::Complete) && ending.is_some();
        let channel = Channel { broke: matches!(cause, Cause::StreamFailed(_)), sealed: self.sealed };
        let cancelled_by = if let Cause::Cancelled(by) = cause { Some(by) } else { None };
        let end = match (cause, ending) {
            (Cause::OutputLimit, _) => End::Verdict(Verdict::killed(Status::OutputLimit)),
            (Cause::Cancelled(_), _) => End::Verdict(Verdict::killed(Status::Cancelled)),
            (_, Some(ending)) => End::Verdict(Verdict::of(&ending)),
            (Cause::Deadline, None) => End::Verdict(Verdict::killed(Status::Timeout)),
            (Cause::Broken(_), None) => End::Verdict(Verdict::killed(Status::Failed)),
            (Cause::Complete | Cause::StreamEnded | Cause::StreamFailed(_), None) => {
                ending::without_trailer(&container, channel).await
            }
        };
        let (seen, engine) = (container.seen(), container.endpoint().engine_name());
        // From here on the container's removal and the reply go on independently.
        if at_rest {
            container.rest();
        } else {
            drop(container);
        }
        let memory_bytes = ending.map_or(seen.map(|seen| seen.memory_bytes), |ending| ending.peak_bytes);
        let cpu = ending.map(|ending| ending.cpu).or(seen.map(|seen| seen.cpu));
        let wall = wall(began, self.ended.unwrap_or(over), ending, &spec.limits);
        let queued = began - self.asked_at;
        let (stdout, stderr) = (self.stdout.finish(), self.stderr.finish());
        let Verdict { status, exit_code, oom_kills } = match end {
            End::Verdict(verdict) => verdict,
            End::NotFed => return Err(Failed::Run(ending::not_fed())),
            End::CutOff(by) => {
                let (run, limits, recorded) = (spec.id, spec.limits, true);
                let cut = Interrupted {
                    run,
                    by,
                    engine,
                    wall,
                    queued,
                    stdout,
                    stderr,
                    memory_bytes,
                    cpu,
                    image,
                    limits,
                    recorded,
                };
                return Err(Failed::Run(RunError::Interrupted(Box::new(cut))));
            }
        };
        let (beside, harvest) = self.report.into_parts();
        let Harvest { files, skipped } = if ending.is_some() { harvest } else { Harvest::default() };
        Ok(Outcome {
            status,
            ended_by: cancelled_by.unwrap_or(EndedBy::of(status)),
            exit_code,
            stdout,
            stderr,
            files,
            skipped_files: skipped,
            left_behind: left_behind(beside, spec),
            wall,
            queued,
            memory_bytes,
            cpu,
            oom_kills,
            image,
            limits: spec.limits,
            recorded: true,
        })
    }

    /// Judges a run whose program never started: it was cancelled in time, or the container or engine failed.
    async fn never_began(
        self,
        cause: Cause,
        container: Container,
        spec: &RunSpec,
        image: String,
    ) -> Result<Outcome, Failed> {
        let said = self.stderr.finish().bytes;
        let said: String = String::from_utf8_lossy(&said).trim().chars().take(MAX_SAID).collect();
        let fault = match cause {
            Cause::Cancelled(by) => {
                drop(container);
                let asked = Asked { at: self.asked_at, wall_clock: SystemTime::now() };
                return Ok(cancelled_early(spec, image, asked, by));
            }
            Cause::StreamFailed(EngineError::Unavailable(trouble)) => {
                return Err(Failed::Run(RunError::Engine(trouble)));
            }
            Cause::Deadline => format!("the container of {image} was not ready within {} s", SETUP_LIMIT.as_secs()),
            Cause::Broken(what) => format!("the image {image} cannot run programs ({what}); it said: {said}"),
            Cause::StreamEnded | Cause::StreamFailed(_) | Cause::Complete | Cause::OutputLimit => {
                let broke = matches!(cause, Cause::StreamFailed(_));
                match ending::before_the_start(&container, broke).await {
                    Early::Engine(trouble) => return Err(Failed::Run(RunError::Engine(trouble))),
                    Early::Removed => return Err(Failed::Lost(RunError::ContainerRemoved)),
                    Early::Broke => {
                        let endpoint = container.endpoint().clone();
                        return Err(Failed::Lost(RunError::Engine(EngineTrouble::NotAnswering { endpoint })));
                    }
                    Early::Unheard => return Err(Failed::Lost(RunError::Internal(ended(&image, &said)))),
                    Early::Own => ended(&image, &said),
                }
            }
        };
        Err(Failed::Run(RunError::Internal(fault)))
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

fn ended(image: &str, said: &str) -> String {
    format!("the container of {image} ended before the program started; it said: {said}")
}

/// The program's time. The wait for processes that it left running does not count, up to the launcher's bound. The
/// launcher can keep that bound only if the program leaves it CPU time. Both ends are measured when their lines arrive;
/// on a busy machine the lines arrive together. So the result is at least the time that the program's CPU time takes.
fn wall(began: Instant, ended: Instant, ending: Option<Ending>, limits: &Limits) -> Duration {
    let measured = ended - began;
    let Some(ending) = ending else { return measured };
    let cpus = f64::from(limits.milli_cpus) / 1000.0;
    let least = ending.cpu.div_f64(cpus.max(1.0)).min(limits.wall());
    measured.saturating_sub(ending.linger.min(LINGER)).max(least)
}

/// The files that the program wrote outside `out/`, its rewritten inputs included. Without the files that Sandtray put
/// there and Python's caches, which no agent means to keep.
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
