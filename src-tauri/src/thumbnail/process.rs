//! The process that decodes one picture: this program, started with a special argument. It gets the file on its
//! standard input, answers with one JSON value and exits. So all its memory is freed, it can be killed on a timeout,
//! and a decoder that panics or runs out of memory costs only that picture.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use bytes::Bytes;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::debug;

use super::view;
use crate::dto::error::CommandError;
use crate::dto::picture::PictureView;

const SIZE: &str = "--picture-size";
const PIXELS: &str = "--picture";

/// Concurrent processes; the next picture waits.
const AT_ONCE: usize = 1;
/// Time for one picture. On an idle machine the largest takes a second or two.
const TIME: Duration = Duration::from_secs(10);
/// Most bytes of the file, more than a run may return.
const MAX_FILE: u64 = 32 << 20;
/// Most bytes of the answer: a PNG of [`super::MAX_PNG`] as base64, and a few words.
const MAX_ANSWER: u64 = 6 << 20;
/// Memory of the process: the pixels twice, as a progressive JPEG needs them, and some room. Larger allocations fail.
#[cfg(target_os = "linux")]
const MEMORY: u64 = 320 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    Size,
    Pixels,
}

/// Whether this process was started for a picture.
pub(crate) fn asked(argument: Option<&OsStr>) -> Option<Want> {
    match argument?.to_str()? {
        SIZE => Some(Want::Size),
        PIXELS => Some(Want::Pixels),
        _ => None,
    }
}

/// Runs the whole process, if it was started for a picture.
pub(crate) fn work(want: Want) -> ExitCode {
    match answer(want) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("No picture: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn answer(want: Want) -> io::Result<()> {
    confine()?;
    let mut file = Vec::new();
    io::stdin().take(MAX_FILE).read_to_end(&mut file)?;
    let mut line = serde_json::to_vec(&view(&file, want))?;
    line.push(b'\n');
    io::stdout().write_all(&line)
}

/// Limits memory and time to what a picture needs, whatever its decoder asks for.
#[cfg(target_os = "linux")]
fn confine() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in [(Resource::Data, MEMORY), (Resource::Cpu, TIME.as_secs()), (Resource::Core, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn confine() -> io::Result<()> {
    Ok(())
}

/// Starts the processes for pictures.
#[derive(Debug)]
pub(crate) struct Studio {
    places: Semaphore,
    program: PathBuf,
    time: Duration,
}

impl Default for Studio {
    fn default() -> Self {
        Self { places: Semaphore::new(AT_ONCE), program: program(), time: TIME }
    }
}

/// The running program, even if its file was replaced.
fn program() -> PathBuf {
    if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe().unwrap_or_default() }
}

#[derive(Debug, Error)]
enum Failure {
    #[error("the process that shows pictures cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("it said: {0}")]
    Io(#[from] io::Error),
    #[error("what it said is not understood: {0}")]
    Answer(#[from] serde_json::Error),
}

impl Studio {
    /// Decodes a picture. The file is read only when its turn has come, so waiting pictures take no memory.
    ///
    /// # Errors
    ///
    /// If there is no file, or no process can be started. A picture that cannot be shown is not an error.
    pub(crate) async fn picture(
        &self,
        file: impl Future<Output = Result<Bytes, CommandError>>,
        want: Want,
    ) -> Result<PictureView, CommandError> {
        let Ok(_place) = self.places.acquire().await else { return Ok(PictureView::Unreadable) };
        let file = file.await?;
        match timeout(self.time, self.develop(&file, want)).await {
            Ok(Ok(view)) => Ok(view),
            Ok(Err(failure @ Failure::Start(_))) => {
                Err(CommandError::new("internal", format!("There is no picture: {failure}.")))
            }
            Ok(Err(failure)) => {
                debug!(%failure, "a picture could not be read");
                Ok(PictureView::Unreadable)
            }
            Err(_) => {
                debug!("a picture took too long");
                Ok(PictureView::Unreadable)
            }
        }
    }

    async fn develop(&self, file: &[u8], want: Want) -> Result<PictureView, Failure> {
        let mut child = self.start(want).map_err(Failure::Start)?;
        let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        };
        let (mut said, mut answer) = (Vec::new(), (&mut stdout).take(MAX_ANSWER));
        let telling = async move { stdin.write_all(file).await };
        let (told, heard) = tokio::join!(telling, answer.read_to_end(&mut said));
        // A process that has exited reads no more; its answer says why.
        if let Err(failure) = told {
            debug!(%failure, "a picture was not taken whole");
        }
        heard?;
        let view = serde_json::from_slice(&said)?;
        child.wait().await?;
        Ok(view)
    }

    /// Starts the process. It inherits no environment variable and no descriptor but its two pipes.
    fn start(&self, want: Want) -> io::Result<Child> {
        let argument = match want {
            Want::Size => SIZE,
            Want::Pixels => PIXELS,
        };
        let mut command = Command::new(&self.program);
        command.arg(argument).env_clear().kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn()
    }
}

// In these tests scripts stand in for the process.
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use tempfile::TempDir;
    use tokio::time::Instant;

    /// A script that stands in for the process.
    fn studio(script: &str) -> (Studio, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("script");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        (Studio { program, ..Studio::default() }, folder)
    }

    async fn picture(script: &str) -> Result<PictureView, CommandError> {
        let (studio, _folder) = studio(script);
        let studio = Studio { time: Duration::from_secs(1), ..studio };
        studio.picture(async { Ok(Bytes::from(vec![7; 1 << 20])) }, Want::Pixels).await
    }

    #[tokio::test]
    async fn its_answer_is_the_picture() {
        let said = picture(r#"cat >/dev/null; echo '{"kind":"too_large","width":1,"height":2}'"#).await;
        assert_eq!(said.unwrap(), PictureView::TooLarge { width: 1, height: 2 });
        let said = picture(
            r#"cat >/dev/null; echo "{\"kind\":\"fits\",\"width\":1,\"height\":2,\"moves\":false,\"png\":\"$1\"}""#,
        )
        .await;
        assert_eq!(said.unwrap(), PictureView::Fits { width: 1, height: 2, moves: false, png: Some(PIXELS.into()) });
    }

    #[tokio::test]
    async fn a_process_that_crashes_or_talks_nonsense_costs_only_its_picture() {
        for script in ["exit 101", "kill -ABRT $$", "cat", "echo '{}'", "yes", "cat >/dev/null; yes 1"] {
            assert_eq!(picture(script).await.unwrap(), PictureView::Unreadable, "{script}");
        }
    }

    #[tokio::test]
    async fn a_process_that_hangs_is_ended_and_the_next_one_runs() {
        const SHORT: Duration = Duration::from_millis(300);
        let (studio, folder) = studio("echo $$ >>\"${0%/*}/pids\"; exec sleep 1000");
        let studio = Studio { time: SHORT, ..studio };
        let begun = Instant::now();
        let nothing = async || Ok(Bytes::new());
        let (first, second) =
            tokio::join!(studio.picture(nothing(), Want::Size), studio.picture(nothing(), Want::Size));
        assert_eq!((first.unwrap(), second.unwrap()), (PictureView::Unreadable, PictureView::Unreadable));
        assert!(begun.elapsed() >= 2 * SHORT, "one after the other");
        let pids = std::fs::read_to_string(folder.path().join("pids")).unwrap();
        assert_eq!(pids.lines().count(), 2);
        for pid in pids.lines() {
            let gone = || !std::path::Path::new(&format!("/proc/{pid}/exe")).exists();
            while !gone() && begun.elapsed() < 2 * TIME {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(gone(), "{pid}");
        }
    }

    #[tokio::test]
    async fn a_process_that_cannot_be_started_is_reported() {
        let studio = Studio { program: "/no such program".into(), ..Studio::default() };
        let refusal = studio.picture(async { Ok(Bytes::new()) }, Want::Size).await.unwrap_err();
        assert_eq!(refusal.code, "internal");
        let gone = studio.picture(async { Err(CommandError::no_such_run()) }, Want::Size).await.unwrap_err();
        assert_eq!(gone.code, "no_such_run");
    }

    #[test]
    fn only_its_own_arguments_start_a_picture_process() {
        assert_eq!(asked(Some(OsStr::new(SIZE))), Some(Want::Size));
        assert_eq!(asked(Some(OsStr::new("--background"))), None);
        assert_eq!(asked(None), None);
    }
}
