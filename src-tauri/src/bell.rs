//! Allows one app for each data folder. A second start asks the first to open its window, unless the second was started
//! at login, and then ends. The socket takes no other request: settings are changed only from the tray and the window.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sandtray_core::codec::{Frame, Frames, write_frame};
use sandtray_core::ipc::{self, BindError, Listener};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use crate::app::App;
use crate::window;

/// The request to open the window, followed by an activation token if there is one.
const OPEN: &str = "open";
/// The request of a start at login, which only asks whether an app runs already.
const STAY: &str = "stay";
const OPENED: &str = "opened";
const STAYED: &str = "stayed";
const MAX_WORDS: usize = 1024;
/// Timeout for the request of a second start.
const WORD: Duration = Duration::from_secs(2);
/// How long a second start waits for an app that is quitting.
const PATIENCE: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(50);

pub(crate) enum Claim {
    /// This is the only app. The listener is held for as long as the app lives.
    First(Listener),
    /// Another app runs and has answered.
    Second,
    /// Another app runs and does not answer.
    Deaf,
}

/// Claims the data folder for this app.
///
/// # Errors
///
/// If the folder has no place for the socket. Then the service fails to bind its own socket too, and reports why.
pub(crate) async fn claim(path: &Path, quiet: bool) -> Result<Claim, BindError> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match Listener::bind(path) {
            Ok(bell) => return Ok(Claim::First(bell)),
            Err(BindError::AlreadyRunning { .. }) => {}
            Err(failure) => return Err(failure),
        }
        match timeout(PATIENCE, ring(path, quiet)).await {
            Ok(Ok(())) => return Ok(Claim::Second),
            // The other app is starting or quitting, so this retries.
            Ok(Err(failure)) => debug!(%failure, "the other app did not answer"),
            Err(_) => break,
        }
        sleep(AGAIN).await;
    }
    Ok(Claim::Deaf)
}

async fn ring(path: &Path, quiet: bool) -> io::Result<()> {
    let mut stream = ipc::connect(path).await?;
    if quiet {
        say(&mut stream, STAY).await?;
        return answered(&mut stream, STAYED).await;
    }
    let leave = window::own_leave().filter(|leave| leave.len() < MAX_WORDS / 2 && !leave.contains(char::is_control));
    say(&mut stream, &format!("{OPEN} {}", leave.unwrap_or_default())).await?;
    answered(&mut stream, OPENED).await
}

async fn answered(stream: impl AsyncRead + Unpin, expected: &str) -> io::Result<()> {
    match heard(stream).await? {
        Some(word) if word == expected => Ok(()),
        Some(_) | None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Answers second starts until the app quits, and returns the listener. It stays bound, so that no other app starts
/// while this one ends.
pub(crate) async fn answer(app: Arc<App>, mut bell: Listener) -> Listener {
    loop {
        let accepted = tokio::select! {
            biased;
            () = app.desk.quit.cancelled() => return bell,
            accepted = bell.accept() => accepted,
        };
        let served = async {
            let (mut stream, _) = accepted?;
            let words = heard(&mut stream).await?.unwrap_or_default();
            if let Some(leave) = words.strip_prefix(OPEN) {
                let leave = leave.trim();
                window::open(&app, None, (!leave.is_empty()).then(|| leave.to_owned()));
                // No answer while quitting: no window opens, and the second start waits for this app's end.
                if !app.desk.quit.is_cancelled() {
                    say(&mut stream, OPENED).await?;
                }
            } else if words == STAY && !app.desk.quit.is_cancelled() {
                say(&mut stream, STAYED).await?;
            }
            io::Result::Ok(())
        };
        match timeout(WORD, served).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                warn!(%failure, "a second start was not understood");
                sleep(AGAIN).await;
            }
            Err(_) => debug!("somebody rang and said nothing"),
        }
    }
}

async fn heard(stream: impl AsyncRead + Unpin) -> io::Result<Option<String>> {
    let line = Frames::with_cap(stream, MAX_WORDS).next().await?;
    Ok(line.and_then(|line| match line {
        Frame::Line(words) => String::from_utf8(words.into()).ok(),
        Frame::TooLong | Frame::NoRoom(_) => None,
    }))
}

async fn say(mut stream: impl AsyncWrite + Unpin, words: &str) -> io::Result<()> {
    write_frame(&mut stream, format!("{words}\n").as_bytes(), WORD).await
}
