//! A client process that hoards resources (`src/bin/hoard.rs` says how), and its reports on its connections.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::rig::eventually;

/// Dropping it ends the process.
pub struct Hoarder {
    said: Arc<Mutex<Vec<String>>>,
    _stdin: ChildStdin,
    _process: Child,
}

impl Hoarder {
    /// `program` is `env!("CARGO_BIN_EXE_hoard")`.
    pub fn start(program: &str, socket: &Path, mode: &str, connections: usize) -> Self {
        Self::of(Command::new(program), socket, mode, connections)
    }

    /// Started as another user, which needs root.
    pub fn start_as(uid: u32, program: &str, socket: &Path, mode: &str, connections: usize) -> Self {
        let mut command = Command::new(program);
        command.uid(uid).current_dir("/");
        Self::of(command, socket, mode, connections)
    }

    fn of(mut command: Command, socket: &Path, mode: &str, connections: usize) -> Self {
        command.arg(socket).args([mode, &connections.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("a hoarder");
        let stdin = process.stdin.take().expect("its standard input");
        let mut lines = BufReader::new(process.stdout.take().expect("its standard output")).lines();
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Self { said, _stdin: stdin, _process: process }
    }

    /// How many lines begin with these words.
    pub fn said(&self, words: &str) -> usize {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().filter(|line| line.starts_with(words)).count()
    }

    pub async fn until_said(&self, words: &str, times: usize) {
        eventually(&format!("{times} times `{words}`"), || async { self.said(words) >= times }).await;
    }
}
