//! The result of a run and the notifications about it, as JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::Id;
use super::content::Given;
use crate::event::Waiting;
use crate::hint;
use crate::run::{
    Captured, CutBy, EndedBy, Interrupted, Limits, Outcome, OutputChunk, OutputFile, RunId, SkippedFile, Status, Stream,
};

/// Bytes by which escapes may lengthen a file's text beyond twice its size. Longer ones are sent as base64: a file of
/// control characters would grow sixfold.
const ESCAPE_SLACK: usize = 1024;

#[derive(Debug, Serialize, JsonSchema)]
pub struct RunReply<'a> {
    status: Status,
    ended_by: EndedBy,
    exit_code: i32,
    /// Set if a wall is the reason why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    stdout: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    stderr: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    #[schemars(with = "std::collections::BTreeMap<String, Given>")]
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
    /// Left out where the history has the run, as it should.
    #[serde(skip_serializing_if = "is_true")]
    recorded: bool,
}

impl<'a> RunReply<'a> {
    pub fn new(run: RunId, outcome: &'a Outcome) -> Self {
        let (stdout, stdout_base64) = text(&outcome.stdout);
        let (stderr, stderr_base64) = text(&outcome.stderr);
        Self {
            status: outcome.status,
            ended_by: outcome.ended_by,
            exit_code: outcome.exit_code,
            hint: hint::of(outcome),
            stdout,
            stdout_base64,
            stderr,
            stderr_base64,
            files: Files::new(&outcome.files, outcome.limits.file_bytes),
            seconds: outcome.wall.as_secs_f64(),
            run_id: run,
            memory_bytes: outcome.memory_bytes,
            cpu_seconds: outcome.cpu.map(|cpu| cpu.as_secs_f64()),
            output_bytes: OutputBytes::of(&outcome.stdout, &outcome.stderr),
            skipped_files: &outcome.skipped_files,
            left_behind: &outcome.left_behind,
            queued_seconds: outcome.queued.as_secs_f64(),
            image: &outcome.image,
            limits: LimitsInForce::from(&outcome.limits),
            oom_kills: outcome.oom_kills,
            recorded: outcome.recorded,
        }
    }
}

/// Of a run that was cut off, in the data of its error: the output as in a result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CutOff {
    cause: CutBy,
    seconds: f64,
    stdout: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    output_bytes: OutputBytes,
    run_id: RunId,
    #[serde(skip_serializing_if = "is_true")]
    recorded: bool,
}

impl CutOff {
    pub fn of(cut: &Interrupted) -> Self {
        let (stdout, stdout_base64) = text(&cut.stdout);
        let (stderr, stderr_base64) = text(&cut.stderr);
        Self {
            cause: cut.by,
            seconds: cut.wall.as_secs_f64(),
            stdout: stdout.into_owned(),
            stdout_base64,
            stderr: stderr.into_owned(),
            stderr_base64,
            output_bytes: OutputBytes::of(&cut.stdout, &cut.stderr),
            run_id: cut.run,
            recorded: cut.recorded,
        }
    }
}

/// A stream as text, and its exact bytes as base64 if it is not valid UTF-8.
fn text(captured: &Captured) -> (Cow<'_, str>, Option<String>) {
    match String::from_utf8_lossy(&captured.bytes) {
        text @ Cow::Borrowed(_) => (text, None),
        text @ Cow::Owned(_) => (text, Some(STANDARD.encode(&captured.bytes))),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
struct OutputBytes {
    stdout: u64,
    stderr: u64,
}

impl OutputBytes {
    fn of(stdout: &Captured, stderr: &Captured) -> Self {
        Self { stdout: stdout.produced, stderr: stderr.produced }
    }
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
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

fn is_true(holds: &bool) -> bool {
    *holds
}

/// File names and contents, in the form that `files` of a request takes.
#[derive(Debug)]
struct Files<'a> {
    files: &'a [OutputFile],
    /// No file may take more than its base64 form. Otherwise files within their cap would not fit a frame.
    dense: bool,
}

impl<'a> Files<'a> {
    fn new(files: &'a [OutputFile], cap: u64) -> Self {
        let most = base64_length(usize::try_from(cap).unwrap_or(usize::MAX));
        // This bound is cheap, and almost always settles the question without a scan of the bytes.
        let at_worst: usize = files.iter().map(|file| text_may_take(&file.bytes)).sum();
        let takes = |file: &OutputFile| match std::str::from_utf8(&file.bytes) {
            Ok(text) if escaped(text) <= text_may_take(&file.bytes) => escaped(text),
            _ => base64_length(file.bytes.len()),
        };
        Self { files, dense: at_worst > most && files.iter().map(takes).sum::<usize>() > most }
    }
}

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.files.len()))?;
        for OutputFile { name, bytes } in self.files {
            let most = if self.dense { base64_length(bytes.len()) } else { text_may_take(bytes) };
            map.serialize_entry(name.as_str(), &Content::within(bytes, most))?;
        }
        map.end()
    }
}

/// Bytes in the form that requests and replies use.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    Text(&'a str),
    Binary { base64: String },
}

impl<'a> Content<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self::within(bytes, text_may_take(bytes))
    }

    /// As a string if the bytes are UTF-8 and their escaped text has at most `most` bytes, otherwise as base64.
    fn within(bytes: &'a [u8], most: usize) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) if escaped(text) <= most => Self::Text(text),
            _ => Self::Binary { base64: STANDARD.encode(bytes) },
        }
    }
}

fn text_may_take(bytes: &[u8]) -> usize {
    bytes.len() * 2 + ESCAPE_SLACK
}

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3).saturating_mul(4)
}

/// Bytes of a text inside a JSON string.
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
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct About<'a> {
    pub request_id: &'a Id,
    /// Its place among the runs of a batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    pub run_id: RunId,
}

/// A piece of output while it runs: `text`, or `base64` where it is not UTF-8.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output<'a> {
    #[serde(flatten)]
    pub about: About<'a>,
    pub stream: Stream,
    #[serde(flatten, serialize_with = "serialize_chunk")]
    #[schemars(with = "Piece<'_>")]
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

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Piece<'a> {
    Text(&'a str),
    Base64(String),
}

fn serialize_chunk<S: Serializer>(bytes: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Piece::Text(text).serialize(serializer),
        Err(_) => Piece::Base64(STANDARD.encode(bytes)).serialize(serializer),
    }
}

fn none_missed(missed: &u64) -> bool {
    *missed == 0
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WaitingNote<'a> {
    #[serde(flatten)]
    pub about: About<'a>,
    /// Where it waits for its image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<&'a str>,
    #[serde(flatten)]
    pub waiting: Waiting,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::codec::MAX_FRAME;
    use crate::name::FileName;
    use crate::protocol::{MAX_ID_BYTES, Response};
    use crate::run::SkipReason;
    use crate::settings::Settings;

    fn file(name: &str, bytes: Vec<u8>) -> OutputFile {
        OutputFile { name: FileName::parse(name).unwrap(), bytes: bytes.into() }
    }

    /// The largest outcome of a program, without its files.
    fn worst(limits: Limits) -> Outcome {
        let mut output = vec![1; limits.output_bytes as usize + 64];
        output[0] = 0xff;
        let output = Captured { bytes: Bytes::from(output), produced: u64::MAX };
        Outcome {
            status: Status::OutputLimit,
            ended_by: EndedBy::ClientLeft,
            exit_code: i32::MIN,
            stdout: output.clone(),
            stderr: output,
            files: Vec::new(),
            skipped_files: vec![SkippedFile { name: "\u{1}".repeat(303), reason: SkipReason::SpecialFile }; 101],
            left_behind: vec!["\u{1}".repeat(255); 100],
            wall: Duration::from_secs(1).div_f64(3.0),
            queued: Duration::from_secs(1).div_f64(3.0),
            memory_bytes: Some(u64::MAX),
            cpu: Some(Duration::from_secs(1).div_f64(3.0)),
            oom_kills: u32::MAX,
            image: "i".repeat(600),
            limits,
            recorded: false,
        }
    }

    /// `count` files with the longest names allowed, which together hold `cap` bytes.
    fn files(count: usize, cap: usize, byte: u8) -> Vec<OutputFile> {
        (0..count).map(|at| file(&format!("{at:03}{}", "\u{1}".repeat(252)), vec![byte; cap / count])).collect()
    }

    #[test]
    fn whatever_a_program_does_its_reply_fits_a_frame() {
        let settings = |files_mb, output_kb| {
            let mut settings = Settings::default();
            (settings.limits.files_mb, settings.limits.output_kb) = (files_mb, output_kb);
            settings
        };
        let mut fullest = 0;
        for (files_mb, kinds) in [
            (10, vec![files(256, 10 << 20, b'\n'), files(1, 7 << 20, b'"')]),
            (5, vec![[files(1, 2 << 20, b'\n'), files(1, 3 << 20, 0xff)].concat()]),
            (1, vec![files(1, 1 << 20, 1), files(256, 1 << 20, 0xff)]),
        ] {
            let output_kb = (1..=4096).rev().find(|kb| settings(files_mb, *kb).validate().is_empty()).unwrap();
            let mut outcome = worst(settings(files_mb, output_kb).limits());
            for files in kinds {
                outcome.files = files;
                let id = Id::read(&serde_json::value::to_raw_value(&"i".repeat(MAX_ID_BYTES - 2)).unwrap()).unwrap();
                let line = serde_json::to_vec(&Response::new(&id, Ok(RunReply::new(RunId::generate(), &outcome))));
                let bytes = line.unwrap().len();
                assert!(bytes <= MAX_FRAME, "{bytes} bytes with {files_mb} MB and {output_kb} KB");
                fullest = fullest.max(bytes);
            }
        }
        assert!(fullest > MAX_FRAME - (1 << 20), "the bounds could be wider: {fullest}");
    }

    #[test]
    fn files_are_text_where_they_may_and_base64_where_that_would_not_fit() {
        let lines = [file("a", b"a\n".repeat(200_000)), file("b", b"\n".repeat(400_000))];
        let form = |cap| {
            let value = serde_json::to_value(Files::new(&lines, cap)).unwrap();
            (value["a"].is_string(), value["b"].is_string())
        };
        // As JSON strings, 600,000 and 800,000 bytes.
        assert_eq!(form(5 << 20), (true, true));
        assert_eq!(form(1_050_000), (true, true));
        assert_eq!(form(1_049_000), (false, false));
        let mixed = [file("plain", vec![b'x'; 500_000]), file("lines", b"\n".repeat(500_000))];
        let value = serde_json::to_value(Files::new(&mixed, 1_000_000)).unwrap();
        assert_eq!((value["plain"].is_string(), value["lines"]["base64"].is_string()), (true, true));
    }
}
