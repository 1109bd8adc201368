//! The state as windows and subscribers see it: one [`Snapshot`] of everything, then an [`Event`] for each change.

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

pub use crate::engine::PullFigure;
pub use crate::engine::walls::Launcher;
use crate::engine::{EngineState, ImageInfo, PullError};
use crate::language::Language;
use crate::run::{CutBy, RunId, Status};

/// The state at one moment. Published whole after every change; a receiver can always read the latest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot {
    pub enabled: bool,
    pub engine: EngineState,
    pub images: Vec<ImageStatus>,
    pub running: Vec<LiveRun>,
    pub queued: Vec<LiveRun>,
    /// Warm containers, of all languages.
    pub warm: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ImageStatus {
    pub language: Language,
    pub image: String,
    #[serde(flatten)]
    pub state: ImageState,
    /// The wall that the probe found missing in this image: nothing runs in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_missing: Option<String>,
    /// Whether its programs can read PID 1 of their containers, once tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launcher: Option<Launcher>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ImageState {
    /// Not asked yet, or the engine is not there to be asked.
    Unknown,
    NotPulled,
    Pulling(PullFigure),
    /// Here; what is done once before its first program runs is still to be done.
    Unprepared(ImageInfo),
    Ready(ImageInfo),
    Failed {
        error: PullError,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LiveRun {
    pub run_id: RunId,
    pub language: Language,
    pub client: String,
    /// The client's program, from the kernel. Shown to the owner alone.
    #[serde(skip)]
    pub program: Option<String>,
    pub label: Option<String>,
    /// A few words of its program where there is no label: for the owner alone.
    #[serde(skip)]
    pub title: Option<String>,
    #[serde(serialize_with = "crate::time::serialize_millis")]
    #[schemars(with = "u64")]
    pub since: SystemTime,
    /// Wall time that the program may take.
    pub limit_seconds: f64,
    /// None once the program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

/// What a run that was accepted waits for before its program runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Waiting {
    /// A place among the running programs. So many runs start before this one.
    Turn { ahead: usize },
    /// Its client has results that it has not read yet.
    Unread,
    /// The engine: it is being looked for, or asked for the image.
    Engine,
    /// The image is being fetched.
    Pull {
        /// 0 to 1.
        fraction: f64,
        downloaded_bytes: u64,
        /// Of the layers whose size is known so far.
        total_bytes: u64,
    },
    /// The image is being prepared, once, before its first program.
    Preparation,
    /// The walls are being proved in the image.
    Check,
    /// It has its place, and its container is being made.
    Starting,
}

/// The client that asked for a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Asker {
    /// The name that the client gives.
    pub name: String,
    /// The client's program, from the kernel.
    pub program: Option<String>,
    /// Whether it is the owner, in this process.
    pub own: bool,
}

/// A change of the state. Events carry no output and no code.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    EnabledChanged {
        enabled: bool,
    },
    EngineChanged {
        engine: EngineState,
    },
    PullProgress {
        image: String,
        figure: PullFigure,
    },
    PullFinished {
        image: String,
    },
    PullFailed {
        image: String,
        error: PullError,
    },
    RunQueued {
        run_id: RunId,
        /// The client that asked for the run. Shown to the owner alone. It is part of the event, because a run may be
        /// over before the snapshot is read.
        #[serde(skip)]
        by: Asker,
    },
    RunStarted {
        run_id: RunId,
    },
    RunFinished {
        run_id: RunId,
        status: Status,
    },
    /// The program had started, and neither it nor Sandtray ended the run.
    RunCutOff {
        run_id: RunId,
        by: CutBy,
    },
    /// The run did not happen; `code` is that of the error.
    RunRefused {
        run_id: RunId,
        code: String,
    },
}
