//! Notifications on macOS and Windows. The only module that uses notify-rust.

use std::sync::Arc;

use notify_rust::Notification;
use tokio::task::spawn_blocking;
use tracing::debug;

use super::Note;
use crate::app::App;

#[derive(Debug, Default)]
pub(crate) struct Desktop;

impl Desktop {
    /// Shows a notification. False if the desktop did not take it.
    pub(super) async fn show(&self, _app: &Arc<App>, note: Note) -> bool {
        // Blocking, because a desktop may be slow to answer.
        spawn_blocking(move || show_alone(&note.title, &note.body)).await.unwrap_or(false)
    }

    pub(super) async fn close(&self) {}
}

/// Shows a notification, and blocks until the desktop has it.
pub(super) fn show_alone(title: &str, body: &str) -> bool {
    let mut notification = Notification::new();
    notification.appname("Sandtray").summary(title).body(body).icon("sandtray-app");
    notification.show().inspect_err(|failure| debug!(%failure, "no notification")).is_ok()
}
