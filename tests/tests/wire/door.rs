use sandtray_core::ipc::{self, BindError, Listener, MAX_CONNECTIONS, MAX_OF_PROCESS, OWNERS_PLACES};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use tokio::net::UnixStream;

use crate::client::Wire;
use sandtray_tests::hoarder::Hoarder;
use sandtray_tests::rig::eventually;
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
    // Even where the lock file was removed.
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

async fn greeted(path: &Path) -> Wire {
    let mut wire = Wire::new(UnixStream::connect(path).await.unwrap());
    wire.ask(1, "hello", json!({})).await;
    wire.get().await;
    wire
}

/// This many connections, spread over as many processes as needed.
async fn crowd(path: &Path, mode: &str, connections: usize) -> Vec<Hoarder> {
    let mut crowd = Vec::new();
    for _ in 0..connections / MAX_OF_PROCESS {
        let hoarder = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), path, mode, MAX_OF_PROCESS);
        hoarder.until_said("open", MAX_OF_PROCESS).await;
        crowd.push(hoarder);
    }
    crowd
}

#[tokio::test]
async fn a_new_program_gets_the_place_of_the_longest_idle_connection() {
    let (_root, path, serving, _product) = served().await;
    let crowd = crowd(&path, "idle", MAX_CONNECTIONS).await;
    let closed = || crowd.iter().map(|hoarder| hoarder.said("closed")).sum::<usize>();
    let other = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &path, "idle", 1);
    other.until_said("open", 1).await;
    crowd[0].until_said("closed too_many_connections", 1).await;
    // This test is the program that serves, so it gets the owner's places, and no connection gives way for it.
    let mut owners = Vec::new();
    for _ in 0..OWNERS_PLACES {
        owners.push(greeted(&path).await);
    }
    // Its next connection takes the place of the one that has been idle longest.
    let again = greeted(&path).await;
    assert_eq!(owners[0].get().await["error"]["data"]["code"], "too_many_connections");
    assert_eq!(owners[0].next().await, None);
    assert_eq!(closed(), 1);
    drop((crowd, other, owners, again));
    serving.stop().await;
}

#[tokio::test]
async fn connections_with_a_run_keep_their_place_and_the_owners_program_gets_in() {
    let (_root, path, serving, _product) = served().await;
    let crowd = crowd(&path, "running", MAX_CONNECTIONS).await;
    let refused = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &path, "idle", 1);
    refused.until_said("closed too_many_connections", 1).await;
    // This test is the program that serves.
    let _owner = greeted(&path).await;
    assert_eq!(crowd.iter().map(|hoarder| hoarder.said("closed")).sum::<usize>(), 0);
    // A freed place is given to the next.
    drop(crowd);
    eventually("a place is free", || async {
        let other = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &path, "idle", 1);
        eventually("an answer", || async { other.said("open") + other.said("closed") > 0 }).await;
        other.said("open") == 1
    })
    .await;
    serving.stop().await;
}

#[tokio::test]
async fn a_subscription_is_given_up_only_where_its_program_has_others() {
    let (_root, path, serving, _product) = served().await;
    let single = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &path, "subscribed", 1);
    single.until_said("open", 1).await;
    let crowd = crowd(&path, "subscribed", MAX_CONNECTIONS - MAX_OF_PROCESS).await;
    let last = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &path, "subscribed", MAX_OF_PROCESS - 1);
    last.until_said("open", MAX_OF_PROCESS - 1).await;
    let late = Hoarder::start(env!("CARGO_BIN_EXE_hoard"), &path, "idle", 1);
    late.until_said("open", 1).await;
    crowd[0].until_said("closed too_many_connections", 1).await;
    assert_eq!(single.said("closed"), 0);
    drop((single, crowd, last, late));
    serving.stop().await;
}

#[tokio::test]
async fn one_program_has_only_its_share_of_the_places() {
    let (_root, path, serving, product) = served().await;
    let mut wires = Vec::new();
    for _ in 0..MAX_OF_PROCESS {
        wires.push(greeted(&path).await);
    }
    // This test is the program that serves, so its next connections get the owner's places. A run keeps each of them.
    for place in 0..OWNERS_PLACES {
        wires.push(greeted(&path).await);
        wires[MAX_OF_PROCESS + place].run(2, "hold").await;
    }
    product.until_running(OWNERS_PLACES).await;
    let mut late = Wire::new(UnixStream::connect(&path).await.unwrap());
    assert_eq!(late.get().await["error"]["data"]["code"], "too_many_connections");
    assert_eq!(late.next().await, None);
    drop(wires.drain(..=OWNERS_PLACES));
    eventually("a place is free", || async {
        let mut wire = Wire::new(UnixStream::connect(&path).await.unwrap());
        wire.ask(1, "hello", json!({})).await;
        wire.next().await.is_some_and(|message| message["id"] == 1)
    })
    .await;
    drop(wires);
    serving.stop().await;
}

/// Only root can act as another user. Without root, this only tests that the user's own service is accepted.
#[tokio::test]
async fn a_client_refuses_a_service_of_another_user() {
    const NOBODY: u32 = 65534;
    let ours = private();
    let listener = Listener::bind(&ours.path().join("s")).unwrap();
    ipc::connect(listener.path()).await.unwrap();
    if fs::metadata(ours.path()).unwrap().uid() != 0 {
        return;
    }
    let theirs = private();
    let (path, program) = (theirs.path().join("s"), theirs.path().join("hoard"));
    // Another user may not be able to start it from where it was built.
    fs::copy(env!("CARGO_BIN_EXE_hoard"), &program).unwrap();
    chown(theirs.path(), Some(NOBODY), None).unwrap();
    let other = Hoarder::start_as(NOBODY, program.to_str().unwrap(), &path, "listens", 1);
    other.until_said("open", 1).await;
    let error = ipc::connect(&path).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
}
