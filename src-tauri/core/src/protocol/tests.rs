use std::time::Duration;

use bytes::Bytes;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::error::{self, ErrorObject};
use super::reply::{About, Output, RunReply, WaitingNote};
use super::request::{self, RunRequest};
use super::*;
use crate::engine::{EngineTrouble, PullError};
use crate::error::RunError;
use crate::event::Waiting;
use crate::language::Language;
use crate::name::FileName;
use crate::run::{
    Captured, CutBy, EndedBy, Interrupted, Limits, Outcome, OutputChunk, OutputFile, Overflow, RunId, SkipReason,
    SkippedFile, Status, Stream,
};
use crate::settings::Settings;

fn refusal(line: &str) -> (String, i32, String) {
    let refusal = parse(line.as_bytes()).unwrap_err();
    (refusal.id.key(), refusal.error.code, refusal.error.message)
}

fn decode(params: &str) -> Result<RunRequest, RunError> {
    let raw = RawValue::from_string(params.to_owned()).unwrap();
    RunRequest::decode(Some(&raw))
}

fn field_and_message(params: &str) -> (String, String) {
    match decode(params) {
        Err(RunError::Invalid { field, message }) => (field, message),
        other => panic!("{params} gave {other:?}"),
    }
}

#[test]
fn a_call_is_read_and_its_id_kept_as_written() {
    for id in ["1", "1.0", "-3", "10000000000000000000000", "\"a\"", "null"] {
        let line = format!(r#" {{"jsonrpc":"2.0","id":{id},"method":"hello","params":null,"more":1}} "#);
        let message = parse(line.as_bytes()).unwrap();
        let id_given = message.id.unwrap();
        assert_eq!(
            serde_json::to_string(&Response::new(&id_given, Ok(()))).unwrap(),
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#)
        );
        assert_eq!((message.method.as_str(), message.params.is_none()), ("hello", true));
    }
    assert!(parse(br#"{"jsonrpc":"2.0","method":"x"}"#).unwrap().id.is_none());
}

#[test]
fn two_spellings_of_an_id_are_one() {
    let key = |text: &str| Id::read(&RawValue::from_string(text.to_owned()).unwrap()).unwrap().key();
    assert_eq!(key(r#""a""#), key(r#""\u0061""#));
    assert_ne!(key("1"), key("\"1\""));
}

#[test]
fn what_is_no_request_is_told_why() {
    for (line, id, code) in [
        ("{", "null", error::PARSE),
        ("nonsense", "null", error::PARSE),
        ("{\"a\":\"\u{1}\"}", "null", error::PARSE),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}]", "null", error::INVALID_REQUEST),
        ("[]", "null", error::INVALID_REQUEST),
        ("5", "null", error::INVALID_REQUEST),
        (r#"{"id":7,"method":"hello"}"#, "7", error::INVALID_REQUEST),
        (r#"{"jsonrpc":"1.0","id":7,"method":"hello"}"#, "7", error::INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":7}"#, "7", error::INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":7,"method":3}"#, "7", error::INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":{},"method":"hello"}"#, "null", error::INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":true,"method":"hello"}"#, "null", error::INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"hello"}"#, "null", error::INVALID_REQUEST),
    ] {
        let got = refusal(line);
        assert_eq!((got.0.as_str(), got.1), (id, code), "{line}: {}", got.2);
    }
    assert!(refusal("[]").2.contains("a line of its own"));
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"hello"}}"#, "x".repeat(300));
    assert_eq!(refusal(&long).1, error::INVALID_REQUEST);
    assert_eq!(parse(b"{\"a\": \"\xff\"}").unwrap_err().error.data.code, "parse_error");
}

#[test]
fn nesting_without_end_costs_no_stack() {
    let depth = 4_000_000;
    let bomb = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"code.run","params":{}{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let message = parse(bomb.as_bytes()).unwrap();
    assert!(matches!(RunRequest::decode(message.params), Err(RunError::Invalid { .. })));
    let open = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"code.run","params":{}"#, "{\"a\":".repeat(depth / 4));
    assert_eq!(refusal(&open).1, error::PARSE);
    let inner = format!(r#"{{"language":"py","code":"","files":{{"a":{}{}}}}}"#, "[".repeat(depth), "]".repeat(depth));
    assert_eq!(field_and_message(&inner).0, "files[\"a\"]");
}

#[test]
fn a_full_request_is_decoded() {
    let request = decode(
        r#"{"language":"py","code":"print(1)","files":{"a.txt":"ä","b/c":{"base64":"AP8="},"d":{"base64":"AP8"},"e":{"base64":"AP\n8=\n"}},
            "args":["a b",""],"stdin":{"base64":"/w=="},"limits":{"seconds":1.5,"memory_mb":64,"cpus":null},"overflow":"truncate","stream":true,"label":"x"}"#,
    )
    .unwrap();
    assert_eq!((request.language, request.code.as_str()), (Language::Python, "print(1)"));
    let files: Vec<_> = request.files.iter().map(|f| (f.name.as_str(), f.bytes.as_ref())).collect();
    assert_eq!(files, [("a.txt", "ä".as_bytes()), ("b/c", b"\x00\xff"), ("d", b"\x00\xff"), ("e", b"\x00\xff")]);
    assert_eq!(
        (request.stdin.as_ref(), request.args.as_slice()),
        (&b"\xff"[..], &["a b".to_owned(), String::new()][..])
    );
    assert_eq!((request.limits.seconds, request.limits.memory_mb, request.limits.cpus), (Some(1.5), Some(64.0), None));
    assert_eq!((request.overflow, request.stream, request.label.as_deref()), (Overflow::Truncate, true, Some("x")));
}

#[test]
fn null_is_a_field_left_out() {
    let request = decode(
        r#"{"language":"sh","code":"","args":null,"files":null,"stdin":null,"limits":null,"overflow":null,"stream":null,"label":null}"#,
    );
    assert_eq!(request, decode(r#"{"language":"shell","code":""}"#));
    assert!(request.is_ok());
    assert_eq!(field_and_message(r#"{"language":"sh","code":null}"#).1, "`code` is missing.");
}

#[test]
fn a_mistake_names_its_field_in_plain_words() {
    for (params, field, message) in [
        ("[]", "params", "`params` must be an object, not an array."),
        ("5", "params", "`params` must be an object, not a number."),
        (r#"{"code":""}"#, "language", "`language` is missing; there are python, javascript, shell, go, rust."),
        (r#"{"language":"sh"}"#, "code", "`code` is missing."),
        (
            r#"{"language":"perl","code":""}"#,
            "language",
            "There is no language `perl`; there are python, javascript, shell, go, rust.",
        ),
        (r#"{"language":3}"#, "language", "`language` must be a string, not a number."),
        (r#"{"code":["a"]}"#, "code", "`code` must be a string, not an array."),
        (r#"{"code":"a","code":"b"}"#, "code", "`params` names `code` twice."),
        (r#"{"files":{"a":"","a":""}}"#, "files[\"a\"]", "`files` names `a` twice."),
        (r#"{"files":{"a":"","\u0061":""}}"#, "files[\"a\"]", "`files` names `a` twice."),
        (r#"{"files":[]}"#, "files", "`files` must be an object, not an array."),
        (
            r#"{"files":{"a":5}}"#,
            "files[\"a\"]",
            "`files[\"a\"]` must be a string or {\"base64\": \"...\"}, not a number.",
        ),
        (r#"{"files":{"a":{}}}"#, "files[\"a\"]", "`files[\"a\"]` is an empty object; it needs `base64`."),
        (r#"{"stdin":true}"#, "stdin", "`stdin` must be a string or {\"base64\": \"...\"}, not true."),
        (r#"{"stream":"yes"}"#, "stream", "`stream` must be true or false, not a string."),
        (r#"{"limits":{"seconds":"5"}}"#, "limits.seconds", "`limits.seconds` must be a number, not a string."),
        (r#"{"limits":{"cpus":1e999}}"#, "limits.cpus", "`limits.cpus` is a number beyond any bound."),
        (r#"{"limits":{"cpus":1,"cpus":1}}"#, "limits.cpus", "`limits` names `cpus` twice."),
        (r#"{"args":"a"}"#, "args", "`args` must be an array, not a string."),
        (r#"{"args":["a",1]}"#, "args[1]", "`args[1]` must be a string, not a number."),
        (r#"{"args":[null]}"#, "args[0]", "`args[0]` must be a string, not null."),
        (r#"{"stdin":{"base64":1}}"#, "stdin[\"base64\"]", "`stdin[\"base64\"]` must be a string, not a number."),
        (r#"{"overflow":"drop"}"#, "overflow", "`overflow` is \"kill\" or \"truncate\", not \"drop\"."),
    ] {
        assert_eq!(field_and_message(params), (field.to_owned(), message.to_owned()), "{params}");
    }
    assert_eq!(RunRequest::decode(None).unwrap_err().code(), "invalid_params");
}

#[test]
fn an_unknown_field_is_refused_with_the_one_that_was_meant() {
    for (params, field, message) in [
        (r#"{"timeout":5}"#, "timeout", "There is no field `timeout`. Did you mean `limits.seconds`?"),
        (r#"{"memory":null}"#, "memory", "There is no field `memory`. Did you mean `limits.memory_mb`?"),
        (
            r#"{"limits":{"timeout":1}}"#,
            "limits.timeout",
            "There is no field `limits.timeout`. Did you mean `limits.seconds`?",
        ),
        (r#"{"Source":""}"#, "Source", "There is no field `Source`. Did you mean `code`?"),
        (r#"{"argv":[]}"#, "argv", "There is no field `argv`. Did you mean `args`?"),
        (
            r#"{"limits":{"disk":1}}"#,
            "limits.disk",
            "There is no field `limits.disk`. There are seconds, memory_mb and cpus.",
        ),
        (
            r#"{"zzz":1}"#,
            "zzz",
            "There is no field `zzz`. There are language, code, args, files, stdin, limits, overflow, stream and label.",
        ),
    ] {
        assert_eq!(field_and_message(params), (field.to_owned(), message.to_owned()));
    }
    let long = format!(r#"{{"{}":1}}"#, "ä".repeat(5000));
    assert!(field_and_message(&long).0.chars().count() < 80);
}

#[test]
fn half_a_surrogate_pair_is_answered_with_the_requests_id() {
    let line = br#"{"jsonrpc":"2.0","id":9,"method":"code.run","params":{"language":"py","code":"print('\ud800')"}}"#;
    let message = parse(line).unwrap();
    assert_eq!(message.id.unwrap().key(), "9");
    let error = RunRequest::decode(message.params).unwrap_err();
    assert!(
        matches!(&error, RunError::Invalid { field, message } if field == "code" && message.contains("half of a surrogate pair"))
    );
    assert_eq!(field_and_message(r#"{"files":{"\udc00":""}}"#).0, "files");
    assert!(decode(r#"{"language":"py","code":"\ud83d\ude00"}"#).is_ok_and(|r| r.code == "😀"));
}

#[test]
fn base64_that_is_none_is_refused() {
    for bad in ["-_", "a", "QQ=Q", "é"] {
        let params = json!({"stdin": {"base64": bad}}).to_string();
        let (field, message) = field_and_message(&params);
        assert_eq!(field, "stdin");
        assert!(message.contains("base64"), "{bad}: {message}");
    }
    assert!(field_and_message(r#"{"stdin":{"hex":"00"}}"#).1.contains("unknown field `hex`"));
    assert!(field_and_message(r#"{"stdin":{"base64":"","x":""}}"#).1.contains("more than 1"));
}

#[test]
fn a_flood_of_entries_is_refused_before_it_is_kept() {
    let files: Vec<String> = (0..300).map(|n| format!("\"{n}\":\"\"")).collect();
    let (field, message) = field_and_message(&format!("{{\"files\":{{{}}}}}", files.join(",")));
    assert_eq!((field.as_str(), message.as_str()), ("files", "`files` has more than 256 entries."));
    let (field, message) = field_and_message(&json!({"args": vec![""; 65]}).to_string());
    assert_eq!((field.as_str(), message.as_str()), ("args", "`args` has more than 64 entries."));
}

#[test]
fn the_other_methods_parameters() {
    let raw = |value: Value| to_raw_value(&value).unwrap();
    assert_eq!(request::hello(None), Ok(None));
    // No client may be called what the owner's own window is called, and neither may a program.
    let own = RawValue::from_string(r#"{"name":" S\u0430ndtray "}"#.into()).unwrap();
    let refusal = request::hello(Some(&own)).unwrap_err();
    assert!(matches!(&refusal, RunError::Invalid { field, .. } if field == "name"), "{refusal}");
    assert_eq!(request::name_of_program(Some("Sandtray")), "program Sandtray");
    assert_eq!(request::name_of_program(Some("node")), "node");
    assert_eq!(request::name_of_program(None), "unnamed");
    assert_eq!(request::hello(Some(&raw(json!({"name": " a\u{1b}[1m\n", "later": 1})))), Ok(Some("a[1m".into())));
    assert!(request::hello(Some(&raw(json!({"name": "\n"})))).is_err());
    assert!(request::hello(Some(&raw(json!({"name": "x".repeat(101)})))).is_err());
    for bad in [json!({}), json!({"run_id": "x"}), json!({"run_id": 1}), json!({"request_id": {}}), json!({"id": 1})] {
        assert!(request::cancel(Some(&raw(bad.clone()))).is_err(), "{bad}");
    }
    assert!(request::cancel(Some(&raw(json!({"request_id": 1})))).is_ok());
    let history = request::history(None).unwrap();
    assert_eq!((history.limit, history.before), (50, None));
    for bad in [
        json!({"limit": 0}),
        json!({"limit": 501}),
        json!({"limit": 1.5}),
        json!({"before": "x".repeat(65)}),
        json!({"x": 1}),
    ] {
        assert!(request::history(Some(&raw(bad.clone()))).is_err(), "{bad}");
    }
}

fn outcome() -> Outcome {
    let file = |name: &str, bytes: &[u8]| OutputFile {
        name: FileName::parse(name).unwrap(),
        bytes: Bytes::copy_from_slice(bytes),
    };
    Outcome {
        status: Status::Failed,
        ended_by: EndedBy::Program,
        exit_code: 3,
        stdout: Captured { bytes: Bytes::from_static(b"1\n"), produced: 2 },
        stderr: Captured { bytes: Bytes::from_static(b"\xff!"), produced: 9 },
        files: vec![file("b/a.txt", b"text"), file("a.bin", b"\x00\xff"), file("ctl", &[1; 5000])],
        skipped_files: vec![SkippedFile { name: "l".into(), reason: SkipReason::Symlink }],
        left_behind: vec!["x.png".into()],
        wall: Duration::from_millis(1250),
        queued: Duration::from_millis(20),
        memory_bytes: Some(1024),
        cpu: None,
        oom_kills: 0,
        image: "python@sha256:1".into(),
        limits: Settings::default().limits(),
        recorded: true,
    }
}

#[test]
fn an_outcome_has_the_form_of_the_contract() {
    let run = RunId::generate();
    let mut outcome = outcome();
    let value = serde_json::to_value(RunReply::new(run, &outcome)).unwrap();
    let control = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [1; 5000]);
    assert_eq!(
        value,
        json!({
            "status": "failed", "ended_by": "program", "exit_code": 3, "stdout": "1\n", "stderr": "\u{fffd}!", "stderr_base64": "/yE=",
            "files": {"b/a.txt": "text", "a.bin": {"base64": "AP8="}, "ctl": {"base64": control}},
            "seconds": 1.25, "run_id": run.to_string(), "memory_bytes": 1024, "cpu_seconds": null,
            "output_bytes": {"stdout": 2, "stderr": 9}, "skipped_files": [{"name": "l", "reason": "symlink"}],
            "left_behind": ["x.png"], "queued_seconds": 0.02, "image": "python@sha256:1",
            "limits": {"seconds": 60.0, "memory_mb": 512.0, "cpus": 1.0},
        })
    );
    outcome.oom_kills = 2;
    assert_eq!(serde_json::to_value(RunReply::new(run, &outcome)).unwrap()["oom_kills"], 2);
}

#[test]
fn returned_files_go_into_the_next_request_as_they_are() {
    let outcome = outcome();
    let reply = serde_json::to_value(RunReply::new(RunId::generate(), &outcome)).unwrap();
    let next = decode(&json!({"language": "sh", "code": "", "files": reply["files"]}).to_string()).unwrap();
    let pairs = |name: &str| next.files.iter().find(|f| f.name == name).unwrap().bytes.clone();
    for file in &outcome.files {
        assert_eq!(pairs(file.name.as_str()), file.bytes);
    }
}

#[test]
fn notifications_say_which_request_and_which_run() {
    let id = Id::read(&RawValue::from_string("7".into()).unwrap()).unwrap();
    let run = RunId::generate();
    let about = About { request_id: &id, index: None, run_id: run };
    let chunk =
        |bytes: &'static [u8], missed| OutputChunk { stream: Stream::Stdout, bytes: Bytes::from_static(bytes), missed };
    let value = |note: Value| note["params"].clone();
    let text = serde_json::to_value(Notification::new("code.output", Output::new(about, &chunk(b"a", 0)))).unwrap();
    assert_eq!(
        text,
        json!({"jsonrpc": "2.0", "method": "code.output",
        "params": {"request_id": 7, "run_id": run.to_string(), "stream": "stdout", "text": "a"}})
    );
    let binary = serde_json::to_value(Notification::new("x", Output::new(about, &chunk(b"\xff", 3)))).unwrap();
    assert_eq!(
        value(binary),
        json!({"request_id": 7, "run_id": run.to_string(), "stream": "stdout", "base64": "/w==", "missed": 3})
    );
    let started = serde_json::to_value(Notification::new("x", about)).unwrap();
    assert_eq!(value(started), json!({"request_id": 7, "run_id": run.to_string()}));
    let waiting = Waiting::Pull { fraction: 0.5, downloaded_bytes: 1, total_bytes: 2 };
    let note = WaitingNote { about, image: Some("p"), waiting };
    assert_eq!(
        serde_json::to_value(note).unwrap(),
        json!({"request_id": 7, "run_id": run.to_string(), "why": "pull",
        "image": "p", "fraction": 0.5, "downloaded_bytes": 1, "total_bytes": 2})
    );
    let note = WaitingNote { about, image: None, waiting: Waiting::Turn { ahead: 2 } };
    assert_eq!(
        serde_json::to_value(note).unwrap(),
        json!({"request_id": 7, "run_id": run.to_string(), "why": "turn", "ahead": 2})
    );
    let of_a_batch = serde_json::to_value(Output::new(About { index: Some(3), ..about }, &chunk(b"a", 0))).unwrap();
    assert_eq!(
        of_a_batch,
        json!({"request_id": 7, "index": 3, "run_id": run.to_string(), "stream": "stdout", "text": "a"})
    );
}

#[test]
fn every_error_has_its_number_and_its_word() {
    let value = |error: RunError| serde_json::to_value(ErrorObject::from(error)).unwrap();
    assert_eq!(
        value(RunError::invalid("code", "`code` is missing.")),
        json!({"code": -32602, "message": "`code` is missing.", "data": {"code": "invalid_params", "field": "code"}})
    );
    let absent = value(RunError::Engine(EngineTrouble::Absent { looked_at: vec![] }));
    assert_eq!(
        (&absent["code"], &absent["data"]["code"], &absent["data"]["trouble"]),
        (&json!(-32001), &json!("engine_unavailable"), &json!("absent"))
    );
    assert!(absent["data"]["hint"].is_string());
    let image = value(RunError::Image { image: "p".into(), error: PullError::NoNetwork });
    assert_eq!(
        (&image["code"], &image["data"]["image"], &image["data"]["reason"]),
        (&json!(-32002), &json!("p"), &json!("no_network"))
    );
    let full = value(RunError::QueueFull { waiting: 64, own: false, retry_after: Duration::from_millis(1200) });
    assert_eq!((&full["code"], &full["data"]["retry_after_seconds"]), (&json!(-32003), &json!(2)));
    assert_eq!(value(RunError::Off)["code"], -32601);
    assert_eq!(value(RunError::ShuttingDown)["code"], -32004);
    assert_eq!(value(RunError::Internal("x".into()))["data"]["code"], "internal");
}

#[test]
fn a_run_that_was_cut_off_has_its_output_in_its_error() {
    let run = RunId::generate();
    let Outcome { stdout, stderr, limits, image, .. } = outcome();
    let cut = |by| Interrupted {
        run,
        by,
        engine: "Podman",
        wall: Duration::from_millis(3700),
        queued: Duration::ZERO,
        stdout: stdout.clone(),
        stderr: stderr.clone(),
        memory_bytes: Some(1),
        cpu: None,
        image: image.clone(),
        limits,
        recorded: by != CutBy::Outside,
    };
    let value = |by| serde_json::to_value(ErrorObject::from(RunError::Interrupted(Box::new(cut(by))))).unwrap();
    assert_eq!(
        value(CutBy::Engine),
        json!({"code": -32009, "message": "Cut off after 3.7 s: Podman went away.", "data": {
            "code": "run_interrupted",
            "hint": "What it had done so far is lost but for its output. Run it again once the engine is back.",
            "cause": "engine", "seconds": 3.7, "stdout": "1\n", "stderr": "\u{fffd}!", "stderr_base64": "/yE=",
            "output_bytes": {"stdout": 2, "stderr": 9}, "run_id": run.to_string(),
        }})
    );
    let outside = value(CutBy::Outside);
    assert_eq!((&outside["data"]["cause"], &outside["data"]["recorded"]), (&json!("outside"), &json!(false)));
    let unknown = value(CutBy::Unknown);
    assert_eq!(unknown["message"], "Cut off after 3.7 s: its container ended, and it is not known why.");
    let removed = serde_json::to_value(ErrorObject::from(RunError::ContainerRemoved)).unwrap();
    assert_eq!(
        (&removed["code"], &removed["data"]["code"], &removed["data"]["trouble"]),
        (&json!(-32001), &json!("engine_unavailable"), &json!("container_removed"))
    );
}

#[test]
fn the_capability_is_a_read_that_does_not_exist_while_it_is_off() {
    let owner: Limits = Settings::default().limits();
    assert_eq!(capability::capabilities(false, &owner), []);
    let value = serde_json::to_value(capability::capabilities(true, &owner)).unwrap();
    assert_eq!(value[0]["name"], "code.run");
    assert_eq!(value[0]["kind"], "read");
    assert_eq!(value[0]["annotations"], json!({"read_only": true, "destructive": false, "open_world": false}));
    assert_eq!(value[0]["languages"][0]["aliases"], json!(["py", "python3"]));
    assert_eq!((&value[0]["limits"]["seconds"], &value[0]["limits"]["batch_runs"]), (&json!(60.0), &json!(64)));
}

#[test]
fn the_id_is_found_in_the_beginning_of_a_message_if_it_is_there() {
    let id = |text: &str| serde_json::to_string(&id_in_beginning(text.as_bytes())).unwrap();
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"method":"code.run","params":{"code":"aa"#), "7");
    assert_eq!(id(r#"{"id":"a", "params": {"files": {"x": "\ud83d"#), r#""a""#);
    for without in [
        r#"{"jsonrpc":"2.0","method":"code.run","params":{"code":"aa"#,
        r#"{"params":{"id":7,"code":"aa"#,
        r#"{"id":7"#,
        r#"{"id":[7],"#,
        "[1, 2",
        "",
    ] {
        assert_eq!(id(without), "null", "{without}");
    }
    let mut cut = r#"{"id":1,"params":"ä"#.as_bytes().to_vec();
    cut.pop();
    assert_eq!(id_in_beginning(&cut).key(), "1");
}
