//! A file that reserves disk space. It is removed when the disk is full, so that SQLite has space to delete old runs,
//! and made again when there is space.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::disk;

const SUFFIX: &str = "-reserve";
/// Larger than the part of the log that is not in the database yet. The database must grow by that part before the log
/// can be restarted: see `LOG_BYTES` of the worker.
const BYTES: u64 = 16 << 20;
/// Free space that must remain after the reserve is made, for other programs.
const BEYOND: u64 = 1 << 20;
pub(super) const WANTED: u64 = BYTES + BEYOND;
const BLOCK: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(super) fn beside(database: &Path) -> Self {
        Self { path: disk::appended(database, SUFFIX) }
    }

    pub(super) fn is_there(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.len() >= BYTES)
    }

    /// Removes the reserve. False if there was none.
    pub(super) fn give(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }

    /// Makes the reserve, whole or not at all.
    ///
    /// # Errors
    ///
    /// Those of writing the file.
    pub(super) fn make(&self) -> io::Result<()> {
        let made = self.fill();
        if made.is_err() {
            self.give();
        }
        made
    }

    fn fill(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.create(true).write(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file: File = options.open(&self.path)?;
        let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
        for _ in 0..WANTED / BLOCK as u64 {
            file.write_all(&noise.block())?;
        }
        file.set_len(BYTES)
    }
}

/// Pseudo-random bytes, which no file system can compress.
struct Noise(u64);

impl Noise {
    fn block(&mut self) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK);
        while block.len() < BLOCK {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            block.extend(self.0.to_le_bytes());
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_from_its_making_until_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::beside(&folder.path().join("history.sqlite"));
        assert!(!reserve.is_there() && !reserve.give());
        reserve.make().unwrap();
        assert!(reserve.is_there());
        assert_eq!(fs::metadata(&reserve.path).unwrap().len(), BYTES);
        assert!(reserve.give() && !reserve.is_there());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_part_of_it_is_none_and_is_not_left() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::beside(&folder.path().join("history.sqlite"));
        fs::write(&reserve.path, b"a beginning").unwrap();
        assert!(!reserve.is_there());
        let reserve = Reserve::beside(&folder.path().join("no/such/history.sqlite"));
        assert!(reserve.make().is_err() && !reserve.is_there());
    }
}
