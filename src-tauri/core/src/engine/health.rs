//! Keeps one connection to an engine, and publishes its state.
//!
//! One task owns the search and the connection; all others read a watch. An engine that goes away is a state. The task
//! notices by itself when the engine comes back.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::discovery::{self, Candidate, Candidates, Places, Presence};
use super::{Endpoint, Engine, EngineError, EngineInfo, EngineState, EngineTrouble, Unfit, Watched};

/// Bound on a ping.
pub const PING_BOUND: Duration = Duration::from_secs(3);
/// Bound on a connection attempt, whatever the connector does. Above the connector's own bounds.
const CONNECT_BOUND: Duration = Duration::from_secs(15);
/// Bound on looking for sockets and reading Docker's files: a home on a lost network disk must not block the task.
const DISCOVERY_BOUND: Duration = Duration::from_secs(3);
pub const READY_INTERVAL: Duration = Duration::from_secs(10);
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
pub const LAST_BACKOFF: Duration = Duration::from_secs(30);
/// Minimum interval between two checks, however many nudges there are.
pub const NUDGE_GAP: Duration = Duration::from_millis(500);
/// Missed pings in a row after which the engine counts as not answering. A busy computer makes an engine slow to
/// answer.
const MISSES: u32 = 2;
/// A lost engine may come back for this long before another engine replaces it.
pub const LOYALTY: Duration = Duration::from_secs(30);
/// A watch that ends sooner was cut off by the engine or a proxy. After that many in a row, the engine is not watched.
const BRIEF: Duration = Duration::from_secs(2);
const BRIEF_WATCHES: u32 = 5;
/// Candidates that are asked concurrently.
const AT_ONCE: usize = 8;

/// Connects to an engine at an endpoint.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Connects to the engine.
    ///
    /// # Errors
    ///
    /// If the engine cannot be reached, or cannot be used.
    async fn connect(&self, endpoint: &Endpoint) -> Result<Arc<dyn Engine>, EngineTrouble>;
}

pub type Probe = Arc<dyn Fn(&Path) -> Presence + Send + Sync>;

pub struct HealthConfig {
    pub places: Places,
    /// [`discovery::on_disk`], outside tests.
    pub probe: Probe,
    pub connector: Arc<dyn Connector>,
}

impl fmt::Debug for HealthConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HealthConfig").field("places", &self.places).finish_non_exhaustive()
    }
}

/// The state, and the engine while it is ready.
#[derive(Debug, Clone)]
pub struct Connection {
    pub state: EngineState,
    /// The same object as long as the endpoint and the engine behind it are the same, interruptions included.
    pub engine: Option<Arc<dyn Engine>>,
    /// Increased each time the engine may have changed although it looks the same: it was restarted, or reloaded its
    /// configuration. Earlier proofs are then void.
    pub generation: u64,
}

impl Connection {
    fn is_same(&self, other: &Self) -> bool {
        let same_engine = match (&self.engine, &other.engine) {
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        };
        same_engine && self.state == other.state && self.generation == other.generation
    }
}

#[derive(Debug, Clone)]
pub struct HealthHandle {
    connection: watch::Receiver<Connection>,
    orders: Arc<Orders>,
}

/// Requests to the task.
#[derive(Debug)]
struct Orders {
    nudge: Notify,
    /// The owner's latest choice of an engine, until the task takes it.
    choice: Mutex<Option<Option<String>>>,
}

impl HealthHandle {
    pub fn state(&self) -> EngineState {
        self.connection.borrow().state.clone()
    }

    pub fn watch(&self) -> watch::Receiver<Connection> {
        self.connection.clone()
    }

    /// Checks at once, after a failed call or on the owner's request. Calls are debounced.
    pub fn nudge(&self) {
        self.orders.nudge.notify_one();
    }

    /// Applies the owner's choice of an engine; `None` looks in the usual places.
    pub fn choose(&self, url: Option<String>) {
        *self.orders.choice.lock().unwrap_or_else(PoisonError::into_inner) = Some(url);
        self.nudge();
    }
}

#[derive(Debug)]
pub struct Health {
    config: HealthConfig,
    orders: Arc<Orders>,
    connection: watch::Sender<Connection>,
    /// The last engine that was ready, kept through interruptions.
    known: Option<Known>,
    misses: u32,
    /// At most one: the watch of the known engine.
    watches: JoinSet<(Watched, Duration)>,
    /// Watches in a row that ended at once.
    brief: u32,
}

#[derive(Debug)]
struct Known {
    engine: Arc<dyn Engine>,
    info: EngineInfo,
    /// When it was lost; `None` while it is ready.
    lost: Option<Instant>,
}

impl Health {
    /// Starts the task, which ends when `cancel` is cancelled. The caller awaits the handle.
    pub fn spawn(config: HealthConfig, cancel: CancellationToken) -> (HealthHandle, JoinHandle<()>) {
        let (sender, receiver) =
            watch::channel(Connection { state: EngineState::Checking, engine: None, generation: 0 });
        let orders = Arc::new(Orders { nudge: Notify::new(), choice: Mutex::new(None) });
        let handle = HealthHandle { connection: receiver, orders: orders.clone() };
        let (connection, watches) = (sender, JoinSet::new());
        let health = Self { config, orders, connection, known: None, misses: 0, watches, brief: 0 };
        let task = tokio::spawn(async move {
            // Cancel-safe: dropping a check loses only its result.
            cancel.run_until_cancelled(health.run()).await;
        });
        (handle, task)
    }

    async fn run(mut self) {
        let orders = self.orders.clone();
        let mut backoff = FIRST_BACKOFF;
        loop {
            let healthy = self.check().await;
            let checked = Instant::now();
            let pause = if healthy { READY_INTERVAL } else { backoff };
            backoff = if healthy { FIRST_BACKOFF } else { (backoff * 2).min(LAST_BACKOFF) };
            tokio::select! {
                () = sleep(pause) => {}
                () = orders.nudge.notified() => {
                    backoff = FIRST_BACKOFF;
                    sleep_until(checked + NUDGE_GAP).await;
                }
                Some(ended) = self.watches.join_next() => {
                    backoff = FIRST_BACKOFF;
                    self.watched(ended);
                    sleep_until(checked + NUDGE_GAP).await;
                }
            }
        }
    }

    /// Checks once. True if the next check can wait for the usual interval.
    async fn check(&mut self) -> bool {
        self.take_choice();
        if let Some(healthy) = self.ask_known().await {
            return healthy;
        }
        self.misses = 0;
        let found = self.search().await;
        self.settle(found)
    }

    fn take_choice(&mut self) {
        let choice = self.orders.choice.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(chosen) = choice
            && chosen != self.config.places.chosen
        {
            self.config.places.chosen = chosen;
            self.known = None;
        }
    }

    /// Pings the engine that is ready now. `None` if a search is needed.
    async fn ask_known(&mut self) -> Option<bool> {
        let known = self.known.as_mut().filter(|known| known.lost.is_none())?;
        match ask(known.engine.as_ref()).await {
            Ok(info) if info.is_of_same_engine(&known.info) => {
                let engine = Arc::clone(&known.engine);
                self.misses = 0;
                self.watch(&engine);
                return Some(true);
            }
            // The engine was updated, or another one took its socket.
            Ok(_) => return None,
            Err(EngineTrouble::NotAnswering { .. }) if self.misses + 1 < MISSES => {
                self.misses += 1;
                return Some(false);
            }
            Err(_) => {}
        }
        known.lost = Some(Instant::now());
        None
    }

    /// The first candidate that is ready, or the most informative trouble.
    async fn search(&self) -> Result<(Arc<dyn Engine>, EngineInfo), EngineTrouble> {
        let Candidates { mut found, looked_at } = self.candidates().await;
        if let Some(endpoint) = self.awaited() {
            found = vec![Candidate::Try(endpoint)];
        }
        let mut attempts = stream::iter(found).map(|candidate| self.attempt(candidate)).buffered(AT_ONCE);
        let mut trouble: Option<EngineTrouble> = None;
        while let Some(attempt) = attempts.next().await {
            match attempt {
                Ok(ready) => return Ok(ready),
                Err(next) => match &trouble {
                    Some(first) if weight(first) >= weight(&next) => {}
                    _ => trouble = Some(next),
                },
            }
        }
        Err(trouble.unwrap_or(EngineTrouble::Absent { looked_at }))
    }

    async fn candidates(&self) -> Candidates {
        let (places, probe) = (self.config.places.clone(), self.config.probe.clone());
        let looking = tokio::task::spawn_blocking(move || discovery::candidates(&places, probe.as_ref()));
        match timeout(DISCOVERY_BOUND, looking).await {
            Ok(Ok(candidates)) => candidates,
            Ok(Err(error)) => {
                tracing::error!(%error, "looking for an engine failed");
                Candidates::default()
            }
            Err(_) => {
                tracing::warn!("looking for an engine took too long; is the home folder on a lost network disk?");
                Candidates::default()
            }
        }
    }

    /// The endpoint of a recently lost engine, which may be restarting.
    fn awaited(&self) -> Option<Endpoint> {
        let known = self.known.as_ref()?;
        let lost = known.lost?;
        (lost.elapsed() < LOYALTY).then(|| known.info.endpoint.clone())
    }

    async fn attempt(&self, candidate: Candidate) -> Result<(Arc<dyn Engine>, EngineInfo), EngineTrouble> {
        let endpoint = match candidate {
            Candidate::Try(endpoint) => endpoint,
            Candidate::Unusable { endpoint, unfit, reason } => {
                return Err(EngineTrouble::Unusable { endpoint, unfit, reason });
            }
        };
        let engine = match timeout(CONNECT_BOUND, self.config.connector.connect(&endpoint)).await {
            Ok(connected) => connected?,
            Err(_) => return Err(EngineTrouble::NotAnswering { endpoint }),
        };
        let info = ask(engine.as_ref()).await?;
        Ok((engine, info))
    }

    /// Watches the engine, if it is not watched yet. Call it before any proof, so that later changes are noticed.
    fn watch(&mut self, engine: &Arc<dyn Engine>) {
        if !self.watches.is_empty() || self.brief >= BRIEF_WATCHES {
            return;
        }
        // The engine was not watched until now, so it may have changed.
        self.connection.send_modify(|shown| shown.generation += 1);
        let (watch, connection, began) = (engine.watch(), self.connection.clone(), Instant::now());
        self.watches.spawn(async move {
            let watched = watch.await;
            if watched == Watched::Changed {
                // Sent here, because no container may be made before the change is known, and the search task may be
                // busy.
                connection.send_modify(|shown| shown.generation += 1);
            }
            (watched, began.elapsed())
        });
    }

    fn watched(&mut self, ended: Result<(Watched, Duration), JoinError>) {
        match ended {
            Ok((Watched::Changed, lasted)) if lasted >= BRIEF => self.brief = 0,
            Ok((Watched::Changed, _)) => self.brief += 1,
            Ok((Watched::Refused, _)) => self.brief = BRIEF_WATCHES,
            Err(error) => tracing::error!(%error, "watching the engine failed"),
        }
        if self.brief == BRIEF_WATCHES {
            tracing::warn!(
                "this engine can't be watched: a restart is noticed only if its description of itself changes"
            );
        }
    }

    fn settle(&mut self, found: Result<(Arc<dyn Engine>, EngineInfo), EngineTrouble>) -> bool {
        let connection = match found {
            Ok((engine, info)) => {
                let engine = match self.known.take() {
                    Some(known) if known.info.is_of_same_engine(&info) => known.engine,
                    _ => {
                        if let Some(warning) = info.endpoint.warning() {
                            tracing::warn!("{warning}");
                        }
                        self.watches.abort_all();
                        (self.watches, self.brief) = (JoinSet::new(), 0);
                        engine
                    }
                };
                self.watch(&engine);
                self.known = Some(Known { engine: engine.clone(), info: info.clone(), lost: None });
                Connection { state: EngineState::Ready(info), engine: Some(engine), generation: 0 }
            }
            Err(trouble) => {
                // An updated engine may go away between its answer and the search.
                if let Some(known) = &mut self.known {
                    known.lost.get_or_insert_with(Instant::now);
                }
                Connection { state: EngineState::Trouble(trouble), engine: None, generation: 0 }
            }
        };
        let healthy = connection.engine.is_some();
        self.connection.send_if_modified(|shown| {
            let connection = Connection { generation: shown.generation, ..connection };
            let changed = !shown.is_same(&connection);
            *shown = connection;
            changed
        });
        healthy
    }
}

async fn ask(engine: &dyn Engine) -> Result<EngineInfo, EngineTrouble> {
    let endpoint = || engine.endpoint().clone();
    match timeout(PING_BOUND, engine.info()).await {
        Ok(Ok(info)) => Ok(info),
        Ok(Err(EngineError::Unavailable(trouble))) => Err(trouble),
        Ok(Err(EngineError::Refused { message, .. })) => {
            Err(EngineTrouble::Unusable { endpoint: endpoint(), unfit: Unfit::Other, reason: message })
        }
        // The engine hung up during the request: it is going down or coming up.
        Ok(Err(
            EngineError::Broken { .. } | EngineError::NoImage | EngineError::NoContainer | EngineError::DeclaresVolumes,
        ))
        | Err(_) => Err(EngineTrouble::NotAnswering { endpoint: endpoint() }),
    }
}

/// How informative a trouble is, if several candidates have one each.
fn weight(trouble: &EngineTrouble) -> u8 {
    match trouble {
        EngineTrouble::Absent { .. } => 0,
        EngineTrouble::NotRunning { .. } => 1,
        EngineTrouble::NotAnswering { .. } => 2,
        EngineTrouble::Unusable { .. } | EngineTrouble::WallMissing { .. } => 3,
        EngineTrouble::PermissionDenied { .. } => 4,
    }
}

#[cfg(test)]
mod tests;
