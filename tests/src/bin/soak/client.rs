//! One client, in a process of its own: calls one program after the other, compares each answer with what the program must have done, and
//! reports each call on its standard output. It goes on until its standard input says `calm`; then come the last calls, which nothing
//! disturbs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::calls::{Call, End, Said, shortened};
use super::now;
use super::programs::{Asked, Dice, How, Program};
use super::wire::{Heard, Wire};

/// Without a service for so long something is wrong.
const ABSENT: Duration = Duration::from_secs(45);
const RETRY: Duration = Duration::from_millis(50);
/// After a call that was refused.
const PAUSE: Duration = Duration::from_millis(250);
const CALM_CALLS: u32 = 8;

pub(crate) async fn run(socket: &Path, number: u32, seed: u64) {
    let calm = CancellationToken::new();
    tokio::spawn(listen(calm.clone()));
    let mut client = Client { socket: socket.to_owned(), number, calls: 0, dice: Dice(seed), wire: None, calm: false };
    while !calm.is_cancelled() {
        client.call().await;
    }
    client.calm = true;
    for _ in 0..CALM_CALLS {
        client.call().await;
    }
}

async fn listen(calm: CancellationToken) {
    match BufReader::new(stdin()).lines().next_line().await {
        Ok(Some(_)) => calm.cancel(),
        // The soak is gone.
        Ok(None) | Err(_) => std::process::exit(1),
    }
}

struct Client {
    socket: PathBuf,
    number: u32,
    calls: u32,
    dice: Dice,
    wire: Option<Wire>,
    calm: bool,
}

impl Client {
    async fn call(&mut self) {
        self.calls += 1;
        let label = format!("soak {}-{}", self.number, self.calls);
        let asked = if self.calm { Asked::short(&mut self.dice, &label) } else { Asked::any(&mut self.dice, &label) };
        let (programs, method, params, how) = match asked {
            Asked::One(program) => {
                let (request, how) = (program.request.clone(), program.how);
                (vec![program], "code.run", request, how)
            }
            Asked::Batch(programs) => {
                let runs: Vec<&Value> = programs.iter().map(|program| &program.request).collect();
                let params = json!({ "runs": runs });
                (programs, "code.batch", params, How::Plain)
            }
        };
        let mut wire = self.connected().await;
        let (sent, mut heard) = (now(), Heard::default());
        let answer = match how {
            How::Left(after) => {
                let _ = wire.send(method, &params).await;
                sleep(Duration::from_millis(after)).await;
                Err(End::Left)
            }
            How::Plain | How::Streamed => wire.call(method, &params, false, &mut heard).await,
            How::Cancelled => wire.call(method, &params, true, &mut heard).await,
        };
        let at = (sent, now());
        if answer.is_ok() {
            self.wire = Some(wire);
        }
        let refused = !matches!(answer, Ok(Ok(_)) | Err(End::Left));
        match (method, answer) {
            ("code.batch", Ok(Ok(reply))) => self.report_batch(&programs, at, &reply),
            (_, answer) => {
                for program in &programs {
                    self.report(program, at, answer.clone(), &heard);
                }
            }
        }
        if refused {
            sleep(PAUSE).await;
        }
    }

    fn report_batch(&self, programs: &[Program], at: (u64, u64), reply: &Value) {
        let items = reply["results"].as_array().cloned().unwrap_or_default();
        if items.len() != programs.len() {
            strange(format!("a batch of {} runs was answered with {} results", programs.len(), items.len()));
        }
        for (program, mut item) in programs.iter().zip(items) {
            let answer = match item.get_mut("error") {
                Some(error) => Err(error.take()),
                None => Ok(item["result"].take()),
            };
            self.report(program, at, Ok(answer), &Heard::default());
        }
    }

    fn report(
        &self,
        program: &Program,
        (sent, ended): (u64, u64),
        answer: Result<Result<Value, Value>, End>,
        heard: &Heard,
    ) {
        let mut wrong = heard.wrong.clone();
        let (end, answer) = match answer {
            Ok(answer) => {
                wrong.extend(faults(program, &answer, heard));
                (End::of(&answer), answer.unwrap_or_else(|error| error))
            }
            Err(end) => (end, Value::Null),
        };
        say(&Said::Call(Box::new(Call {
            client: self.number,
            kind: program.kind.into(),
            label: program.request["label"].as_str().unwrap_or_default().into(),
            sent,
            ended,
            longest: program.expected.longest(),
            calm: self.calm,
            end,
            cancelled: heard.cancelled,
            wrong: (!wrong.is_empty()).then(|| wrong.join("; ")),
            request: shortened(&program.request),
            answer: shortened(&answer),
        })));
    }

    /// A connection that was greeted; where there is none, one as soon as the service is there.
    async fn connected(&mut self) -> Wire {
        if let Some(wire) = self.wire.take() {
            return wire;
        }
        let mut since = Instant::now();
        loop {
            match Wire::open(&self.socket, self.number).await {
                Ok(Some(wire)) => return wire,
                Ok(None) => {}
                Err(what) => strange(what),
            }
            if since.elapsed() > ABSENT {
                strange(format!("no service for {} s", ABSENT.as_secs()));
                since = Instant::now();
            }
            sleep(RETRY).await;
        }
    }
}

/// What is wrong with an answer, were it the right kind of answer.
fn faults(program: &Program, answer: &Result<Value, Value>, heard: &Heard) -> Option<String> {
    let error = match answer {
        Ok(result) => {
            let streamed = matches!(program.how, How::Streamed | How::Cancelled);
            let told = !streamed || heard.missed || result["stdout"] == heard.stdout.as_str();
            let untold =
                (!told).then(|| format!("told {:?} while it ran, and another output at its end", heard.stdout));
            // One that the service ended on its way out is for the judge, who knows of such things.
            let cut = result["status"] == "cancelled" && !heard.cancelled;
            return untold.or_else(|| if cut { None } else { program.expected.faults(result) });
        }
        Err(error) if error["data"]["code"] == "run_interrupted" => &error["data"],
        Err(_) => return None,
    };
    if !error["run_id"].is_string() || !error["seconds"].is_number() || !error["stderr"].is_string() {
        return Some("an interrupted run without its run_id, seconds or stderr".into());
    }
    let Some(stdout) = error["stdout"].as_str() else {
        return Some("an interrupted run without its output".into());
    };
    (!program.expected.begins_with(stdout)).then(|| format!("{stdout:?} is not the beginning of its output"))
}

fn strange(what: String) {
    say(&Said::Strange { at: now(), what });
}

fn say(said: &Said) {
    let line = serde_json::to_string(said).unwrap();
    let _ = writeln!(std::io::stdout(), "{line}");
}
