//! The errors of a run that did not happen or was cut off. Each has a stable code for programs, and a sentence and the
//! next step for people.

use std::time::Duration;

use thiserror::Error;

use crate::engine::{EngineTrouble, PullError};
use crate::run::Interrupted;

/// A failure of Sandtray or of the engine. A program's own failure is an outcome, so the only output in here is that of
/// a run that was cut off.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RunError {
    #[error("{message}")]
    Invalid { field: String, message: String },
    /// While it is off, the capability does not exist for an agent.
    #[error("Running code is turned off.")]
    Off,
    #[error("{0}")]
    Engine(EngineTrouble),
    #[error("The image {image} {}: {error}", no_image(error))]
    Image { image: String, error: PullError },
    /// `own`: the client's share is used up, and all the waiting runs counted are its own; other clients are not
    /// refused.
    #[error("{}", full(*waiting, *own))]
    QueueFull { waiting: usize, own: bool, retry_after: Duration },
    /// `own`: this client's share is full; other clients are not refused.
    #[error("{}", no_room(*own))]
    NoRoom { own: bool },
    #[error("Sandtray is shutting down.")]
    ShuttingDown,
    /// The program had started.
    #[error("{0}")]
    Interrupted(Box<Interrupted>),
    /// Before the program started, and so was its replacement.
    #[error("The container that was made for it was removed before the program started, and so was the next one.")]
    ContainerRemoved,
    /// A sentence, and the next step.
    #[error("{message}")]
    History { message: String, hint: String },
    #[error("Something went wrong inside Sandtray: {0}")]
    Internal(String),
}

fn no_image(error: &PullError) -> &'static str {
    match error {
        PullError::DeclaresVolumes => "can't be used",
        PullError::NoSuchImage
        | PullError::NoNetwork
        | PullError::RateLimited
        | PullError::Denied
        | PullError::DiskFull
        | PullError::Cancelled
        | PullError::Other { .. } => "could not be fetched",
    }
}

fn full(waiting: usize, own: bool) -> String {
    let whose = if own { " of this client" } else { "" };
    match waiting {
        1 => format!("One run{whose} is waiting already."),
        waiting => format!("{waiting} runs{whose} are waiting already."),
    }
}

fn no_room(own: bool) -> &'static str {
    if own {
        "Sandtray keeps as much for this client as it may: calls that wait, and replies that were not read."
    } else {
        "Sandtray keeps as much for its clients as it may."
    }
}

impl RunError {
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid { field: field.into(), message: message.into() }
    }

    /// A stable code; programs act on it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid_params",
            Self::Off => "capability_off",
            Self::Engine(_) | Self::ContainerRemoved => "engine_unavailable",
            Self::Image { .. } => "image_unavailable",
            Self::QueueFull { .. } | Self::NoRoom { .. } => "queue_full",
            Self::ShuttingDown => "shutting_down",
            Self::Interrupted(_) => "run_interrupted",
            Self::History { .. } => "history_unavailable",
            Self::Internal(_) => "internal",
        }
    }

    /// The next step, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Invalid { .. } | Self::Internal(_) => None,
            Self::Off => Some("The owner of this machine can turn it on: \"Run code in isolation\" in Sandtray's window, or `sandtray serve --enable`.".into()),
            Self::Engine(trouble) => Some(trouble.hint()),
            Self::Image { error, .. } => Some(error.hint().into()),
            Self::QueueFull { retry_after, .. } => {
                Some(format!("Try again in about {} s.", retry_after.as_secs().max(1)))
            }
            Self::NoRoom { own: true } => Some("Read the replies of the calls before, then send this one again.".into()),
            Self::NoRoom { own: false } => Some("Try again in about 1 s.".into()),
            Self::History { hint, .. } => Some(hint.clone()),
            Self::ShuttingDown => Some("Start Sandtray again and repeat the call.".into()),
            Self::Interrupted(cut) => Some(cut.by.hint().into()),
            Self::ContainerRemoved => {
                Some("Another program on this computer removes containers. Run it again.".into())
            }
        }
    }

    /// The approximate size in memory, in bytes, if it is worth counting.
    pub fn weight(&self) -> usize {
        match self {
            Self::Interrupted(cut) => cut.weight(),
            Self::Invalid { .. }
            | Self::Off
            | Self::Engine(_)
            | Self::Image { .. }
            | Self::QueueFull { .. }
            | Self::NoRoom { .. }
            | Self::ShuttingDown
            | Self::History { .. }
            | Self::ContainerRemoved
            | Self::Internal(_) => 0,
        }
    }
}
