//! Opens folder by folder, so that a link which replaces a folder at any moment is not followed.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, linkat, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use sandtray_core::name::FileName;

use super::Existing;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

/// Fails with `AlreadyExists` if the name exists and is to be kept.
pub(super) fn write(root: &Path, name: &FileName, bytes: &[u8], existing: Existing) -> io::Result<()> {
    // The chosen folder itself may be a link, because its owner named it.
    let mut folder = open(root, FOLDER, Mode::empty())?;
    for parent in name.parents() {
        folder = step(&folder, parent.rsplit('/').next().unwrap_or(parent))?;
    }
    let draft = super::draft();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&folder, draft.as_str(), flags, Mode::from_raw_mode(0o666))?;
    let written =
        File::from(file).write_all(bytes).and_then(|()| take_name(&folder, &draft, super::last(name), existing));
    if written.is_err() {
        let _ = unlinkat(&folder, draft.as_str(), AtFlags::empty());
    }
    written
}

/// Renames the draft. Replacing removes a link or a fifo rather than writing through it. Keeping is one step too, so
/// there is no race between the check and the write.
fn take_name(folder: &OwnedFd, draft: &str, name: &str, existing: Existing) -> io::Result<()> {
    if existing == Existing::Replace {
        return Ok(renameat(folder, draft, folder, name)?);
    }
    match rename_if_free(folder, draft, name) {
        // Some file systems do not support that; one without hard links gives either error.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            linkat(folder, draft, folder, name, AtFlags::empty())?;
            Ok(unlinkat(folder, draft, AtFlags::empty())?)
        }
        other => Ok(other?),
    }
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn rename_if_free(folder: &OwnedFd, draft: &str, name: &str) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(folder, draft, folder, name, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn rename_if_free(_: &OwnedFd, _: &str, _: &str) -> rustix::io::Result<()> {
    Err(Errno::NOSYS)
}

fn step(folder: &OwnedFd, component: &str) -> io::Result<OwnedFd> {
    match mkdirat(folder, component, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    openat(folder, component, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => io::Error::other(format!("{component} is there and is not a folder")),
        other => other.into(),
    })
}
