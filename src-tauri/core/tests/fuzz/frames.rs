//! The frame reader: however the stream is cut, the lines are those of a plain split; a line too long costs that line
//! only.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use fastrand::Rng;
use sandtray_core::codec::{Frame, Frames};
use tokio::io::{AsyncRead, ReadBuf};

use crate::input::{bytes, choice, damage, pieces, size};
use crate::{each, within};

/// Bytes beside the lines themselves: the read-ahead, and as much again while the buffer is exchanged.
const AHEAD: usize = 256 << 10;

struct Pieces<'a>(std::vec::IntoIter<&'a [u8]>);

impl AsyncRead for Pieces<'_> {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(piece) = self.0.next() {
            assert!(piece.len() <= buffer.remaining(), "a piece is smaller than what is read ahead");
            buffer.put_slice(piece);
        }
        Poll::Ready(Ok(()))
    }
}

fn stream(rng: &mut Rng, most: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..rng.usize(..12) {
        match rng.u8(..6) {
            0 => stream.extend(bytes(rng, 300)),
            1 => stream.extend(b" \t\r\n"),
            // Lengths around the cap, to the byte.
            2 => stream.extend(vec![b'x'; (most + rng.usize(..3)).saturating_sub(1)]),
            3 => stream.extend(vec![b'y'; size(rng, most * 3)]),
            _ => stream.extend(br#"{"jsonrpc":"2.0","id":1,"method":"hello"}"#),
        }
        if rng.u8(..5) > 0 {
            stream.extend(*choice(rng, &[b"\n".as_slice(), b"\r\n", b"\n\n"]));
        }
    }
    if rng.bool() {
        damage(rng, &mut stream);
    }
    stream
}

/// The frames expected from the whole stream at once.
fn expected(stream: &[u8], most: usize) -> Vec<Frame> {
    let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    // After the last line end there is a line only if there are bytes.
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let frame = |line: &&[u8]| {
        let text = line.trim_ascii();
        match line.len() > most {
            true => Some(Frame::TooLong),
            false => (!text.is_empty()).then(|| Frame::Line(text.to_vec().into())),
        }
    };
    lines.iter().filter_map(frame).collect()
}

#[test]
fn frames_are_the_same_however_they_arrive() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    each("frames", |rng| {
        let most = *choice(rng, &[1, 16, 100, 1000]);
        let stream = stream(rng, most);
        let pieces = pieces(rng, &stream);
        let read = async {
            let mut frames = Frames::with_cap(Pieces(pieces.into_iter()), most);
            let mut all = Vec::new();
            while let Some(frame) = frames.next().await.unwrap() {
                // Copied, as real readers do: a frame keeps alive all bytes that were read together with it.
                all.push(match frame {
                    Frame::Line(line) => Frame::Line(line.to_vec().into()),
                    Frame::TooLong | Frame::NoRoom(_) => frame,
                });
            }
            all
        };
        let all = within(AHEAD + 4 * stream.len(), || runtime.block_on(read));
        assert_eq!(all, expected(&stream, most), "{:?}", String::from_utf8_lossy(&stream));
    });
}
