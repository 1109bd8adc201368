//! A lease: one fresh, never-used container for one run, then destroyed. Never given back, never reused.
//! Where it comes from, made on demand or kept warm, is hidden behind [`crate::leases::Leases`].

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tracing::debug;

use crate::engine::{Attached, ContainerId, ContainerSpec, Endpoint, Engine, EngineError, Exit, LastEvents, Usage};
use crate::janitor::{Janitor, Leaving, Overstay, Presence};
use crate::launcher;

/// For an interpreter to start: a hundred times what it takes.
const PRELOAD_LIMIT: Duration = Duration::from_secs(10);

/// Started and attached; PID 1 waits for its header.
#[derive(Debug)]
pub struct Lease {
    pub container: Container,
    pub attached: Attached,
}

/// A container that exists, and is removed when this is dropped.
#[derive(Debug)]
pub struct Container {
    engine: Arc<dyn Engine>,
    id: ContainerId,
    janitor: Janitor,
    /// Set once a program is in it.
    overstay: Option<Overstay>,
    /// Taken when it is dropped.
    presence: Option<Presence>,
    /// What its meters read so far.
    seen: Arc<Mutex<Option<Usage>>>,
}

impl Container {
    /// To be called before a program is put into it. From here on it counts as occupied until it is gone or comes to
    /// rest.
    pub fn occupy(&mut self) {
        self.overstay = Some(self.janitor.overstay());
    }

    /// All that ran in it has ended, so that its removal may wait for a better moment.
    pub fn rest(mut self) {
        self.discard(Leaving::AtRest);
    }

    fn discard(&mut self, leaving: Leaving) {
        if let Some(presence) = self.presence.take() {
            self.janitor.discard(Arc::clone(&self.engine), self.id.clone(), leaving, presence);
        }
    }

    /// By which its figures can be read while it is there.
    pub fn meter(&self) -> Meter {
        Meter { engine: Arc::clone(&self.engine), id: self.id.clone(), seen: Arc::clone(&self.seen) }
    }

    /// The most memory, and the CPU time, that its meters have read; `None` where none was read.
    pub fn seen(&self) -> Option<Usage> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn endpoint(&self) -> &Endpoint {
        self.engine.endpoint()
    }

    /// How it ended, for when its own last words did not arrive.
    pub async fn exit(&self) -> Result<Exit, EngineError> {
        self.engine.exit(&self.id).await
    }

    /// What the engine recorded of its end, for the same case.
    pub async fn last_events(&self) -> Result<LastEvents, EngineError> {
        self.engine.last_events(&self.id).await
    }
}

/// Reads what a container uses. Keeps nothing alive: the container goes when its run does.
#[derive(Debug, Clone)]
pub struct Meter {
    engine: Arc<dyn Engine>,
    id: ContainerId,
    seen: Arc<Mutex<Option<Usage>>>,
}

impl Meter {
    pub async fn read(&self) -> Result<Usage, EngineError> {
        let usage = self.engine.usage(&self.id).await?;
        // All zero: it has ended.
        if usage.memory_bytes > 0 {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let before = seen.map_or((0, Duration::ZERO), |before| (before.memory_bytes, before.cpu));
            *seen = Some(Usage { memory_bytes: usage.memory_bytes.max(before.0), cpu: usage.cpu.max(before.1) });
        }
        Ok(usage)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let leaving = self.overstay.take().map_or(Leaving::Unused, Leaving::Occupied);
        self.discard(leaving);
    }
}

/// In a task of its own: were it dropped between request and answer, nobody would know the container's id.
pub(crate) async fn make(engine: Arc<dyn Engine>, spec: ContainerSpec, janitor: Janitor) -> Result<Lease, EngineError> {
    let presence = janitor.expect(spec.run);
    let making = tokio::spawn(make_whole(engine, spec, janitor, presence));
    making.await.unwrap_or_else(|error| match error.try_into_panic() {
        // A fault of our own is not to pass for one of the engine's.
        Ok(panic) => resume_unwind(panic),
        Err(error) => Err(EngineError::Broken { doing: "make a container", message: error.to_string() }),
    })
}

async fn make_whole(
    engine: Arc<dyn Engine>,
    spec: ContainerSpec,
    janitor: Janitor,
    presence: Presence,
) -> Result<Lease, EngineError> {
    let id = engine.create(&spec).await?;
    let presence = Some(presence);
    let seen = Arc::default();
    let container = Container { engine: Arc::clone(&engine), id, janitor, overstay: None, presence, seen };
    let attached = match engine.start(&container.id).await {
        // Each engine has its own words for a container that is just being removed.
        Err(error @ EngineError::Refused { .. }) => {
            let gone = container.exit().await == Err(EngineError::NoContainer);
            return Err(if gone { EngineError::NoContainer } else { error });
        }
        attached => attached?,
    };
    debug!(container = %container.id, "made a container");
    Ok(Lease { container, attached })
}

impl Lease {
    /// Has the interpreter started ahead of the program. False if it does not get as far as waiting for one.
    pub(crate) async fn preload(&mut self) -> bool {
        let Attached { input, output } = &mut self.attached;
        let ready = async {
            input.write_all(launcher::PRELOAD).await.ok()?;
            let mut said = Vec::new();
            while said.len() < launcher::READY.len() {
                said.extend_from_slice(&output.next().await?.ok()?.bytes);
            }
            Some(said == launcher::READY)
        };
        matches!(timeout(PRELOAD_LIMIT, ready).await, Ok(Some(true)))
    }
}
