//! Keeps what is told at the page's pace. Tauri takes a message for the page without waiting and keeps it until the page has it; a
//! program that prints fast would fill the memory behind a page that is busy. Whoever waits here reads no more of the app's line,
//! and so the app waits as well, and leaves out what it need not tell.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use tauri::{AppHandle, Manager};

use crate::LABEL;

/// Bytes that the page may be behind.
const BEHIND: usize = 4 << 20;
/// A page that does nothing for so long does nothing any more.
const STUCK: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Pace {
    /// Since the page was last known to have everything.
    told: usize,
}

impl Pace {
    /// Returns when the page is close enough behind.
    pub(crate) fn told(&mut self, app: &AppHandle, bytes: usize) -> io::Result<()> {
        self.told += bytes;
        if self.told < BEHIND {
            return Ok(());
        }
        self.told = 0;
        let Some(window) = app.get_webview_window(LABEL) else { return Ok(()) };
        // The page does one thing after the other: when it does this, it has done all that it was told before.
        let (done, doing) = sync_channel(1);
        let told = move |_| {
            let _nobody_waits = done.try_send(());
        };
        window.eval_with_callback("0", told).map_err(io::Error::other)?;
        match doing.recv_timeout(STUCK) {
            Err(RecvTimeoutError::Timeout) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the page does nothing any more"))
            }
            // A page that goes away meanwhile keeps nothing either.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }
}
