//! The types of a run: what it is, independent of the caller and the engine. No I/O, no engine, no wire format.

mod end;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::language::Language;
use crate::name::FileName;

pub use end::{Cancel, CutBy, EndedBy, INTERRUPTED, Interrupted};

/// Bounds on one call, whatever the owner allows.
pub const MAX_CODE_BYTES: usize = 1 << 20;
pub const MAX_STDIN_BYTES: usize = 5 << 20;
pub const MAX_ARGS: usize = 64;
/// Of all arguments together: PID 1 reads them byte by byte.
pub const MAX_ARGS_BYTES: usize = 8 << 10;
/// In each direction, so that one run's output can be the next one's input.
pub const MAX_FILES: usize = 256;

/// The id of one call of `code.run`. Ids sort by the time they were made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(#[serde(with = "uuid::serde::simple")] Uuid);

impl JsonSchema for RunId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Ids sort by the time they were made.", "type": "string", "pattern": "^[0-9a-f]{32}$" })
    }
}

impl RunId {
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = uuid::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self)
    }
}

/// A connection's identity inside this process. Runs belong to it and end with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

impl ClientId {
    /// Ids of connections count up from one. Ids of the owner count down from here, and belong to no connection.
    const FIRST_OF_OWNER: u64 = u64::MAX;

    /// An id for the next run that the owner asks for in this process.
    pub fn next_of_owner() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        Self(Self::FIRST_OF_OWNER - COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// Decided by the id, not by a name that any client may use.
    pub fn is_of_owner(self) -> bool {
        self.0 > Self::FIRST_OF_OWNER / 2
    }
}

/// The client that asked for a run. `name` is what the client says; `pid` and `program` come from the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub id: ClientId,
    pub name: String,
    pub pid: Option<u32>,
    pub program: Option<String>,
}

/// What to do with a stream that passes its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// End the run with the verdict `output_limit`.
    #[default]
    Kill,
    /// Let it run; keep the first and the last half of the cap.
    Truncate,
}

/// The limits of one run, already lowered to what both the owner and the agent allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Wall time of the program, in milliseconds.
    pub millis: u64,
    /// Memory of the whole container, tmpfs included, in bytes.
    pub memory_bytes: u64,
    /// Thousandths of one CPU.
    pub milli_cpus: u32,
    pub processes: u32,
    /// Cap of each output stream, in bytes.
    pub output_bytes: u64,
    /// Cap of all files together, in bytes; the same each way.
    pub file_bytes: u64,
}

impl Limits {
    /// The lower value of each limit.
    pub fn at_most(self, other: &Limits) -> Limits {
        Limits {
            millis: self.millis.min(other.millis),
            memory_bytes: self.memory_bytes.min(other.memory_bytes),
            milli_cpus: self.milli_cpus.min(other.milli_cpus),
            processes: self.processes.min(other.processes),
            output_bytes: self.output_bytes.min(other.output_bytes),
            file_bytes: self.file_bytes.min(other.file_bytes),
        }
    }

    pub fn wall(&self) -> Duration {
        Duration::from_millis(self.millis)
    }
}

/// A file placed beside the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    pub name: FileName,
    pub bytes: Bytes,
}

/// A request that passed [`crate::policy`]. Later stages accept only this form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSpec {
    pub id: RunId,
    pub language: Language,
    /// The program, with a byte order mark dropped and, for shell, CRLF made LF.
    pub code: Bytes,
    /// The program's own arguments: no NUL in them.
    pub args: Vec<String>,
    pub files: Vec<InputFile>,
    pub stdin: Bytes,
    pub limits: Limits,
    pub overflow: Overflow,
    pub label: Option<String>,
}

impl RunSpec {
    /// The bytes that its caller sent.
    pub fn weight(&self) -> usize {
        let files = self.files.iter().map(|file| file.bytes.len() + file.name.as_str().len());
        let args: usize = self.args.iter().map(String::len).sum();
        self.code.len() + args + self.stdin.len() + files.sum::<usize>()
    }
}

/// The one honest verdict of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The program exited with 0.
    Ok,
    /// The program exited with another code, or a signal of its own doing ended it.
    Failed,
    Timeout,
    OutOfMemory,
    OutputLimit,
    Cancelled,
}

impl Status {
    pub const ALL: [Status; 6] =
        [Status::Ok, Status::Failed, Status::Timeout, Status::OutOfMemory, Status::OutputLimit, Status::Cancelled];

    /// The word on the wire and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::OutOfMemory => "out_of_memory",
            Status::OutputLimit => "output_limit",
            Status::Cancelled => "cancelled",
        }
    }
}

impl FromStr for Status {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|status| status.as_str() == word).ok_or(())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which of the program's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The kept part of a stream, and the stream's length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// At most the cap, plus the line that counts the bytes left out by truncation.
    pub bytes: Bytes,
    /// The length of the stream before the cap, in bytes.
    pub produced: u64,
}

/// A file that the program wrote under `out/`; the name is relative to `out/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    pub name: FileName,
    pub bytes: Bytes,
}

/// Something under `out/` that is not returned, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct SkippedFile {
    /// As the program named it; bytes that are not UTF-8 are replaced.
    pub name: String,
    pub reason: SkipReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    Symlink,
    HardLink,
    /// A fifo, a socket or a device.
    SpecialFile,
    /// It, or it together with those before it, passes the cap of file bytes.
    TooLarge,
    /// It comes after the greatest number of files that a run may return.
    TooMany,
    /// The name is not UTF-8, or holds a backslash, or a component is too long.
    BadName,
    TooDeep,
    /// The program took its own right to read it away.
    Unreadable,
    /// The archive passed its bound; this and what would have come after it was not read.
    NotRead,
}

/// The result of a run. A program that fails is an outcome; a failure of Sandtray is a [`crate::error::RunError`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub status: Status,
    pub ended_by: EndedBy,
    /// 128 + signal if a signal ended the program; 137 if Sandtray killed it.
    pub exit_code: i32,
    pub stdout: Captured,
    pub stderr: Captured,
    pub files: Vec<OutputFile>,
    pub skipped_files: Vec<SkippedFile>,
    /// Top-level names that the program wrote beside itself. They are not returned.
    pub left_behind: Vec<String>,
    /// Wall time of the program itself.
    pub wall: Duration,
    /// The wait for a place, an image and a container.
    pub queued: Duration,
    /// Peak of the whole container. If the container ended without a trailer: as last read from outside, if its figures
    /// were read while it ran.
    pub memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
    /// The number of processes that the kernel killed for lack of memory, however the program ended.
    pub oom_kills: u32,
    /// The image that ran: `name@digest` if the digest is known.
    pub image: String,
    pub limits: Limits,
    /// Whether the run is in the history.
    pub recorded: bool,
}

impl Outcome {
    /// The approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        let files = self.files.iter().map(|file| file.bytes.len() + file.name.as_str().len());
        let names = self.skipped_files.iter().map(|file| &file.name).chain(&self.left_behind).map(String::len);
        size_of::<Self>() + self.stdout.bytes.len() + self.stderr.bytes.len() + files.chain(names).sum::<usize>()
    }
}

/// Bytes of each stream that a slow receiver did not get and has not been told of yet.
#[derive(Debug, Clone, Default)]
pub struct Missed(Arc<[AtomicU64; 2]>);

impl Missed {
    pub fn add(&self, stream: Stream, bytes: u64) {
        self.of(stream).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the count and resets it. The caller reports it.
    pub fn take(&self, stream: Stream) -> u64 {
        self.of(stream).swap(0, Ordering::Relaxed)
    }

    fn of(&self, stream: Stream) -> &AtomicU64 {
        match stream {
            Stream::Stdout => &self.0[0],
            Stream::Stderr => &self.0[1],
        }
    }
}

/// A piece of output while the program runs. A character that is cut in the middle is held back until it is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChunk {
    pub stream: Stream,
    pub bytes: Bytes,
    /// Bytes of this stream that the receiver was too slow to get, just before this piece.
    pub missed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_survives_its_text_form_and_sorts_by_time() {
        let first = RunId::generate();
        let second = RunId::generate();
        assert_eq!(first.to_string().parse::<RunId>().unwrap(), first);
        assert_eq!(first.to_string().len(), 32);
        assert_eq!(serde_json::to_value(first).unwrap(), first.to_string());
        assert_eq!(serde_json::to_value(first).unwrap(), first.to_string());
        assert_eq!(serde_json::from_value::<RunId>(first.to_string().into()).unwrap(), first);
        assert!(first < second);
    }

    #[test]
    fn every_status_has_its_own_word() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }
}
