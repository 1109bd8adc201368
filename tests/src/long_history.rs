//! Histories of many runs, made in seconds: the history itself writes the first thousand, and SQL repeats those under
//! other ids and times, in one transaction and without waiting for the disk. The result is what the history would have
//! made of the same records; `tests/long_history.rs` holds that, table by table.

use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rusqlite::{Connection, params};
use sandtray_core::history::{History, RunRecord};
use sandtray_core::language::Language;
use sandtray_core::run::{Captured, Client, ClientId, EndedBy, Outcome, Overflow, RunId, RunSpec, Status};
use sandtray_core::settings::{HistorySettings, Keep, Settings};
use sandtray_core::time::{from_millis, to_millis};

/// Runs that differ in more than id and time.
const MODELS: u32 = 1000;
/// `run.seq` is `milliseconds << 20 | tie`, and no two of these runs share a millisecond.
const TIE_BITS: u32 = 20;
/// Apart from each other.
const STEP: Duration = Duration::from_millis(500);

const CLIENTS: [&str; 4] = ["claude-code", "a research agent", "nightly report", "sandtray run"];
const WORDS: [&str; 32] = [
    "invoice",
    "parquet",
    "median",
    "histogram",
    "regex",
    "matrix",
    "timezone",
    "checksum",
    "budget",
    "sensor",
    "ledger",
    "weather",
    "mailbox",
    "quarter",
    "customer",
    "tariff",
    "harvest",
    "railway",
    "voltage",
    "glacier",
    "lantern",
    "orchard",
    "pigment",
    "quarry",
    "rudder",
    "sapling",
    "thimble",
    "umbrella",
    "velvet",
    "walnut",
    "yonder",
    "zephyr",
];

/// What is not pruned while it is measured.
pub fn settings() -> HistorySettings {
    HistorySettings { max_runs: 1_000_000, max_mb: 102_400, ..HistorySettings::default() }
}

/// So many runs end now, the latest last.
pub fn start(runs: u32) -> SystemTime {
    from_millis(to_millis(SystemTime::now() - STEP * (runs + 1)))
}

/// What the runs of a history print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prints {
    ALine,
    /// Two kilobytes of text, in words of which some are frequent and most are not.
    TwoKilobytes,
}

/// The run of that number: a short program as agents write them, most of which go well.
pub fn record(number: u32, start: SystemTime, prints: Prints) -> RunRecord {
    let model = number % MODELS;
    let pick =
        |salt: u32| WORDS[(model.wrapping_mul(2_654_435_761).wrapping_add(salt * 7919) >> 7) as usize % WORDS.len()];
    let (first, second) = (pick(1), pick(2));
    let code = format!(
        "# {first} {second} {model}\nimport csv, json\nrows = list(csv.DictReader(open('{first}.csv')))\n\
         total = sum(float(row['{second}']) for row in rows)\nprint(json.dumps({{'{first}': total, 'rows': len(rows)}}))\n"
    );
    let (language, image) = match model % 10 {
        0..=5 => (Language::Python, "python:3.12-slim@sha256:41b3"),
        6 | 7 => (Language::Javascript, "node:22-slim@sha256:9f0c"),
        _ => (Language::Shell, "alpine:3.22@sha256:77aa"),
    };
    let status = match model % 20 {
        0 => Status::Timeout,
        1 | 2 => Status::Failed,
        _ => Status::Ok,
    };
    let limits = Settings::default().limits();
    let at = start + STEP * number;
    let spec = RunSpec {
        id: id(at),
        language,
        code: code.into(),
        args: Vec::new(),
        files: Vec::new(),
        stdin: Bytes::new(),
        limits,
        overflow: Overflow::Kill,
        label: model.is_multiple_of(3).then(|| format!("the {first} of the {second}")),
    };
    let stdout = match prints {
        Prints::ALine => format!("{{\"{first}\": {model}.25, \"rows\": {}}}\n", model * 3),
        Prints::TwoKilobytes => text(model),
    };
    let outcome = Outcome {
        status,
        ended_by: EndedBy::of(status),
        exit_code: if status == Status::Ok { 0 } else { 1 },
        stdout: Captured { produced: stdout.len() as u64, bytes: stdout.into() },
        stderr: Captured::default(),
        files: Vec::new(),
        skipped_files: Vec::new(),
        left_behind: Vec::new(),
        wall: Duration::from_micros(15_000 + u64::from(model) * 40),
        queued: Duration::from_micros(3000 + u64::from(model)),
        memory_bytes: Some((8 << 20) + u64::from(model) * 4096),
        cpu: Some(Duration::from_micros(12_000 + u64::from(model) * 30)),
        oom_kills: 0,
        image: image.into(),
        limits,
        recorded: true,
    };
    let name = CLIENTS[model as usize % CLIENTS.len()];
    let client = Client { id: ClientId(1), name: name.into(), pid: Some(4711), program: Some("/usr/bin/agent".into()) };
    RunRecord::of(&spec, &client, at, Ok(&outcome), Keep::Everything)
}

const TEXT: usize = 2 << 10;
const SYLLABLES: [&str; 16] =
    ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"];

/// Words by their rank, which is how often they come, as in a language; and numbers, as programs print them.
fn text(model: u32) -> String {
    let mut random = u64::from(model).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut text = String::with_capacity(TEXT + 16);
    while text.len() < TEXT {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random.is_multiple_of(8) {
            text.push_str(&format!("{} ", random >> 44));
            continue;
        }
        // The square of an even draw, scaled: low ranks are the frequent ones.
        let draw = (random >> 40) & 0xffff;
        let mut rank = (draw * draw) >> 17;
        for _ in 0..4 {
            text.push_str(SYLLABLES[(rank & 15) as usize]);
            rank >>= 4;
        }
        text.push(' ');
    }
    text.truncate(TEXT);
    text
}

/// Ordered by time, as ids are.
fn id(at: SystemTime) -> RunId {
    format!("{:012x}70008000{:012x}", to_millis(at), 1).parse().expect("32 hex digits")
}

/// Makes the file, which must not be there yet.
pub async fn fill(file: &Path, runs: u32, start: SystemTime, prints: Prints) {
    let history = History::open(file, settings()).await.expect("a new history").history;
    for number in 0..runs.min(MODELS) {
        history.record(record(number, start, prints)).await.expect("it is recorded");
    }
    history.close().await.expect("it closes");
    let file = file.to_owned();
    let repeating = tokio::task::spawn_blocking(move || {
        repeat(&file, runs, start).expect("SQL that fits the history's tables");
        written(&file).expect("a disk");
    });
    repeating.await.expect("no panic");
}

fn repeat(file: &Path, runs: u32, start: SystemTime) -> rusqlite::Result<()> {
    let mut connection = Connection::open(file)?;
    // Without a log a page is written once. A crash would leave half a database, which the test then discards.
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536; PRAGMA foreign_keys = OFF;",
    )?;
    let transaction = connection.transaction()?;
    {
        let columns = others(&transaction, "run", &["seq", "id"])?;
        let mut rows = transaction.prepare(&format!(
            "INSERT INTO run (seq, id, {columns}) SELECT ?1, ?2, {columns} FROM run WHERE seq = ?3"
        ))?;
        let columns = others(&transaction, "body", &["seq"])?;
        let mut bodies = transaction
            .prepare(&format!("INSERT INTO body (seq, {columns}) SELECT ?1, {columns} FROM body WHERE seq = ?2"))?;
        let mut words = transaction.prepare(
            "INSERT INTO search (rowid, words) SELECT ?1, coalesce(label, '') || char(10) || client || char(10) || \
             CAST(code AS TEXT) || char(10) || CAST(stdout AS TEXT) FROM run JOIN body USING (seq) WHERE seq = ?1",
        )?;
        for number in MODELS..runs {
            let (at, model) = (start + STEP * number, seq(start + STEP * (number % MODELS)));
            rows.execute(params![seq(at), id(at).to_string(), model])?;
            bodies.execute([seq(at), model])?;
            words.execute([seq(at)])?;
        }
        transaction.execute("UPDATE total SET (runs, bytes) = (SELECT count(*), sum(bytes) FROM run)", [])?;
    }
    transaction.commit()?;
    settle(&connection)?;
    connection.execute_batch("PRAGMA journal_mode = WAL")?;
    connection.close().map_err(|(_, error)| error)
}

/// Waits for the disk, so that this wait is in no measurement.
fn written(file: &Path) -> std::io::Result<()> {
    std::fs::File::open(file)?.sync_all()
}

/// What the history does in quiet moments: it merges the index of words until there is nothing left to merge.
fn settle(connection: &Connection) -> rusqlite::Result<()> {
    let mut merge = connection.prepare("INSERT INTO search (search, rank) VALUES ('merge', 4096)")?;
    loop {
        let before = connection.total_changes();
        merge.execute([])?;
        // The statement itself is one change.
        if connection.total_changes() - before < 2 {
            return Ok(());
        }
    }
}

/// All columns of a table but these.
fn others(connection: &Connection, table: &str, without: &[&str]) -> rusqlite::Result<String> {
    let mut names = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = names.query_map([table], |found| found.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    Ok(names.into_iter().filter(|name| !without.contains(&name.as_str())).collect::<Vec<_>>().join(", "))
}

fn seq(at: SystemTime) -> i64 {
    i64::try_from(to_millis(at) << TIE_BITS).expect("a time before 2248")
}
