//! Past runs, as the list and a run's page show them.

use sandtray_core::history::{FileFigure, Side, StreamFigure};
use sandtray_core::run::SkippedFile;
use serde::{Deserialize, Serialize};

/// Which runs to list. Absent: all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct HistoryFilter {
    /// The `next` of the page before.
    #[cfg_attr(test, ts(optional))]
    pub before: Option<String>,
    /// At most 500.
    pub limit: u32,
    #[cfg_attr(test, ts(optional))]
    pub language: Option<String>,
    /// A verdict, or the code of a refusal.
    #[cfg_attr(test, ts(optional))]
    pub status: Option<String>,
    /// The client's whole name.
    #[cfg_attr(test, ts(optional))]
    pub client: Option<String>,
    /// The file name of its program; empty: it is not known.
    #[cfg_attr(test, ts(optional))]
    pub program: Option<String>,
    /// Words that must all start somewhere in the label, the client's name, or the beginning of the code, of the output
    /// or of the inputs.
    #[cfg_attr(test, ts(optional))]
    pub text: Option<String>,
    /// Milliseconds since 1970: asked for then or later.
    #[cfg_attr(test, ts(optional))]
    pub from_ms: Option<u64>,
    /// And before this.
    #[cfg_attr(test, ts(optional))]
    pub until_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HistoryPage {
    /// Newest first.
    pub runs: Vec<RunRow>,
    /// Absent at the end.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunRow {
    pub run_id: String,
    /// Milliseconds since 1970, when it was asked for.
    pub at_ms: u64,
    pub client: String,
    pub client_pid: Option<u32>,
    pub client_program: Option<String>,
    pub language: String,
    pub label: Option<String>,
    /// What it is called without one.
    pub title: Option<String>,
    /// `ok`, `failed`, `timeout`, `out_of_memory`, `output_limit`, `cancelled`, `interrupted`, or the code of the error
    /// where the run did not happen.
    pub status: String,
    /// `program`, `limit`, `client`, `client_left`, `owner`, `switch`, `shutdown`; of an interrupted run `engine`,
    /// `outside`, `unknown`. Absent where it did not happen, and for runs of earlier versions.
    pub ended_by: Option<String>,
    /// The sentence of the error where the run did not happen.
    pub error: Option<String>,
    /// The sentence of a run that was cut off.
    pub cut_off: Option<String>,
    pub exit_code: Option<i32>,
    /// Wall time of the program.
    pub seconds: Option<f64>,
    /// Waiting for a place, an image and a container.
    pub queued_seconds: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub cpu_seconds: Option<f64>,
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
    pub limits: RunLimits,
    /// Its program, inputs and output were given up for want of disk.
    pub given_up: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunLimits {
    pub seconds: f64,
    pub memory_bytes: u64,
    pub cpus: f64,
    pub processes: u32,
    pub output_bytes: u64,
    pub file_bytes: u64,
}

/// A run's page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunRecord {
    pub run: RunRow,
    /// Absent where the owner keeps metrics only, or the disk had no room.
    pub body: Option<RunBody>,
    /// Why it cannot be run again as it was, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub not_again: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RunBody {
    pub code: Piece,
    /// The program's own arguments.
    pub args: Vec<String>,
    pub stdout: Piece,
    pub stderr: Piece,
    pub files: Vec<FileView>,
    /// Standard input first, if there was any.
    pub inputs: Vec<InputView>,
    pub skipped_files: Vec<SkippedFile>,
    pub left_behind: Vec<String>,
}

/// Up to a megabyte of what a program wrote. Hostile text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Piece {
    /// Bytes that are no text are replaced.
    pub text: String,
    /// The same bytes, where they are not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub base64: Option<String>,
    /// There is more of it in the history.
    pub cut: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FileView {
    pub name: String,
    pub size: u64,
    pub preview: Preview,
}

/// What came in with the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct InputView {
    /// `null`: standard input.
    pub name: Option<String>,
    pub size: u64,
    /// `false` in runs of versions that kept no inputs.
    pub kept: bool,
    pub preview: Preview,
}

/// Where a file of a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum FileSide {
    /// It came back.
    #[default]
    Out,
    /// It came in.
    In,
    Stdin,
}

impl FileSide {
    pub fn named(self, name: &str) -> Side {
        match self {
            Self::Out => Side::Out(name.into()),
            Self::In => Side::In(name.into()),
            Self::Stdin => Side::Stdin,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Preview {
    Text {
        text: String,
        cut: bool,
    },
    Csv {
        text: String,
        cut: bool,
    },
    /// By its first bytes. What it shows is asked for apart: `history_picture`.
    Picture,
    None,
}

/// One dot of the picture of recent activity.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RecentRun {
    pub run_id: String,
    pub at_ms: u64,
    pub seconds: Option<f64>,
    pub status: String,
    pub language: String,
}
