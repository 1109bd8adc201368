//! The download speed of pulls, smoothed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sandtray_core::event::{ImageState, ImageStatus};
use sandtray_core::language::Language;

/// Shortest time that a speed is measured over; a shorter one gives unsteady figures.
const WINDOW: Duration = Duration::from_millis(500);
/// Weight of a new measurement in the moving average.
const WEIGHT: f64 = 0.4;

#[derive(Debug, Default)]
pub(crate) struct Speeds(HashMap<Language, Speed>);

#[derive(Debug)]
struct Speed {
    since: Instant,
    bytes: u64,
    per_second: Option<f64>,
}

impl Speeds {
    pub(crate) fn of(&mut self, image: &ImageStatus) -> f64 {
        self.at(image, Instant::now()).unwrap_or(0.0)
    }

    fn at(&mut self, image: &ImageStatus, now: Instant) -> Option<f64> {
        let ImageState::Pulling(figure) = &image.state else {
            self.0.remove(&image.language);
            return None;
        };
        let bytes = figure.downloaded_bytes;
        let speed = self.0.entry(image.language).or_insert(Speed { since: now, bytes, per_second: None });
        let elapsed = now.duration_since(speed.since);
        if elapsed >= WINDOW {
            let latest = bytes.saturating_sub(speed.bytes) as f64 / elapsed.as_secs_f64();
            let before = speed.per_second.unwrap_or(latest);
            *speed = Speed { since: now, bytes, per_second: Some(before + WEIGHT * (latest - before)) };
        }
        // Everything is downloaded and being unpacked, so there is no speed.
        speed.per_second.filter(|_| figure.total_bytes == 0 || bytes < figure.total_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::event::PullFigure;

    fn pulling(downloaded_bytes: u64) -> ImageStatus {
        let figure = PullFigure { fraction: 0.1, downloaded_bytes, total_bytes: 1000, preparing: false };
        ImageStatus {
            language: Language::Go,
            image: "go".into(),
            state: ImageState::Pulling(figure),
            wall_missing: None,
            launcher: None,
        }
    }

    #[test]
    fn a_speed_is_told_after_half_a_second_and_forgotten_with_the_pull() {
        let (mut speeds, start) = (Speeds::default(), Instant::now());
        assert_eq!(speeds.at(&pulling(0), start), None);
        assert_eq!(speeds.at(&pulling(10), start + WINDOW / 2), None);
        assert_eq!(speeds.at(&pulling(100), start + WINDOW), Some(200.0));
        assert_eq!(speeds.at(&pulling(200), start + 2 * WINDOW), Some(200.0));
        assert_eq!(speeds.at(&pulling(200), start + 3 * WINDOW), Some(120.0));
        assert_eq!(speeds.at(&pulling(1000), start + 4 * WINDOW), None);
        assert_eq!(speeds.at(&ImageStatus { state: ImageState::NotPulled, ..pulling(0) }, start + 5 * WINDOW), None);
        assert_eq!(speeds.at(&pulling(0), start + 6 * WINDOW), None);
    }
}
