//! Converts a row of `run` to and from its columns. Reading is lenient: unknown words are kept as they are, and invalid
//! UTF-8 is replaced with U+FFFD.

use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, named_params};
use serde::{Deserialize, Serialize};

use super::record::{Body, FileFigure, FileIn, RunRow, StreamFigure};
use super::store::{signed, time_of, unsigned};
use crate::run::{Limits, Overflow, RunId, SkippedFile};

/// The columns, in the order in which [`read`] takes them.
pub(super) const COLUMNS: &str = "run.seq, run.id, run.client, run.client_pid, run.client_program, run.language, \
    run.label, run.status, run.error, run.exit_code, run.wall_us, run.queued_us, run.memory_bytes, run.cpu_us, \
    run.oom_kills, run.code_bytes, run.code_sha256, run.stdin_bytes, run.stdout_produced, run.stdout_returned, \
    run.stderr_produced, run.stderr_returned, run.files_in, run.files_in_bytes, run.files_out, run.files_out_bytes, \
    run.skipped_files, run.image, run.limits, run.ended_by, run.title, run.overflow, \
    run.given_up";

const INSERT: &str = "INSERT INTO run (seq, id, client, client_pid, client_program, language, label, status, error, \
    exit_code, wall_us, queued_us, memory_bytes, cpu_us, oom_kills, code_bytes, code_sha256, stdin_bytes, \
    stdout_produced, stdout_returned, stderr_produced, stderr_returned, files_in, files_in_bytes, files_out, \
    files_out_bytes, skipped_files, image, limits, bytes, ended_by, title, overflow, \
    given_up) \
    VALUES (:seq, :id, :client, :client_pid, :client_program, :language, :label, :status, :error, :exit_code, :wall_us, \
    :queued_us, :memory_bytes, :cpu_us, :oom_kills, :code_bytes, :code_sha256, :stdin_bytes, :stdout_produced, \
    :stdout_returned, :stderr_produced, :stderr_returned, :files_in, :files_in_bytes, :files_out, :files_out_bytes, \
    :skipped_files, :image, :limits, :bytes, :ended_by, :title, :overflow, :given_up)";

pub(super) fn insert(transaction: &Transaction<'_>, seq: i64, row: &RunRow, bytes: u64) -> rusqlite::Result<()> {
    transaction.prepare_cached(INSERT)?.execute(named_params! {
        ":seq": seq,
        ":id": row.run_id.to_string(),
        ":client": row.client,
        ":client_pid": row.client_pid,
        ":client_program": row.client_program,
        ":language": row.language,
        ":label": row.label,
        ":status": row.status,
        ":error": row.error,
        ":exit_code": row.exit_code,
        ":wall_us": row.wall.map(micros),
        ":queued_us": row.queued.map(micros),
        ":memory_bytes": row.memory_bytes.map(signed),
        ":cpu_us": row.cpu.map(micros),
        ":oom_kills": row.oom_kills,
        ":code_bytes": signed(row.code_bytes),
        ":code_sha256": row.code_sha256,
        ":stdin_bytes": signed(row.stdin_bytes),
        ":stdout_produced": signed(row.stdout.produced),
        ":stdout_returned": signed(row.stdout.returned),
        ":stderr_produced": signed(row.stderr.produced),
        ":stderr_returned": signed(row.stderr.returned),
        ":files_in": row.files_in.count,
        ":files_in_bytes": signed(row.files_in.bytes),
        ":files_out": row.files_out.count,
        ":files_out_bytes": signed(row.files_out.bytes),
        ":skipped_files": row.skipped_files,
        ":image": row.image,
        ":limits": serde_json::to_string(&row.limits).unwrap_or_default(),
        ":bytes": signed(bytes),
        ":ended_by": row.ended_by,
        ":title": row.title,
        ":overflow": row.overflow.map(overflow_word),
        ":given_up": row.given_up.then_some(1),
    })?;
    Ok(())
}

pub(super) fn by_id(connection: &Connection, id: RunId) -> rusqlite::Result<Option<(i64, RunRow)>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM run WHERE id = ?1"))?;
    let mut found = statement.query([id.to_string()])?;
    let Some(columns) = found.next()? else { return Ok(None) };
    let seq = columns.get(0)?;
    Ok(read(columns)?.map(|row| (seq, row)))
}

pub(super) fn by_seq(connection: &Connection, seq: i64) -> rusqlite::Result<Option<RunRow>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM run WHERE seq = ?1"))?;
    let mut found = statement.query([seq])?;
    found.next()?.map_or(Ok(None), read)
}

/// Reads a row. `None` if its id cannot be parsed.
pub(super) fn read(columns: &Row<'_>) -> rusqlite::Result<Option<RunRow>> {
    let cell = |column: usize| columns.get_ref(column);
    let string = |column| cell(column).map(text);
    let maybe_string = |column| cell(column).map(maybe_text);
    let maybe = |column| cell(column).map(maybe_number);
    let number = |column| maybe(column).map(|number| number.unwrap_or(0));
    let small = |column| number(column).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let time = |column| maybe(column).map(|micros| micros.map(Duration::from_micros));
    let stream = |column| -> rusqlite::Result<StreamFigure> {
        Ok(StreamFigure { produced: number(column)?, returned: number(column + 1)? })
    };
    let files = |column| -> rusqlite::Result<FileFigure> {
        Ok(FileFigure { count: small(column)?, bytes: number(column + 1)? })
    };
    let Ok(run_id) = string(1)?.parse() else { return Ok(None) };
    Ok(Some(RunRow {
        run_id,
        queued_at: time_of(columns.get(0)?),
        client: string(2)?,
        client_pid: maybe(3)?.and_then(|pid| u32::try_from(pid).ok()),
        client_program: maybe_string(4)?,
        language: string(5)?,
        label: maybe_string(6)?,
        status: string(7)?,
        ended_by: maybe_string(29)?,
        error: maybe_string(8)?,
        exit_code: columns.get_ref(9).map(exit_code)?,
        wall: time(10)?,
        queued: time(11)?,
        memory_bytes: maybe(12)?,
        cpu: time(13)?,
        oom_kills: small(14)?,
        code_bytes: number(15)?,
        code_sha256: string(16)?,
        stdin_bytes: number(17)?,
        stdout: stream(18)?,
        stderr: stream(20)?,
        files_in: files(22)?,
        files_out: files(24)?,
        skipped_files: small(26)?,
        image: string(27)?,
        limits: serde_json::from_str(&string(28)?).unwrap_or(NO_LIMITS),
        title: maybe_string(30)?,
        overflow: maybe_string(31)?.and_then(|word| overflow_of(&word)),
        given_up: number(32)? > 0,
    }))
}

/// Stands in for limits that cannot be read.
const NO_LIMITS: Limits =
    Limits { millis: 0, memory_bytes: 0, milli_cpus: 0, processes: 0, output_bytes: 0, file_bytes: 0 };

fn overflow_word(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Kill => "kill",
        Overflow::Truncate => "truncate",
    }
}

fn overflow_of(word: &str) -> Option<Overflow> {
    [Overflow::Kill, Overflow::Truncate].into_iter().find(|overflow| overflow_word(*overflow) == word)
}

/// The lists of a body, stored as JSON in one column: they are short and only read together.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Names {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    /// Written by the first version only, which kept no contents of inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files_in: Vec<NameIn>,
    skipped_files: Vec<SkippedFile>,
    left_behind: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct NameIn {
    name: String,
    size: u64,
}

pub(super) fn names_of(body: &Body) -> String {
    let names = Names {
        args: body.args.clone(),
        files_in: Vec::new(),
        skipped_files: body.skipped_files.clone(),
        left_behind: body.left_behind.clone(),
    };
    serde_json::to_string(&names).unwrap_or_default()
}

/// A body with only its lists filled in.
pub(super) fn names_from(value: ValueRef<'_>) -> Body {
    let Names { args, files_in, skipped_files, left_behind } = serde_json::from_str(&text(value)).unwrap_or_default();
    let files_in = files_in.into_iter().map(|NameIn { name, size }| FileIn { name, size, bytes: None }).collect();
    Body { args, files_in, skipped_files, left_behind, ..Body::default() }
}

pub(super) fn text(value: ValueRef<'_>) -> String {
    maybe_text(value).unwrap_or_default()
}

pub(super) fn maybe_text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

fn maybe_number(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Integer(number) => Some(unsigned(number)),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    }
}

fn exit_code(value: ValueRef<'_>) -> Option<i32> {
    match value {
        ValueRef::Integer(number) => i32::try_from(number).ok(),
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => None,
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}
