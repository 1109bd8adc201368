//! How many calls are under way, for what is done in the background: it takes turns with them rather than slow them down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// No call for this long: none is under way, and the reply to the last one is out.
pub const PAUSE: Duration = Duration::from_millis(4);
/// A call is made way for no longer than this from its beginning: one that takes seconds is not slowed by what takes a
/// tenth of one, and must not keep the others from finding something warm.
pub const COUNTS: Duration = Duration::from_millis(250);

/// Cheap to clone; all clones count together.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<watch::Sender<Flow>>);

#[derive(Debug, Default)]
struct Flow {
    next: u64,
    /// When each call that is under way began. There are as many as may run at once.
    under_way: BTreeMap<u64, Instant>,
    /// When the last call ended.
    last: Option<Instant>,
}

/// One call under way.
#[derive(Debug)]
pub struct Busy {
    traffic: Traffic,
    number: u64,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = Instant::now();
        self.traffic.0.send_modify(|flow| {
            flow.under_way.remove(&self.number);
            flow.last = Some(now);
        });
    }
}

/// What the calls leave room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Now,
    /// Or sooner, once a call has ended; or later, if another begins.
    At(Instant),
}

impl Traffic {
    pub fn enter(&self) -> Busy {
        let mut number = 0;
        self.0.send_modify(|flow| {
            number = flow.next;
            flow.next += 1;
            flow.under_way.insert(number, Instant::now());
        });
        Busy { traffic: self.clone(), number }
    }

    pub fn room(&self, now: Instant) -> Room {
        let flow = self.0.borrow();
        let latest = flow.under_way.last_key_value().map(|(_, begun)| *begun + COUNTS);
        let quiet_at = latest.max(flow.last.map(|last| last + PAUSE));
        quiet_at.filter(|at| *at > now).map_or(Room::Now, Room::At)
    }

    /// Changes with every call that begins or ends.
    pub fn watch(&self) -> Changes {
        Changes(self.0.subscribe())
    }

    /// Returns once there is room, or after that time.
    pub async fn lull(&self, at_most: Duration) {
        let deadline = Instant::now() + at_most;
        let mut changes = self.watch();
        while let Room::At(at) = self.room(Instant::now()) {
            let until = at.min(deadline);
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
        assert_eq!(traffic.room(Instant::now()), Room::At(Instant::now() + COUNTS));
        drop(other);
        assert_eq!(traffic.room(Instant::now()), Room::At(Instant::now() + COUNTS));
        drop(one);
        assert_eq!(traffic.room(Instant::now()), Room::At(Instant::now() + PAUSE));
        assert_eq!(lull_takes(&traffic, LONG).await, PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_call_is_made_way_for_only_at_its_beginning() {
        let traffic = Traffic::default();
        let _long = traffic.enter();
        assert_eq!(lull_takes(&traffic, LONG).await, COUNTS);
        assert_eq!(traffic.room(Instant::now()), Room::Now);
        drop(traffic.enter());
        assert_eq!(lull_takes(&traffic, LONG).await, PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_without_end_are_not_waited_for_longer_than_asked() {
        let traffic = Traffic::default();
        let stream = async {
            loop {
                let _busy = traffic.enter();
                tokio::time::sleep(COUNTS / 2).await;
            }
        };
        tokio::select! {
            biased;
            () = stream => unreachable!(),
            took = lull_takes(&traffic, LONG) => assert_eq!(took, LONG),
        }
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
