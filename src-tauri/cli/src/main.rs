//! `sandtray`: the owner's command line. It parses arguments and prints results; the service does the work.

mod client;
mod failure;
mod format;
mod history;
mod run;
mod save;
mod serve;
mod signals;
mod source;
mod status;
mod terminal;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use sandtray_core::paths::Paths;
use sandtray_core::protocol::schema;

use failure::{FAILURE, Failure};

const EXIT_CODES: &str = "\
Exit codes:
  0-255  of `run`: the program's own; 128 + signal where a signal ended it, 137 where a limit did
  125    Sandtray could not do it; the reason is on stderr
  126    of `run`: the program was cut off, since the engine went away or something else ended its container
  130    of `run`: interrupted with Ctrl-C
  141    of `run`: whoever read its output went away";

/// Timeout at the end, because a blocking read of stdin may still be in progress.
const GOODBYE: Duration = Duration::from_millis(100);

#[derive(Parser)]
#[command(name = "sandtray", version, about = "Runs short programs in fresh, isolated containers", after_help = EXIT_CODES)]
struct Cli {
    /// The service's socket, where it is not in its usual place.
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service without a desktop, until Ctrl-C or SIGTERM.
    Serve(serve::Args),
    /// Run one program and exit with its exit code.
    #[command(after_help = EXIT_CODES)]
    Run(Box<run::Args>),
    /// Tell the state of the engine, the capability, the images and the runs.
    Status,
    /// List past runs, newest first.
    History(history::Args),
    /// Print the JSON Schema of the protocol.
    Schema,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If printing fails there is no other place to report it.
            let _ = error.print();
            // Not clap's 2, which could be a program's own exit code.
            return if error.use_stderr() { ExitCode::from(FAILURE) } else { ExitCode::SUCCESS };
        }
    };
    let json = cli.json;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(format!("The system gives no threads: {error}.")).report(json),
    };
    let result = runtime.block_on(Box::pin(dispatch(cli)));
    runtime.shutdown_timeout(GOODBYE);
    result.unwrap_or_else(|failure| failure.report(json))
}

async fn dispatch(cli: Cli) -> Result<ExitCode, Failure> {
    let Cli { socket, json, command } = cli;
    match command {
        Command::Serve(args) => serve::serve(args, socket, json).await,
        Command::Run(args) => run::run(*args, &socket_path(socket)?, json).await,
        Command::Status => status::status(&socket_path(socket)?, json).await,
        Command::History(args) => history::history(args, &socket_path(socket)?, json).await,
        Command::Schema => schema(),
    }
}

/// Prints the bytes of `docs/schema.json`.
fn schema() -> Result<ExitCode, Failure> {
    let text = serde_json::to_string_pretty(&schema::document()).map_err(|error| Failure::new(error.to_string()))?;
    writeln!(std::io::stdout(), "{text}").map_err(|error| Failure::of_output(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn socket_path(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match given {
        Some(path) => Ok(path),
        None => Paths::of_user().and_then(|paths| paths.socket_file()).map_err(|error| Failure::new(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_window_offers_to_copy_is_a_command_of_ours() {
        let page = include_str!("../../../ui/src/lib/connect.ts");
        let offered: Vec<&str> = page.split('`').filter(|text| text.starts_with("sandtray ")).collect();
        assert!(!offered.is_empty());
        for line in offered {
            assert!(Cli::try_parse_from(words(line)).is_ok(), "{line}");
        }
    }

    /// Splits a line as a shell does that knows single quotes only.
    fn words(line: &str) -> Vec<&str> {
        let pieces = line.split('\'').enumerate();
        pieces
            .flat_map(|(at, piece)| if at % 2 == 1 { vec![piece] } else { piece.split_whitespace().collect() })
            .collect()
    }
}
