//! Medians and tails of measured durations.

use std::time::Duration;

use serde_json::{Value, json};

#[derive(Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn add(&mut self, duration: Duration) {
        self.0.push(duration.as_secs_f64() * 1000.0);
    }

    /// Milliseconds below which a share of all lie.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return f64::NAN;
        }
        sorted[((sorted.len() - 1) as f64 * share).round() as usize]
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub(crate) fn p95(&self) -> f64 {
        self.quantile(0.95)
    }

    pub(crate) fn longest(&self) -> f64 {
        self.quantile(1.0)
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "n": self.0.len(), "median_ms": fine(self.median()), "p95_ms": fine(self.p95()) })
    }
}

pub(crate) fn round(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

/// Some figures are microseconds.
fn fine(figure: f64) -> f64 {
    (figure * 10_000.0).round() / 10_000.0
}
