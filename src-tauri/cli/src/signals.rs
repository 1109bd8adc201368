//! The signals that end a command. They are received from construction on; one that comes while nothing waits is kept.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(unix)]
pub(crate) struct Signals(Vec<Signal>);

#[cfg(unix)]
impl Signals {
    /// Ctrl-C.
    pub(crate) fn interrupt() -> io::Result<Self> {
        Ok(Self(vec![signal(SignalKind::interrupt())?]))
    }

    /// Ctrl-C and SIGTERM, which service managers send.
    pub(crate) fn stop() -> io::Result<Self> {
        Ok(Self(vec![signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    /// Waits for a signal. Cancel-safe.
    pub(crate) async fn next(&mut self) {
        let each = self.0.iter_mut().map(|signal| Box::pin(signal.recv()));
        futures_util::future::select_all(each).await;
    }
}

#[cfg(windows)]
pub(crate) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    pub(crate) fn interrupt() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    pub(crate) fn stop() -> io::Result<Self> {
        Self::interrupt()
    }

    /// Waits for a signal. Cancel-safe.
    pub(crate) async fn next(&mut self) {
        self.0.recv().await;
    }
}
