//! Reads the tar of `out/` that a hostile program had a hand in. Never touches the disk, never trusts a size, and keeps
//! no more than the owner's cap of file bytes. Accepts regular files; everything else is reported, not returned.

use std::collections::HashSet;

use bytes::Bytes;

use crate::name::{FileName, NameFault};
use crate::run::{MAX_FILES, OutputFile, SkipReason, SkippedFile};

const BLOCK: usize = 512;
/// Raw bytes of the whole archive. The working folder holds 64 MiB, so an honest archive is shorter; sparse files are not.
const MAX_RAW: u64 = 128 << 20;
/// Bytes of all their names. In a reply each byte may take six.
const MAX_NAMES: usize = 64 << 10;
/// Skipped names that are listed; the rest is counted.
const MAX_SKIPPED: usize = 100;
/// A long name's own bytes: a path of 2,000 components of 255 bytes is longer than any kernel lets a program make in one go.
const MAX_NAME: u64 = 64 << 10;
/// What tar had to complain about.
const MAX_LOG: u64 = 16 << 10;

const OUT: &[u8] = b"sandbox/out";
const LOG: &[u8] = b"tmp/.sandtray.log";

/// What a run's `out/` held.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Harvest {
    pub files: Vec<OutputFile>,
    pub skipped: Vec<SkippedFile>,
}

#[derive(Debug)]
pub(super) struct Archive {
    budget: u64,
    raw: u64,
    block: Vec<u8>,
    body: Option<Body>,
    /// From a long-name entry, for the entry after it.
    long_name: Option<Vec<u8>>,
    done: bool,
    files: Vec<OutputFile>,
    names: HashSet<FileName>,
    name_bytes: usize,
    skipped: Vec<SkippedFile>,
    skipped_more: u64,
    log: Vec<u8>,
}

/// An entry's content while it comes in.
#[derive(Debug)]
struct Body {
    keep: Keep,
    bytes: Vec<u8>,
    left: u64,
    padding: u64,
}

#[derive(Debug)]
enum Keep {
    Nothing,
    File(FileName),
    LongName,
    Log,
}

impl Archive {
    pub(super) fn new(budget: u64) -> Self {
        Self {
            budget,
            raw: 0,
            block: Vec::with_capacity(BLOCK),
            body: None,
            long_name: None,
            done: false,
            files: Vec::new(),
            names: HashSet::new(),
            name_bytes: 0,
            skipped: Vec::new(),
            skipped_more: 0,
            log: Vec::new(),
        }
    }

    /// Whether the end of the archive, or of our patience, has come.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// There is none: nothing was to be packed.
    pub(super) fn close(&mut self) {
        self.done = true;
    }

    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.done {
            bytes = if self.body.is_some() { self.read_body(bytes) } else { self.read_header(bytes) };
        }
    }

    pub(super) fn finish(mut self) -> Harvest {
        if !self.done {
            self.skip("out", SkipReason::NotRead);
        }
        let log = std::mem::take(&mut self.log);
        for (name, reason) in complaints(&String::from_utf8_lossy(&log)) {
            self.skip(name, reason);
        }
        if self.skipped_more > 0 {
            let name = format!("({} more)", self.skipped_more);
            self.skipped.push(SkippedFile { name, reason: SkipReason::TooMany });
        }
        Harvest { files: self.files, skipped: self.skipped }
    }

    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let taken = bytes.len().min(BLOCK - self.block.len());
        self.block.extend_from_slice(&bytes[..taken]);
        if self.block.len() == BLOCK {
            let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
            self.raw += BLOCK as u64;
            self.enter(&block);
        }
        &bytes[taken..]
    }

    fn read_body<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(body) = &mut self.body else { return bytes };
        let content = bytes.len().min(usize::try_from(body.left).unwrap_or(usize::MAX));
        if !matches!(body.keep, Keep::Nothing) {
            body.bytes.extend_from_slice(&bytes[..content]);
        }
        body.left -= content as u64;
        let padding = (bytes.len() - content).min(usize::try_from(body.padding).unwrap_or(usize::MAX));
        body.padding -= padding as u64;
        self.raw += (content + padding) as u64;
        if body.left == 0 && body.padding == 0 {
            self.leave();
        }
        &bytes[content + padding..]
    }

    /// One header block.
    fn enter(&mut self, block: &[u8]) {
        if block.iter().all(|byte| *byte == 0) {
            self.done = true;
            return;
        }
        let (Some(size), true) = (number(&block[124..136]), checksum_holds(block)) else {
            self.give_up("out");
            return;
        };
        let kind = block[156];
        let name = self.long_name.take().unwrap_or_else(|| short_name(block));
        // Of these kinds the size says nothing about what follows.
        let size = if matches!(kind, b'1'..=b'6') { 0 } else { size };
        let padded = size.checked_next_multiple_of(BLOCK as u64);
        if padded.and_then(|padded| padded.checked_add(self.raw)).is_none_or(|end| end > MAX_RAW) {
            self.give_up(&printable(&name));
            return;
        }
        let keep = self.judge(kind, &name, size);
        if matches!(keep, Keep::Nothing) && matches!(kind, b'S' | b'M') {
            // Sparse and multi-volume entries continue in ways of their own; the launcher's tar makes none.
            self.give_up(&printable(&name));
            return;
        }
        let padding = size.next_multiple_of(BLOCK as u64) - size;
        self.body = Some(Body { keep, bytes: Vec::new(), left: size, padding });
        if size == 0 {
            self.leave();
        }
    }

    /// What to do with an entry's content. Reports what will not be returned.
    fn judge(&mut self, kind: u8, name: &[u8], size: u64) -> Keep {
        if kind == b'L' {
            return if size <= MAX_NAME { Keep::LongName } else { Keep::Nothing };
        }
        let regular = matches!(kind, b'0' | 0 | b'7');
        if name == LOG && regular && size <= MAX_LOG {
            return Keep::Log;
        }
        let Some(inside) = name.strip_prefix(OUT) else { return Keep::Nothing };
        let path = match inside {
            [] | [b'/'] => {
                if kind != b'5' {
                    self.skip("out", reason_of(kind).unwrap_or(SkipReason::SpecialFile));
                }
                return Keep::Nothing;
            }
            [b'/', path @ ..] => path,
            _ => return Keep::Nothing,
        };
        if kind == b'5' || matches!(kind, b'x' | b'g' | b'K') {
            return Keep::Nothing;
        }
        let shown = printable(path);
        if let Some(reason) = reason_of(kind) {
            self.skip(&shown, reason);
            return Keep::Nothing;
        }
        self.judge_file(path, &shown, size)
    }

    fn judge_file(&mut self, path: &[u8], shown: &str, size: u64) -> Keep {
        let parsed = std::str::from_utf8(path).ok().map(FileName::parse);
        let reason = match parsed {
            Some(Ok(name)) if self.names.contains(&name) => SkipReason::BadName,
            Some(Ok(_)) if size > self.budget => SkipReason::TooLarge,
            Some(Ok(_)) if self.files.len() >= MAX_FILES || self.name_bytes + path.len() > MAX_NAMES => {
                SkipReason::TooMany
            }
            Some(Ok(name)) => {
                self.name_bytes += path.len();
                self.budget -= size;
                return Keep::File(name);
            }
            Some(Err(NameFault::TooDeep)) => SkipReason::TooDeep,
            Some(Err(_)) | None => SkipReason::BadName,
        };
        self.skip(shown, reason);
        Keep::Nothing
    }

    fn leave(&mut self) {
        let Some(body) = self.body.take() else { return };
        match body.keep {
            Keep::Nothing => {}
            Keep::File(name) => {
                self.names.insert(name.clone());
                self.files.push(OutputFile { name, bytes: Bytes::from(body.bytes) });
            }
            Keep::LongName => {
                let end = body.bytes.iter().position(|byte| *byte == 0).unwrap_or(body.bytes.len());
                self.long_name = Some(body.bytes[..end].to_vec());
            }
            Keep::Log => self.log = body.bytes,
        }
    }

    fn give_up(&mut self, name: &str) {
        let name = name.strip_prefix("sandbox/out/").unwrap_or(name).to_owned();
        self.skip(&name, SkipReason::NotRead);
        self.done = true;
    }

    fn skip(&mut self, name: &str, reason: SkipReason) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(SkippedFile { name: name.to_owned(), reason });
        } else {
            self.skipped_more += 1;
        }
    }
}

/// Why an entry that is neither a file nor a folder is left out.
fn reason_of(kind: u8) -> Option<SkipReason> {
    match kind {
        b'0' | 0 | b'7' => None,
        b'1' => Some(SkipReason::HardLink),
        b'2' => Some(SkipReason::Symlink),
        _ => Some(SkipReason::SpecialFile),
    }
}

/// Long enough to recognise, short enough to list a hundred of.
fn printable(name: &[u8]) -> String {
    const SHOWN: usize = 300;
    let text = String::from_utf8_lossy(&name[..name.len().min(SHOWN)]).into_owned();
    if name.len() > SHOWN { text + "..." } else { text }
}

fn short_name(block: &[u8]) -> Vec<u8> {
    let until_nul = |field: &[u8]| field.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
    let name = until_nul(&block[..100]);
    // Only POSIX's own format has a prefix field; GNU's keeps times there.
    if &block[257..263] != b"ustar\0" || block[345] == 0 {
        return name;
    }
    let mut full = until_nul(&block[345..500]);
    full.push(b'/');
    full.extend_from_slice(&name);
    full
}

/// Octal digits, or GNU's base-256 where the first bit is set. None where it is neither, or past 63 bits.
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

/// What GNU and busybox tar say of files that they could not put in.
fn complaints(log: &str) -> impl Iterator<Item = (&str, SkipReason)> {
    log.lines().filter_map(|line| {
        let line = line.strip_prefix("tar: ")?;
        let (name, reason) = if let Some(rest) = line.strip_prefix("can't open '") {
            (rest.split_once("': ")?.0, SkipReason::Unreadable)
        } else if let Some((name, _)) = line.split_once(": Cannot ") {
            (name, SkipReason::Unreadable)
        } else if let Some(folder) = line.strip_suffix(": Permission denied") {
            (folder, SkipReason::Unreadable)
        } else {
            (line.strip_suffix(": socket ignored")?, SkipReason::SpecialFile)
        };
        let inside = name.strip_prefix("sandbox/out")?;
        if inside.is_empty() { Some(("out", reason)) } else { Some((inside.strip_prefix('/')?, reason)) }
    })
}

#[cfg(test)]
mod tests;
