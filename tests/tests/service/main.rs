//! The service as a whole on a real engine: the switch, clients that come and go, pulls, and what outlives a crash.

mod clients;
mod crash;
mod damage;
mod pull;
mod switch;

use serde_json::{Value, json};

fn shell(code: &str) -> Value {
    json!({ "language": "shell", "code": code })
}
