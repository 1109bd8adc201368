//! A disk of a few megabytes that a test fills and empties: a tmpfs of its own, which takes the rights of root.

#![expect(clippy::expect_used, reason = "helpers of tests are tests, though no test stands in them")]

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Mounted over a folder of its own until it is dropped.
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    pub fn over(folder: &TempDir, megabytes: u32) -> Self {
        let size = format!("size={megabytes}m,mode=0700,uid={}", rustix::process::getuid().as_raw());
        let disk = Self { folder: folder.path().to_owned() };
        let mounted = as_root("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &disk.path()]);
        assert!(mounted, "THIS TEST MOUNTS A SMALL DISK, for which it must be root or have sudo without a password");
        disk
    }

    fn path(&self) -> String {
        self.folder.display().to_string()
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Takes all the room that is left; once more where something has become free.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.filler()).expect("a file on the disk");
        for block in [1 << 20, 4096, 1] {
            loop {
                match file.write(&vec![7; block]) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("the disk was not filled: {error}"),
                }
            }
        }
    }

    /// Gives all of it back.
    pub fn empty(&self) {
        fs::remove_file(self.filler()).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, since a program that is ending may still have a file open there.
        if !as_root("umount", &["-l", &self.path()]) {
            eprintln!("{} is still mounted", Path::new(&self.folder).display());
        }
    }
}

fn as_root(program: &str, args: &[&str]) -> bool {
    let root = rustix::process::geteuid().is_root();
    let mut command = if root { Command::new(program) } else { Command::new("sudo") };
    if !root {
        command.args(["-n", program]);
    }
    command.args(args).status().is_ok_and(|status| status.success())
}
