//! The owner's settings: defaults, bounds, and a file that is saved whole or not at all.

mod bounds;
mod file;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::language::Language;
use crate::run::Limits;

pub use bounds::{Fault, is_image_name};
pub use file::{Loaded, SettingsError};

pub const VERSION: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub version: u32,
    /// The switch of the capability. Off by default.
    pub enabled: bool,
    pub limits: LimitSettings,
    /// Runs at once; absent: as many as the machine has cores.
    pub concurrency: Option<u32>,
    /// Runs that may wait.
    pub queue: u32,
    /// Of those, how many may be of one client.
    pub per_client: u32,
    /// Containers kept warm, over all languages. Each costs about 10 MB of the engine's, and up to 10 MB with its interpreter.
    pub warm: u32,
    /// Image names that differ from the defaults.
    pub images: BTreeMap<Language, String>,
    /// Absent: look in the usual places. Otherwise an engine's URL, `unix:///...`, `npipe:...` or `tcp://...`.
    pub engine: Option<String>,
    pub history: HistorySettings,
    /// The desktop's own; a service without one keeps them as they are.
    pub notifications: bool,
    pub theme: Theme,
    pub start_at_login: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    pub seconds: f64,
    pub cpus: f64,
    pub memory_mb: u64,
    pub processes: u32,
    /// Kibibytes of each output stream.
    pub output_kb: u64,
    /// Mebibytes of files each way.
    pub files_mb: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default, deny_unknown_fields)]
pub struct HistorySettings {
    pub keep: Keep,
    /// Whether only runs may start that can be recorded. False: one that cannot is run and told.
    pub required: bool,
    pub max_runs: u32,
    pub max_mb: u32,
    pub max_days: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Code, output and files too.
    #[default]
    Everything,
    /// Who, when, how long, which verdict; neither code nor output.
    Metrics,
}

/// The window's colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// As the system has it.
    #[default]
    System,
    Light,
    Dark,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: VERSION,
            enabled: false,
            limits: LimitSettings::default(),
            concurrency: None,
            queue: 64,
            per_client: 32,
            warm: 8,
            images: BTreeMap::new(),
            engine: None,
            history: HistorySettings::default(),
            notifications: true,
            theme: Theme::default(),
            start_at_login: false,
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { seconds: 60.0, cpus: 1.0, memory_mb: 512, processes: 128, output_kb: 64, files_mb: 5 }
    }
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self { keep: Keep::Everything, required: false, max_runs: 100_000, max_mb: 1024, max_days: 90 }
    }
}

/// Whether an image name includes the digest of its version.
pub fn is_pinned(image: &str) -> bool {
    image.contains('@')
}

fn unpinned(image: &str) -> &str {
    image.split('@').next().unwrap_or(image)
}

impl Settings {
    /// The owner's limits. A request may lower them, but not raise them.
    pub fn limits(&self) -> Limits {
        let limits = &self.limits;
        Limits {
            millis: (limits.seconds * 1000.0).round() as u64,
            memory_bytes: limits.memory_mb << 20,
            milli_cpus: (limits.cpus * 1000.0).round() as u32,
            processes: limits.processes,
            output_bytes: limits.output_kb << 10,
            file_bytes: limits.files_mb << 20,
        }
    }

    pub fn image(&self, language: Language) -> &str {
        self.images.get(&language).map_or(language.recipe().default_image, String::as_str)
    }

    /// Pins the image to a version, whatever its tag comes to mean. `digest` is that of the manifest: `sha256:...`.
    pub fn pin(&mut self, language: Language, digest: &str) {
        let pinned = format!("{}@{digest}", unpinned(self.image(language)));
        self.images.insert(language, pinned);
    }

    /// Removes the pin, so that the image follows its tag again.
    pub fn unpin(&mut self, language: Language) {
        let name = unpinned(self.image(language)).to_owned();
        if name == language.recipe().default_image {
            self.images.remove(&language);
        } else {
            self.images.insert(language, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_pinned_and_unpinned() {
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let mut settings = Settings::default();
        settings.pin(Language::Python, &digest("a"));
        assert_eq!(settings.image(Language::Python), format!("python:3.12-slim@{}", digest("a")));
        assert!(is_pinned(settings.image(Language::Python)) && settings.validate().is_empty());
        settings.pin(Language::Python, &digest("b"));
        assert_eq!(settings.image(Language::Python), format!("python:3.12-slim@{}", digest("b")));
        settings.unpin(Language::Python);
        assert_eq!(settings, Settings::default(), "the default is no setting");

        settings.images.insert(Language::Go, "localhost:5000/own/go".into());
        let own = settings.clone();
        settings.pin(Language::Go, &digest("c"));
        assert_eq!(settings.image(Language::Go), format!("localhost:5000/own/go@{}", digest("c")));
        settings.unpin(Language::Go);
        assert_eq!(settings, own);
    }
}
