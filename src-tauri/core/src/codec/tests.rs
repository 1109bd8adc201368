//! Frames in pieces of every size, their bounds in bytes, in time and in the budget.

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

/// A reader that returns a fixed number of bytes at a time.
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
async fn an_endless_line_is_told_at_the_cap_and_not_kept() {
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
async fn the_largest_frame_passes_and_one_byte_more_does_not() {
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

/// A reader that takes a fixed number of bytes at the end of every second.
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
async fn a_slow_reader_gets_everything_and_one_below_the_rate_does_not() {
    let took = written_to(MIN_RATE, MAX_FRAME).await.unwrap();
    assert!(took > 4 * WRITE_STALL, "{took:?}");
    assert_eq!(written_to(MIN_RATE / 2, MAX_FRAME).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    // A small message has its time at any speed.
    assert!(written_to(1, 25).await.is_ok());
}

fn of_client(account: &Account) -> (tokio::io::DuplexStream, Frames<tokio::io::DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    (ours, Frames::of_client(theirs, account.clone()))
}

#[tokio::test(start_paused = true)]
async fn a_client_may_stay_silent_but_must_finish_a_line_it_has_begun() {
    let account = crate::budget::Budget::default().account();
    let (mut ours, mut frames) = of_client(&account);
    assert!(timeout(Duration::from_secs(86_400), frames.next()).await.is_err());
    ours.write_all(b"\n \nhel").await.unwrap();
    assert!(timeout(READ_STALL / 2, frames.next()).await.is_err());
    // The time that its session takes does not count against the client.
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    ours.write_all(b"lo\nagain").await.unwrap();
    assert_eq!(frames.next().await.unwrap(), Some(line("hello")));
    let begun = Instant::now();
    assert_eq!(frames.next().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert!((READ_STALL..READ_STALL + Duration::from_secs(1)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_long_line_holds_room_until_it_is_handled() {
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
    // The hold was not taken over, and stays until the next frame is asked for.
    assert!(!account.hold().coming(1));
    assert_eq!(frames.next().await.unwrap(), Some(line("short")));
    assert!(account.hold().coming(MAX_FRAME));
    // White space is no message, and holds nothing once it is skipped.
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
async fn a_long_line_without_room_waits_and_is_then_skipped() {
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
    // Asked in pieces, as by a session that has other things to do.
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
