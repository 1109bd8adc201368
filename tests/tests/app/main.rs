//! The app as its owner has it: a real window, a real tray on a real bus, a real engine. Each test has a desktop of its own
//! (Xvfb, a D-Bus session, the tray's host and the notifications' service), and they take turns: two at once on a small
//! machine would only make each other slow.

#![cfg(target_os = "linux")]

mod agents;
mod history;
mod leaving;
mod life;
mod notifications;
mod output;
mod pictures;
mod pull;
mod switch;
mod system;
mod trouble;
mod walls;
mod window;

use serde_json::{Value, json};

fn told(language: &str, code: &str) -> Value {
    json!({ "language": language, "code": code, "stream": true })
}
