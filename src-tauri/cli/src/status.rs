//! `sandtray status`: the engine, the capability, the images and the runs.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use sandtray_core::time::to_millis;
use serde_json::{Value, json};

use crate::client::Client;
use crate::failure::Failure;
use crate::format::{ago, bytes, table};
use crate::terminal::{self, plain};

pub(crate) async fn status(socket: &Path, json: bool) -> Result<ExitCode, Failure> {
    let mut client = Client::connect(socket, "sandtray status").await?;
    let status = client.call("status", json!({})).await?;
    let text =
        if json { format!("{}\n", terminal::json(&status)) } else { text(&status, to_millis(SystemTime::now())) };
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::of_output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn text(status: &Value, now: u64) -> String {
    let enabled = status["capability"]["enabled"].as_bool().unwrap_or(false);
    let mut out = format!("Running code is {}.\n{}\n", if enabled { "on" } else { "off" }, engine(&status["engine"]));
    out.push_str(&history(&status["history"]));
    out.push_str(&images(&status["images"]));
    out.push_str(&runs("Running", &status["running"], now));
    out.push_str(&runs("Waiting", &status["queued"], now));
    out
}

/// One sentence, and the next step on the line below if there is one.
pub(crate) fn engine(engine: &Value) -> String {
    let word = |value: &Value| plain(value.as_str().unwrap_or_default());
    match engine["state"].as_str() {
        Some("ready") => {
            let endpoint = &engine["endpoint"];
            let place = format!("{} ({})", word(&endpoint["url"]), word(&endpoint["found"]));
            let warning = engine["warning"].as_str().map(|warning| format!("\n{}", plain(warning))).unwrap_or_default();
            format!("{} {} is ready at {place}.{warning}", word(&engine["name"]), word(&engine["version"]))
        }
        Some("trouble") => format!("{}\n{}", word(&engine["message"]), word(&engine["hint"])),
        _ => "Looking for an engine.".into(),
    }
}

/// The history's trouble. Empty while runs are recorded.
fn history(history: &Value) -> String {
    let word = |name: &str| plain(history[name].as_str().unwrap_or_default());
    match history["state"].as_str() {
        Some("trouble") => format!("{}\n{}\n", word("message"), word("hint")),
        _ => String::new(),
    }
}

fn images(images: &Value) -> String {
    let rows: Vec<Vec<String>> = images.as_array().into_iter().flatten().map(image).collect();
    if rows.is_empty() { String::new() } else { format!("\nImages\n{}", table(&rows)) }
}

fn image(image: &Value) -> Vec<String> {
    let word = |value: &Value| plain(value.as_str().unwrap_or_default());
    let state = match image["state"].as_str() {
        _ if image["wall_missing"].is_string() => {
            format!("can't be used: a wall is missing ({})", word(&image["wall_missing"]))
        }
        Some("ready") if image["launcher"] == "readable" => {
            let size = bytes(image["size_bytes"].as_u64().unwrap_or(0));
            format!("{size}, its programs can read their launcher")
        }
        Some("ready") => bytes(image["size_bytes"].as_u64().unwrap_or(0)),
        Some("unprepared") => {
            format!("{}, prepared at its first run", bytes(image["size_bytes"].as_u64().unwrap_or(0)))
        }
        Some("pulling") if image["preparing"] == true => "being prepared".into(),
        Some("pulling") => format!("being fetched, {:.0}%", image["fraction"].as_f64().unwrap_or(0.0) * 100.0),
        Some("not_pulled") => "fetched when it is first needed".into(),
        Some("failed") if image["error"]["reason"] == "declares_volumes" => "can't be used: it declares volumes".into(),
        Some("failed") => format!("could not be fetched ({})", word(&image["error"]["reason"]).replace('_', " ")),
        _ => "not known".into(),
    };
    // The version's digest, unless the image's name includes it.
    let digest = match word(&image["image"]) {
        name if name.contains('@') => String::new(),
        _ => word(&image["digest"]),
    };
    vec![format!("  {}", word(&image["language"])), word(&image["image"]), state, digest]
}

fn runs(title: &str, runs: &Value, now: u64) -> String {
    let rows: Vec<Vec<String>> = runs.as_array().into_iter().flatten().map(|run| self::run(run, now)).collect();
    if rows.is_empty() { String::new() } else { format!("\n{title}\n{}", table(&rows)) }
}

fn run(run: &Value, now: u64) -> Vec<String> {
    let word = |name: &str| plain(run[name].as_str().unwrap_or_default());
    let since = ago(run["since"].as_u64().unwrap_or(now), now);
    vec![
        format!("  {}", word("run_id")),
        word("language"),
        word("client"),
        since,
        waiting(&run["waiting"]),
        word("label"),
    ]
}

/// What the run waits for, in a word or two. Empty while its program runs.
fn waiting(waiting: &Value) -> String {
    match waiting["why"].as_str() {
        Some("turn") => match waiting["ahead"].as_u64() {
            None | Some(0) => "for a place".into(),
            Some(ahead) => format!("for a place, {ahead} before it"),
        },
        Some("unread") => "until earlier results are read".into(),
        Some("engine") => "for the engine".into(),
        Some("pull") => format!("for its image, {:.0}%", waiting["fraction"].as_f64().unwrap_or(0.0) * 100.0),
        Some("preparation") => "for its image, being prepared".into(),
        Some("check") => "for its image, being checked".into(),
        Some("starting") => "starting".into(),
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_is_going_on() {
        let status = json!({
            "capability": { "name": "code.run", "enabled": true },
            "engine": { "state": "ready", "name": "Docker", "version": "27.0", "endpoint": { "url": "unix:///s", "found": "the default socket" } },
            "images": [
                { "language": "python", "image": "python:3.12-slim", "state": "ready", "size_bytes": 150 << 20, "digest": "sha256:ab" },
                { "language": "shell", "image": "alpine@sha256:cd", "state": "ready", "size_bytes": 8 << 20, "digest": "sha256:cd" },
                { "language": "go", "image": "golang", "state": "pulling", "fraction": 0.5 },
                { "language": "go", "image": "golang", "state": "pulling", "fraction": 1.0, "preparing": true },
                { "language": "go", "image": "golang", "state": "unprepared", "size_bytes": 417 << 20 },
                { "language": "rust", "image": "rust", "state": "failed", "error": { "reason": "no_network" } },
                { "language": "shell", "image": "own", "state": "failed", "error": { "reason": "declares_volumes" } },
                { "language": "shell", "image": "own", "state": "ready", "size_bytes": 5 << 20, "launcher": "sealed" },
                { "language": "shell", "image": "own", "state": "ready", "size_bytes": 5 << 20, "launcher": "readable" },
                { "language": "shell", "image": "own", "state": "ready", "size_bytes": 5, "wall_missing": "no filter\n" },
            ],
            "running": [{ "run_id": "01", "language": "python", "client": "agent\n", "label": null, "since": 0 }],
            "queued": [
                { "run_id": "02", "language": "go", "client": "agent", "since": 0, "waiting": { "why": "pull", "fraction": 0.5 } },
                { "run_id": "03", "language": "shell", "client": "agent", "since": 0, "label": "x", "waiting": { "why": "turn", "ahead": 1 } },
            ],
        });
        assert_eq!(
            text(&status, 65_000),
            "Running code is on.\nDocker 27.0 is ready at unix:///s (the default socket).\n\n\
             Images\n  python  python:3.12-slim  150 MB                                         sha256:ab\n  \
             shell   alpine@sha256:cd  8 MB\n  go      golang            being fetched, 50%\n  \
             go      golang            being prepared\n  \
             go      golang            417 MB, prepared at its first run\n  \
             rust    rust              could not be fetched (no network)\n  \
             shell   own               can't be used: it declares volumes\n  \
             shell   own               5 MB\n  \
             shell   own               5 MB, its programs can read their launcher\n  \
             shell   own               can't be used: a wall is missing (no filter\u{fffd})\n\n\
             Running\n  01  python  agent\u{fffd}  1 min ago\n\n\
             Waiting\n  02  go     agent  1 min ago  for its image, 50%\n  \
             03  shell  agent  1 min ago  for a place, 1 before it  x\n"
        );
    }

    #[test]
    fn an_engines_warning_is_below_it() {
        let endpoint = json!({ "url": "tcp://10.0.0.1:2375", "found": "Sandtray's settings" });
        let ready = json!({ "state": "ready", "name": "Docker", "version": "27.0", "endpoint": endpoint, "warning": "In clear.\u{9d}" });
        assert_eq!(
            engine(&ready),
            "Docker 27.0 is ready at tcp://10.0.0.1:2375 (Sandtray's settings).\nIn clear.\u{fffd}"
        );
    }

    #[test]
    fn a_history_that_cannot_be_written_is_told_and_one_that_can_is_not() {
        let engine = json!({ "state": "trouble", "message": "Down.", "hint": "Start it." });
        let status =
            |history: Value| json!({ "capability": { "enabled": true }, "engine": engine, "history": history });
        let trouble =
            json!({ "state": "trouble", "message": "3 runs were not recorded.", "hint": "Free some disk space." });
        let told = text(&status(trouble), 0);
        assert_eq!(told, "Running code is on.\nDown.\nStart it.\n3 runs were not recorded.\nFree some disk space.\n");
        assert_eq!(text(&status(json!({ "state": "ready" })), 0), "Running code is on.\nDown.\nStart it.\n");
    }

    #[test]
    fn trouble_comes_with_its_next_step() {
        let status = json!({ "capability": { "enabled": false }, "engine": { "state": "trouble", "message": "Down.", "hint": "Start it." } });
        assert_eq!(text(&status, 0), "Running code is off.\nDown.\nStart it.\n");
    }
}
