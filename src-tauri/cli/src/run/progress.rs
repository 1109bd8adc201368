//! Draws on stderr what a run waits for. Draws nothing if stderr is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use crate::format::bytes;
use crate::terminal::plain;

const STEPS: u64 = 1000;
const TURN: Duration = Duration::from_millis(120);

pub(super) struct Progress {
    bar: Option<(Kind, ProgressBar)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bar,
    Spinner,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { bar: None }
    }

    /// Handles the parameters of a `code.waiting` notification.
    pub(super) fn waiting(&mut self, params: &Value) {
        match params["why"].as_str() {
            Some("pull") => {
                let image = plain(params["image"].as_str().unwrap_or_default());
                let (done, total) = (figure(params, "downloaded_bytes"), figure(params, "total_bytes"));
                let bar = self.get(Kind::Bar);
                bar.set_message(match total {
                    0 => image,
                    _ => format!("{image}, {} of {}", bytes(done), bytes(total)),
                });
                bar.set_position((params["fraction"].as_f64().unwrap_or(0.0) * STEPS as f64) as u64);
            }
            Some(why) => {
                if let Some(words) = words(why, params) {
                    self.get(Kind::Spinner).set_message(words);
                }
            }
            None => {}
        }
    }

    pub(super) fn clear(&mut self) {
        if let Some((_, bar)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn get(&mut self, kind: Kind) -> &ProgressBar {
        if self.bar.as_ref().is_some_and(|(is, _)| *is != kind) {
            self.clear();
        }
        let (_, bar) = self.bar.get_or_insert_with(|| (kind, made(kind)));
        bar
    }
}

/// The text for a wait without a figure. Reasons of newer services are not shown.
fn words(why: &str, params: &Value) -> Option<String> {
    let image = || plain(params["image"].as_str().unwrap_or_default());
    match why {
        "turn" => match figure(params, "ahead") {
            0 => Some("Waiting for a place".into()),
            ahead => Some(format!("Waiting for a place, {ahead} before it")),
        },
        "unread" => Some("Waiting until earlier results are read".into()),
        "engine" => Some("Waiting for the engine".into()),
        "preparation" => Some(format!("Preparing {} for its first run", image())),
        "check" => Some(format!("Checking that {} keeps programs in", image())),
        "starting" => Some("Starting".into()),
        _ => None,
    }
}

fn figure(params: &Value, name: &str) -> u64 {
    params[name].as_u64().unwrap_or(0)
}

fn made(kind: Kind) -> ProgressBar {
    let (length, template) = match kind {
        Kind::Bar => (Some(STEPS), "Fetching {msg} [{bar:30}] {percent}%"),
        Kind::Spinner => (None, "{spinner} {msg}"),
    };
    let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    if kind == Kind::Spinner {
        bar.enable_steady_tick(TURN);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_waited_for_is_said() {
        let said = |params: Value| words(params["why"].as_str().unwrap(), &params);
        assert_eq!(said(json!({ "why": "turn", "ahead": 0 })).unwrap(), "Waiting for a place");
        assert_eq!(said(json!({ "why": "turn", "ahead": 3 })).unwrap(), "Waiting for a place, 3 before it");
        assert_eq!(
            said(json!({ "why": "preparation", "image": "go\u{1b}" })).unwrap(),
            "Preparing go\u{fffd} for its first run"
        );
        assert_eq!(said(json!({ "why": "something else" })), None);
    }
}
