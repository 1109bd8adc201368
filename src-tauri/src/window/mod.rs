//! The window: a separate program (`src-tauri/window`) that runs only while the window is open, so that no browser
//! engine takes memory otherwise. This folder starts it, answers its page's requests, and ends it.

mod page;
mod process;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandtray_core::settings::Theme;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tracing::warn;

use crate::app::App;
use crate::dto::snapshot::Navigate;
use crate::link::ToWindow;

pub(crate) use page::{Channel, Page};
pub(crate) use process::own_leave;

/// Capacity of the channel of commands to a window that does not read.
const WISHES: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Window(Mutex<Option<Open>>);

#[derive(Debug)]
struct Open {
    wishes: mpsc::Sender<ToWindow>,
    in_front: bool,
}

impl Window {
    pub(crate) fn is_in_front(&self) -> bool {
        self.lock().as_ref().is_some_and(|open| open.in_front)
    }

    pub(crate) fn apply_theme(&self, theme: Theme) {
        self.wish(ToWindow::Theme(theme));
    }

    fn wish(&self, wish: ToWindow) {
        if let Some(open) = &*self.lock()
            && let Err(TrySendError::Full(_)) = open.wishes.try_send(wish)
        {
            warn!("the window does not answer");
        }
    }

    fn focus(&self, in_front: bool) {
        if let Some(open) = &mut *self.lock() {
            open.in_front = in_front;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens the window, or brings an open one to the front. `leave` is the desktop's activation token.
pub(crate) fn open(app: &Arc<App>, to: Option<Navigate>, leave: Option<String>) {
    if app.desk.quit.is_cancelled() {
        return;
    }
    app.desk.go_next(to);
    let mut window = app.window.lock();
    match window.as_ref().map(|open| open.wishes.try_send(ToWindow::Front { leave: leave.clone() })) {
        Some(Ok(())) => {}
        Some(Err(TrySendError::Full(_))) => warn!("the window does not answer"),
        Some(Err(TrySendError::Closed(_))) | None => {
            let (wishes, wished) = mpsc::channel(WISHES);
            *window = Some(Open { wishes, in_front: false });
            drop(window);
            let keeper = Arc::clone(app);
            app.spawn(async move { process::keep(keeper, wished, leave).await });
        }
    }
}
