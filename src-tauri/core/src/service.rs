//! The product put together: settings, history, engine, supervisor and door, started and stopped as one.

use std::path::PathBuf;

use thiserror::Error;

use crate::paths::Paths;
use crate::supervisor::Supervisor;

#[derive(Debug, Clone)]
pub struct Options {
    pub paths: Paths,
    /// Turns the capability on for the life of this service, whatever the settings say.
    pub enable: bool,
    /// Instead of [`Paths::socket_file`].
    pub socket: Option<PathBuf>,
}

#[derive(Debug)]
pub struct Service {
    pub supervisor: Supervisor,
    pub socket: PathBuf,
    /// What the owner should know of the start: a settings file that was set aside, say.
    pub notices: Vec<String>,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error("This build of Sandtray has no service in it.")]
    Missing,
}

pub async fn start(options: Options) -> Result<Service, StartError> {
    drop(options);
    Err(StartError::Missing)
}

impl Service {
    /// Answers what runs, leaves no container behind, closes the door.
    pub async fn shutdown(self) {
        self.supervisor.shutdown().await;
    }
}
