//! The engine: the thing that runs containers. This file is the seam: what the rest of the product may ask of one.
//! Which client library answers is known only below this folder.

pub mod container;
pub mod discovery;
pub mod docker;
#[cfg(any(test, feature = "fake-engine"))]
pub mod fake;
pub mod health;
pub mod pull;
pub mod seccomp;
pub mod state;
mod unfit;
pub mod walls;

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use crate::language::Language;
use crate::run::{Limits, RunId, Stream};

pub use pull::{LayerEvent, PullError, PullFigure};
pub use state::{Endpoint, EngineInfo, EngineState, EngineTrouble, NamedBy};
pub use unfit::Unfit;

/// Labels on every container, by which the sweep finds what a dead service left behind.
pub const LABEL_INSTANCE: &str = "sandtray.instance";
pub const LABEL_RUN: &str = "sandtray.run";

/// The name of a run's container: for a person who reads the engine's own list, and for the sweep, which removes only
/// containers with such a name. Labels do not suffice: an image inherits them from a container, and other containers
/// from that image.
pub fn container_name(run: impl fmt::Display) -> String {
    format!("sandtray-{run}")
}

#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    fn endpoint(&self) -> &Endpoint;

    /// Answers within the adapter's own bound, or fails.
    async fn info(&self) -> Result<EngineInfo, EngineError>;

    /// Watches the engine from the first poll on, until something changes. Returns how the watch ended.
    fn watch(&self) -> BoxFuture<'static, Watched>;

    /// The image as it is here now; `None` where it has to be pulled. [`EngineError::DeclaresVolumes`] where it does.
    async fn image(&self, name: &str) -> Result<Option<ImageInfo>, EngineError>;

    /// Fetches an image. Dropping the stream stops the pull. The stream ends after the last event, or after one error.
    fn pull(&self, name: &str) -> BoxStream<'static, Result<LayerEvent, PullError>>;

    async fn remove_image(&self, name: &str) -> Result<(), EngineError>;

    /// Makes an image of another: runs a script in it as root, without a network, and keeps what it left. Long: minutes.
    /// Ends early once it is given up. Not to be dropped: the container that it takes is gone when it returns.
    async fn derive(&self, derivation: &Derivation, given_up: &CancellationToken) -> Result<(), EngineError>;

    /// [`EngineError::NoImage`] where the image is missing.
    async fn create(&self, spec: &ContainerSpec) -> Result<ContainerId, EngineError>;

    /// Attaches to all three streams, then starts.
    async fn start(&self, id: &ContainerId) -> Result<Attached, EngineError>;

    /// How it ended. For the case in which its own last words did not arrive.
    async fn exit(&self, id: &ContainerId) -> Result<Exit, EngineError>;

    /// What it recorded of the container's end: for one whose own last words did not arrive. Works for one that is gone.
    /// Ends within a bound of its own; an engine that keeps no record tells nothing.
    async fn last_events(&self, id: &ContainerId) -> Result<LastEvents, EngineError>;

    /// What it uses now, while it runs.
    async fn usage(&self, id: &ContainerId) -> Result<Usage, EngineError>;

    /// Kills it if it runs, and removes it with all it held. One that is gone already is a success.
    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError>;

    /// Every container with our labels, of whatever instance, running or not.
    async fn containers(&self) -> Result<Vec<ContainerInfo>, EngineError>;

    /// The value of [`LABEL_RUN`] on the image with this id, which its containers inherit. `None` where the image has no
    /// such label, or is gone.
    async fn run_label_of_image(&self, id: &str) -> Result<Option<String>, EngineError>;
}

/// How a watch of an engine ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The engine may now be another process, or have another configuration.
    Changed,
    /// The engine cannot be watched.
    Refused,
}

/// An image of our own, made on the engine from one that was pulled.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivation {
    /// The id of the image to start from.
    pub base: String,
    /// `REPOSITORY:TAG` of the result.
    pub name: String,
    pub script: &'static str,
    pub path: &'static str,
    /// The limits as far as the engine grants them.
    pub limits: Limits,
    pub instance: InstanceId,
    /// Of the container that it takes, as every container has one.
    pub run: RunId,
}

/// What a container is made for. [`container`] turns it into walls.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerSpec {
    pub image: String,
    pub language: Language,
    pub limits: Limits,
    pub instance: InstanceId,
    pub run: RunId,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerId(pub String);

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `HOME-BOOT`: the data folder that owns a container, and the start of the service that made it.
/// Two owners may share an engine; each sweeps only its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InstanceId {
    pub home: String,
    pub boot: String,
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.home, self.boot)
    }
}

impl InstanceId {
    /// The inverse of `Display`; `None` for a label that is not ours.
    pub fn parse(label: &str) -> Option<Self> {
        let (home, boot) = label.split_once('-')?;
        (!home.is_empty() && !boot.is_empty()).then(|| Self { home: home.into(), boot: boot.into() })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerInfo {
    pub id: ContainerId,
    pub name: String,
    /// The id of the image that it was made from.
    pub image: String,
    /// The value of [`LABEL_INSTANCE`].
    pub instance: String,
    /// The value of [`LABEL_RUN`].
    pub run: String,
    pub running: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageInfo {
    /// `sha256:...` of the image's configuration: changes when the image does.
    pub id: String,
    /// `sha256:...` of the manifest as the registry names it, where the engine knows.
    pub digest: Option<String>,
    pub size_bytes: u64,
}

/// The program's side of a started container.
pub struct Attached {
    /// `shutdown()` gives the program end-of-file.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Must be read or dropped: an engine whose reader stalls cannot kill the container.
    pub output: BoxStream<'static, Result<Frame, EngineError>>,
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Attached")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub stream: Stream,
    pub bytes: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    pub running: bool,
    pub exit_code: i32,
    pub oom_killed: bool,
    /// When the engine made it; None where it does not say.
    pub started_at: Option<SystemTime>,
}

/// What an engine recorded of a container's end. No program in the container can make it record a kill or a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastEvents {
    pub died: bool,
    /// The engine was asked to kill it.
    pub killed: bool,
    /// The kernel killed one of its processes for want of memory.
    pub out_of_memory: bool,
    pub removed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Of the whole container, its tmpfs included; without the cache that the kernel may take back at any time.
    pub memory_bytes: u64,
    /// CPU time since it started.
    pub cpu: Duration,
}

/// What can go wrong between us and an engine.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EngineError {
    /// It cannot be reached or does not answer; the state says which.
    #[error("{0}")]
    Unavailable(EngineTrouble),
    #[error("the image is not there")]
    NoImage,
    #[error("the container is gone")]
    NoContainer,
    /// The engine makes a volume for each in every container, whatever the container's own config says.
    #[error("the image declares volumes")]
    DeclaresVolumes,
    /// It answered with a refusal of its own.
    #[error("the engine refused to {doing}: {message}")]
    Refused { doing: &'static str, message: String },
    /// The conversation broke off in the middle.
    #[error("the connection to the engine broke while it was asked to {doing}: {message}")]
    Broken { doing: &'static str, message: String },
}

impl EngineError {
    /// The engine's trouble, where the error says that it cannot be reached. One that hangs up in the middle is on its way
    /// down or up.
    pub fn trouble(&self, endpoint: &Endpoint) -> Option<EngineTrouble> {
        match self {
            Self::Unavailable(trouble) => Some(trouble.clone()),
            Self::Broken { .. } => Some(EngineTrouble::NotAnswering { endpoint: endpoint.clone() }),
            Self::NoImage | Self::NoContainer | Self::DeclaresVolumes | Self::Refused { .. } => None,
        }
    }
}
