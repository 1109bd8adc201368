//! A session that ends sends a signal: the same as Quit.

use std::io;

use tauri::{AppHandle, Manager};
use tracing::warn;

use crate::desk::Desk;

pub(crate) async fn watch(app: AppHandle) {
    match told_to_end().await {
        Ok(()) => app.state::<Desk>().quit.cancel(),
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
