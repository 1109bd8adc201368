//! The number of calls under way. Background work waits for a lull instead of slowing calls down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// A lull is this long without a call: none is under way, and the last reply is out.
pub const PAUSE: Duration = Duration::from_millis(4);
/// Background work waits for a call only this long from the call's start. A call that takes seconds is hardly slowed by
/// work of a tenth of a second, and it must not keep others from finding a warm container.
pub const COUNTS: Duration = Duration::from_millis(250);

/// Cheap to clone; all clones share one count.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<watch::Sender<Flow>>);

#[derive(Debug, Default)]
struct Flow {
    next: u64,
    /// The start of each call under way. Bounded by the number of concurrent runs.
    under_way: BTreeMap<u64, Instant>,
    /// When the last call ended.
    last: Option<Instant>,
}

/// Drop guard for a call under way.
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

/// When background work may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    Now,
    /// Earlier if a call ends before that, later if another begins.
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

    /// Notified of every call that begins or ends.
    pub fn watch(&self) -> Changes {
        Changes(self.0.subscribe())
    }

    /// Waits for a lull, but no longer than `at_most`.
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
        // Fails only if the sender is gone. Then nothing changes any more, so this waits for ever.
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
