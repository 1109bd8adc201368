//! What the suites share: a whole service on a real engine with agents on its socket, a scripted product without one, and
//! what every engine owes the product.

#[cfg(unix)]
pub mod between;
pub mod contract;
pub mod rig;
#[cfg(unix)]
pub mod scripted;
