//! What the suites share: a whole service on a real engine with agents on its socket, and a scripted product without one.

pub mod rig;
#[cfg(unix)]
pub mod scripted;
