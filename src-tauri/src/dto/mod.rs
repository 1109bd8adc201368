//! What crosses to the window, in the window's words. `ui/src/lib/ipc/generated` is made of these types; the test below
//! fails where the two differ. Byte counts and times are numbers: JavaScript holds 9 PB exactly.

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
