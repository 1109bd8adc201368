//! Why a command failed: a stable code, a sentence for a person, and the next step.

use sandtray_core::engine::EngineTrouble;
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
    /// What the window can do about it by one press.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub mend: Option<Mend>,
    /// Every setting that was refused. A message reads on from the name of its field: "must be from 1 to 64".
    pub faults: Box<[Fault]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Mend {
    TurnOn,
    /// The page that says what is wrong with the engine or an image.
    SeeOverview,
}

impl CommandError {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), hint: None, field: None, mend: None, faults: Box::default() }
    }

    fn mend(self, mend: Mend) -> Self {
        Self { mend: Some(mend), ..self }
    }

    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub fn of_faults(faults: Vec<Fault>) -> Self {
        let first = faults.first();
        let message = first.map_or_else(String::new, |fault| format!("{fault}."));
        let field = first.map(|fault| fault.field.clone());
        Self { field, faults: faults.into(), ..Self::new("invalid_settings", message) }
    }

    /// The error for a run that is neither in the history nor live.
    pub fn no_such_run() -> Self {
        Self::new("no_such_run", "That run is gone.")
    }
}

/// Rewords an error for the owner. The core's own sentences are for agents, which cannot turn anything on.
impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let said = |message: String| Self::new(error.code(), message);
        match &error {
            RunError::Off => said("Turn on the switch first. Nothing runs while it is off.".into()).mend(Mend::TurnOn),
            RunError::Engine(trouble) => of_trouble(trouble),
            RunError::Image { error: why, .. } => said(error.to_string()).hint(why.hint()).mend(Mend::SeeOverview),
            RunError::QueueFull { waiting, retry_after, .. } => said(match waiting {
                1 => "One program is waiting already, and no more may.".into(),
                waiting => format!("{waiting} programs are waiting already, and no more may."),
            })
            .hint(format!("Stop one of them, or try again in about {} s.", retry_after.as_secs().max(1))),
            RunError::NoRoom { .. } => {
                said("Sandtray keeps as much for agents as it may.".into()).hint("Try again in a moment.")
            }
            RunError::ShuttingDown => said("Sandtray is quitting.".into()),
            RunError::Invalid { message, .. } => said(format!("This program can't run as it is: {message}")),
            RunError::Interrupted(_) => said(error.to_string()).hint("What it printed until then is under Runs."),
            RunError::ContainerRemoved => {
                said(error.to_string()).hint("Another program on this computer removes containers. Run it again.")
            }
            RunError::History { hint, .. } => said(error.to_string()).hint(hint),
            RunError::Internal(_) => said(error.to_string()),
        }
    }
}

/// The short error. The engine's page shows the details.
fn of_trouble(trouble: &EngineTrouble) -> CommandError {
    let message = format!("{}, so nothing can run.", trouble.summary());
    CommandError::new("engine_unavailable", message).mend(Mend::SeeOverview)
}

impl From<RemoveError> for CommandError {
    fn from(error: RemoveError) -> Self {
        let message = error.to_string();
        match error {
            RemoveError::InUse { .. } => Self::new("image_in_use", message).hint("Stop it, then remove the image."),
            RemoveError::Busy { .. } => Self::new("image_busy", message).hint("Cancel that first."),
            RemoveError::Engine(trouble) => of_trouble(&trouble),
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

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::engine::{Endpoint, PullError};
    use std::time::Duration;

    /// Words that only suit an agent or a terminal.
    const NOT_FOR_OWNERS: [&str; 7] = ["owner", "client", "sandtray serve", "--", "call", "`", "repeat"];

    #[test]
    fn the_window_speaks_to_its_owner() {
        let endpoint = Endpoint { url: "ssh://me@host".into(), found: "DOCKER_HOST".into() };
        for error in [
            RunError::Off,
            RunError::Engine(EngineTrouble::NotRunning { endpoint: endpoint.clone() }),
            RunError::Engine(EngineTrouble::PermissionDenied { endpoint }),
            RunError::Image { image: "python".into(), error: PullError::NoNetwork },
            RunError::QueueFull { waiting: 64, own: true, retry_after: Duration::from_secs(3) },
            RunError::QueueFull { waiting: 1, own: false, retry_after: Duration::ZERO },
            RunError::NoRoom { own: true },
            RunError::NoRoom { own: false },
            RunError::ShuttingDown,
            RunError::Internal("a task failed".into()),
        ] {
            let code = error.code();
            let CommandError { code: shown, message, hint, .. } = error.into();
            let said = format!("{message} {}", hint.unwrap_or_default());
            assert_eq!(shown, code);
            assert!(!NOT_FOR_OWNERS.iter().any(|word| said.contains(word)), "{said}");
        }
    }

    #[test]
    fn what_one_press_can_mend_comes_with_the_press() {
        let mend = |error: RunError| CommandError::from(error).mend;
        assert_eq!(mend(RunError::Off), Some(Mend::TurnOn));
        let absent = EngineTrouble::Absent { looked_at: Vec::new() };
        assert_eq!(mend(RunError::Engine(absent.clone())), Some(Mend::SeeOverview));
        assert_eq!(CommandError::from(RemoveError::Engine(absent)).mend, Some(Mend::SeeOverview));
        assert_eq!(mend(RunError::ShuttingDown), None);
    }
}
