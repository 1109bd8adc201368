//! What came of a run, as JSON; and what is told of it while it runs.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::Id;
use crate::run::{Captured, Limits, Outcome, OutputChunk, OutputFile, RunId, SkippedFile, Status, Stream};

/// Text of a file may grow by its escapes to twice its size and this many bytes. What would grow further (a file of
/// control characters grows sixfold) goes as base64, so that files within their cap fit a frame.
const ESCAPE_SLACK: usize = 1024;

#[derive(Debug, Serialize)]
pub struct RunReply<'a> {
    status: Status,
    exit_code: i32,
    stdout: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    stderr: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    files: Files<'a>,
    seconds: f64,
    run_id: RunId,
    memory_bytes: Option<u64>,
    cpu_seconds: Option<f64>,
    output_bytes: OutputBytes,
    skipped_files: &'a [SkippedFile],
    left_behind: &'a [String],
    queued_seconds: f64,
    image: &'a str,
    limits: LimitsInForce,
    #[serde(skip_serializing_if = "is_zero")]
    oom_kills: u32,
}

impl<'a> RunReply<'a> {
    pub fn new(run: RunId, outcome: &'a Outcome) -> Self {
        let (stdout, stdout_base64) = text(&outcome.stdout);
        let (stderr, stderr_base64) = text(&outcome.stderr);
        Self {
            status: outcome.status,
            exit_code: outcome.exit_code,
            stdout,
            stdout_base64,
            stderr,
            stderr_base64,
            files: Files(&outcome.files),
            seconds: outcome.wall.as_secs_f64(),
            run_id: run,
            memory_bytes: outcome.memory_bytes,
            cpu_seconds: outcome.cpu.map(|cpu| cpu.as_secs_f64()),
            output_bytes: OutputBytes { stdout: outcome.stdout.produced, stderr: outcome.stderr.produced },
            skipped_files: &outcome.skipped_files,
            left_behind: &outcome.left_behind,
            queued_seconds: outcome.queued.as_secs_f64(),
            image: &outcome.image,
            limits: LimitsInForce::from(&outcome.limits),
            oom_kills: outcome.oom_kills,
        }
    }
}

/// The text of a stream and, where it is not all of it, the exact bytes.
fn text(captured: &Captured) -> (Cow<'_, str>, Option<String>) {
    match String::from_utf8_lossy(&captured.bytes) {
        text @ Cow::Borrowed(_) => (text, None),
        text @ Cow::Owned(_) => (text, Some(STANDARD.encode(&captured.bytes))),
    }
}

#[derive(Debug, Clone, Copy, Serialize)]
struct OutputBytes {
    stdout: u64,
    stderr: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct LimitsInForce {
    seconds: f64,
    memory_mb: f64,
    cpus: f64,
}

impl From<&Limits> for LimitsInForce {
    fn from(limits: &Limits) -> Self {
        Self {
            seconds: limits.millis as f64 / 1000.0,
            memory_mb: limits.memory_bytes as f64 / f64::from(1 << 20),
            cpus: f64::from(limits.milli_cpus) / 1000.0,
        }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Name to content, in the form that `files` of the next call takes.
#[derive(Debug)]
struct Files<'a>(&'a [OutputFile]);

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for file in self.0 {
            map.serialize_entry(file.name.as_str(), &Content::of(&file.bytes))?;
        }
        map.end()
    }
}

/// Bytes as the protocol carries them, in either direction.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(&'a str),
    Binary { base64: String },
}

impl<'a> Content<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) if escaped(text) <= bytes.len() * 2 + ESCAPE_SLACK => Self::Text(text),
            _ => Self::Binary { base64: STANDARD.encode(bytes) },
        }
    }
}

/// The length of a text inside a JSON string.
fn escaped(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..0x20 => 6,
            _ => 1,
        })
        .sum()
}

/// The run that a notification is about. On its own, that of `code.started`: the program runs now.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct About<'a> {
    pub request_id: &'a Id,
    /// Its place among the runs of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    pub run_id: RunId,
}

/// A piece of output while it runs: `text`, or `base64` where it is not UTF-8.
#[derive(Debug, Serialize)]
pub struct Output<'a> {
    #[serde(flatten)]
    pub about: About<'a>,
    pub stream: Stream,
    #[serde(flatten, serialize_with = "serialize_chunk")]
    pub chunk: &'a [u8],
    /// Bytes of this stream that were left out before this piece, since the client read too slowly.
    #[serde(skip_serializing_if = "none_missed")]
    pub missed: u64,
}

impl<'a> Output<'a> {
    pub fn new(about: About<'a>, chunk: &'a OutputChunk) -> Self {
        Self { about, stream: chunk.stream, chunk: &chunk.bytes, missed: chunk.missed }
    }
}

fn serialize_chunk<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Piece<'a> {
        Text(&'a str),
        Base64(String),
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Piece::Text(text).serialize(serializer),
        Err(_) => Piece::Base64(STANDARD.encode(bytes)).serialize(serializer),
    }
}

fn none_missed(missed: &u64) -> bool {
    *missed == 0
}

/// What a run waits for before it starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Waiting {
    Queue,
    Engine,
    Image {
        image: String,
        fraction: f64,
        downloaded_bytes: u64,
        total_bytes: u64,
        /// All of it is here and is being prepared; otherwise left out.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        preparing: bool,
    },
}

#[derive(Debug, Serialize)]
pub struct WaitingNote<'a> {
    #[serde(flatten)]
    pub about: About<'a>,
    #[serde(flatten)]
    pub waiting: &'a Waiting,
}
