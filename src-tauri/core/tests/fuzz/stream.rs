//! What a container sends: the launcher's lines, the program's output, the list of names and the tar behind them.

use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use sandtray_core::launcher::{Ending, Harvest, Nonce, Report, Step};

use crate::input::{bytes, choice, damage, pieces};
use crate::{each, within};

/// The cap of file bytes in these tests.
pub(crate) const FILE_BYTES: u64 = 4096;
/// Beside the stream itself: names of the working folder, names and targets of files, and what tar complained of.
const ASIDE: usize = 256 << 10;
/// Names beside the program that are kept, and how long each may be once it is text.
const MAX_NAMES: usize = 100;
const MAX_NAME: usize = 255 * 3;

#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) output: Vec<u8>,
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Option<Ending>,
    pub(crate) names: Vec<String>,
    pub(crate) harvest: Harvest,
}

/// Pushes one piece after another, and says that there are no more.
pub(crate) fn read(nonce: &Nonce, pieces: &[&[u8]]) -> Read {
    let mut report = Report::new(nonce, FILE_BYTES);
    let (mut output, mut steps) = (Vec::new(), Vec::new());
    let mut take = |new: &mut Vec<Step>| {
        for step in new.drain(..) {
            match step {
                Step::Output(bytes) => output.extend_from_slice(&bytes),
                other => steps.push(other),
            }
        }
    };
    let mut new = Vec::new();
    for piece in pieces {
        report.push(Bytes::copy_from_slice(piece), &mut new);
        take(&mut new);
    }
    report.finish(&mut new);
    take(&mut new);
    let ending = report.ending();
    let (names, harvest) = report.into_parts();
    Read { output, steps, ending, names, harvest }
}

/// The same in one piece and in many; bounded whatever it is.
pub(crate) fn read_checked(rng: &mut Rng, nonce: &Nonce, stream: &[u8]) -> Read {
    let pieces = pieces(rng, stream);
    let most = ASIDE + 2 * FILE_BYTES as usize + 4 * stream.len();
    let cut = within(most, || read(nonce, &pieces));
    assert_eq!(cut, read(nonce, &[stream]), "in one piece and in {}", pieces.len());
    assert!(cut.names.len() <= MAX_NAMES && cut.names.iter().all(|name| name.len() <= MAX_NAME));
    assert!(cut.output.len() <= stream.len());
    cut
}

/// What the launcher says before the program runs.
pub(crate) fn opening(mark: &[u8]) -> Vec<u8> {
    [mark, b" start\n"].concat()
}

/// What it says after it.
pub(crate) fn trailer(mark: &[u8], ending: &Ending, names: &[String], files: &str) -> Vec<u8> {
    let Ending { exit_code, peak_bytes, oom_kills, cpu } = ending;
    let line = format!(" end {exit_code} {} {oom_kills} {}\n", peak_bytes.unwrap_or(0), cpu.as_nanos());
    let mut stream = [mark, line.as_bytes()].concat();
    for name in names {
        stream.extend_from_slice(name.as_bytes());
        stream.push(0);
    }
    stream.extend_from_slice(format!("\0{files}\0").as_bytes());
    stream
}

fn ending(rng: &mut Rng) -> Ending {
    Ending {
        exit_code: rng.u8(..),
        peak_bytes: rng.bool().then(|| rng.u64(1..)),
        oom_kills: rng.u32(..),
        cpu: Duration::from_nanos(rng.u64(..=i64::MAX as u64)),
    }
}

/// Output that looks like a mark for as long as it can.
fn output(rng: &mut Rng, mark: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for _ in 0..rng.usize(..6) {
        match rng.u8(..3) {
            0 => output.extend_from_slice(&mark[..rng.usize(..mark.len())]),
            1 => output.extend(b" end 0 0 0 0\n"),
            _ => output.extend(bytes(rng, 200)),
        }
    }
    output
}

#[test]
fn what_the_launcher_says_is_read_as_it_was_said() {
    each("trailers, as they are", |rng| {
        let nonce = Nonce::random();
        let mark = nonce.mark();
        let mut out = output(rng, &mark);
        while memchr::memmem::find(&out, &mark).is_some() {
            out = output(rng, &mark);
        }
        // A beginning of a mark ahead of a mark is output, whatever follows it.
        let ending = ending(rng);
        let name = |rng: &mut Rng| {
            choice(rng, &["main.py", "ä", ".hidden", "a\nb", "none", "tar", "out "]).repeat(rng.usize(1..9))
        };
        let names: Vec<String> = (0..*choice(rng, &[0, 1, 2, 5, 10, 120])).map(|_| name(rng)).collect();
        let stream = [opening(&mark), out.clone(), trailer(&mark, &ending, &names, "none")].concat();
        let read = read_checked(rng, &nonce, &stream);
        let names = names.into_iter().take(MAX_NAMES).collect();
        let steps = vec![Step::Started, Step::Ended, Step::Complete];
        assert_eq!(read, Read { output: out, steps, ending: Some(ending), names, harvest: Harvest::default() });
    });
}

#[test]
fn a_damaged_stream_is_read_within_its_bounds_however_it_is_cut() {
    each("trailers, damaged", |rng| {
        let nonce = Nonce::random();
        let mark = nonce.mark();
        let names: Vec<String> = (0..rng.usize(..20)).map(|_| "n".repeat(crate::input::size(rng, 400))).collect();
        let files = *choice(rng, &["none", "tar", "zip", ""]);
        let mut stream = match rng.u8(..8) {
            0 => bytes(rng, 4096),
            _ => [opening(&mark), output(rng, &mark), trailer(&mark, &ending(rng), &names, files)].concat(),
        };
        if files == "tar" {
            stream.extend(crate::tar::archive(rng));
        }
        damage(rng, &mut stream);
        read_checked(rng, &nonce, &stream);
    });
}
