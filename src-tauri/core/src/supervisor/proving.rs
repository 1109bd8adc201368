//! Has the walls proved, image by image, and derives the engine's state from the results.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracing::error;

use crate::engine::{Engine, EngineState, EngineTrouble, ImageInfo, PullError};
use crate::error::RunError;
use crate::event::Event;
use crate::language::Language;

use super::actor::{Actor, Purpose};
use super::task;
use super::walls::{Check, Verdict};
use super::{Proof, Unproved};

impl Actor {
    /// Starts checks of the walls in each present image, and refuses runs that wait for an image with a missing wall.
    /// Images that runs wait for are checked at once and in parallel, so that a slow one delays no other. Other images
    /// are checked ahead of the first call, one at a time.
    pub(super) fn advance_walls(&mut self, engine: &Arc<dyn Engine>) {
        let names: BTreeSet<String> =
            Language::ALL.into_iter().map(|language| self.parts.settings.image(language).to_owned()).collect();
        for name in &names {
            if let Some(trouble) = self.wall_missing(name) {
                let (error, settings) = (RunError::Engine(trouble), self.parts.settings.clone());
                self.refuse_waiting(&error, |pending| settings.image(pending.spec.language) == name);
                self.images.refuse_askers(&error, |other| other == name);
            }
        }
        let (settings, queue) = (&self.parts.settings, &self.queue);
        let is_wanted = |name: &str| {
            self.images.is_asked_for(name) || queue.iter().any(|pending| settings.image(pending.spec.language) == name)
        };
        let here = |name: &String| self.images.here(name).cloned();
        let (wanted, rest): (Vec<&String>, Vec<&String>) = names.iter().partition(|name| is_wanted(name));
        let rest = rest.into_iter().filter(|name| self.enabled && self.images.ready(name).is_some());
        let (wanted, rest): (Vec<ImageInfo>, Vec<ImageInfo>) =
            (wanted.into_iter().filter_map(here).collect(), rest.filter_map(here).collect());
        for image in wanted {
            self.check_walls(engine, image);
        }
        for image in rest {
            if !self.walls.are_being_checked() {
                self.check_walls(engine, image);
            }
        }
    }

    fn check_walls(&mut self, engine: &Arc<dyn Engine>, image: ImageInfo) {
        let Some((check, failures)) = self.walls.begin(&image.id) else { return };
        let purpose = Purpose::Walls(image.id.clone(), check);
        let (wall_check, leases) = (Arc::clone(&self.parts.wall_check), self.parts.leases.clone());
        let engine = Arc::clone(engine);
        self.spawn(purpose, task::check_walls(wall_check, engine, image, leases, self.limits(), (check, failures)));
    }

    pub(super) fn know_walls(&mut self, image: &str, check: Check, result: Result<Proof, Unproved>) {
        match self.walls.conclude(image, check, result) {
            Verdict::Held | Verdict::Stale => {}
            Verdict::Missing(wall) => {
                error!(image, wall, "a wall is missing: nothing runs in this image");
                self.tell(Event::EngineChanged { engine: self.engine_state() });
            }
            // Runs that wait for it go on waiting until it has been pulled again.
            Verdict::NoImage { again: false } => self.images.doubt(image),
            // The engine lists the image, but makes no container from it.
            Verdict::NoImage { again: true } => {
                let message = "the engine lists it, and says that it is not there when it is used.";
                self.refuse_image(image, |name| RunError::Image {
                    image: name.to_owned(),
                    error: PullError::Other { message: message.into() },
                });
            }
            Verdict::Unknown(error) => self.refuse_image(image, |_| error.clone()),
        }
    }

    /// Refuses the runs that wait for the image with this id. The image may be the cause, so it is looked at again.
    fn refuse_image(&mut self, id: &str, error: impl Fn(&str) -> RunError) {
        let settings = self.parts.settings.clone();
        let names: BTreeSet<&str> = Language::ALL
            .into_iter()
            .map(|language| settings.image(language))
            .filter(|name| self.images.here(name).is_some_and(|here| here.id == id))
            .collect();
        self.images.doubt(id);
        (self.parts.nudge)();
        for name in names {
            let error = error(name);
            self.refuse_waiting(&error, |pending| settings.image(pending.spec.language) == name);
            self.images.refuse_askers(&error, |other| other == name);
        }
    }

    /// The engine's state by its health checks.
    pub(super) fn health(&self) -> EngineState {
        self.parts.connections.borrow().state.clone()
    }

    /// The missing wall that keeps runs out of the image of this name.
    pub(super) fn wall_missing(&self, name: &str) -> Option<EngineTrouble> {
        let wall = self.walls.missing(&self.images.here(name)?.id)?.to_owned();
        let endpoint = self.engine.as_ref()?.endpoint().clone();
        Some(EngineTrouble::WallMissing { endpoint, image: name.to_owned(), wall })
    }

    /// The engine's state as published. If a wall is missing in every present image, the engine counts as unusable.
    pub(super) fn engine_state(&self) -> EngineState {
        let state = self.health();
        let names = Language::ALL.into_iter().map(|language| self.parts.settings.image(language));
        let here: Vec<&str> = names.filter(|name| self.images.here(name).is_some()).collect();
        let missing: Option<Vec<EngineTrouble>> = here.into_iter().map(|name| self.wall_missing(name)).collect();
        match missing.and_then(|missing| missing.into_iter().next()) {
            Some(trouble) if matches!(state, EngineState::Ready(_)) => EngineState::Trouble(trouble),
            Some(_) | None => state,
        }
    }
}
