//! Warm containers: started and attached ahead of the call, each used once. One of them saves the 100 ms that making a
//! container takes. The [`keeper`](Pool::keep) makes them in the background, as many as [`demand`] says.

pub mod demand;

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
use crate::run::{Limits, RunId};
use crate::traffic::{Busy, Room};

use demand::Demand;

/// Made at the same time. What is under way when a call comes cannot be put off any more, so it should not take all cores.
const WORKERS: usize = 1;
/// With calls under way, making another waits for a lull, unless none has been left at all for this long.
const EMPTY: Duration = Duration::from_millis(50);
/// After a failure: the engine may be restarting.
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// An image whose interpreter does not start ahead so often in a row is kept warm without it.
const PRELOAD_TRIES: u32 = 3;
/// Images that are remembered for that; an owner changes them by hand.
const MAX_STUBBORN: usize = 64;
/// Older ones are replaced: their engine's connection may have died without a word.
const OLDEST: Duration = Duration::from_secs(30 * 60);

/// What to keep warm, as the supervisor sees it now. `None` while there is nothing to be kept: off, or no engine.
#[derive(Debug, Clone)]
pub struct Stock {
    pub engine: Arc<dyn Engine>,
    pub images: BTreeMap<Language, ImageInfo>,
    /// The owner's; a call with others of those that a container is made with gets a container of its own.
    pub limits: Limits,
    /// Of all languages together.
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
    /// How many are warm, for whoever shows it.
    count: watch::Sender<usize>,
    janitor: Janitor,
    instance: InstanceId,
}

#[derive(Default)]
struct State {
    stock: Option<Stock>,
    demand: Demand,
    warm: BTreeMap<Language, Vec<Warm>>,
    making: BTreeMap<Language, usize>,
    /// How often in a row the interpreter of an image, by its id, could not be started ahead.
    stubborn: BTreeMap<String, u32>,
    /// When calls took the last one of a language.
    emptied: BTreeMap<Language, Instant>,
}

struct Warm {
    lease: Lease,
    /// What it was made with.
    limits: Limits,
    image: String,
    since: Instant,
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

    /// After every change of what is warm, while the state is still held.
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

    /// Takes effect at once: what does not fit any more is let go of.
    pub fn stock(&self, stock: Option<Stock>) {
        let mut state = self.shared.lock();
        let same_engine = match (&state.stock, &stock) {
            (Some(old), Some(new)) => Arc::ptr_eq(&old.engine, &new.engine) && same_container(&old.limits, &new.limits),
            _ => false,
        };
        if !same_engine {
            state.stubborn.clear();
        }
        let dropped = if same_engine { BTreeMap::new() } else { std::mem::take(&mut state.warm) };
        state.stock = stock;
        let unfit = state.trim(Instant::now());
        self.shared.tell(&state);
        drop(state);
        drop((dropped, unfit));
        self.shared.changed.notify_one();
    }

    /// How many are warm, over all languages.
    pub fn warm(&self) -> usize {
        *self.shared.count.borrow()
    }

    pub fn watch(&self) -> watch::Receiver<usize> {
        self.shared.count.subscribe()
    }

    /// Notes a call; hands out a warm container that is alive and just as the call wants it, where there is one.
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
        let fits = state
            .stock
            .as_ref()
            .is_some_and(|stock| Arc::ptr_eq(&stock.engine, engine) && same_container(&stock.limits, limits));
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

    /// Keeps the pool filled until it is cancelled; then lets go of everything.
    pub async fn keep(self, cancel: CancellationToken) {
        let mut workers = JoinSet::new();
        let mut not_before = Instant::now();
        let mut traffic = self.shared.janitor.traffic().watch();
        loop {
            let wake = self.step(&mut workers, not_before);
            tokio::select! {
                () = cancel.cancelled() => break,
                () = self.shared.changed.notified() => {}
                () = traffic.next() => {}
                () = sleep_until(wake) => {}
                Some(made) = workers.join_next() => {
                    if !matches!(made, Ok(true)) {
                        not_before = Instant::now() + AFTER_FAILURE;
                    }
                }
            }
        }
        workers.shutdown().await;
        self.stock(None);
    }

    /// Starts what may be started now; says when to look again.
    fn step(&self, workers: &mut JoinSet<bool>, not_before: Instant) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.shared.lock();
        let unfit = state.trim(now);
        let wake = loop {
            if state.stock.is_none() || workers.len() >= WORKERS {
                break None;
            }
            let Some(language) = state.wanting(now) else { break state.demand.next_change(now) };
            if now < not_before {
                break Some(not_before);
            }
            match state.room(language, self.shared.janitor.traffic().room(now), now) {
                Room::Now => {}
                Room::At(at) => break Some(at),
                Room::Unknown => break None,
            }
            let Some(spec) = state.spec(language, &self.shared.instance) else { break None };
            *state.making.entry(language).or_default() += 1;
            let engine = state.stock.as_ref().map(|stock| Arc::clone(&stock.engine));
            if let Some(engine) = engine {
                workers.spawn(add(Arc::clone(&self.shared), engine, spec));
            }
        };
        self.shared.tell(&state);
        drop(state);
        drop(unfit);
        wake
    }
}

impl State {
    /// Takes out what is too much or does not fit any more.
    fn trim(&mut self, now: Instant) -> Vec<Warm> {
        let Some(stock) = &self.stock else {
            return std::mem::take(&mut self.warm).into_values().flatten().collect();
        };
        let targets = self.demand.targets(stock.cap, now);
        let mut out = Vec::new();
        for (language, warm) in &mut self.warm {
            let image = stock.images.get(language).map(|image| image.id.as_str());
            let (stay, go) = std::mem::take(warm).into_iter().partition(|warm: &Warm| {
                let fits = Some(warm.image.as_str()) == image && covers(&warm.limits, &stock.limits);
                fits && now.duration_since(warm.since) < OLDEST
            });
            *warm = stay;
            out.extend::<Vec<Warm>>(go);
            let target = targets.get(language).copied().unwrap_or(0);
            if warm.len() > target {
                out.extend(warm.drain(target..));
            }
        }
        out
    }

    /// The language that is furthest from what it should have.
    fn wanting(&self, now: Instant) -> Option<Language> {
        let stock = self.stock.as_ref()?;
        let targets = self.demand.targets(stock.cap, now);
        targets
            .into_iter()
            .filter(|(language, _)| stock.images.contains_key(language))
            .map(|(language, target)| (language, target, self.count(language)))
            .filter(|(_, target, there)| there < target)
            .min_by_key(|(_, _, there)| *there)
            .map(|(language, _, _)| language)
    }

    fn failures(&self, image: &str) -> u32 {
        self.stubborn.get(image).copied().unwrap_or(0)
    }

    fn tried(&mut self, image: &str, ready: bool) {
        if ready {
            self.stubborn.remove(image);
            return;
        }
        if self.stubborn.len() >= MAX_STUBBORN {
            self.stubborn.clear();
        }
        *self.stubborn.entry(image.to_owned()).or_default() += 1;
    }

    fn count(&self, language: Language) -> usize {
        self.warm.get(&language).map_or(0, Vec::len) + self.making.get(&language).copied().unwrap_or(0)
    }

    /// Calls come first, unless the language has had none left for a while: then they wait for it themselves.
    fn room(&self, language: Language, room: Room, now: Instant) -> Room {
        let due = self.emptied.get(&language).filter(|_| self.count(language) == 0).map(|since| *since + EMPTY);
        match (room, due) {
            (Room::Now, _) => Room::Now,
            (_, Some(due)) if due <= now => Room::Now,
            (Room::At(at), due) => Room::At(due.map_or(at, |due| due.min(at))),
            (Room::Unknown, due) => due.map_or(Room::Unknown, Room::At),
        }
    }

    fn spec(&self, language: Language, instance: &InstanceId) -> Option<ContainerSpec> {
        let stock = self.stock.as_ref()?;
        Some(ContainerSpec {
            image: stock.images.get(&language)?.id.clone(),
            language,
            limits: stock.limits,
            instance: instance.clone(),
            run: RunId::generate(),
        })
    }
}

/// Whether the two ask for the same container. Time, output and files are watched from outside.
fn same_container(one: &Limits, other: &Limits) -> bool {
    let of = |limits: &Limits| (limits.memory_bytes, limits.milli_cpus, limits.processes);
    of(one) == of(other)
}

/// Whether a container made with the one will do for the other. Its limit on CPU seconds, the backstop of the run's time,
/// is set when it is made: it may be too long, but not too short.
fn covers(made_with: &Limits, wanted: &Limits) -> bool {
    same_container(made_with, wanted) && wanted.millis <= made_with.millis
}

/// One that has ended, or said anything before it was spoken to, is not as it should be.
fn is_alive(lease: &mut Lease) -> bool {
    lease.attached.output.next().now_or_never().is_none()
}

/// True when one more is warm, or is not wanted any more.
async fn add(shared: Arc<Shared>, engine: Arc<dyn Engine>, spec: ContainerSpec) -> bool {
    let (language, image, limits) = (spec.language, spec.image.clone(), spec.limits);
    let made = make(Arc::clone(&engine), spec, shared.janitor.clone()).await;
    let made = preloaded(&shared, made, language, &image).await;
    let mut state = shared.lock();
    if let Some(making) = state.making.get_mut(&language) {
        *making = making.saturating_sub(1);
    }
    let lease = match made {
        Ok(lease) => lease,
        Err(error) => {
            debug!(%language, %error, "could not make a warm container");
            return false;
        }
    };
    let wanted = state
        .stock
        .as_ref()
        .is_some_and(|stock| Arc::ptr_eq(&stock.engine, &engine) && same_container(&stock.limits, &limits));
    if wanted {
        state.emptied.remove(&language);
        state.warm.entry(language).or_default().push(Warm { lease, limits, image, since: Instant::now() });
        shared.tell(&state);
    } else {
        drop(state);
        drop(lease);
    }
    true
}

/// With its interpreter started, where that can be. One that did not get there is let go of.
async fn preloaded(
    shared: &Shared,
    made: Result<Lease, EngineError>,
    language: Language,
    image: &str,
) -> Result<Lease, EngineError> {
    let mut lease = made?;
    if !language.recipe().preload || shared.lock().failures(image) >= PRELOAD_TRIES {
        return Ok(lease);
    }
    let ready = lease.preload().await;
    shared.lock().tried(image, ready);
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
