//! The local door, from a real socket to a scripted product behind it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests, though no test stands in them")]

mod batch;
mod client;
mod door;
mod session;
mod status;
mod streaming;
