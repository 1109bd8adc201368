//! Backpressure from the page. Tauri accepts messages for the page without waiting and buffers them, so a program that
//! prints fast would fill the memory while the page is busy. While this waits, no messages are read from the app. So
//! the app waits too, and drops output that it may drop.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use tauri::{AppHandle, Manager};

use crate::LABEL;

/// Most bytes that the page may be behind.
const BEHIND: usize = 4 << 20;
/// Timeout for the page. Then it counts as hung.
const STUCK: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Pace {
    /// Bytes sent since the page was last known to have caught up.
    told: usize,
}

impl Pace {
    /// Counts bytes sent. Waits for the page if it is too far behind.
    ///
    /// # Errors
    ///
    /// If the page does not catch up in time.
    pub(crate) fn told(&mut self, app: &AppHandle, bytes: usize) -> io::Result<()> {
        self.told += bytes;
        if self.told < BEHIND {
            return Ok(());
        }
        self.told = 0;
        let Some(window) = app.get_webview_window(LABEL) else { return Ok(()) };
        // The page handles messages in order: once it evaluates this, it has handled all earlier ones.
        let (done, doing) = sync_channel(1);
        let told = move |_| {
            let _nobody_waits = done.try_send(());
        };
        window.eval_with_callback("0", told).map_err(io::Error::other)?;
        match doing.recv_timeout(STUCK) {
            Err(RecvTimeoutError::Timeout) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the page does nothing any more"))
            }
            // A page that is gone buffers nothing.
            Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }
}
