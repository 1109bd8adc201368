//! Measures the history at size: `cargo run -p sandtray-core --example history_bench -- [runs]`.
//! Insert cost empty and full, pages at both ends, filters, searches for rare and common words.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use sandtray_core::history::{FileIn, History, HistoryQuery, RunRecord};
use sandtray_core::language::Language;
use sandtray_core::run::{
    Captured, Client, ClientId, EndedBy, Limits, Outcome, OutputFile, Overflow, RunId, RunSpec, Status,
};
use sandtray_core::settings::{HistorySettings, Keep, Settings};

type Failure = Box<dyn std::error::Error>;

const SAMPLE: usize = 2000;
const REPEATS: u32 = 20;
const INPUTS: usize = 200;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let runs: usize = std::env::args().nth(1).map_or(Ok(100_000), |word| word.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.sqlite");
    let settings = HistorySettings { max_runs: 1_000_000, max_mb: 100_000, ..HistorySettings::default() };
    let history = History::open(&path, settings.clone()).await?.history;
    let limits = Settings::default().limits();

    report("insert, empty", insert(&history, 0, SAMPLE, limits).await?);
    let started = Instant::now();
    insert(&history, SAMPLE, runs.saturating_sub(2 * SAMPLE), limits).await?;
    println!("filled to {runs} in {:.1} s", started.elapsed().as_secs_f64());
    report("insert, full", insert(&history, runs - SAMPLE, SAMPLE, limits).await?);
    history.close().await?;
    println!("file: {} MB", std::fs::metadata(&path)?.len() >> 20);

    let started = Instant::now();
    let history = History::open(&path, settings.clone()).await?.history;
    println!("open: {:.1} ms; {:?}", millis(started.elapsed()), history.stats().await?);
    queries(&history).await?;

    report("insert with 1 MB of input, the same each time", inputs(&history, runs, limits, |_| 7).await?);
    report(
        "insert with 1 MB of input, another each time",
        inputs(&history, runs, limits, |number| number as u8).await?,
    );

    history.configure(HistorySettings { max_runs: runs as u32, ..settings.clone() }).await?;
    report("insert where each prunes one", insert(&history, runs, SAMPLE, limits).await?);
    history.configure(HistorySettings { max_runs: (runs / 2) as u32, ..settings }).await?;
    report("insert while pruning half", insert(&history, runs + SAMPLE, SAMPLE, limits).await?);
    let started = Instant::now();
    while history.stats().await?.runs > (runs / 2) as u64 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("pruned in {:.1} s more", started.elapsed().as_secs_f64());
    history.close().await?;
    Ok(())
}

async fn insert(history: &History, from: usize, count: usize, limits: Limits) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::with_capacity(count);
    for number in from..from + count {
        let record = record(number, limits);
        let started = Instant::now();
        history.record(record).await?;
        times.push(started.elapsed());
    }
    Ok(times)
}

/// Runs that were given a file of a megabyte, which is no text and so is not searched.
async fn inputs(
    history: &History,
    from: usize,
    limits: Limits,
    byte: fn(usize) -> u8,
) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::with_capacity(INPUTS);
    for number in 0..INPUTS {
        let mut record = record(from + number, limits);
        if let Some(body) = &mut record.body {
            let mut bytes = vec![byte(number); 1 << 20];
            bytes[0] = 0;
            body.files_in = vec![FileIn { name: "data".into(), size: 1 << 20, bytes: Some(bytes.into()) }];
        }
        let started = Instant::now();
        history.record(record).await?;
        times.push(started.elapsed());
    }
    Ok(times)
}

async fn queries(history: &History) -> Result<(), Failure> {
    let page = |change: fn(&mut HistoryQuery)| {
        let mut query = HistoryQuery { limit: 100, ..HistoryQuery::default() };
        change(&mut query);
        query
    };
    for (name, query) in [
        ("page of 100", page(|_| ())),
        ("page of 500", page(|query| query.limit = 500)),
        ("language", page(|query| query.language = Some("rust".into()))),
        (
            "rare status and language",
            page(|query| {
                (query.status, query.language) = (Some("out_of_memory".into()), Some("go".into()));
            }),
        ),
        ("client, none such", page(|query| query.client = Some("nobody".into()))),
        (
            "client and rare status",
            page(|query| {
                (query.client, query.status) = (Some("agent-3".into()), Some("out_of_memory".into()));
            }),
        ),
        ("search, in every run", page(|query| query.text = Some("import".into()))),
        ("search, one letter", page(|query| query.text = Some("i".into()))),
        ("search, one run", page(|query| query.text = Some("needle_5000".into()))),
        ("search, nothing", page(|query| query.text = Some("absent".into()))),
        ("search, two words, one rare", page(|query| query.text = Some("import needle_77".into()))),
        (
            "search, common, rare status",
            page(|query| {
                (query.text, query.status) = (Some("import".into()), Some("out_of_memory".into()));
            }),
        ),
    ] {
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..REPEATS {
            let started = Instant::now();
            found = history.list(query.clone()).await?.runs.len();
            times.push(started.elapsed());
        }
        println!("{name}: {found} runs, first {:.2} ms", millis(times[0]));
        report(name, times);
    }
    let (mut query, mut times) = (page(|query| query.limit = 500), Vec::new());
    loop {
        let started = Instant::now();
        let page = history.list(query.clone()).await?;
        times.push(started.elapsed());
        let Some(next) = page.next else { break };
        query.before = Some(next);
    }
    report("every page of 500", times);
    Ok(())
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(1).max(1);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).or(times.last()).copied().unwrap_or_default();
    println!(
        "{name}: mean {:.3}, median {:.3}, p99 {:.3}, max {:.3} ms",
        millis(mean),
        millis(at(0.5)),
        millis(at(0.99)),
        millis(times.last().copied().unwrap_or_default())
    );
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// About 1.5 KB of code whose words differ from run to run, 2 KB of output, and now and then a file.
fn record(number: usize, limits: Limits) -> RunRecord {
    let mut code = format!("import pandas as pd\n# needle_{number}\n");
    for line in 0..30 {
        let word = (number * 31 + line * 7919) % 5003;
        code += &format!("value_{word} = compute{}(column_{line}, {word})\n", word % 97);
    }
    let id = RunId::generate();
    let spec = RunSpec {
        id,
        language: Language::ALL[number % 5],
        code: code.into(),
        args: Vec::new(),
        files: Vec::new(),
        stdin: Bytes::new(),
        limits,
        overflow: Overflow::Kill,
        label: number.is_multiple_of(3).then(|| format!("step {number} of the report")),
    };
    let client = Client { id: ClientId(1), name: format!("agent-{}", number % 7), pid: Some(4711), program: None };
    let output = Bytes::from(vec![b'x'; 2000]);
    let files = match number % 10 {
        0 => sandtray_core::name::FileName::parse("plot.png")
            .map(|name| OutputFile { name, bytes: Bytes::from(vec![7; 20_000]) })
            .into_iter()
            .collect(),
        _ => Vec::new(),
    };
    let outcome = Outcome {
        status: if number.is_multiple_of(1000) { Status::OutOfMemory } else { Status::Ok },
        ended_by: EndedBy::Program,
        exit_code: 0,
        stdout: Captured { produced: 2000, bytes: output },
        stderr: Captured::default(),
        files,
        skipped_files: Vec::new(),
        left_behind: Vec::new(),
        wall: Duration::from_millis(20),
        queued: Duration::from_millis(3),
        memory_bytes: Some(9 << 20),
        cpu: Some(Duration::from_millis(12)),
        oom_kills: 0,
        image: "python:3.12-slim@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef".into(),
        limits,
        recorded: true,
    };
    RunRecord::of(&spec, &client, SystemTime::now(), Ok(&outcome), Keep::Everything)
}
