//! The types that cross to the window, in the window's terms. `ui/src/lib/ipc/generated` is generated from them; the
//! test below fails on a difference. Byte counts and times are numbers, because JavaScript holds 9 PB exactly.

pub mod agents;
pub mod detail;
pub mod error;
pub mod history;
pub mod live;
pub mod picture;
pub mod present;
pub mod saved;
pub mod snapshot;
pub mod trouble;

#[cfg(test)]
mod tests;
