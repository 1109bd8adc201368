//! Bounded capture of one output stream. Counts every byte, keeps at most the cap, and never cuts a character in two.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::run::{Captured, Overflow};

/// Bound on the bytes of one stream, most of them discarded, after which the run ends. Reading them costs the engine
/// and this service CPU time that counts against no limit of the run.
const MAX_PRODUCED: u64 = 256 << 20;

#[derive(Debug)]
pub struct Collector {
    overflow: Overflow,
    cap: usize,
    produced: u64,
    head: Vec<u8>,
    /// The last bytes, once the head is full. Stays empty if overflow kills the run.
    tail: VecDeque<u8>,
}

impl Collector {
    pub fn new(cap: u64, overflow: Overflow) -> Self {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        Self { overflow, cap, produced: 0, head: Vec::new(), tail: VecDeque::new() }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.produced += bytes.len() as u64;
        let (head_cap, tail_cap) = match self.overflow {
            Overflow::Kill => (self.cap, 0),
            Overflow::Truncate => (self.cap / 2, self.cap - self.cap / 2),
        };
        let to_head = bytes.len().min(head_cap - self.head.len());
        self.head.extend_from_slice(&bytes[..to_head]);
        let rest = &bytes[to_head..];
        let rest = &rest[rest.len().saturating_sub(tail_cap)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// Whether the run must end: the stream passed its cap, or the bound on discarded bytes.
    pub fn is_fatal(&self) -> bool {
        match self.overflow {
            Overflow::Kill => self.is_over(),
            Overflow::Truncate => self.produced > MAX_PRODUCED,
        }
    }

    pub fn finish(mut self) -> Captured {
        let produced = self.produced;
        if !self.is_over() {
            self.head.extend(self.tail);
            return Captured { bytes: self.head.into(), produced };
        }
        self.head.truncate(whole_characters(&self.head));
        if self.overflow == Overflow::Truncate {
            let tail = self.tail.make_contiguous();
            let tail = &tail[broken_start(tail)..];
            let left_out = produced - (self.head.len() + tail.len()) as u64;
            self.head.extend_from_slice(format!("\n[... {left_out} bytes left out ...]\n").as_bytes());
            self.head.extend_from_slice(tail);
        }
        Captured { bytes: self.head.into(), produced }
    }

    fn is_over(&self) -> bool {
        self.produced > self.cap as u64
    }
}

/// Holds back the start of a character until the rest arrives, for output that is passed on while it is written.
#[derive(Debug, Default)]
pub struct CharacterGate {
    held: Vec<u8>,
}

impl CharacterGate {
    pub fn push(&mut self, bytes: Bytes) -> Bytes {
        let mut bytes = if self.held.is_empty() {
            bytes
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(&bytes);
            joined.into()
        };
        self.held = bytes.split_off(whole_characters(&bytes)).into();
        bytes
    }

    pub fn finish(self) -> Bytes {
        self.held.into()
    }
}

/// The length without an incomplete character at the end. Bytes that cannot belong to a character stay in.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let wanted = match bytes[at] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if wanted > back { at } else { bytes.len() };
    }
    bytes.len()
}

/// The number of bytes at the start that may be the end of a character that was cut.
fn broken_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| matches!(byte, 0x80..=0xbf)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(cap: u64, overflow: Overflow, pieces: &[&[u8]]) -> Captured {
        let mut collector = Collector::new(cap, overflow);
        for piece in pieces {
            collector.push(piece);
        }
        collector.finish()
    }

    #[test]
    fn up_to_the_cap_everything_is_kept_either_way() {
        for overflow in [Overflow::Kill, Overflow::Truncate] {
            let captured = capture(10, overflow, &[b"01234", b"", b"56789"]);
            assert_eq!(captured, Captured { bytes: "0123456789".into(), produced: 10 });
        }
    }

    #[test]
    fn one_byte_more_is_fatal_or_cuts_the_middle() {
        let mut collector = Collector::new(10, Overflow::Kill);
        collector.push(b"0123456789");
        assert!(!collector.is_fatal());
        collector.push(b"x");
        assert!(collector.is_fatal());
        assert_eq!(collector.finish(), Captured { bytes: "0123456789".into(), produced: 11 });

        let captured = capture(10, Overflow::Truncate, &[b"0123456789", b"x"]);
        assert_eq!(captured.bytes, "01234\n[... 1 bytes left out ...]\n6789x");
        assert_eq!(captured.produced, 11);
    }

    #[test]
    fn discarded_output_is_bounded() {
        let megabyte = vec![b'x'; 1 << 20];
        let mut collector = Collector::new(10, Overflow::Truncate);
        for _ in 0..256 {
            collector.push(&megabyte);
        }
        assert!(!collector.is_fatal());
        collector.push(b"x");
        assert!(collector.is_fatal());
        let captured = collector.finish();
        assert_eq!((captured.bytes.len(), captured.produced), (5 + 36 + 5, (256 << 20) + 1));
    }

    #[test]
    fn a_cap_cuts_no_character_in_two() {
        let captured = capture(7, Overflow::Kill, &["€€€".as_bytes()]);
        assert_eq!(captured, Captured { bytes: "€€".into(), produced: 9 });
        let captured = capture(8, Overflow::Truncate, &["€€€€".as_bytes()]);
        assert_eq!(captured.bytes, "€\n[... 6 bytes left out ...]\n€");
    }

    #[test]
    fn the_tail_is_the_last_of_many_small_pieces() {
        let mut collector = Collector::new(8, Overflow::Truncate);
        for number in 0..1000u32 {
            collector.push(format!("{number},").as_bytes());
        }
        let captured = collector.finish();
        assert_eq!(captured.produced, 3890);
        assert_eq!(captured.bytes, "0,1,\n[... 3882 bytes left out ...]\n999,");
    }

    #[test]
    fn bytes_that_are_no_text_pass_a_cap_as_they_are() {
        assert_eq!(capture(4, Overflow::Kill, &[b"\xff\xff\xff\xff\xff"]).bytes, &b"\xff\xff\xff\xff"[..]);
        assert_eq!(capture(4, Overflow::Kill, &[b"\x80\x80\x80\x80\x80"]).bytes, &b"\x80\x80\x80\x80"[..]);
    }

    #[test]
    fn the_gate_holds_half_a_character_and_nothing_else() {
        let mut gate = CharacterGate::default();
        assert_eq!(gate.push(Bytes::from_static(b"a\xe2\x82")), "a");
        assert_eq!(gate.push(Bytes::from_static(b"\xac\xff")), &b"\xe2\x82\xac\xff"[..]);
        assert_eq!(gate.push(Bytes::from_static(b"\xf0\x9f")), "");
        assert_eq!(gate.finish(), &b"\xf0\x9f"[..]);
    }
}
