//! What the history stores of a run: the types, and their construction from an outcome.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::store::first_place;
use crate::error::RunError;
use crate::run::{Captured, Client, INTERRUPTED, Interrupted, Limits, Outcome, Overflow, RunId, RunSpec, SkippedFile};
use crate::settings::Keep;
use crate::title;

/// Longest client name, label and error message that are stored; the rest is cut off.
const MAX_NAME_BYTES: usize = 256;
const MAX_LABEL_BYTES: usize = 1024;
const MAX_ERROR_BYTES: usize = 4096;

/// Most rows of one page.
pub const MAX_PAGE: usize = 500;

/// A run that ended or was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    pub row: RunRow,
    /// `None` if the owner keeps metrics only, or if the disk was full: see [`RunRow::given_up`].
    pub body: Option<Body>,
}

/// Who, when, how long, which verdict: what a list shows. Words are as they were recorded, perhaps by another version.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunRow {
    pub run_id: RunId,
    #[serde(serialize_with = "crate::time::serialize_millis")]
    #[schemars(with = "u64")]
    pub queued_at: SystemTime,
    pub client: String,
    pub client_pid: Option<u32>,
    pub client_program: Option<String>,
    pub language: String,
    pub label: Option<String>,
    /// What a run without a label is called: a few words of its program, so for the owner alone.
    #[serde(skip)]
    pub title: Option<String>,
    /// The word of a [`crate::run::Status`]; `interrupted` where the run was cut off; or the code of a [`RunError`] where the
    /// run did not happen.
    pub status: String,
    /// The word of an [`crate::run::EndedBy`]; of a [`crate::run::CutBy`] where the run was cut off; `None` where it did not
    /// happen, and for one of an earlier version.
    pub ended_by: Option<String>,
    /// The sentence of the error; `None` where the run came to an end.
    pub error: Option<String>,
    pub exit_code: Option<i32>,
    /// Wall time of the program.
    #[serde(rename = "seconds", serialize_with = "serialize_seconds")]
    #[schemars(with = "Option<f64>")]
    pub wall: Option<Duration>,
    /// Waiting for a place, an image and a container.
    #[serde(rename = "queued_seconds", serialize_with = "serialize_seconds")]
    #[schemars(with = "Option<f64>")]
    pub queued: Option<Duration>,
    pub memory_bytes: Option<u64>,
    #[serde(rename = "cpu_seconds", serialize_with = "serialize_seconds")]
    #[schemars(with = "Option<f64>")]
    pub cpu: Option<Duration>,
    pub oom_kills: u32,
    pub code_bytes: u64,
    pub code_sha256: String,
    pub stdin_bytes: u64,
    pub stdout: StreamFigure,
    pub stderr: StreamFigure,
    pub files_in: FileFigure,
    pub files_out: FileFigure,
    pub skipped_files: u32,
    /// With its digest where that is known; empty where the run did not happen.
    pub image: String,
    pub limits: Limits,
    /// What was to happen to too much output; `None` in runs of versions that did not keep it.
    #[serde(skip)]
    pub overflow: Option<Overflow>,
    /// Its program, inputs and output were given up, or never kept, for want of disk.
    #[serde(skip)]
    pub given_up: bool,
}

/// Bytes of one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct StreamFigure {
    /// As produced, before the cap.
    pub produced: u64,
    /// As returned to the client.
    pub returned: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct FileFigure {
    pub count: u32,
    pub bytes: u64,
}

/// What the agent wrote and what its program returned. All of it is untrusted: any bytes, any names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body {
    pub code: Bytes,
    pub args: Vec<String>,
    /// `None` if an earlier version did not keep it.
    pub stdin: Option<Bytes>,
    pub stdout: Bytes,
    pub stderr: Bytes,
    pub files_in: Vec<FileIn>,
    pub files_out: Vec<FileOut>,
    pub skipped_files: Vec<SkippedFile>,
    pub left_behind: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileIn {
    pub name: String,
    pub size: u64,
    /// `None` if an earlier version did not keep the bytes.
    pub bytes: Option<Bytes>,
}

/// One file of a run, and whether it is an input or an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// An output file.
    Out(String),
    /// An input file.
    In(String),
    Stdin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOut {
    pub name: String,
    pub bytes: Bytes,
}

impl RunRecord {
    /// `result` is the client's reply.
    pub fn of(
        spec: &RunSpec,
        client: &Client,
        queued_at: SystemTime,
        result: Result<&Outcome, &RunError>,
        keep: Keep,
    ) -> Self {
        let row = match result {
            Ok(outcome) => ran(asked(spec, client, queued_at), outcome),
            Err(RunError::Interrupted(cut)) => cut_off(asked(spec, client, queued_at), cut),
            Err(error) => refused(asked(spec, client, queued_at), error),
        };
        let record = Self { row, body: Some(body(spec, result)) };
        match keep {
            Keep::Everything => record,
            Keep::Metrics => record.without_words(),
        }
    }

    /// Drops the body and the title, which come from the program, and keeps the figures and the label.
    pub(super) fn without_words(self) -> Self {
        Self { row: RunRow { title: None, ..self.row }, body: None }
    }
}

impl RunRow {
    /// Whether the program ran.
    pub fn happened(&self) -> bool {
        self.error.is_none() || self.status == INTERRUPTED
    }
}

impl Body {
    /// Whether all inputs of the run are kept.
    pub fn has_inputs(&self) -> bool {
        self.stdin.is_some() && self.files_in.iter().all(|file| file.bytes.is_some())
    }
}

fn asked(spec: &RunSpec, client: &Client, queued_at: SystemTime) -> RunRow {
    RunRow {
        run_id: spec.id,
        queued_at,
        client: clipped(&client.name, MAX_NAME_BYTES),
        client_pid: client.pid,
        client_program: client.program.as_deref().map(|program| clipped(program, MAX_LABEL_BYTES)),
        language: spec.language.name().to_owned(),
        label: spec.label.as_deref().map(|label| clipped(label, MAX_LABEL_BYTES)),
        title: title::beside(spec.label.as_deref(), spec.language, &spec.code),
        status: String::new(),
        ended_by: None,
        error: None,
        exit_code: None,
        wall: None,
        queued: None,
        memory_bytes: None,
        cpu: None,
        oom_kills: 0,
        code_bytes: spec.code.len() as u64,
        code_sha256: hex(&Sha256::digest(&spec.code)),
        stdin_bytes: spec.stdin.len() as u64,
        stdout: StreamFigure::default(),
        stderr: StreamFigure::default(),
        files_in: figure(spec.files.iter().map(|file| file.bytes.len())),
        files_out: FileFigure::default(),
        skipped_files: 0,
        image: String::new(),
        limits: spec.limits,
        overflow: Some(spec.overflow),
        given_up: false,
    }
}

fn stream(captured: &Captured) -> StreamFigure {
    StreamFigure { produced: captured.produced, returned: captured.bytes.len() as u64 }
}

fn ran(row: RunRow, outcome: &Outcome) -> RunRow {
    RunRow {
        status: outcome.status.as_str().to_owned(),
        ended_by: Some(outcome.ended_by.as_str().to_owned()),
        exit_code: Some(outcome.exit_code),
        wall: Some(outcome.wall),
        queued: Some(outcome.queued),
        memory_bytes: outcome.memory_bytes,
        cpu: outcome.cpu,
        oom_kills: outcome.oom_kills,
        stdout: stream(&outcome.stdout),
        stderr: stream(&outcome.stderr),
        files_out: figure(outcome.files.iter().map(|file| file.bytes.len())),
        skipped_files: u32::try_from(outcome.skipped_files.len()).unwrap_or(u32::MAX),
        image: clipped(&outcome.image, MAX_LABEL_BYTES),
        limits: outcome.limits,
        ..row
    }
}

/// The row of an interrupted run. It has no exit code, because the end was not observed.
fn cut_off(row: RunRow, cut: &Interrupted) -> RunRow {
    RunRow {
        status: INTERRUPTED.to_owned(),
        ended_by: Some(cut.by.as_str().to_owned()),
        error: Some(clipped(&cut.to_string(), MAX_ERROR_BYTES)),
        wall: Some(cut.wall),
        queued: Some(cut.queued),
        memory_bytes: cut.memory_bytes,
        cpu: cut.cpu,
        stdout: stream(&cut.stdout),
        stderr: stream(&cut.stderr),
        image: clipped(&cut.image, MAX_LABEL_BYTES),
        limits: cut.limits,
        ..row
    }
}

fn refused(row: RunRow, error: &RunError) -> RunRow {
    RunRow { status: error.code().to_owned(), error: Some(clipped(&error.to_string(), MAX_ERROR_BYTES)), ..row }
}

fn body(spec: &RunSpec, result: Result<&Outcome, &RunError>) -> Body {
    let files_in = spec
        .files
        .iter()
        .map(|file| FileIn {
            name: file.name.as_str().to_owned(),
            size: file.bytes.len() as u64,
            bytes: Some(file.bytes.clone()),
        })
        .collect();
    let asked = Body {
        code: spec.code.clone(),
        args: spec.args.clone(),
        stdin: Some(spec.stdin.clone()),
        files_in,
        ..Body::default()
    };
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(RunError::Interrupted(cut)) => {
            return Body { stdout: cut.stdout.bytes.clone(), stderr: cut.stderr.bytes.clone(), ..asked };
        }
        Err(_) => return asked,
    };
    Body {
        stdout: outcome.stdout.bytes.clone(),
        stderr: outcome.stderr.bytes.clone(),
        files_out: outcome
            .files
            .iter()
            .map(|file| FileOut { name: file.name.as_str().to_owned(), bytes: file.bytes.clone() })
            .collect(),
        skipped_files: outcome.skipped_files.clone(),
        left_behind: outcome.left_behind.clone(),
        ..asked
    }
}

fn figure(sizes: impl ExactSizeIterator<Item = usize>) -> FileFigure {
    FileFigure { count: u32::try_from(sizes.len()).unwrap_or(u32::MAX), bytes: sizes.map(|size| size as u64).sum() }
}

fn clipped(text: &str, max: usize) -> String {
    cut(text, max).to_owned()
}

/// The beginning of a text: at most `max` bytes, cut between characters.
pub(super) fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn serialize_seconds<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

/// A place in the list, between two runs. Opaque to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub(super) i64);

impl Cursor {
    /// The place before all runs that were requested at `time` or later.
    pub fn before(time: SystemTime) -> Self {
        Self(first_place(time))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a cursor that a page of the history ended with")]
pub struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        i64::from_str_radix(text, 16).ok().filter(|place| *place >= 0).map(Self).ok_or(NotACursor)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The filters of a list, newest first. A run must match all that are set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryQuery {
    /// Only runs older than this place, which is the `next` of the previous page.
    pub before: Option<Cursor>,
    /// 0 and anything above [`MAX_PAGE`] mean [`MAX_PAGE`].
    pub limit: usize,
    pub language: Option<String>,
    /// A status or an error's code.
    pub status: Option<String>,
    /// The client's whole name.
    pub client: Option<String>,
    /// The file name of the client's program. An empty one matches runs whose program is unknown.
    pub program: Option<String>,
    /// Prefixes of words, all of which must occur in the label, the client's name, or the beginning of the code, of the
    /// output or of the inputs.
    pub text: Option<String>,
    /// Only runs not older than this place.
    pub from: Option<Cursor>,
    /// Only runs older than this place, on every page.
    pub until: Option<Cursor>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Page {
    pub runs: Vec<RunRow>,
    /// `None` at the end.
    #[schemars(with = "Option<String>")]
    pub next: Option<Cursor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[cfg_attr(feature = "ts", ts(rename = "HistoryStats"))]
pub struct Stats {
    pub runs: u64,
    /// Of what is kept, counted as [`crate::settings::HistorySettings::max_mb`] does; the file is somewhat larger.
    pub bytes: u64,
    /// Of those, the files and the standard input that came in.
    pub inputs: u64,
}
