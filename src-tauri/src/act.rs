//! What the tray's entries set in motion. They answer to nobody, so what goes wrong is told as a notification.

use tauri::{AppHandle, Manager};
use tracing::warn;

use crate::desk::Desk;
use crate::notify;

pub(crate) fn toggle(app: &AppHandle) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        let desk = app.state::<Desk>();
        let Ok(here) = desk.here() else { return };
        let enabled = !here.supervisor.snapshot().enabled;
        if let Err(failure) = here.owner.set_enabled(enabled).await {
            warn!(%failure, "the switch was not saved");
            notify::tell(&app, notify::notice::Notice::NotSaved { message: failure.to_string() });
        }
    });
}

pub(crate) fn stop_all(app: &AppHandle) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Ok(here) = app.state::<Desk>().here() {
            here.supervisor.stop_all().await;
        }
    });
}
