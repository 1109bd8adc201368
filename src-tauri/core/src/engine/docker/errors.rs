//! Maps bollard's errors to [`EngineError`] and [`EngineTrouble`].

use std::error::Error as _;
use std::io;

use bollard::errors::Error;

use crate::engine::{Endpoint, EngineError, EngineTrouble, Unfit};

/// Bound on the quoted part of an engine's message.
const MAX_MESSAGE_CHARS: usize = 1000;

#[expect(clippy::wildcard_enum_match_arm, reason = "bollard has some 25 errors; few of them mean something here")]
pub(super) fn engine_error(endpoint: &Endpoint, doing: &'static str, error: Error) -> EngineError {
    if let Some(trouble) = trouble(endpoint, &error) {
        return EngineError::Unavailable(trouble);
    }
    match error {
        Error::DockerResponseServerError { status_code: 404, message } if says_no_container(&message) => {
            EngineError::NoContainer
        }
        Error::DockerResponseServerError { status_code: 409, message } if says_going(&message) => {
            EngineError::NoContainer
        }
        // The engine is going down or coming up: its message is empty, or reports the part that is already down.
        Error::DockerResponseServerError { status_code: 500.., message }
            if message.trim().is_empty() || lacks_runtime(&message) =>
        {
            EngineError::Unavailable(EngineTrouble::NotAnswering { endpoint: endpoint.clone() })
        }
        Error::DockerResponseServerError { status_code, message } => {
            EngineError::Refused { doing, message: quote(&message, status_code) }
        }
        Error::DockerStreamError { error } => EngineError::Refused { doing, message: shorten(&error) },
        error => EngineError::Broken { doing, message: shorten(&chain(&error)) },
    }
}

/// Why a connection, or the first request on it, failed. At that point every error makes the engine unusable.
#[expect(clippy::wildcard_enum_match_arm, reason = "bollard has some 25 errors; few of them mean something here")]
pub(super) fn unusable(endpoint: &Endpoint, error: Error) -> EngineTrouble {
    if let Some(trouble) = trouble(endpoint, &error) {
        return trouble;
    }
    let endpoint = endpoint.clone();
    let reason = match error {
        // Docker Desktop's socket exists before its engine. It hangs up, or sends a 503 with an empty message.
        Error::HyperLegacyError { .. } | Error::HyperResponseError { .. } | Error::IOError { .. } => {
            return EngineTrouble::NotAnswering { endpoint };
        }
        Error::DockerResponseServerError { status_code: 500.., message } if message.trim().is_empty() => {
            return EngineTrouble::NotAnswering { endpoint };
        }
        // "Docker Desktop is manually paused. Unpause it through the Whale menu or Dashboard."
        Error::DockerResponseServerError { status_code, message } => quote(&message, status_code),
        error => format!("it doesn't answer as Docker does ({})", shorten(&chain(&error))),
    };
    EngineTrouble::Unusable { endpoint, unfit: Unfit::Other, reason }
}

/// `None` if the engine was reached.
#[expect(clippy::wildcard_enum_match_arm, reason = "bollard has some 25 errors; few of them mean something here")]
pub(super) fn trouble(endpoint: &Endpoint, error: &Error) -> Option<EngineTrouble> {
    let endpoint = endpoint.clone();
    match error {
        Error::RequestTimeoutError => Some(EngineTrouble::NotAnswering { endpoint }),
        // bollard looks for the file, and reports it as missing if it may not look.
        Error::SocketNotFoundError(path) => match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(EngineTrouble::PermissionDenied { endpoint })
            }
            _ => Some(EngineTrouble::NotRunning { endpoint }),
        },
        Error::HyperLegacyError { err } if err.is_connect() => match io_kind(err) {
            Some(io::ErrorKind::PermissionDenied) => Some(EngineTrouble::PermissionDenied { endpoint }),
            // The backlog is full: the engine listens but does not accept.
            Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Some(EngineTrouble::NotAnswering { endpoint }),
            _ => Some(EngineTrouble::NotRunning { endpoint }),
        },
        _ => None,
    }
}

pub(super) fn is_status(error: &Error, status: u16) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code, .. } if *status_code == status)
}

fn says_no_container(message: &str) -> bool {
    let lower = message.to_lowercase();
    lower.contains("no such container") || lower.contains("no container with")
}

/// Docker's message for a container whose removal has begun.
fn says_going(message: &str) -> bool {
    message.contains("marked for removal")
}

/// Docker's message, in gRPC's words, without the daemon that keeps its containers.
fn lacks_runtime(message: &str) -> bool {
    let lower = message.to_lowercase();
    let says = |words: &str| lower.contains(words);
    says("transport is closing")
        || says("client connection is closing")
        || says("connection is unavailable")
        || (says("transport:") && lower.ends_with("unavailable"))
}

/// The first I/O error among this error's sources.
fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        next = error.source();
    }
    None
}

/// The error with its sources, because hyper's details are only there.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let source_text = source.to_string();
        if !text.contains(&source_text) {
            text = format!("{text}: {source_text}");
        }
        next = source.source();
    }
    text
}

fn quote(message: &str, status: u16) -> String {
    match message.trim() {
        "" => format!("it answered with HTTP status {status}"),
        text => shorten(text),
    }
}

fn shorten(text: &str) -> String {
    text.trim().chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        Endpoint { url: "unix:///x.sock".into(), found: "a test".into() }
    }

    fn answer(status_code: u16, message: &str) -> EngineError {
        let error = Error::DockerResponseServerError { status_code, message: message.into() };
        engine_error(&endpoint(), "start a container", error)
    }

    #[test]
    fn a_missing_container_is_known_by_both_engines_words() {
        assert_eq!(answer(404, "No such container: nope"), EngineError::NoContainer);
        assert_eq!(
            answer(404, "no container with name or ID \"nope\" found: no such container"),
            EngineError::NoContainer
        );
    }

    #[test]
    fn a_container_that_is_just_being_removed_is_gone() {
        let message = "container is marked for removal and cannot be started";
        assert_eq!(answer(409, message), EngineError::NoContainer);
    }

    /// containerd ends before Docker does.
    #[test]
    fn an_engine_that_has_lost_its_runtime_is_on_its_way() {
        let silent = EngineError::Unavailable(EngineTrouble::NotAnswering { endpoint: endpoint() });
        for message in [
            "transport is closing: unavailable",
            "connection error: desc = \"transport: Error while dialing dial unix containerd.sock\": unavailable",
            "rpc error: code = 14 desc = grpc: the connection is unavailable",
            "rpc error: code = Unavailable desc = transport is closing",
            "grpc: the client connection is closing: unknown",
        ] {
            assert_eq!(answer(500, message), silent, "{message}");
        }
        let refused = |message: &str| EngineError::Refused { doing: "start a container", message: message.into() };
        for message in ["the device nvidia.com/gpu=0 is unavailable", "OCI runtime create failed: transport is closing"]
        {
            assert_eq!(answer(400, message), refused(message), "{message}");
        }
    }

    #[test]
    fn any_other_answer_is_quoted() {
        let refused = |message: &str| EngineError::Refused { doing: "start a container", message: message.into() };
        assert_eq!(answer(404, "network x not found\n"), refused("network x not found"));
        assert_eq!(
            answer(500, " OCI runtime create failed: seccomp \n"),
            refused("OCI runtime create failed: seccomp")
        );
        assert_eq!(answer(400, ""), refused("it answered with HTTP status 400"));
        let silent = EngineTrouble::NotAnswering { endpoint: endpoint() };
        assert_eq!(answer(503, " "), EngineError::Unavailable(silent));
        let EngineError::Refused { message, .. } = answer(500, &"é".repeat(1 << 20)) else { panic!("not Refused") };
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
    }

    #[test]
    fn a_socket_that_is_not_there_is_an_engine_that_does_not_run() {
        let error = Error::SocketNotFoundError("/nowhere/x.sock".into());
        assert_eq!(trouble(&endpoint(), &error), Some(EngineTrouble::NotRunning { endpoint: endpoint() }));
        let slow = Some(EngineTrouble::NotAnswering { endpoint: endpoint() });
        assert_eq!(trouble(&endpoint(), &Error::RequestTimeoutError), slow);
    }

    #[test]
    fn an_answer_that_is_not_dockers_makes_it_unusable() {
        let error = Error::DockerResponseServerError {
            status_code: 400,
            message: "Client sent an HTTP request to an HTTPS server.".into(),
        };
        let reason = "Client sent an HTTP request to an HTTPS server.".into();
        let expected = EngineTrouble::Unusable { endpoint: endpoint(), unfit: Unfit::Other, reason };
        assert_eq!(unusable(&endpoint(), error), expected);
    }
}
