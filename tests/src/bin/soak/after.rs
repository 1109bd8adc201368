//! When all is over: whether anything was lost, and whether anything is left.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use sandtray_core::engine::LABEL_INSTANCE;
use tokio::time::{Instant, sleep};

use super::calls::{Call, End};
use super::disturb::{Book, Disturbance, Kind, World};

/// Kibibytes: the most memory that the service may ever have taken.
const MEMORY: u64 = 96 << 10;
/// Seconds after which no container may be left.
const GONE: Duration = Duration::from_secs(10);
/// What the service may leave in its folder, beside files whose names begin with `history.sqlite`.
const FILES: [&str; 7] = [
    "config/settings.json",
    "data/home-id",
    "data/service.lock",
    "data/service.pid",
    "data/history.sqlite-reserve",
    "run/agent.sock.lock",
    "run/agent.sock",
];
/// Processes that are the soak's own, and those of an engine without containers.
const PROCESSES: [&str; 5] = ["sh", "soak", "dockerd", "containerd", "docker"];
/// What an engine starts a container with and keeps it by. One that is killed may forget it; the container has ended or never began.
const KEEPERS: [&str; 2] = ["containerd-shim", "runc"];

/// Of a command line, in a report.
const MAX_LINE: usize = 100;

/// One run in the history.
struct Row {
    id: String,
    status: String,
}

/// What is left of a service that has ended.
pub(crate) async fn leftovers(world: &World) {
    let book = &world.book;
    let peak = world.service.peak();
    println!("The service took {} MB at most.", peak >> 10);
    if peak > MEMORY {
        book.note(format!("the service took {} MB, and not at most {}", peak >> 10, MEMORY >> 10));
    }
    let list = format!("docker ps -a --filter label={LABEL_INSTANCE} --format '{{{{.Names}}}} {{{{.Status}}}}'");
    let since = Instant::now();
    loop {
        match world.engine.output(&list).await.as_deref().map(str::trim) {
            Some("") => break,
            left if since.elapsed() > GONE => {
                book.note(format!("containers are left {} s after the end: {left:?}", GONE.as_secs()));
                break;
            }
            Some(_) | None => sleep(Duration::from_millis(200)).await,
        }
    }
    let killed = book.all().iter().any(|one| one.kind == Kind::Crash);
    for process in processes() {
        // One that is killed in the middle of a start may forget the container: its list, which is all that the service sees, lacks it.
        if killed && process.contained {
            println!("An engine that was killed has forgotten a container, in which is left: {}", process.what);
        } else {
            book.note(format!("a process is left: {}", process.what));
        }
    }
    for file in files(world.service.home()) {
        book.note(format!("a file is left: {}", file.display()));
    }
}

struct Process {
    what: String,
    contained: bool,
}

/// Those that should have ended: all that live in a container, and what does not belong here.
fn processes() -> Vec<Process> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.parse::<u32>().ok()
    });
    let status =
        |number: u32, file: &str| std::fs::read_to_string(format!("/proc/{number}/{file}")).unwrap_or_default();
    let mounts = |number: &str| std::fs::read_link(format!("/proc/{number}/ns/mnt")).ok();
    let ours = mounts("self");
    numbers
        .filter_map(|number| {
            let (name, line) = (status(number, "comm").trim().to_owned(), status(number, "cmdline").replace('\0', " "));
            let theirs = mounts(&number.to_string())?;
            let contained = Some(theirs) != ours;
            let keeps = KEEPERS.iter().any(|keeper| name.starts_with(keeper));
            let known = PROCESSES.contains(&name.as_str()) && !contained;
            let short: String = line.chars().take(MAX_LINE).collect();
            (!keeps && !known).then(|| Process { what: format!("{name} ({short})"), contained })
        })
        .collect()
}

fn files(home: &Path) -> Vec<PathBuf> {
    let mut left = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(home).unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !FILES.contains(&name.as_str()) && !is_history(&name) {
                left.push(path);
            }
        }
    }
    left
}

fn is_history(name: &str) -> bool {
    ["", "-wal", "-shm"].iter().any(|companion| name == format!("data/history.sqlite{companion}"))
}

/// Compares what was answered with what was written down: each call that the history has otherwise, and how.
pub(crate) fn history<'a>(
    file: &Path,
    calls: &'a [Call],
    disturbances: &[Disturbance],
    book: &Book,
) -> Vec<(&'a Call, String)> {
    let rows = match rows(file) {
        Ok(rows) => rows,
        Err(error) => {
            book.note(format!("the history cannot be read: {error}"));
            return Vec::new();
        }
    };
    println!("{} runs are in the history.", rows.values().map(Vec::len).sum::<usize>());
    let known: HashMap<&str, &Call> = calls.iter().map(|call| (call.label.as_str(), call)).collect();
    for (label, rows) in &rows {
        if !known.contains_key(label.as_str()) {
            book.note(format!("the history has a run that no client asked for: {label:?}"));
        }
        if rows.len() > 1 {
            let statuses: Vec<&str> = rows.iter().map(|row| row.status.as_str()).collect();
            book.note(format!("{label} is in the history {} times: {statuses:?}", rows.len()));
        }
    }
    let row = |call: &Call| rows.get(&call.label).and_then(|rows| rows.first());
    calls.iter().filter_map(|call| Some((call, mismatch(call, row(call), disturbances)?))).collect()
}

fn mismatch(call: &Call, row: Option<&Row>, disturbances: &[Disturbance]) -> Option<String> {
    let said = row.map_or("nothing", |row| row.status.as_str());
    match &call.end {
        End::Result { recorded: false, .. } | End::Lost | End::Silent => None,
        End::Result { run_id, status, .. } => {
            let same = row.is_some_and(|row| row.id == *run_id && row.status == *status);
            (!same).then(|| format!("answered with {status} and {run_id}, and the history has {said}"))
        }
        End::Error { code, run_id, .. } if code == "run_interrupted" => {
            let same = row.is_some_and(|row| Some(&row.id) == run_id.as_ref() && row.status == "interrupted");
            (!same).then(|| format!("answered with {code} and {run_id:?}, and the history has {said}"))
        }
        // What was refused at once is not in the history.
        End::Error { code, .. } => {
            row.filter(|row| row.status != *code).map(|_| format!("answered with {code}, and the history has {said}"))
        }
        End::Left => {
            let kinds = [Kind::Service, Kind::Disk, Kind::Engine, Kind::Crash];
            let met = |met: &&Disturbance| {
                kinds.contains(&met.kind)
                    && met.began <= call.ended + 5_000
                    && met.ended.is_none_or(|ended| ended + 10_000 >= call.sent)
            };
            let disturbed = disturbances.iter().any(|one| met(&one));
            let kept = row.is_some_and(|row| row.status != "ok" && row.status != "timeout");
            (!kept && !disturbed).then(|| format!("its client left, and the history has {said}"))
        }
    }
}

fn rows(file: &Path) -> rusqlite::Result<HashMap<String, Vec<Row>>> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = connection.prepare("SELECT label, id, status FROM run")?;
    let mut found = statement.query([])?;
    let mut rows: HashMap<String, Vec<Row>> = HashMap::new();
    while let Some(row) = found.next()? {
        let label: Option<String> = row.get(0)?;
        rows.entry(label.unwrap_or_default()).or_default().push(Row { id: row.get(1)?, status: row.get(2)? });
    }
    Ok(rows)
}
