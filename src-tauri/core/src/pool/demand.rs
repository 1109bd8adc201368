//! The number of containers of each language to keep warm. Pure: computed from the times of calls.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::language::Language;

/// A burst is expected again for this long.
pub const BURST: Duration = Duration::from_secs(60);
/// After this long without a call, no container is kept warm for a language.
pub const FORGOTTEN: Duration = Duration::from_secs(15 * 60);
/// Bound on remembered calls per language; more than any pool holds.
const REMEMBERED: usize = 64;

/// The times of recent calls.
#[derive(Debug, Default)]
pub struct Demand {
    calls: BTreeMap<Language, VecDeque<Instant>>,
}

impl Demand {
    pub fn note(&mut self, language: Language, now: Instant) {
        let calls = self.calls.entry(language).or_default();
        if calls.len() == REMEMBERED {
            calls.pop_front();
        }
        calls.push_back(now);
    }

    /// The number to keep warm per language, at most `cap` in total. Every language in use gets one before any language
    /// gets its second.
    pub fn targets(&self, cap: usize, now: Instant) -> BTreeMap<Language, usize> {
        let mut wanted: Vec<(Language, Instant, usize)> = self
            .calls
            .iter()
            .filter_map(|(language, calls)| {
                let last = *calls.back()?;
                if now.duration_since(last) >= FORGOTTEN {
                    return None;
                }
                let recent = calls.iter().filter(|call| now.duration_since(**call) < BURST).count();
                Some((*language, last, recent.max(1)))
            })
            .collect();
        // The language with the latest call comes first.
        wanted.sort_by_key(|(_, last, _)| std::cmp::Reverse(*last));
        let mut targets = BTreeMap::new();
        let mut left = cap;
        for (language, _, _) in &wanted {
            if left > 0 {
                targets.insert(*language, 1);
                left -= 1;
            }
        }
        for (language, _, recent) in &wanted {
            if let Some(target) = targets.get_mut(language) {
                let more = left.min(recent - 1);
                *target += more;
                left -= more;
            }
        }
        targets
    }

    /// The next time at which the targets may fall without a call.
    pub fn next_change(&self, now: Instant) -> Option<Instant> {
        let edges = self.calls.values().flatten().flat_map(|call| [*call + BURST, *call + FORGOTTEN]);
        edges.filter(|edge| *edge > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(calls: &[(Language, u64)], start: Instant) -> Demand {
        let mut demand = Demand::default();
        for (language, second) in calls {
            demand.note(*language, start + Duration::from_secs(*second));
        }
        demand
    }

    fn targets(demand: &Demand, cap: usize, now: Instant) -> Vec<(Language, usize)> {
        demand.targets(cap, now).into_iter().collect()
    }

    #[test]
    fn nothing_is_kept_for_a_language_that_nobody_uses() {
        let now = Instant::now();
        assert_eq!(targets(&Demand::default(), 8, now), []);
        assert_eq!(Demand::default().next_change(now), None);
    }

    #[test]
    fn one_call_keeps_one_for_a_quarter_of_an_hour() {
        let start = Instant::now();
        let demand = demand(&[(Language::Python, 0)], start);
        for (seconds, expected) in [(0, 1), (61, 1), (899, 1), (900, 0)] {
            let found = demand.targets(8, start + Duration::from_secs(seconds));
            assert_eq!(found.get(&Language::Python).copied().unwrap_or(0), expected, "after {seconds} s");
        }
        assert_eq!(demand.next_change(start), Some(start + BURST));
        assert_eq!(demand.next_change(start + BURST), Some(start + FORGOTTEN));
    }

    #[test]
    fn a_burst_grows_the_pool_to_its_cap_and_shrinks_it_again() {
        let start = Instant::now();
        let demand = demand(&[(Language::Python, 0); 20], start);
        assert_eq!(targets(&demand, 8, start), [(Language::Python, 8)]);
        assert_eq!(targets(&demand, 30, start), [(Language::Python, 20)]);
        assert_eq!(targets(&demand, 8, start + BURST), [(Language::Python, 1)]);
    }

    #[test]
    fn every_language_in_use_keeps_one_before_any_gets_its_second() {
        let start = Instant::now();
        let mut calls = vec![(Language::Shell, 0), (Language::Go, 1)];
        calls.extend([(Language::Python, 2); 10]);
        let demand = demand(&calls, start);
        let now = start + Duration::from_secs(3);
        assert_eq!(targets(&demand, 4, now), [(Language::Python, 2), (Language::Shell, 1), (Language::Go, 1)]);
        assert_eq!(targets(&demand, 2, now), [(Language::Python, 1), (Language::Go, 1)]);
        assert_eq!(targets(&demand, 0, now), []);
    }
}
