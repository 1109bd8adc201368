//! The way out of one connection. Whoever has something to say writes it here itself, one at a time: there is no queue
//! that a client which does not read could fill, only senders that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use tokio::io::AsyncWrite;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::budget::Account;
use crate::codec::{WRITE_STALL, write_frame};

/// A message from this size on counts on its client's account while it is written.
const COUNTED: usize = 64 << 10;

/// The client does not take what it is sent, now or ever again.
#[derive(Debug)]
pub(super) struct Gone;

/// Whether the reply to a request is on its way to the client.
#[derive(Debug, Clone, Default)]
pub(super) struct Answered(Arc<AtomicBool>);

impl Answered {
    pub(super) fn yet(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
pub(super) struct Outbox<W> {
    writer: Mutex<W>,
    account: Account,
    broken: CancellationToken,
}

impl<W: AsyncWrite + Unpin> Outbox<W> {
    pub(super) fn new(writer: W, account: Account) -> Self {
        Self { writer: Mutex::new(writer), account, broken: CancellationToken::new() }
    }

    /// Resolves once a write has failed, or stalled past its bound.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    pub(super) async fn send(&self, message: &impl Serialize) -> Result<(), Gone> {
        self.write(|| line(message), || ()).await
    }

    /// The reply to a request. The client may use the id again as soon as it has read it, which is sooner than a write is
    /// known to have ended: so the mark comes first, when nothing else can be written before the reply any more.
    /// `reply` is the value that becomes the line; it is dropped once the line is made.
    pub(super) async fn answer(
        &self,
        reply: impl FnOnce() -> Option<Vec<u8>>,
        answered: &Answered,
    ) -> Result<(), Gone> {
        self.write(reply, || answered.0.store(true, Ordering::Release)).await
    }

    async fn write(&self, encode: impl FnOnce() -> Option<Vec<u8>>, before: impl FnOnce()) -> Result<(), Gone> {
        // Encoded with the lock held: of all the replies that wait for a slow reader, one at a time is text.
        let mut writer = self.writer.lock().await;
        if self.broken.is_cancelled() {
            return Err(Gone);
        }
        let Some(line) = encode() else { return Err(Gone) };
        let hold = (line.len() >= COUNTED).then(|| self.account.hold());
        if let Some(hold) = &hold {
            hold.going(line.len());
        }
        before();
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
