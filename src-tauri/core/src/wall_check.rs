//! Proves an engine's walls with a run of Sandtray's own probe in an image, before any agent's program runs in it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::time::Instant;

use crate::engine::{Engine, EngineError, EngineTrouble, ImageInfo, walls};
use crate::error::RunError;
use crate::executor::{self, Asked, Failed, Progress};
use crate::language::Language;
use crate::leases::Leases;
use crate::run::{Cancel, CutBy, Limits, Outcome, Overflow, RunId, RunSpec, Status};
use crate::supervisor::{Proof, Unproved, WallCheck, run_error};

/// Time limit of the probe. A busy machine takes a second for it.
const PROBE_MILLIS: u64 = 20_000;
/// Bound on a whole proof, with its container. Runs that wait for that image wait no longer; others do not wait at all.
const PROOF_BUDGET: Duration = Duration::from_secs(45);
/// Containers that one proof makes, if each is removed from outside. The loss of the last one is an error.
const TRIES: u32 = 3;

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
    let mut tries = 1;
    let outcome = loop {
        match probe(engine, image, leases, &spec).await? {
            Ok(outcome) => break outcome,
            Err(_) if tries < TRIES => tries += 1,
            Err(error) => return Err(Unproved::Failed(error)),
        }
    };
    if matches!(outcome.status, Status::Timeout | Status::OutOfMemory) {
        // The cause is the machine, or a memory limit too low for a shell, not a wall.
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

/// Runs the probe once. The inner error means that its container was lost: that tells nothing about the walls, and
/// another container can take its place.
async fn probe(
    engine: &Arc<dyn Engine>,
    image: &ImageInfo,
    leases: &Leases,
    spec: &RunSpec,
) -> Result<Result<Outcome, RunError>, Unproved> {
    let lease = match leases.make(engine, image, spec).await {
        Ok(lease) => lease,
        Err(EngineError::NoContainer) => return Ok(Err(RunError::ContainerRemoved)),
        Err(EngineError::NoImage) => return Err(Unproved::NoImage),
        Err(EngineError::Refused { message, .. }) => {
            let why = format!("it refuses to set them all up ({})", shortened(&message));
            return Err(Unproved::Missing(why));
        }
        Err(error) => return Err(Unproved::Failed(run_error(&error, engine.endpoint()))),
    };
    let asked = Asked { at: Instant::now(), wall_clock: SystemTime::now() };
    let (mut progress, cancel) = (Progress::default(), Cancel::default());
    match executor::execute(lease, spec, image.id.clone(), asked, &mut progress, &cancel).await {
        Ok(outcome) => Ok(Ok(outcome)),
        Err(Failed::Run(RunError::Interrupted(cut))) if cut.by == CutBy::Engine => {
            let endpoint = engine.endpoint().clone();
            Err(Unproved::Failed(RunError::Engine(EngineTrouble::NotAnswering { endpoint })))
        }
        Err(Failed::Lost(error)) => Ok(Err(error)),
        Err(Failed::Run(RunError::Interrupted(_))) => Ok(Err(RunError::ContainerRemoved)),
        Err(Failed::Run(error)) => Err(Unproved::Failed(error)),
    }
}

fn failed(message: String) -> Unproved {
    Unproved::Failed(RunError::Internal(message))
}

/// The container is made with the owner's limits. The limits enforced from outside are the probe's own: however little
/// output the owner allows a program, the probe's must be read in full.
fn spec(owner: &Limits) -> RunSpec {
    RunSpec {
        id: RunId::generate(),
        language: Language::Shell,
        code: walls::probe().into(),
        args: Vec::new(),
        files: Vec::new(),
        stdin: "".into(),
        limits: Limits { millis: PROBE_MILLIS, output_bytes: walls::PROBE_BYTES as u64, ..*owner },
        overflow: Overflow::Kill,
        label: None,
    }
}

/// Podman quotes the whole list of system calls when it cannot load it.
fn shortened(message: &str) -> String {
    const SHOWN: usize = 160;
    let mut short: String = message.chars().take(SHOWN).collect();
    if short.len() < message.len() {
        short.push_str("...");
    }
    short
}
