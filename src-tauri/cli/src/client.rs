//! A thin client of the service's socket: sends requests, receives replies and notifications.

use std::io;
use std::path::Path;

use sandtray_core::codec::{Frame, Frames, MAX_FRAME, WRITE_STALL, write_frame};
use sandtray_core::ipc;
use serde_json::{Value, json};
use tokio::io::{ReadHalf, WriteHalf};

use crate::failure::Failure;

#[cfg(unix)]
type Stream = tokio::net::UnixStream;
#[cfg(windows)]
type Stream = tokio::net::windows::named_pipe::NamedPipeClient;

pub(crate) struct Client {
    frames: Frames<ReadHalf<Stream>>,
    writer: WriteHalf<Stream>,
    last_id: u64,
}

#[derive(Debug)]
pub(crate) enum Message {
    Reply { id: u64, result: Result<Value, Value> },
    Note { method: String, params: Value },
}

impl Client {
    /// Connects, and gives the name that the owner will see.
    pub(crate) async fn connect(path: &Path, name: &str) -> Result<Self, Failure> {
        let stream = ipc::connect(path).await.map_err(|error| refused(path, &error))?;
        let (reader, writer) = tokio::io::split(stream);
        let mut client = Self { frames: Frames::new(reader), writer, last_id: 0 };
        client.call("hello", json!({ "name": name })).await?;
        Ok(client)
    }

    /// Sends a request and waits for its reply. Other messages are dropped, so use it only while no run is in progress.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let asked = self.send(method, params).await?;
        loop {
            match self.next().await? {
                Message::Reply { id, result } if id == asked => return result.map_err(Failure::of_service),
                Message::Reply { .. } | Message::Note { .. } => {}
            }
        }
    }

    /// Sends a request without waiting, and returns its id.
    pub(crate) async fn send(&mut self, method: &str, params: Value) -> Result<u64, Failure> {
        self.last_id += 1;
        let mut line = json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }).to_string();
        if line.len() > MAX_FRAME {
            let message = format!("The program and its files together are too large: at most {} MB.", MAX_FRAME >> 20);
            return Err(Failure::with_hint(message, "Send fewer or smaller files."));
        }
        line.push('\n');
        write_frame(&mut self.writer, line.as_bytes(), WRITE_STALL).await.map_err(|error| lost(&error))?;
        Ok(self.last_id)
    }

    /// The next message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Message, Failure> {
        let line = match self.frames.next().await {
            Ok(Some(Frame::Line(line))) => line,
            Ok(Some(Frame::TooLong | Frame::NoRoom(_))) => {
                return Err(Failure::new("The service's answer is too long to be read."));
            }
            Ok(None) => return Err(gone()),
            Err(error) => return Err(lost(&error)),
        };
        let mut message: Value = serde_json::from_slice(&line).map_err(|_| not_sandtray())?;
        if let Some(method) = message["method"].as_str().map(str::to_owned) {
            return Ok(Message::Note { method, params: message["params"].take() });
        }
        match (message["id"].as_u64(), message["error"].is_null()) {
            (Some(id), true) => Ok(Message::Reply { id, result: Ok(message["result"].take()) }),
            (Some(id), false) => Ok(Message::Reply { id, result: Err(message["error"].take()) }),
            // An error without an id: too many connections, or a line that the service could not read.
            (None, false) => Err(Failure::of_service(message["error"].take())),
            (None, true) => Err(not_sandtray()),
        }
    }
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) {
        return Failure::with_hint(
            format!("Sandtray isn't running: nothing listens at {path}."),
            "Open the Sandtray app, or start the service with `sandtray serve --enable`.",
        );
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Failure::with_hint(
            format!("The Sandtray at {path} belongs to another user."),
            "Start your own with `sandtray serve --enable`.",
        );
    }
    Failure::new(format!("The service at {path} can't be reached: {error}."))
}

fn lost(error: &io::Error) -> Failure {
    if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
        return gone();
    }
    Failure::new(format!("The connection to the service broke: {error}."))
}

fn gone() -> Failure {
    Failure::with_hint("The service went away before it answered.", "See `sandtray status`, then try again.")
}

fn not_sandtray() -> Failure {
    Failure::with_hint("What listens there doesn't speak as Sandtray does.", "Check the path given with --socket.")
}
