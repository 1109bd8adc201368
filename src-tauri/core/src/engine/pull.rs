//! Pulling: what one layer reports, folded into one figure; and why a pull fails.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One line of an engine's pull stream, in our words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerEvent {
    /// Short id of the layer; empty for lines about the whole image.
    pub layer: String,
    pub step: LayerStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStep {
    AlreadyExists,
    Waiting,
    /// Compressed bytes; `total` is 0 while it is unknown.
    Downloading {
        current: u64,
        total: u64,
    },
    Downloaded,
    Extracting {
        current: u64,
        total: u64,
    },
    Complete,
    /// A line that says nothing about progress.
    Other,
}

/// Why an image could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum PullError {
    #[error("there is no such image.")]
    NoSuchImage,
    #[error("the registry could not be reached.")]
    NoNetwork,
    #[error("the registry asks for patience: too many pulls from this address.")]
    RateLimited,
    #[error("the registry refused access.")]
    Denied,
    #[error("the disk is full.")]
    DiskFull,
    #[error("it was cancelled.")]
    Cancelled,
    #[error("{message}")]
    Other { message: String },
}

impl PullError {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchImage => "Check the image's name in Sandtray's settings.",
            Self::NoNetwork => "Check the connection to the internet, then try again.",
            Self::RateLimited => "Try again in an hour, or log in with `docker login`.",
            Self::Denied => "Log in with `docker login`, or check the image's name in Sandtray's settings.",
            Self::DiskFull => "Free some disk space, for example with `docker system prune`, then try again.",
            Self::Cancelled => "Start the pull again when you want it.",
            Self::Other { .. } => "Try again; if it fails once more, try `docker pull` with the same name.",
        }
    }
}
#[derive(Debug, Default)]
pub struct PullFold;
impl PullFold { pub fn apply(&mut self, _: &LayerEvent) -> crate::event::PullFigure { crate::event::PullFigure::default() } }
