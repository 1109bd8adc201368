//! The service as a whole on a real engine: the switch, clients that come and go, pulls, and what outlives a crash.

#![expect(clippy::unwrap_used, reason = "helpers of tests, where a panic is the verdict")]

mod batch;
mod bystanders;
mod clients;
mod crash;
mod damage;
mod ended_by;
#[cfg(target_os = "linux")]
mod full_disk;
mod hoarding;
mod interrupted;
mod killing;
mod leftovers;
mod pull;
mod removed;
mod restarts;
mod runtime;
mod switch;

use serde_json::{Value, json};

fn shell(code: &str) -> Value {
    json!({ "language": "shell", "code": code })
}

/// The same, with notifications while it waits and runs.
fn told(code: &str) -> Value {
    json!({ "language": "shell", "code": code, "stream": true })
}
