//! What the suites and the bench share: a whole service on a real engine with agents on its socket, a desktop with a real
//! window and a real tray, a scripted product without an engine, and what every engine owes the product.

#[cfg(unix)]
pub mod between;
pub mod contract;
pub mod delay;
#[cfg(target_os = "linux")]
pub mod desktop;
#[cfg(target_os = "linux")]
pub mod dockerd;
#[cfg(unix)]
pub mod hoarder;
pub mod long_history;
pub mod rig;
#[cfg(unix)]
pub mod scripted;
#[cfg(target_os = "linux")]
pub mod small_disk;
