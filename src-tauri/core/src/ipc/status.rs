//! The answer to `status`, which the command line shows its owner. A connection can change nothing in it.

use serde_json::{Value, json};

use crate::engine::EngineState;
use crate::event::Snapshot;
use crate::history::Trouble;
use crate::protocol::CODE_RUN;

pub(super) fn of(snapshot: &Snapshot, history: Option<&Trouble>) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "capability": { "name": CODE_RUN, "enabled": snapshot.enabled },
        "engine": engine(snapshot),
        "images": snapshot.images,
        "running": snapshot.running,
        "queued": snapshot.queued,
        "warm": snapshot.warm,
        "history": history.map_or_else(|| json!({ "state": "ready" }), trouble),
    })
}

/// With its sentence and its next step too.
fn trouble(trouble: &Trouble) -> Value {
    let mut value = json!(trouble);
    value["state"] = json!("trouble");
    value["message"] = json!(trouble.to_string());
    value["hint"] = json!(trouble.why.hint());
    value
}

/// The engine's state with its sentence and its next step, so that clients need none of their own.
fn engine(snapshot: &Snapshot) -> Value {
    let mut value = json!(snapshot.engine);
    match &snapshot.engine {
        EngineState::Trouble(trouble) => {
            value["message"] = json!(trouble.to_string());
            value["hint"] = json!(trouble.hint());
        }
        EngineState::Ready(info) => {
            if let Some(warning) = info.endpoint.warning() {
                value["warning"] = json!(warning);
            }
        }
        EngineState::Checking => {}
    }
    value
}
