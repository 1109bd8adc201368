//! Explains once ever that Sandtray goes on when its window is closed. A notification does if there is a tray. Without
//! a tray or without notifications, the window does before it closes.

use std::sync::atomic::{AtomicBool, Ordering};

use sandtray_core::disk;
use sandtray_core::paths::Paths;
use tracing::warn;

#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Notifications are not shown here, so the window explains it.
    in_window: AtomicBool,
}

impl Closing {
    /// Whether it was explained, now or by an earlier process of the app. If that is unknown it is explained again.
    pub(crate) fn is_told(&self) -> bool {
        Paths::of_user().is_ok_and(|paths| paths.told_of_closing_file().exists())
    }

    pub(crate) fn was_told(&self) {
        let kept = Paths::of_user().map_err(|failure| failure.to_string()).and_then(|paths| {
            disk::write_atomically(&paths.told_of_closing_file(), b"").map_err(|failure| failure.to_string())
        });
        if let Err(failure) = kept {
            warn!(failure, "closing the window will be explained once more");
        }
    }

    pub(crate) fn say_it_in_the_window(&self) {
        self.in_window.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_said_in_the_window(&self, tray: bool) -> bool {
        !tray || self.in_window.load(Ordering::Relaxed)
    }
}
