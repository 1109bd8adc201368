//! The request decoder. Encoded requests are decoded again, in any spelling of JSON. A refusal is a sentence of bounded
//! length, and costs no more memory than a few times the length of its line.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use fastrand::Rng;
use sandtray_core::error::RunError;
use sandtray_core::language::Language;
use sandtray_core::protocol::batch::BatchRequest;
use sandtray_core::protocol::error::ErrorObject;
use sandtray_core::protocol::request::{GivenFile, GivenLimits, RunRequest, cancel, hello, history};
use sandtray_core::protocol::{Message, parse};
use sandtray_core::run::Overflow;
use serde_json::value::RawValue;

use crate::input::{bytes, choice, damage};
use crate::{each, within};

/// A refusal quotes names of at most 64 characters, some of them twice, each of which JSON may write as six bytes.
const MAX_REFUSAL: usize = 4096;
/// Bytes beside a few times the line itself.
const ASIDE: usize = 64 << 10;

fn text(rng: &mut Rng) -> String {
    let some =
        ["", "x", "print(1)\n", "ä€😀", "\0\u{7f}\u{9b}\u{202e}", "\"\\/\u{8}\t", "null", "{}", "a/b", "timeout"];
    (0..rng.usize(..4)).map(|_| *choice(rng, &some)).collect()
}

fn request(rng: &mut Rng, in_batch: bool) -> RunRequest {
    let mut files: Vec<GivenFile> =
        (0..rng.usize(..4)).map(|_| GivenFile { name: text(rng), bytes: content(rng).into() }).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files.dedup_by(|one, other| one.name == other.name);
    let number = |rng: &mut Rng| rng.bool().then(|| f64::from(rng.i32(..)) / 8.0);
    RunRequest {
        language: *choice(rng, &Language::ALL),
        code: text(rng),
        args: (0..rng.usize(..4)).map(|_| text(rng)).collect(),
        files,
        stdin: content(rng).into(),
        limits: GivenLimits { seconds: number(rng), memory_mb: number(rng), cpus: number(rng) },
        overflow: *choice(rng, &[Overflow::Kill, Overflow::Truncate]),
        stream: !in_batch && rng.bool(),
        label: rng.bool().then(|| text(rng)),
    }
}

fn content(rng: &mut Rng) -> Vec<u8> {
    if rng.bool() { text(rng).into_bytes() } else { bytes(rng, 100) }
}

/// JSON has many spellings of one value.
struct Writer<'a> {
    rng: &'a mut Rng,
    out: String,
}

impl Writer<'_> {
    fn blank(&mut self) {
        let blank = *choice(self.rng, &["", "", "", " ", "\t", " \r "]);
        self.out.push_str(blank);
    }

    fn put(&mut self, text: &str) {
        self.blank();
        self.out.push_str(text);
        self.blank();
    }

    fn literal(&mut self, of: &[&str]) {
        let literal = *choice(self.rng, of);
        self.put(literal);
    }

    fn string(&mut self, text: &str) {
        self.blank();
        self.out.push('"');
        for c in text.chars() {
            if c < ' ' || matches!(c, '"' | '\\') || self.rng.u8(..8) == 0 {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    self.out.push_str(&format!("\\u{unit:04X}"));
                }
            } else {
                self.out.push(c);
            }
        }
        self.out.push('"');
        self.blank();
    }

    fn content(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.rng.bool() => self.string(text),
            _ => {
                let padded = self.rng.bool();
                let encoded = if padded { STANDARD.encode(bytes) } else { STANDARD_NO_PAD.encode(bytes) };
                self.object(vec![("base64".into(), Box::new(move |w: &mut Writer<'_>| w.string(&encoded)))]);
            }
        }
    }

    /// Fields in any order.
    fn object(&mut self, mut fields: Vec<Field>) {
        self.rng.shuffle(&mut fields);
        self.put("{");
        for (at, (name, write)) in fields.into_iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            self.string(&name);
            self.put(":");
            write(self);
        }
        self.put("}");
    }

    fn array(&mut self, items: Vec<Write>) {
        self.put("[");
        for (at, write) in items.into_iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            write(self);
        }
        self.put("]");
    }

    fn message(&mut self, method: &'static str, params: Write) {
        let fields: Vec<Field> = vec![
            ("jsonrpc".into(), Box::new(|w| w.put("\"2.0\""))),
            ("id".into(), Box::new(|w| w.put("7"))),
            ("method".into(), Box::new(move |w| w.string(method))),
            ("params".into(), params),
        ];
        self.object(fields);
    }
}

type Write = Box<dyn FnOnce(&mut Writer<'_>)>;
type Field = (String, Write);

fn of_request(request: RunRequest) -> Write {
    Box::new(move |w| {
        let mut fields: Vec<Field> = vec![
            ("language".into(), Box::new(move |w| w.string(request.language.name()))),
            ("code".into(), Box::new(move |w| w.string(&request.code))),
        ];
        // A value that equals the default is sometimes left out, and sometimes null.
        let mut optional = |w: &mut Writer<'_>, name: &str, absent: bool, write: Write| match w.rng.u8(..4) {
            0 if absent => {}
            1 if absent => fields.push((name.into(), Box::new(|w| w.put("null")))),
            _ => fields.push((name.into(), write)),
        };
        let args: Vec<Write> =
            request.args.into_iter().map(|arg| Box::new(move |w: &mut Writer<'_>| w.string(&arg)) as Write).collect();
        optional(w, "args", args.is_empty(), Box::new(move |w| w.array(args)));
        let of_files: Vec<Field> = request
            .files
            .into_iter()
            .map(|file| (file.name, Box::new(move |w: &mut Writer<'_>| w.content(&file.bytes)) as Write))
            .collect();
        // The order of files is kept, so they are not shuffled like other fields.
        optional(w, "files", of_files.is_empty(), Box::new(move |w| in_order(w, of_files)));
        optional(w, "stdin", request.stdin.is_empty(), Box::new(move |w| w.content(&request.stdin)));
        let GivenLimits { seconds, memory_mb, cpus } = request.limits;
        let limits: Vec<Field> = [("seconds", seconds), ("memory_mb", memory_mb), ("cpus", cpus)]
            .into_iter()
            .filter_map(|(name, number)| Some((name.to_owned(), number?)))
            .map(|(name, number)| (name, Box::new(move |w: &mut Writer<'_>| w.put(&number.to_string())) as Write))
            .collect();
        optional(w, "limits", limits.is_empty(), Box::new(move |w| w.object(limits)));
        let kill = request.overflow == Overflow::Kill;
        optional(w, "overflow", kill, Box::new(move |w| w.string(if kill { "kill" } else { "truncate" })));
        let stream = request.stream;
        if stream {
            optional(w, "stream", false, Box::new(|w| w.put("true")));
        }
        if let Some(label) = request.label {
            optional(w, "label", false, Box::new(move |w| w.string(&label)));
        }
        w.object(fields);
    })
}

/// Known fields, some of them twice, with wrong values.
fn strange(depth: u8) -> Write {
    Box::new(move |w| match if depth == 0 { w.rng.u8(3..8) } else { w.rng.u8(..8) } {
        0..=1 => {
            let names = [
                "language", "code", "args", "files", "stdin", "limits", "seconds", "overflow", "stream", "label",
                "base64",
            ];
            let more = ["runs", "max_parallel", "limit", "before", "name", "run_id", "request_id", "", "x"];
            let fields = (0..w.rng.usize(..40)).map(|_| {
                let of = if w.rng.bool() { &names[..] } else { &more[..] };
                ((*choice(w.rng, of)).to_owned(), strange(depth - 1))
            });
            let fields = fields.collect();
            w.object(fields);
        }
        2 => {
            let items = (0..w.rng.usize(..70)).map(|_| strange(depth - 1)).collect();
            w.array(items);
        }
        3 => w.literal(&["null", "true", "false"]),
        4 => w.literal(&["0", "-0", "1.5", "1e400", "-1e-400", "99999999999999999999999", "50"]),
        5 => w.literal(&[r#""\ud800""#, r#""\udc00\ud800""#, r#""\u0000""#, r#""%%%=""#]),
        _ => {
            let text = text(w.rng).repeat(w.rng.usize(..30));
            w.string(&text);
        }
    })
}

fn in_order(w: &mut Writer<'_>, fields: Vec<Field>) {
    w.put("{");
    for (at, (name, write)) in fields.into_iter().enumerate() {
        if at > 0 {
            w.put(",");
        }
        w.string(&name);
        w.put(":");
        write(w);
    }
    w.put("}");
}

/// Reads a line to the end with its method's decoder; returns the refusal.
fn read(line: &[u8]) -> Result<(), ErrorObject> {
    let Message { method, params, .. } = parse(line).map_err(|refusal| refusal.error)?;
    let decoded = match method.as_str() {
        "code.run" => RunRequest::decode(params).map(drop),
        "code.batch" => BatchRequest::decode(params).map(drop),
        "code.history" => history(params).map(drop),
        "code.cancel" => cancel(params).map(drop),
        "hello" => hello(params).map(drop),
        other => return Err(ErrorObject::method_not_found(other)),
    };
    decoded.map_err(ErrorObject::from)
}

fn decoded<T>(line: &str, decode: impl FnOnce(Option<&RawValue>) -> Result<T, RunError>) -> T {
    let message = parse(line.as_bytes()).unwrap_or_else(|refusal| panic!("{refusal:?}: {line}"));
    decode(message.params).unwrap_or_else(|error| panic!("{error:?}: {line}"))
}

#[test]
fn encoded_requests_are_decoded_again() {
    each("requests, as they are", |rng| {
        if rng.u8(..4) > 0 {
            let request = request(rng, false);
            let mut writer = Writer { rng, out: String::new() };
            writer.message("code.run", of_request(request.clone()));
            let line = writer.out;
            assert_eq!(within(4 * line.len() + ASIDE, || decoded(&line, RunRequest::decode)), request, "{line}");
        } else {
            let runs: Vec<RunRequest> = (0..rng.usize(1..4)).map(|_| request(rng, true)).collect();
            let items = runs.iter().cloned().map(of_request).collect();
            let mut writer = Writer { rng, out: String::new() };
            let write: Write = Box::new(move |w| w.array(items));
            writer.message("code.batch", Box::new(move |w| w.object(vec![("runs".into(), write)])));
            let line = writer.out;
            assert_eq!(within(4 * line.len() + ASIDE, || decoded(&line, BatchRequest::decode)).runs, runs, "{line}");
        }
    });
}

#[test]
fn a_damaged_request_is_refused_or_read_and_costs_little() {
    let seeds: &[&str] = &[
        r#"{"jsonrpc":"2.0","id":1,"method":"code.cancel","params":{"request_id":1}}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"code.cancel","params":{"run_id":"01a229955b517725af37efb99de19334"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"code.history","params":{"limit":50,"before":"1f"}}"#,
        r#"{"jsonrpc":"2.0","id":-1.5e3,"method":"hello","params":{"name":"agent","later":[1,{"a":null}]}}"#,
        r#"{"jsonrpc":"2.0","method":"code.run","params":{"timeout":5,"limits":{"seconds":1e400}}}"#,
        r#"[{"jsonrpc":"2.0"}]"#,
    ];
    each("requests, damaged", |rng| {
        let mut line = match rng.u8(..12) {
            0 => bytes(rng, 2000),
            8.. => {
                let method =
                    *choice(rng, &["code.run", "code.batch", "code.history", "code.cancel", "hello", "status"]);
                let mut writer = Writer { rng, out: String::new() };
                writer.message(method, strange(2));
                writer.out.into_bytes()
            }
            1 => choice(rng, &["[", "{\"a\":", "[[{", "\"", "{\"params\":"]).repeat(rng.usize(..2000)).into_bytes(),
            2 | 3 => choice(rng, seeds).as_bytes().to_vec(),
            at => {
                let request = request(rng, at == 4);
                let mut writer = Writer { rng, out: String::new() };
                if at == 4 {
                    let items: Vec<Write> = vec![of_request(request.clone()), of_request(request)];
                    let write: Write = Box::new(move |w| w.array(items));
                    writer.message("code.batch", Box::new(move |w| w.object(vec![("runs".into(), write)])));
                } else {
                    writer.message("code.run", of_request(request));
                }
                writer.out.into_bytes()
            }
        };
        if rng.bool() {
            damage(rng, &mut line);
        }
        if let Err(error) = within(4 * line.len() + ASIDE, || read(&line)) {
            let said = serde_json::to_string(&error).unwrap();
            assert!(said.len() <= MAX_REFUSAL, "{said}");
        }
    });
}
