//! What a client reports of each of its calls, one line of JSON each.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Characters of a text that a report keeps.
const KEPT: usize = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Said {
    Call(Box<Call>),
    /// Something that has no call, and should not be.
    Strange {
        at: u64,
        what: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) client: u32,
    pub(crate) kind: String,
    /// In the history too; no two calls have the same.
    pub(crate) label: String,
    pub(crate) sent: u64,
    pub(crate) ended: u64,
    /// Seconds that the program takes at most.
    pub(crate) longest: f64,
    /// Made after the last disturbance.
    pub(crate) calm: bool,
    pub(crate) end: End,
    /// Its client asked for its end.
    pub(crate) cancelled: bool,
    /// What the client itself knows to be wrong.
    pub(crate) wrong: Option<String>,
    pub(crate) request: Value,
    pub(crate) answer: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum End {
    Result {
        run_id: String,
        status: String,
        ended_by: Option<String>,
        recorded: bool,
    },
    Error {
        code: String,
        cause: Option<String>,
        run_id: Option<String>,
    },
    /// The connection ended before the answer.
    Lost,
    /// The client closed it.
    Left,
    /// No answer for as long as the client has patience.
    Silent,
}

impl End {
    pub(crate) fn of(answer: &Result<Value, Value>) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        match answer {
            Ok(result) => Self::Result {
                run_id: text(&result["run_id"]).unwrap_or_default(),
                status: text(&result["status"]).unwrap_or_default(),
                ended_by: text(&result["ended_by"]),
                recorded: result["recorded"] != false,
            },
            Err(error) => {
                let data = &error["data"];
                let code = text(&data["code"]).unwrap_or_else(|| error["code"].to_string());
                Self::Error { code, cause: text(&data["cause"]), run_id: text(&data["run_id"]) }
            }
        }
    }

    /// In one word, for a table.
    pub(crate) fn word(&self) -> &str {
        match self {
            Self::Result { recorded: false, .. } => "(not recorded)",
            Self::Result { status, .. } => status,
            Self::Error { code, .. } => code,
            Self::Lost => "(lost)",
            Self::Left => "(left)",
            Self::Silent => "(silent)",
        }
    }
}

/// The same with long texts cut.
pub(crate) fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > KEPT => {
            json!(format!("{}... ({} bytes)", text.chars().take(KEPT).collect::<String>(), text.len()))
        }
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), shortened(field)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
