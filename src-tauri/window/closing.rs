//! Closes the window. If the owner must first be told what that means, the app decides; the wait for it is bounded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sandtray_app::link::FromWindow;
use tauri::{AppHandle, CloseRequestApi, Manager};
use tracing::{error, warn};

use crate::LABEL;
use crate::page::Page;

/// Timeout for the app's answer. Then the window closes.
const ANSWERED: Duration = Duration::from_secs(2);

pub(crate) struct Closing {
    /// Whether the app wants to be asked before the window closes.
    asks: bool,
    /// The app was asked and has not answered.
    waits: AtomicBool,
}

impl Closing {
    pub(crate) fn new(asks: bool) -> Arc<Self> {
        Arc::new(Self { asks, waits: AtomicBool::new(false) })
    }

    /// Handles a close request from the window's button or the desktop.
    pub(crate) fn requested(self: &Arc<Self>, app: &AppHandle, page: &Page, close: &CloseRequestApi) {
        if !self.asks {
            return;
        }
        match self.bound(app) {
            Ok(()) => {
                close.prevent_close();
                page.say(FromWindow::Closing);
            }
            Err(failure) => warn!(%failure, "the window closes without a word"),
        }
    }

    fn bound(self: &Arc<Self>, app: &AppHandle) -> io::Result<()> {
        if self.waits.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let (closing, app) = (Arc::clone(self), app.clone());
        thread::Builder::new().name("closing".into()).spawn(move || {
            thread::sleep(ANSWERED);
            if closing.waits.load(Ordering::Relaxed) {
                closing.close(&app);
            }
        })?;
        Ok(())
    }

    pub(crate) fn answered(&self) {
        self.waits.store(false, Ordering::Relaxed);
    }

    /// Closes the window on the main thread, in order with its other events.
    pub(crate) fn close(&self, app: &AppHandle) {
        self.answered();
        let here = app.clone();
        let closed = app.run_on_main_thread(move || {
            if let Some(Err(failure)) = here.get_webview_window(LABEL).map(|window| window.destroy()) {
                error!(%failure, "the window does not close");
                here.exit(1);
            }
        });
        if let Err(failure) = closed {
            error!(%failure, "the window does not close");
        }
    }
}
