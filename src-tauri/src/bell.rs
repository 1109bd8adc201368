//! One app for each data folder. A second start rings at the first, whose window then comes forward, and ends. Nothing else can be
//! asked for here: what turns things on is the tray's and the window's.

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

const OPEN: &[u8] = b"open";
const OPENED: &[u8] = b"opened";
/// More than either word.
const MAX_WORD: usize = 64;
/// Whoever rings has this long to say so.
const WORD: Duration = Duration::from_secs(2);
/// One that is quitting takes no longer than this to make way.
const PATIENCE: Duration = Duration::from_secs(15);
const AGAIN: Duration = Duration::from_millis(50);

pub(crate) enum Claim {
    /// This is the one. The bell is held for as long as the app lives.
    First(Listener),
    /// Another has come forward.
    Second,
    /// Another is there and does not answer.
    Deaf,
}

/// An error where this folder has no place for a bell: then the service will have none for its socket either, and say why.
pub(crate) async fn claim(path: &Path) -> Result<Claim, BindError> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match Listener::bind(path) {
            Ok(bell) => return Ok(Claim::First(bell)),
            Err(BindError::AlreadyRunning { .. }) => {}
            Err(failure) => return Err(failure),
        }
        match timeout(PATIENCE, ring(path)).await {
            Ok(Ok(())) => return Ok(Claim::Second),
            // It has just begun, or is just ending.
            Ok(Err(failure)) => debug!(%failure, "the other app did not answer"),
            Err(_) => break,
        }
        sleep(AGAIN).await;
    }
    Ok(Claim::Deaf)
}

async fn ring(path: &Path) -> io::Result<()> {
    let mut stream = ipc::connect(path).await?;
    say(&mut stream, OPEN).await?;
    if heard(&mut stream, OPENED).await? { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Answers until the app is to end. The bell stays: while the app ends, no other begins.
pub(crate) async fn answer(app: Arc<App>, mut bell: Listener) -> Listener {
    loop {
        let accepted = tokio::select! {
            accepted = bell.accept() => accepted,
            () = app.desk.quit.cancelled() => return bell,
        };
        let served = async {
            let (mut stream, _) = accepted?;
            if heard(&mut stream, OPEN).await? {
                window::open(&app, None, None);
                say(&mut stream, OPENED).await?;
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

async fn heard(stream: impl AsyncRead + Unpin, word: &[u8]) -> io::Result<bool> {
    let line = Frames::with_cap(stream, MAX_WORD).next().await?;
    Ok(matches!(line, Some(Frame::Line(said)) if said == word))
}

async fn say(mut stream: impl AsyncWrite + Unpin, word: &[u8]) -> io::Result<()> {
    write_frame(&mut stream, &[word, b"\n"].concat(), WORD).await
}
