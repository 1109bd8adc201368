//! The reason why each queued run waits. It is part of the snapshot, from which all views read it.

use crate::engine::EngineState;
use crate::event::{ImageState, LiveRun, Waiting};

use super::actor::Actor;
use super::pending::Pending;

impl Actor {
    /// The queued runs, in the order in which they are served.
    pub(super) fn queued(&self) -> Vec<LiveRun> {
        let is_ready = matches!(self.parts.connections.borrow().state, EngineState::Ready(_));
        let mut ahead = 0;
        let mut shown = |pending: &Pending| {
            let obstacle = if is_ready { self.obstacle(pending) } else { Some(Waiting::Engine) };
            let waiting = obstacle.unwrap_or_else(|| {
                ahead += 1;
                Waiting::Turn { ahead: ahead - 1 }
            });
            LiveRun { waiting: Some(waiting), ..pending.live() }
        };
        self.queue.in_turn().into_iter().map(|pending| shown(pending)).collect()
    }

    /// The obstacle to a run's start other than its turn.
    fn obstacle(&self, pending: &Pending) -> Option<Waiting> {
        match self.images.state(self.parts.settings.image(pending.spec.language)) {
            ImageState::Unknown => Some(Waiting::Engine),
            // A pull of the image is about to begin.
            ImageState::NotPulled | ImageState::Failed { .. } => {
                Some(Waiting::Pull { fraction: 0.0, downloaded_bytes: 0, total_bytes: 0 })
            }
            ImageState::Pulling(figure) if figure.preparing => Some(Waiting::Preparation),
            ImageState::Pulling(figure) => Some(Waiting::Pull {
                fraction: figure.fraction,
                downloaded_bytes: figure.downloaded_bytes,
                total_bytes: figure.total_bytes,
            }),
            ImageState::Unprepared(image) if self.walls.held(&image.id).is_some() => Some(Waiting::Preparation),
            ImageState::Ready(image) if self.walls.held(&image.id).is_some() => {
                (!pending.hold.may_begin()).then_some(Waiting::Unread)
            }
            ImageState::Unprepared(_) | ImageState::Ready(_) => Some(Waiting::Check),
        }
    }
}
