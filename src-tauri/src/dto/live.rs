//! One live run while somebody looks at it.

use sandtray_core::run::Stream;
use serde::Serialize;

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
