//! Frames: one message a line. Memory is bounded whatever the peer sends. Time is bounded even if the peer sends or
//! reads nothing. A line that is too long is skipped; the connection goes on.

mod pace;

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use crate::budget::{Account, Hold};
pub use pace::MIN_RATE;
use pace::Pace;

/// Bound on a frame. The largest request fits (5 MB of files and 5 MB of stdin in base64, 1 MB of code). So does every
/// reply, because the settings allow no limits that would make one larger.
pub const MAX_FRAME: usize = 16 << 20;
const READ_AHEAD: usize = 64 << 10;
/// The buffer of a line longer than this is freed after it, because an idle connection must not keep room for the
/// longest line that it ever read. A line up to this length needs no room in the budget.
const KEPT: usize = 256 << 10;
/// Bytes returned of a line without room. The request's id is usually among them.
const BEGINNING: usize = 4 << 10;
/// Bound on a line's wait for room; then it is skipped. The client may block in a write meanwhile.
pub const ROOM_WAIT: Duration = Duration::from_secs(5);

/// A frame that has begun fails if it makes no progress for this long: see [`MIN_RATE`].
pub const READ_STALL: Duration = Duration::from_secs(30);
/// A peer that reads nothing for this long is stuck.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
const WRITE_PIECE: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A line that is not blank, without its line end.
    Line(Bytes),
    /// A line passed the cap. Returned once, as soon as it is known; the rest of the line is skipped.
    TooLong,
    /// A long line got no room in the budget in time. This is its beginning; the rest is skipped.
    NoRoom(Bytes),
}

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct Frames<R> {
    reader: R,
    buffer: BytesMut,
    /// The length of the buffer's beginning that is known to hold no newline.
    scanned: usize,
    skipping: bool,
    ended: bool,
    most: usize,
    /// Set for a client: its long lines need room in the budget, and its lines must make progress.
    client: Option<Client>,
}

#[derive(Debug)]
struct Client {
    account: Account,
    /// The budget of the incoming line, once it is long.
    room: Option<Hold>,
    /// The budget of the line that was returned last.
    cut: Option<Hold>,
    /// The pace of a line that has begun.
    pace: Option<Pace>,
    /// The end of the line's wait for room.
    room_by: Option<Instant>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(reader: R) -> Self {
        Self::with_cap(reader, MAX_FRAME)
    }

    /// Reads lines with another cap. `most` counts the bytes of a line without its newline.
    pub fn with_cap(reader: R, most: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), scanned: 0, skipping: false, ended: false, most, client: None }
    }

    /// Reads lines from a client, which may be slow and is one of many.
    pub fn of_client(reader: R, account: Account) -> Self {
        let client = Client { account, room: None, cut: None, pace: None, room_by: None };
        Self { client: Some(client), ..Self::new(reader) }
    }

    /// The next frame, or `None` at the end. A last line without a newline is a line. Cancel-safe: bytes that were read
    /// stay in the buffer.
    ///
    /// # Errors
    ///
    /// The stream's own, and `TimedOut` if a client's line has begun and moves too slowly.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        if let Some(client) = &mut self.client {
            client.cut = None;
        }
        loop {
            if let Some(frame) = self.cut() {
                if let Some(client) = &mut self.client {
                    client.cut = client.room.take();
                    client.pace = None;
                }
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(self.last());
            }
            if let Some(beginning) = self.without_room().await {
                return Ok(Some(Frame::NoRoom(beginning)));
            }
            self.ended = self.read().await? == 0;
        }
    }

    /// The budget that the last frame holds. If it is not taken, the next call of [`Frames::next`] frees it.
    pub fn take_hold(&mut self) -> Option<Hold> {
        self.client.as_mut()?.cut.take()
    }

    /// Waits for room for a line that has become long. Without room, returns its beginning and skips the rest.
    async fn without_room(&mut self) -> Option<Bytes> {
        let client = self.client.as_mut()?;
        if self.skipping || self.buffer.len() < KEPT {
            // A long line of white space was dropped.
            client.room = None;
            return None;
        }
        if client.room.is_some() {
            return None;
        }
        let by = *client.room_by.get_or_insert_with(|| Instant::now() + ROOM_WAIT);
        let room = timeout_at(by, client.account.room(self.most)).await;
        client.room_by = None;
        // The wait for room does not count against the client.
        client.pace = None;
        match room {
            Ok(room) => {
                client.room = Some(room);
                None
            }
            Err(_) => {
                let beginning = Bytes::copy_from_slice(&self.buffer[..BEGINNING]);
                (self.buffer, self.scanned, self.skipping) = (BytesMut::new(), 0, true);
                Some(beginning)
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.buffer.reserve(READ_AHEAD);
        let begun = self.skipping || !self.buffer.is_empty();
        let Some(client) = &mut self.client else {
            return self.reader.read_buf(&mut self.buffer).await;
        };
        if !begun {
            // No frame has begun, so this may wait for ever.
            client.pace = None;
            return self.reader.read_buf(&mut self.buffer).await;
        }
        let pace = client.pace.get_or_insert_with(|| Pace::begin(READ_STALL));
        let read = timeout_at(pace.deadline(), self.reader.read_buf(&mut self.buffer)).await;
        let read = read.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "a message came too slowly"))??;
        pace.moved(read);
        Ok(read)
    }

    fn cut(&mut self) -> Option<Frame> {
        while let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            let line = self.buffer.split_to(self.scanned + at + 1).freeze();
            self.scanned = 0;
            if line.len() > KEPT {
                // The rest is no longer than one read.
                self.buffer = BytesMut::from(&self.buffer[..]);
            }
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() - 1 > self.most {
                return Some(Frame::TooLong);
            }
            if let Some(frame) = trimmed(line) {
                return Some(frame);
            }
        }
        if self.skipping || self.buffer.len() > self.most {
            // Frees the memory, too, not only the bytes.
            self.buffer = BytesMut::new();
            self.scanned = 0;
            if let Some(client) = &mut self.client {
                client.room = None;
            }
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Frame::TooLong);
        }
        self.scanned = self.buffer.len();
        None
    }

    fn last(&mut self) -> Option<Frame> {
        let rest = std::mem::take(&mut self.buffer).freeze();
        self.scanned = 0;
        if self.skipping { None } else { trimmed(rest) }
    }
}

/// `None` for a blank line. JSON allows white space around a message, so it is trimmed, which covers CRLF.
fn trimmed(line: Bytes) -> Option<Frame> {
    let text = line.trim_ascii();
    (!text.is_empty()).then(|| Frame::Line(line.slice_ref(text)))
}

/// Writes all of it, at the peer's reading speed.
///
/// # Errors
///
/// The writer's own, and `TimedOut` if it moved slower than [`MIN_RATE`] over a stretch of `stall`.
pub async fn write_frame<W: AsyncWrite + Unpin>(writer: &mut W, mut bytes: &[u8], stall: Duration) -> io::Result<()> {
    let mut pace = Pace::begin(stall);
    while !bytes.is_empty() {
        let piece = &bytes[..bytes.len().min(WRITE_PIECE)];
        let written = timeout_at(pace.deadline(), writer.write(piece)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        pace.moved(written);
        bytes = &bytes[written..];
    }
    timeout(stall, writer.flush()).await.map_err(|_| io::ErrorKind::TimedOut)?
}

#[cfg(test)]
mod tests;
