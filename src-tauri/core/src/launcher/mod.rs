//! The protocol between the service and PID 1 of a container, over one attached stream; no I/O of its own.
//!
//! In, on the container's standard input: the header line `SIZE NONCE SECONDS LINES FEED`; the program itself, where it is
//! short, in that many lines; a tar of `SIZE` bytes with the files, and with the program where it came in no lines; the
//! program's stdin. Out, on its standard output: `MARK start`, what the program wrote, `MARK end EXIT PEAK OOM_KILLS
//! CPU_NANOS`, the names in the working folder (each ended by NUL, the list by an empty one), `none` or `tar` and a NUL, and
//! after `tar` a tar of `out/`. On its standard error: what the program wrote, then `MARK`. A `MARK` is the byte 0x1E and the
//! nonce of this run.
//!
//! A warm container is sent [`PRELOAD`] ahead of all that, and says [`READY`] once its interpreter has come as far as
//! opening the program's file. That file is a pipe until then, and the interpreter reads the program from it, unless
//! `FEED` is 0: then it is started anew. See [`may_be_fed`].
//!
//! The nonce guards against accidents, not against forgery: a program can read it from its parent's memory. Everything
//! after the start line is the program's word, is read in bounded memory, and decides nothing but the program's own result.

mod archive;
mod feed;
mod marks;
mod report;

use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use uuid::Uuid;

use crate::run::{InputFile, RunSpec};
use crate::time::to_millis;

use feed::Lines;

pub use archive::Harvest;
pub use feed::may_be_fed;
pub use marks::{Scan, Splitter};
pub use report::{Ending, Report, Step};

/// PID 1: `sh -c SCRIPT sandtray PROGRAM...`.
pub const SCRIPT: &str = include_str!("script.sh");

/// What the program writes below this folder is returned.
pub const OUT_DIR: &str = "out";

/// How much longer than the run's own limit PID 1 lets a program live when nobody ends it from outside.
const WATCHDOG_GRACE: Duration = Duration::from_secs(5);

/// Names one run in its own stream. Random, so that no program prints it by chance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    pub fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// What precedes each line of PID 1.
    pub fn mark(&self) -> Vec<u8> {
        let mut mark = vec![0x1e];
        mark.extend_from_slice(self.0.as_bytes());
        mark
    }

    #[cfg(any(test, feature = "fake-engine"))]
    pub fn from_header(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Asks PID 1 of a warm container to start the interpreter; it answers with [`READY`].
pub const PRELOAD: &[u8] = b"preload\n";

/// The interpreter waits for its program.
pub const READY: &[u8] = b"ready\n";

/// The first bytes that a container gets, [`PRELOAD`] aside: the header line, a short program, the tar. The program's
/// stdin follows.
pub fn opening(spec: &RunSpec, nonce: &Nonce, now: SystemTime) -> io::Result<Bytes> {
    let lines = Lines::of(&spec.code);
    let tar = pack(spec, lines.is_none(), now)?;
    let seconds = (spec.limits.wall() + WATCHDOG_GRACE).as_secs();
    let count = lines.as_ref().map_or("0".to_owned(), Lines::count);
    let feed = u8::from(feed::may_be_fed(spec));
    let mut opening = format!("{} {} {seconds} {count} {feed}\n", tar.len(), nonce.0).into_bytes();
    if let Some(lines) = lines {
        lines.append_to(&mut opening);
    }
    opening.extend_from_slice(&tar);
    Ok(opening.into())
}

/// Nothing where there is nothing to pack.
fn pack(spec: &RunSpec, with_program: bool, now: SystemTime) -> io::Result<Vec<u8>> {
    if !with_program && spec.files.is_empty() {
        return Ok(Vec::new());
    }
    let bytes: usize = spec.files.iter().map(|file| file.bytes.len() + 2048).sum();
    let mut tar = tar::Builder::new(Vec::with_capacity(bytes + spec.code.len() + 2048));
    // tar warns of files from 1970 and of files from the future.
    let seconds = to_millis(now) / 1000;
    if with_program {
        append(&mut tar, spec.language.recipe().program, &spec.code, seconds)?;
    }
    for InputFile { name, bytes } in &spec.files {
        append(&mut tar, name.as_str(), bytes, seconds)?;
    }
    tar.into_inner()
}

fn append(tar: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8], mtime: u64) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_mtime(mtime);
    tar.append_data(&mut header, name, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::name::FileName;
    use crate::run::{Overflow, RunId};
    use crate::settings::Settings;
    use std::io::Read;

    fn spec(code: &str, files: &[(&str, &str)]) -> RunSpec {
        let file = |(name, text): &(&str, &str)| InputFile {
            name: FileName::parse(name).unwrap(),
            bytes: Bytes::copy_from_slice(text.as_bytes()),
        };
        RunSpec {
            id: RunId::generate(),
            language: Language::Python,
            code: code.to_owned().into(),
            files: files.iter().map(file).collect(),
            stdin: "not in here".into(),
            limits: Settings::default().limits(),
            overflow: Overflow::Kill,
            label: None,
        }
    }

    /// The header, and what follows it.
    fn split(opening: &Bytes) -> (&str, &[u8]) {
        let newline = opening.iter().position(|byte| *byte == b'\n').unwrap();
        (std::str::from_utf8(&opening[..newline]).unwrap(), &opening[newline + 1..])
    }

    fn entries(tar: &[u8]) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in tar::Archive::new(tar).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), text));
        }
        found
    }

    #[test]
    fn a_short_program_without_files_is_a_header_and_lines() {
        let opening = opening(&spec("x = 1\nprint(x)", &[]), &Nonce("abc".into()), SystemTime::now()).unwrap();
        assert_eq!(opening, "0 abc 65 2- 1\nx = 1\nprint(x)\n");
    }

    #[test]
    fn files_follow_in_a_tar_of_the_length_that_the_header_says() {
        let long = format!("{}/x", "d".repeat(200));
        let files = [("a..b.txt", ""), (long.as_str(), "deep")];
        let opening = opening(&spec("print(1)\n", &files), &Nonce("abc".into()), SystemTime::now()).unwrap();
        let (header, rest) = split(&opening);
        let tar = rest.strip_prefix(b"print(1)\n").unwrap();
        assert_eq!(header, format!("{} abc 65 1 1", tar.len()));
        assert_eq!(entries(tar), files.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }

    #[test]
    fn a_long_program_is_the_first_in_the_tar() {
        let program = "#".repeat(5000);
        let opening = opening(&spec(&program, &[("a", "b")]), &Nonce("abc".into()), SystemTime::now()).unwrap();
        let (header, tar) = split(&opening);
        assert_eq!(header, format!("{} abc 65 0 1", tar.len()));
        assert_eq!(entries(tar), [("main.py".to_owned(), program), ("a".to_owned(), "b".to_owned())]);
    }
}
