//! The harness: a whole service on a real engine, and agents that talk to it.

pub mod rig;
