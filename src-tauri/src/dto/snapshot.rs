//! The present state as the window and the tray show it, in one value.

use sandtray_core::event::Waiting;
use sandtray_core::language::Language;
use serde::Serialize;

use super::history::RunRow;
use super::trouble::TroubleView;

/// What a window hears between opening and closing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WindowEvent {
    /// At once, and again after each change.
    Snapshot { snapshot: Box<OwnerSnapshot> },
    /// A run ended, or did not happen; the history has it.
    Finished { run: Box<RunRow> },
    /// Something that the owner should read once.
    Notice {
        text: String,
        /// Where it can be seen.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        to: Option<Navigate>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct OwnerSnapshot {
    pub version: String,
    /// The window is open for the first time on this computer.
    pub first_start: bool,
    pub service: ServiceView,
    pub enabled: bool,
    pub engine: EngineView,
    /// Containers that stand ready for the next run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub warm: Option<u32>,
    pub images: Vec<ImageView>,
    /// Oldest first.
    pub running: Vec<LiveRunView>,
    /// In the order in which they will start.
    pub queued: Vec<LiveRunView>,
    /// When running code was turned on, if no notification told the owner and the window has not shown it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub turned_on_ms: Option<u64>,
    /// While runs cannot be recorded, or not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub history_trouble: Option<HistoryTroubleView>,
    /// Files that were set aside, and the like.
    pub notices: Vec<String>,
    /// Where agents connect.
    pub socket: String,
    /// Another number after each coming and going of an agent: the list of them is to be read anew.
    pub visits: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HistoryTroubleView {
    /// A few words: "Disk full: runs aren't recorded".
    pub short: String,
    /// How many runs it has cost, and why.
    pub message: String,
    pub hint: String,
    /// Whether the next run will be recorded, as far as is known.
    pub records: bool,
}

/// Whether this app is the one that runs things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ServiceView {
    Starting,
    Here,
    /// Another process, `sandtray serve` for one, holds the data folder. Nothing can be changed from here.
    Elsewhere {
        message: String,
        hint: String,
    },
    Failed {
        message: String,
        hint: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EngineView {
    Checking,
    Ready(EngineFacts),
    Trouble(TroubleView),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EngineFacts {
    /// "Docker", "Podman".
    pub name: String,
    pub version: String,
    pub api_version: String,
    pub endpoint: EndpointView,
    pub os: String,
    pub arch: String,
    pub cpus: u32,
    pub memory_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct EndpointView {
    pub url: String,
    /// "the default socket", "DOCKER_HOST", "Colima".
    pub found: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ImageView {
    pub language: Language,
    /// "Python", "JavaScript".
    pub title: String,
    /// What an agent may rely on: "3.12", "Node 22".
    pub language_version: String,
    pub image: String,
    /// The name says which version, and not only its tag.
    pub pinned: bool,
    /// Sandtray fetched it itself. Otherwise it is not known who did.
    pub fetched: bool,
    #[serde(flatten)]
    pub state: ImageStateView,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ImageStateView {
    /// Not looked at yet, or there is no engine to ask.
    Unknown,
    NotPulled,
    Pulling {
        /// 0 to 1, never going back.
        fraction: f64,
        downloaded_bytes: u64,
        /// Of the layers whose size is known so far; 0 while none is.
        total_bytes: u64,
        /// 0 while it unpacks.
        bytes_per_second: f64,
    },
    /// All of it is here; what is done once before its programs run is being done, which has no figure.
    Preparing,
    /// Here, and prepared when its first program runs.
    Unprepared {
        size_bytes: u64,
        /// Of the version that is here, `sha256:...`, where it came from a registry.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        digest: Option<String>,
    },
    Ready {
        size_bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        digest: Option<String>,
    },
    Failed {
        message: String,
        hint: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LiveRunView {
    pub run_id: String,
    pub language: Language,
    /// The client's own word.
    pub client: String,
    /// Its program, from the kernel.
    pub program: Option<String>,
    pub label: Option<String>,
    /// What it is called without one.
    pub title: Option<String>,
    /// Milliseconds since 1970: when the program started, or while it waits, when it was asked for.
    pub started_ms: u64,
    pub limit_seconds: f64,
    /// What it waits for, until its program runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub waiting: Option<Waiting>,
}

/// Where the tray sends the window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Navigate {
    pub page: Page,
    pub run_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Page {
    Overview,
    Runs,
    Agents,
    Settings,
}
