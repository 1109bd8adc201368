//! The parameters of each method, decoded. Types and spelling are settled here; what is allowed is [`crate::policy`]'s.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::Id;
use super::error::quote;
use super::fields::{self, file_field};
use super::own_name::{OWN_NAME, passes_for_own};
use crate::error::RunError;
use crate::language::Language;
use crate::run::{MAX_FILES, Overflow, RunId};

/// More entries than any method has parameters; a message with more is refused before they are kept.
const MAX_PARAMS: usize = 32;
const MAX_CLIENT_NAME: usize = 100;
const MAX_CURSOR_BYTES: usize = 64;
pub const DEFAULT_HISTORY: u32 = 50;
pub const MAX_HISTORY: u32 = 500;

/// What `code.run` was asked to do.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    pub language: Language,
    pub code: String,
    pub files: Vec<GivenFile>,
    pub stdin: Bytes,
    pub limits: GivenLimits,
    pub overflow: Overflow,
    /// Whether the client wants to be told of the run while it runs.
    pub stream: bool,
    pub label: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    pub name: String,
    pub bytes: Bytes,
}

/// Finite numbers, and nothing else is known of them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GivenLimits {
    pub seconds: Option<f64>,
    pub memory_mb: Option<f64>,
    pub cpus: Option<f64>,
}

impl RunRequest {
    pub fn decode(params: Option<&RawValue>) -> Result<Self, RunError> {
        let mut draft = Draft::default();
        for (name, raw) in params_object(params)? {
            if !draft.take(&name, raw)? {
                return Err(unknown(&name));
            }
        }
        let missing = |field: &str, more: &str| RunError::invalid(field, format!("`{field}` is missing{more}."));
        Ok(Self {
            language: draft
                .language
                .ok_or_else(|| missing("language", &format!("; there are {}", Language::names())))?,
            code: draft.code.ok_or_else(|| missing("code", ""))?,
            files: draft.files,
            stdin: draft.stdin,
            limits: draft.limits,
            overflow: draft.overflow,
            stream: draft.stream,
            label: draft.label,
        })
    }
}

#[derive(Default)]
struct Draft {
    language: Option<Language>,
    code: Option<String>,
    files: Vec<GivenFile>,
    stdin: Bytes,
    limits: GivenLimits,
    overflow: Overflow,
    stream: bool,
    label: Option<String>,
}

impl Draft {
    /// False where there is no such field. A `null` is a field left out, as many clients write it.
    fn take(&mut self, name: &str, raw: &RawValue) -> Result<bool, RunError> {
        let known =
            matches!(name, "language" | "code" | "files" | "stdin" | "limits" | "overflow" | "stream" | "label");
        if !known || fields::is_null(raw) {
            return Ok(known);
        }
        match name {
            "language" => self.language = Some(language(raw)?),
            "code" => self.code = Some(fields::string("code", raw)?),
            "files" => self.files = files(raw)?,
            "stdin" => self.stdin = fields::content("stdin", raw)?,
            "limits" => self.limits = limits(raw)?,
            "overflow" => self.overflow = overflow(raw)?,
            "stream" => self.stream = fields::boolean("stream", raw)?,
            _ => self.label = Some(fields::string("label", raw)?),
        }
        Ok(true)
    }
}

fn language(raw: &RawValue) -> Result<Language, RunError> {
    let word = fields::string("language", raw)?;
    word.parse().map_err(|_| {
        let message = format!("There is no language `{}`; there are {}.", quote(&word), Language::names());
        RunError::invalid("language", message)
    })
}

fn files(raw: &RawValue) -> Result<Vec<GivenFile>, RunError> {
    fields::object("files", raw, MAX_FILES)?
        .into_iter()
        .map(|(name, raw)| fields::content(&file_field(&name), raw).map(|bytes| GivenFile { name, bytes }))
        .collect()
}

fn limits(raw: &RawValue) -> Result<GivenLimits, RunError> {
    let mut limits = GivenLimits::default();
    for (name, raw) in fields::object("limits", raw, MAX_PARAMS)? {
        let (field, place) = match name.as_str() {
            "seconds" => ("limits.seconds", &mut limits.seconds),
            "memory_mb" => ("limits.memory_mb", &mut limits.memory_mb),
            "cpus" => ("limits.cpus", &mut limits.cpus),
            _ => return Err(unknown(&format!("limits.{}", quote(&name)))),
        };
        if !fields::is_null(raw) {
            *place = Some(fields::number(field, raw)?);
        }
    }
    Ok(limits)
}

fn overflow(raw: &RawValue) -> Result<Overflow, RunError> {
    match fields::string("overflow", raw)?.as_str() {
        "kill" => Ok(Overflow::Kill),
        "truncate" => Ok(Overflow::Truncate),
        other => {
            let message = format!("`overflow` is \"kill\" or \"truncate\", not \"{}\".", quote(other));
            Err(RunError::invalid("overflow", message))
        }
    }
}

/// A field that does not exist, and the one that was probably meant.
fn unknown(name: &str) -> RunError {
    let shown = quote(name);
    let more = match meant(name) {
        Some(Meant::Field(field)) => format!(" Did you mean `{field}`?"),
        Some(Meant::Nothing(why)) => format!(" {why}"),
        None => " There are language, code, files, stdin, limits, overflow, stream and label.".into(),
    };
    RunError::invalid(shown.clone(), format!("There is no field `{shown}`.{more}"))
}

enum Meant {
    Field(&'static str),
    Nothing(&'static str),
}

/// Other runners' words for the same thing.
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
        "args" | "argv" | "arguments" => Meant::Nothing("A program gets no arguments; use `stdin` or `files`."),
        "env" | "environment" => Meant::Nothing("A program gets no environment; use `stdin` or `files`."),
        "network" | "internet" => Meant::Nothing("A program has no network."),
        _ => return None,
    })
}

/// The name that a client gives itself, shown to the owner. Fields that a later version may add are let pass.
pub fn hello(params: Option<&RawValue>) -> Result<Option<String>, RunError> {
    for (name, raw) in params_object(params)? {
        if name == "name" && !fields::is_null(raw) {
            return client_name(&fields::string("name", raw)?).map(Some);
        }
    }
    Ok(None)
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

/// The name of a client that has not given one: that of its program.
pub fn name_of_program(program: Option<&str>) -> String {
    match program {
        Some(program) if passes_for_own(program) => format!("program {program}"),
        Some(program) => program.to_owned(),
        None => "unnamed".into(),
    }
}

/// Which run to end: by its own id, or by the id of the request that asked for it.
#[derive(Debug)]
pub enum CancelTarget {
    Run(RunId),
    Request(Id),
}

pub fn cancel(params: Option<&RawValue>) -> Result<CancelTarget, RunError> {
    let entries = params_object(params)?;
    let [(name, raw)] = entries.as_slice() else {
        return Err(RunError::invalid("params", "Name the run with `run_id`, or with `request_id`."));
    };
    match name.as_str() {
        "run_id" => {
            let text = fields::string("run_id", raw)?;
            let id = text.parse().map_err(|_| RunError::invalid("run_id", "`run_id` is not the id of a run."))?;
            Ok(CancelTarget::Run(id))
        }
        "request_id" => {
            let fault = || RunError::invalid("request_id", "`request_id` is the id of a request of this connection.");
            Ok(CancelTarget::Request(Id::read(raw).ok_or_else(fault)?))
        }
        other => {
            let other = quote(other);
            let message = format!("There is no field `{other}`. Name the run with `run_id`, or with `request_id`.");
            Err(RunError::invalid(other, message))
        }
    }
}

/// A page of the past, newest first. `before` is the `next` of the page before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRequest {
    pub limit: u32,
    /// Opaque here; whoever keeps the history made it.
    pub before: Option<String>,
}

pub fn history(params: Option<&RawValue>) -> Result<HistoryRequest, RunError> {
    let mut request = HistoryRequest { limit: DEFAULT_HISTORY, before: None };
    for (name, raw) in params_object(params)? {
        match name.as_str() {
            "limit" | "before" if fields::is_null(raw) => {}
            "limit" => {
                let limit = fields::number("limit", raw)?;
                if limit.fract() != 0.0 || !(1.0..=f64::from(MAX_HISTORY)).contains(&limit) {
                    let message = format!("`limit` is a whole number from 1 to {MAX_HISTORY}.");
                    return Err(RunError::invalid("limit", message));
                }
                request.limit = limit as u32;
            }
            "before" => {
                let before = fields::string("before", raw)?;
                if before.len() > MAX_CURSOR_BYTES {
                    return Err(RunError::invalid("before", "`before` is the `next` of another page."));
                }
                request.before = Some(before);
            }
            other => {
                let other = quote(other);
                let message = format!("There is no field `{other}`. There are limit and before.");
                return Err(RunError::invalid(other, message));
            }
        }
    }
    Ok(request)
}

/// Absent parameters are an empty object.
pub(super) fn params_object(params: Option<&RawValue>) -> Result<Vec<(String, &RawValue)>, RunError> {
    params.map_or_else(|| Ok(Vec::new()), |raw| fields::object("params", raw, MAX_PARAMS))
}
