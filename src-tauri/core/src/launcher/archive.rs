//! Reads the tar of `out/`, which a hostile program may have shaped: its blocks, long names and links. Never touches
//! the disk, never trusts a size, and ends after a bounded number of bytes. [`basket`] decides what to keep of an
//! entry.

mod basket;
mod complaints;
mod header;

use basket::Basket;
use header::Header;

use crate::name::FileName;

pub use basket::Harvest;

const BLOCK: usize = 512;
/// Bound on the headers and contents of the whole archive, in bytes. The working folder holds 64 MiB, so an honest
/// archive is shorter, unless it has sparse files.
const MAX_RAW: u64 = 128 << 20;
/// Bound on the long names ahead of entries, in bytes. They are counted apart: in nested folders each name repeats all
/// those above it, 512 MB at 2,000 folders with names of 255 bytes.
const MAX_RAW_AHEAD: u64 = 512 << 20;
/// Bytes kept of a name. This is more than the longest path that can be returned (16 components of 255 bytes), so the
/// part that is cut off decides nothing.
const MAX_AHEAD: usize = 8 << 10;
/// Bytes kept of tar's error messages.
const MAX_LOG: usize = 16 << 10;

const OUT: &[u8] = b"sandbox/out";
const LOG: &[u8] = b"tmp/.sandtray.log";

#[derive(Debug)]
pub(super) struct Archive {
    raw: u64,
    raw_ahead: u64,
    block: Vec<u8>,
    body: Option<Body>,
    ahead: Ahead,
    basket: Basket,
    log: Vec<u8>,
    done: bool,
}

/// Records ahead of an entry, for values that do not fit in the entry's own header.
#[derive(Debug, Default)]
struct Ahead {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

/// An entry's content while it comes in.
#[derive(Debug)]
struct Body {
    keep: Keep,
    /// Bound on the bytes that are kept of the content.
    most: usize,
    bytes: Vec<u8>,
    left: u64,
    padding: u64,
}

#[derive(Debug)]
enum Keep {
    Nothing,
    File(FileName),
    /// The content of a file that is not returned, kept for a hard link that can be.
    Spare(Vec<u8>),
    LongName,
    LongLink,
    Pax,
    Log,
}

impl Archive {
    pub(super) fn new(budget: u64) -> Self {
        Self {
            raw: 0,
            raw_ahead: 0,
            block: Vec::with_capacity(BLOCK),
            body: None,
            ahead: Ahead::default(),
            basket: Basket::new(budget),
            log: Vec::new(),
            done: false,
        }
    }

    /// Whether the archive has ended, or reading has stopped.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Ends the reading of an archive that was not sent, because there was nothing to pack.
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
            self.basket.stopped_at(b"");
        }
        for (path, reason) in complaints::read(&self.log) {
            self.basket.leave_out(path, reason);
        }
        self.basket.finish()
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
        let kept = content.min(body.most - body.bytes.len());
        body.bytes.extend_from_slice(&bytes[..kept]);
        body.left -= content as u64;
        let padding = (bytes.len() - content).min(usize::try_from(body.padding).unwrap_or(usize::MAX));
        body.padding -= padding as u64;
        if body.left == 0 && body.padding == 0 {
            self.leave();
        }
        &bytes[content + padding..]
    }

    /// Reads one header block.
    fn enter(&mut self, block: &[u8]) {
        if block.iter().all(|byte| *byte == 0) {
            self.done = true;
            return;
        }
        let Some(mut header) = Header::read(block) else {
            self.stop(b"");
            return;
        };
        let is_ahead = matches!(header.kind, b'L' | b'K' | b'x' | b'g');
        if !is_ahead {
            let Ahead { name, link, size } = std::mem::take(&mut self.ahead);
            header.name = name.unwrap_or(header.name);
            header.link = link.unwrap_or(header.link);
            header.size = size.unwrap_or(header.size);
        }
        // For these kinds, no content follows the header, whatever its size field says.
        if matches!(header.kind, b'1'..=b'6') {
            header.size = 0;
        }
        let (raw, most) = if is_ahead { (&mut self.raw_ahead, MAX_RAW_AHEAD) } else { (&mut self.raw, MAX_RAW) };
        let end = header.size.checked_next_multiple_of(BLOCK as u64).and_then(|padded| padded.checked_add(*raw));
        match end {
            Some(end) if end <= most => *raw = end,
            _ => return self.stop(if is_ahead { b"" } else { &header.name }),
        }
        // Sparse and multi-volume entries continue in other formats; the launcher's tar makes none.
        if matches!(header.kind, b'S' | b'M') {
            return self.stop(&header.name);
        }
        let keep = if is_ahead { of_ahead(header.kind) } else { self.judge(&header) };
        let most = match keep {
            Keep::Nothing => 0,
            Keep::LongName | Keep::LongLink | Keep::Pax => MAX_AHEAD,
            Keep::Log => MAX_LOG,
            // At most the cap of file bytes, because a larger file is not kept.
            Keep::File(_) | Keep::Spare(_) => usize::try_from(header.size).unwrap_or(usize::MAX),
        };
        let padding = header.size.next_multiple_of(BLOCK as u64) - header.size;
        // A size that is claimed and not sent costs nothing, because memory that is not written to is not allocated.
        let bytes = Vec::with_capacity(most.min(usize::try_from(header.size).unwrap_or(most)));
        self.body = Some(Body { keep, most, bytes, left: header.size, padding });
        if header.size == 0 {
            self.leave();
        }
    }

    /// Decides about an entry's content.
    fn judge(&mut self, header: &Header) -> Keep {
        let regular = header.is_regular();
        if regular && header.name == LOG {
            return Keep::Log;
        }
        match inside(&header.name) {
            None => Keep::Nothing,
            Some(b"") => {
                if header.kind != b'5' {
                    self.basket.leave_out(b"", header.why_left_out());
                }
                Keep::Nothing
            }
            Some(path) if header.kind == b'5' => {
                self.basket.pass_folder(path);
                Keep::Nothing
            }
            Some(path) if header.kind == b'1' => {
                self.basket.link(path, inside(&header.link));
                Keep::Nothing
            }
            Some(path) if regular => self.basket.take(path, header.size),
            Some(path) => {
                self.basket.leave_out(path, header.why_left_out());
                Keep::Nothing
            }
        }
    }

    fn leave(&mut self) {
        let Some(Body { keep, bytes, .. }) = self.body.take() else { return };
        match keep {
            Keep::Nothing => {}
            Keep::File(name) => self.basket.put(name, bytes.into()),
            Keep::Spare(path) => self.basket.put_spare(path, bytes.into()),
            Keep::LongName => self.ahead.name = Some(header::until_nul(&bytes)),
            Keep::LongLink => self.ahead.link = Some(header::until_nul(&bytes)),
            Keep::Pax => header::read_pax(&bytes, &mut self.ahead),
            Keep::Log => self.log = bytes,
        }
    }

    /// Stops the reading: the rest cannot be read, or is not worth it.
    fn stop(&mut self, name: &[u8]) {
        self.basket.stopped_at(inside(name).unwrap_or_default());
        self.done = true;
    }
}

fn of_ahead(kind: u8) -> Keep {
    match kind {
        b'L' => Keep::LongName,
        b'K' => Keep::LongLink,
        b'x' => Keep::Pax,
        _ => Keep::Nothing,
    }
}

/// The path below `out/`; empty for `out` itself.
fn inside(name: &[u8]) -> Option<&[u8]> {
    match name.strip_prefix(OUT)? {
        [] => Some(b""),
        [b'/', path @ ..] => Some(path),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
