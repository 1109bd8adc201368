//! The minimum speed of a frame. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// Minimum average rate of a frame under way, in bytes per second, in either direction.
pub const MIN_RATE: usize = 64 << 10;

/// A frame fails unless it moves at [`MIN_RATE`] over every stretch of `grace`. This one rule covers a peer that does
/// nothing, one that trickles, and one that trickles only at the end. A small message has all of `grace`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    grace: Duration,
    deadline: Instant,
}

impl Pace {
    pub(super) fn begin(grace: Duration) -> Self {
        Self { grace, deadline: Instant::now() + grace }
    }

    /// Moving faster than the minimum does not extend the grace.
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

    /// Seconds until a frame is given up that moves `bytes` every `every` seconds.
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
    async fn a_frame_at_the_rate_goes_on_and_a_slower_one_ends() {
        assert_eq!(lasts(0, 0, 1).await, Some(30));
        assert_eq!(lasts(0, MIN_RATE, 1).await, None);
        assert_eq!(lasts(0, 25 * MIN_RATE, 25).await, None);
        // At half the rate, the grace is used up at half the speed.
        assert_eq!(lasts(0, MIN_RATE / 2, 1).await, Some(59));
        assert_eq!(lasts(0, MIN_RATE, 20).await, Some(31));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_beginning_saves_up_no_time() {
        assert_eq!(lasts(16 << 20, 0, 1).await, Some(30));
        assert_eq!(lasts(16 << 20, 1, 29).await, Some(30));
    }
}
