//! The window's process, from its start to its end.

use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

#[cfg(unix)]
use rustix::process::Signal;
use sandtray_core::codec::{Frame, Frames};
use thiserror::Error;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{error, warn};

use super::page::Page;
use crate::app::App;
use crate::link::{FromWindow, MAX_LINE, OTHER_VERSION, PROGRAM, ToWindow, VERSION};
use crate::notify;
use crate::notify::notice::Notice;

/// Timeout for a window that was asked to the front. Beyond it the window hangs, and another one is started.
const ANSWERING: Duration = Duration::from_secs(15);
/// Timeout for a window to end. Then it is killed.
const CLOSING: Duration = Duration::from_secs(2);

/// The environment variables of the activation token, of Wayland and of X11.
const LEAVES: [&str; 2] = ["XDG_ACTIVATION_TOKEN", "DESKTOP_STARTUP_ID"];

/// The activation token that this process was started with.
pub(crate) fn own_leave() -> Option<String> {
    LEAVES.iter().find_map(|name| std::env::var(name).ok()).filter(|leave| !leave.is_empty())
}

/// Runs the window until it has closed.
pub(super) async fn keep(app: Arc<App>, mut wishes: mpsc::Receiver<ToWindow>, mut leave: Option<String>) {
    loop {
        let mut said = Said::default();
        match show(&app, &mut wishes, &mut said, leave.take()).await {
            Err(failure) if !app.desk.quit.is_cancelled() => {
                error!(%failure, "there is no window");
                notify::tell(&app, failure.into());
            }
            Ok(()) if said.stays && !app.desk.quit.is_cancelled() => notify::tell(&app, Notice::StaysInTray),
            Ok(()) | Err(_) => {}
        }
        let mut asked_for = said.asked_for;
        app.desk.views.end();
        let mut window = app.window.lock();
        asked_for +=
            std::iter::from_fn(|| wishes.try_recv().ok()).filter(|wish| matches!(wish, ToWindow::Front { .. })).count();
        // It was asked for while it was closing, so it is opened again.
        if asked_for == 0 || app.desk.quit.is_cancelled() {
            *window = None;
            return;
        }
    }
}

/// The state of the conversation with one window.
#[derive(Default)]
struct Said {
    /// Requests to come to the front that are not answered yet.
    asked_for: usize,
    /// The page was asked to explain what closing means.
    explained: bool,
    /// The window closes, and the owner must be told that Sandtray stays in the tray.
    stays: bool,
}

async fn show(
    app: &Arc<App>,
    wishes: &mut mpsc::Receiver<ToWindow>,
    said: &mut Said,
    leave: Option<String>,
) -> Result<(), Failure> {
    let (mut child, stdin, stdout) = start(leave)?;
    let page = Page::new(Arc::clone(app), stdin);
    tokio::select! {
        heard = listen(app, &page, stdout, wishes, said) => if let Err(failure) = heard {
            warn!(%failure, "the window is given up");
        },
        () = app.desk.quit.cancelled() => {}
    }
    app.window.focus(false);
    page.close();
    match timeout(CLOSING, child.wait()).await {
        Ok(Ok(status)) if status.success() || was_told_to_end(status) => Ok(()),
        Ok(Ok(status)) if status.code() == Some(OTHER_VERSION.into()) => Err(Failure::OtherVersion),
        Ok(Ok(status)) => Err(Failure::Ended(status)),
        Ok(Err(failure)) => Err(failure.into()),
        Err(_) => {
            warn!("the window did not close in time");
            Ok(child.kill().await?)
        }
    }
}

/// Why the window failed.
#[derive(Debug, Error)]
enum Failure {
    #[error("the window on the disk is of another version than this app")]
    OtherVersion,
    #[error("the window's program ended with {0}")]
    Ended(ExitStatus),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Failure> for Notice {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::OtherVersion => Self::Updated,
            Failure::Ended(_) | Failure::Io(_) => Self::NoWindow { message: failure.to_string() },
        }
    }
}

async fn listen(
    app: &Arc<App>,
    page: &Page,
    stdout: ChildStdout,
    wishes: &mut mpsc::Receiver<ToWindow>,
    said: &mut Said,
) -> io::Result<()> {
    let theme = app.desk.here().map(|here| here.owner.settings().theme).unwrap_or_default();
    page.send(&ToWindow::Show { theme, version: VERSION.into(), asks: !app.closing.is_told() }).await?;
    let mut lines = Frames::with_cap(stdout, MAX_LINE);
    let mut due = None;
    loop {
        tokio::select! {
            line = lines.next() => match line? {
                Some(Frame::Line(line)) => match serde_json::from_slice(&line) {
                    Ok(FromWindow::Ask { id, request }) => page.asked(id, request).await,
                    Ok(FromWindow::Focus(focused)) => app.window.focus(focused),
                    Ok(FromWindow::Closing) => {
                        let answer = closing(app, said);
                        page.send(&answer).await?;
                    }
                    Ok(FromWindow::InFront) => {
                        said.asked_for = said.asked_for.saturating_sub(1);
                        due = due.filter(|_| said.asked_for > 0);
                        page.send_on().await?;
                    }
                    Err(failure) => warn!(%failure, "the window said what is not understood"),
                },
                Some(Frame::TooLong | Frame::NoRoom(_)) => warn!("the window sent a message that is too long"),
                None => return Ok(()),
            },
            Some(wish) = wishes.recv() => {
                if let ToWindow::Front { .. } = wish {
                    said.asked_for += 1;
                    due = due.or_else(|| Some(Instant::now() + ANSWERING));
                }
                page.send(&wish).await?;
            }
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not come to the front"));
            }
        }
    }
}

/// Decides whether the window may close, when it asks.
fn closing(app: &App, said: &mut Said) -> ToWindow {
    // It was asked to the front since, so it stays.
    if said.asked_for > 0 {
        return ToWindow::Stay;
    }
    if app.closing.is_told() || said.explained {
        return ToWindow::Close;
    }
    if app.closing.is_said_in_the_window(app.tray.is_there()) {
        said.explained = true;
        return ToWindow::Leaving;
    }
    said.stays = true;
    ToWindow::Close
}

fn start(leave: Option<String>) -> io::Result<(Child, ChildStdin, ChildStdout)> {
    let program = program()?;
    let mut command = Command::new(&program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    // Its own process group, so that only the app handles Ctrl-C in its terminal.
    #[cfg(unix)]
    command.process_group(0);
    // The name by which the desktop assigns the window to the app.
    #[cfg(target_os = "linux")]
    command.arg0(crate::link::NAME);
    // The app's own tokens are from its start, and used up.
    for name in LEAVES {
        match &leave {
            Some(leave) => command.env(name, leave),
            None => command.env_remove(name),
        };
    }
    let failed = |failure: io::Error| io::Error::new(failure.kind(), format!("{}: {failure}", program.display()));
    let mut child = command.spawn().map_err(failed)?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(stdin), Some(stdout)) => Ok((child, stdin, stdout)),
        _ => Err(io::Error::other("its program was started without a line to it")),
    }
}

/// Whether the status is of a signal with which a session ends its programs.
#[cfg(unix)]
fn was_told_to_end(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    [Signal::TERM, Signal::HUP].map(|signal| Some(signal.as_raw())).contains(&status.signal())
}

#[cfg(not(unix))]
fn was_told_to_end(_: ExitStatus) -> bool {
    false
}

fn program() -> io::Result<PathBuf> {
    let app = std::env::current_exe()?;
    Ok(app.with_file_name(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX)))
}
