//! The source of leases: a warm container from the pool, or one made on demand.

use std::sync::Arc;

use crate::engine::{ContainerSpec, Engine, EngineError, ImageInfo, InstanceId};
use crate::janitor::Janitor;
use crate::lease::{Lease, make};
use crate::pool::Pool;
use crate::run::{RunId, RunSpec};
use crate::traffic::Busy;

/// Hands out leases.
#[derive(Debug, Clone)]
pub struct Leases {
    pub janitor: Janitor,
    pub instance: InstanceId,
    pub pool: Pool,
}

/// A lease, and the guard that counts its call as under way.
#[derive(Debug)]
pub struct Taken {
    pub lease: Lease,
    /// The container was made ahead of the call, so it may have died in the meantime.
    pub warm: bool,
    pub busy: Busy,
}

impl Leases {
    pub fn new(janitor: Janitor, instance: InstanceId) -> Self {
        let pool = Pool::new(janitor.clone(), instance.clone());
        Self { janitor, instance, pool }
    }

    /// Takes a warm container with the run's own limits, or makes one.
    ///
    /// # Errors
    ///
    /// If the engine fails to make or start a container.
    pub async fn take(&self, engine: &Arc<dyn Engine>, image: &ImageInfo, run: &RunSpec) -> Result<Taken, EngineError> {
        let (warm, busy) = self.pool.take(engine, image, run.language, &run.limits);
        match warm {
            Some(lease) => Ok(Taken { lease, warm: true, busy }),
            None => Ok(Taken { lease: self.make(engine, image, run).await?, warm: false, busy }),
        }
    }

    /// Makes a new container. Dropping the future gives the container up, at any stage.
    ///
    /// # Errors
    ///
    /// If the engine fails to make or start a container.
    pub async fn make(&self, engine: &Arc<dyn Engine>, image: &ImageInfo, run: &RunSpec) -> Result<Lease, EngineError> {
        let spec = ContainerSpec {
            image: image.id.clone(),
            language: run.language,
            limits: run.limits,
            instance: self.instance.clone(),
            // A new id, because a run may need a second container while the engine still removes the first one and its
            // name.
            run: RunId::generate(),
        };
        make(Arc::clone(engine), spec, self.janitor.clone()).await
    }
}
