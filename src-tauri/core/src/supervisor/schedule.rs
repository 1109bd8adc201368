//! Starts the work that is possible now: looks at images, starts runs, stocks the pool. Called after every message.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, EngineState, ImageInfo};
use crate::error::RunError;
use crate::executor::cancelled_early;
use crate::language::Language;
use crate::pool::Stock;
use crate::run::Limits;

use super::actor::{Actor, Live, Purpose};
use super::image::{self, Preparation};
use super::images::Work;
use super::pending::Pending;
use super::task::RunTask;

impl Actor {
    /// Starts all work that is possible now.
    pub(super) fn advance(&mut self) {
        for abandoned in self.queue.take_where(|pending| pending.cancel.is_cancelled()) {
            let image = self.parts.settings.image(abandoned.spec.language).to_owned();
            let outcome = cancelled_early(&abandoned.spec, image, abandoned.asked, abandoned.cancel.who());
            self.answer(abandoned, Ok(outcome));
        }
        if let EngineState::Trouble(trouble) = self.health() {
            self.refuse_waiting(&RunError::Engine(trouble.clone()), |_| true);
            self.images.refuse_askers(&RunError::Engine(trouble), |_| true);
        }
        let Some(engine) = self.engine.clone() else { return };
        self.advance_images(&engine);
        if self.stopping {
            return;
        }
        self.advance_walls(&engine);
        if self.enabled {
            self.start_runs(&engine);
        }
    }

    fn advance_images(&mut self, engine: &Arc<dyn Engine>) {
        let settings = &self.parts.settings;
        let waited_for: Vec<&str> = self.queue.iter().map(|pending| settings.image(pending.spec.language)).collect();
        for Work { name, ticket, pull, prepare, failures } in
            self.images.begin(|name| waited_for.contains(&name), |id| self.walls.held(id).is_some(), !self.stopping)
        {
            let preparation =
                Preparation::of(&name, &self.parts.settings, self.limits_of_preparing(), &self.parts.leases);
            let (engine, purpose) = (Arc::clone(engine), Purpose::Image(name.clone()));
            match pull {
                None => self.spawn(purpose, image::look(engine, name, ticket, preparation, failures)),
                Some(cancel) => {
                    let notes = self.notes.0.clone();
                    self.spawn(purpose, image::pull(engine, name, ticket, preparation, prepare, notes, cancel));
                }
            }
        }
    }

    fn start_runs(&mut self, engine: &Arc<dyn Engine>) {
        while self.live.len() + self.overstaying() < self.concurrency {
            let Some((mut pending, image, doubted)) = self.next_run() else { return };
            // The owner may have lowered the limits since the run was submitted.
            let limits = pending.spec.limits.at_most(&self.limits());
            if limits != pending.spec.limits {
                Arc::make_mut(&mut pending.spec).limits = limits;
            }
            let run = pending.spec.id;
            let started = Arc::new(OnceLock::new());
            let live = Live {
                client: pending.client.id,
                run: pending.live(),
                started: Arc::clone(&started),
                cancel: pending.cancel.clone(),
                tap: pending.progress.tap.clone(),
                request: pending.request(),
            };
            self.live.insert(run, live);
            let task = RunTask {
                image_name: self.parts.settings.image(pending.spec.language).to_owned(),
                pending: *pending,
                started,
                engine: Arc::clone(engine),
                image,
                doubted,
                leases: self.parts.leases.clone(),
                recorder: Arc::clone(&self.parts.recorder),
                notes: self.notes.0.clone(),
            };
            self.spawn(Purpose::Run(run), task.run());
        }
    }

    /// Containers of ended runs in which a program may still run. Each keeps its place until it is gone.
    fn overstaying(&self) -> usize {
        *self.parts.leases.janitor.watch_overstaying().borrow()
    }

    /// The next run whose image is present with its walls proved, and whose client has read enough. The token is
    /// cancelled once that proof is doubted.
    fn next_run(&mut self) -> Option<(Box<Pending>, ImageInfo, CancellationToken)> {
        let (images, walls, settings) = (&self.images, &self.walls, &self.parts.settings);
        let image = |pending: &Pending| {
            let image = images.ready(settings.image(pending.spec.language))?;
            Some((image.clone(), walls.held(&image.id)?.doubted.clone()))
        };
        let ready = |pending: &Pending| pending.hold.may_begin() && image(pending).is_some();
        let mut next = self.queue.pop_where(|pending| ready(pending));
        if next.is_none() {
            let held_back = self.queue.iter().any(|pending| !pending.hold.may_begin());
            self.parts.budget.watch(held_back);
            // Checked again, because replies that were read before the watch began were not notified.
            next = if held_back { self.queue.pop_where(|pending| ready(pending)) } else { None };
        }
        let next = next?;
        let (image, doubted) = image(&next)?;
        Some((next, image, doubted))
    }

    /// Tells the pool what to keep warm, if that has changed.
    pub(super) fn stock(&mut self) {
        let usable = self.enabled && !self.stopping;
        let engine = if usable { self.engine.clone() } else { None };
        let stock = engine.map(|engine| Stock {
            engine,
            images: Language::ALL
                .into_iter()
                .filter_map(|language| {
                    let image = self.images.ready(self.parts.settings.image(language))?;
                    self.walls.held(&image.id).map(|_| (language, image.clone()))
                })
                .collect(),
            limits: self.limits(),
            cap: self.parts.settings.warm as usize,
        });
        if !same_stock(self.stocked.as_ref(), stock.as_ref()) {
            self.parts.leases.pool.stock(stock.clone());
            self.stocked = stock;
        }
    }

    /// The owner's limits, cut to what the engine can grant: an engine with two CPUs refuses a container with three.
    pub(super) fn limits(&self) -> Limits {
        self.granted(self.parts.settings.limits())
    }

    /// The limits for preparing an image. A run waits for it and it is done once, so it gets twice the CPU of a run, if
    /// the machine has that much.
    pub(super) fn limits_of_preparing(&self) -> Limits {
        let run = self.parts.settings.limits();
        self.granted(Limits { milli_cpus: run.milli_cpus.saturating_mul(2), ..run })
    }

    fn granted(&self, limits: Limits) -> Limits {
        match &self.parts.connections.borrow().state {
            EngineState::Ready(info) if info.cpus > 0 => {
                Limits { milli_cpus: limits.milli_cpus.min(info.cpus.saturating_mul(1000)), ..limits }
            }
            EngineState::Ready(_) | EngineState::Checking | EngineState::Trouble(_) => limits,
        }
    }
}

fn same_stock(one: Option<&Stock>, other: Option<&Stock>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let rest = |stock: &Stock| (stock.images.clone(), stock.limits, stock.cap);
            Arc::ptr_eq(&one.engine, &other.engine) && rest(one) == rest(other)
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
