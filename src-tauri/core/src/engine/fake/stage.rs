//! What happens inside a scripted container: the launcher's protocol, and programs of a few words.

use std::collections::HashSet;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};

use crate::engine::{Exit, Frame, LastEvents};
use crate::launcher::{self, Nonce};
use crate::run::Stream;

/// How a container ended, and what its engine says of that.
pub(super) struct Ending {
    pub(super) exit: Exit,
    pub(super) events: LastEvents,
}

impl Ending {
    pub(super) fn exited(exit_code: i32) -> Self {
        let exit = Exit { running: false, exit_code, oom_killed: false, started_at: None };
        Self { exit, events: LastEvents { died: true, ..LastEvents::default() } }
    }

    /// Without a trailer.
    fn died(how: &str) -> Self {
        let Self { exit, events } = Self::exited(how.parse().unwrap_or(137));
        match how {
            "oom" => Self { exit: Exit { oom_killed: true, ..exit }, events },
            "oom told" => Self { exit, events: LastEvents { out_of_memory: true, ..events } },
            "killed" => Self { exit, events: LastEvents { killed: true, ..events } },
            "removed" => Self { exit, events: LastEvents { removed: true, ..events } },
            "unrecorded" => Self { exit, events: LastEvents::default() },
            _ => Self { exit, events },
        }
    }
}

/// PID 1 and the program in one.
pub(super) async fn launch(
    stdin: DuplexStream,
    frames: mpsc::Sender<Frame>,
    gates: watch::Receiver<HashSet<String>>,
    (frail, no_preload): (bool, bool),
) -> Ending {
    let exited = Ending::exited;
    let mut stdin = BufReader::new(stdin);
    let mut header = String::new();
    if !matches!(stdin.read_line(&mut header).await, Ok(1..)) {
        return exited(0);
    }
    if header.as_bytes() == launcher::PRELOAD {
        if no_preload {
            return exited(127);
        }
        header.clear();
        let ready = Frame { stream: Stream::Stdout, bytes: launcher::READY.into() };
        if frames.send(ready).await.is_err() || !matches!(stdin.read_line(&mut header).await, Ok(1..)) {
            return exited(0);
        }
    }
    if frail {
        return exited(0);
    }
    let words: Vec<&str> = header.split_whitespace().collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let mark = Nonce::from_header(word(1)).mark();
    let Some(program) = receive(&mut stdin, word(0), word(3), word(5)).await else { return exited(125) };
    let stage = Stage { frames, mark, gates, files: Vec::new(), oom: 0 };
    stage.perform(&program, stdin).await.unwrap_or_else(|| exited(137))
}

/// The program, from its lines or from the tar.
async fn receive(stdin: &mut BufReader<DuplexStream>, size: &str, lines: &str, args: &str) -> Option<String> {
    let program = read_text(stdin, lines).await?;
    // A scripted program takes no arguments.
    for _ in 0..args.parse().unwrap_or(0) {
        let mut count = String::new();
        stdin.read_line(&mut count).await.ok()?;
        read_text(stdin, count.trim_end()).await?;
    }
    let mut tar = vec![0; size.parse().ok()?];
    stdin.read_exact(&mut tar).await.ok()?;
    Some(if lines == "0" { program_of(&tar) } else { program })
}

async fn read_text(stdin: &mut BufReader<DuplexStream>, lines: &str) -> Option<String> {
    let mut text = String::new();
    for _ in 0..lines.trim_end_matches('-').parse().unwrap_or(0) {
        stdin.read_line(&mut text).await.ok()?;
    }
    Some(text)
}

fn program_of(tar: &[u8]) -> String {
    let mut text = String::new();
    if let Ok(mut entries) = tar::Archive::new(tar).entries()
        && let Some(Ok(mut entry)) = entries.next()
    {
        let _ = std::io::Read::read_to_string(&mut entry, &mut text);
    }
    text
}

struct Stage {
    frames: mpsc::Sender<Frame>,
    mark: Vec<u8>,
    gates: watch::Receiver<HashSet<String>>,
    files: Vec<(String, String)>,
    oom: u32,
}

impl Stage {
    /// None once nobody reads any more.
    async fn perform(mut self, program: &str, mut stdin: BufReader<DuplexStream>) -> Option<Ending> {
        if let Some(bytes) = program.lines().next().and_then(|line| line.strip_prefix("early ")) {
            self.say(Stream::Stderr, &vec![b'x'; bytes.parse().unwrap_or(0)]).await?;
        }
        let open = program.lines().any(|line| line == "open");
        let start = if open { launcher::START_OPEN } else { launcher::START_SEALED };
        self.say(Stream::Stdout, start).await?;
        let mut code = 0;
        for line in program.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "out" => self.say(Stream::Stdout, format!("{rest}\n").as_bytes()).await?,
                "err" => self.say(Stream::Stderr, format!("{rest}\n").as_bytes()).await?,
                "cat" => {
                    let mut all = Vec::new();
                    let _ = stdin.read_to_end(&mut all).await;
                    self.say(Stream::Stdout, &all).await?;
                }
                "file" => {
                    let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
                    self.files.push((name.into(), text.into()));
                }
                "wait" => drop(self.gates.wait_for(|gates| gates.contains(rest)).await),
                "oom" => (self.oom, code) = (1, 137),
                "exit" => code = rest.parse().unwrap_or(0),
                "hang" => std::future::pending().await,
                "die" => return Some(Ending::died(rest)),
                _ => {}
            }
        }
        self.say(Stream::Stderr, &self.mark).await?;
        let trailer = format!(" end {code} 1000000 {} 5000000 0\n=main.py\0=out\0\0tar\0", self.oom);
        self.say(Stream::Stdout, &[&self.mark, trailer.as_bytes(), &self.tar()].concat()).await?;
        if program.lines().any(|line| line == "stay") {
            std::future::pending::<()>().await;
        }
        Some(Ending::exited(0))
    }

    async fn say(&self, stream: Stream, bytes: &[u8]) -> Option<()> {
        self.frames.send(Frame { stream, bytes: Bytes::copy_from_slice(bytes) }).await.ok()
    }

    fn tar(&self) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, text) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            let _ = tar.append_data(&mut header, format!("sandbox/out/{name}"), text.as_bytes());
        }
        tar.into_inner().unwrap_or_default()
    }
}
