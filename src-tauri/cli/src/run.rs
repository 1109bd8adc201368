//! `sandtray run`: runs one program, streams its output, saves its files and returns its exit code.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use sandtray_core::language::Language;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::client::{Client, Message};
use crate::failure::{Failure, INTERRUPTED, is_cut_off};
use crate::format::count;
use crate::save::Existing;
use crate::signals::Signals;
use crate::source;
use crate::terminal::{self, Cleaner};

mod progress;
mod verdict;

use progress::Progress;

/// After Ctrl-C: timeout for the service to end the run.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program; `-` reads it from stdin. With --code, its first argument.
    #[arg(required_unless_present = "code")]
    file: Option<PathBuf>,
    /// The program's own arguments. Put `--` before one that begins with `-`.
    #[arg(value_name = "ARG")]
    args: Vec<String>,
    /// The program itself.
    #[arg(short, long, value_name = "CODE", requires = "language")]
    code: Option<String>,
    /// python, javascript, shell, go or rust; otherwise told from the file's name or its first line.
    #[arg(short, long, value_parser = source::language)]
    language: Option<Language>,
    /// Place a file beside the program. Repeat for more.
    #[arg(long = "file", value_name = "NAME=PATH")]
    files: Vec<String>,
    /// What the program reads from its stdin: a file, or `-`.
    #[arg(long, value_name = "PATH")]
    stdin: Option<PathBuf>,
    /// Save the files that the program wrote under out/ in this folder. Hidden names are left out.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Let --out replace files that are there.
    #[arg(long, requires = "out")]
    force: bool,
    /// Stop it after so many seconds.
    #[arg(long)]
    seconds: Option<f64>,
    /// Memory, in MB.
    #[arg(long, value_name = "MB")]
    memory_mb: Option<f64>,
    #[arg(long)]
    cpus: Option<f64>,
    /// When there is too much output: end the run, or keep its first and last part.
    #[arg(long, value_enum)]
    overflow: Option<OverflowArg>,
    /// A few words for the owner's list of runs.
    #[arg(long)]
    label: Option<String>,
    /// Say nothing on stderr but what the program says and what fails.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum OverflowArg {
    Kill,
    Truncate,
}

pub(crate) async fn run(args: Args, socket: &Path, json: bool) -> Result<ExitCode, Failure> {
    let (out, force, quiet) = (args.out.clone(), args.force, args.quiet);
    let request = request(args)?;
    let mut client = Client::connect(socket, "sandtray run").await?;
    let mut ctrl_c = Signals::interrupt().map_err(|error| Failure::of_signals(&error))?;
    let id = client.send("code.run", request).await?;
    let mut screen = Screen::new(json);
    let followed = follow(&mut client, id, &mut ctrl_c, &mut screen).await;
    if !matches!(followed, Ok(Some(_))) {
        // An error here is dropped in favour of the one that ended following the run.
        let _ = screen.restore();
    }
    let Some(reply) = followed? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    screen.finish(&reply.result)?;
    if json {
        writeln!(io::stdout(), "{}", terminal::json(&reply.result)).map_err(|error| Failure::of_output(&error))?;
    }
    // The verdict comes before the files, so that a failing disk does not hide it.
    if !quiet {
        verdict::tell(&reply.result, out.is_some());
    }
    if let Some(folder) = &out {
        save(&reply.result["files"], folder, force, quiet)?;
    }
    if reply.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let code = reply.result["exit_code"].as_i64().unwrap_or(0);
    // The service promises a code that fits. If it does not fit, it must at least not look like success.
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Saves the returned files and reports each that could not be saved.
///
/// # Errors
///
/// If a file could not be saved.
fn save(files: &Value, folder: &Path, force: bool, quiet: bool) -> Result<(), Failure> {
    let saved = crate::save::save(files, folder, if force { Existing::Replace } else { Existing::Keep })?;
    if saved.number > 0 && !quiet {
        verdict::say(&format!("{} saved under {}.", count(saved.number, "file"), folder.display()));
    }
    for refused in &saved.refused {
        verdict::say(&refused.to_string());
    }
    saved.failure(folder).map_or(Ok(()), Err)
}

fn request(mut args: Args) -> Result<Value, Failure> {
    if let Some(first) = args.file.take_if(|_| args.code.is_some()) {
        let first = first.into_os_string().into_string();
        args.args.insert(0, first.map_err(|_| Failure::new("An argument of the program is not UTF-8."))?);
    }
    let from_stdin = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if from_stdin(&args.file) && from_stdin(&args.stdin) {
        return Err(Failure::new("The program and its stdin can't both come from stdin."));
    }
    let (language, code) = source::program(args.file.as_deref(), args.code, args.language)?;
    let mut request = source::request(language, code);
    if !args.files.is_empty() {
        request["files"] = source::files(&args.files)?;
    }
    if !args.args.is_empty() {
        request["args"] = json!(args.args);
    }
    source::put(&mut request, "stdin", args.stdin.as_deref().map(source::stdin).transpose()?);
    source::put(&mut request, "label", args.label);
    let overflow = args.overflow.map(|overflow| match overflow {
        OverflowArg::Kill => "kill",
        OverflowArg::Truncate => "truncate",
    });
    source::put(&mut request, "overflow", overflow);
    let mut limits = json!({});
    source::put(&mut limits, "seconds", args.seconds);
    source::put(&mut limits, "memory_mb", args.memory_mb);
    source::put(&mut limits, "cpus", args.cpus);
    request["limits"] = limits;
    Ok(request)
}

struct Reply {
    result: Value,
    interrupted: bool,
}

/// Follows the run to its end. `None` if it was interrupted and the service did not report how it ended.
async fn follow(
    client: &mut Client,
    run: u64,
    ctrl_c: &mut Signals,
    screen: &mut Screen,
) -> Result<Option<Reply>, Failure> {
    let mut give_up: Option<Instant> = None;
    loop {
        let message = tokio::select! {
            message = client.next() => message?,
            () = ctrl_c.next() => {
                if give_up.is_some() {
                    return Ok(None);
                }
                give_up = Some(Instant::now() + CANCEL_PATIENCE);
                client.send("code.cancel", json!({ "request_id": run })).await?;
                continue;
            }
            () = sleep_until(give_up.unwrap_or_else(Instant::now)), if give_up.is_some() => return Ok(None),
        };
        match message {
            Message::Note { method, params } => screen.note(&method, &params)?,
            Message::Reply { id, result } if id == run => {
                screen.progress.clear();
                return match result {
                    Ok(result) => Ok(Some(Reply { result, interrupted: give_up.is_some() })),
                    Err(_) if give_up.is_some() => Ok(None),
                    Err(error) => {
                        if is_cut_off(&error) {
                            screen.finish(&error["data"])?;
                        }
                        Err(Failure::of_service(error))
                    }
                };
            }
            // The reply to the cancel.
            Message::Reply { .. } => {}
        }
    }
}

/// Writes the program's output, and counts the bytes of each stream.
struct Screen {
    /// With `--json` the output is only in the reply.
    json: bool,
    progress: Progress,
    stdout: Channel,
    stderr: Channel,
}

struct Channel {
    written: u64,
    missed: u64,
    /// Set if the stream is a terminal.
    cleaner: Option<Cleaner>,
}

impl Channel {
    fn new(terminal: bool) -> Self {
        Self { written: 0, missed: 0, cleaner: terminal.then(Cleaner::default) }
    }
}

impl Screen {
    fn new(json: bool) -> Self {
        Self {
            json,
            progress: Progress::new(),
            stdout: Channel::new(io::stdout().is_terminal()),
            stderr: Channel::new(io::stderr().is_terminal()),
        }
    }

    fn note(&mut self, method: &str, params: &Value) -> Result<(), Failure> {
        match method {
            "code.waiting" => self.progress.waiting(params),
            "code.started" => self.progress.clear(),
            "code.output" if !self.json => {
                self.progress.clear();
                let bytes = piece(&params["text"], &params["base64"]);
                let missed = params["missed"].as_u64().unwrap_or(0);
                self.write(params["stream"] == "stderr", &bytes, missed)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes output that is only in the result (or in an interrupted run's data), and restores the terminal's colours.
    fn finish(&mut self, result: &Value) -> Result<(), Failure> {
        if self.json {
            return Ok(());
        }
        for (is_stderr, name) in [(false, "stdout"), (true, "stderr")] {
            let whole = piece(&result[name], &result[format!("{name}_base64")]);
            let produced = result["output_bytes"][name].as_u64().unwrap_or(0);
            let channel = if is_stderr { &self.stderr } else { &self.stdout };
            let written = usize::try_from(channel.written).unwrap_or(usize::MAX);
            // Only if the reply has the whole stream: a truncated one does not continue what was shown.
            if channel.missed == 0 && whole.len() as u64 == produced && written < whole.len() {
                self.write(is_stderr, &whole[written..], 0)?;
            }
        }
        self.restore()?;
        let missed = self.stdout.missed + self.stderr.missed;
        if missed > 0 {
            let missed = crate::format::bytes(missed);
            eprintln!("sandtray: {missed} of output came too fast to be shown here; use --json for what was kept.");
        }
        Ok(())
    }

    /// Restores the terminal, however the run went.
    fn restore(&mut self) -> Result<(), Failure> {
        for (is_stderr, cleaner) in [(false, &mut self.stdout.cleaner), (true, &mut self.stderr.cleaner)] {
            let rest = cleaner.as_mut().map_or_else(String::new, Cleaner::end);
            put(is_stderr, rest.as_bytes())?;
        }
        Ok(())
    }

    fn write(&mut self, is_stderr: bool, bytes: &[u8], missed: u64) -> Result<(), Failure> {
        let channel = if is_stderr { &mut self.stderr } else { &mut self.stdout };
        channel.written += bytes.len() as u64;
        channel.missed += missed;
        match &mut channel.cleaner {
            Some(cleaner) => put(is_stderr, cleaner.clean(bytes).as_bytes()),
            None => put(is_stderr, bytes),
        }
    }
}

fn put(is_stderr: bool, bytes: &[u8]) -> Result<(), Failure> {
    let written = if is_stderr {
        io::stderr().write_all(bytes)
    } else {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush())
    };
    written.map_err(|error| Failure::of_output(&error))
}

/// The exact bytes of a piece: from `base64` if present, otherwise the text.
fn piece(text: &Value, encoded: &Value) -> Vec<u8> {
    match encoded.as_str().and_then(|encoded| STANDARD.decode(encoded).ok()) {
        Some(bytes) => bytes,
        None => text.as_str().unwrap_or_default().as_bytes().to_vec(),
    }
}
