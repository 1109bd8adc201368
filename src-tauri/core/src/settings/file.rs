//! The settings file: parsed strictly, saved whole. A file that cannot be parsed is set aside, never overwritten.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use thiserror::Error;

use super::{Fault, Settings, VERSION, bounds};
use crate::disk::{self, SetAside};

/// Bound on the file's length.
const MAX_FILE: u64 = 256 << 10;

/// The settings at the start of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub settings: Settings,
    /// A file that could not be used. The defaults are in force, so the capability is off.
    pub set_aside: Option<SetAside>,
}

#[derive(Debug, Error)]
pub enum SettingsError {
    /// Not recoverable: starting with the defaults would end in overwriting the file.
    #[error("The settings in {path} cannot be used ({reason}) and cannot be moved out of the way: {source}")]
    SetAside { path: PathBuf, reason: String, source: io::Error },
    #[error("The settings cannot be saved to {path}: {source}")]
    Save { path: PathBuf, source: io::Error },
    #[error("The setting {0}.")]
    Invalid(Fault),
}

impl Settings {
    /// Reads the settings. A missing file gives the defaults; an unusable one is set aside.
    ///
    /// # Errors
    ///
    /// If an unusable file cannot be set aside.
    pub fn load(path: &Path) -> Result<Loaded, SettingsError> {
        let reason = match disk::read_bounded(path, MAX_FILE) {
            Ok(None) => return Ok(Loaded { settings: Settings::default(), set_aside: None }),
            Ok(Some(bytes)) => match parse(&bytes) {
                Ok(settings) => return Ok(Loaded { settings, set_aside: None }),
                Err(reason) => reason,
            },
            Err(error) => format!("it cannot be read ({error})"),
        };
        match disk::set_aside("settings", path, &[], reason.clone(), SystemTime::now()) {
            Ok(aside) => Ok(Loaded { settings: Settings::default(), set_aside: Some(aside) }),
            Err(source) => Err(SettingsError::SetAside { path: path.to_owned(), reason, source }),
        }
    }

    /// Saves the settings.
    ///
    /// # Errors
    ///
    /// If [`Settings::load`] would set them aside, or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), SettingsError> {
        if let Some(fault) = self.validate().into_iter().next() {
            return Err(SettingsError::Invalid(fault));
        }
        let failed = |source| SettingsError::Save { path: path.to_owned(), source };
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        bytes.push(b'\n');
        disk::write_atomically(path, &bytes).map_err(failed)
    }

    /// Every setting outside its bounds; empty if there is none.
    pub fn validate(&self) -> Vec<Fault> {
        bounds::faults(self)
    }
}

/// The error is a clause that ends a sentence.
fn parse(bytes: &[u8]) -> Result<Settings, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not valid JSON ({error})"))?;
    // serde would also accept a list of the fields in their order.
    if !value.is_object() {
        return Err("it is not a JSON object".into());
    }
    let version = match value.get("version") {
        // Written by hand, from the documentation of this version.
        None => u64::from(VERSION),
        Some(version) => version.as_u64().ok_or("its version is not a number")?,
    };
    if version > u64::from(VERSION) {
        return Err(format!(
            "it was written by a newer Sandtray (version {version} of the file; this one reads {VERSION})"
        ));
    }
    let settings: Settings = if version == u64::from(VERSION) {
        // Parsed from the bytes, so that the error has a line and a column, and a repeated key is an error.
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?
    } else {
        serde_json::from_value(migrated(value, version)?).map_err(|error| error.to_string())?
    };
    match settings.validate().into_iter().next() {
        None => Ok(settings),
        Some(fault) => Err(fault.to_string()),
    }
}

/// One step for each earlier version. There is none yet.
fn migrated(_value: Value, version: u64) -> Result<Value, String> {
    Err(format!("there never was a version {version} of it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Language;
    use crate::settings::Keep;
    use std::fs;

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        (folder, path)
    }

    #[test]
    fn what_is_saved_is_what_is_loaded() {
        let (_folder, path) = file();
        assert_eq!(Settings::load(&path).unwrap(), Loaded { settings: Settings::default(), set_aside: None });
        let mut settings = Settings { enabled: true, concurrency: Some(3), queue: 7, ..Settings::default() };
        settings.limits.seconds = 0.1;
        settings.images.insert(Language::Go, "golang:1.24".into());
        settings.engine = Some("tcp://127.0.0.1:2375".into());
        settings.history.keep = Keep::Metrics;
        settings.save(&path).unwrap();
        assert_eq!(Settings::load(&path).unwrap(), Loaded { settings, set_aside: None });
    }

    #[test]
    fn a_file_by_hand_may_name_only_what_differs() {
        let (_folder, path) = file();
        fs::write(&path, r#"{"limits": {"seconds": 5}}"#).unwrap();
        let loaded = Settings::load(&path).unwrap();
        assert_eq!(loaded.settings.limits.seconds, 5.0);
        assert_eq!((loaded.settings.limits.cpus, loaded.settings.enabled, loaded.set_aside), (1.0, false, None));
    }

    #[test]
    fn what_cannot_be_understood_is_set_aside_and_turns_the_capability_off() {
        for (content, reason) in [
            (&b""[..], "not valid JSON"),
            (b"\xff\x00garbage", "not valid JSON"),
            (b"{\"enabled\": true", "not valid JSON"),
            (b"[1]", "not a JSON object"),
            (br#"{"version": 2, "enabled": true}"#, "newer Sandtray"),
            (br#"{"version": 0, "enabled": true}"#, "never was"),
            (br#"{"version": "1", "enabled": true}"#, "not a number"),
            (br#"{"enabled": true, "colour": 1}"#, "unknown field `colour`"),
            (br#"{"enabled": true, "enabled": true}"#, "duplicate field"),
            (br#"{"enabled": "yes"}"#, "invalid type"),
            (br#"{"enabled": true, "limits": {"seconds": 0}}"#, "limits.seconds must be from 0.1 to 3600"),
            (br#"{"enabled": true, "images": {"perl": "x"}}"#, "perl"),
        ] {
            let (folder, path) = file();
            fs::write(&path, content).unwrap();
            let loaded = Settings::load(&path).unwrap();
            assert_eq!(loaded.settings, Settings::default());
            let aside = loaded.set_aside.unwrap();
            assert!(aside.reason.contains(reason), "{aside}");
            assert!(aside.to_string().contains("is kept as"));
            assert_eq!(aside.kept_as.parent(), Some(folder.path()));
            assert_eq!(fs::read(&aside.kept_as).unwrap(), content);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_file_too_long_to_be_settings_is_set_aside() {
        let (_folder, path) = file();
        fs::write(&path, vec![b' '; MAX_FILE as usize + 1]).unwrap();
        assert!(Settings::load(&path).unwrap().set_aside.unwrap().reason.contains("longer"));
    }

    #[test]
    fn settings_out_of_bounds_are_not_saved() {
        let (_folder, path) = file();
        let error = Settings { queue: 0, ..Settings::default() }.save(&path).unwrap_err();
        assert_eq!(error.to_string(), "The setting queue must be from 1 to 1024.");
        assert!(!path.exists());
    }
}
