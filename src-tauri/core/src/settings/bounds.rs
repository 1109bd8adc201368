//! The minimum and maximum of every setting. Pure: takes settings, returns faults.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::Serialize;

use super::{HistorySettings, LimitSettings, Settings, VERSION};

const SECONDS: RangeInclusive<f64> = 0.1..=3600.0;
const CPUS: RangeInclusive<f64> = 0.05..=512.0;
/// Below 32 MB no interpreter starts.
const MEMORY_MB: RangeInclusive<u64> = 32..=1_048_576;
const PROCESSES: RangeInclusive<u32> = 16..=4096;
/// Output and files share a frame: see [`reply_kb`].
const OUTPUT_KB: RangeInclusive<u64> = 1..=896;
const FILES_MB: RangeInclusive<u64> = 1..=10;
/// Each warm container is a process of the engine, idle or not.
const WARM: RangeInclusive<u32> = 0..=64;
const QUEUE: RangeInclusive<u32> = 1..=1024;
const PER_CLIENT: RangeInclusive<u32> = 1..=1024;
const CONCURRENCY: RangeInclusive<u32> = 1..=64;
const HISTORY_RUNS: RangeInclusive<u32> = 1..=1_000_000;
const HISTORY_MB: RangeInclusive<u32> = 1..=102_400;
const HISTORY_DAYS: RangeInclusive<u32> = 1..=3650;

/// A reply fits in one frame of the protocol, whatever the program printed.
const FRAME_KB: u64 = 16 << 10;
/// The part of a frame for everything but output and files. Most of it is for names, whose bytes may take six each:
/// those of files (64 KiB in all), of skipped files (100 of 300 bytes) and of files left behind (100 of 255).
const ENVELOPE_KB: u64 = 1 << 10;

/// The longest repository name that registries accept, with a tag and a digest.
const MAX_IMAGE_NAME: usize = 255 + 1 + 128 + 1 + 71;
const MAX_ENGINE_URL: usize = 1024;

/// A setting outside its bounds, for a person beside the field it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Fault {
    /// As in the file: `limits.seconds`, `images.python`.
    pub field: String,
    /// Another field that has its part in it. The message is of both then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "ts", ts(optional))]
    pub with: Option<String>,
    /// Reads on from the field, or from both: "must be from 1 to 64".
    pub message: String,
}

impl Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { field, with, message } = self;
        match with {
            Some(with) => write!(f, "{field} and {with} {message}"),
            None => write!(f, "{field} {message}"),
        }
    }
}

pub(super) fn faults(settings: &Settings) -> Vec<Fault> {
    let mut found = Faults(Vec::new());
    if settings.version != VERSION {
        found.add("version", format!("must be {VERSION}"));
    }
    found.limits(&settings.limits);
    found.range("queue", &settings.queue, &QUEUE);
    found.range("per_client", &settings.per_client, &PER_CLIENT);
    found.range("warm", &settings.warm, &WARM);
    if let Some(concurrency) = &settings.concurrency {
        found.range("concurrency", concurrency, &CONCURRENCY);
    }
    for (language, image) in &settings.images {
        if !is_image_name(image) {
            found.add(format!("images.{language}"), "is not the name of an image, such as python:3.12-slim");
        }
    }
    if let Some(fault) = settings.engine.as_deref().and_then(engine_fault) {
        found.add("engine", fault);
    }
    found.history(&settings.history);
    found.0
}

struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault { field: field.into(), with: None, message: message.into() });
    }

    /// NaN is in no range.
    fn range<T: PartialOrd + Display>(&mut self, field: &str, value: &T, bounds: &RangeInclusive<T>) {
        if !bounds.contains(value) {
            self.add(field, format!("must be from {} to {}", bounds.start(), bounds.end()));
        }
    }

    fn limits(&mut self, limits: &LimitSettings) {
        self.range("limits.seconds", &limits.seconds, &SECONDS);
        self.range("limits.cpus", &limits.cpus, &CPUS);
        self.range("limits.memory_mb", &limits.memory_mb, &MEMORY_MB);
        self.range("limits.processes", &limits.processes, &PROCESSES);
        self.range("limits.output_kb", &limits.output_kb, &OUTPUT_KB);
        self.range("limits.files_mb", &limits.files_mb, &FILES_MB);
        if self.0.is_empty() && reply_kb(limits) > FRAME_KB - ENVELOPE_KB {
            self.0.push(Fault {
                field: "limits.files_mb".into(),
                with: Some("limits.output_kb".into()),
                message: format!("together make replies larger than {} MB; lower one", FRAME_KB >> 10),
            });
        }
    }

    fn history(&mut self, history: &HistorySettings) {
        self.range("history.max_runs", &history.max_runs, &HISTORY_RUNS);
        self.range("history.max_mb", &history.max_mb, &HISTORY_MB);
        self.range("history.max_days", &history.max_days, &HISTORY_DAYS);
    }
}

/// The largest size of a reply in KiB, whatever a program does. Files are sent as base64 (4/3). Output is always sent
/// as text, in which a control character takes six bytes; if one byte of it is not UTF-8, it is also sent as base64
/// (22/3 together), for each of two streams.
fn reply_kb(limits: &LimitSettings) -> u64 {
    (limits.files_mb << 10).saturating_mul(4).div_ceil(3) + limits.output_kb.saturating_mul(2 * 22).div_ceil(3)
}

/// Whether the name has the form `[host[:port]/]path[:tag][@sha256:digest]`. The name goes into URLs and log lines, so
/// any other form is refused.
pub fn is_image_name(text: &str) -> bool {
    if text.len() > MAX_IMAGE_NAME {
        return false;
    }
    let (named, digest) = match text.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (text, None),
    };
    // A colon before the last slash belongs to a port.
    let last_slash = named.rfind('/').map_or(0, |at| at + 1);
    let (path, tag) = match named[last_slash..].find(':') {
        Some(at) => (&named[..last_slash + at], Some(&named[last_slash + at + 1..])),
        None => (named, None),
    };
    digest.is_none_or(is_digest) && tag.is_none_or(is_tag) && is_repository(path)
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    })
}

fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_repository(text: &str) -> bool {
    match text.split_once('/') {
        // The first part is a host if it could not be a folder.
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => {
            is_host(host) && path.split('/').all(is_path_part)
        }
        Some(_) | None => text.split('/').all(is_path_part),
    }
}

fn is_host(text: &str) -> bool {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    };
    let label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    port.is_none_or(|port| port.parse::<u16>().is_ok()) && name.split('.').all(label)
}

fn is_path_part(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase();
    text.bytes().next().is_some_and(word)
        && text.bytes().next_back().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

fn engine_fault(url: &str) -> Option<&'static str> {
    if url.len() > MAX_ENGINE_URL || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Some("is not a URL");
    }
    if let Some(path) = url.strip_prefix("unix://") {
        return (!path.starts_with('/') || path == "/")
            .then_some("must name a socket, such as unix:///var/run/docker.sock");
    }
    if let Some(pipe) = url.strip_prefix("npipe://") {
        return (pipe.len() < 2).then_some("must name a pipe, such as npipe:////./pipe/docker_engine");
    }
    if let Some(address) = url.strip_prefix("tcp://") {
        let good = address.trim_end_matches('/').rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains(['/', '@', '?', '#']) && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        return (!good).then_some("must name a host and a port, such as tcp://127.0.0.1:2375");
    }
    Some("must start with unix://, npipe:// or tcp://")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;

    #[test]
    fn the_defaults_are_within_their_bounds() {
        assert_eq!(Settings::default().validate(), []);
        for language in Language::ALL {
            assert!(is_image_name(language.recipe().default_image));
        }
    }

    #[test]
    fn every_bound_is_held_at_both_ends() {
        let with = |change: &dyn Fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.validate().into_iter().map(|fault| fault.field).collect::<Vec<_>>()
        };
        for (low, high, field) in [
            (with(&|s| s.limits.seconds = 0.09), with(&|s| s.limits.seconds = 3600.1), "limits.seconds"),
            (with(&|s| s.limits.seconds = f64::NAN), with(&|s| s.limits.seconds = f64::INFINITY), "limits.seconds"),
            (with(&|s| s.limits.cpus = -1.0), with(&|s| s.limits.cpus = 1e9), "limits.cpus"),
            (with(&|s| s.limits.memory_mb = 31), with(&|s| s.limits.memory_mb = u64::MAX), "limits.memory_mb"),
            (with(&|s| s.limits.processes = 15), with(&|s| s.limits.processes = 4097), "limits.processes"),
            (with(&|s| s.limits.output_kb = 0), with(&|s| s.limits.output_kb = 897), "limits.output_kb"),
            (with(&|s| s.limits.files_mb = 0), with(&|s| s.limits.files_mb = 11), "limits.files_mb"),
            (with(&|s| s.queue = 0), with(&|s| s.queue = 1025), "queue"),
            (with(&|s| s.per_client = 0), with(&|s| s.per_client = 1025), "per_client"),
            (with(&|s| s.warm = 65), with(&|s| s.warm = u32::MAX), "warm"),
            (with(&|s| s.concurrency = Some(0)), with(&|s| s.concurrency = Some(65)), "concurrency"),
            (with(&|s| s.history.max_runs = 0), with(&|s| s.history.max_runs = 1_000_001), "history.max_runs"),
            (with(&|s| s.history.max_mb = 0), with(&|s| s.history.max_mb = 102_401), "history.max_mb"),
            (with(&|s| s.history.max_days = 0), with(&|s| s.history.max_days = 3651), "history.max_days"),
            (with(&|s| s.version = 0), with(&|s| s.version = 2), "version"),
        ] {
            assert_eq!(low, [field]);
            assert_eq!(high, [field]);
        }
        assert_eq!(with(&|s| (s.limits.seconds, s.limits.processes) = (0.1, 4096)), [""; 0]);
    }

    #[test]
    fn a_reply_fits_in_a_frame() {
        let faults = |files_mb, output_kb| {
            let limits = LimitSettings { files_mb, output_kb, ..LimitSettings::default() };
            Settings { limits, ..Settings::default() }.validate().len()
        };
        assert_eq!((faults(10, 64), faults(5, 512), faults(1, 896)), (0, 0, 0));
        assert_eq!((faults(10, 128), faults(5, 640)), (1, 1));
    }

    #[test]
    fn image_names_are_told_from_other_things() {
        let digest = format!("python@sha256:{}", "a".repeat(64));
        for name in [
            "alpine",
            "python:3.12-slim",
            "127.0.0.1:5000/library/python:3",
            "ghcr.io/a/b_c:T.x",
            "localhost/x",
            &digest,
        ] {
            assert!(is_image_name(name), "{name}");
        }
        let long = "a/".repeat(300) + "a";
        for name in [
            "",
            "-rm",
            "Alpine",
            "a b",
            "a:",
            "a:-x",
            "a//b",
            "/a",
            "a/",
            "a@sha256:12",
            "a\n",
            "a?x=1",
            "../x",
            "a.io:x/b",
            &long,
        ] {
            assert!(!is_image_name(name), "{name}");
        }
    }

    #[test]
    fn an_engine_is_a_url_of_a_known_kind() {
        for url in [
            "unix:///run/user/1000/podman.sock",
            "npipe:////./pipe/docker_engine",
            "tcp://10.0.0.1:2375",
            "tcp://[::1]:1",
        ] {
            assert_eq!(engine_fault(url), None, "{url}");
        }
        for url in [
            "",
            "http://x:1",
            "unix://relative",
            "unix:///",
            "tcp://host",
            "tcp://:1",
            "tcp://a@b:1",
            "tcp://h:0",
            "unix:///a b",
        ] {
            assert!(engine_fault(url).is_some(), "{url}");
        }
    }
}
