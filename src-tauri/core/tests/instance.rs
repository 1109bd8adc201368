//! The lock of a data folder across processes.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use sandtray_core::instance::{Instance, InstanceError};
use sandtray_core::paths::Paths;

/// Set only in the child: the folder that it locks.
const CHILD: &str = "SANDTRAY_TEST_LOCK";

/// The body of the child process; does nothing in an ordinary run of the tests.
#[test]
fn child_that_holds_the_lock_until_it_is_killed() {
    let Some(root) = std::env::var_os(CHILD) else { return };
    let _instance = Instance::acquire(&Paths::under(Path::new(&root))).unwrap();
    println!("\nheld");
    // Ends when the parent does, should it die without killing.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn a_killed_service_leaves_no_lock_behind() {
    let root = tempfile::tempdir().unwrap();
    let paths = Paths::under(root.path());
    paths.ensure().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_holds_the_lock_until_it_is_killed", "--nocapture"])
        .env(CHILD, root.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "held"));
    match Instance::acquire(&paths) {
        Err(InstanceError::AlreadyRunning { holder }) => assert_eq!(holder, Some(child.id())),
        other => panic!("{other:?}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    Instance::acquire(&paths).unwrap();
}
