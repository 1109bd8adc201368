//! Frames: one message a line. Bounded memory whatever the other side sends, bounded time whatever it does not send or take;
//! a line too long costs that line only.

mod pace;

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use crate::budget::{Account, Hold};
pub use pace::MIN_RATE;
use pace::Pace;

/// A request at its greatest (5 MB of files and 5 MB of stdin in base64, 1 MB of code) fits, and so does every reply: the
/// settings allow no limits with which one would not.
pub const MAX_FRAME: usize = 16 << 20;
const READ_AHEAD: usize = 64 << 10;
/// A line longer than this takes its memory with it: an idle connection must not keep room for the longest it ever read.
/// Up to here a line needs no room of the budget.
const KEPT: usize = 256 << 10;
/// Of a line that there is no room for, so much is handed on: its request's id is mostly in it.
const BEGINNING: usize = 4 << 10;
/// How long a line waits for room before it is skipped. Its client may wait in a write meanwhile.
pub const ROOM_WAIT: Duration = Duration::from_secs(5);

/// A frame that is begun and does not go on is given up after this: see [`MIN_RATE`].
pub const READ_STALL: Duration = Duration::from_secs(30);
/// A reader that takes nothing for this long is stuck.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
const WRITE_PIECE: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Not blank, without its line end.
    Line(Bytes),
    /// A line passed the cap. Told once, as soon as it is known; what is left of the line is skipped.
    TooLong,
    /// A long line had no room in the budget in time; this is its beginning, the rest is skipped.
    NoRoom(Bytes),
}

/// Cuts a stream of bytes into lines.
#[derive(Debug)]
pub struct Frames<R> {
    reader: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    scanned: usize,
    skipping: bool,
    ended: bool,
    most: usize,
    /// Of a client, whose long lines need room and whose lines must not stand still.
    client: Option<Client>,
}

#[derive(Debug)]
struct Client {
    account: Account,
    /// For the line that comes in, once it is long.
    room: Option<Hold>,
    /// For the line that was cut last.
    cut: Option<Hold>,
    /// Of a line that is begun.
    pace: Option<Pace>,
    /// Until when the line may wait for room.
    room_by: Option<Instant>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(reader: R) -> Self {
        Self::with_cap(reader, MAX_FRAME)
    }

    /// `most` counts the bytes of a line without its newline.
    pub fn with_cap(reader: R, most: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), scanned: 0, skipping: false, ended: false, most, client: None }
    }

    /// Of somebody who is not trusted to be quick, or few.
    pub fn of_client(reader: R, account: Account) -> Self {
        let client = Client { account, room: None, cut: None, pace: None, room_by: None };
        Self { client: Some(client), ..Self::new(reader) }
    }

    /// The next frame, or `None` at the end. A last line without a newline is a line.
    /// Cancel-safe: what was read stays in the buffer.
    ///
    /// # Errors
    ///
    /// The stream's own, and `TimedOut` where a client's line is begun and moves too slowly.
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

    /// What the frame that came last holds of the budget. Left alone it is given back when the next one is asked for.
    pub fn take_hold(&mut self) -> Option<Hold> {
        self.client.as_mut()?.cut.take()
    }

    /// Gives the beginning of a line that has become long and finds no room, and skips the rest of it.
    async fn without_room(&mut self) -> Option<Bytes> {
        let client = self.client.as_mut()?;
        if self.skipping || self.buffer.len() < KEPT {
            // A long line of white space has come and gone.
            client.room = None;
            return None;
        }
        if client.room.is_some() {
            return None;
        }
        let by = *client.room_by.get_or_insert_with(|| Instant::now() + ROOM_WAIT);
        let room = timeout_at(by, client.account.room(self.most)).await;
        client.room_by = None;
        // That it had to wait is not its client's doing.
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
            // This may wait for ever.
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
                // What came behind it is no more than was read at once.
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
            // Let go of the memory too, not only of the bytes.
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

/// Blank lines are nothing. The white space that JSON allows is allowed around a message, which takes in CRLF.
fn trimmed(line: Bytes) -> Option<Frame> {
    let text = line.trim_ascii();
    (!text.is_empty()).then(|| Frame::Line(line.slice_ref(text)))
}

/// Writes all of it, as slowly as the other side reads.
///
/// # Errors
///
/// The writer's own, and `TimedOut` once it moved by less than [`MIN_RATE`] over a stretch of `stall`.
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
mod tests {
    use super::*;

    async fn frames(bytes: &[u8], most: usize, piece: usize) -> Vec<Frame> {
        let mut frames = Frames::with_cap(Pieces { bytes, piece }, most);
        let mut all = Vec::new();
        while let Some(frame) = frames.next().await.unwrap() {
            all.push(frame);
        }
        all
    }

    fn line(text: &'static str) -> Frame {
        Frame::Line(Bytes::from_static(text.as_bytes()))
    }

    /// A reader that gives so many bytes at a time.
    struct Pieces<'a> {
        bytes: &'a [u8],
        piece: usize,
    }

    impl AsyncRead for Pieces<'_> {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let count = self.piece.min(self.bytes.len()).min(buffer.remaining());
            buffer.put_slice(&self.bytes[..count]);
            self.bytes = &self.bytes[count..];
            std::task::Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn lines_are_the_same_however_they_arrive() {
        for piece in [1, 2, 3, 7, 1000] {
            let got = frames(b"\n {\"a\":1}\r\n\r\n  \n\xff\nlast", 100, piece).await;
            let bad = Frame::Line(Bytes::from_static(b"\xff"));
            assert_eq!(got, [line("{\"a\":1}"), bad, line("last")], "{piece}");
        }
        assert_eq!(frames(b"", 100, 9).await, []);
    }

    #[tokio::test]
    async fn a_line_too_long_is_told_once_and_skipped() {
        for piece in [1, 4, 1000] {
            assert_eq!(
                frames(b"12345\n1234\n123456789\nok\n", 4, piece).await,
                [Frame::TooLong, line("1234"), Frame::TooLong, line("ok")]
            );
            assert_eq!(frames(b"123456789", 4, piece).await, [Frame::TooLong]);
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_told_before_it_ends_and_kept_nowhere() {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let mut frames = Frames::with_cap(theirs, 1000);
        ours.write_all(&[b'x'; 2000]).await.unwrap();
        assert_eq!(frames.next().await.unwrap(), Some(Frame::TooLong));
        let flood = tokio::spawn(async move {
            for _ in 0..64 {
                ours.write_all(&[b'x'; 1 << 20]).await.unwrap();
            }
            ours.write_all(b"\nok\n").await.unwrap();
            ours
        });
        assert_eq!(frames.next().await.unwrap(), Some(line("ok")));
        assert!(frames.buffer.capacity() <= 4 * READ_AHEAD, "{}", frames.buffer.capacity());
        flood.await.unwrap();
    }

    #[tokio::test]
    async fn after_a_long_line_its_memory_is_given_back() {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let mut frames = Frames::new(theirs);
        let long = vec![b'x'; 8 << 20];
        let sending = tokio::spawn(async move {
            ours.write_all(&long).await.unwrap();
            ours.write_all(b"\nshort\n").await.unwrap();
            ours
        });
        assert!(matches!(frames.next().await.unwrap(), Some(Frame::Line(line)) if line.len() == 8 << 20));
        assert_eq!(frames.next().await.unwrap(), Some(line("short")));
        let mut ours = sending.await.unwrap();
        for _ in 0..10 {
            ours.write_all(b"more\n").await.unwrap();
            assert_eq!(frames.next().await.unwrap(), Some(line("more")));
            assert!(frames.buffer.capacity() <= 4 * READ_AHEAD, "{}", frames.buffer.capacity());
        }
    }

    #[tokio::test]
    async fn the_greatest_frame_passes_and_one_byte_more_does_not() {
        let mut bytes = vec![b'x'; MAX_FRAME];
        bytes.push(b'\n');
        let got = frames(&bytes, MAX_FRAME, 1 << 20).await;
        assert!(matches!(&got[..], [Frame::Line(line)] if line.len() == MAX_FRAME));
        bytes.insert(0, b'x');
        assert_eq!(frames(&bytes, MAX_FRAME, 1 << 20).await, [Frame::TooLong]);
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_ends_the_write() {
        let (mut ours, _theirs) = tokio::io::duplex(10);
        let error = write_frame(&mut ours, &[0; 100], Duration::from_millis(50)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// A reader that takes so many bytes at the end of every second.
    async fn written_to(bytes_a_second: usize, frame: usize) -> io::Result<Duration> {
        let (mut ours, mut theirs) = tokio::io::duplex(bytes_a_second);
        let reading = tokio::spawn(async move {
            let mut piece = vec![0; bytes_a_second];
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
        });
        let begun = Instant::now();
        let written = write_frame(&mut ours, &vec![7; frame], WRITE_STALL).await;
        reading.abort();
        written.map(|()| begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_gets_all_of_it_and_one_below_the_rate_does_not() {
        let took = written_to(MIN_RATE, MAX_FRAME).await.unwrap();
        assert!(took > 4 * WRITE_STALL, "{took:?}");
        assert_eq!(written_to(MIN_RATE / 2, MAX_FRAME).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // A small one has its time however slowly it goes.
        assert!(written_to(1, 25).await.is_ok());
    }

    fn of_client(account: &Account) -> (tokio::io::DuplexStream, Frames<tokio::io::DuplexStream>) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        (ours, Frames::of_client(theirs, account.clone()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_say_nothing_for_ever_and_begin_nothing_that_it_does_not_end() {
        let account = crate::budget::Budget::default().account();
        let (mut ours, mut frames) = of_client(&account);
        assert!(timeout(Duration::from_secs(86_400), frames.next()).await.is_err());
        ours.write_all(b"\n \nhel").await.unwrap();
        assert!(timeout(READ_STALL / 2, frames.next()).await.is_err());
        // What its session does meanwhile is not the client's time.
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        ours.write_all(b"lo\nagain").await.unwrap();
        assert_eq!(frames.next().await.unwrap(), Some(line("hello")));
        let begun = Instant::now();
        assert_eq!(frames.next().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!((READ_STALL..READ_STALL + Duration::from_secs(1)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_line_holds_room_until_it_is_dealt_with() {
        let budget = crate::budget::Budget::default();
        let account = budget.account();
        let full = account.hold();
        assert!(full.coming(crate::budget::COMING_OF_ONE - MAX_FRAME));
        let long = format!("{}\nshort\n", "x".repeat(1 << 20));
        let (mut ours, mut frames) = of_client(&account);
        let sending = tokio::spawn(async move {
            ours.write_all(long.as_bytes()).await.unwrap();
            ours
        });
        assert!(matches!(frames.next().await.unwrap(), Some(Frame::Line(line)) if line.len() == 1 << 20));
        // Nobody took the hold over, and it is there until the next frame is asked for.
        assert!(!account.hold().coming(1));
        assert_eq!(frames.next().await.unwrap(), Some(line("short")));
        assert!(account.hold().coming(MAX_FRAME));
        // White space is nothing, and holds nothing once it has passed.
        let mut ours = sending.await.unwrap();
        let sending = tokio::spawn(async move {
            ours.write_all(format!("{}\n", " ".repeat(1 << 20)).as_bytes()).await.unwrap();
            ours
        });
        assert!(timeout(READ_STALL / 2, frames.next()).await.is_err());
        assert!(account.hold().coming(MAX_FRAME));
        sending.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_line_without_room_waits_for_it_and_is_skipped_in_the_end() {
        let account = crate::budget::Budget::default().account();
        let full = account.hold();
        assert!(full.coming(crate::budget::COMING_OF_ONE));
        let long = format!("begin {}\nshort\n", "x".repeat(8 << 20));
        let (mut ours, mut frames) = of_client(&account);
        let sending = tokio::spawn(async move {
            ours.write_all(long.as_bytes()).await.unwrap();
            ours.write_all(long.as_bytes()).await.unwrap();
            ours
        });
        let begun = Instant::now();
        // Asked in pieces, as a session does that has other things to do.
        let refused = loop {
            if let Ok(frame) = timeout(Duration::from_millis(300), frames.next()).await {
                break frame.unwrap();
            }
        };
        assert!(matches!(refused, Some(Frame::NoRoom(beginning)) if beginning.starts_with(b"begin ")));
        assert!(begun.elapsed() < 2 * ROOM_WAIT, "{:?}", begun.elapsed());
        assert_eq!(frames.next().await.unwrap(), Some(line("short")));
        drop(full);
        assert!(matches!(frames.next().await.unwrap(), Some(Frame::Line(line)) if line.len() == (8 << 20) + 6));
        sending.await.unwrap();
    }
}
