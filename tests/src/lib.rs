//! What the suites share.

pub mod rig;
#[cfg(unix)]
pub mod scripted;
