//! A client that hoards resources, in a process of its own: `hoard SOCKET MODE CONNECTIONS`. It prints one line for
//! each change of a connection, and ends with its standard input.
//!
//! - `idle`: says hello on each (`open`), then nothing.
//! - `subscribed`: the same, and wants to be told of changes.
//! - `running`: a run on each that takes a minute (`open`).
//! - `results`: 64 calls on each that return 5 MB, of which it reads 64 KB every 20 s.
//! - `unfinished`: the longest possible message on each, without its last byte (`sent`).
//! - `lists`: asks for the longest page of the history again and again (`open`).
//! - `listens`: listens at the socket itself, and says nothing there (`open`).
//! - `stores`: runs that leave 5 MB in the history, one after the other (`stored`).
//!
//! `closed WORD`: the service closed it; WORD is the code of its last message, or `silently`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

const LONGEST: usize = 16 << 20;
const FIVE_MB: &str = "head -c 5000000 /dev/zero >out/f";

/// One line at a time.
static STDOUT: Mutex<()> = Mutex::new(());

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, socket, mode, connections] = &arguments[..] else { panic!("hoard SOCKET MODE CONNECTIONS") };
    let connections: usize = connections.parse().expect("a number of connections");
    for _ in 0..connections {
        let (socket, mode) = (socket.clone(), mode.clone());
        let hoarding = move || {
            let mut last = None;
            let _ = hoard(Path::new(&socket), &mode, &mut last);
            say(&format!("closed {}", last.as_deref().unwrap_or("silently")));
        };
        std::thread::spawn(hoarding);
    }
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// Runs until the service closes the connection; `last` is the code of the last error that it sent.
fn hoard(socket: &Path, mode: &str, last: &mut Option<String>) -> io::Result<()> {
    if mode == "listens" {
        let listener = UnixListener::bind(socket)?;
        say("open");
        let _connections: Vec<_> = listener.incoming().collect();
        return Ok(());
    }
    let mut stream = UnixStream::connect(socket)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    match mode {
        // A connection without a place is told so before it is closed, so a failed send must not end the reading.
        "idle" => drop(ask(&mut stream, 1, "hello", json!({}))),
        "subscribed" => drop(ask(&mut stream, 1, "subscribe", json!({}))),
        "running" => {
            let sleep = json!({ "language": "shell", "code": "sleep 60" });
            ask(&mut stream, 1, "code.run", sleep)?;
            ask(&mut stream, 2, "hello", json!({}))?;
        }
        "results" => return results(&mut stream),
        "unfinished" => {
            let begin = r#"{"jsonrpc":"2.0","id":1,"method":"code.run","params":{"language":"shell","code":""#;
            stream.write_all(begin.as_bytes())?;
            stream.write_all(&vec![b'x'; LONGEST - begin.len()])?;
            say("sent");
        }
        "lists" => {
            ask(&mut stream, 1, "hello", json!({}))?;
            answer(&mut lines, last)?;
            say("open");
            loop {
                ask(&mut stream, 2, "code.history", json!({ "limit": 500 }))?;
                line(&mut lines)?;
            }
        }
        "stores" => loop {
            ask(&mut stream, 1, "code.run", json!({ "language": "shell", "code": FIVE_MB }))?;
            // Parsing 7 MB of JSON here would take more CPU than the service needs for it.
            if line(&mut lines)?.contains(r#""status":"ok""#) {
                say("stored");
            }
        },
        other => panic!("no such mode: {other}"),
    }
    if mode != "unfinished" && answer(&mut lines, last)?["result"].is_object() {
        say("open");
    }
    loop {
        answer(&mut lines, last)?;
    }
}

fn results(stream: &mut UnixStream) -> io::Result<()> {
    for id in 0..64 {
        ask(stream, id, "code.run", json!({ "language": "shell", "code": FIVE_MB }))?;
    }
    say("open");
    let mut piece = vec![0; 64 << 10];
    loop {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_secs(1));
            // A blank line, which means nothing. It detects a closed connection, which unread data would hide.
            stream.write_all(b"\n")?;
        }
        if stream.read(&mut piece)? == 0 {
            return Ok(());
        }
    }
}

fn ask(stream: &mut UnixStream, id: u64, method: &str, params: Value) -> io::Result<()> {
    let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    stream.write_all(format!("{line}\n").as_bytes())
}

fn line(lines: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line)
}

fn answer(lines: &mut impl BufRead, last: &mut Option<String>) -> io::Result<Value> {
    let message: Value = serde_json::from_str(&line(lines)?)?;
    if let Some(code) = message["error"]["data"]["code"].as_str() {
        *last = Some(code.to_owned());
    }
    Ok(message)
}

fn say(words: &str) {
    let _turn = STDOUT.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(io::stdout(), "{words}");
}
