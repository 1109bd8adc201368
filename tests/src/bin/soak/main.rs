//! `make soak`: six clients call for minutes while everything around the service goes wrong: the engine is restarted, containers and images
//! are removed, the service is killed, the disk fills up. Each answer must be right, or an error that names the cause. Afterwards nothing
//! may be lost and nothing left.
//!
//! The engine, the service and the clients live in namespaces of their own, so whatever happens, nothing of them outlives this program and
//! no other engine of the machine is touched. `SANDTRAY_SOAK` says how many minutes, `SANDTRAY_SOAK_WITH` which disturbances
//! (`engine,crash,containers,images,prune,service,disk`), `SANDTRAY_SOAK_SEED` repeats a sequence of programs. It ends with 1 where it found
//! something. Logs and findings are in `target/soak`.

#![expect(clippy::unwrap_used, reason = "a soak that cannot go on ends")]

mod after;
mod calls;
mod client;
mod disturb;
mod engine;
mod judge;
mod programs;
mod relay;
mod report;
mod run;
mod service;
mod wire;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => apart(),
        ["inside", root] => run::soak(Path::new(root)).await,
        ["client", socket, number, seed] => {
            client::run(Path::new(socket), number.parse().unwrap(), seed.parse().unwrap()).await;
            ExitCode::SUCCESS
        }
        ["relay", port, socket] => {
            relay::inside(port.parse().unwrap(), Path::new(socket)).await;
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: soak");
            ExitCode::FAILURE
        }
    }
}

/// Runs this program again where it has processes and mounts of its own. They end with it, whatever happens. The shell is the first
/// process there: it collects what containers leave behind.
fn apart() -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "\"$@\" & wait $!", "soak"])
        .arg(std::env::current_exe().unwrap())
        .arg("inside")
        .arg(folder.path())
        .status()
        .expect("unshare, and the right to use it: the soak needs root");
    if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Milliseconds since 1970: the one clock that all processes share.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Where logs and findings are kept.
fn target_folder() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("soak")
}
