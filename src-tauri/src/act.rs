//! The tray's actions. They have no caller to answer, so an error is shown as a notification.

use std::sync::Arc;

use tracing::warn;

use crate::app::App;
use crate::notify;

pub(crate) fn toggle(app: &Arc<App>) {
    let toggling = Arc::clone(app);
    app.spawn(async move {
        let app = toggling;
        let Ok(here) = app.desk.here() else { return };
        let enabled = !here.supervisor.snapshot().enabled;
        if let Err(failure) = here.owner.set_enabled(enabled).await {
            warn!(%failure, "the switch was not saved");
            notify::tell(&app, notify::notice::Notice::NotSaved { message: failure.to_string() });
        }
    });
}

pub(crate) fn stop_all(app: &Arc<App>) {
    let stopping = Arc::clone(app);
    app.spawn(async move {
        if let Ok(here) = stopping.desk.here() {
            here.supervisor.stop_all().await;
        }
    });
}
