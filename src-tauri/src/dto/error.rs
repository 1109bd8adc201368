//! Why a command did not do what it was asked: a stable code, a sentence for a person, and the next step.

use sandtray_core::settings::Fault;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CommandError {
    pub code: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
    /// The first setting that was refused: `limits.seconds`, `images.python`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub field: Option<String>,
    /// Every setting that was refused. A message reads on from the name of its field: "must be from 1 to 64".
    pub faults: Vec<Fault>,
}
