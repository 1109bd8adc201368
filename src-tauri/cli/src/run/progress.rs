//! What a run waits for, drawn on stderr while it waits. Draws nothing where stderr is not a terminal.

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

    /// The parameters of a `code.waiting` notification.
    pub(super) fn waiting(&mut self, params: &Value) {
        match params["why"].as_str() {
            Some("image") if params["preparing"] == true => {
                let image = plain(params["image"].as_str().unwrap_or_default());
                self.get(Kind::Spinner).set_message(format!("Preparing {image} for its first run"));
            }
            Some("image") => {
                let image = plain(params["image"].as_str().unwrap_or_default());
                let (done, total) = (figure(params, "downloaded_bytes"), figure(params, "total_bytes"));
                let bar = self.get(Kind::Bar);
                bar.set_message(match total {
                    0 => image,
                    _ => format!("{image}, {} of {}", bytes(done), bytes(total)),
                });
                bar.set_position((params["fraction"].as_f64().unwrap_or(0.0) * STEPS as f64) as u64);
            }
            Some("queue") => self.get(Kind::Spinner).set_message("Waiting for a place"),
            Some("engine") => self.get(Kind::Spinner).set_message("Waiting for the engine"),
            _ => {}
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
