//! The protocol between the service and PID 1 of a container, over one attached stream. No I/O.
//!
//! Input, on the container's standard input: the header line `SIZE NONCE SECONDS LINES FEED ARGS`; the program itself
//! in `LINES` lines, if it is short; `ARGS` arguments, each as a line with its number of lines and those lines; a tar
//! of `SIZE` bytes with the files, and with the program if it was not sent in lines; the program's stdin.
//!
//! Output, on its standard output: `MARK start SEAL`, the program's output, `MARK NONCE end EXIT PEAK OOM_KILLS
//! CPU_NANOS LINGER`, the names in the working folder (each ended by NUL, the list by an empty one), `none` or `tar`
//! and a NUL, and after `tar` a tar of `out/`. On its standard error: the program's output, then `MARK NONCE`. `MARK`
//! is the byte 0x1E; no space follows it.
//!
//! A warm container is sent [`PRELOAD`] ahead of all that, and answers [`READY`] once its interpreter is about to open
//! the program's file. That file is a pipe until then. The interpreter reads the program from the pipe, unless `FEED`
//! is 0: then it is started anew. See [`may_be_fed`].
//!
//! While `SEAL` is `sealed`, only PID 1 knows the nonce until the program and all its processes are dead: the program
//! can neither read PID 1 nor write to it, and nothing that it can read holds the nonce. (The start line does not
//! either, because a program can read its own standard output.) So the bytes after the nonce come from PID 1. If `SEAL`
//! is `open`, the program may have forged everything after the start line. Either way it is read in bounded memory.

mod archive;
mod feed;
mod marks;
mod report;

use std::collections::BTreeSet;
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
pub use report::{Beside, Ending, Report, Step};

/// The first program of a container: `sh -c SEAL sandtray SCRIPT FILE PROGRAM...`. It replaces PID 1 by a copy of the
/// same shell that the program cannot read. That copy runs [`SCRIPT`].
pub const SEAL: &str = include_str!("seal.sh");

/// PID 1: `sh -c SCRIPT sandtray FILE PROGRAM...`.
pub const SCRIPT: &str = include_str!("script.sh");

/// The working folder, relative to the root.
const WORK: &str = "sandbox";

/// Files that the program writes below this folder are returned.
pub const OUT_DIR: &str = "out";

/// The watchdog's grace: PID 1 lets a program live this much longer than the run's own limit if no outside deadline
/// ends it.
const WATCHDOG_GRACE: Duration = Duration::from_secs(5);

/// The first byte of every line of PID 1.
const MARK: u8 = 0x1e;

/// A secret that the program cannot know before its end. See the module documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    pub fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }

    /// The prefix of PID 1's lines after the program's end.
    pub fn mark(&self) -> Vec<u8> {
        let mut mark = vec![MARK];
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

/// The answer of PID 1: the interpreter waits for its program.
pub const READY: &[u8] = b"ready\n";

/// The start line: the program runs now, and cannot read PID 1.
pub const START_SEALED: &[u8] = b"\x1estart sealed\n";

/// The start line if the program can read PID 1.
pub const START_OPEN: &[u8] = b"\x1estart open\n";

/// Sent instead of a start line: the program and its files could not be unpacked.
const UNPACK_FAILED: &[u8] = b"\x1eunpack\n";

/// A file that lists the folders of the input files, one a line, and has the files' time. PID 1 compares files with it
/// to tell which of them were written.
const INPUTS: &str = "tmp/.sandtray.inputs";

/// The first bytes that a container gets, apart from [`PRELOAD`]: the header line, a short program, the arguments, the
/// tar. The program's stdin follows.
///
/// # Errors
///
/// If the files cannot be packed.
pub fn opening(spec: &RunSpec, nonce: &Nonce, now: SystemTime) -> io::Result<Bytes> {
    let lines = Lines::of(&spec.code);
    let tar = pack(spec, lines.is_none(), now)?;
    let seconds = (spec.limits.wall() + WATCHDOG_GRACE).as_secs();
    let count = lines.as_ref().map_or("0".to_owned(), Lines::count);
    let feed = u8::from(feed::may_be_fed(spec));
    let (size, nonce, args) = (tar.len(), &nonce.0, spec.args.len());
    let mut opening = format!("{size} {nonce} {seconds} {count} {feed} {args}\n").into_bytes();
    if let Some(lines) = lines {
        lines.append_to(&mut opening);
    }
    for arg in &spec.args {
        let lines = Lines::of_argument(arg);
        opening.extend_from_slice(format!("{}\n", lines.count()).as_bytes());
        lines.append_to(&mut opening);
    }
    opening.extend_from_slice(&tar);
    Ok(opening.into())
}

/// Packs the files, and the program if asked to. Empty if there is nothing to pack.
fn pack(spec: &RunSpec, with_program: bool, now: SystemTime) -> io::Result<Vec<u8>> {
    if !with_program && spec.files.is_empty() {
        return Ok(Vec::new());
    }
    let bytes: usize = spec.files.iter().map(|file| file.bytes.len() + 2048).sum();
    let mut tar = tar::Builder::new(Vec::with_capacity(bytes + spec.code.len() + 4096));
    // tar warns about files from 1970 and from the future. Some shells compare whole seconds, so the time is one second
    // back: a file that the program writes at once then has another time.
    let seconds = (to_millis(now) / 1000).saturating_sub(1);
    if with_program {
        append(&mut tar, &beside(spec.language.recipe().program), &spec.code, seconds)?;
    }
    for InputFile { name, bytes } in &spec.files {
        append(&mut tar, &beside(name.as_str()), bytes, seconds)?;
    }
    append(&mut tar, INPUTS, input_folders(&spec.files).as_bytes(), seconds)?;
    tar.into_inner()
}

/// A path as PID 1 unpacks it, relative to the root.
fn beside(name: &str) -> String {
    format!("{WORK}/{name}")
}

/// One folder a line, parents first. A name with a line break is left out, so changes in that folder are not seen.
fn input_folders(files: &[InputFile]) -> String {
    let folders: BTreeSet<&str> = files
        .iter()
        .filter(|file| file.name.first_component() != OUT_DIR)
        .flat_map(|file| file.name.parents())
        .filter(|folder| !folder.contains('\n'))
        .collect();
    folders.into_iter().flat_map(|folder| [folder, "\n"]).collect()
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
            args: Vec::new(),
            files: files.iter().map(file).collect(),
            stdin: "not in here".into(),
            limits: Settings::default().limits(),
            overflow: Overflow::Kill,
            label: None,
        }
    }

    /// The header, and the bytes after it.
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
        assert_eq!(opening, "0 abc 65 2- 1 0\nx = 1\nprint(x)\n");
    }

    #[test]
    fn arguments_follow_the_program() {
        let args = ["a b", "", "two\nlines\n", "\n", "ä\n\nx"].map(str::to_owned).to_vec();
        let spec = RunSpec { args, ..spec("1\n", &[]) };
        let opening = opening(&spec, &Nonce("abc".into()), SystemTime::now()).unwrap();
        assert_eq!(opening, "0 abc 65 1 0 5\n1\n1-\na b\n0\n2\ntwo\nlines\n1\n\n3-\nä\n\nx\n");
    }

    #[test]
    fn files_follow_in_a_tar_of_the_length_that_the_header_says() {
        let long = format!("{}/x", "d".repeat(200));
        let files = [("a..b.txt", ""), (long.as_str(), "deep")];
        let opening = opening(&spec("print(1)\n", &files), &Nonce("abc".into()), SystemTime::now()).unwrap();
        let (header, rest) = split(&opening);
        let tar = rest.strip_prefix(b"print(1)\n").unwrap();
        assert_eq!(header, format!("{} abc 65 1 1 0", tar.len()));
        let mut expected = files.map(|(name, text)| (format!("sandbox/{name}"), text.to_owned())).to_vec();
        expected.push(("tmp/.sandtray.inputs".to_owned(), format!("{}\n", "d".repeat(200))));
        assert_eq!(entries(tar), expected);
    }

    #[test]
    fn each_folder_of_inputs_is_listed_once() {
        let names =
            ["a/b/c/1", "a/b/2", "a/3", "4", "x y/5", "two\nlines/6", "two\nlines/z/7", "out/8", "out/p/9", "outer/10"];
        let file = |name: &&str| InputFile { name: FileName::parse(name).unwrap(), bytes: Bytes::new() };
        let files: Vec<InputFile> = names.iter().map(file).collect();
        assert_eq!(input_folders(&files), "a\na/b\na/b/c\nouter\nx y\n");
        assert_eq!(input_folders(&[]), "");
    }

    #[test]
    fn a_long_program_is_the_first_in_the_tar() {
        let program = "#".repeat(5000);
        let opening = opening(&spec(&program, &[("a", "b")]), &Nonce("abc".into()), SystemTime::now()).unwrap();
        let (header, tar) = split(&opening);
        assert_eq!(header, format!("{} abc 65 0 1 0", tar.len()));
        let expected = [("sandbox/main.py", program.as_str()), ("sandbox/a", "b"), ("tmp/.sandtray.inputs", "")];
        assert_eq!(entries(tar), expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
