//! Answers the requests of the window's page, and sends it messages.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandtray_core::codec::{WRITE_STALL, write_frame};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::AsyncWrite;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::app::App;
use crate::commands;
use crate::dto::error::CommandError;
use crate::link::{AskId, ChannelId, MAX_LINE, ToWindow};

/// Capacity of the channel of lines to be written.
const LINES: usize = 8;
/// A request of more bytes is answered before the next is read.
const LARGE: usize = 1 << 20;
/// Requests answered concurrently. Beyond it, reading pauses.
const ANSWERED_AT_ONCE: usize = 64;

/// Sends whole lines to one window through a writer task, so a send is cancel-safe.
#[derive(Clone, Debug)]
pub(crate) struct Page(Arc<Line>);

#[derive(Debug)]
struct Line {
    app: Arc<App>,
    lines: mpsc::Sender<Vec<u8>>,
    /// Ends the writer, and with it the window.
    over: CancellationToken,
    places: Arc<Semaphore>,
    listens: AtomicBool,
}

impl Page {
    pub(super) fn new(app: Arc<App>, writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (lines, written) = mpsc::channel(LINES);
        let over = CancellationToken::new();
        app.spawn(write(writer, written, over.clone()));
        let places = Arc::new(Semaphore::new(ANSWERED_AT_ONCE));
        Self(Arc::new(Line { app, lines, over, places, listens: AtomicBool::new(false) }))
    }

    /// Answers a request in the background, once a place is free. A large one is answered before the next is read.
    pub(super) async fn asked(&self, id: AskId, request: Box<RawValue>) {
        let Ok(place) = Arc::clone(&self.0.places).acquire_owned().await else { return };
        if request.get().len() > LARGE {
            return self.answer(id, &request).await;
        }
        let page = self.clone();
        self.0.app.spawn(async move {
            page.answer(id, &request).await;
            drop(place);
        });
    }

    async fn answer(&self, id: AskId, request: &RawValue) {
        let answer = commands::answer(&self.0.app, self, request).await.map_err(|refusal| raw(&refusal));
        let sent = match self.send(&ToWindow::Answer { id, answer }).await {
            Err(failure) if failure.kind() == io::ErrorKind::InvalidInput => {
                let refusal = CommandError::new("too_large", "That is too much to show at once.");
                self.send(&ToWindow::Answer { id, answer: Err(raw(&refusal)) }).await
            }
            sent => sent,
        };
        if let Err(failure) = sent {
            debug!(%failure, "the window has gone without its answer");
        }
    }

    /// Sends a message. Cancel-safe. Waits while the window reads slowly (backpressure).
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the message is longer than a line may be, `BrokenPipe` if the window is gone.
    pub(crate) async fn send(&self, message: &ToWindow) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        if line.len() > MAX_LINE {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        line.push(b'\n');
        self.0.lines.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Call it once the page listens: from now on it can be sent to the place that the tray asked for.
    pub(crate) async fn subscribed(&self) -> io::Result<()> {
        self.0.listens.store(true, Ordering::Relaxed);
        self.send_on().await
    }

    pub(super) async fn send_on(&self) -> io::Result<()> {
        if !self.0.listens.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.0.app.desk.take_next() {
            Some(to) => self.send(&ToWindow::Go(raw(&to))).await,
            None => Ok(()),
        }
    }

    pub(crate) fn channel(&self, id: ChannelId) -> Channel {
        Channel { page: self.clone(), id }
    }

    /// Closes the window's input, which ends the window.
    pub(super) fn close(&self) {
        self.0.over.cancel();
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut lines: mpsc::Receiver<Vec<u8>>, over: CancellationToken) {
    let written = async {
        while let Some(line) = lines.recv().await {
            write_frame(&mut writer, &line, WRITE_STALL).await?;
        }
        io::Result::Ok(())
    };
    tokio::select! {
        written = written => if let Err(failure) = written {
            debug!(%failure, "the window does not listen");
        },
        () = over.cancelled() => {}
    }
}

/// Sends further messages to the page for one command, beside its answer.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    page: Page,
    id: ChannelId,
}

impl Channel {
    pub(crate) async fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.page.send(&ToWindow::Tell { channel: self.id.clone(), message: to_raw_value(message)? }).await
    }

    /// Ends the channel.
    pub(crate) async fn end(self) {
        if let Err(failure) = self.page.send(&ToWindow::End { channel: self.id }).await {
            debug!(%failure, "the window has gone before its channel ended");
        }
    }
}

/// Encodes a value that always has a JSON form.
fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|failure| {
        error!(%failure, "an answer could not be written down");
        RawValue::NULL.to_owned()
    })
}

impl From<io::Error> for CommandError {
    fn from(failure: io::Error) -> Self {
        Self::new("internal", failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandtray_core::codec::{Frame, Frames};
    use serde_json::{Value, json};

    use super::*;

    /// Shorter than a line of the tests.
    const PIPE: usize = 1024;

    fn page() -> (Page, Frames<tokio::io::DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        (Page::new(App::new(true), ours), Frames::new(theirs))
    }

    async fn next(frames: &mut Frames<tokio::io::DuplexStream>) -> Value {
        match frames.next().await.unwrap() {
            Some(Frame::Line(line)) => serde_json::from_slice(&line).unwrap(),
            end => panic!("{end:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_gives_up_while_it_waits_leaves_no_half_line() {
        let (page, mut frames) = page();
        let long = "x".repeat(4 * PIPE);
        let channel = |name: &str| page.channel(name.into());
        for _ in 0..2 * LINES {
            // Cancelled before or in the middle of a line.
            let _ = tokio::time::timeout(Duration::from_millis(1), channel("a").send(&long)).await;
        }
        let end = tokio::spawn(channel("a").end());
        let mut last = next(&mut frames).await;
        while last.get("tell").is_some() {
            assert_eq!(last["tell"]["message"], json!(long));
            last = next(&mut frames).await;
        }
        assert_eq!(last, json!({ "end": { "channel": "a" } }));
        end.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_too_long_for_the_window_is_refused_in_words() {
        let (page, _frames) = page();
        let refused = page.channel("a".into()).send(&"x".repeat(MAX_LINE)).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[tokio::test]
    async fn a_question_that_is_not_understood_is_answered() {
        let (page, mut frames) = page();
        let request = RawValue::from_string(r#"{"command":"dance","args":{}}"#.into()).unwrap();
        page.asked(7, request).await;
        let answer = next(&mut frames).await;
        assert_eq!(
            (&answer["answer"]["id"], &answer["answer"]["answer"]["Err"]["code"]),
            (&json!(7), &json!("invalid_params"))
        );
    }
}
