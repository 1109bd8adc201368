//! The engine's state for display: one state at a time, each with its sentence and its next step.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discovery::{BY_CONTEXT, BY_SETTINGS, BY_VARIABLE};
use super::unfit::Unfit;

/// Where an engine listens and how it was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// `unix:///path`, `npipe:////./pipe/name` or `tcp://host:port`.
    pub url: String,
    /// Plain words: "DOCKER_HOST", "the Docker context desktop-linux", "the default socket", "Colima", ...
    pub found: String,
}

/// The source of an engine's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedBy {
    /// The owner, in Sandtray's settings.
    Settings,
    /// The variable DOCKER_HOST.
    Variable,
    /// The Docker context of this name.
    Context(String),
}

impl Endpoint {
    /// The engine's usual name, for use before it has reported its own.
    pub fn engine_name(&self) -> &'static str {
        if self.url.contains("podman") || self.found.contains("Podman") { "Podman" } else { "Docker" }
    }

    /// The source of the address; `None` for a usual place.
    pub fn named_by(&self) -> Option<NamedBy> {
        match self.found.as_str() {
            BY_SETTINGS => Some(NamedBy::Settings),
            BY_VARIABLE => Some(NamedBy::Variable),
            found => found.strip_prefix(BY_CONTEXT).map(|name| NamedBy::Context(name.to_owned())),
        }
    }

    /// Whether the engine is reached unencrypted and perhaps over a network. An address that is not clearly one of this
    /// computer counts as remote.
    pub fn is_remote(&self) -> bool {
        match self.url.split_once("://") {
            Some(("tcp" | "http", authority)) => !is_loopback(authority),
            Some(_) | None => false,
        }
    }

    /// A warning for the owner while this engine is used.
    pub fn warning(&self) -> Option<String> {
        self.is_remote().then(|| {
            format!(
                "Programs, inputs and results travel to {} unencrypted: anyone on the way can read and change them.",
                self.url
            )
        })
    }
}

/// Whether the address is `localhost`, an IPv4 loopback address or an IPv6 one in brackets, with or without a port.
/// Nothing else is accepted: an address with a user name, a path or a second scheme may lead to another place than it
/// seems to.
fn is_loopback(authority: &str) -> bool {
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let (is_own, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => {
            let is_own =
                |host: Ipv6Addr| host.is_loopback() || host.to_ipv4_mapped().is_some_and(|host| host.is_loopback());
            (host.parse().is_ok_and(is_own), port)
        }
        None => {
            let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
            let is_own = |host: Ipv4Addr| host.is_loopback();
            (host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_own), port)
        }
    };
    is_own
        && (port.is_empty()
            || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit())))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.url, self.found)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineInfo {
    /// "Docker" or "Podman", or what it calls itself.
    pub name: String,
    pub version: String,
    pub api_version: String,
    pub endpoint: Endpoint,
    pub os: String,
    pub arch: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Other facts that the walls depend on: the engine's own id, its runtime, the kernel. If it changes, the walls are
    /// proved again. Only compared, never shown.
    #[serde(skip)]
    pub fingerprint: String,
}

impl EngineInfo {
    /// Whether a proof for one holds for the other. Memory is not compared: a virtual machine's memory changes while
    /// its engine stays the same.
    pub fn is_of_same_engine(&self, other: &Self) -> bool {
        let Self { name, version, api_version, endpoint, os, arch, cpus, memory_bytes: _, fingerprint } = self;
        (name, version, api_version, endpoint, os, arch, cpus, fingerprint)
            == (
                &other.name,
                &other.version,
                &other.api_version,
                &other.endpoint,
                &other.os,
                &other.arch,
                &other.cpus,
                &other.fingerprint,
            )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum EngineState {
    /// Not asked yet, or being asked for the first time.
    Checking,
    Ready(EngineInfo),
    Trouble(EngineTrouble),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "trouble", rename_all = "snake_case")]
pub enum EngineTrouble {
    /// No socket anywhere we know to look, and none was named.
    Absent {
        looked_at: Vec<String>,
    },
    /// A socket or a name is there, without a listener.
    NotRunning {
        endpoint: Endpoint,
    },
    PermissionDenied {
        endpoint: Endpoint,
    },
    /// It accepts and says nothing within the bound.
    NotAnswering {
        endpoint: Endpoint,
    },
    /// It answers, but not as an engine that we can use.
    Unusable {
        endpoint: Endpoint,
        unfit: Unfit,
        reason: String,
    },
    /// It answers, but a probe showed that it does not hold a wall around programs in this image.
    WallMissing {
        endpoint: Endpoint,
        image: String,
        wall: String,
    },
}

impl EngineTrouble {
    /// A stable word, for programs and for the window's choice of words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Absent { .. } => "absent",
            Self::NotRunning { .. } => "not_running",
            Self::PermissionDenied { .. } => "permission_denied",
            Self::NotAnswering { .. } => "not_answering",
            Self::Unusable { .. } => "unusable",
            Self::WallMissing { .. } => "wall_missing",
        }
    }

    pub fn endpoint(&self) -> Option<&Endpoint> {
        match self {
            Self::Absent { .. } => None,
            Self::NotRunning { endpoint }
            | Self::PermissionDenied { endpoint }
            | Self::NotAnswering { endpoint }
            | Self::Unusable { endpoint, .. }
            | Self::WallMissing { endpoint, .. } => Some(endpoint),
        }
    }

    /// What is wrong in a few words, without an address and without a full stop. It begins with the engine's name, so
    /// it can be used alone or within a sentence.
    pub fn summary(&self) -> String {
        match self {
            Self::Absent { .. } => "Docker isn't installed".into(),
            Self::NotRunning { endpoint } if endpoint.named_by().is_some() => {
                format!("{} isn't at the address given", endpoint.engine_name())
            }
            Self::NotRunning { endpoint } => format!("{} isn't running", endpoint.engine_name()),
            Self::PermissionDenied { endpoint } => format!("{} isn't open to you", endpoint.engine_name()),
            Self::NotAnswering { endpoint } => format!("{} isn't answering", endpoint.engine_name()),
            Self::Unusable { endpoint, unfit, .. } => unfit.summary(endpoint.engine_name()),
            Self::WallMissing { endpoint, .. } => format!("{} doesn't hold every wall", endpoint.engine_name()),
        }
    }

    /// The next step.
    pub fn hint(&self) -> String {
        let command = self.command().map(|command| format!("`{command}`"));
        match self {
            Self::Absent { .. } => {
                "Install Docker (https://docs.docker.com/get-docker/); Sandtray will notice by itself.".into()
            }
            Self::NotRunning { endpoint } => match (command, endpoint.named_by()) {
                (Some(command), _) => {
                    format!("Start Docker ({command}, or open Docker Desktop); Sandtray will notice by itself.")
                }
                (None, None) => "Start it; Sandtray will notice by itself.".into(),
                (None, Some(NamedBy::Settings)) => "Start it, or change `engine` in Sandtray's settings.".into(),
                (None, Some(NamedBy::Variable)) => "Start it, or change DOCKER_HOST and start Sandtray again.".into(),
                (None, Some(NamedBy::Context(_))) => "Start it, or choose another context with `docker context use`.".into(),
            },
            Self::PermissionDenied { .. } => match command {
                Some(command) => {
                    format!("Add yourself to the docker group with {command}, then log out and in again. Its members can become root.")
                }
                None => "Ask the administrator of this computer to let you use it.".into(),
            },
            Self::NotAnswering { endpoint } => {
                format!("Restart {} if this lasts longer than a minute.", endpoint.engine_name())
            }
            Self::Unusable { .. } => "Choose another engine in the settings, or update this one.".into(),
            Self::WallMissing { .. } => {
                "Sandtray runs nothing where a wall is missing. Use Docker, update this engine, or choose another image in the settings.".into()
            }
        }
    }

    /// The hint's command, to be typed or copied verbatim.
    fn command(&self) -> Option<&'static str> {
        match self {
            Self::NotRunning { endpoint } if endpoint.url == "unix:///var/run/docker.sock" => {
                Some(if cfg!(target_os = "macos") { "open -a Docker" } else { "sudo systemctl start docker" })
            }
            Self::PermissionDenied { endpoint } if cfg!(target_os = "linux") && endpoint.engine_name() == "Docker" => {
                Some("sudo usermod -aG docker \"$USER\"")
            }
            Self::Absent { .. }
            | Self::NotRunning { .. }
            | Self::PermissionDenied { .. }
            | Self::NotAnswering { .. }
            | Self::Unusable { .. }
            | Self::WallMissing { .. } => None,
        }
    }
}

impl fmt::Display for EngineTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { .. } => f.write_str("Docker isn't installed on this computer."),
            Self::NotRunning { endpoint } => {
                write!(f, "{} isn't running: nothing listens at {endpoint}.", endpoint.engine_name())
            }
            Self::PermissionDenied { endpoint } => {
                write!(f, "{} is there, but you may not use it: no access to {endpoint}.", endpoint.engine_name())
            }
            Self::NotAnswering { endpoint } => write!(f, "{} isn't answering at {endpoint}.", endpoint.engine_name()),
            Self::Unusable { endpoint, reason, .. } => write!(f, "The engine at {endpoint} can't be used: {reason}."),
            Self::WallMissing { endpoint, image, wall } => {
                write!(
                    f,
                    "The engine at {endpoint} doesn't hold a wall that keeps programs of the image {image} in: {wall}."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str, found: &str) -> Endpoint {
        Endpoint { url: url.into(), found: found.into() }
    }

    /// One of each kind, with typical addresses.
    fn troubles() -> Vec<EngineTrouble> {
        let addresses = [
            endpoint("unix:///var/run/docker.sock", "the default socket"),
            endpoint("unix:///run/user/1000/podman/podman.sock", "Podman's socket"),
            endpoint("tcp://127.0.0.1:2375", "DOCKER_HOST"),
            endpoint("npipe:////./pipe/docker_engine", "the Docker context default"),
        ];
        let reason = "it is too old: API 1.38, and 1.40 is needed".to_owned();
        let at = |endpoint: Endpoint| {
            [
                EngineTrouble::NotRunning { endpoint: endpoint.clone() },
                EngineTrouble::PermissionDenied { endpoint: endpoint.clone() },
                EngineTrouble::NotAnswering { endpoint: endpoint.clone() },
                EngineTrouble::Unusable { endpoint: endpoint.clone(), unfit: Unfit::TooOld, reason: reason.clone() },
                EngineTrouble::WallMissing { endpoint, image: "python".into(), wall: "no network".into() },
            ]
        };
        let absent = EngineTrouble::Absent { looked_at: addresses.iter().map(|at| at.url.clone()).collect() };
        addresses.into_iter().flat_map(at).chain([absent]).collect()
    }

    #[test]
    fn a_summary_names_the_engine_and_no_address() {
        for trouble in troubles() {
            let summary = trouble.summary();
            let name = trouble.endpoint().map_or("Docker", Endpoint::engine_name);
            assert!(summary.starts_with(name), "{summary}");
            assert!(!summary.contains([':', '/', '.', '(']), "{summary}");
            assert!(summary.len() <= 40, "{summary}");
        }
    }

    #[test]
    fn every_kind_of_unusable_has_a_short_form_of_its_own() {
        use std::collections::BTreeSet;
        let kinds =
            [Unfit::Address, Unfit::Ssh, Unfit::Tls, Unfit::Elsewhere, Unfit::TooOld, Unfit::OtherSystem, Unfit::Other];
        let said: BTreeSet<String> = kinds.iter().map(|kind| kind.summary("Docker")).collect();
        assert_eq!(said.len(), kinds.len());
        for summary in said {
            assert!(
                summary.starts_with("Docker") && summary.len() <= 40 && !summary.contains([':', '`', '/']),
                "{summary}"
            );
        }
    }

    #[test]
    fn an_address_that_was_written_down_is_told_from_a_usual_place() {
        let by = |found: &str| endpoint("unix:///x.sock", found).named_by();
        assert_eq!(by("the default socket"), None);
        assert_eq!(by("Sandtray's settings"), Some(NamedBy::Settings));
        assert_eq!(by("DOCKER_HOST"), Some(NamedBy::Variable));
        assert_eq!(by("the Docker context lab"), Some(NamedBy::Context("lab".into())));
    }

    #[test]
    fn addresses_of_this_computer_are_told_from_others() {
        for url in [
            "unix:///var/run/docker.sock",
            "npipe:////./pipe/docker_engine",
            "tcp://127.0.0.1:2375",
            "tcp://127.8.9.10",
            "http://localhost:2375/",
            "tcp://LocalHost:2375",
            "tcp://[::1]:2375",
            "tcp://[::ffff:127.0.0.1]:2375",
        ] {
            assert!(!endpoint(url, "a test").is_remote(), "{url}");
            assert_eq!(endpoint(url, "a test").warning(), None);
        }
        for url in [
            "tcp://10.0.0.1:2375",
            "tcp://docker:2375",
            "tcp://0.0.0.0:2375",
            "tcp://[fe80::1]:2375",
            "tcp://127.0.0.1.example.com:2375",
            "tcp://localhost.example.com",
            "tcp://127.0.0.1@example.com:2375",
            "tcp://127.0.0.1:x@example.com",
            "tcp://example.com/127.0.0.1",
            "tcp://example.com#@127.0.0.1",
            "tcp://http://127.0.0.1:2375",
            "tcp://[::1]example.com",
            "tcp://2130706433:2375",
            "tcp://",
        ] {
            assert!(endpoint(url, "a test").is_remote(), "{url}");
        }
        assert_eq!(
            endpoint("tcp://10.0.0.1:2375", "a test").warning().unwrap(),
            "Programs, inputs and results travel to tcp://10.0.0.1:2375 unencrypted: anyone on the way can read and change them."
        );
    }
}
