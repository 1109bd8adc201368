//! Checks before each step. Windows lets only administrators and developers make links.

use std::fs;
use std::io;
use std::path::Path;

use sandtray_core::name::FileName;

use super::Existing;

/// Fails with `AlreadyExists` if the name exists and is to be kept.
pub(super) fn write(root: &Path, name: &FileName, bytes: &[u8], existing: Existing) -> io::Result<()> {
    // `~` occurs in short names, which can name hidden folders too. Windows drops dots and spaces at the end.
    let odd = |component: &str| {
        component.contains([':', '<', '>', '"', '|', '?', '*', '~']) || component.ends_with(['.', ' '])
    };
    if name.as_str().split('/').any(odd) {
        return Err(io::Error::other("its name is not one that Windows can hold"));
    }
    let mut folder = root.to_owned();
    for parent in name.parents() {
        folder = root.join(parent);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::Error::other(format!("{parent} is there and is not a folder")));
        }
    }
    let draft = folder.join(super::draft());
    fs::write(&draft, bytes)?;
    let place = folder.join(super::last(name));
    let taken = match existing {
        Existing::Replace => fs::rename(&draft, place),
        // One step, unlike a check and a rename, which would replace a file made in between.
        Existing::Keep => fs::hard_link(&draft, place).and_then(|()| fs::remove_file(&draft)),
    };
    if taken.is_err() {
        let _ = fs::remove_file(&draft);
    }
    taken
}
