//! One header block of a tar, and the records ahead of it. Pure.

use super::Ahead;
use crate::run::SkipReason;

#[derive(Debug)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) name: Vec<u8>,
    /// The target of a link.
    pub(super) link: Vec<u8>,
    pub(super) size: u64,
}

impl Header {
    /// `None` if the checksum is wrong, or the size is not a number.
    pub(super) fn read(block: &[u8]) -> Option<Self> {
        let size = number(&block[124..136])?;
        checksum_holds(block).then(|| Self {
            kind: block[156],
            name: short_name(block),
            link: until_nul(&block[157..257]),
            size,
        })
    }

    pub(super) fn is_regular(&self) -> bool {
        matches!(self.kind, b'0' | 0 | b'7')
    }

    /// The reason for an entry that is neither a folder nor a file that can be returned.
    pub(super) fn why_left_out(&self) -> SkipReason {
        match self.kind {
            b'1' => SkipReason::HardLink,
            b'2' => SkipReason::Symlink,
            _ => SkipReason::SpecialFile,
        }
    }
}

pub(super) fn until_nul(field: &[u8]) -> Vec<u8> {
    field.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
}

/// Reads the records of POSIX's `x` entries, each of the form `LENGTH KEY=VALUE` and a newline. Records that plain
/// files do not need are skipped. A last record that is cut off counts as far as it goes.
pub(super) fn read_pax(mut records: &[u8], ahead: &mut Ahead) {
    while let Some(space) = memchr::memchr(b' ', records) {
        let length = std::str::from_utf8(&records[..space]).ok().and_then(|digits| digits.parse::<usize>().ok());
        let Some(length) = length.filter(|length| *length > space) else { return };
        let (record, rest) = records.split_at(length.min(records.len()));
        let record = &record[space + 1..];
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        if let Some(path) = record.strip_prefix(b"path=") {
            ahead.name = Some(until_nul(path));
        } else if let Some(path) = record.strip_prefix(b"linkpath=") {
            ahead.link = Some(until_nul(path));
        } else if let Some(size) = record.strip_prefix(b"size=") {
            ahead.size = std::str::from_utf8(size).ok().and_then(|digits| digits.parse().ok());
        }
        records = rest;
    }
}

fn short_name(block: &[u8]) -> Vec<u8> {
    let name = until_nul(&block[..100]);
    // Only POSIX's own format has a prefix field; GNU's stores times there.
    if &block[257..263] != b"ustar\0" || block[345] == 0 {
        return name;
    }
    let mut full = until_nul(&block[345..500]);
    full.push(b'/');
    full.extend_from_slice(&name);
    full
}

/// Octal digits, or GNU's base-256 if the first bit is set. `None` for anything else, and for numbers past 63 bits.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let bytes = std::iter::once(field[0] & 0x7f).chain(field[1..].iter().copied());
        return bytes.into_iter().try_fold(0u64, |sum, byte| sum.checked_mul(256)?.checked_add(u64::from(byte)));
    }
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    if text.is_empty() { Some(0) } else { u64::from_str_radix(text, 8).ok() }
}

fn checksum_holds(block: &[u8]) -> bool {
    let sum: u64 =
        block.iter().enumerate().map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte })).sum();
    number(&block[148..156]) == Some(sum)
}
