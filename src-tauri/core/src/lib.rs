//! The product, without a desktop: an agent's request in, a fresh container, an honest outcome out.
//!
//! Dependencies point one way:
//! `run, name, language, error <- policy, queue, collector, launcher, engine, event <- executor, history <- supervisor <- ipc`.

pub mod codec;
pub mod disk;
pub mod engine;
pub mod error;
pub mod event;
pub mod history;
pub mod instance;
pub mod ipc;
pub mod language;
pub mod name;
pub mod paths;
pub mod policy;
pub mod protocol;
pub mod run;
pub mod settings;
pub mod supervisor;
pub mod time;
