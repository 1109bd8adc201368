//! A long history must not be felt: writing a run, a call and the first page with a million runs behind them, in turn with
//! the same where there are next to none.

use std::path::Path;
use std::time::{Duration, Instant};

use sandtray_core::history::{History, HistoryQuery};
use sandtray_core::paths::Paths;
use sandtray_tests::long_history::{self, Prints};
use sandtray_tests::rig::Agent;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::serving::{Serving, print_call};
use crate::stats::{Sample, round};

const RUNS: u32 = 1_000_000;
/// Of a call and a page over the socket.
const ROUNDS: usize = 60;
/// Of a record and a page in this process.
const RECORDS: u32 = 400;
/// Of those who ran something.
const COUNTS: u32 = 20;
/// Containers that are kept, and waited for before each call: with fewer, one side would be at work in the other's time.
const WARM: u64 = 2;
/// After the last record: by then each history has merged its words and written its log back.
const TIDIED: Duration = Duration::from_secs(3);
/// Rows of a page.
const ROWS: usize = 50;
/// Runs that are searched, and how often each search is asked.
const SEARCHED: u32 = 100_000;
const SEARCH_ROUNDS: usize = 10;
const SEARCHES: &[(&str, &str)] = &[
    ("a word of every run", "import"),
    ("a frequent word of the output", "babababa"),
    ("a rare word of the output", "tumupeba"),
    ("two words of the output", "babababa dibababa"),
    ("a word of the output and a client", "cebababa claude"),
    ("one letter", "b"),
    ("two letters", "ba"),
    ("four letters", "baba"),
    ("a digit", "1"),
    ("a number", "104"),
    ("nothing", "zzzz"),
];

pub(crate) async fn measure() -> Value {
    let (long, empty) = (home(), home());
    let file = |home: &TempDir| Paths::under(home.path()).history_file();
    let begun = Instant::now();
    long_history::fill(&file(&long), RUNS, long_history::start(RUNS + RECORDS), Prints::ALine).await;
    let size = std::fs::metadata(file(&long)).unwrap().len() >> 20;
    println!("{RUNS} runs written in {:.0} s; they take {size} MB of disk\n", begun.elapsed().as_secs_f64());
    println!("{:<34} {:>12} {:>12} {:>7}", "median", "long history", "empty", "ratio");
    let mut report = json!({ "runs": RUNS, "disk_mb": size });
    let (record, page, clients) = in_process(&file(&long), &file(&empty)).await;
    report["record"] = record.row("writing a run");
    report["page"] = page.row("reading the first page");
    report["clients"] = clients.row("counting who ran something");
    let (call, page) = over_the_socket(long, empty).await;
    report["call"] = call.row("a call, in all");
    report["page_call"] = page.row("a call for the first page");
    report
}

/// What the owner waits for at each key of a search, where every run printed two kilobytes.
pub(crate) async fn searches() -> Value {
    let home = home();
    let file = Paths::under(home.path()).history_file();
    let begun = Instant::now();
    long_history::fill(&file, SEARCHED, long_history::start(SEARCHED), Prints::TwoKilobytes).await;
    let size = std::fs::metadata(&file).unwrap().len() >> 20;
    let took = begun.elapsed().as_secs_f64();
    println!("\n{SEARCHED} runs of 2 KB of output written in {took:.0} s; they take {size} MB of disk\n");
    println!("{:<34} {:>12} {:>12} {:>7}", "a search", "median", "longest", "found");
    let history = History::open(&file, long_history::settings()).await.unwrap().history;
    let mut report = json!({ "runs": SEARCHED, "disk_mb": size });
    for (what, text) in SEARCHES {
        let (mut sample, mut found) = (Sample::default(), 0);
        for _ in 0..SEARCH_ROUNDS {
            let query = HistoryQuery { limit: 100, text: Some((*text).into()), ..HistoryQuery::default() };
            let begun = Instant::now();
            found = history.list(query).await.unwrap().runs.len();
            sample.add(begun.elapsed());
        }
        println!("{what:<34} {:>9.3} ms {:>9.3} ms {found:>7}", sample.median(), sample.longest());
        report[*what] = sample.json();
    }
    history.close().await.unwrap();
    report
}

fn home() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    Paths::under(folder.path()).ensure().unwrap();
    folder
}

#[derive(Default)]
struct Pair {
    long: Sample,
    empty: Sample,
}

impl Pair {
    fn sample(&mut self, long: bool) -> &mut Sample {
        if long { &mut self.long } else { &mut self.empty }
    }

    fn row(&self, what: &str) -> Value {
        let Self { long, empty } = self;
        let ratio = long.median() / empty.median();
        println!("{what:<34} {:>9.3} ms {:>9.3} ms {ratio:>7.2}", long.median(), empty.median());
        json!({ "long": long.json(), "empty": empty.json(), "ratio": round(ratio) })
    }
}

/// The history alone: what a run's record, the first page and the page of agents cost it.
async fn in_process(long: &Path, empty: &Path) -> (Pair, Pair, Pair) {
    let open = async |file| History::open(file, long_history::settings()).await.unwrap().history;
    let mut histories = [(true, open(long).await), (false, open(empty).await)];
    let (mut records, mut pages, mut clients) = <(Pair, Pair, Pair)>::default();
    // Later than all that is there, and not later than now.
    let start = long_history::start(RECORDS);
    for number in 0..RECORDS {
        for (is_long, history) in &histories {
            let record = long_history::record(number, start, Prints::ALine);
            let begun = Instant::now();
            history.record(record).await.unwrap();
            records.sample(*is_long).add(begun.elapsed());
        }
        histories.reverse();
    }
    tokio::time::sleep(TIDIED).await;
    for _ in 0..RECORDS {
        for (is_long, history) in &histories {
            let begun = Instant::now();
            history.list(HistoryQuery { limit: ROWS, ..HistoryQuery::default() }).await.unwrap();
            pages.sample(*is_long).add(begun.elapsed());
        }
        histories.reverse();
    }
    for _ in 0..COUNTS {
        for (is_long, history) in &histories {
            let begun = Instant::now();
            history.clients().await.unwrap();
            clients.sample(*is_long).add(begun.elapsed());
        }
    }
    for (_, history) in &histories {
        history.close().await.unwrap();
    }
    (records, pages, clients)
}

/// What an agent and the owner meet.
async fn over_the_socket(long: TempDir, empty: TempDir) -> (Pair, Pair) {
    let settings = |settings: &mut sandtray_core::settings::Settings| {
        settings.history = long_history::settings();
        settings.warm = WARM as u32;
    };
    let (long, empty) = (Serving::start_in(long, settings).await, Serving::start_in(empty, settings).await);
    let mut sides = [(true, &long, long.agent().await), (false, &empty, empty.agent().await)];
    let (mut calls, mut pages) = <(Pair, Pair)>::default();
    for (_, _, agent) in &mut sides {
        for _ in 0..WARM {
            agent.run(print_call("shell")).await;
        }
    }
    for _ in 0..ROUNDS {
        for (is_long, serving, agent) in &mut sides {
            serving.warm(agent, WARM).await;
            // Before the call: behind it, the page would wait for the record's share of tidying.
            pages.sample(*is_long).add(time(agent, "code.history", json!({ "limit": ROWS })).await);
            calls.sample(*is_long).add(time(agent, "code.run", print_call("shell")).await);
        }
        // Neither is always the one that comes behind the other.
        sides.reverse();
    }
    long.stop().await;
    empty.stop().await;
    (calls, pages)
}

async fn time(agent: &mut Agent, method: &str, params: Value) -> Duration {
    let begun = Instant::now();
    agent.call(method, params).await.unwrap();
    begun.elapsed()
}
