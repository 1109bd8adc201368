//! Errors on the wire: a number for each kind, a stable code in `data.code`, and a sentence for a person.
//!
//! | number | `data.code` | when |
//! | --- | --- | --- |
//! | -32700 | `parse_error` | the line is not JSON, or not UTF-8 |
//! | -32600 | `invalid_request` | the JSON is not a JSON-RPC 2.0 request |
//! | -32601 | `method_not_found` | there is no such method |
//! | -32601 | `capability_off` | `code.run` or `code.batch` while the owner has it turned off |
//! | -32602 | `invalid_params` | `data.field` says which parameter |
//! | -32603 | `internal` | a fault in Sandtray itself |
//! | -32001 | `engine_unavailable` | `data.trouble` names the trouble |
//! | -32002 | `image_unavailable` | `data.image`, and `data.reason` |
//! | -32003 | `queue_full` | `data.retry_after_seconds`: too many runs are queued, or too much is kept for clients |
//! | -32004 | `shutting_down` | |
//! | -32005 | `too_many_connections` | then the connection is closed: it got no place, or had to give up its own |
//! | -32006 | `message_too_long` | the line is longer than a frame may be |
//! | -32007 | `not_started` | a run of a batch that was stopped before its turn |
//! | -32008 | `reply_too_large` | a run of a batch whose result has no room in the reply |
//! | -32009 | `run_interrupted` | the program ran, and the engine went away or its container was ended from outside; `data` has `cause` (`engine`, `outside`, `unknown`), `seconds`, `stdout`, `stderr`, `run_id` |
//! | -32010 | `history_unavailable` | a run could not be recorded though the owner requires it, or a read failed |

use schemars::JsonSchema;
use serde::Serialize;

use crate::codec::MAX_FRAME;
use crate::error::RunError;

use super::reply::CutOff;

pub const PARSE: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
pub const INTERNAL: i32 = -32603;
pub const ENGINE_UNAVAILABLE: i32 = -32001;
pub const IMAGE_UNAVAILABLE: i32 = -32002;
pub const QUEUE_FULL: i32 = -32003;
pub const SHUTTING_DOWN: i32 = -32004;
pub const TOO_MANY_CONNECTIONS: i32 = -32005;
pub const MESSAGE_TOO_LONG: i32 = -32006;
pub const NOT_STARTED: i32 = -32007;
pub const REPLY_TOO_LARGE: i32 = -32008;
pub const RUN_INTERRUPTED: i32 = -32009;
pub const HISTORY_UNAVAILABLE: i32 = -32010;

/// Longest quote of a name from a client's message.
const MAX_QUOTE: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ErrorObject {
    pub code: i32,
    pub message: String,
    pub data: Box<ErrorData>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct ErrorData {
    /// Stable; programs act on it.
    pub code: &'static str,
    /// The next step, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    #[serde(flatten)]
    pub cut_off: Option<CutOff>,
}

impl ErrorObject {
    pub fn parse(message: impl Into<String>) -> Self {
        Self::plain(PARSE, "parse_error", message)
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::plain(INVALID_REQUEST, "invalid_request", message)
    }

    pub fn method_not_found(method: &str) -> Self {
        Self::plain(METHOD_NOT_FOUND, "method_not_found", format!("There is no method `{}`.", quote(method)))
    }

    pub fn too_many_connections(message: impl Into<String>) -> Self {
        let mut error = Self::plain(TOO_MANY_CONNECTIONS, "too_many_connections", message);
        error.data.hint = Some("Close one that is idle, or send several calls over one connection.".into());
        error
    }

    /// The error sent before an idle connection is closed to make room for another.
    pub fn gave_way() -> Self {
        let message = "This connection was idle, and gave its place to a program that had none.";
        let mut error = Self::plain(TOO_MANY_CONNECTIONS, "too_many_connections", message);
        error.data.hint = Some("Connect again when there is something to ask.".into());
        error
    }

    /// The error sent before a connection is closed that made no request in time.
    pub fn no_word(seconds: u64) -> Self {
        Self::invalid_request(format!("Nothing was asked for {seconds} s after the connection was made."))
    }

    pub fn message_too_long(most: usize) -> Self {
        let message = format!("The message is longer than {} MB and was skipped.", most >> 20);
        let mut error = Self::plain(MESSAGE_TOO_LONG, "message_too_long", message);
        error.data.hint = Some("Send fewer or smaller files; base64 takes less room than escaped binary text.".into());
        error
    }

    pub fn not_started(why: impl Into<String>) -> Self {
        Self::plain(NOT_STARTED, "not_started", why)
    }

    /// The error for a result dropped because all unfinished batches together keep too many bytes.
    pub fn no_room_in_batch(index: usize, streamed: bool) -> Self {
        let mut error = Self::reply_too_large(index, streamed);
        error.message = format!(
            "The result of `runs[{index}]` is left out: Sandtray keeps as much for batches that are not over as it may."
        );
        error
    }

    /// The error for a result that does not fit the reply. The run itself is over.
    pub fn reply_too_large(index: usize, streamed: bool) -> Self {
        let message = format!(
            "The result of `runs[{index}]` is left out: together with those before it, it is larger than the {} MB of one message.",
            MAX_FRAME >> 20
        );
        let mut error = Self::plain(REPLY_TOO_LARGE, "reply_too_large", message);
        let hint = if streamed {
            "It was delivered on its own, as `code.result`."
        } else {
            "With `stream: true` each result is delivered on its own, as `code.result`."
        };
        error.data.hint = Some(hint.into());
        error
    }

    fn plain(code: i32, word: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Box::new(ErrorData { code: word, ..ErrorData::default() }) }
    }
}

impl From<&RunError> for ErrorObject {
    fn from(error: &RunError) -> Self {
        let mut object = Self::plain(number(error), error.code(), error.to_string());
        object.data.hint = error.hint();
        match error {
            RunError::Invalid { field, .. } => object.data.field = Some(field.clone()),
            RunError::Engine(trouble) => object.data.trouble = Some(trouble.kind()),
            RunError::Image { image, error } => {
                object.data.image = Some(image.clone());
                object.data.reason = reason(error);
            }
            RunError::QueueFull { retry_after, .. } => {
                // Whole seconds, rounded up, so that a client which waits this long is not early.
                object.data.retry_after_seconds = Some(retry_after.as_millis().div_ceil(1000).max(1) as u64);
            }
            RunError::NoRoom { .. } => object.data.retry_after_seconds = Some(1),
            RunError::ContainerRemoved => object.data.trouble = Some("container_removed"),
            RunError::Interrupted(cut) => object.data.cut_off = Some(CutOff::of(cut)),
            RunError::Off | RunError::ShuttingDown | RunError::History { .. } | RunError::Internal(_) => {}
        }
        object
    }
}

impl From<RunError> for ErrorObject {
    fn from(error: RunError) -> Self {
        Self::from(&error)
    }
}

/// The beginning of a client's word, for a quote in a message.
pub(crate) fn quote(word: &str) -> String {
    match word.char_indices().nth(MAX_QUOTE) {
        None => word.to_owned(),
        Some((cut, _)) => format!("{}...", &word[..cut]),
    }
}

fn number(error: &RunError) -> i32 {
    match error {
        RunError::Invalid { .. } => INVALID_PARAMS,
        RunError::Off => METHOD_NOT_FOUND,
        RunError::Engine(_) | RunError::ContainerRemoved => ENGINE_UNAVAILABLE,
        RunError::Image { .. } => IMAGE_UNAVAILABLE,
        RunError::QueueFull { .. } | RunError::NoRoom { .. } => QUEUE_FULL,
        RunError::ShuttingDown => SHUTTING_DOWN,
        RunError::Interrupted(_) => RUN_INTERRUPTED,
        RunError::History { .. } => HISTORY_UNAVAILABLE,
        RunError::Internal(_) => INTERNAL,
    }
}

/// The error's `reason` from its serialized form, so it is the same word everywhere.
fn reason(error: &crate::engine::PullError) -> Option<String> {
    let value = serde_json::to_value(error).ok()?;
    value.get("reason")?.as_str().map(str::to_owned)
}
