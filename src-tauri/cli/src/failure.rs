//! Errors of the command line: a sentence and a next step on stderr, and the exit code.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::terminal::{self, plain};

/// Sandtray failed. Docker uses the same code; programs rarely do.
pub(crate) const FAILURE: u8 = 125;
/// The program ran and was cut off. Docker and shells use it for a command that cannot be run.
pub(crate) const CUT_OFF: u8 = 126;
/// 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;
/// 128 + SIGPIPE.
pub(crate) const READER_GONE: u8 = 141;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The service's own error, for `--json`.
    error: Option<Value>,
    /// Reports nothing, because the reader is gone.
    silent: bool,
    code: u8,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, error: None, silent: false, code: FAILURE }
    }

    pub(crate) fn with_hint(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..Self::new(message) }
    }

    /// From the `error` of a JSON-RPC reply.
    pub(crate) fn of_service(error: Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            code: if is_cut_off(&error) { CUT_OFF } else { FAILURE },
            hint: text(&error["data"]["hint"]),
            error: Some(error.clone()),
            ..Self::new(text(&error["message"]).unwrap_or_else(|| "The service gave an error without words.".into()))
        }
    }

    /// Exits without a message.
    pub(crate) fn silent(code: u8) -> Self {
        Self { silent: true, code, ..Self::new("") }
    }

    /// From a failed write to stdout. If the reader is gone there is no message.
    pub(crate) fn of_output(error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::silent(READER_GONE);
        }
        Self::new(format!("The output can't be written: {error}."))
    }

    pub(crate) fn of_signals(error: &std::io::Error) -> Self {
        Self::new(format!("Ctrl-C can't be heard: {error}."))
    }

    pub(crate) fn report(self, json: bool) -> ExitCode {
        if self.silent {
            return ExitCode::from(self.code);
        }
        if json {
            let own = json!({ "code": "sandtray", "message": self.message, "data": { "hint": self.hint } });
            use std::io::Write as _;
            let error = terminal::json(&json!({ "error": self.error.unwrap_or(own) }));
            let _ = writeln!(std::io::stdout(), "{error}");
        }
        eprintln!("sandtray: {}", plain(&self.message));
        if let Some(hint) = self.hint {
            eprintln!("{}", plain(&hint));
        }
        ExitCode::from(self.code)
    }
}

/// Whether the program ran. Then the error's data has its output so far.
pub(crate) fn is_cut_off(error: &Value) -> bool {
    error["data"]["code"] == "run_interrupted"
}
