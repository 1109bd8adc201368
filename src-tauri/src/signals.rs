//! Quits on the signals that end a session or a terminal, like Quit in the tray.

use std::io;
use std::sync::Arc;

use tracing::warn;

use crate::app::App;

pub(crate) async fn watch(app: Arc<App>) {
    let told = tokio::select! {
        told = told_to_end() => told,
        () = app.desk.quit.cancelled() => return,
    };
    match told {
        Ok(()) => app.desk.quit.cancel(),
        Err(failure) => warn!(%failure, "signals end the app at once"),
    }
}

#[cfg(unix)]
async fn told_to_end() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn told_to_end() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
