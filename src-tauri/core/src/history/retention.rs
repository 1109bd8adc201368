//! Picks the runs to prune: a pure function of the oldest runs, the totals, the bounds and the time.

use std::time::{Duration, SystemTime};

use super::record::Stats;
use crate::settings::HistorySettings;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) runs: u64,
    pub(super) bytes: u64,
    pub(super) age: Duration,
}

impl Bounds {
    pub(super) fn of(settings: &HistorySettings) -> Self {
        Self {
            runs: u64::from(settings.max_runs),
            bytes: u64::from(settings.max_mb) << 20,
            age: DAY * settings.max_days,
        }
    }
}

/// Tolerated excess over a bound, as one part in this many. Beyond it the next write prunes more than one step.
const TOLERATED: u64 = 10;

impl Bounds {
    /// Whether the totals exceed a bound by more than the tolerated excess.
    pub(super) fn far_below(&self, totals: Stats) -> bool {
        let over = |now: u64, bound: u64| now > bound.saturating_add(bound / TOLERATED);
        over(totals.runs, self.runs) || over(totals.bytes, self.bytes)
    }
}

/// The facts of a run that pruning needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) seq: i64,
    pub(super) queued_at: SystemTime,
    pub(super) bytes: u64,
}

/// The runs to delete, from `oldest` in order. The newest is kept whatever its size: the owner has just seen it.
pub(super) fn doomed(oldest: &[Kept], totals: Stats, bounds: &Bounds, now: SystemTime) -> Vec<i64> {
    let mut left = totals;
    let mut doomed = Vec::new();
    for run in oldest {
        let over = left.runs > bounds.runs || left.bytes > bounds.bytes || too_old(run, bounds, now);
        if !over || left.runs <= 1 {
            break;
        }
        doomed.push(run.seq);
        left.runs -= 1;
        left.bytes = left.bytes.saturating_sub(run.bytes);
    }
    doomed
}

/// A run with a time in the future, from a clock that was wrong, does not count as old.
fn too_old(run: &Kept, bounds: &Bounds, now: SystemTime) -> bool {
    now.duration_since(run.queued_at).is_ok_and(|age| age > bounds.age)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::from_millis;

    const ROOMY: Bounds = Bounds { runs: 100, bytes: 1000, age: DAY };

    /// Runs 1, 2, 3, ... of these sizes, one hour apart.
    fn runs(sizes: &[u64]) -> (Vec<Kept>, Stats) {
        let runs: Vec<Kept> = (1..)
            .zip(sizes)
            .map(|(seq, bytes)| Kept { seq, queued_at: from_millis(seq as u64 * 3_600_000), bytes: *bytes })
            .collect();
        let totals = Stats { runs: runs.len() as u64, bytes: sizes.iter().sum(), inputs: 0 };
        (runs, totals)
    }

    fn hour(hour: u64) -> SystemTime {
        from_millis(hour * 3_600_000)
    }

    #[test]
    fn within_the_bounds_nothing_goes() {
        let (oldest, totals) = runs(&[400, 300, 300]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(4)), [0_i64; 0]);
        assert_eq!(doomed(&[], Stats::default(), &ROOMY, hour(4)), [0_i64; 0]);
    }

    #[test]
    fn a_tenth_over_a_bound_is_tolerated() {
        let far = |runs, bytes| ROOMY.far_below(Stats { runs, bytes, inputs: 0 });
        assert_eq!([far(110, 1100), far(111, 0), far(0, 1101)], [false, true, true]);
    }

    #[test]
    fn the_oldest_go_by_count() {
        let (oldest, totals) = runs(&[1; 5]);
        assert_eq!(doomed(&oldest, totals, &Bounds { runs: 3, ..ROOMY }, hour(6)), [1, 2]);
    }

    #[test]
    fn the_oldest_go_until_the_bytes_fit() {
        let (oldest, totals) = runs(&[10, 500, 400, 300]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(5)), [1, 2]);
    }

    #[test]
    fn the_aged_go_and_one_at_the_age_stays() {
        let (oldest, totals) = runs(&[1; 5]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(26)), [1]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(27)), [1, 2]);
    }

    #[test]
    fn the_newest_stays_whatever_it_is() {
        let (oldest, totals) = runs(&[5000]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(1000)), [0_i64; 0]);
        let (oldest, totals) = runs(&[1, 5000]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(1000)), [1]);
    }

    #[test]
    fn a_part_of_the_runs_is_judged_by_the_totals_of_all() {
        let (oldest, totals) = runs(&[1; 50]);
        assert_eq!(doomed(&oldest[..8], totals, &Bounds { runs: 10, ..ROOMY }, hour(51)).len(), 8);
    }

    #[test]
    fn a_clock_that_went_back_ages_nothing() {
        let (oldest, totals) = runs(&[1; 3]);
        assert_eq!(doomed(&oldest, totals, &ROOMY, hour(0)), [0_i64; 0]);
    }
}
