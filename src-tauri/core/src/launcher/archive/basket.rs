//! The files kept from an archive, within the owner's cap of file bytes: files, hard links to files, and a list of the
//! files left out. Knows nothing of tar's format.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::Keep;
use crate::name::{FileName, MAX_DEPTH, NameFault};
use crate::run::{MAX_FILES, OutputFile, SkipReason, SkippedFile};

/// Bound on the names of all returned files, in bytes. In a reply each byte may take six.
pub(super) const MAX_NAMES: usize = 64 << 10;
/// Bound on the list of files left out, not counting the entry for the place where the reading ended. The rest is only
/// counted.
pub(super) const MAX_SKIPPED: usize = 100;
/// Bytes shown of a name: enough to recognise it, and few enough for a list of a hundred.
const SHOWN: usize = 300;

/// The content of a run's `out/`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Harvest {
    pub files: Vec<OutputFile>,
    pub skipped: Vec<SkippedFile>,
}

#[derive(Debug)]
pub(super) struct Basket {
    /// Bytes left for files.
    budget: u64,
    /// Bytes left for contents that are kept for a hard link.
    spare_budget: u64,
    name_bytes: usize,
    files: Vec<OutputFile>,
    /// By path below `out/`: at most [`MAX_FILES`] files, as many spares, and [`MAX_SKIPPED`] files left out.
    known: HashMap<Vec<u8>, Known>,
    spares: usize,
    left_out: usize,
    /// Paths at which the tree became too deep, at most [`MAX_SKIPPED`]. Everything below them is reported with them.
    deep: HashSet<Vec<u8>>,
    skipped: Vec<SkippedFile>,
    skipped_more: u64,
}

/// The meaning of a later link to this path.
#[derive(Debug)]
enum Known {
    File(Bytes),
    /// A file whose name cannot be returned, but whose content can.
    Spare(Bytes),
    LeftOut(SkipReason),
}

impl Basket {
    pub(super) fn new(budget: u64) -> Self {
        Self {
            budget,
            spare_budget: budget,
            name_bytes: 0,
            files: Vec::new(),
            known: HashMap::new(),
            spares: 0,
            left_out: 0,
            deep: HashSet::new(),
            skipped: Vec::new(),
            skipped_more: 0,
        }
    }

    /// Adds a regular file. Returns what to do with its content.
    pub(super) fn take(&mut self, path: &[u8], size: u64) -> Keep {
        let parsed = parse(path);
        let is_misnamed = parsed.is_err();
        let reason = match parsed.and_then(|name| self.admit(name, size)) {
            Ok(name) => return Keep::File(name),
            Err(reason) => reason,
        };
        if is_misnamed && size <= self.spare_budget && self.spares < MAX_FILES {
            self.spare_budget -= size;
            self.spares += 1;
            self.tell(path, reason);
            return Keep::Spare(path.to_owned());
        }
        // A hard link with a valid name would be left out too, for lack of room.
        self.leave_out_for(path, reason, if is_misnamed { SkipReason::TooLarge } else { reason });
        Keep::Nothing
    }

    pub(super) fn put(&mut self, name: FileName, bytes: Bytes) {
        self.known.insert(name.as_str().into(), Known::File(bytes.clone()));
        self.files.push(OutputFile { name, bytes });
    }

    pub(super) fn put_spare(&mut self, path: Vec<u8>, bytes: Bytes) {
        self.known.insert(path, Known::Spare(bytes));
    }

    /// Adds a hard link: tar sends the content once, with the first name that it finds.
    pub(super) fn link(&mut self, path: &[u8], target: Option<&[u8]>) {
        let content = match target.and_then(|target| self.known.get(target)) {
            Some(Known::File(bytes) | Known::Spare(bytes)) => Ok(bytes.clone()),
            Some(Known::LeftOut(reason)) => Err(*reason),
            None => Err(SkipReason::HardLink),
        };
        let admitted = parse(path).and_then(|name| {
            let bytes = content?;
            Ok((self.admit(name, bytes.len() as u64)?, bytes))
        });
        match admitted {
            Ok((name, bytes)) => self.put(name, bytes),
            Err(reason) => self.leave_out(path, reason),
        }
    }

    /// Passes a folder, which is returned as part of its files' names. A folder that is too deep is reported here,
    /// because it may hold no file.
    pub(super) fn pass_folder(&mut self, path: &[u8]) {
        // Its name ends with a slash.
        let path = path.strip_suffix(b"/").unwrap_or(path);
        if depth(path) > MAX_DEPTH {
            self.tell(path, SkipReason::TooDeep);
        }
    }

    pub(super) fn leave_out(&mut self, path: &[u8], reason: SkipReason) {
        self.leave_out_for(path, reason, reason);
    }

    /// Reports where the reading ended. Called once, and reported whatever the length of the list.
    pub(super) fn stopped_at(&mut self, path: &[u8]) {
        self.skipped.push(SkippedFile { name: printable(path), reason: SkipReason::NotRead });
    }

    pub(super) fn finish(mut self) -> Harvest {
        if self.skipped_more > 0 {
            let name = format!("({} more)", self.skipped_more);
            self.skipped.push(SkippedFile { name, reason: SkipReason::TooMany });
        }
        Harvest { files: self.files, skipped: self.skipped }
    }

    /// Takes a file's room, if there is enough.
    fn admit(&mut self, name: FileName, size: u64) -> Result<FileName, SkipReason> {
        let path = name.as_str().as_bytes();
        if matches!(self.known.get(path), Some(Known::File(_))) {
            return Err(SkipReason::BadName);
        }
        if size > self.budget {
            return Err(SkipReason::TooLarge);
        }
        if self.files.len() >= MAX_FILES || self.name_bytes + path.len() > MAX_NAMES {
            return Err(SkipReason::TooMany);
        }
        self.name_bytes += path.len();
        self.budget -= size;
        Ok(name)
    }

    fn leave_out_for(&mut self, path: &[u8], reason: SkipReason, of_links: SkipReason) {
        if self.left_out < MAX_SKIPPED && !self.known.contains_key(path) {
            self.left_out += 1;
            self.known.insert(path.to_owned(), Known::LeftOut(of_links));
        }
        self.tell(path, reason);
    }

    /// Reports a path. A tree that is too deep is reported once instead of once per entry.
    fn tell(&mut self, path: &[u8], reason: SkipReason) {
        if reason != SkipReason::TooDeep {
            return self.list(path, reason);
        }
        let top = first_components(path, MAX_DEPTH + 1);
        if !self.deep.contains(top) {
            if self.deep.len() >= MAX_SKIPPED {
                self.deep.clear();
            }
            self.deep.insert(top.to_owned());
            self.list(top, reason);
        }
    }

    fn list(&mut self, path: &[u8], reason: SkipReason) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(SkippedFile { name: printable(path), reason });
        } else {
            self.skipped_more += 1;
        }
    }
}

fn parse(path: &[u8]) -> Result<FileName, SkipReason> {
    // Checked first, because a path that was cut off is certainly too deep, whatever its last bytes are.
    if depth(path) > MAX_DEPTH {
        return Err(SkipReason::TooDeep);
    }
    match std::str::from_utf8(path).map(FileName::parse) {
        Ok(Ok(name)) => Ok(name),
        Ok(Err(NameFault::TooDeep)) => Err(SkipReason::TooDeep),
        Ok(Err(_)) | Err(_) => Err(SkipReason::BadName),
    }
}

fn depth(path: &[u8]) -> usize {
    memchr::memchr_iter(b'/', path).count() + 1
}

fn first_components(path: &[u8], number: usize) -> &[u8] {
    let end = memchr::memchr_iter(b'/', path).nth(number - 1);
    &path[..end.unwrap_or(path.len())]
}

/// The name for display. `out/` itself has no name below it.
fn printable(path: &[u8]) -> String {
    if path.is_empty() {
        return "out".to_owned();
    }
    let text = String::from_utf8_lossy(&path[..path.len().min(SHOWN)]).into_owned();
    if path.len() > SHOWN { text + "..." } else { text }
}
