//! The attached streams of a container: its input, and two output streams on one connection.

use std::future::ready;
use std::sync::Arc;

use bollard::Docker as Client;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::StreamExt;
use tokio::sync::Notify;

use super::errors::engine_error;
use crate::engine::{Attached, ContainerId, Endpoint, EngineError, Frame};
use crate::run::Stream;

const DOING: &str = "carry a program's output";

pub(super) async fn open(client: &Client, id: &ContainerId) -> Result<AttachContainerResults, Error> {
    let options = AttachContainerOptions {
        stdin: true,
        stdout: true,
        stderr: true,
        stream: true,
        logs: false,
        detach_keys: None,
    };
    client.attach_container(&id.0, Some(options)).await
}

/// Splits the attached connection. `broke` is notified if the connection ends in another way than with its container.
pub(super) fn split(endpoint: Endpoint, broke: Arc<Notify>, attached: AttachContainerResults) -> Attached {
    let output = attached
        .output
        .map(move |item| match item {
            Ok(log) => frame(log),
            Err(error) => {
                broke.notify_one();
                Err(engine_error(&endpoint, DOING, error))
            }
        })
        // Nothing follows an error, because the framing is lost.
        .scan(false, |broken, item| {
            let next = (!*broken).then_some(item);
            *broken = matches!(next, Some(Err(_)));
            ready(next)
        });
    Attached { input: attached.input, output: output.boxed() }
}

fn frame(log: LogOutput) -> Result<Frame, EngineError> {
    match log {
        LogOutput::StdOut { message } => Ok(Frame { stream: Stream::Stdout, bytes: message }),
        LogOutput::StdErr { message } => Ok(Frame { stream: Stream::Stderr, bytes: message }),
        // Our containers have no terminal, so this is an invalid header, or a frame cut off by the end of the stream.
        LogOutput::Console { .. } | LogOutput::StdIn { .. } => {
            Err(EngineError::Broken { doing: DOING, message: "a frame of output came in pieces".into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use futures_util::stream;

    fn endpoint() -> Endpoint {
        Endpoint { url: "unix:///x.sock".into(), found: "a test".into() }
    }

    #[tokio::test]
    async fn nothing_follows_a_broken_frame() {
        let message = Bytes::from_static(b"x");
        let items = vec![
            Ok(LogOutput::StdOut { message: message.clone() }),
            Ok(LogOutput::StdErr { message: message.clone() }),
            Ok(LogOutput::Console { message: message.clone() }),
            Ok(LogOutput::StdOut { message: message.clone() }),
        ];
        let results =
            AttachContainerResults { output: Box::pin(stream::iter(items)), input: Box::pin(tokio::io::sink()) };
        let frames: Vec<_> = split(endpoint(), Arc::new(Notify::new()), results).output.collect().await;
        let broken = EngineError::Broken { doing: DOING, message: "a frame of output came in pieces".into() };
        let expected = vec![
            Ok(Frame { stream: Stream::Stdout, bytes: message.clone() }),
            Ok(Frame { stream: Stream::Stderr, bytes: message }),
            Err(broken),
        ];
        assert_eq!(frames, expected);
    }
}
