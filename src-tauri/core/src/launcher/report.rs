//! Reads a container's standard output from its first byte to the end of its tar.

use std::time::Duration;

use bytes::Bytes;

use super::archive::{Archive, Harvest};
use super::marks::Splitter;
use super::{Nonce, OUT_DIR};

/// Longest line of PID 1 after its mark: a word and four numbers.
const MAX_LINE: usize = 128;
/// Names in the working folder that are kept for `left_behind`.
const MAX_LEFT_BEHIND: usize = 100;
/// No file system has longer ones; whoever sends one forged the list.
const MAX_NAME: usize = 255;
/// Bytes of all names in the working folder; the launcher sends at most 600 of at most 255.
const MAX_NAMES: usize = 600 * 256;

/// Standard output, told apart.
#[derive(Debug)]
pub struct Report {
    mark: Vec<u8>,
    state: State,
    /// The unfinished line or name.
    partial: Vec<u8>,
    names_read: usize,
    ending: Option<Ending>,
    names: Vec<String>,
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

/// What PID 1 says of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub exit_code: u8,
    /// None where the kernel does not tell.
    pub peak_bytes: Option<u64>,
    pub oom_kills: u32,
    pub cpu: Duration,
}

/// What a push brought about, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The program is running now.
    Started,
    /// The files did not fit in, or the image has no working `dd` or `tar`.
    UnpackFailed,
    /// The program wrote this.
    Output(Bytes),
    /// The program is over; its files follow, if there are any.
    Ended,
    /// All is in.
    Complete,
    /// What came cannot come from the launcher.
    Broken(&'static str),
}

impl Report {
    pub fn new(nonce: &Nonce, file_bytes: u64) -> Self {
        Self {
            mark: nonce.mark(),
            state: State::Opening,
            partial: Vec::new(),
            names_read: 0,
            ending: None,
            names: Vec::new(),
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

    /// The stream is over. What was held back as a possible mark is the program's.
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

    /// Names beside the program and the files; the caller knows which of them it put there itself.
    pub fn into_parts(self) -> (Vec<String>, Harvest) {
        (self.names, self.archive.finish())
    }

    fn read_opening(&mut self, bytes: Bytes, steps: &mut Vec<Step>) -> Bytes {
        let Some((line, rest)) = self.read_until(b'\n', MAX_LINE, bytes, steps) else { return Bytes::new() };
        match line.strip_prefix(self.mark.as_slice()) {
            Some(b" start") => {
                self.state = State::Program(Box::new(Splitter::new(&self.mark)));
                steps.push(Step::Started);
            }
            Some(b" unpack") => {
                self.state = State::Broken;
                steps.push(Step::UnpackFailed);
            }
            _ => self.fail("its first line", steps),
        }
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
        let before = bytes.len();
        let Some((name, rest)) = self.read_until(0, MAX_NAMES, bytes, steps) else { return Bytes::new() };
        self.names_read += before - rest.len();
        if name.is_empty() {
            self.state = State::Choice;
        } else if self.names_read > MAX_NAMES {
            self.fail("its list of names", steps);
        } else if name != OUT_DIR.as_bytes() && name.len() <= MAX_NAME && self.names.len() < MAX_LEFT_BEHIND {
            self.names.push(String::from_utf8_lossy(&name).into_owned());
        }
        rest
    }

    /// Whether there are files.
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

    /// Takes bytes up to `end`, across pushes; fails where they pass `most`.
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
    /// ` end EXIT PEAK OOM_KILLS CPU_NANOS`; a peak of 0 is unknown.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.strip_prefix(" end ")?;
        let mut words = line.split(' ');
        let exit_code = words.next()?.parse().ok()?;
        let peak: u64 = words.next()?.parse().ok()?;
        let oom_kills = words.next()?.parse().ok()?;
        let nanos: i64 = words.next()?.parse().ok()?;
        if words.next().is_some() {
            return None;
        }
        let cpu = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        let peak_bytes = (peak > 0).then_some(peak);
        Some(Self { exit_code, peak_bytes, oom_kills, cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce() -> Nonce {
        Nonce("0123abcd".into())
    }

    fn stream() -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_mode(0o644);
        tar.append_data(&mut header, "sandbox/out/f", &b"hi"[..]).unwrap();
        let mut stream =
            b"\x1e0123abcd start\nout\n\x1e0123abc\x1e0123abcd end 3 4096 1 7000\nmain.py\0left\0out\0\0tar\0".to_vec();
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
            assert_eq!(steps, [Step::Started, Step::Ended, Step::Complete]);
            let ending = Ending { exit_code: 3, peak_bytes: Some(4096), oom_kills: 1, cpu: Duration::from_nanos(7000) };
            assert_eq!(report.ending(), Some(ending));
            let (names, harvest) = report.into_parts();
            assert_eq!(names, ["main.py", "left"]);
            assert_eq!(harvest.files.len(), 1);
            assert_eq!(harvest.files[0].bytes, "hi");
        }
    }

    #[test]
    fn an_empty_out_needs_no_tar() {
        let stream = b"\x1e0123abcd start\n\x1e0123abcd end 0 0 0 5\nmain.py\0out\0\0none\0";
        let mut report = Report::new(&nonce(), 1 << 20);
        let (_, steps) = read(&mut report, stream, 3);
        assert_eq!(steps, [Step::Started, Step::Ended, Step::Complete]);
        assert_eq!(report.into_parts(), (vec!["main.py".to_owned()], Harvest::default()));
    }

    #[test]
    fn what_cannot_come_from_the_launcher_breaks_the_report() {
        let endless = vec![b'x'; MAX_LINE + 1];
        for (stream, fault) in [
            (&b"sh: not found\n"[..], "its first line"),
            (&endless, "a line that does not end"),
            (b"\x1e0123abcd start\n\x1e0123abcd end 300 0 0 0\n", "its trailer"),
            (b"\x1e0123abcd start\n\x1e0123abcd end 0 0 0 0 0\n", "its trailer"),
            (b"\x1e0123abcd start\n\x1e0123abcd end 0 0 0 0\n\0zip\0", "its word on files"),
            (b"\x1e0123abcd start\n\x1e0123abcd\n", "its trailer"),
        ] {
            let (_, steps) = read(&mut Report::new(&nonce(), 1 << 20), stream, 5);
            assert_eq!(steps.last(), Some(&Step::Broken(fault)));
        }
    }

    #[test]
    fn an_endless_list_of_names_is_cut_off() {
        let mut stream = b"\x1e0123abcd start\n\x1e0123abcd end 0 0 0 0\n".to_vec();
        for _ in 0..100_000 {
            stream.extend_from_slice(b"name\0");
        }
        let mut report = Report::new(&nonce(), 1 << 20);
        let (_, steps) = read(&mut report, &stream, 4096);
        assert_eq!(steps.last(), Some(&Step::Broken("its list of names")));
        assert_eq!(report.into_parts().0.len(), MAX_LEFT_BEHIND);
    }

    #[test]
    fn a_program_that_dies_with_its_launcher_keeps_its_last_bytes() {
        let mut report = Report::new(&nonce(), 1 << 20);
        let (output, _) = read(&mut report, b"\x1e0123abcd start\nlast\x1e01", 100);
        assert_eq!(output, b"last");
        let mut steps = Vec::new();
        report.finish(&mut steps);
        assert_eq!(steps, [Step::Output("\x1e01".into())]);
        assert_eq!(report.ending(), None);
    }
}
