//! What the clients ask for: programs whose result is known before they run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A small seeded generator: the same seed asks for the same programs.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// How a call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Plain,
    /// With notifications, whose output is compared too.
    Streamed,
    /// The same, and cancelled at its first output.
    Cancelled,
    /// On a connection of its own, which closes this many milliseconds later.
    Left(u64),
}

pub(crate) struct Program {
    pub(crate) kind: &'static str,
    pub(crate) how: How,
    pub(crate) request: Value,
    pub(crate) expected: Expected,
}

/// Several at once are a batch.
pub(crate) enum Asked {
    One(Program),
    Batch(Vec<Program>),
}

pub(crate) struct Expected {
    status: &'static str,
    exit_code: i64,
    pub(crate) stdout: Text,
    stderr: &'static str,
    files: Vec<(&'static str, Vec<u8>)>,
    /// What the program takes at least and, on a busy machine, at most.
    seconds: (f64, f64),
}

pub(crate) enum Text {
    Is(String),
    /// `y` and a newline, up to the cap of a stream.
    Flood,
}

const CAP: usize = 64 << 10;
/// For a program that does next to nothing, on a machine that does much else.
const SHORT: (f64, f64) = (0.0, 15.0);
/// A program that waits to be stopped.
pub(crate) const LONG: u64 = 30;

impl Asked {
    pub(crate) fn any(dice: &mut Dice, label: &str) -> Self {
        if dice.below(12) == 0 {
            let item = |at| labelled(plain(dice, at), &format!("{label}.{at}"));
            return Self::Batch((0..4).map(item).collect());
        }
        let pick = dice.below(11);
        Self::One(labelled(one(dice, pick), label))
    }

    /// One of those that take no time.
    pub(crate) fn short(dice: &mut Dice, label: &str) -> Self {
        Self::One(labelled(prints(dice), label))
    }
}

fn labelled(mut program: Program, label: &str) -> Program {
    program.request["label"] = json!(label);
    program
}

fn one(dice: &mut Dice, pick: u64) -> Program {
    match pick {
        0..6 => plain(dice, pick),
        6 => streams(),
        7 => waits_to_be(How::Cancelled, "cancelled"),
        8 => waits_to_be(How::Left(100 + dice.below(1500)), "left"),
        9 => times_out(),
        _ if dice.below(2) == 0 => eats_memory(),
        _ => floods(),
    }
}

fn plain(dice: &mut Dice, pick: u64) -> Program {
    match pick {
        0 | 1 => prints(dice),
        2 => sleeps(),
        3 => exits_with_three(),
        4 => echoes(dice),
        _ => carries_files(dice),
    }
}

impl Expected {
    fn ok(stdout: String) -> Self {
        Self { status: "ok", exit_code: 0, stdout: Text::Is(stdout), stderr: "", files: Vec::new(), seconds: SHORT }
    }

    fn killed(status: &'static str, stdout: Text) -> Self {
        Self { status, exit_code: 137, stdout, stderr: "", files: Vec::new(), seconds: SHORT }
    }

    /// What is wrong with a result; none if it is right.
    pub(crate) fn faults(&self, result: &Value) -> Option<String> {
        let mut faults = Vec::new();
        if result["status"] != self.status {
            faults.push(format!("status {} and not {}", result["status"], self.status));
        }
        if result["exit_code"] != self.exit_code {
            faults.push(format!("exit code {} and not {}", result["exit_code"], self.exit_code));
        }
        let stdout = result["stdout"].as_str().unwrap_or_default();
        match &self.stdout {
            Text::Is(text) if stdout == text => {}
            Text::Flood if stdout.len() == CAP && stdout.as_bytes().chunks(2).all(|piece| piece == b"y\n") => {}
            Text::Is(_) | Text::Flood => {
                faults.push(format!("stdout of {} bytes is not what was printed", stdout.len()))
            }
        }
        if result["stderr"] != self.stderr {
            faults.push(format!("stderr {} and not {:?}", result["stderr"], self.stderr));
        }
        let files = result["files"].as_object().cloned().unwrap_or_default();
        if files.len() != self.files.len() || self.files.iter().any(|(name, bytes)| content(&files[*name]) != *bytes) {
            faults.push(format!("the files {:?} are not those that were written", files.keys()));
        }
        let seconds = result["seconds"].as_f64().unwrap_or(-1.0);
        if seconds < self.seconds.0 || seconds > self.seconds.1 {
            faults.push(format!("{seconds} s, and not {:?}", self.seconds));
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// Whether output that was cut off is the beginning of the program's.
    pub(crate) fn begins_with(&self, stdout: &str) -> bool {
        match &self.stdout {
            Text::Is(text) => text.starts_with(stdout),
            Text::Flood => stdout.as_bytes().chunks(2).all(|piece| b"y\n".starts_with(piece)),
        }
    }

    /// The longest that it may take by itself.
    pub(crate) fn longest(&self) -> f64 {
        self.seconds.1
    }
}

fn content(value: &Value) -> Vec<u8> {
    match value.as_str() {
        Some(text) => text.as_bytes().to_vec(),
        None => STANDARD.decode(value["base64"].as_str().unwrap_or_default()).unwrap_or_default(),
    }
}

fn program(kind: &'static str, request: Value, expected: Expected) -> Program {
    Program { kind, how: How::Plain, request, expected }
}

fn prints(dice: &mut Dice) -> Program {
    let word = format!("{:016x}", dice.next());
    let (language, code) = match dice.below(8) {
        0..4 => ("shell", format!("echo {word}")),
        4..7 => ("python", format!("print('{word}')")),
        _ => ("javascript", format!("console.log('{word}')")),
    };
    program("print", json!({ "language": language, "code": code }), Expected::ok(format!("{word}\n")))
}

fn sleeps() -> Program {
    let code = "import time\nfor i in range(4):\n    print(i, flush=True)\n    time.sleep(0.5)";
    let expected = Expected { seconds: (1.9, 15.0), ..Expected::ok("0\n1\n2\n3\n".into()) };
    program("sleep", json!({ "language": "python", "code": code }), expected)
}

fn streams() -> Program {
    let code = "for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done";
    let lines = (1..=5).map(|line| format!("line {line}\n")).collect();
    let expected = Expected { seconds: (0.9, 15.0), ..Expected::ok(lines) };
    let request = json!({ "language": "shell", "code": code, "stream": true });
    Program { how: How::Streamed, ..program("stream", request, expected) }
}

fn exits_with_three() -> Program {
    let request = json!({ "language": "shell", "code": "echo out; echo err >&2; exit 3" });
    let expected = Expected { status: "failed", exit_code: 3, stderr: "err\n", ..Expected::ok("out\n".into()) };
    program("fail", request, expected)
}

fn echoes(dice: &mut Dice) -> Program {
    let text = STANDARD.encode(dice.bytes(15_000));
    let expected = Expected::ok(text.clone());
    program("stdin", json!({ "language": "shell", "code": "cat", "stdin": text }), expected)
}

fn carries_files(dice: &mut Dice) -> Program {
    let (bytes, text) = (dice.bytes(20_000), format!("{:x} é\n", dice.next()).repeat(50));
    let code = "
import pathlib
data = pathlib.Path('in/data.bin').read_bytes()
pathlib.Path('out/data.bin').write_bytes(data[::-1])
pathlib.Path('out/text.txt').write_text(pathlib.Path('text.txt').read_text())
print(len(data))";
    let files = json!({ "in/data.bin": { "base64": STANDARD.encode(&bytes) }, "text.txt": text });
    let reversed = bytes.into_iter().rev().collect();
    let files_out = vec![("data.bin", reversed), ("text.txt", text.into_bytes())];
    let expected = Expected { files: files_out, ..Expected::ok("20000\n".into()) };
    program("files", json!({ "language": "python", "code": code, "files": files }), expected)
}

fn times_out() -> Program {
    let request = json!({
        "language": "shell", "code": format!("echo before; sleep {LONG}"), "limits": { "seconds": 1 }
    });
    let expected = Expected { seconds: (1.0, 5.0), ..Expected::killed("timeout", Text::Is("before\n".into())) };
    program("timeout", request, expected)
}

fn eats_memory() -> Program {
    let code = "print('before', flush=True)\nkept = []\nwhile True: kept.append(bytearray(1 << 20))";
    let request = json!({ "language": "python", "code": code, "limits": { "memory_mb": 64 } });
    program("memory", request, Expected::killed("out_of_memory", Text::Is("before\n".into())))
}

fn floods() -> Program {
    program("flood", json!({ "language": "shell", "code": "yes" }), Expected::killed("output_limit", Text::Flood))
}

fn waits_to_be(how: How, kind: &'static str) -> Program {
    let request = json!({ "language": "shell", "code": format!("echo started; sleep {LONG}"), "stream": true });
    let expected = Expected::killed("cancelled", Text::Is("started\n".into()));
    Program { how, ..program(kind, request, expected) }
}
