//! The switch, and the guarantee that off and shutdown leave no container: which runs they end, whom they answer and
//! when, and the sweeps.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::RunError;
use crate::event::Event;
use crate::run::EndedBy;

use super::actor::{Actor, Purpose};
use super::task;

/// Interval of the sweeps. One list a minute costs an engine nothing.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

impl Actor {
    pub(super) fn enable(&mut self, enabled: bool, reply: oneshot::Sender<()>) {
        if self.enabled != enabled {
            self.enabled = enabled;
            self.tell(Event::EnabledChanged { enabled });
        }
        if enabled {
            self.no_quiet();
            self.walls.doubt_missing();
            (self.parts.nudge)();
            self.publish();
            let _ = reply.send(());
        } else {
            self.end_everything(&RunError::Off, EndedBy::Switch);
            self.quiet.push(reply);
        }
    }

    /// Answers the callers that wait for the last container to go: once the switch is on again, that may never happen.
    /// A shutdown goes on waiting.
    fn no_quiet(&mut self) {
        if !self.stopping {
            std::mem::take(&mut self.noise).cancel();
            for reply in self.quiet.drain(..) {
                let _ = reply.send(());
            }
        }
    }

    /// Kills live runs, refuses queued ones, and cancels pulls.
    pub(super) fn end_everything(&mut self, error: &RunError, by: EndedBy) {
        for live in self.live.values() {
            live.cancel.by(by);
        }
        self.refuse_waiting(error, |_| true);
        self.images.cancel_all();
    }

    /// Looks for containers without a presence.
    pub(super) fn sweep(&mut self) {
        self.next_sweep = Instant::now() + SWEEP_EVERY;
        if let Some(engine) = self.engine.clone() {
            self.spawn(Purpose::Other, task::sweep(engine, self.parts.leases.clone()));
        }
    }

    /// Starts the wait for the last container, if a caller wants it and no run is live.
    pub(super) fn settle(&mut self) {
        if self.quiet.is_empty() || !self.live.is_empty() {
            return;
        }
        let (quiet, noise) = (std::mem::take(&mut self.quiet), self.noise.clone());
        self.spawn(Purpose::Other, task::quiet(self.engine.clone(), self.parts.leases.clone(), noise, quiet));
    }
}
