//! The engine runs the containers. This file defines the interface that the rest of Sandtray uses. Only this folder
//! knows which client library implements it.

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

/// Labels on every container, by which the sweep finds those that a dead service left behind.
pub const LABEL_INSTANCE: &str = "sandtray.instance";
pub const LABEL_RUN: &str = "sandtray.run";

/// The name of a run's container. People read it in the engine's list, and the sweep removes only containers with such
/// a name. Labels do not suffice: an image inherits them from a container, and other containers from that image.
pub fn container_name(run: impl fmt::Display) -> String {
    format!("sandtray-{run}")
}

#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    fn endpoint(&self) -> &Endpoint;

    /// Describes the engine.
    ///
    /// # Errors
    ///
    /// If the engine does not answer within the adapter's bound.
    async fn info(&self) -> Result<EngineInfo, EngineError>;

    /// Watches the engine from the first poll on, until something changes. Returns how the watch ended.
    fn watch(&self) -> BoxFuture<'static, Watched>;

    /// The image as it is on the engine now; `None` if it has to be pulled.
    ///
    /// # Errors
    ///
    /// [`EngineError::DeclaresVolumes`] if the image does, and errors of the engine.
    async fn image(&self, name: &str) -> Result<Option<ImageInfo>, EngineError>;

    /// Pulls an image. Dropping the stream stops the pull. The stream ends after the last event, or after one error.
    fn pull(&self, name: &str) -> BoxStream<'static, Result<LayerEvent, PullError>>;

    /// Removes an image. Removing a missing one succeeds.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or refuses.
    async fn remove_image(&self, name: &str) -> Result<(), EngineError>;

    /// Makes an image from another one: runs a script in it as root, without a network, and keeps the result. This
    /// takes minutes. `given_up` ends it early. Do not drop the future: its container is gone only when it returns.
    ///
    /// # Errors
    ///
    /// If the script fails or exceeds its bounds, if it was given up, or if the engine fails.
    async fn derive(&self, derivation: &Derivation, given_up: &CancellationToken) -> Result<(), EngineError>;

    /// Creates a container.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoImage`] if the image is missing, and errors of the engine.
    async fn create(&self, spec: &ContainerSpec) -> Result<ContainerId, EngineError>;

    /// Attaches to all three streams, then starts the container.
    ///
    /// # Errors
    ///
    /// If the container is gone, or the engine fails.
    async fn start(&self, id: &ContainerId) -> Result<Attached, EngineError>;

    /// The container's end, for a run without a trailer.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoContainer`] if the container is gone, and errors of the engine.
    async fn exit(&self, id: &ContainerId) -> Result<Exit, EngineError>;

    /// The engine's record of a container's end, for a run without a trailer. Works for a container that is gone too.
    /// The adapter bounds the wait. An engine that keeps no record returns an empty one.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    async fn last_events(&self, id: &ContainerId) -> Result<LastEvents, EngineError>;

    /// The container's current use of resources, while it runs.
    ///
    /// # Errors
    ///
    /// If the container is gone, or the engine fails.
    async fn usage(&self, id: &ContainerId) -> Result<Usage, EngineError>;

    /// Kills the container if it runs, and removes it with its contents. Removing a missing one succeeds.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or refuses.
    async fn remove(&self, id: &ContainerId) -> Result<(), EngineError>;

    /// Every container with Sandtray's labels, of any instance, running or not.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
    async fn containers(&self) -> Result<Vec<ContainerInfo>, EngineError>;

    /// The value of [`LABEL_RUN`] on the image with this id, which its containers inherit. `None` if the image has no
    /// such label, or is gone.
    ///
    /// # Errors
    ///
    /// If the engine does not answer.
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

/// The description of a prepared image, made on the engine from a pulled one.
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
    /// The run id of the container that makes it.
    pub run: RunId,
}

/// The purpose of a container. [`container`] derives the walls from it.
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

/// `HOME-BOOT`: the data folder that owns a container, and the start of the service that made it. Two data folders may
/// share an engine; each sweeps only its own containers.
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
    /// The inverse of `Display`; `None` for a label of another form.
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

/// The attached streams of a started container.
pub struct Attached {
    /// `shutdown()` sends the program end-of-file.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Must be read or dropped: an engine cannot kill a container whose reader stalls.
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
    /// When the engine made it; `None` if it does not say.
    pub started_at: Option<SystemTime>,
}

/// An engine's record of a container's end. No program in the container can cause a record of a kill or a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastEvents {
    pub died: bool,
    /// The engine was asked to kill it.
    pub killed: bool,
    /// The kernel killed one of its processes for lack of memory.
    pub out_of_memory: bool,
    pub removed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Memory of the whole container, its tmpfs included, without the cache that the kernel may reclaim.
    pub memory_bytes: u64,
    /// CPU time since it started.
    pub cpu: Duration,
}

/// An error of the engine, or of the connection to it.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EngineError {
    /// The engine cannot be reached, or does not answer. The trouble says which.
    #[error("{0}")]
    Unavailable(EngineTrouble),
    #[error("the image is not there")]
    NoImage,
    #[error("the container is gone")]
    NoContainer,
    /// The engine makes a volume for each of them in every container, whatever the container's config says.
    #[error("the image declares volumes")]
    DeclaresVolumes,
    /// The engine answered with a refusal.
    #[error("the engine refused to {doing}: {message}")]
    Refused { doing: &'static str, message: String },
    /// The connection broke during a request.
    #[error("the connection to the engine broke while it was asked to {doing}: {message}")]
    Broken { doing: &'static str, message: String },
}

impl EngineError {
    /// The engine's trouble, if the error means that it cannot be reached. An engine that hangs up during a request is
    /// going down or coming up.
    pub fn trouble(&self, endpoint: &Endpoint) -> Option<EngineTrouble> {
        match self {
            Self::Unavailable(trouble) => Some(trouble.clone()),
            Self::Broken { .. } => Some(EngineTrouble::NotAnswering { endpoint: endpoint.clone() }),
            Self::NoImage | Self::NoContainer | Self::DeclaresVolumes | Self::Refused { .. } => None,
        }
    }
}
