//! What the suites share.

#[cfg(unix)]
pub mod scripted;
