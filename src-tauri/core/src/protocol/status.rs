//! The reply to `status`, which the command line shows its owner. Read-only.

use schemars::JsonSchema;
use serde::Serialize;

use super::CODE_RUN;
use crate::engine::EngineState;
use crate::event::{ImageStatus, LiveRun, Snapshot};
use crate::history::Trouble;

#[derive(Debug, Serialize, JsonSchema)]
pub struct ServiceStatus<'a> {
    version: &'static str,
    pid: u32,
    capability: Switch,
    engine: EngineNow<'a>,
    images: &'a [ImageStatus],
    running: &'a [LiveRun],
    queued: &'a [LiveRun],
    /// Containers that wait for a call.
    warm: usize,
    history: HistoryNow<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Switch {
    name: &'static str,
    enabled: bool,
}

/// The engine's state with its sentence and its next step, so that clients need none of their own.
#[derive(Debug, Serialize, JsonSchema)]
struct EngineNow<'a> {
    #[serde(flatten)]
    state: &'a EngineState,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// While an engine is used that is reached unencrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

impl<'a> EngineNow<'a> {
    fn of(state: &'a EngineState) -> Self {
        let now = Self { state, message: None, hint: None, warning: None };
        match state {
            EngineState::Trouble(trouble) => {
                Self { message: Some(trouble.to_string()), hint: Some(trouble.hint()), ..now }
            }
            EngineState::Ready(info) => Self { warning: info.endpoint.warning(), ..now },
            EngineState::Checking => now,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
enum HistoryNow<'a> {
    Ready,
    Trouble {
        #[serde(flatten)]
        trouble: &'a Trouble,
        message: String,
        hint: &'static str,
    },
}

impl<'a> ServiceStatus<'a> {
    pub fn of(snapshot: &'a Snapshot, history: Option<&'a Trouble>) -> Self {
        let history = history.map_or(HistoryNow::Ready, |trouble| HistoryNow::Trouble {
            trouble,
            message: trouble.to_string(),
            hint: trouble.why.hint(),
        });
        Self {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            capability: Switch { name: CODE_RUN, enabled: snapshot.enabled },
            engine: EngineNow::of(&snapshot.engine),
            images: &snapshot.images,
            running: &snapshot.running,
            queued: &snapshot.queued,
            warm: snapshot.warm,
            history,
        }
    }
}
