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
use crate::lease::Leases;
use crate::run::{Limits, Overflow, RunId, RunSpec, Status};
use crate::supervisor::WallCheck;

#[derive(Debug)]
pub struct Probe {
    pub limits: Limits,
}

#[async_trait]
impl WallCheck for Probe {
    async fn check(&self, engine: &Arc<dyn Engine>, image: &ImageInfo, leases: &Leases) -> Result<(), RunError> {
        let missing = |wall: String| {
            let endpoint = engine.endpoint().clone();
            RunError::Engine(EngineTrouble::WallMissing { endpoint, wall })
        };
        let spec = self.spec();
        let lease = leases.make(engine, image, &spec).await.map_err(|error| match error {
            EngineError::Unavailable(trouble) => RunError::Engine(trouble),
            EngineError::Refused { message, .. } => missing(format!("it refuses to set them all up ({message})")),
            error @ (EngineError::NoImage | EngineError::NoContainer | EngineError::Broken { .. }) => {
                RunError::Internal(error.to_string())
            }
        })?;
        let asked = Asked { at: Instant::now(), wall_clock: SystemTime::now() };
        let cancel = CancellationToken::new();
        let outcome =
            executor::execute(lease, &spec, image.id.clone(), asked, &mut Progress::default(), &cancel).await?;
        if outcome.status != Status::Ok {
            let said = String::from_utf8_lossy(&outcome.stderr.bytes).trim().to_owned();
            return Err(missing(format!("the probe that looks for them ended with {} ({said})", outcome.exit_code)));
        }
        match walls::missing(&String::from_utf8_lossy(&outcome.stdout.bytes), &self.limits) {
            walls if walls.is_empty() => Ok(()),
            walls => Err(missing(walls.join("; "))),
        }
    }
}

impl Probe {
    fn spec(&self) -> RunSpec {
        RunSpec {
            id: RunId::generate(),
            language: Language::Shell,
            code: walls::PROBE.into(),
            files: Vec::new(),
            stdin: "".into(),
            limits: self.limits,
            overflow: Overflow::Kill,
            label: None,
        }
    }
}
