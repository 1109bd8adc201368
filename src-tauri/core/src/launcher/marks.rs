//! Finds the launcher's mark in a stream that arrives in pieces. It holds back at most a mark's length.

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;

/// Splits a stream at the first mark.
#[derive(Debug)]
pub struct Splitter {
    finder: Finder<'static>,
    /// The end of the stream so far, if it may be the beginning of a mark.
    held: Bytes,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Scan {
    /// The program's bytes.
    pub before: Bytes,
    /// The bytes after the mark, once it was found.
    pub after: Option<Bytes>,
}

impl Splitter {
    pub fn new(mark: &[u8]) -> Self {
        Self { finder: Finder::new(mark).into_owned(), held: Bytes::new() }
    }

    pub fn push(&mut self, bytes: Bytes) -> Scan {
        let mut bytes = self.joined(bytes);
        if let Some(at) = self.finder.find(&bytes) {
            let after = bytes.slice(at + self.finder.needle().len()..);
            bytes.truncate(at);
            return Scan { before: bytes, after: Some(after) };
        }
        self.held = bytes.split_off(bytes.len() - self.partial(&bytes));
        Scan { before: bytes, after: None }
    }

    /// The bytes held back, once the stream has ended.
    pub fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held)
    }

    fn joined(&mut self, bytes: Bytes) -> Bytes {
        if self.held.is_empty() {
            return bytes;
        }
        let mut joined = BytesMut::with_capacity(self.held.len() + bytes.len());
        joined.extend_from_slice(&self.held);
        joined.extend_from_slice(&bytes);
        self.held = Bytes::new();
        joined.freeze()
    }

    /// The length of the longest end of `bytes` that begins a mark.
    fn partial(&self, bytes: &[u8]) -> usize {
        let mark = self.finder.needle();
        let longest = bytes.len().min(mark.len() - 1);
        (1..=longest).rev().find(|length| mark.starts_with(&bytes[bytes.len() - length..])).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_found_however_the_stream_is_cut() {
        let stream = b"one\x1eab\x1eabc rest\x1eabc";
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let mut splitter = Splitter::new(b"\x1eabc");
                let (mut before, mut after) = (Vec::new(), None::<Vec<u8>>);
                for piece in [&stream[..first], &stream[first..second], &stream[second..]] {
                    match &mut after {
                        Some(after) => after.extend_from_slice(piece),
                        None => {
                            let scan = splitter.push(Bytes::copy_from_slice(piece));
                            before.extend_from_slice(&scan.before);
                            after = scan.after.map(|bytes| bytes.to_vec());
                        }
                    }
                }
                assert_eq!(before, b"one\x1eab", "cut at {first} and {second}");
                assert_eq!(after.unwrap(), b" rest\x1eabc", "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn what_only_looks_like_a_mark_is_given_back() {
        let mut splitter = Splitter::new(b"\x1eabc");
        assert_eq!(splitter.push("x\x1eab".into()), Scan { before: "x".into(), after: None });
        assert_eq!(splitter.push("\n".into()), Scan { before: "\x1eab\n".into(), after: None });
        assert_eq!(splitter.push("\x1e".into()), Scan { before: "".into(), after: None });
        assert_eq!(splitter.finish(), "\x1e");
    }

    #[test]
    fn a_line_is_not_held_back() {
        let mut splitter = Splitter::new(b"\x1eabc");
        assert_eq!(splitter.push("hello\n".into()).before, "hello\n");
    }
}
