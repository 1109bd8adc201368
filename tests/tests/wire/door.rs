use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandtray_core::ipc::{self, BindError, Listener, MAX_CONNECTIONS};
use serde_json::json;
use tokio::net::UnixStream;

use crate::client::Wire;
use sandtray_tests::scripted::Scripted;

fn private() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn refused(path: &Path) -> String {
    Listener::bind(path).unwrap_err().to_string()
}

#[tokio::test]
async fn the_door_is_made_for_the_owner_alone() {
    let root = private();
    let path = root.path().join("deep/run/agent.sock");
    let listener = Listener::bind(&path).unwrap();
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    drop(listener);
    assert!(!path.exists());
    Listener::bind(&path).unwrap();
}

#[tokio::test]
async fn a_folder_that_is_not_ours_alone_is_refused() {
    let root = private();
    let open = root.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refused(&open.join("s")).contains("mode 755"));
    assert_eq!(mode(&open), 0o755);
    let linked = root.path().join("linked");
    symlink(private().path(), &linked).unwrap();
    assert!(refused(&linked.join("s")).contains("symbolic link"));
    fs::write(root.path().join("file"), "").unwrap();
    assert!(refused(&root.path().join("file/s")).contains("can't be"));
    assert!(refused(Path::new("/proc/s")).contains("/proc"));
}

#[tokio::test]
async fn two_services_never_share_a_socket() {
    let root = private();
    let path = root.path().join("s");
    let first = Listener::bind(&path).unwrap();
    assert!(matches!(Listener::bind(&path), Err(BindError::AlreadyRunning { .. })));
    assert!(path.exists());
    // Even where somebody took the lock file away.
    fs::remove_file(root.path().join("s.lock")).unwrap();
    assert!(matches!(Listener::bind(&path), Err(BindError::AlreadyRunning { .. })));
    assert!(path.exists());
    drop(first);
    Listener::bind(&path).unwrap();
}

#[tokio::test]
async fn a_socket_that_a_dead_service_left_is_replaced() {
    let root = private();
    let path = root.path().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    Listener::bind(&path).unwrap();
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone() {
    let root = private();
    let path = root.path().join("s");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(Listener::bind(&path), Err(BindError::NotASocket { .. })));
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    assert!(matches!(Listener::bind(&path), Err(BindError::NotASocket { .. })));
    // The lock is not followed out of the folder either.
    fs::remove_file(&path).unwrap();
    let target = root.path().join("target");
    fs::remove_file(root.path().join("s.lock")).unwrap();
    symlink(&target, root.path().join("s.lock")).unwrap();
    assert!(matches!(Listener::bind(&path), Err(BindError::Io { .. })));
    assert!(!target.exists());
}

#[tokio::test]
async fn a_service_that_lost_its_socket_does_not_remove_its_successors() {
    let root = private();
    let path = root.path().join("s");
    let first = Listener::bind(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let _second = std::os::unix::net::UnixListener::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
}

async fn served() -> (tempfile::TempDir, PathBuf, ipc::Serving, Scripted) {
    let root = private();
    let path = root.path().join("s");
    let product = Scripted::new();
    let serving = ipc::serve(Listener::bind(&path).unwrap(), product.clone());
    (root, path, serving, product)
}

#[tokio::test]
async fn the_kernel_says_who_connects() {
    let (_root, path, serving, product) = served().await;
    let mut wire = Wire::new(UnixStream::connect(&path).await.unwrap());
    wire.run(1, "say hi").await;
    assert_eq!(wire.get().await["result"]["stdout"], "hi");
    let client = product.clients().remove(0);
    assert_eq!(client.pid, Some(std::process::id()));
    let program = std::env::current_exe().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!((client.program.as_deref(), client.name.as_str()), (Some(program.as_str()), program.as_str()));
    drop(wire);
    serving.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn one_connection_too_many_is_told_so_and_a_place_that_frees_is_given_on() {
    let (_root, path, serving, _product) = served().await;
    let mut wires = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut wire = Wire::new(UnixStream::connect(&path).await.unwrap());
        wire.ask(1, "hello", json!({})).await;
        wire.get().await;
        wires.push(wire);
    }
    let mut late = Wire::new(UnixStream::connect(&path).await.unwrap());
    assert_eq!(late.get().await["error"]["data"]["code"], "too_many_connections");
    assert_eq!(late.next().await, None);
    wires.pop();
    loop {
        let mut wire = Wire::new(UnixStream::connect(&path).await.unwrap());
        wire.ask(1, "hello", json!({})).await;
        if wire.next().await.is_some_and(|message| message["id"] == 1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(wires);
    serving.stop().await;
}
