//! Reports on stderr what a person should know of a run beyond its output, one sentence each.

use std::io::{self, IsTerminal};

use serde_json::Value;

use crate::format::{bytes, count, seconds};
use crate::terminal::plain;

/// Names in a sentence before it says "and more".
const MAX_NAMES: usize = 5;

/// `saving`: the returned files are reported when they are saved, not here.
pub(super) fn tell(result: &Value, saving: bool) {
    for sentence in sentences(result, saving) {
        say(&sentence);
    }
    if let Some(hint) = result["hint"].as_str() {
        eprintln!("{}", dim(&plain(hint), io::stderr().is_terminal()));
    }
}

/// Dimmed on a terminal, so that it is less prominent than the program's output.
fn dim(text: &str, terminal: bool) -> String {
    if terminal { format!("\u{1b}[2msandtray: {text}\u{1b}[22m") } else { format!("sandtray: {text}") }
}

pub(super) fn say(sentence: &str) {
    eprintln!("sandtray: {}", plain(sentence));
}

fn sentences(result: &Value, saving: bool) -> Vec<String> {
    [verdict(result), files(result, saving), skipped(result), left_behind(result), unrecorded(result)]
        .into_iter()
        .flatten()
        .collect()
}

fn verdict(result: &Value) -> Option<String> {
    let limit = |name: &str| result["limits"][name].as_f64().unwrap_or(0.0);
    match result["status"].as_str()? {
        "timeout" => Some(format!("Stopped after {}, its limit of time.", seconds(limit("seconds")))),
        "out_of_memory" => Some(format!("Stopped: it needed more memory than its limit of {} MB.", limit("memory_mb"))),
        "output_limit" => {
            let most = ["stdout", "stderr"].iter().filter_map(|name| result["output_bytes"][name].as_u64()).max();
            let most = bytes(most.unwrap_or(0));
            Some(format!("Stopped: it printed too much ({most}); `--overflow truncate` lets it run."))
        }
        "cancelled" => Some(cancelled(result["ended_by"].as_str().unwrap_or_default()).into()),
        "failed" if result["oom_kills"].as_u64().unwrap_or(0) > 0 => {
            let memory = limit("memory_mb");
            Some(format!("The memory limit of {memory} MB ended one of its processes."))
        }
        _ => None,
    }
}

fn cancelled(by: &str) -> &'static str {
    match by {
        "owner" => "Stopped by the owner, in Sandtray's window or tray.",
        "switch" => "Stopped: Sandtray was turned off.",
        "shutdown" => "Stopped: Sandtray was ended.",
        _ => "Cancelled.",
    }
}

fn files(result: &Value, saving: bool) -> Option<String> {
    let number = result["files"].as_object().map_or(0, serde_json::Map::len);
    (number > 0 && !saving).then(|| format!("It returned {}; `--out DIR` keeps them.", count(number, "file")))
}

fn skipped(result: &Value) -> Option<String> {
    let skipped = result["skipped_files"].as_array().filter(|skipped| !skipped.is_empty())?;
    let names = skipped.iter().map(|file| {
        let word = |name: &str| file[name].as_str().unwrap_or_default();
        format!("{} ({})", word("name"), word("reason").replace('_', " "))
    });
    Some(format!("Not returned: {}.", list(names)))
}

fn left_behind(result: &Value) -> Option<String> {
    let names = result["left_behind"].as_array().filter(|names| !names.is_empty())?;
    let names = list(names.iter().map(|name| name.as_str().unwrap_or_default().to_owned()));
    Some(format!("Not returned, since only what is written under out/ is: {names}."))
}

fn unrecorded(result: &Value) -> Option<String> {
    (result["recorded"] == false).then(|| "The history could not take this run; `sandtray status` says why.".into())
}

fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let mut text = names.take(MAX_NAMES).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hint_is_dim_on_a_terminal_and_plain_elsewhere() {
        assert_eq!(dim("No network.", true), "\u{1b}[2msandtray: No network.\u{1b}[22m");
        assert_eq!(dim("No network.", false), "sandtray: No network.");
    }

    #[test]
    fn a_run_that_went_well_says_nothing() {
        let result = json!({ "status": "ok", "files": {}, "skipped_files": [], "left_behind": [] });
        assert_eq!(sentences(&result, false), Vec::<String>::new());
        assert_eq!(sentences(&json!({ "status": "failed" }), false), Vec::<String>::new());
    }

    #[test]
    fn what_a_person_should_know_is_one_sentence_each() {
        let limits = json!({ "seconds": 1.5, "memory_mb": 64.0 });
        for (result, sentence) in [
            (json!({ "status": "timeout", "limits": limits }), "Stopped after 1.5 s, its limit of time."),
            (
                json!({ "status": "out_of_memory", "limits": limits }),
                "Stopped: it needed more memory than its limit of 64 MB.",
            ),
            (
                json!({ "status": "output_limit", "output_bytes": { "stdout": 70_000, "stderr": 0 } }),
                "Stopped: it printed too much (68 KB); `--overflow truncate` lets it run.",
            ),
            (json!({ "status": "cancelled" }), "Cancelled."),
            (json!({ "status": "cancelled", "ended_by": "client" }), "Cancelled."),
            (
                json!({ "status": "cancelled", "ended_by": "owner" }),
                "Stopped by the owner, in Sandtray's window or tray.",
            ),
            (json!({ "status": "cancelled", "ended_by": "switch" }), "Stopped: Sandtray was turned off."),
            (json!({ "status": "cancelled", "ended_by": "shutdown" }), "Stopped: Sandtray was ended."),
            (
                json!({ "status": "failed", "oom_kills": 1, "limits": limits }),
                "The memory limit of 64 MB ended one of its processes.",
            ),
            (json!({ "status": "ok", "files": { "a": "" } }), "It returned 1 file; `--out DIR` keeps them."),
            (
                json!({ "status": "ok", "skipped_files": [{ "name": "l", "reason": "special_file" }] }),
                "Not returned: l (special file).",
            ),
            (
                json!({ "status": "ok", "left_behind": ["a", "b", "c", "d", "e", "f", "g"] }),
                "Not returned, since only what is written under out/ is: a, b, c, d, e and 2 more.",
            ),
            (
                json!({ "status": "ok", "recorded": false }),
                "The history could not take this run; `sandtray status` says why.",
            ),
        ] {
            assert_eq!(sentences(&result, false), [sentence]);
        }
        let two = json!({ "status": "ok", "files": { "a": "", "b": "" } });
        assert_eq!(sentences(&two, true), Vec::<String>::new());
    }
}
