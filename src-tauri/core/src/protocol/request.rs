//! The parameters of each method, decoded: types and spelling. [`crate::policy`] decides what is allowed.

use std::fmt;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Id;
use super::content::Given;
use super::error::quote;
use super::own_name::{OWN_NAME, passes_for_own};
use super::reader::{self, FIELD, Fault, Hints};
use crate::error::RunError;
use crate::language::Language;
use crate::run::{MAX_ARGS, Overflow, RunId};

const MAX_CLIENT_NAME: usize = 100;
const MAX_CURSOR_BYTES: usize = 64;
pub const DEFAULT_HISTORY: u32 = 50;
pub const MAX_HISTORY: u32 = 500;

/// What `code.run` is asked to do.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRequest {
    /// A language's name or one of its aliases.
    #[serde(deserialize_with = "language")]
    #[schemars(with = "String")]
    pub language: Language,
    /// The program: at most 1 MiB of text.
    pub code: String,
    /// The program's own arguments, without NUL: at most 64, and 8 KiB together.
    #[serde(default, deserialize_with = "reader::at_most::<MAX_ARGS, _, _>")]
    #[schemars(length(max = "MAX_ARGS"))]
    pub args: Vec<String>,
    /// Files beside the program, by their names relative to its folder: at most 256, with the owner's limit of bytes.
    #[serde(default, deserialize_with = "files")]
    #[schemars(with = "std::collections::BTreeMap<String, Given>")]
    pub files: Vec<GivenFile>,
    /// What the program reads from its standard input: at most 5 MiB.
    #[serde(default, deserialize_with = "content")]
    #[schemars(with = "Given")]
    pub stdin: Bytes,
    /// Lower limits than the owner's. What is higher counts as the owner's.
    #[serde(default)]
    pub limits: GivenLimits,
    /// What happens to a stream that passes its cap.
    #[serde(default)]
    pub overflow: Overflow,
    /// Whether the client is told of the run while it runs, by `code.waiting`, `code.started` and `code.output`.
    #[serde(default)]
    pub stream: bool,
    /// A few words for the owner's list of runs: at most 200 characters.
    #[serde(default)]
    pub label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    pub name: String,
    pub bytes: Bytes,
}

/// Finite numbers, and nothing else is known of them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenLimits {
    /// Wall time of the program, at least 0.1.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Memory of the container, its files included, in MiB; at least 32.
    #[serde(default)]
    pub memory_mb: Option<f64>,
    /// CPU time per wall time; at least 0.05.
    #[serde(default)]
    pub cpus: Option<f64>,
}

impl RunRequest {
    /// Reads the parameters of `code.run`.
    ///
    /// # Errors
    ///
    /// [`RunError::Invalid`], which names the field.
    pub fn decode(params: Option<&RawValue>) -> Result<Self, RunError> {
        reader::read(params).map_err(Self::refusal)
    }

    pub(super) fn refusal(fault: Fault) -> RunError {
        fault.refusal(&Hints {
            missing: |field| (field == "language").then(|| format!("there are {}.", Language::names())),
            unknown: |field| {
                meant(field).map(|meant| match meant {
                    Meant::Field(field) => format!("Did you mean `{field}`?"),
                    Meant::Nothing(why) => why.to_owned(),
                })
            },
        })
    }
}

fn language<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Language, D::Error> {
    let word = String::deserialize(deserializer)?;
    let unknown = || format!("There is no language `{}`; there are {}.", quote(&word), Language::names());
    word.parse().map_err(|_| D::Error::custom(unknown()))
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    Given::deserialize(deserializer).map(|Given(bytes)| bytes)
}

/// Files in the order of the request.
fn files<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<GivenFile>, D::Error> {
    struct Files;

    impl<'de> Visitor<'de> for Files {
        type Value = Vec<GivenFile>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut files = Vec::new();
            while let Some((name, Given(bytes))) = map.next_entry()? {
                files.push(GivenFile { name, bytes });
            }
            Ok(files)
        }
    }

    deserializer.deserialize_map(Files)
}

/// The path of a file's field in a refusal.
pub(crate) fn file_field(name: &str) -> String {
    format!("files[\"{}\"]", quote(name))
}

enum Meant {
    Field(&'static str),
    Nothing(&'static str),
}

/// The field that other code runners call `name`.
fn meant(name: &str) -> Option<Meant> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let word = name.strip_prefix("limits.").unwrap_or(&name);
    Some(match word {
        "timeout" | "timeout_seconds" | "timeout_ms" | "time" | "time_limit" | "seconds" | "second" | "wall"
        | "max_seconds" | "deadline" => Meant::Field("limits.seconds"),
        "memory" | "memory_mb" | "mem" | "mem_limit" | "memory_limit" | "memory_bytes" | "ram" | "max_memory" => {
            Meant::Field("limits.memory_mb")
        }
        "cpu" | "cpus" | "cores" | "nano_cpus" => Meant::Field("limits.cpus"),
        "source" | "program" | "script" | "src" | "content" | "command" | "cmd" | "codes" => Meant::Field("code"),
        "lang" | "runtime" | "languages" | "interpreter" | "image" => Meant::Field("language"),
        "input" | "std_in" | "inputs" => Meant::Field("stdin"),
        "file" | "attachments" => Meant::Field("files"),
        "limit" => Meant::Field("limits"),
        "name" | "title" | "description" => Meant::Field("label"),
        "streaming" => Meant::Field("stream"),
        "argv" | "arguments" | "argument" | "parameters" => Meant::Field("args"),
        "env" | "environment" => Meant::Nothing("A program gets no environment; use `stdin` or `files`."),
        "network" | "internet" => Meant::Nothing("A program has no network."),
        _ => return None,
    })
}

/// Fields that a later version may add are let pass.
#[derive(Deserialize, JsonSchema)]
pub struct HelloRequest {
    /// What the owner sees: 1 to 100 characters.
    #[serde(default)]
    name: Option<String>,
}

/// Reads `hello`: the name that the client gives itself, which the owner sees.
///
/// # Errors
///
/// [`RunError::Invalid`], which names the field.
pub fn hello(params: Option<&RawValue>) -> Result<Option<String>, RunError> {
    let HelloRequest { name } = reader::read(params).map_err(|fault| fault.refusal(&Hints::NONE))?;
    name.map(|name| client_name(&name)).transpose()
}

fn client_name(given: &str) -> Result<String, RunError> {
    let name: String = given.chars().filter(|c| !c.is_control()).collect();
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_CLIENT_NAME {
        return Err(RunError::invalid("name", format!("`name` is a text of 1 to {MAX_CLIENT_NAME} characters.")));
    }
    if passes_for_own(name) {
        let message = format!("`{OWN_NAME}` is what the owner's own window is called. Give the name of your program.");
        return Err(RunError::invalid("name", message));
    }
    Ok(name.to_owned())
}

/// The default name of a client: that of its program.
pub fn name_of_program(program: Option<&str>) -> String {
    match program {
        Some(program) if passes_for_own(program) => format!("program {program}"),
        Some(program) => program.to_owned(),
        None => "unnamed".into(),
    }
}

/// Names a run by its own id, or by the id of the request that asked for it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default)]
    request_id: Option<Id>,
}

/// The run to cancel.
#[derive(Debug)]
pub enum CancelTarget {
    Run(RunId),
    Request(Id),
}

/// Reads the parameters of `code.cancel`.
///
/// # Errors
///
/// [`RunError::Invalid`], which names the field.
pub fn cancel(params: Option<&RawValue>) -> Result<CancelTarget, RunError> {
    match reader::read(params).map_err(|fault| fault.refusal(&Hints::NONE))? {
        CancelRequest { run_id: Some(text), request_id: None } => {
            let id = text.parse().map_err(|_| RunError::invalid("run_id", "`run_id` is not the id of a run."))?;
            Ok(CancelTarget::Run(id))
        }
        CancelRequest { run_id: None, request_id: Some(id) } => Ok(CancelTarget::Request(id)),
        CancelRequest { .. } => Err(RunError::invalid("params", "Name the run with `run_id`, or with `request_id`.")),
    }
}

/// The answer to `code.cancel`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CancelReply {
    /// Whether there was something to end.
    pub cancelled: bool,
}

/// A page of the past, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryRequest {
    /// Runs of the page: 1 to 500.
    #[serde(default = "default_history", deserialize_with = "history_limit")]
    #[schemars(range(min = 1, max = "MAX_HISTORY"))]
    pub limit: u32,
    /// The `next` of the page before.
    #[serde(default, deserialize_with = "cursor")]
    pub before: Option<String>,
}

fn default_history() -> u32 {
    DEFAULT_HISTORY
}

fn history_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let limit = f64::deserialize(deserializer)?;
    if limit.fract() != 0.0 || !(1.0..=f64::from(MAX_HISTORY)).contains(&limit) {
        return Err(D::Error::custom(format!("{FIELD} is a whole number from 1 to {MAX_HISTORY}.")));
    }
    Ok(limit as u32)
}

fn cursor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let cursor = String::deserialize(deserializer)?;
    if cursor.len() > MAX_CURSOR_BYTES {
        return Err(D::Error::custom(format!("{FIELD} is the `next` of another page.")));
    }
    Ok(Some(cursor))
}

/// Reads the parameters of `code.history`.
///
/// # Errors
///
/// [`RunError::Invalid`], which names the field.
pub fn history(params: Option<&RawValue>) -> Result<HistoryRequest, RunError> {
    reader::read(params).map_err(|fault| fault.refusal(&Hints::NONE))
}
