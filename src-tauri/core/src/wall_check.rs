//! Proves an engine's walls with a run of our own probe, before any program of an agent's is let in.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, EngineError, EngineTrouble, ImageInfo, walls};
use crate::error::RunError;
use crate::executor::{self, Asked, Progress};
use crate::language::Language;
use crate::leases::Leases;
use crate::run::{Limits, Overflow, RunId, RunSpec, Status};
use crate::supervisor::WallCheck;

/// A busy machine takes a second for it.
const PROBE_MILLIS: u64 = 20_000;

#[derive(Debug)]
pub struct Probe;

#[async_trait]
impl WallCheck for Probe {
    async fn check(
        &self,
        engine: &Arc<dyn Engine>,
        image: &ImageInfo,
        leases: &Leases,
        limits: &Limits,
    ) -> Result<(), RunError> {
        let missing = |wall: String| {
            let endpoint = engine.endpoint().clone();
            RunError::Engine(EngineTrouble::WallMissing { endpoint, wall })
        };
        let spec = spec(limits);
        let lease = leases.make(engine, image, &spec).await.map_err(|error| match error {
            EngineError::Unavailable(trouble) => RunError::Engine(trouble),
            EngineError::Refused { message, .. } => {
                missing(format!("it refuses to set them all up ({})", shortened(&message)))
            }
            error @ (EngineError::NoImage
            | EngineError::NoContainer
            | EngineError::DeclaresVolumes
            | EngineError::Broken { .. }) => RunError::Internal(error.to_string()),
        })?;
        let asked = Asked { at: Instant::now(), wall_clock: SystemTime::now() };
        let cancel = CancellationToken::new();
        let outcome =
            executor::execute(lease, &spec, image.id.clone(), asked, &mut Progress::default(), &cancel).await?;
        if matches!(outcome.status, Status::Timeout | Status::OutOfMemory) {
            // That says something of the machine, or of a memory limit too low for a shell, and nothing of a wall.
            let how = outcome.status;
            return Err(RunError::Internal(format!("the probe that looks at the engine's walls ended with {how}")));
        }
        if outcome.status != Status::Ok {
            let said = String::from_utf8_lossy(&outcome.stderr.bytes).trim().to_owned();
            return Err(missing(format!("the probe that looks for them ended with {} ({said})", outcome.exit_code)));
        }
        match walls::missing(&String::from_utf8_lossy(&outcome.stdout.bytes), &spec.limits) {
            walls if walls.is_empty() => Ok(()),
            walls => Err(missing(walls.join("; "))),
        }
    }
}

/// The container is made with the owner's limits. What is watched from outside is the probe's own: however little the
/// owner allows a program to print, the probe has to be heard.
fn spec(owner: &Limits) -> RunSpec {
    RunSpec {
        id: RunId::generate(),
        language: Language::Shell,
        code: walls::probe().into(),
        files: Vec::new(),
        stdin: "".into(),
        limits: Limits { millis: PROBE_MILLIS, output_bytes: walls::PROBE_BYTES as u64, ..*owner },
        overflow: Overflow::Kill,
        label: None,
    }
}

/// Podman quotes the whole list of system calls when it cannot take it.
fn shortened(message: &str) -> String {
    const SHOWN: usize = 160;
    let mut short: String = message.chars().take(SHOWN).collect();
    if short.len() < message.len() {
        short.push_str("...");
    }
    short
}
