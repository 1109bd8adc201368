//! The soak from its start to its verdict.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::calls::Said;
use super::disturb::{self, Book, Kind, World};
use super::engine::{self, Engine};
use super::judge::{self, Finding};
use super::report::Report;
use super::service::{self, Service};
use super::{after, now, target_folder};

const CLIENTS: u32 = 6;
const MINUTES: f64 = 10.0;
/// For the last calls of all clients, when nothing disturbs them any more.
const CALM_BOUND: Duration = Duration::from_secs(200);
/// Without disturbances, at the start: the images are fetched.
const WARMING: Duration = Duration::from_secs(15);
/// Between the last disturbance and the last calls, which all must be right: the engine is noticed, its walls are proved.
const SETTLING: Duration = Duration::from_secs(5);
const WEIGH_EVERY: Duration = Duration::from_secs(2);
/// What is said and was not taken yet.
const SAID: usize = 1024;

pub(crate) async fn soak(root: &Path) -> ExitCode {
    let _ = std::fs::remove_dir_all(target_folder());
    std::fs::create_dir_all(target_folder()).unwrap();
    let (seed, kinds) = (seed(), kinds());
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    println!("{} minutes with {}, seed {seed}", minutes(), words.join(", "));
    let engine = Arc::new(Engine::start(root).await);
    let service = Arc::new(Service::new(root, engine.url()));
    service.start().await.expect("a service");
    let world = World { engine, service, book: Book::default() };
    let kept = File::create(target_folder().join("calls")).unwrap();
    let mut report = Report { began: now(), kept, calls: Vec::new(), disturbances: Vec::new(), findings: Vec::new() };
    go_on(&world, &mut report, kinds, seed).await;
    finish(&world, &mut report).await;
    report.print();
    world.engine.stop(engine::Stop::Asked).await;
    if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Until the last client has made its last call.
async fn go_on(world: &World, report: &mut Report, kinds: Vec<Kind>, seed: u64) {
    let (sender, mut said) = mpsc::channel(SAID);
    let mut clients: Vec<Client> =
        (1..=CLIENTS).map(|number| Client::start(world, number, seed, sender.clone())).collect();
    drop(sender);
    let over = CancellationToken::new();
    let disturbing = {
        let (world, over) = (world.clone(), over.clone());
        tokio::spawn(async move {
            sleep(WARMING).await;
            disturb::all(world, kinds, over).await;
        })
    };
    let mut disturbing = Some(disturbing);
    let mut end = Instant::now() + WARMING + Duration::from_secs_f64(minutes() * 60.0);
    let mut weigh = interval(WEIGH_EVERY);
    loop {
        tokio::select! {
            heard = said.recv() => match heard {
                Some(heard) => hear(heard, world, report),
                None => break,
            },
            _ = weigh.tick() => drop(world.service.weigh().await),
            () = tokio::time::sleep_until(end) => match disturbing.take() {
                Some(disturbing) => {
                    over.cancel();
                    disturbing.await.unwrap();
                    sleep(SETTLING).await;
                    for client in &mut clients {
                        client.calm().await;
                    }
                    end = Instant::now() + CALM_BOUND;
                }
                None => {
                    world.book.note(format!("the last calls were not over {} s after all was calm", CALM_BOUND.as_secs()));
                    break;
                }
            },
        }
    }
    for client in clients {
        client.end().await;
    }
}

fn hear(said: Said, world: &World, report: &mut Report) {
    let disturbances = world.book.all();
    match said {
        Said::Call(call) => {
            let before: Vec<_> = disturbances.into_iter().filter(|one| one.began <= call.ended).collect();
            let _ = writeln!(report.kept, "{}", serde_json::to_string(&call).unwrap());
            report.findings.extend(judge::findings(&call, &before));
            report.calls.push(*call);
        }
        Said::Strange { at, what } => report.findings.push(Finding::new(at, what, &disturbances)),
    }
}

/// What was lost, and what is left.
async fn finish(world: &World, report: &mut Report) {
    let resting = world.service.weigh().await;
    println!("The service takes {} MB at the end.", resting >> 10);
    if let Err(what) = world.service.stop(service::Stop::Asked).await {
        world.book.note(what);
    }
    after::leftovers(world).await;
    report.disturbances = world.book.all();
    let file = world.service.paths().history_file();
    for (call, what) in after::history(&file, &report.calls, &report.disturbances, &world.book) {
        let finding = Finding::new(call.ended, what, &report.disturbances);
        report.findings.push(Finding { call: Some(call.clone()), ..finding });
    }
    for (at, what) in world.book.strange() {
        report.findings.push(Finding::new(at, what, &report.disturbances));
    }
    report.findings.sort_by_key(|finding| finding.at);
}

struct Client {
    process: Child,
    stdin: ChildStdin,
}

impl Client {
    fn start(world: &World, number: u32, seed: u64, said: mpsc::Sender<Said>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let own_seed = seed.wrapping_mul(1000).wrapping_add(u64::from(number));
        command.arg("client").arg(world.service.socket()).args([number.to_string(), own_seed.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let stdin = process.stdin.take().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let _ = said.send(serde_json::from_str(&line).expect(&line)).await;
            }
        });
        Self { process, stdin }
    }

    async fn calm(&mut self) {
        let _ = self.stdin.write_all(b"calm\n").await;
    }

    async fn end(mut self) {
        if timeout(Duration::from_secs(5), self.process.wait()).await.is_err() {
            let _ = self.process.kill().await;
        }
    }
}

fn minutes() -> f64 {
    std::env::var("SANDTRAY_SOAK").ok().and_then(|minutes| minutes.parse().ok()).unwrap_or(MINUTES)
}

fn seed() -> u64 {
    std::env::var("SANDTRAY_SOAK_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| now() % 1_000_000)
}

fn kinds() -> Vec<Kind> {
    let Ok(words) = std::env::var("SANDTRAY_SOAK_WITH") else { return Kind::ALL.into() };
    let of_word = |word: &str| Kind::ALL.into_iter().find(|kind| kind.word() == word).expect(word);
    words.split(',').filter(|word| !word.is_empty()).map(of_word).collect()
}
