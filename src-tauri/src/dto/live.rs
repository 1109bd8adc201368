//! One live run, while the window shows it.

use sandtray_core::run::{Overflow, Stream};
use serde::Serialize;

use super::history::{InputView, Piece, RunLimits};

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LiveEvent {
    /// What came so far first, then what comes. Hostile text: whatever a program cares to write.
    Output {
        stream: Stream,
        /// Bytes that are no text are replaced.
        text: String,
        /// Bytes of this stream that are missing just before this piece.
        missed: u64,
    },
    /// About twice a second.
    Sample {
        /// Milliseconds since 1970.
        at_ms: u64,
        memory_bytes: u64,
        /// CPUs in use over the last two seconds: 1 is one core at work all the time.
        cpu: f64,
    },
    /// Nothing follows.
    Ended,
}

/// What a run that waits or runs was asked to do. Hostile text, all of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LiveRequest {
    pub client_pid: Option<u32>,
    pub client_program: Option<String>,
    pub code: Piece,
    pub code_bytes: u64,
    /// The program's own arguments.
    pub args: Vec<String>,
    /// Standard input first, if there is any.
    pub inputs: Vec<InputView>,
    pub limits: RunLimits,
    pub overflow: Overflow,
}
