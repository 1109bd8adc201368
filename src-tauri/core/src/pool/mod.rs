//! Warm containers: started and attached ahead of the call, each used once. A warm container saves the 100 ms that
//! making one takes. The [`keeper`](Pool::keep) makes them in the background, in the number that [`demand`] computes.

pub mod demand;
mod state;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::engine::{ContainerSpec, Engine, EngineError, ImageInfo, InstanceId};
use crate::janitor::Janitor;
use crate::language::Language;
use crate::lease::{Lease, make};
use crate::run::Limits;
use crate::traffic::Busy;

use state::{Next, OLDEST, State, Warm, covers};

/// Concurrent creations. One that is under way when a call comes cannot be put off, so it must not take all cores.
const WORKERS: usize = 1;
/// Delay after a failed creation: the engine may be restarting.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// What to keep warm, set by the supervisor. `None` stands for nothing: the switch is off, or there is no engine.
#[derive(Debug, Clone)]
pub struct Stock {
    pub engine: Arc<dyn Engine>,
    pub images: BTreeMap<Language, ImageInfo>,
    /// The owner's limits. A call with other container limits gets a new container.
    pub limits: Limits,
    /// Bound on warm containers of all languages together.
    pub cap: usize,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    /// The number of warm containers, for the snapshot.
    count: watch::Sender<usize>,
    janitor: Janitor,
    instance: InstanceId,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("warm", &self.warm()).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the number of warm containers. Called after every change, while the state is locked.
    fn tell(&self, state: &State) {
        let count = state.warm.values().map(Vec::len).sum();
        self.count.send_if_modified(|told| std::mem::replace(told, count) != count);
    }
}

impl Pool {
    pub fn new(janitor: Janitor, instance: InstanceId) -> Self {
        let (state, changed, count) = (Mutex::default(), Notify::new(), watch::Sender::new(0));
        Self { shared: Arc::new(Shared { state, changed, count, janitor, instance }) }
    }

    /// Sets what to keep warm. Containers that no longer fit are dropped at once.
    pub fn stock(&self, stock: Option<Stock>) {
        let mut state = self.shared.lock();
        let dropped = state.replace(stock);
        let unfit = state.trim(Instant::now());
        self.shared.tell(&state);
        drop(state);
        drop((dropped, unfit));
        self.shared.changed.notify_one();
    }

    /// The number of warm containers of all languages.
    pub fn warm(&self) -> usize {
        *self.shared.count.borrow()
    }

    pub fn watch(&self) -> watch::Receiver<usize> {
        self.shared.count.subscribe()
    }

    /// Counts a call, and hands out a warm container if one is alive and matches the call.
    pub fn take(
        &self,
        engine: &Arc<dyn Engine>,
        image: &ImageInfo,
        language: Language,
        limits: &Limits,
    ) -> (Option<Lease>, Busy) {
        let now = Instant::now();
        let mut state = self.shared.lock();
        state.demand.note(language, now);
        let busy = self.shared.janitor.traffic().enter();
        let fits = state.wants(engine, limits);
        let mut lease = None;
        let mut dead = Vec::new();
        while fits && lease.is_none() {
            let Some(warm) = state.warm.get_mut(&language).and_then(Vec::pop) else { break };
            let Warm { lease: mut candidate, limits: made_with, image: made_of, since } = warm;
            let good = made_of == image.id && covers(&made_with, limits) && now.duration_since(since) < OLDEST;
            if good && is_alive(&mut candidate) {
                lease = Some(candidate);
            } else {
                dead.push(candidate);
            }
        }
        if state.warm.get(&language).is_none_or(Vec::is_empty) {
            state.emptied.entry(language).or_insert(now);
        }
        self.shared.tell(&state);
        drop(state);
        drop(dead);
        self.shared.changed.notify_one();
        (lease, busy)
    }

    /// Keeps the pool filled until it is cancelled, then drops all containers.
    pub async fn keep(self, cancel: CancellationToken) {
        let mut workers = JoinSet::new();
        let mut traffic = self.shared.janitor.traffic().watch();
        loop {
            let wake = self.step(&mut workers);
            tokio::select! {
                () = cancel.cancelled() => break,
                () = self.shared.changed.notified() => {}
                () = traffic.next() => {}
                () = sleep_until(wake) => {}
                Some(_) = workers.join_next() => {}
            }
        }
        workers.shutdown().await;
        self.stock(None);
    }

    /// Starts the creations that are due. Returns when to look again.
    fn step(&self, workers: &mut JoinSet<()>) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.shared.lock();
        let unfit = state.trim(now);
        let wake = loop {
            if workers.len() >= WORKERS {
                break None;
            }
            let language = match state.next(self.shared.janitor.traffic().room(now), now) {
                Next::Make(language) => language,
                Next::Look(at) => break at,
            };
            let Some((engine, spec)) = state.order(language, &self.shared.instance) else { break None };
            let making = Making::begin(&self.shared, &mut state, language);
            workers.spawn(add(making, engine, spec));
        };
        self.shared.tell(&state);
        drop(state);
        drop(unfit);
        wake
    }
}

/// Drop guard for a creation under way. Dropped without [`done`](Making::done), it counts as a failure.
struct Making {
    shared: Arc<Shared>,
    language: Language,
    done: bool,
}

impl Making {
    fn begin(shared: &Arc<Shared>, state: &mut State, language: Language) -> Self {
        *state.making.entry(language).or_default() += 1;
        Self { shared: Arc::clone(shared), language, done: false }
    }

    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(making) = state.making.get_mut(&self.language) {
            *making = making.saturating_sub(1);
        }
        if !self.done {
            state.not_before.insert(self.language, Instant::now() + AFTER_FAILURE);
        }
    }
}

/// A container that has ended, or sent output before its header, is not usable.
fn is_alive(lease: &mut Lease) -> bool {
    lease.attached.output.next().now_or_never().is_none()
}

async fn add(making: Making, engine: Arc<dyn Engine>, spec: ContainerSpec) {
    let (language, image, limits) = (spec.language, spec.image.clone(), spec.limits);
    let shared = Arc::clone(&making.shared);
    let made = make(Arc::clone(&engine), spec, shared.janitor.clone()).await;
    let lease = match preloaded(&shared, made, language, &image).await {
        Ok(lease) => lease,
        Err(error) => {
            debug!(%language, %error, "could not make a warm container");
            return;
        }
    };
    let mut state = shared.lock();
    if state.wants(&engine, &limits) {
        state.emptied.remove(&language);
        state.warm.entry(language).or_default().push(Warm { lease, limits, image, since: Instant::now() });
        shared.tell(&state);
        drop(state);
    } else {
        drop(state);
        drop(lease);
    }
    making.done();
}

/// Starts the interpreter, if the language preloads one. A container that fails to do so is dropped.
async fn preloaded(
    shared: &Shared,
    made: Result<Lease, EngineError>,
    language: Language,
    image: &str,
) -> Result<Lease, EngineError> {
    let mut lease = made?;
    if !language.recipe().preload || shared.lock().is_stubborn(image, Instant::now()) {
        return Ok(lease);
    }
    let ready = lease.preload().await;
    shared.lock().tried(image, ready, Instant::now());
    if ready {
        return Ok(lease);
    }
    let message = "its interpreter did not start ahead of a program".into();
    Err(EngineError::Broken { doing: "keep a container warm", message })
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(wake) => tokio::time::sleep_until(wake).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
