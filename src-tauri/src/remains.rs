//! WebKit keeps a process for the network when the last page has gone, for pages that may come. In the tray nobody needs it:
//! a while after the window has closed it is ended. WebKit takes that for a crash of it, and starts another for the next page.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tauri::AppHandle;
use tracing::{debug, warn};

use crate::window;

/// Who opens the window again sooner finds it warm.
const GRACE: Duration = Duration::from_secs(5);
/// The kernel cuts the names of processes.
const NAME: &str = "WebKitNetworkPr";

/// The window has closed.
pub(crate) fn end_later(app: &AppHandle) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        tokio::time::sleep(GRACE).await;
        let here = app.clone();
        // Where windows are made: none is in the making while this looks.
        let asked = app.run_on_main_thread(move || {
            if !window::is_open(&here) {
                end();
            }
        });
        if let Err(failure) = asked {
            debug!(%failure, "the app is ending");
        }
    });
}

fn end() {
    for pid in children().filter(|pid| name(*pid).is_some_and(|name| name == NAME)) {
        if let Err(failure) = kill_process(pid, Signal::TERM) {
            warn!(%failure, "WebKit's network process was not ended");
        }
    }
}

fn children() -> impl Iterator<Item = Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<i32> =
        lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    pids.into_iter().filter_map(Pid::from_raw)
}

fn name(pid: Pid) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
    Some(name.trim_end().to_owned())
}
