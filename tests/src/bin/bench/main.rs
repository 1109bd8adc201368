//! `make bench`: what a call costs, beside what else could be done on the same machine at the same time. Everything is
//! measured in turn and in one go, so ratios mean something on a machine that others use too.
//!
//! Prints tables and writes `target/bench.json`. With arguments, only the sections whose names begin with one of them.

#![expect(clippy::unwrap_used, reason = "a bench that cannot measure ends")]

#[cfg(target_os = "linux")]
mod app;
mod burst;
mod call;
mod history;
mod idle;
mod output;
mod peers;
mod serving;
mod stats;
mod stream;

use serde_json::{Map, Value};

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut report = Map::new();
    macro_rules! section {
        ($name:literal, $run:expr) => {
            if wanted.is_empty() || wanted.iter().any(|word| $name.starts_with(word.as_str())) {
                println!("\n## {}\n", $name);
                report.insert($name.into(), $run.await);
            }
        };
    }
    section!("call", call::measure());
    section!("burst", burst::measure());
    section!("output", output::measure());
    section!("stream", stream::measure());
    section!("history", history::measure());
    section!("search", history::searches());
    section!("idle", idle::measure());
    #[cfg(target_os = "linux")]
    {
        section!("app in the tray", app::idle::measure());
        section!("app window", app::opening::measure());
        section!("app history", app::runs::measure());
    }
    let path = serving::target_folder().join("bench.json");
    std::fs::write(&path, serde_json::to_string_pretty(&Value::Object(report)).unwrap()).unwrap();
    println!("\nwritten to target/bench.json");
}
