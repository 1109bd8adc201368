//! A long history must not be felt: a call and the first page with many runs behind them, beside the same with none.

use std::time::{Duration, Instant, SystemTime};

use sandtray_core::error::RunError;
use sandtray_core::history::{History, HistoryError, RunRecord};
use sandtray_core::language::Language;
use sandtray_core::paths::Paths;
use sandtray_core::run::{Client, ClientId, Overflow, RunId, RunSpec};
use sandtray_core::settings::{HistorySettings, Keep, Settings};
use serde_json::{Value, json};

use crate::serving::{Serving, print_call};
use crate::stats::{Sample, round};

const RUNS: u32 = 1_000_000;
const ROUNDS: usize = 30;

fn settings() -> HistorySettings {
    HistorySettings { max_runs: RUNS, max_mb: 102_400, ..HistorySettings::default() }
}

pub(crate) async fn measure() -> Value {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::under(folder.path());
    paths.ensure().unwrap();
    let begun = Instant::now();
    fill(&paths).await;
    println!("{RUNS} runs written in {:.0} s", begun.elapsed().as_secs_f64());

    let long = Serving::start_in(folder, |settings| settings.history = self::settings()).await;
    let empty = Serving::start(|settings| settings.history = self::settings()).await;
    let (mut call_long, mut call_empty, mut page_long, mut page_empty) = <(Sample, Sample, Sample, Sample)>::default();
    let (mut to_long, mut to_empty) = (long.agent().await, empty.agent().await);
    for agent in [&mut to_long, &mut to_empty] {
        for _ in 0..50 {
            agent.run(print_call("shell")).await;
        }
    }
    for _ in 0..ROUNDS {
        for (serving, agent, calls, pages) in [
            (&long, &mut to_long, &mut call_long, &mut page_long),
            (&empty, &mut to_empty, &mut call_empty, &mut page_empty),
        ] {
            serving.warm(agent, 1).await;
            calls.add(time(agent, "code.run", print_call("shell")).await);
            pages.add(time(agent, "code.history", json!({ "limit": 50 })).await);
        }
    }
    let (calls, pages) = (call_long.median() / call_empty.median(), page_long.median() / page_empty.median());
    println!(
        "a call: {:.1} ms, with an empty history {:.1} ms, ratio {calls:.2}",
        call_long.median(),
        call_empty.median()
    );
    println!(
        "the first page of 50: {:.1} ms, of an empty history {:.1} ms, ratio {pages:.2}",
        page_long.median(),
        page_empty.median()
    );
    long.stop().await;
    empty.stop().await;
    json!({
        "runs": RUNS, "call": call_long.json(), "call_empty": call_empty.json(), "call_ratio": round(calls),
        "page": page_long.json(), "page_empty": page_empty.json(), "page_ratio": round(pages),
    })
}

async fn time(agent: &mut sandtray_tests::rig::Agent, method: &str, params: Value) -> Duration {
    let begun = Instant::now();
    agent.call(method, params).await.unwrap();
    begun.elapsed()
}

/// Through the history's own door; that the runs were refused makes them small, which the list does not mind.
async fn fill(paths: &Paths) {
    let history = History::open(&paths.history_file(), settings()).await.unwrap().history;
    let client = Client { id: ClientId(1), name: "bench".into(), pid: None, program: None };
    let start = SystemTime::now() - Duration::from_secs(u64::from(RUNS) / 2);
    let error = RunError::Internal("made up".into());
    let mut writing: tokio::task::JoinSet<Result<(), HistoryError>> = tokio::task::JoinSet::new();
    for number in 0..RUNS {
        let spec = RunSpec {
            id: RunId::generate(),
            language: Language::Shell,
            code: "echo 1".into(),
            files: Vec::new(),
            stdin: "".into(),
            limits: Settings::default().limits(),
            overflow: Overflow::Kill,
            label: None,
        };
        let at = start + Duration::from_millis(u64::from(number) * 500);
        let record = RunRecord::of(&spec, &client, at, Err(&error), Keep::Metrics);
        let history = history.clone();
        if writing.len() >= 64 {
            writing.join_next().await.unwrap().unwrap().unwrap();
        }
        writing.spawn(async move { history.record(record).await });
    }
    while let Some(written) = writing.join_next().await {
        written.unwrap().unwrap();
    }
    history.close().await.unwrap();
}
