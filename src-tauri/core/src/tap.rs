//! The live output buffer of a run, for the owner. The run writes into a bounded ring buffer and never waits. Any
//! number of readers follow at their own pace, and are told how many bytes they missed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use crate::lease::Meter;
use crate::run::{OutputChunk, Stream};

/// Bytes of output that the ring buffer keeps.
pub const RING_BYTES: usize = 256 << 10;
/// Bound on pieces in the ring buffer. A program that alternates between its streams makes many short ones.
const RING_PIECES: usize = 4096;
/// Writes to one stream are merged into pieces of up to this size; a longer write is one piece.
const PIECE_BYTES: usize = 16 << 10;

/// The writing end, held by the run. Cheap to clone. Once the last clone is dropped, readers get to the end.
#[derive(Debug, Clone)]
pub struct Tap(Arc<watch::Sender<Ring>>);

impl Default for Tap {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Ring::default())))
    }
}

impl Tap {
    /// Sets the meter of the run's container.
    pub fn meter(&self, meter: Meter) {
        self.0.send_modify(|ring| ring.meter = Some(meter));
    }

    pub fn push(&self, stream: Stream, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0.send_modify(|ring| ring.push(stream, bytes));
        }
    }

    pub fn onlooker(&self) -> Onlooker {
        // Marked as changed, so that the first wait returns at once with the bytes that are already there.
        let mut ring = self.0.subscribe();
        ring.mark_changed();
        Onlooker { ring, seen: [0, 0] }
    }
}

/// A reader of the buffer.
#[derive(Debug, Clone)]
pub struct Onlooker {
    ring: watch::Receiver<Ring>,
    /// Bytes of each stream that were read or missed.
    seen: [u64; 2],
}

impl Onlooker {
    /// Waits for new output. False once the run is over. It may return without new output.
    pub async fn changed(&mut self) -> bool {
        self.ring.changed().await.is_ok()
    }

    /// The output since the last call, in order of arrival. It may end in the middle of a character.
    pub fn take(&mut self) -> Vec<OutputChunk> {
        let ring = self.ring.borrow_and_update();
        let mut chunks = Vec::new();
        for piece in &ring.pieces {
            let seen = &mut self.seen[index(piece.stream)];
            let end = piece.at + piece.bytes.len() as u64;
            if end <= *seen {
                continue;
            }
            let missed = piece.at.saturating_sub(*seen);
            let from = usize::try_from(seen.saturating_sub(piece.at)).unwrap_or(0);
            let bytes = Bytes::copy_from_slice(&piece.bytes[from..]);
            chunks.push(OutputChunk { stream: piece.stream, bytes, missed });
            *seen = end;
        }
        chunks
    }

    /// `None` until the run has a container.
    pub fn meter(&self) -> Option<Meter> {
        self.ring.borrow().meter.clone()
    }
}

#[derive(Debug, Default)]
struct Ring {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// Bytes written to each stream so far.
    had: [u64; 2],
    meter: Option<Meter>,
}

#[derive(Debug)]
struct Piece {
    stream: Stream,
    /// Offset in its stream.
    at: u64,
    bytes: Vec<u8>,
}

impl Ring {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let had = &mut self.had[index(stream)];
        *had += bytes.len() as u64;
        let kept = &bytes[bytes.len().saturating_sub(RING_BYTES)..];
        self.bytes += kept.len();
        match self.pieces.back_mut() {
            // The write is short enough to be kept whole, so it follows the last piece without a gap.
            Some(last) if last.stream == stream && last.bytes.len() + bytes.len() <= PIECE_BYTES => {
                last.bytes.extend_from_slice(kept);
            }
            Some(_) | None => {
                self.pieces.push_back(Piece { stream, at: *had - kept.len() as u64, bytes: kept.to_vec() });
            }
        }
        while self.bytes > RING_BYTES || self.pieces.len() > RING_PIECES {
            let Some(oldest) = self.pieces.pop_front() else { return };
            self.bytes -= oldest.bytes.len();
        }
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stream::{Stderr, Stdout};

    fn chunk(stream: Stream, text: &str, missed: u64) -> OutputChunk {
        OutputChunk { stream, bytes: text.to_owned().into(), missed }
    }

    #[test]
    fn an_onlooker_reads_what_came_before_and_then_what_is_new_in_order() {
        let tap = Tap::default();
        tap.push(Stdout, b"one ");
        tap.push(Stdout, b"two ");
        tap.push(Stderr, b"oops ");
        let mut early = tap.onlooker();
        assert_eq!(early.take(), [chunk(Stdout, "one two ", 0), chunk(Stderr, "oops ", 0)]);
        assert_eq!(early.take(), []);
        tap.push(Stderr, b"again");
        tap.push(Stdout, b"three");
        assert_eq!(early.take(), [chunk(Stderr, "again", 0), chunk(Stdout, "three", 0)]);
        assert_eq!(tap.onlooker().take().len(), 3);
    }

    #[test]
    fn a_slow_onlooker_is_told_how_much_it_missed_of_each_stream() {
        let tap = Tap::default();
        let mut onlooker = tap.onlooker();
        tap.push(Stdout, b"seen");
        onlooker.take();
        tap.push(Stdout, b"lost");
        tap.push(Stderr, &[b'x'; RING_BYTES]);
        tap.push(Stdout, b"last");
        let [end] = &onlooker.take()[..] else { panic!("the flood is gone too") };
        assert_eq!(*end, chunk(Stdout, "last", 4));
        tap.push(Stderr, b"y");
        assert_eq!(onlooker.take(), [chunk(Stderr, "y", RING_BYTES as u64)]);
    }

    #[test]
    fn the_ring_stays_within_its_bounds() {
        let tap = Tap::default();
        for _ in 0..3 * RING_PIECES {
            tap.push(Stdout, b"a");
            tap.push(Stderr, b"b");
        }
        assert!(tap.0.borrow().pieces.len() <= RING_PIECES);
        let huge = vec![b'z'; 3 * RING_BYTES];
        tap.push(Stdout, &huge);
        assert_eq!(tap.0.borrow().bytes, RING_BYTES);
        let mut onlooker = tap.onlooker();
        let chunks = onlooker.take();
        assert_eq!(chunks.len(), 1);
        assert_eq!(chunks[0].missed, (3 * RING_PIECES + 2 * RING_BYTES) as u64);
        assert_eq!(chunks[0].bytes.len(), RING_BYTES);
    }

    #[tokio::test]
    async fn the_end_of_the_run_is_the_end_of_the_wait() {
        let tap = Tap::default();
        let mut onlooker = tap.onlooker();
        tap.push(Stdout, b"bye");
        drop(tap);
        while onlooker.changed().await {}
        assert_eq!(onlooker.take(), [chunk(Stdout, "bye", 0)]);
    }
}
