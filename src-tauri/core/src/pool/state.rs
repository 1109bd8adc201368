//! The decisions of the pool: what is warm, what is wanted, and what to make next. Makes no containers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Stock;
use super::demand::Demand;
use crate::engine::{ContainerSpec, Engine, InstanceId};
use crate::language::Language;
use crate::lease::Lease;
use crate::run::{Limits, RunId};
use crate::traffic::Room;

/// While calls are under way, a creation waits for a lull. A language that has had no warm container for this long does
/// not wait.
const EMPTY: Duration = Duration::from_millis(50);
/// Failed preloads in a row after which an image is kept warm without its interpreter.
pub(super) const PRELOAD_TRIES: u32 = 3;
/// Time after which preloading is tried again: the machine may have been overloaded.
const FORGIVEN: Duration = Duration::from_secs(10 * 60);
/// Bound on images with failed preloads. The owner changes images by hand, so there are few.
const MAX_STUBBORN: usize = 64;
/// Age at which a warm container is replaced: its connection to the engine may have died silently.
pub(super) const OLDEST: Duration = Duration::from_secs(30 * 60);

#[derive(Default)]
pub(super) struct State {
    pub(super) stock: Option<Stock>,
    pub(super) demand: Demand,
    pub(super) warm: BTreeMap<Language, Vec<Warm>>,
    pub(super) making: BTreeMap<Language, usize>,
    /// By image id: failed preloads in a row, and the time of the last one.
    stubborn: BTreeMap<String, (u32, Instant)>,
    /// Languages whose last creation failed, and the time of the next attempt.
    pub(super) not_before: BTreeMap<Language, Instant>,
    /// When calls took the last warm container of a language.
    pub(super) emptied: BTreeMap<Language, Instant>,
}

pub(super) struct Warm {
    pub(super) lease: Lease,
    /// The limits that it was made with.
    pub(super) limits: Limits,
    pub(super) image: String,
    pub(super) since: Instant,
}

/// The next step of the keeper.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Make(Language),
    /// Nothing to make until then, or until a change.
    Look(Option<Instant>),
}

impl State {
    /// Sets the stock. Returns the warm containers of another engine or with other limits.
    pub(super) fn replace(&mut self, stock: Option<Stock>) -> BTreeMap<Language, Vec<Warm>> {
        let same = match (&self.stock, &stock) {
            (Some(old), Some(new)) => Arc::ptr_eq(&old.engine, &new.engine) && same_container(&old.limits, &new.limits),
            _ => false,
        };
        self.stock = stock;
        if same {
            return BTreeMap::new();
        }
        self.stubborn.clear();
        self.not_before.clear();
        std::mem::take(&mut self.warm)
    }

    /// Whether a container of that engine with those limits belongs in the pool.
    pub(super) fn wants(&self, engine: &Arc<dyn Engine>, limits: &Limits) -> bool {
        self.stock
            .as_ref()
            .is_some_and(|stock| Arc::ptr_eq(&stock.engine, engine) && same_container(&stock.limits, limits))
    }

    /// Removes and returns the containers that exceed the targets or no longer fit.
    pub(super) fn trim(&mut self, now: Instant) -> Vec<Warm> {
        let Some(stock) = &self.stock else {
            self.emptied.clear();
            return std::mem::take(&mut self.warm).into_values().flatten().collect();
        };
        let targets = self.demand.targets(stock.cap, now);
        self.emptied.retain(|language, _| targets.contains_key(language));
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

    /// The language to make a container for: the one with the fewest containers among those below their target that
    /// need not wait.
    pub(super) fn next(&self, room: Room, now: Instant) -> Next {
        let Some(stock) = &self.stock else { return Next::Look(None) };
        let targets = self.demand.targets(stock.cap, now);
        let mut wanting: Vec<(usize, Language)> = targets
            .into_iter()
            .filter(|(language, _)| stock.images.contains_key(language))
            .map(|(language, target)| (self.count(language), language, target))
            .filter(|(there, _, target)| there < target)
            .map(|(there, language, _)| (there, language))
            .collect();
        wanting.sort();
        let mut look = self.demand.next_change(now);
        for (_, language) in wanting {
            match self.room(language, room, now) {
                Room::Now => return Next::Make(language),
                Room::At(at) => look = Some(look.map_or(at, |look| look.min(at))),
            }
        }
        Next::Look(look)
    }

    /// When a container of the language may be made. Calls have priority, unless the language has had no container for
    /// a while, because then calls wait for one.
    fn room(&self, language: Language, room: Room, now: Instant) -> Room {
        if let Some(not_before) = self.not_before.get(&language).filter(|at| **at > now) {
            return Room::At(*not_before);
        }
        let due = self.emptied.get(&language).filter(|_| self.count(language) == 0).map(|since| *since + EMPTY);
        match (room, due) {
            (Room::At(_), Some(due)) if due <= now => Room::Now,
            (Room::At(at), Some(due)) => Room::At(due.min(at)),
            (room, _) => room,
        }
    }

    pub(super) fn is_stubborn(&self, image: &str, now: Instant) -> bool {
        let often = |(times, last): &(u32, Instant)| *times >= PRELOAD_TRIES && now.duration_since(*last) < FORGIVEN;
        self.stubborn.get(image).is_some_and(often)
    }

    pub(super) fn tried(&mut self, image: &str, ready: bool, now: Instant) {
        if ready {
            self.stubborn.remove(image);
            return;
        }
        if self.stubborn.len() >= MAX_STUBBORN {
            self.stubborn.clear();
        }
        let (times, last) = self.stubborn.entry(image.to_owned()).or_insert((0, now));
        *times = if now.duration_since(*last) < FORGIVEN { *times + 1 } else { 1 };
        *last = now;
    }

    fn count(&self, language: Language) -> usize {
        self.warm.get(&language).map_or(0, Vec::len) + self.making.get(&language).copied().unwrap_or(0)
    }

    /// The engine and the spec for a new container of the language.
    pub(super) fn order(&self, language: Language, instance: &InstanceId) -> Option<(Arc<dyn Engine>, ContainerSpec)> {
        let stock = self.stock.as_ref()?;
        let spec = ContainerSpec {
            image: stock.images.get(&language)?.id.clone(),
            language,
            limits: stock.limits,
            instance: instance.clone(),
            run: RunId::generate(),
        };
        Some((Arc::clone(&stock.engine), spec))
    }
}

/// Whether both limits give the same container. Time, output and files are enforced from outside.
fn same_container(one: &Limits, other: &Limits) -> bool {
    let of = |limits: &Limits| (limits.memory_bytes, limits.milli_cpus, limits.processes);
    of(one) == of(other)
}

/// Whether a container made with the one will do for the other. Its limit on CPU seconds, the backstop of the run's
/// time, is set when it is made: it may be too long, but not too short.
pub(super) fn covers(made_with: &Limits, wanted: &Limits) -> bool {
    same_container(made_with, wanted) && wanted.millis <= made_with.millis
}
