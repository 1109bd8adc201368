//! Removes containers, and tracks which ones are in use. Every container that is given up comes here, on whatever path,
//! and its removal is awaited. The registry of presences tells, in an engine's list, the containers that are no longer
//! in use.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::engine::{ContainerId, ContainerInfo, Engine, EngineError, InstanceId, container_name};
use crate::traffic::Traffic;

/// Concurrent removals per engine and urgency class, so that urgent ones do not queue behind the others. Each removal
/// costs the engine about 30 ms of CPU, which concurrent calls would miss.
const WORKERS: usize = 2;
/// Bound on the wait for a lull in the calls, before the removal of a container at rest.
const LATEST: Duration = Duration::from_millis(500);
/// Bound on containers that wait for a lull. Each may still hold what its program wrote.
const MAX_RESTING: usize = 16;
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// Longest retry interval while a program may still run in the container, which takes a place from other runs.
const OCCUPIED_RETRY: Duration = Duration::from_secs(1);
/// Attempts before the container is left to the next sweep.
const ATTEMPTS: u32 = 12;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Janitor {
    /// Unbounded, but with one entry per container, and the makers of containers bound those.
    jobs: mpsc::UnboundedSender<Job>,
    present: Arc<watch::Sender<Vec<String>>>,
    overstaying: Arc<watch::Sender<usize>>,
    traffic: Traffic,
}

/// How soon a container has to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Urgency {
    Now,
    /// All that ran in it has ended.
    AtRest,
}

/// The state of a container when it is given up.
#[derive(Debug)]
pub enum Leaving {
    /// No agent's program was ever in it.
    Unused,
    /// A program may still run in it.
    Occupied(Overstay),
    /// A launcher that its program cannot read has reported that everything else in it has ended. (Docker ends the
    /// container's streams with the container, so the streams prove nothing earlier.)
    AtRest,
}

/// Drop guard that counts a container in which a program may still run after its run is over. Counts from
/// [`Overstay::begin`] until it is dropped. Such a container takes a place of the owner's concurrency.
#[derive(Debug)]
pub struct Overstay {
    count: Arc<watch::Sender<usize>>,
    begun: bool,
}

impl Overstay {
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            self.count.send_modify(|count| *count += 1);
        }
    }

    fn end(&mut self) {
        if std::mem::replace(&mut self.begun, false) {
            self.count.send_modify(|count| *count -= 1);
        }
    }
}

impl Drop for Overstay {
    fn drop(&mut self) {
        self.end();
    }
}

/// Drop guard that marks a container as in use, from before it is made until after it is removed.
#[derive(Debug)]
pub struct Presence {
    name: String,
    present: Arc<watch::Sender<Vec<String>>>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.present.send_modify(|names| {
            if let Some(at) = names.iter().position(|name| *name == self.name) {
                names.swap_remove(at);
            }
        });
    }
}

#[derive(Debug)]
struct Job {
    engine: Arc<dyn Engine>,
    id: ContainerId,
    leaving: Leaving,
    _presence: Presence,
}

impl Janitor {
    /// Starts the task that removes containers. After a cancel, the containers that are left wait for the next start's
    /// sweep.
    pub fn spawn(cancel: CancellationToken) -> (Self, tokio::task::JoinHandle<()>) {
        let (jobs, queue) = mpsc::unbounded_channel();
        let traffic = Traffic::default();
        let task = tokio::spawn(work(queue, traffic.clone(), cancel));
        let overstaying = Arc::new(watch::Sender::new(0));
        (Self { jobs, present: Arc::new(watch::Sender::new(Vec::new())), overstaying, traffic }, task)
    }

    /// Registers a container. Call it before the engine is asked to make the container. `run` is the value of its run
    /// label.
    pub fn expect(&self, run: impl Display) -> Presence {
        let name = run.to_string();
        self.present.send_modify(|names| names.push(name.clone()));
        Presence { name, present: Arc::clone(&self.present) }
    }

    /// The calls that removals make way for.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Makes the guard for an occupied container. Get it before a program is put into the container.
    pub fn overstay(&self) -> Overstay {
        Overstay { count: Arc::clone(&self.overstaying), begun: false }
    }

    /// Follows the number of containers that have outlived their run and may still run a program.
    pub fn watch_overstaying(&self) -> watch::Receiver<usize> {
        self.overstaying.subscribe()
    }

    /// Queues a container for removal. Never blocks, because it is called from `Drop`.
    pub fn discard(&self, engine: Arc<dyn Engine>, id: ContainerId, mut leaving: Leaving, presence: Presence) {
        // Counted before the caller goes on, so that no run takes its place in between.
        if let Leaving::Occupied(overstay) = &mut leaving {
            overstay.begin();
        }
        // Fails if the task has stopped; the next start's sweep removes the container.
        let _ = self.jobs.send(Job { engine, id, leaving, _presence: presence });
    }

    /// Waits until no container is in use.
    pub async fn idle(&self) {
        // Cannot fail, because this handle holds the sender.
        let _ = self.present.subscribe().wait_for(Vec::is_empty).await;
    }

    /// Removes the containers of this data folder that have no presence: those of earlier starts, and those of this
    /// start whose creation was never answered or whose removal was given up.
    ///
    /// # Errors
    ///
    /// If the engine does not answer. The next sweep starts over.
    pub async fn sweep(&self, engine: &Arc<dyn Engine>, instance: &InstanceId) -> Result<(), EngineError> {
        for found in engine.containers().await? {
            // Looked up only after the engine has answered. A presence is registered before the engine hears of its
            // container, so a listed container without one is not in use, or has just been removed.
            let taken = || self.present.borrow().iter().any(|name| *name == found.run || *name == found.id.0);
            if taken() || !is_made_by(&found, instance) {
                continue;
            }
            match inherits_its_labels(engine.as_ref(), &found).await {
                // Another concurrent sweep may have taken it meanwhile.
                Ok(false) if !taken() => {}
                Ok(_) => continue,
                Err(error @ EngineError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    warn!(container = %found.id, %error, "leaving a container whose image cannot be looked at");
                    continue;
                }
            }
            let earlier = found.instance != instance.to_string();
            warn!(container = %found.id, earlier, "removing a container that nobody has any more");
            // Named by its id, because the labels of an earlier start need not be unique.
            let presence = self.expect(&found.id);
            // A container that was given up while its program ran takes its place again.
            let leaving = if found.running { Leaving::Occupied(self.overstay()) } else { Leaving::Unused };
            self.discard(Arc::clone(engine), found.id, leaving, presence);
        }
        Ok(())
    }
}

/// Decides by labels and name. A container that the owner makes from one of our images may inherit the labels. A
/// container that the owner has renamed is the owner's.
fn is_made_by(found: &ContainerInfo, instance: &InstanceId) -> bool {
    let home = InstanceId::parse(&found.instance).map(|label| label.home);
    home.as_ref() == Some(&instance.home) && !found.run.is_empty() && found.name == container_name(&found.run)
}

/// Each of our containers has a run id that no other has, so a run id that is also on the image was inherited from it.
async fn inherits_its_labels(engine: &dyn Engine, found: &ContainerInfo) -> Result<bool, EngineError> {
    Ok(engine.run_label_of_image(&found.image).await?.as_ref() == Some(&found.run))
}

async fn work(mut queue: mpsc::UnboundedReceiver<Job>, traffic: Traffic, cancel: CancellationToken) {
    // One task per container. The removals of one engine take turns, so that an engine that hangs delays no other.
    let mut removals = JoinSet::new();
    let mut turns: HashMap<(usize, Urgency), Arc<Semaphore>> = HashMap::new();
    let resting = Arc::new(Semaphore::new(MAX_RESTING));
    loop {
        tokio::select! {
            () = cancel.cancelled() => return,
            Some(_) = removals.join_next() => {
                if removals.is_empty() {
                    turns.clear();
                }
            }
            job = queue.recv() => match job {
                Some(job) => {
                    let urgency = match job.leaving {
                        Leaving::Unused | Leaving::Occupied(_) => Urgency::Now,
                        Leaving::AtRest => Urgency::AtRest,
                    };
                    let engine = Arc::as_ptr(&job.engine).cast::<()>() as usize;
                    let turns = turns.entry((engine, urgency)).or_insert_with(|| Arc::new(Semaphore::new(WORKERS)));
                    let (turns, traffic) = (Arc::clone(turns), traffic.clone());
                    let place = match urgency {
                        Urgency::Now => None,
                        Urgency::AtRest => Arc::clone(&resting).try_acquire_owned().ok(),
                    };
                    removals.spawn(async move {
                        if let Some(place) = place {
                            traffic.lull(LATEST).await;
                            drop(place);
                        }
                        remove(job, turns).await;
                    });
                }
                None => break,
            },
        }
    }
    while !cancel.is_cancelled() && removals.join_next().await.is_some() {}
}

async fn remove(job: Job, turns: Arc<Semaphore>) {
    let Job { engine, id, leaving, _presence } = job;
    let mut overstay = match leaving {
        Leaving::Unused | Leaving::AtRest => None,
        Leaving::Occupied(overstay) => Some(overstay),
    };
    let mut pause = FIRST_RETRY;
    for attempt in 1.. {
        // Held for the request only. The semaphore is never closed.
        let turn = turns.acquire().await;
        let removed = engine.remove(&id).await;
        drop(turn);
        match removed {
            Ok(()) | Err(EngineError::NoContainer) => return,
            Err(error) => {
                debug!(container = %id, %error, "could not remove a container yet");
                overstay = still_occupied(engine.as_ref(), &id, overstay, &error).await;
            }
        }
        let takes_a_place = overstay.as_ref().is_some_and(|overstay| overstay.begun);
        if attempt >= ATTEMPTS && !takes_a_place {
            break;
        }
        tokio::time::sleep(pause).await;
        // Other runs wait for the place.
        pause = (pause * 2).min(if overstay.is_some() { OCCUPIED_RETRY } else { LONGEST_RETRY });
    }
    warn!(container = %id, "could not remove a container; the next sweep tries again");
}

/// Whether a container that could not be removed still takes a place. It does not while its engine is away, because no
/// run can start there and another engine has its own places. It does not once its program has ended either, even if
/// the engine cannot remove it.
async fn still_occupied(
    engine: &dyn Engine,
    id: &ContainerId,
    overstay: Option<Overstay>,
    error: &EngineError,
) -> Option<Overstay> {
    let mut overstay = overstay?;
    if matches!(error, EngineError::Unavailable(_)) {
        overstay.end();
        return Some(overstay);
    }
    if engine.exit(id).await.is_ok_and(|exit| !exit.running) {
        return None;
    }
    overstay.begin();
    Some(overstay)
}
