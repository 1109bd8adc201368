//! `sandtray history show`: one past run with its inputs and outputs. It reads the owner's file and not the socket,
//! over which clients only get figures.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use bytes::Bytes;
use sandtray_core::history::{Body, FileIn, RunRecord, read_record};
use sandtray_core::paths::Paths;
use sandtray_core::protocol::reply::Content;
use sandtray_core::run::RunId;
use sandtray_core::time::to_millis;
use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::format::{ago, bytes, count, seconds, table};
use crate::save::{Existing, save};
use crate::terminal::{self, plain};

/// The name that standard input is saved under: the first that no input file has.
const STDIN: [&str; 3] = ["stdin", "stdin-of-the-run", "standard-input-of-the-run"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its id, as the list names it.
    run: RunId,
    /// Save the files that came back in this folder. Hidden names are left out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Save the files that came in, and what the program could read from its stdin, in this folder.
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// Replace files that are there.
    #[arg(long)]
    force: bool,
}

pub(crate) async fn show(args: Args, json: bool) -> Result<ExitCode, Failure> {
    let file = Paths::of_user().map_err(|error| Failure::new(error.to_string()))?.history_file();
    let id = args.run;
    let read = tokio::task::spawn_blocking(move || read_record(&file, id)).await;
    let found =
        read.map_err(|error| Failure::new(error.to_string()))?.map_err(|error| Failure::new(error.to_string()))?;
    let record = found.ok_or_else(|| {
        Failure::with_hint("The history has no such run.", "`sandtray history` lists those that it has.")
    })?;
    let text = if json {
        format!("{}\n", terminal::json(&whole(&record)))
    } else {
        text(&record, to_millis(SystemTime::now()))
    };
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::of_output(&error))?;
    let body = record.body.unwrap_or_default();
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    for (folder, files) in [(args.out, files_out(&body)), (args.inputs, inputs(&body))] {
        let Some(folder) = folder else { continue };
        let saved = save(&files, &folder, existing)?;
        for refused in &saved.refused {
            eprintln!("sandtray: {}", plain(&refused.to_string()));
        }
        if let Some(failure) = saved.failure(&folder) {
            return Err(failure);
        }
        eprintln!("sandtray: {} saved under {}.", count(saved.number, "file"), plain(&folder.display().to_string()));
    }
    Ok(ExitCode::SUCCESS)
}

fn content(bytes: &[u8]) -> Value {
    json!(Content::of(bytes))
}

fn files_out(body: &Body) -> Value {
    body.files_out.iter().map(|file| (file.name.clone(), content(&file.bytes))).collect::<Map<_, _>>().into()
}

fn files_in(body: &Body) -> Map<String, Value> {
    let kept = body.files_in.iter().filter_map(|file| Some((file.name.clone(), content(file.bytes.as_ref()?))));
    kept.collect()
}

fn inputs(body: &Body) -> Value {
    let mut files = files_in(body);
    let stdin = body.stdin.as_ref().filter(|stdin| !stdin.is_empty());
    if let (Some(stdin), Some(name)) = (stdin, STDIN.into_iter().find(|name| !files.contains_key(*name))) {
        files.insert(name.into(), content(stdin));
    }
    files.into()
}

/// The whole record as JSON, with every byte that is kept.
fn whole(record: &RunRecord) -> Value {
    let mut value = json!(record.row);
    value["title"] = json!(record.row.title);
    value["overflow"] = json!(record.row.overflow);
    value["kept"] = json!(if record.body.is_some() {
        "everything"
    } else if record.row.given_up {
        "given_up"
    } else {
        "metrics"
    });
    let Some(body) = &record.body else { return value };
    for (name, bytes) in [
        ("code", Some(&body.code)),
        ("stdin", body.stdin.as_ref()),
        ("stdout", Some(&body.stdout)),
        ("stderr", Some(&body.stderr)),
    ] {
        value[name] = json!(bytes.map(|bytes: &Bytes| content(bytes)));
    }
    value["args"] = json!(body.args);
    value["files"] = files_out(body);
    value["files_given"] = files_in(body).into();
    value["skipped_files"] = json!(body.skipped_files);
    value["left_behind"] = json!(body.left_behind);
    value
}

fn text(record: &RunRecord, now: u64) -> String {
    let RunRecord { row, body } = record;
    let time = |time: Option<std::time::Duration>| time.map_or_else(|| "-".into(), |time| seconds(time.as_secs_f64()));
    let mut facts = vec![
        ("Run", row.run_id.to_string()),
        ("Asked for", ago(to_millis(row.queued_at), now)),
        ("Client", row.client.clone()),
        ("Language", row.language.clone()),
        ("Status", row.status.clone()),
    ];
    facts.extend(row.label.clone().or_else(|| row.title.clone()).map(|name| ("Name", name)));
    facts.extend(row.error.clone().map(|error| ("Error", error)));
    facts.extend(row.exit_code.map(|code| ("Exit code", code.to_string())));
    facts.push(("Time", format!("{} of {}", time(row.wall), seconds(row.limits.wall().as_secs_f64()))));
    facts.push(("Memory", row.memory_bytes.map_or_else(|| "-".into(), bytes)));
    facts.push(("Code", bytes(row.code_bytes)));
    facts.push(("Printed", format!("{}, and {} of errors", bytes(row.stdout.produced), bytes(row.stderr.produced))));
    let mut out =
        table(&facts.into_iter().map(|(name, value)| vec![name.to_owned(), plain(&value)]).collect::<Vec<_>>());
    let Some(body) = body else {
        out.push_str(if row.given_up {
            "\nIts code, inputs and output were given up when the disk was full.\n"
        } else {
            "\nOnly figures were kept of it.\n"
        });
        return out;
    };
    let stdin = (row.stdin_bytes > 0).then(|| line("(stdin)", row.stdin_bytes, body.stdin.is_some()));
    let given = |file: &FileIn| line(&file.name, file.size, file.bytes.is_some());
    out.push_str(&list("Came in", stdin.into_iter().chain(body.files_in.iter().map(given)).collect()));
    let returned = body.files_out.iter().map(|file| line(&file.name, file.bytes.len() as u64, true));
    out.push_str(&list("Came back", returned.collect()));
    out.push_str("\n`--json` prints its code, inputs and output; `--inputs DIR` and `--out DIR` save the files.\n");
    out
}

fn line(name: &str, size: u64, kept: bool) -> Vec<String> {
    let size = if kept { bytes(size) } else { format!("{}, not kept", bytes(size)) };
    vec![format!("  {}", plain(name)), size]
}

fn list(title: &str, rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() { String::new() } else { format!("\n{title}\n{}", table(&rows)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stdin_is_saved_beside_the_files_and_over_none_of_them() {
        let file = |name: &str| FileIn { name: name.into(), size: 1, bytes: Some("x".into()) };
        let body = Body { stdin: Some("in".into()), files_in: vec![file("a.csv"), file("stdin")], ..Body::default() };
        assert_eq!(inputs(&body), json!({ "a.csv": "x", "stdin": "x", "stdin-of-the-run": "in" }));
        let body = Body { stdin: Some("in".into()), ..Body::default() };
        assert_eq!(inputs(&body), json!({ "stdin": "in" }));
        assert_eq!(inputs(&Body::default()), json!({}));
    }
}
