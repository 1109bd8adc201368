//! `sandtray serve`: the service without a desktop, until it is told to stop.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sandtray_core::engine::EngineState;
use sandtray_core::event::Snapshot;
use sandtray_core::paths::Paths;
use sandtray_core::service::{self, Options, Service};
use serde_json::json;
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, INTERRUPTED};
use crate::signals::Signals;
use crate::status;
use crate::terminal::{self, plain};

/// The environment variable with the log filter for stderr, like `RUST_LOG` elsewhere.
const LOG: &str = "SANDTRAY_LOG";
/// Timeout for the first check of the engine, before the first line is printed.
const FIRST_LOOK: Duration = Duration::from_secs(3);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Let agents run code. Without it the capability is off.
    #[arg(long)]
    enable: bool,
}

pub(crate) async fn serve(args: Args, socket: Option<PathBuf>, json: bool) -> Result<ExitCode, Failure> {
    log();
    let paths = Paths::of_user().map_err(|error| Failure::new(error.to_string()))?;
    // Registered before the start, so that a signal during it is not lost.
    let mut signals = Signals::stop().map_err(|error| Failure::of_signals(&error))?;
    let options = Options { paths, enable: args.enable, socket };
    let service = tokio::select! {
        started = service::start(options) => started.map_err(|error| Failure::new(error.to_string()))?,
        () = signals.next() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    for notice in &service.notices {
        eprintln!("sandtray: {}", plain(notice));
    }
    tokio::select! {
        ready = ready(&service, json) => {
            ready?;
            signals.next().await;
        }
        () = signals.next() => {}
    }
    tokio::select! {
        () = service.shutdown() => Ok(ExitCode::SUCCESS),
        // A second signal exits at once. The next start sweeps what is left.
        () = signals.next() => Ok(ExitCode::from(INTERRUPTED)),
    }
}

/// Prints one line on stdout once the service is ready. Scripts wait for it.
async fn ready(service: &Service, json: bool) -> Result<(), Failure> {
    let mut snapshots = service.supervisor.watch();
    let looked = snapshots.wait_for(|snapshot| snapshot.engine != EngineState::Checking);
    let _ = tokio::time::timeout(FIRST_LOOK, looked).await;
    let snapshot = service.supervisor.snapshot();
    let line = if json {
        let engine = &snapshot.engine;
        let (socket, pid) = (&service.socket, std::process::id());
        terminal::json(&json!({ "socket": socket, "pid": pid, "enabled": snapshot.enabled, "engine": engine }))
    } else {
        line(service, &snapshot)
    };
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|error| Failure::of_output(&error))
}

fn line(service: &Service, snapshot: &Snapshot) -> String {
    let enabled = if snapshot.enabled { "on" } else { "off (start it with --enable to turn it on)" };
    let engine = match &snapshot.engine {
        EngineState::Trouble(trouble) => format!("{trouble} {}", trouble.hint()),
        EngineState::Checking | EngineState::Ready(_) => status::engine(&json!(snapshot.engine)),
    };
    format!("Listening at {}. {} Running code is {enabled}.", service.socket.display(), plain(&engine))
}

fn log() {
    let filter = EnvFilter::try_from_env(LOG).unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
