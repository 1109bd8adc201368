//! The local door, from a real socket to a scripted product behind it.
#![cfg(unix)]

mod client;
mod door;
mod scripted;
mod session;
