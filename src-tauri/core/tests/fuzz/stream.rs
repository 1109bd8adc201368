//! The stream from a container: the launcher's lines, the program's output, the list of names and the tar after them.

use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use sandtray_core::launcher::{Beside, Ending, Harvest, Nonce, Report, START_OPEN, START_SEALED, Step};

use crate::input::{bytes, choice, damage, pieces};
use crate::{each, within};

/// The cap of file bytes in these tests.
pub(crate) const FILE_BYTES: u64 = 4096;
/// Bytes beside the stream itself: names of the working folder, names and targets of files, and tar's messages.
const ASIDE: usize = 256 << 10;
/// Names beside the program: how many there may be, and their bytes, each of which may become three in text.
const MAX_NAMES: usize = 600;
const MAX_NAME_BYTES: usize = (128 << 10) * 3;

#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) output: Vec<u8>,
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Option<Ending>,
    pub(crate) beside: Vec<Beside>,
    pub(crate) harvest: Harvest,
}

/// Pushes the pieces one by one, and then the end.
pub(crate) fn read(nonce: &Nonce, pieces: &[&[u8]]) -> Read {
    let mut report = Report::new(nonce, FILE_BYTES);
    let (mut output, mut steps) = (Vec::new(), Vec::new());
    let mut take = |new: &mut Vec<Step>| {
        for step in new.drain(..) {
            if let Step::Output(bytes) = step {
                output.extend_from_slice(&bytes);
            } else {
                steps.push(step);
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
    let (beside, harvest) = report.into_parts();
    Read { output, steps, ending, beside, harvest }
}

/// Reads it in one piece and in many: the results are equal, and bounded.
pub(crate) fn read_checked(rng: &mut Rng, nonce: &Nonce, stream: &[u8]) -> Read {
    let pieces = pieces(rng, stream);
    let most = ASIDE + 2 * FILE_BYTES as usize + 4 * stream.len();
    let cut = within(most, || read(nonce, &pieces));
    assert_eq!(cut, read(nonce, &[stream]), "in one piece and in {}", pieces.len());
    assert!(cut.beside.len() <= MAX_NAMES);
    assert!(cut.beside.iter().map(|beside| beside.name.len()).sum::<usize>() <= MAX_NAME_BYTES);
    assert!(cut.output.len() <= stream.len());
    cut
}

/// The launcher's lines after the program's end.
pub(crate) fn trailer(mark: &[u8], ending: &Ending, beside: &[Beside], files: &str) -> Vec<u8> {
    let Ending { exit_code, peak_bytes, oom_kills, cpu, linger } = ending;
    let (peak, linger) = (peak_bytes.unwrap_or(0), linger.as_millis() / 10);
    let line = format!(" end {exit_code} {peak} {oom_kills} {} {linger}\n", cpu.as_nanos());
    let mut stream = [mark, line.as_bytes()].concat();
    for Beside { name, written } in beside {
        stream.push(if *written { b'!' } else { b'=' });
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
        linger: Duration::from_millis(rng.u64(..100) * 10),
    }
}

/// Output that looks like a mark for as long as possible.
fn output(rng: &mut Rng, mark: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for _ in 0..rng.usize(..6) {
        match rng.u8(..3) {
            0 => output.extend_from_slice(&mark[..rng.usize(..mark.len())]),
            1 => output.extend(b" end 0 0 0 0 0\n"),
            _ => output.extend(bytes(rng, 200)),
        }
    }
    output
}

#[test]
fn the_launchers_words_are_read_back() {
    each("trailers, as they are", |rng| {
        let nonce = Nonce::random();
        let mark = nonce.mark();
        let mut out = output(rng, &mark);
        while memchr::memmem::find(&out, &mark).is_some() {
            out = output(rng, &mark);
        }
        // The beginning of a mark ahead of a mark is output, whatever follows.
        let (ending, sealed) = (ending(rng), rng.bool());
        let name = |rng: &mut Rng| {
            choice(rng, &["main.py", "ä", ".hidden", "a\nb", "none", "tar", "out "]).repeat(rng.usize(1..9))
        };
        let count = *choice(rng, &[0, 1, 2, 5, 10, 120]);
        let beside: Vec<Beside> = (0..count).map(|_| Beside { name: name(rng), written: rng.bool() }).collect();
        let start = if sealed { START_SEALED } else { START_OPEN };
        let stream = [start, &out, &trailer(&mark, &ending, &beside, "none")].concat();
        let read = read_checked(rng, &nonce, &stream);
        let steps = vec![Step::Started { sealed }, Step::Ended, Step::Complete];
        assert_eq!(read, Read { output: out, steps, ending: Some(ending), beside, harvest: Harvest::default() });
    });
}

#[test]
fn a_damaged_stream_is_read_within_its_bounds_however_it_is_cut() {
    each("trailers, damaged", |rng| {
        let nonce = Nonce::random();
        let mark = nonce.mark();
        let name = |rng: &mut Rng| "n".repeat(crate::input::size(rng, 5000));
        let count = *choice(rng, &[0, 1, 3, 20]);
        let beside: Vec<Beside> = (0..count).map(|_| Beside { name: name(rng), written: rng.bool() }).collect();
        let files = *choice(rng, &["none", "tar", "zip", ""]);
        let mut stream = match rng.u8(..8) {
            0 => bytes(rng, 4096),
            _ => {
                let start = *choice(rng, &[START_SEALED, START_OPEN, b"\x1eunpack\n"]);
                [start, &output(rng, &mark), &trailer(&mark, &ending(rng), &beside, files)].concat()
            }
        };
        if files == "tar" {
            stream.extend(crate::tar::archive(rng));
        }
        damage(rng, &mut stream);
        read_checked(rng, &nonce, &stream);
    });
}
