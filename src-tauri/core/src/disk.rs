//! Writes, reads and sets aside Sandtray's own files: whole or not at all, bounded, private to the owner. Knows nothing
//! of their contents.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use crate::time::to_millis;

/// Bound on attempts at a free name when several files are set aside within one second.
const MAX_SAME_SECOND: u32 = 100;

/// A file of Sandtray's that could not be used. It is kept under another name, and nothing overwrites it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetAside {
    /// "settings" or "history": the data that stopped being used.
    pub what: &'static str,
    pub kept_as: PathBuf,
    /// The reason, as a clause that ends a sentence.
    pub reason: String,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Sandtray could not use its {} file and goes on without it: {}. The file is kept as {}.",
            self.what,
            self.reason,
            self.kept_as.display()
        )
    }
}

/// Renames `path`, with the companions named by `suffixes`, to `path.damaged-TIME`.
///
/// # Errors
///
/// If a file cannot be renamed.
pub fn set_aside(
    what: &'static str,
    path: &Path,
    suffixes: &[&str],
    reason: String,
    now: SystemTime,
) -> io::Result<SetAside> {
    let kept_as = free_name(path, now)?;
    // Companions first: a leftover write-ahead log beside a new database would do more harm than a missing one.
    for suffix in suffixes {
        match fs::rename(appended(path, suffix), appended(&kept_as, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    fs::rename(path, &kept_as)?;
    Ok(SetAside { what, kept_as, reason })
}

fn free_name(path: &Path, now: SystemTime) -> io::Result<PathBuf> {
    let stem = format!(".damaged-{}", utc_stamp(now));
    (0..MAX_SAME_SECOND)
        .map(|attempt| match attempt {
            0 => appended(path, &stem),
            more => appended(path, &format!("{stem}-{more}")),
        })
        .find(|name| fs::symlink_metadata(name).is_err())
        .ok_or_else(|| io::Error::new(io::ErrorKind::AlreadyExists, "too many damaged files within one second"))
}

/// `history.sqlite` and `-wal` give `history.sqlite-wal`.
pub fn appended(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

/// `20261129T221346Z`: sorts by time and is a plain file name on every system.
pub fn utc_stamp(time: SystemTime) -> String {
    let seconds = to_millis(time) / 1000;
    let (year, month, day) = civil_date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The date of a day counted from 1970-01-01. Years are counted from March, so that the leap day is a year's last.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Reads a whole file; `None` if it does not exist.
///
/// # Errors
///
/// If it is longer than `max`, which is checked before it is read, is not a regular file, or cannot be read.
pub fn read_bounded(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    // Checked before the file is opened, because opening a fifo would block.
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is longer than {max} bytes")));
    }
    Ok(Some(bytes))
}

/// Replaces a file. After a crash at any point it holds the old bytes or the new ones. Only the owner may read it.
///
/// # Errors
///
/// If the file cannot be written or renamed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // If the file is a symbolic link, its target is replaced, because the owner may keep settings elsewhere.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Created with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(&target).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// The rename is on disk only once its folder is synced.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Free bytes on the disk of this file's folder; `None` if the system does not tell.
#[cfg(unix)]
pub fn room(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
pub fn room(_path: &Path) -> Option<u64> {
    None
}

/// Makes a folder that only the owner can enter. An existing folder is closed to others.
///
/// # Errors
///
/// If the folder cannot be made or closed.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)?;
    close_to_others(path)
}

#[cfg(unix)]
fn close_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = fs::metadata(path)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn close_to_others(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::from_millis;

    #[test]
    fn a_stamp_is_the_utc_date_and_time() {
        for (seconds, stamp) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_709_251_199, "20240229T235959Z"),
            (1_709_251_200, "20240301T000000Z"),
            (4_102_444_799, "20991231T235959Z"),
        ] {
            assert_eq!(utc_stamp(from_millis(seconds * 1000)), stamp);
        }
    }

    #[test]
    fn a_second_damaged_file_does_not_overwrite_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        for content in ["one", "two"] {
            fs::write(&path, content).unwrap();
            fs::write(appended(&path, "-wal"), content).unwrap();
            set_aside("settings", &path, &["-wal", "-shm"], "it was broken".into(), from_millis(0)).unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(read("x.json.damaged-19700101T000000Z"), "one");
        assert_eq!(read("x.json.damaged-19700101T000000Z-1"), "two");
        assert_eq!(read("x.json.damaged-19700101T000000Z-1-wal"), "two");
        assert!(!path.exists());
    }

    #[test]
    fn reading_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        assert_eq!(read_bounded(&path, 4).unwrap(), None);
        fs::write(&path, "1234").unwrap();
        assert_eq!(read_bounded(&path, 4).unwrap().unwrap(), b"1234");
        assert!(read_bounded(&path, 3).is_err());
        assert!(read_bounded(folder.path(), 3).is_err(), "a folder is not a file");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_survives_a_write_and_the_file_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (link, real) = (folder.path().join("link"), folder.path().join("real"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn an_open_folder_is_closed_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        fs::create_dir_all(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        private_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
