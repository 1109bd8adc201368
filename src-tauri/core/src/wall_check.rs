//! Proves an engine's walls with a run of our own probe in an image, before any agent's program runs in it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, EngineError, ImageInfo, walls};
use crate::error::RunError;
use crate::executor::{self, Asked, Progress};
use crate::language::Language;
use crate::leases::Leases;
use crate::run::{Limits, Overflow, RunId, RunSpec, Status};
use crate::supervisor::{Proof, Unproved, WallCheck};

/// A busy machine takes a second for it.
const PROBE_MILLIS: u64 = 20_000;
/// The time for a whole proof, with its container. Runs that wait for that image wait no longer; others do not wait at
/// all.
const PROOF_BUDGET: Duration = Duration::from_secs(45);

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
    ) -> Result<Proof, Unproved> {
        let proving = prove(engine, image, leases, limits);
        tokio::time::timeout(PROOF_BUDGET, proving).await.unwrap_or_else(|_| {
            let seconds = PROOF_BUDGET.as_secs();
            Err(failed(format!("the engine's walls could not be looked at within {seconds} s")))
        })
    }
}

async fn prove(
    engine: &Arc<dyn Engine>,
    image: &ImageInfo,
    leases: &Leases,
    limits: &Limits,
) -> Result<Proof, Unproved> {
    let spec = spec(limits);
    let lease = leases.make(engine, image, &spec).await.map_err(|error| match error {
        EngineError::Unavailable(trouble) => Unproved::Failed(RunError::Engine(trouble)),
        EngineError::Refused { message, .. } => {
            Unproved::Missing(format!("it refuses to set them all up ({})", shortened(&message)))
        }
        error @ (EngineError::NoImage
        | EngineError::NoContainer
        | EngineError::DeclaresVolumes
        | EngineError::Broken { .. }) => failed(error.to_string()),
    })?;
    let asked = Asked { at: Instant::now(), wall_clock: SystemTime::now() };
    let cancel = CancellationToken::new();
    let outcome = executor::execute(lease, &spec, image.id.clone(), asked, &mut Progress::default(), &cancel)
        .await
        .map_err(Unproved::Failed)?;
    if matches!(outcome.status, Status::Timeout | Status::OutOfMemory) {
        // This concerns the machine, or a memory limit too low for a shell, and not a wall.
        return Err(failed(format!("the probe that looks at the engine's walls ended with {}", outcome.status)));
    }
    if outcome.status != Status::Ok {
        let said = shortened(String::from_utf8_lossy(&outcome.stderr.bytes).trim());
        return Err(Unproved::Missing(format!(
            "the probe that looks for them ended with {} ({said})",
            outcome.exit_code
        )));
    }
    let seen = String::from_utf8_lossy(&outcome.stdout.bytes);
    match walls::missing(&seen, &spec.limits) {
        walls if walls.is_empty() => Ok(Proof { launcher: walls::launcher(&seen) }),
        walls => Err(Unproved::Missing(walls.join("; "))),
    }
}

fn failed(message: String) -> Unproved {
    Unproved::Failed(RunError::Internal(message))
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
