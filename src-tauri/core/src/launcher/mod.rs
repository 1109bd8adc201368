//! The protocol between the service and PID 1 of a container, over one attached stream; no I/O of its own.
//!
//! In, on the container's standard input: the [`Header`] line, a tar of the program and its files, the program's stdin.
//! Out, on its standard output: `MARK start`, what the program wrote, `MARK end EXIT PEAK OOM_KILLS CPU_NANOS`, the names
//! in the working folder (each ended by NUL, the list by an empty one), and a tar of `out/`. On its standard error: what
//! the program wrote, then `MARK`. A `MARK` is the byte 0x1E and the nonce of this run.
//!
//! The nonce guards against accidents, not against forgery: a program can read it from its parent's memory. Everything
//! after the start line is the program's word, is read in bounded memory, and decides nothing but the program's own result.

mod archive;
mod marks;
mod report;

use std::io;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use uuid::Uuid;

use crate::run::{InputFile, RunSpec};
use crate::time::to_millis;

pub use archive::Harvest;
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

/// The first bytes that a container gets: the header line and the tar. The program's stdin follows.
pub fn opening(spec: &RunSpec, nonce: &Nonce, now: SystemTime) -> io::Result<Bytes> {
    let tar = pack(spec, now)?;
    let seconds = (spec.limits.wall() + WATCHDOG_GRACE).as_secs();
    let mut opening = format!("{} {} {seconds}\n", tar.len(), nonce.0).into_bytes();
    opening.extend_from_slice(&tar);
    Ok(opening.into())
}

fn pack(spec: &RunSpec, now: SystemTime) -> io::Result<Vec<u8>> {
    let bytes: usize = spec.files.iter().map(|file| file.bytes.len() + 2048).sum();
    let mut tar = tar::Builder::new(Vec::with_capacity(bytes + spec.code.len() + 2048));
    // tar warns of files from 1970 and of files from the future.
    let seconds = to_millis(now) / 1000;
    append(&mut tar, spec.language.recipe().program, &spec.code, seconds)?;
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

    #[test]
    fn the_opening_is_a_header_line_and_a_tar_of_that_length() {
        let long = format!("{}/x", "d".repeat(200));
        let spec = RunSpec {
            id: RunId::generate(),
            language: Language::Python,
            code: "print(1)".into(),
            files: vec![
                InputFile { name: FileName::parse("a..b.txt").unwrap(), bytes: Bytes::new() },
                InputFile { name: FileName::parse(&long).unwrap(), bytes: "deep".into() },
            ],
            stdin: "not in here".into(),
            limits: Settings::default().limits(),
            overflow: Overflow::Kill,
            label: None,
        };
        let opening = opening(&spec, &Nonce("abc".into()), SystemTime::now()).unwrap();
        let newline = opening.iter().position(|byte| *byte == b'\n').unwrap();
        let header = std::str::from_utf8(&opening[..newline]).unwrap();
        let tar = &opening[newline + 1..];
        assert_eq!(header, format!("{} abc 65", tar.len()));

        let mut found = Vec::new();
        for entry in tar::Archive::new(tar).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), text));
        }
        let expected = [("main.py", "print(1)"), ("a..b.txt", ""), (&long, "deep")];
        assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
