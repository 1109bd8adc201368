//! The report of a history that cannot be written, for the owner.

use std::fmt;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

/// From the first run that was not recorded, or the first output given up, until the history can be written again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trouble {
    pub why: Why,
    #[serde(serialize_with = "crate::time::serialize_millis")]
    #[schemars(with = "u64")]
    pub since: SystemTime,
    /// Runs that were not recorded.
    pub unrecorded: u64,
    /// Runs whose figures alone are left, or were kept at all, for want of disk.
    pub given_up: u64,
    /// Whether the next run will be recorded, as far as is known.
    pub records: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Why {
    DiskFull,
    NotUsable { detail: String },
}

impl Why {
    /// A clause to follow a colon.
    pub fn clause(&self) -> String {
        match self {
            Self::DiskFull => "the disk is full".into(),
            Self::NotUsable { detail } => format!("its file cannot be used ({detail})"),
        }
    }

    /// A full clause about the history.
    pub fn sentence(&self) -> String {
        match self {
            Self::DiskFull => "the disk is full, so it could not be recorded".into(),
            Self::NotUsable { .. } => "the history cannot be written".into(),
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::DiskFull => "Free some disk space. Recording then goes on by itself.",
            Self::NotUsable { .. } => {
                "See that Sandtray may write in its data folder. Recording then goes on by itself."
            }
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, unrecorded, given_up, records, .. } = self;
        match (records, unrecorded) {
            (false, 0) => write!(f, "Runs cannot be recorded: {}.", why.clause())?,
            (false, 1) => write!(f, "Runs cannot be recorded, and 1 was not: {}.", why.clause())?,
            (false, many) => write!(f, "Runs cannot be recorded, and {many} were not: {}.", why.clause())?,
            (true, 0) => write!(f, "The history is short of room: {}.", why.clause())?,
            (true, 1) => write!(f, "1 run was not recorded: {}.", why.clause())?,
            (true, many) => write!(f, "{many} runs were not recorded: {}.", why.clause())?,
        }
        match given_up {
            0 => Ok(()),
            1 => f.write_str(" Of 1 run only the figures are kept."),
            many => write!(f, " Of {many} runs only the figures are kept."),
        }
    }
}
