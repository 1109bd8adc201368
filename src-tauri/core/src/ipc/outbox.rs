//! The writer of one connection. Senders write in turn behind a lock. There is no queue that a client which does not
//! read could fill: its senders wait (backpressure).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use tokio::io::AsyncWrite;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::budget::Account;
use crate::codec::{WRITE_STALL, write_frame};

/// Messages of at least this many bytes count on their client's account while they are written.
const COUNTED: usize = 64 << 10;

/// The client disconnected, or stopped reading for good.
#[derive(Debug)]
pub(super) struct Gone;

/// Whether the reply to a request is being written or has been written.
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

    /// Resolves once a write has failed or timed out.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    pub(super) async fn send(&self, message: &impl Serialize) -> Result<(), Gone> {
        self.write(|| line(message), || ()).await
    }

    /// Writes the reply to a request and marks it as answered. The mark is set before the write, with the lock held: a
    /// client may reuse the id as soon as it has read the reply, before the write is known to have ended. `reply` makes
    /// the line from the result and drops the result.
    pub(super) async fn answer(
        &self,
        reply: impl FnOnce() -> Option<Vec<u8>>,
        answered: &Answered,
    ) -> Result<(), Gone> {
        self.write(reply, || answered.0.store(true, Ordering::Release)).await
    }

    async fn write(&self, encode: impl FnOnce() -> Option<Vec<u8>>, before: impl FnOnce()) -> Result<(), Gone> {
        // Encoded with the lock held: of the replies that wait for a slow reader, only one is encoded at a time.
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
