//! The way out of one connection. Whoever has something to say writes it here itself, one at a time: there is no queue
//! that a client which does not read could fill, only senders that wait.

use serde::Serialize;
use tokio::io::AsyncWrite;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::codec::{WRITE_STALL, write_frame};

/// The client does not take what it is sent, now or ever again.
#[derive(Debug)]
pub(super) struct Gone;

#[derive(Debug)]
pub(super) struct Outbox<W> {
    writer: Mutex<W>,
    broken: CancellationToken,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(super) fn new(writer: W) -> Self {
        Self { writer: Mutex::new(writer), broken: CancellationToken::new() }
    }

    /// Resolves once a write has failed, or stalled past its bound.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    pub(super) async fn send(&self, message: &impl Serialize) -> Result<(), Gone> {
        // Encoded with the lock held: of all the replies that wait for a slow reader, one at a time is text.
        let mut writer = self.writer.lock().await;
        if self.broken.is_cancelled() {
            return Err(Gone);
        }
        let Some(line) = line(message) else { return Err(Gone) };
        write_frame(&mut *writer, &line, WRITE_STALL).await.map_err(|error| {
            tracing::debug!(%error, "a client is gone");
            self.broken.cancel();
            Gone
        })
    }
}

pub(super) fn line(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut line =
        serde_json::to_vec(message).inspect_err(|error| tracing::error!(%error, "a message has no JSON form")).ok()?;
    line.push(b'\n');
    Some(line)
}
