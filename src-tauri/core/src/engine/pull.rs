//! Folds the layers' progress of a pull into one figure, and classifies its failure. Pure: no engine, no clock.

use std::collections::HashMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bound on counted layers; the largest images in use have about 120.
pub const MAX_LAYERS: usize = 1000;
/// Bound on a layer's id. Real ones have 12 characters; a longer one is ignored.
const MAX_LAYER_ID_BYTES: usize = 128;
/// Assumed minimum size of a layer of unknown size, so that a small layer that reports first does not fill the bar.
const GUESSED_LAYER_BYTES: u64 = 16 << 20;
/// The share of downloading in a layer's progress; extracting is the rest.
const DOWNLOAD_SHARE: f64 = 0.75;
/// Silence during a download after which the network counts as lost.
pub const DOWNLOAD_SILENCE: Duration = Duration::from_secs(60);
/// Silence allowed once everything is downloaded. Podman unpacks without any output.
pub const UNPACK_SILENCE: Duration = Duration::from_secs(600);
/// Bound on the quoted part of an engine's message.
const MAX_MESSAGE_CHARS: usize = 400;

/// One line of an engine's pull stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerEvent {
    /// Short id of the layer; empty for lines about the whole image.
    pub layer: String,
    pub step: LayerStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerStep {
    AlreadyExists,
    Waiting,
    /// Compressed bytes; `total` is 0 while it is unknown.
    Downloading {
        current: u64,
        total: u64,
    },
    Downloaded,
    Extracting {
        current: u64,
        total: u64,
    },
    Complete,
    /// A line without progress.
    Other,
}

impl LayerEvent {
    /// `status` in Docker's or Podman's words; `current` and `total` are 0 if the line has none.
    pub fn parse(layer: &str, status: &str, current: u64, total: u64) -> Self {
        let step = match status {
            "Already exists" => LayerStep::AlreadyExists,
            "Pulling fs layer" | "Waiting" => LayerStep::Waiting,
            "Downloading" => LayerStep::Downloading { current, total },
            "Verifying Checksum" | "Download complete" => LayerStep::Downloaded,
            "Extracting" => LayerStep::Extracting { current, total },
            "Pull complete" => LayerStep::Complete,
            // "Pulling from library/alpine" has the tag in place of a layer's id.
            _ => LayerStep::Other,
        };
        Self { layer: layer.to_owned(), step }
    }
}

/// One pull as one figure.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct PullFigure {
    /// 0 to 1, never going back; downloading is three quarters of the way and extracting one.
    pub fraction: f64,
    /// Compressed bytes.
    pub downloaded_bytes: u64,
    /// Of the layers whose size is known so far.
    pub total_bytes: u64,
    /// All of it is here and is being prepared, which has no figure.
    pub preparing: bool,
}

impl PullFigure {
    pub const PREPARING: Self = Self { fraction: 1.0, downloaded_bytes: 0, total_bytes: 0, preparing: true };
}

/// Folds the lines of one pull into one figure that never decreases.
#[derive(Debug, Clone, Default)]
pub struct PullFold {
    layers: HashMap<String, Layer>,
    /// The greatest fraction shown so far.
    shown: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Layer {
    downloaded: u64,
    /// Compressed bytes; 0 while unknown.
    total: u64,
    /// Completely downloaded, whatever the figures say.
    fetched: bool,
    /// 0 to 1.
    extracted: f64,
}

impl PullFold {
    pub fn apply(&mut self, event: &LayerEvent) -> PullFigure {
        self.note(event);
        self.figure()
    }

    /// How long the engine may stay silent now before the pull counts as stalled, and the error for that.
    pub fn patience(&self) -> (Duration, PullError) {
        let unpacking = !self.layers.is_empty() && self.layers.values().all(|layer| layer.fetched);
        if unpacking {
            let message = "the engine stopped in the middle of unpacking the image.".into();
            (UNPACK_SILENCE, PullError::Other { message })
        } else {
            (DOWNLOAD_SILENCE, PullError::NoNetwork)
        }
    }

    fn note(&mut self, event: &LayerEvent) {
        // A layer that is already present is not part of the work.
        if matches!(event.step, LayerStep::Other | LayerStep::AlreadyExists) {
            return;
        }
        let known = self.layers.contains_key(&event.layer);
        if !known && (self.layers.len() >= MAX_LAYERS || !(1..=MAX_LAYER_ID_BYTES).contains(&event.layer.len())) {
            return;
        }
        let layer = self.layers.entry(event.layer.clone()).or_default();
        match event.step {
            LayerStep::Other | LayerStep::AlreadyExists | LayerStep::Waiting => {}
            LayerStep::Downloading { current, total } => {
                layer.total = layer.total.max(total);
                // After a broken connection, a layer starts again from zero.
                layer.downloaded = layer.downloaded.max(current);
            }
            LayerStep::Downloaded => layer.fetched = true,
            LayerStep::Extracting { current, total } => {
                layer.fetched = true;
                // containerd counts seconds here, without a total.
                if total > 0 {
                    layer.extracted = layer.extracted.max((current as f64 / total as f64).min(1.0));
                }
            }
            LayerStep::Complete => {
                layer.fetched = true;
                layer.extracted = 1.0;
            }
        }
    }

    fn figure(&mut self) -> PullFigure {
        let sized = self.layers.values().filter(|layer| layer.total > 0);
        let (count, total_bytes) =
            sized.fold((0u64, 0u64), |(count, sum), layer| (count + 1, sum.saturating_add(layer.total)));
        let guess = total_bytes.checked_div(count).unwrap_or(0).max(GUESSED_LAYER_BYTES);
        let (mut done, mut whole, mut downloaded_bytes) = (0.0, 0.0, 0u64);
        for layer in self.layers.values() {
            let weight = if layer.total > 0 { layer.total } else { guess } as f64;
            whole += weight;
            done += weight * layer.fraction(weight);
            downloaded_bytes = downloaded_bytes.saturating_add(layer.here());
        }
        if whole > 0.0 {
            self.shown = self.shown.max((done / whole).min(1.0));
        }
        PullFigure { fraction: self.shown, downloaded_bytes, total_bytes, preparing: false }
    }
}

impl Layer {
    fn fraction(&self, weight: f64) -> f64 {
        let fetched = if self.fetched { 1.0 } else { (self.downloaded as f64 / weight).min(1.0) };
        DOWNLOAD_SHARE * fetched + (1.0 - DOWNLOAD_SHARE) * self.extracted
    }

    fn here(&self) -> u64 {
        match (self.fetched, self.total) {
            (true, total) if total > 0 => total,
            (false, total) if total > 0 => self.downloaded.min(total),
            _ => self.downloaded,
        }
    }
}

/// Why there is no image to run in.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum PullError {
    #[error("there is no such image.")]
    NoSuchImage,
    #[error("the registry could not be reached.")]
    NoNetwork,
    #[error("the registry asks for patience: too many pulls from this address.")]
    RateLimited,
    /// Docker Hub gives one answer for both, so as not to tell strangers which private images there are.
    #[error("the registry refused access: there is no such image, or it is private.")]
    Denied,
    #[error("the disk is full.")]
    DiskFull,
    #[error("it was cancelled.")]
    Cancelled,
    /// It is here, and of no use.
    #[error("it declares volumes, which are places on the host's disk that a program could write to.")]
    DeclaresVolumes,
    #[error("{message}")]
    Other { message: String },
}

impl PullError {
    /// Classifies an engine's message, sent before its stream (`status` is the HTTP status) or inside it.
    pub fn classify(status: Option<u16>, message: &str) -> Self {
        let lower = message.to_lowercase();
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| lower.contains(phrase));
        if says(OTHER_PROCESSOR) {
            Self::Other { message: "the image does not exist for this kind of processor.".into() }
        } else if says(DISK_FULL) {
            Self::DiskFull
        } else if says(RATE_LIMITED) {
            Self::RateLimited
        // Checked before "does not exist", because Docker Hub's single message holds both.
        } else if says(DENIED) {
            Self::Denied
        } else if says(NO_SUCH_IMAGE) {
            Self::NoSuchImage
        } else if says(NO_NETWORK) {
            Self::NoNetwork
        } else if status == Some(404) {
            Self::NoSuchImage
        } else {
            Self::other(message)
        }
    }

    fn other(message: &str) -> Self {
        let message = match message.trim() {
            "" => "the engine gave no reason.".into(),
            text => text.chars().take(MAX_MESSAGE_CHARS).collect(),
        };
        Self::Other { message }
    }

    /// The error as a complete sentence. The `Display` text fits the end of a sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::NoSuchImage => "There is no such image.".into(),
            Self::NoNetwork => "The registry could not be reached.".into(),
            Self::RateLimited => "The registry asks for patience: too many pulls from this address.".into(),
            Self::Denied => "The registry refused access: there is no such image, or it is private.".into(),
            Self::DiskFull => "The disk is full.".into(),
            Self::Cancelled => "It was cancelled.".into(),
            Self::DeclaresVolumes => {
                "It declares volumes, which are places on the host's disk that a program could write to.".into()
            }
            Self::Other { message } => format!("The engine said: {message}"),
        }
    }

    /// The next step. Pulls send no credentials; for an image that needs a login, `docker pull` makes it present.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoSuchImage => "Check the image's name in Sandtray's settings.",
            Self::NoNetwork => "Check the connection to the internet, then try again.",
            Self::RateLimited => "Try again in an hour, or fetch it yourself with `docker login` and `docker pull`.",
            Self::Denied => {
                "Check the image's name in Sandtray's settings. A private one you can fetch yourself with `docker login` and `docker pull`."
            }
            Self::DiskFull => "Free some disk space, for example with `docker system prune`, then try again.",
            Self::Cancelled => "Start the pull again when you want it.",
            Self::DeclaresVolumes => {
                "Choose another image in Sandtray's settings: one whose Dockerfile has no `VOLUME`."
            }
            Self::Other { .. } => "Try again; if it fails once more, try `docker pull` with the same name.",
        }
    }
}

const OTHER_PROCESSOR: &[&str] =
    &["no matching manifest", "no image found in manifest list", "no image found in image index"];
const DISK_FULL: &[&str] = &["no space left on device", "disk quota exceeded", "not enough space on the disk"];
const RATE_LIMITED: &[&str] = &["toomanyrequests", "too many requests", "rate limit"];
const DENIED: &[&str] = &[
    "pull access denied",
    "access to the resource is denied",
    "unauthorized",
    "authentication required",
    "no basic auth credentials",
    "access forbidden",
    "403 forbidden",
    "incorrect username or password",
];
const NO_SUCH_IMAGE: &[&str] = &[
    "manifest unknown",
    "repository does not exist",
    "name unknown",
    "no such image",
    "invalid reference format",
    "must be lowercase",
    "invalid repository name",
];
const NO_NETWORK: &[&str] = &[
    "no such host",
    "name resolution",
    "server misbehaving",
    "connection refused",
    "connection reset",
    "network is unreachable",
    "no route to host",
    "i/o timeout",
    "tls handshake",
    "x509:",
    "tls: ",
    "client.timeout exceeded",
    "deadline exceeded",
    "request canceled",
    "server gave http response to https client",
    "unexpected eof",
    "\": eof",
    "proxyconnect",
];

#[cfg(test)]
mod tests;
