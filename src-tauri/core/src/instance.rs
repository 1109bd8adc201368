//! One service per data folder: the lock that says so, and the two ids that its containers carry.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use thiserror::Error;
use uuid::Uuid;

use crate::disk;
use crate::engine::InstanceId;
use crate::paths::Paths;

/// Hex digits of each id.
const ID_LENGTH: usize = 12;

/// Bound of the two small files beside the lock.
const MAX_SMALL_FILE: u64 = 64;

/// The right to be the service of a data folder. The system ends it with the process, however that ends.
#[derive(Debug)]
pub struct Instance {
    id: InstanceId,
    // Held, never read: closing it gives the lock up.
    _lock: File,
}

#[derive(Debug, Error)]
pub enum InstanceError {
    #[error("Sandtray is running already{}.", holder.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    AlreadyRunning { holder: Option<u32> },
    #[error("Sandtray cannot use {path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

impl Instance {
    /// The folders must exist: see [`Paths::ensure`].
    pub fn acquire(paths: &Paths) -> Result<Self, InstanceError> {
        let lock = lock(paths)?;
        let pid = paths.pid_file();
        disk::write_atomically(&pid, std::process::id().to_string().as_bytes()).map_err(at(pid))?;
        let home = home_id(paths)?;
        Ok(Self { id: InstanceId { home, boot: fresh_id() }, _lock: lock })
    }

    pub fn id(&self) -> &InstanceId {
        &self.id
    }
}

fn lock(paths: &Paths) -> Result<File, InstanceError> {
    let path = paths.lock_file();
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(at(path.clone()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(InstanceError::AlreadyRunning { holder: holder(paths) }),
        Err(TryLockError::Error(source)) => Err(InstanceError::File { path, source }),
    }
}

/// A courtesy for the message; the lock alone decides.
fn holder(paths: &Paths) -> Option<u32> {
    let bytes = disk::read_bounded(&paths.pid_file(), MAX_SMALL_FILE).ok()??;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// Read under the lock, so two starts cannot each make one. A new id disowns the containers of the old one.
fn home_id(paths: &Paths) -> Result<String, InstanceError> {
    let path = paths.home_file();
    match disk::read_bounded(&path, MAX_SMALL_FILE) {
        Ok(Some(bytes)) => {
            if let Some(id) = parse_id(&bytes) {
                return Ok(id);
            }
            let kept = disk::set_aside("home id", &path, &[], "it holds no id".into(), SystemTime::now());
            tracing::warn!("{}", kept.map_err(at(path.clone()))?);
        }
        Ok(None) => {}
        Err(source) => return Err(InstanceError::File { path, source }),
    }
    let id = fresh_id();
    disk::write_atomically(&path, id.as_bytes()).map_err(at(path))?;
    Ok(id)
}

fn parse_id(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == ID_LENGTH && text.bytes().all(hex)).then(|| text.to_owned())
}

/// The first twelve digits of a v4 UUID are all random; its version comes thirteenth.
fn fresh_id() -> String {
    let mut id = Uuid::new_v4().simple().to_string();
    id.truncate(ID_LENGTH);
    id
}

fn at(path: PathBuf) -> impl FnOnce(io::Error) -> InstanceError {
    move |source| InstanceError::File { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Paths) {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::under(root.path());
        paths.ensure().unwrap();
        (root, paths)
    }

    #[test]
    fn a_second_service_is_refused_and_told_who_is_there() {
        let (_root, paths) = folder();
        let first = Instance::acquire(&paths).unwrap();
        let error = Instance::acquire(&paths).unwrap_err();
        assert_eq!(error.to_string(), format!("Sandtray is running already (process {}).", std::process::id()));
        drop(first);
        Instance::acquire(&paths).unwrap();
    }

    #[test]
    fn the_home_id_stays_and_the_boot_id_changes() {
        let (_root, paths) = folder();
        let first = Instance::acquire(&paths).unwrap().id().clone();
        let second = Instance::acquire(&paths).unwrap().id().clone();
        assert_eq!(first.home, second.home);
        assert_ne!(first.boot, second.boot);
        assert_eq!(first.home.len(), ID_LENGTH);
        assert_eq!(InstanceId::parse(&first.to_string()), Some(first));
    }

    #[test]
    fn a_damaged_home_id_is_kept_and_replaced() {
        let (_root, paths) = folder();
        std::fs::write(paths.home_file(), b"not\xff an id").unwrap();
        let id = Instance::acquire(&paths).unwrap().id().home.clone();
        assert_eq!(std::fs::read(paths.home_file()).unwrap(), id.as_bytes());
        let kept = std::fs::read_dir(&paths.data)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("home-id.damaged-"))
            .count();
        assert_eq!(kept, 1);
    }
}
