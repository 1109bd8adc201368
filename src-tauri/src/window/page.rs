//! What the window's page asks, and what it is told.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sandtray_core::codec::{WRITE_STALL, write_frame};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::process::ChildStdin;
use tokio::sync::{Mutex, Semaphore};
use tracing::{debug, error};

use crate::app::App;
use crate::commands;
use crate::dto::error::CommandError;
use crate::link::{AskId, ChannelId, ToWindow};

/// Questions that are answered at the same time; the next waits, and whatever comes behind it.
const ANSWERED_AT_ONCE: usize = 64;

/// The line to one window. Whoever has something to say writes it, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct Page(Arc<Line>);

#[derive(Debug)]
struct Line {
    app: Arc<App>,
    /// `None` once the window is to end.
    writer: Mutex<Option<ChildStdin>>,
    places: Arc<Semaphore>,
    listens: AtomicBool,
}

impl Page {
    pub(super) fn new(app: Arc<App>, writer: ChildStdin) -> Self {
        let places = Arc::new(Semaphore::new(ANSWERED_AT_ONCE));
        Self(Arc::new(Line { app, writer: Mutex::new(Some(writer)), places, listens: AtomicBool::new(false) }))
    }

    /// Answers in the background, as soon as there is a place.
    pub(super) async fn asked(&self, id: AskId, request: Box<RawValue>) {
        let Ok(place) = Arc::clone(&self.0.places).acquire_owned().await else { return };
        let page = self.clone();
        self.0.app.spawn(async move {
            let answer = commands::answer(&page.0.app, &page, &request).await.map_err(|refusal| raw(&refusal));
            if let Err(failure) = page.send(&ToWindow::Answer { id, answer }).await {
                debug!(%failure, "the window has gone without its answer");
            }
            drop(place);
        });
    }

    pub(crate) async fn send(&self, message: &ToWindow) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let mut writer = self.0.writer.lock().await;
        let open = writer.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let written = write_frame(open, &line, WRITE_STALL).await;
        if written.is_err() {
            // Half a line would be taken for the beginning of the next.
            *writer = None;
        }
        written
    }

    /// The page listens from now on: it may be sent where the tray wanted it.
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

    pub(super) async fn close(&self) {
        *self.0.writer.lock().await = None;
    }
}

/// By which one command of the page is told more than its answer.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    page: Page,
    id: ChannelId,
}

impl Channel {
    pub(crate) async fn send(&self, message: &impl Serialize) -> io::Result<()> {
        self.page.send(&ToWindow::Tell { channel: self.id.clone(), message: to_raw_value(message)? }).await
    }

    /// Nothing follows.
    pub(crate) async fn end(self) {
        if let Err(failure) = self.page.send(&ToWindow::End { channel: self.id }).await {
            debug!(%failure, "the window has gone before its channel ended");
        }
    }
}

/// Of what is made to be written as JSON.
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
