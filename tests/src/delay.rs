//! How long output takes from a program's write to the client that reads it live. Host and container share one clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::rig::Agent;

/// Between two lines: longer than one takes, so that each makes the whole way alone.
const PAUSE_MILLIS: u32 = 20;

/// Of each line that a program writes, on its two streams in turn.
pub async fn of_lines(agent: &mut Agent, lines: usize) -> Vec<Duration> {
    let code = format!(
        "
import os, time
for at in range({lines}):
    os.write(1 + at % 2, b'%d\\n' % time.time_ns())
    time.sleep({PAUSE_MILLIS} / 1000)"
    );
    let call = agent.send("code.run", json!({ "language": "python", "code": code, "stream": true })).await;
    let mut delays = Vec::new();
    while delays.len() < lines {
        let output = agent.notification("code.output").await;
        let arrived = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = output["text"].as_str().unwrap_or_default();
        delays.extend(
            text.lines().filter_map(|line| Some(arrived.saturating_sub(Duration::from_nanos(line.parse().ok()?)))),
        );
    }
    assert_eq!(agent.reply(call).await.expect("a result")["status"], "ok");
    delays
}
