//! How slowly a frame may move. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// What the other side has to move on average, in either direction, while a frame is on its way.
pub const MIN_RATE: usize = 64 << 10;

/// A frame moves at [`MIN_RATE`] over every stretch of `grace`, or it is given up: one rule for a side that does nothing, one
/// that trickles, and one that trickles at the end. A message that is small enough has all of `grace`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    grace: Duration,
    deadline: Instant,
}

impl Pace {
    pub(super) fn begin(grace: Duration) -> Self {
        Self { grace, deadline: Instant::now() + grace }
    }

    /// What moves faster than it must saves up no time.
    pub(super) fn moved(&mut self, bytes: usize) {
        let earned = Duration::from_secs(1).mul_f64(bytes as f64 / MIN_RATE as f64);
        self.deadline = (self.deadline + earned).min(Instant::now() + self.grace);
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    /// After how many seconds a frame is given up that moves so many bytes every so many seconds.
    async fn lasts(first: usize, bytes: usize, every: u64) -> Option<u64> {
        let (begun, mut pace) = (Instant::now(), Pace::begin(GRACE));
        pace.moved(first);
        while begun.elapsed() < Duration::from_secs(600) {
            let next = Instant::now() + Duration::from_secs(every);
            if pace.deadline() < next {
                return Some((pace.deadline() - begun).as_secs());
            }
            tokio::time::sleep_until(next).await;
            pace.moved(bytes);
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_at_the_rate_may_go_on_and_what_is_slower_ends() {
        assert_eq!(lasts(0, 0, 1).await, Some(30));
        assert_eq!(lasts(0, MIN_RATE, 1).await, None);
        assert_eq!(lasts(0, 25 * MIN_RATE, 25).await, None);
        // Half the rate uses the grace up at half the speed.
        assert_eq!(lasts(0, MIN_RATE / 2, 1).await, Some(59));
        assert_eq!(lasts(0, MIN_RATE, 20).await, Some(31));
    }

    #[tokio::test(start_paused = true)]
    async fn speed_at_the_beginning_buys_no_time_at_the_end() {
        assert_eq!(lasts(16 << 20, 0, 1).await, Some(30));
        assert_eq!(lasts(16 << 20, 1, 29).await, Some(30));
    }
}
