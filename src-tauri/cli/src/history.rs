//! `sandtray history`: past runs, newest first, or one of them.

mod show;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use sandtray_core::protocol::request::MAX_HISTORY;
use sandtray_core::time::to_millis;
use serde_json::{Value, json};

use crate::client::Client;
use crate::failure::Failure;
use crate::format::{ago, bytes, seconds, table};
use crate::source::put;
use crate::terminal::{self, plain};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// How many.
    #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_HISTORY)))]
    limit: u32,
    /// Those before this place: the `next` of another page.
    #[arg(long, value_name = "PLACE")]
    before: Option<String>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show one run with what came in and what came back, and save its files.
    Show(show::Args),
}

pub(crate) async fn history(args: Args, socket: &Path, json: bool) -> Result<ExitCode, Failure> {
    if let Some(Command::Show(args)) = args.command {
        return show::show(args, json).await;
    }
    let mut client = Client::connect(socket, "sandtray history").await?;
    let mut params = json!({ "limit": args.limit });
    put(&mut params, "before", args.before);
    let page = client.call("code.history", params).await?;
    let text = if json { format!("{}\n", terminal::json(&page)) } else { text(&page, to_millis(SystemTime::now())) };
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::of_output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn text(page: &Value, now: u64) -> String {
    let runs: Vec<&Value> = page["runs"].as_array().into_iter().flatten().collect();
    if runs.is_empty() {
        return "No runs yet.\n".into();
    }
    let head = ["WHEN", "STATUS", "LANGUAGE", "TIME", "MEMORY", "CLIENT", "RUN", "LABEL"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(runs.into_iter().map(|run| row(run, now))).collect();
    let mut out = table(&rows);
    if let Some(next) = page["next"].as_str() {
        out.push_str(&format!("More: sandtray history --before {}\n", plain(next)));
    }
    out
}

fn row(run: &Value, now: u64) -> Vec<String> {
    let word = |name: &str| plain(run[name].as_str().unwrap_or_default());
    vec![
        ago(run["queued_at"].as_u64().unwrap_or(now), now),
        status(run),
        word("language"),
        run["seconds"].as_f64().map_or_else(|| "-".into(), seconds),
        run["memory_bytes"].as_u64().map_or_else(|| "-".into(), bytes),
        client(word("client"), word("client_program")),
        word("run_id"),
        word("label"),
    ]
}

/// The client's name with its program, because the name is only claimed and the program is from the kernel.
fn client(name: String, program: String) -> String {
    if program.is_empty() || program == name { name } else { format!("{name} ({program})") }
}

/// The status, with what ended the run if the status alone does not say.
fn status(run: &Value) -> String {
    let status = plain(run["status"].as_str().unwrap_or_default());
    match run["ended_by"].as_str() {
        Some(by) if matches!(status.as_str(), "cancelled" | "interrupted") => {
            format!("{status} ({})", plain(&by.replace('_', " ")))
        }
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_a_table() {
        let page = json!({
            "runs": [
                { "run_id": "02", "queued_at": 60_000, "status": "ok", "language": "python", "seconds": 0.02,
                  "memory_bytes": 9 << 20, "client": "a", "client_program": "node", "label": "x\ty" },
                { "run_id": "01", "queued_at": 0, "status": "engine_unavailable", "language": "go", "seconds": null,
                  "memory_bytes": null, "client": "b", "label": null },
                { "run_id": "00", "queued_at": 0, "status": "cancelled", "ended_by": "client_left", "language": "go",
                  "seconds": 3.7, "memory_bytes": null, "client": "b", "label": null },
                { "run_id": "ff", "queued_at": 0, "status": "interrupted", "ended_by": "engine", "language": "go",
                  "seconds": 3.7, "memory_bytes": null, "client": "b", "label": null },
            ],
            "next": "1f",
        });
        assert_eq!(
            text(&page, 120_000),
            "WHEN       STATUS                   LANGUAGE  TIME    MEMORY  CLIENT    RUN  LABEL\n\
             1 min ago  ok                       python    0.02 s  9 MB    a (node)  02   x\u{fffd}y\n\
             2 min ago  engine_unavailable       go        -       -       b         01\n\
             2 min ago  cancelled (client left)  go        3.7 s   -       b         00\n\
             2 min ago  interrupted (engine)     go        3.7 s   -       b         ff\n\
             More: sandtray history --before 1f\n"
        );
        assert_eq!(text(&json!({ "runs": [], "next": null }), 0), "No runs yet.\n");
    }
}
