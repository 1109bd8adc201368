//! A client's connection, on which everything is expected to go wrong.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::calls::End;

/// With no word from the service for so long, a call counts as never answered. More than all bounds of the service together.
const PATIENCE: Duration = Duration::from_secs(150);
/// For an answer that takes the service no work.
const HELLO: Duration = Duration::from_secs(5);

pub(crate) struct Wire {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    next_id: u64,
}

/// What came for one call beside its reply.
#[derive(Default)]
pub(crate) struct Heard {
    started: bool,
    pub(crate) stdout: String,
    /// The call was cancelled.
    pub(crate) cancelled: bool,
    /// Output was left out, and counted.
    pub(crate) missed: bool,
    pub(crate) wrong: Vec<String>,
}

impl Wire {
    /// None where no service listens, or the service is ending. An error says what is wrong with the service.
    pub(crate) async fn open(socket: &Path, number: u32) -> Result<Option<Self>, String> {
        let Ok(stream) = UnixStream::connect(socket).await else { return Ok(None) };
        let (reader, writer) = stream.into_split();
        let mut wire = Self { lines: BufReader::new(reader).lines(), writer, next_id: 1 };
        let (name, mut heard) = (json!({ "name": format!("soak-{number}") }), Heard::default());
        let hello = wire.call("hello", &name, false, &mut heard);
        match timeout(HELLO, hello).await {
            Ok(Ok(Ok(_))) => Ok(Some(wire)),
            Ok(Ok(Err(error))) => Err(format!("hello was answered with {error}")),
            Ok(Err(_)) => Ok(None),
            Err(_) => Err(format!("hello was not answered within {} s", HELLO.as_secs())),
        }
    }

    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> std::io::Result<u64> {
        let id = self.next_id;
        self.next_id += 1;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.writer.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(id)
    }

    /// The answer; with `cancel`, the call is cancelled at its first output. `Err` says how it ended without an answer.
    pub(crate) async fn call(
        &mut self,
        method: &str,
        params: &Value,
        cancel: bool,
        heard: &mut Heard,
    ) -> Result<Result<Value, Value>, End> {
        let id = self.send(method, params).await.map_err(|_| End::Lost)?;
        let (mut answer, mut cancelling) = (None, None);
        loop {
            let mut message = match timeout(PATIENCE, self.lines.next_line()).await {
                Ok(Ok(Some(line))) => match serde_json::from_str::<Value>(&line) {
                    Ok(message) => message,
                    // The service was killed in the middle of a line.
                    Err(_) => return Err(End::Lost),
                },
                Ok(Ok(None) | Err(_)) => return answer.ok_or(End::Lost),
                Err(_) => return Err(End::Silent),
            };
            if message.get("method").is_some() {
                heard.notification(id, &message);
                if cancel && cancelling.is_none() && !heard.stdout.is_empty() {
                    let params = json!({ "request_id": id });
                    heard.cancelled = true;
                    cancelling = Some(self.send("code.cancel", &params).await.map_err(|_| End::Lost)?);
                }
                continue;
            }
            if message["id"] == id && answer.is_none() {
                answer = Some(match message.get_mut("error") {
                    Some(error) => Err(error.take()),
                    None => Ok(message["result"].take()),
                });
            } else if cancelling.is_some_and(|cancelling| message["id"] == cancelling) {
                cancelling = None;
            } else {
                heard.wrong.push(format!("a reply to no request: {message}"));
            }
            if cancelling.is_none()
                && let Some(answer) = answer.take()
            {
                return Ok(answer);
            }
        }
    }
}

impl Heard {
    fn notification(&mut self, id: u64, message: &Value) {
        let params = &message["params"];
        if params["request_id"] != id {
            self.wrong.push(format!("told of a run that is over: {message}"));
            return;
        }
        match message["method"].as_str() {
            Some("code.started") if self.started => self.wrong.push("started twice".into()),
            Some("code.started") => self.started = true,
            Some("code.output") if !self.started => self.wrong.push("output before it started".into()),
            Some("code.output") => {
                self.missed |= params["missed"].as_u64().is_some_and(|missed| missed > 0);
                if params["stream"] == "stdout" {
                    self.stdout.push_str(params["text"].as_str().unwrap_or_default());
                }
            }
            Some("code.waiting") => {}
            Some(_) | None => self.wrong.push(format!("an unknown notification: {message}")),
        }
    }
}
