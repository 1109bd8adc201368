//! How many calls are under way, for what is done in the background: it takes turns with them rather than slow them down.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// No call for this long: none is under way, and the reply to the last one is out.
pub const PAUSE: Duration = Duration::from_millis(4);

/// Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<watch::Sender<Flow>>);

#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    under_way: usize,
    /// When the last call ended.
    last: Option<Instant>,
}

/// One call under way.
#[derive(Debug)]
pub struct Busy(Traffic);

impl Drop for Busy {
    fn drop(&mut self) {
        let now = Instant::now();
        self.0.0.send_modify(|flow| *flow = Flow { under_way: flow.under_way - 1, last: Some(now) });
    }
}

/// What the calls leave room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Now,
    /// Unless another call comes before.
    At(Instant),
    /// Calls are under way.
    Unknown,
}

impl Traffic {
    pub fn enter(&self) -> Busy {
        self.0.send_modify(|flow| flow.under_way += 1);
        Busy(self.clone())
    }

    pub fn room(&self, now: Instant) -> Room {
        let flow = *self.0.borrow();
        match flow.last.map(|last| last + PAUSE) {
            _ if flow.under_way > 0 => Room::Unknown,
            Some(quiet_at) if quiet_at > now => Room::At(quiet_at),
            _ => Room::Now,
        }
    }

    /// Changes with every call that begins or ends.
    pub fn watch(&self) -> Changes {
        Changes(self.0.subscribe())
    }

    /// Returns once there is room, or after that time.
    pub async fn lull(&self, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut changes = self.watch();
        loop {
            let until = match self.room(Instant::now()) {
                Room::Now => return,
                Room::At(at) => at.min(deadline),
                Room::Unknown => deadline,
            };
            if timeout_at(until, changes.next()).await.is_err() && until == deadline {
                return;
            }
        }
    }
}

#[derive(Debug)]
pub struct Changes(watch::Receiver<Flow>);

impl Changes {
    pub async fn next(&mut self) {
        // The sender lives as long as its watchers do anything; without it nothing changes any more.
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    async fn lull_takes(traffic: &Traffic, at_most: Duration) -> Duration {
        let begun = Instant::now();
        traffic.lull(at_most).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_there_once_the_last_call_has_been_over_for_a_moment() {
        let traffic = Traffic::default();
        assert_eq!(lull_takes(&traffic, LONG).await, Duration::ZERO);
        let (one, other) = (traffic.enter(), traffic.clone().enter());
        assert_eq!(traffic.room(Instant::now()), Room::Unknown);
        drop(one);
        assert_eq!(traffic.room(Instant::now()), Room::Unknown);
        drop(other);
        assert_eq!(traffic.room(Instant::now()), Room::At(Instant::now() + PAUSE));
        assert_eq!(lull_takes(&traffic, LONG).await, PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_without_end_are_not_waited_for_longer_than_asked() {
        let traffic = Traffic::default();
        let _busy = traffic.enter();
        assert_eq!(lull_takes(&traffic, LONG).await, LONG);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_in_the_pause_begins_it_anew() {
        let traffic = Traffic::default();
        drop(traffic.enter());
        let waiting = tokio::spawn({
            let traffic = traffic.clone();
            async move { lull_takes(&traffic, LONG).await }
        });
        tokio::time::sleep(PAUSE / 2).await;
        let busy = traffic.enter();
        tokio::time::sleep(PAUSE * 10).await;
        drop(busy);
        assert_eq!(waiting.await.unwrap(), PAUSE / 2 + PAUSE * 10 + PAUSE);
    }
}
