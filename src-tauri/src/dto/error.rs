//! Why a command did not do what it was asked: a stable code, a sentence for a person, and the next step.

use sandtray_core::error::RunError;
use sandtray_core::history::HistoryError;
use sandtray_core::settings::{Fault, SettingsError};
use sandtray_core::supervisor::RemoveError;
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

impl CommandError {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), hint: None, field: None, faults: Vec::new() }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub fn of_faults(faults: Vec<Fault>) -> Self {
        let first = faults.first();
        let message = first.map_or_else(String::new, |fault| format!("{fault}."));
        let field = first.map(|fault| fault.field.clone());
        Self { code: "invalid_settings".into(), message, hint: None, field, faults }
    }

    /// It is no longer, or never was, in the history or among the live runs.
    pub fn no_such_run() -> Self {
        Self::new("no_such_run", "That run is gone.")
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let hint = error.hint();
        Self { hint, ..Self::new(error.code(), error.to_string()) }
    }
}

impl From<RemoveError> for CommandError {
    fn from(error: RemoveError) -> Self {
        let message = error.to_string();
        match error {
            RemoveError::InUse { .. } => Self::new("image_in_use", message).hint("Stop it, then remove the image."),
            RemoveError::Busy { .. } => Self::new("image_busy", message).hint("Cancel that first."),
            RemoveError::Engine(trouble) => Self::new("engine_unavailable", message).hint(trouble.hint()),
            RemoveError::Refused { .. } => Self::new("image_not_removed", message),
            RemoveError::ShuttingDown => Self::new("shutting_down", message),
        }
    }
}

impl From<HistoryError> for CommandError {
    fn from(error: HistoryError) -> Self {
        Self::new("history_unavailable", error.to_string())
    }
}

impl From<SettingsError> for CommandError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Invalid(fault) => Self::of_faults(vec![fault]),
            SettingsError::SetAside { .. } | SettingsError::Save { .. } => {
                Self::new("settings_not_saved", error.to_string())
            }
        }
    }
}
