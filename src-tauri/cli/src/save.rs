//! Saving what a program returned under a folder of the owner's choice. Names and contents are the program's word: nothing
//! is written outside the folder, and no symbolic link below it is followed.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandtray_core::name::FileName;
use serde_json::Value;

use crate::failure::Failure;

/// Saves all files of a reply; gives their number.
pub(crate) fn save(files: &Value, folder: &Path) -> Result<usize, Failure> {
    let Some(files) = files.as_object().filter(|files| !files.is_empty()) else { return Ok(0) };
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::new(format!("The folder {} can't be made: {error}.", folder.display())))?;
    for (name, content) in files {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::new(format!("The file {name} can't be saved under {}: {why}.", folder.display()))
        };
        let parsed = FileName::parse(name).map_err(|fault| refuse(&format!("its name {fault}")))?;
        let bytes = bytes(content).ok_or_else(|| refuse(&"its content can't be read"))?;
        place::write(folder, &parsed, &bytes).map_err(|error| refuse(&error))?;
    }
    Ok(files.len())
}

fn bytes(content: &Value) -> Option<Vec<u8>> {
    match content.as_str() {
        Some(text) => Some(text.as_bytes().to_vec()),
        None => STANDARD.decode(content["base64"].as_str()?).ok(),
    }
}

/// The file's own name, without its folders.
fn last(name: &FileName) -> &str {
    name.as_str().rsplit('/').next().unwrap_or(name.as_str())
}

/// Where it is written before it takes its name. Not a name that a program would choose for anything else.
fn draft() -> String {
    format!(".sandtray-{}.part", std::process::id())
}

#[cfg(unix)]
mod place {
    //! Step by step from an open folder, so that a link put in the way at any moment is not followed.

    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};
    use rustix::io::Errno;
    use sandtray_core::name::FileName;

    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::RDONLY).union(OFlags::CLOEXEC);

    pub(super) fn write(root: &Path, name: &FileName, bytes: &[u8]) -> io::Result<()> {
        // The folder itself may be a link: its owner named it.
        let mut folder = open(root, FOLDER, Mode::empty())?;
        for parent in name.parents() {
            folder = step(&folder, parent.rsplit('/').next().unwrap_or(parent))?;
        }
        let draft = super::draft();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, draft.as_str(), flags, Mode::from_raw_mode(0o666))?;
        // Taking the name replaces a link or a fifo of that name rather than writing through it.
        let written = File::from(file)
            .write_all(bytes)
            .and_then(|()| renameat(&folder, draft.as_str(), &folder, super::last(name)).map_err(io::Error::from));
        if written.is_err() {
            let _ = unlinkat(&folder, draft.as_str(), AtFlags::empty());
        }
        written
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
}

#[cfg(not(unix))]
mod place {
    use std::io;
    use std::path::Path;

    use sandtray_core::name::FileName;

    /// Looks before each step. Windows lets only administrators and developers make links.
    pub(super) fn write(root: &Path, name: &FileName, bytes: &[u8]) -> io::Result<()> {
        let mut folder = root.to_owned();
        for parent in name.parents() {
            folder = root.join(parent);
            match std::fs::create_dir(&folder) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
            if !std::fs::symlink_metadata(&folder)?.is_dir() {
                return Err(io::Error::other(format!("{parent} is there and is not a folder")));
            }
        }
        if name.as_str().contains([':', '<', '>', '"', '|', '?', '*']) {
            return Err(io::Error::other("its name is not one that Windows can hold"));
        }
        let draft = folder.join(super::draft());
        std::fs::write(&draft, bytes)?;
        std::fs::rename(&draft, folder.join(super::last(name)))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn read(path: &Path) -> Vec<u8> {
        fs::read(path).expect("it was saved")
    }

    #[test]
    fn files_arrive_exactly_and_replace_what_was_there() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("new/out");
        let files = json!({ "a.txt": "ä", "d/e/f.bin": { "base64": "AP8=" } });
        assert_eq!(save(&files, &out).unwrap(), 2);
        assert_eq!(save(&json!({ "a.txt": "again" }), &out).unwrap(), 1);
        assert_eq!(read(&out.join("a.txt")), b"again");
        assert_eq!(read(&out.join("d/e/f.bin")), [0, 255]);
        assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
        assert_eq!(save(&json!({}), &root.path().join("none")).unwrap(), 0);
        assert!(!root.path().join("none").exists());
    }

    #[test]
    fn nothing_leaves_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        for name in ["../x", "/tmp/x", "a/../../x", "", "a\\..\\x"] {
            assert!(save(&json!({ name: "x" }), &out).unwrap_err().message.contains("its name"), "{name}");
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (out, outside) = (root.path().join("out"), root.path().join("outside"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("precious"), "precious").unwrap();
        symlink(&outside, out.join("folder")).unwrap();
        symlink(outside.join("precious"), out.join("file")).unwrap();
        assert!(save(&json!({ "folder/x": "x" }), &out).unwrap_err().message.contains("not a folder"));
        assert_eq!(save(&json!({ "file": "mine" }), &out).unwrap(), 1);
        assert_eq!(read(&outside.join("precious")), b"precious");
        assert_eq!(read(&out.join("file")), b"mine");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
        // The folder itself may be a link.
        symlink(&outside, root.path().join("chosen")).unwrap();
        assert_eq!(save(&json!({ "y": "y" }), &root.path().join("chosen")).unwrap(), 1);
        assert_eq!(read(&outside.join("y")), b"y");
    }

    #[test]
    fn a_folder_in_the_way_of_a_file_is_told() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        assert!(save(&json!({ "a": "x" }), root.path()).is_err());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
