//! Parses a container's standard output, from its first byte to the end of its tar.

use std::time::Duration;

use bytes::Bytes;

use super::archive::{Archive, Harvest};
use super::marks::Splitter;
use super::{Nonce, OUT_DIR, START_OPEN, START_SEALED, UNPACK_FAILED};
use crate::name::{MAX_COMPONENT_BYTES, MAX_DEPTH};

/// Bound on a line of PID 1 after its mark: a word and five numbers.
const MAX_LINE: usize = 128;
/// Bound on the names in the working folder that the launcher sends.
const MAX_NAMES: usize = 600;
/// Bound on one name: a sign, and a path of one component more than an input may have.
const MAX_NAME: usize = 1 + (MAX_DEPTH + 1) * (MAX_COMPONENT_BYTES + 1);
/// Bound on the bytes of names that are kept. The rest of an honest list is read and dropped.
const MAX_KEPT: usize = 128 << 10;

/// The parser of standard output.
#[derive(Debug)]
pub struct Report {
    mark: Vec<u8>,
    state: State,
    /// The unfinished line or name.
    partial: Vec<u8>,
    names_read: usize,
    /// Bytes of the names in `beside`.
    kept: usize,
    ending: Option<Ending>,
    beside: Vec<Beside>,
    archive: Archive,
}

#[derive(Debug)]
enum State {
    Opening,
    Program(Box<Splitter>),
    Trailer,
    Names,
    Choice,
    Files,
    Complete,
    Broken,
}

/// The launcher's trailer: how the program ended, and what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub exit_code: u8,
    /// `None` if the kernel does not tell.
    pub peak_bytes: Option<u64>,
    pub oom_kills: u32,
    pub cpu: Duration,
    /// How long PID 1 waited, after the program's end, for processes that the program left running.
    pub linger: Duration,
}

/// A name in the working folder after the program's end, other than `out/`: in its first level, or in a folder of the
/// input files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// Relative to the working folder.
    pub name: String,
    /// Its time differs from the time that the input files were given.
    pub written: bool,
}

/// One result of a push, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The program is running now.
    Started {
        /// Whether the program cannot read PID 1, and so does not know the nonce.
        sealed: bool,
    },
    /// The files did not fit in, or the image has no working `dd` or `tar`.
    UnpackFailed,
    /// Output of the program.
    Output(Bytes),
    /// The program is over. Its files follow, if there are any.
    Ended,
    /// The trailer and all files are in.
    Complete,
    /// These bytes cannot come from the launcher.
    Broken(&'static str),
}

impl Report {
    pub fn new(nonce: &Nonce, file_bytes: u64) -> Self {
        Self {
            mark: nonce.mark(),
            state: State::Opening,
            partial: Vec::new(),
            names_read: 0,
            kept: 0,
            ending: None,
            beside: Vec::new(),
            archive: Archive::new(file_bytes),
        }
    }

    pub fn push(&mut self, mut bytes: Bytes, steps: &mut Vec<Step>) {
        while !bytes.is_empty() {
            bytes = match &mut self.state {
                State::Opening => self.read_opening(bytes, steps),
                State::Program(splitter) => {
                    let scan = splitter.push(bytes);
                    if !scan.before.is_empty() {
                        steps.push(Step::Output(scan.before));
                    }
                    if scan.after.is_some() {
                        self.state = State::Trailer;
                    }
                    scan.after.unwrap_or_default()
                }
                State::Trailer => self.read_trailer(bytes, steps),
                State::Names => self.read_names(bytes, steps),
                State::Choice => self.read_choice(bytes, steps),
                State::Files => {
                    self.archive.push(&bytes);
                    if self.archive.is_done() {
                        self.state = State::Complete;
                        steps.push(Step::Complete);
                    }
                    Bytes::new()
                }
                State::Complete | State::Broken => Bytes::new(),
            };
        }
    }

    /// Ends the stream. Bytes held back as a possible mark are the program's.
    pub fn finish(&mut self, steps: &mut Vec<Step>) {
        if let State::Program(splitter) = &mut self.state {
            let held = splitter.finish();
            if !held.is_empty() {
                steps.push(Step::Output(held));
            }
        }
    }

    pub fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The names beside `out/`, and the files in it. The caller knows which of the names it put there itself.
    pub fn into_parts(self) -> (Vec<Beside>, Harvest) {
        (self.beside, self.archive.finish())
    }

    fn read_opening(&mut self, bytes: Bytes, steps: &mut Vec<Step>) -> Bytes {
        let Some((line, rest)) = self.read_until(b'\n', MAX_LINE, bytes, steps) else { return Bytes::new() };
        let is = |word: &[u8]| word.strip_suffix(b"\n") == Some(&line);
        if is(UNPACK_FAILED) {
            self.state = State::Broken;
            steps.push(Step::UnpackFailed);
            return rest;
        }
        let sealed = is(START_SEALED);
        if !sealed && !is(START_OPEN) {
            self.fail("its first line", steps);
            return rest;
        }
        self.state = State::Program(Box::new(Splitter::new(&self.mark)));
        steps.push(Step::Started { sealed });
        rest
    }

    fn read_trailer(&mut self, bytes: Bytes, steps: &mut Vec<Step>) -> Bytes {
        let Some((line, rest)) = self.read_until(b'\n', MAX_LINE, bytes, steps) else { return Bytes::new() };
        match Ending::parse(&line) {
            Some(ending) => {
                self.ending = Some(ending);
                self.state = State::Names;
                steps.push(Step::Ended);
            }
            None => self.fail("its trailer", steps),
        }
        rest
    }

    fn read_names(&mut self, bytes: Bytes, steps: &mut Vec<Step>) -> Bytes {
        let Some((entry, rest)) = self.read_until(0, MAX_NAME, bytes, steps) else { return Bytes::new() };
        let Some((sign, name)) = entry.split_first() else {
            self.state = State::Choice;
            return rest;
        };
        self.names_read += 1;
        if self.names_read > MAX_NAMES || !matches!(sign, b'=' | b'!') {
            self.fail("its list of names", steps);
        } else if name != OUT_DIR.as_bytes() && self.kept + name.len() <= MAX_KEPT {
            self.kept += name.len();
            let name = String::from_utf8_lossy(name).into_owned();
            self.beside.push(Beside { name, written: *sign == b'!' });
        }
        rest
    }

    /// Reads whether a tar follows.
    fn read_choice(&mut self, bytes: Bytes, steps: &mut Vec<Step>) -> Bytes {
        let Some((word, rest)) = self.read_until(0, MAX_LINE, bytes, steps) else { return Bytes::new() };
        match word.as_slice() {
            b"tar" => self.state = State::Files,
            b"none" => {
                self.archive.close();
                self.state = State::Complete;
                steps.push(Step::Complete);
            }
            _ => self.fail("its word on files", steps),
        }
        rest
    }

    /// Takes bytes up to `end`, across pushes; fails if they pass `most`.
    fn read_until(
        &mut self,
        end: u8,
        most: usize,
        mut bytes: Bytes,
        steps: &mut Vec<Step>,
    ) -> Option<(Vec<u8>, Bytes)> {
        let at = memchr::memchr(end, &bytes);
        let taken = bytes.split_to(at.unwrap_or(bytes.len()));
        if self.partial.len() + taken.len() > most {
            self.fail("a line that does not end", steps);
            return None;
        }
        self.partial.extend_from_slice(&taken);
        at?;
        Some((std::mem::take(&mut self.partial), bytes.slice(1..)))
    }

    fn fail(&mut self, what: &'static str, steps: &mut Vec<Step>) {
        self.state = State::Broken;
        steps.push(Step::Broken(what));
    }
}

impl Ending {
    /// Parses ` end EXIT PEAK OOM_KILLS CPU_NANOS LINGER`. `LINGER` is in hundredths of a second; a peak of 0 is
    /// unknown.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_prefix(" end ")?;
        let mut words = line.split(' ');
        let exit_code = words.next()?.parse().ok()?;
        let peak: u64 = words.next()?.parse().ok()?;
        let oom_kills = words.next()?.parse().ok()?;
        let nanos: i64 = words.next()?.parse().ok()?;
        let linger: u16 = words.next()?.parse().ok()?;
        if words.next().is_some() {
            return None;
        }
        let cpu = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        let peak_bytes = (peak > 0).then_some(peak);
        let linger = Duration::from_millis(u64::from(linger) * 10);
        Some(Self { exit_code, peak_bytes, oom_kills, cpu, linger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce() -> Nonce {
        Nonce("0123abcd".into())
    }

    fn beside(name: &str, written: bool) -> Beside {
        Beside { name: name.to_owned(), written }
    }

    fn stream() -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        tar.append_data(&mut header, "sandbox/out/f", &b"hi"[..]).unwrap();
        let mut stream =
            b"\x1estart sealed\nout\n\x1e0123abc\x1e0123abcd end 3 4096 1 7000 3\n=main.py\0!d/left\0=out\0\0tar\0"
                .to_vec();
        stream.extend(tar.into_inner().unwrap());
        stream
    }

    fn read(report: &mut Report, stream: &[u8], piece: usize) -> (Vec<u8>, Vec<Step>) {
        let (mut output, mut others) = (Vec::new(), Vec::new());
        for piece in stream.chunks(piece) {
            let mut steps = Vec::new();
            report.push(Bytes::copy_from_slice(piece), &mut steps);
            for step in steps {
                if let Step::Output(bytes) = step {
                    output.extend_from_slice(&bytes);
                } else {
                    others.push(step);
                }
            }
        }
        (output, others)
    }

    #[test]
    fn a_whole_stream_is_read_in_pieces_of_any_size() {
        for piece in [1, 2, 3, 7, 511, 512, 100_000] {
            let mut report = Report::new(&nonce(), 1 << 20);
            let (output, steps) = read(&mut report, &stream(), piece);
            assert_eq!(output, b"out\n\x1e0123abc");
            assert_eq!(steps, [Step::Started { sealed: true }, Step::Ended, Step::Complete]);
            let ending = Ending {
                exit_code: 3,
                peak_bytes: Some(4096),
                oom_kills: 1,
                cpu: Duration::from_nanos(7000),
                linger: Duration::from_millis(30),
            };
            assert_eq!(report.ending(), Some(ending));
            let (names, harvest) = report.into_parts();
            assert_eq!(names, [beside("main.py", false), beside("d/left", true)]);
            assert_eq!(harvest.files.len(), 1);
            assert_eq!(harvest.files[0].bytes, "hi");
        }
    }

    #[test]
    fn an_empty_out_needs_no_tar() {
        let stream = b"\x1estart open\n\x1e0123abcd end 0 0 0 5 0\n=main.py\0=out\0\0none\0";
        let mut report = Report::new(&nonce(), 1 << 20);
        let (_, steps) = read(&mut report, stream, 3);
        assert_eq!(steps, [Step::Started { sealed: false }, Step::Ended, Step::Complete]);
        assert_eq!(report.into_parts(), (vec![beside("main.py", false)], Harvest::default()));
    }

    #[test]
    fn what_cannot_come_from_the_launcher_breaks_the_report() {
        let endless = vec![b'x'; MAX_LINE + 1];
        for (stream, fault) in [
            (&b"sh: not found\n"[..], "its first line"),
            (&endless, "a line that does not end"),
            (b"\x1e0123abcd start\n", "its first line"),
            (b"\x1estart half\n", "its first line"),
            (b"\x1estart sealed\n\x1e0123abcd end 300 0 0 0 0\n", "its trailer"),
            (b"\x1estart sealed\n\x1e0123abcd end 0 0 0 0\n", "its trailer"),
            (b"\x1estart sealed\n\x1e0123abcd end 0 0 0 0 0 0\n", "its trailer"),
            (b"\x1estart sealed\n\x1e0123abcd end 0 0 0 0 0\nname\0", "its list of names"),
            (b"\x1estart sealed\n\x1e0123abcd end 0 0 0 0 0\n\0zip\0", "its word on files"),
            (b"\x1estart sealed\n\x1e0123abcd\n", "its trailer"),
        ] {
            let (_, steps) = read(&mut Report::new(&nonce(), 1 << 20), stream, 5);
            assert_eq!(steps.last(), Some(&Step::Broken(fault)));
        }
    }

    fn with_names(names: &[u8], count: usize) -> (Vec<Step>, Vec<Beside>) {
        let mut stream = b"\x1estart sealed\n\x1e0123abcd end 0 0 0 0 0\n".to_vec();
        for _ in 0..count {
            stream.extend_from_slice(names);
        }
        let mut report = Report::new(&nonce(), 1 << 20);
        let (_, steps) = read(&mut report, &stream, 4096);
        (steps, report.into_parts().0)
    }

    #[test]
    fn an_endless_list_of_names_is_cut_off() {
        let (steps, names) = with_names(b"=name\0", 100_000);
        assert_eq!(steps.last(), Some(&Step::Broken("its list of names")));
        assert_eq!(names.len(), MAX_NAMES);
    }

    #[test]
    fn long_names_are_read_to_their_end_and_kept_up_to_a_bound() {
        let long = [b"=", vec![b'x'; MAX_NAME - 1].as_slice(), b"\0"].concat();
        let (steps, names) = with_names(&long, MAX_NAMES);
        assert_eq!(steps.last(), Some(&Step::Ended));
        assert_eq!(names.len(), MAX_KEPT / (MAX_NAME - 1));
        let longer = [b"=", vec![b'x'; MAX_NAME].as_slice(), b"\0"].concat();
        assert_eq!(with_names(&longer, 1).0.last(), Some(&Step::Broken("a line that does not end")));
    }

    #[test]
    fn a_program_that_dies_with_its_launcher_keeps_its_last_bytes() {
        let mut report = Report::new(&nonce(), 1 << 20);
        let (output, _) = read(&mut report, b"\x1estart sealed\nlast\x1e01", 100);
        assert_eq!(output, b"last");
        let mut steps = Vec::new();
        report.finish(&mut steps);
        assert_eq!(steps, [Step::Output("\x1e01".into())]);
        assert_eq!(report.ending(), None);
    }
}
