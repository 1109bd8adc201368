//! What the kernel reports about the process at the other end of a socket. Most of it needs `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Process;

/// The programs of the product, all installed in one folder.
const PROGRAMS: [&str; 3] = ["sandtray", "sandtray-app", "sandtray-window"];
/// Index of the start time in `/proc/PID/stat`, counted after the process name, which may hold any characters.
const STARTED: usize = 19;

/// Identifies the process by its pid and start time, which is 0 if the process has ended or `/proc` is missing.
pub(super) fn of(pid: u32) -> Process {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let started = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(STARTED)?.parse().ok());
    Process { pid, started: started.unwrap_or(0) }
}

/// The file name of the program that the process runs.
pub(super) fn program(pid: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_string_lossy();
    // The kernel appends this to the path of a running program whose file was replaced.
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}

/// Whether the process runs this program, or another of the product's in the same folder. Compares files, not names.
pub(super) fn is_owners(pid: u32) -> bool {
    let Some(theirs) = file(Path::new(&format!("/proc/{pid}/exe"))) else { return false };
    let own = Path::new("/proc/self/exe");
    let folder = fs::read_link(own).ok().and_then(|path| path.parent().map(Path::to_owned));
    let beside = PROGRAMS.iter().filter_map(|name| file(&folder.as_ref()?.join(name)));
    file(own).into_iter().chain(beside).any(|ours| ours == theirs)
}

/// Device and inode of a file.
fn file(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    struct Other(Child);

    impl Drop for Other {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn sleeping(program: &Path) -> Other {
        Other(Command::new(program).arg("60").spawn().expect("a program that sleeps"))
    }

    #[test]
    fn a_process_is_identified_by_its_pid_and_its_start() {
        let us = of(std::process::id());
        assert_eq!(us, of(std::process::id()));
        let other = sleeping(Path::new("sleep"));
        let theirs = of(other.0.id());
        assert!(theirs.started >= us.started && us.started > 0, "{us:?} {theirs:?}");
        assert_eq!(of(u32::MAX).started, 0);
    }

    #[test]
    fn the_owners_program_is_recognised_by_its_file_and_not_by_its_name() {
        assert!(is_owners(std::process::id()));
        let folder = tempfile::tempdir().unwrap();
        let named_alike = folder.path().join("sandtray");
        fs::copy("/bin/sleep", &named_alike).unwrap();
        let other = sleeping(&named_alike);
        assert_eq!(program(other.0.id()).as_deref(), Some("sandtray"));
        assert!(!is_owners(other.0.id()));
    }
}
