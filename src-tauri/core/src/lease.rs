//! A lease: one fresh, never-used container for one run, then destroyed. It is never given back or reused.
//! [`crate::leases::Leases`] hides whether it was made on demand or kept warm.

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

/// Bound on the start of an interpreter: a hundred times the usual time.
const PRELOAD_LIMIT: Duration = Duration::from_secs(10);

/// A container that is started and attached. Its PID 1 waits for the header.
#[derive(Debug)]
pub struct Lease {
    pub container: Container,
    pub attached: Attached,
}

/// Drop guard for a container: removes it when dropped.
#[derive(Debug)]
pub struct Container {
    engine: Arc<dyn Engine>,
    id: ContainerId,
    janitor: Janitor,
    /// Set once a program is in it.
    overstay: Option<Overstay>,
    /// Taken when the container is given up.
    presence: Option<Presence>,
    /// The highest figures that its meters have read.
    seen: Arc<Mutex<Option<Usage>>>,
}

impl Container {
    /// Marks the container as occupied until it is gone or at rest. Call it before a program is put into it.
    pub fn occupy(&mut self) {
        self.overstay = Some(self.janitor.overstay());
    }

    /// Gives up a container in which everything has ended, so that its removal may wait for a lull.
    pub fn rest(mut self) {
        self.discard(Leaving::AtRest);
    }

    fn discard(&mut self, leaving: Leaving) {
        if let Some(presence) = self.presence.take() {
            self.janitor.discard(Arc::clone(&self.engine), self.id.clone(), leaving, presence);
        }
    }

    /// A reader for the container's figures.
    pub fn meter(&self) -> Meter {
        Meter { engine: Arc::clone(&self.engine), id: self.id.clone(), seen: Arc::clone(&self.seen) }
    }

    /// The highest memory and CPU time that its meters have read; `None` if none were read.
    pub fn seen(&self) -> Option<Usage> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn endpoint(&self) -> &Endpoint {
        self.engine.endpoint()
    }

    /// How the container ended, by its engine. For a run without a trailer.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or the container is gone.
    pub async fn exit(&self) -> Result<Exit, EngineError> {
        self.engine.exit(&self.id).await
    }

    /// The engine's record of the container's end, for the same case.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or refuses.
    pub async fn last_events(&self) -> Result<LastEvents, EngineError> {
        self.engine.last_events(&self.id).await
    }
}

/// Reads a container's use of resources. It does not keep the container alive.
#[derive(Debug, Clone)]
pub struct Meter {
    engine: Arc<dyn Engine>,
    id: ContainerId,
    seen: Arc<Mutex<Option<Usage>>>,
}

impl Meter {
    /// Reads the current figures, and remembers the highest.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or the container is gone.
    pub async fn read(&self) -> Result<Usage, EngineError> {
        let usage = self.engine.usage(&self.id).await?;
        // All zero means that it has ended.
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

/// Makes a container in a separate task: if the future were dropped between request and answer, the container's id
/// would be lost.
pub(crate) async fn make(engine: Arc<dyn Engine>, spec: ContainerSpec, janitor: Janitor) -> Result<Lease, EngineError> {
    let presence = janitor.expect(spec.run);
    let making = tokio::spawn(make_whole(engine, spec, janitor, presence));
    making.await.unwrap_or_else(|error| match error.try_into_panic() {
        // A panic of ours must not look like an engine error.
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
        // Each engine words the refusal for a container under removal differently, so the container is looked up.
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
    /// Starts the interpreter ahead of the program. False if it does not get as far as waiting for one.
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
