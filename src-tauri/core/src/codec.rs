//! Frames: one message a line. Bounded memory whatever the other side sends; a line too long costs that line only.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// A request at its greatest (5 MB of files and 5 MB of stdin in base64, 1 MB of code) fits.
pub const MAX_FRAME: usize = 16 << 20;
const READ_AHEAD: usize = 64 << 10;
/// A line longer than this takes its memory with it: an idle connection must not keep room for the longest it ever read.
const KEPT: usize = 256 << 10;

/// A reader that takes nothing for this long is stuck.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
const WRITE_PIECE: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Not blank, without its line end.
    Line(Bytes),
    /// A line passed the cap. Told once, as soon as it is known; what is left of the line is skipped.
    TooLong,
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
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub fn new(reader: R) -> Self {
        Self::with_cap(reader, MAX_FRAME)
    }

    /// `most` counts the bytes of a line without its newline.
    pub fn with_cap(reader: R, most: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), scanned: 0, skipping: false, ended: false, most }
    }

    /// The next frame, or `None` at the end. A last line without a newline is a line.
    /// Cancel-safe: what was read stays in the buffer.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.cut() {
                return Ok(Some(frame));
            }
            if self.ended {
                return Ok(self.last());
            }
            self.buffer.reserve(READ_AHEAD);
            self.ended = self.reader.read_buf(&mut self.buffer).await? == 0;
        }
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

/// Writes all of it, as slowly as the other side reads, but fails once nothing has moved for `stall`.
pub async fn write_frame<W: AsyncWrite + Unpin>(writer: &mut W, mut bytes: &[u8], stall: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        let piece = &bytes[..bytes.len().min(WRITE_PIECE)];
        let written = timeout(stall, writer.write(piece)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
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

    #[tokio::test]
    async fn a_slow_reader_gets_all_of_it() {
        let (mut ours, mut theirs) = tokio::io::duplex(10);
        let reader = tokio::spawn(async move {
            let mut got = Vec::new();
            while got.len() < 100 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                theirs.read_buf(&mut got).await.unwrap();
            }
            got
        });
        // Longer in all than the bound on standing still.
        write_frame(&mut ours, &[7; 100], Duration::from_millis(60)).await.unwrap();
        assert_eq!(reader.await.unwrap(), [7; 100]);
    }
}
