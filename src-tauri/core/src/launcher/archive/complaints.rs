//! Parses the error messages of GNU and busybox tar about files that they could not pack. Pure.

use super::inside;
use crate::run::SkipReason;

/// Paths below `out/`, with the reason why they are missing.
pub(super) fn read(log: &[u8]) -> impl Iterator<Item = (&[u8], SkipReason)> {
    log.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_prefix(b"tar: ")?;
        let (name, reason) = complaint(line)?;
        Some((inside(name)?, reason))
    })
}

fn complaint(line: &[u8]) -> Option<(&[u8], SkipReason)> {
    if let Some(rest) = line.strip_prefix(b"can't open '") {
        return Some((before(rest, b"': ")?, SkipReason::Unreadable));
    }
    // busybox opens each file by its whole path, and the kernel takes 4,095 bytes of that.
    if let Some(name) = line.strip_suffix(b": File name too long") {
        return Some((before(name, b": Cannot ").unwrap_or(name), SkipReason::TooDeep));
    }
    if let Some(name) = before(line, b": Cannot ").or_else(|| line.strip_suffix(b": Permission denied")) {
        return Some((name, SkipReason::Unreadable));
    }
    Some((line.strip_suffix(b": socket ignored")?, SkipReason::SpecialFile))
}

fn before<'a>(text: &'a [u8], mark: &[u8]) -> Option<&'a [u8]> {
    memchr::memmem::find(text, mark).map(|at| &text[..at])
}
