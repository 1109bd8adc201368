//! One service per data folder: the lock that ensures it, and the two ids that its containers carry.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use thiserror::Error;
use uuid::Uuid;

use crate::disk;
use crate::engine::InstanceId;
use crate::paths::Paths;

/// Hex digits of each id.
const ID_LENGTH: usize = 12;

/// Bound on the two small files beside the lock, and on the machine's id.
const MAX_SMALL_FILE: u64 = 64;

/// Files in which Linux keeps the machine's id, the older place last. Other systems have no such file.
const MACHINE_IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// The lock on a data folder. The system releases it with the process, however that ends.
#[derive(Debug)]
pub struct Instance {
    id: InstanceId,
    // Held, never read: closing the file releases the lock.
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
    /// Takes the lock. The folders must exist: see [`Paths::ensure`].
    ///
    /// # Errors
    ///
    /// If another service holds the lock, or the files beside it cannot be read or written.
    pub fn acquire(paths: &Paths) -> Result<Self, InstanceError> {
        let lock = lock(paths)?;
        tell_process(paths);
        let kept = home_id(paths)?;
        let home = label(&kept, &paths.data, machine_id().as_deref()).map_err(at(paths.data.clone()))?;
        Ok(Self { id: InstanceId { home, boot: fresh_id() }, _lock: lock })
    }

    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// The `home` of this data folder's containers, whether or not a service runs there. `None` before its first start.
    pub fn home_of(paths: &Paths) -> Option<String> {
        let kept = parse_id(&disk::read_bounded(&paths.home_file(), MAX_SMALL_FILE).ok()??)?;
        label(&kept, &paths.data, machine_id().as_deref()).ok()
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

/// Writes the process id. The service starts on a full disk too; the old file is then removed, so that it does not name
/// another process.
fn tell_process(paths: &Paths) {
    let pid = paths.pid_file();
    if let Err(error) = disk::write_atomically(&pid, std::process::id().to_string().as_bytes()) {
        tracing::warn!(%error, "{} could not be written", pid.display());
        let _ = std::fs::remove_file(&pid);
    }
}

/// The process that holds the lock, for the error message only.
fn holder(paths: &Paths) -> Option<u32> {
    let bytes = disk::read_bounded(&paths.pid_file(), MAX_SMALL_FILE).ok()??;
    std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
}

/// Read under the lock, so that two starts cannot each make one. With a new id, the containers of the old id are no
/// longer this folder's.
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

/// The label for the containers of a data folder. A copied folder has the same id, so the path and the machine's id are
/// hashed too: two services with the same label would remove each other's containers. Fails if the folder does not
/// exist.
fn label(home_id: &str, folder: &Path, machine_id: Option<&[u8]>) -> io::Result<String> {
    let place = folder.canonicalize()?;
    let mut hash = Sha256::new();
    for part in [home_id.as_bytes(), place.as_os_str().as_encoded_bytes(), machine_id.unwrap_or_default()] {
        // The length comes first, so that two different lists of parts never give the same bytes.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Ok(hash.finalize().iter().take(ID_LENGTH / 2).map(|byte| format!("{byte:02x}")).collect())
}

/// `None` if the system has none, or does not tell it.
fn machine_id() -> Option<Vec<u8>> {
    MACHINE_IDS.iter().find_map(|path| disk::read_bounded(Path::new(path), MAX_SMALL_FILE).ok()?)
}

fn parse_id(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == ID_LENGTH && text.bytes().all(hex)).then(|| text.to_owned())
}

/// The first twelve digits of a v4 UUID are all random; the version is the thirteenth.
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

    /// As on a full disk.
    #[test]
    fn a_service_starts_where_its_process_id_cannot_be_written() {
        let (_root, paths) = folder();
        let first = Instance::acquire(&paths).unwrap().id().home.clone();
        std::fs::remove_file(paths.pid_file()).unwrap();
        std::fs::create_dir(paths.pid_file()).unwrap();
        let second = Instance::acquire(&paths).unwrap();
        assert_eq!(second.id().home, first);
        let error = Instance::acquire(&paths).unwrap_err();
        assert_eq!(error.to_string(), "Sandtray is running already.");
    }

    #[test]
    fn the_home_id_stays_and_the_boot_id_changes() {
        let (_root, paths) = folder();
        let first = Instance::acquire(&paths).unwrap().id().clone();
        let second = Instance::acquire(&paths).unwrap().id().clone();
        assert_eq!(first.home, second.home);
        assert_ne!(first.boot, second.boot);
        assert_eq!(first.home.len(), ID_LENGTH);
        assert_eq!(Instance::home_of(&paths), Some(first.home.clone()));
        assert_eq!(InstanceId::parse(&first.to_string()), Some(first));
    }

    #[test]
    fn a_copy_of_the_data_folder_is_another_instance_and_a_link_to_it_is_not() {
        let (_root, paths) = folder();
        let first = Instance::acquire(&paths).unwrap().id().home.clone();
        let (copy_root, copy) = folder();
        std::fs::copy(paths.home_file(), copy.home_file()).unwrap();
        assert_ne!(Instance::acquire(&copy).unwrap().id().home, first);
        assert_eq!(std::fs::read(copy.home_file()).unwrap(), std::fs::read(paths.home_file()).unwrap());
        #[cfg(unix)]
        {
            let link = copy_root.path().join("link");
            std::os::unix::fs::symlink(paths.data.parent().unwrap(), &link).unwrap();
            assert_eq!(Instance::acquire(&Paths::under(&link)).unwrap().id().home, first);
        }
    }

    #[test]
    fn each_part_of_the_label_tells_two_instances_apart() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of =
            |id: &str, folder: &tempfile::TempDir, machine: Option<&[u8]>| label(id, folder.path(), machine).unwrap();
        let labels = [
            of("aa", &one, Some(b"m")),
            of("bb", &one, Some(b"m")),
            of("aa", &two, Some(b"m")),
            of("aa", &one, Some(b"n")),
            of("aa", &one, None),
        ];
        assert!(labels.iter().all(|label| parse_id(label.as_bytes()).as_ref() == Some(label)), "{labels:?}");
        assert_eq!(std::collections::HashSet::from(labels).len(), 5);
        assert!(label("aa", &one.path().join("none"), None).is_err());
    }

    #[test]
    fn a_damaged_home_id_is_kept_and_replaced() {
        let (_root, paths) = folder();
        std::fs::write(paths.home_file(), b"not\xff an id").unwrap();
        Instance::acquire(&paths).unwrap();
        assert!(parse_id(&std::fs::read(paths.home_file()).unwrap()).is_some());
        let kept = std::fs::read_dir(&paths.data)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("home-id.damaged-"))
            .count();
        assert_eq!(kept, 1);
    }
}
