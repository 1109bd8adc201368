//! Sandtray without a desktop: takes an agent's request, runs it in a fresh container, and returns an honest outcome.
//!
//! Dependencies point one way; ARCHITECTURE.md has the order, and `tests/tests/layers.rs` the exact table.

pub mod budget;
pub mod codec;
pub mod collector;
pub mod disk;
pub mod engine;
pub mod error;
pub mod event;
pub mod executor;
pub mod hint;
pub mod history;
pub mod instance;
pub mod ipc;
pub mod janitor;
pub mod language;
pub mod launcher;
pub mod lease;
pub mod leases;
pub mod name;
pub mod owner;
pub mod paths;
pub mod policy;
pub mod pool;
pub mod protocol;
pub mod queue;
pub mod recorder;
pub mod run;
pub mod service;
pub mod settings;
pub mod supervisor;
pub mod tap;
pub mod text;
pub mod time;
pub mod title;
pub mod traffic;
pub mod visitors;
pub mod wall_check;
