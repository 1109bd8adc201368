//! The paths of settings, history, the socket and the lock. Nothing here reads or writes those files.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use directories::ProjectDirs;
use thiserror::Error;

use crate::disk;

/// Puts everything under one folder: for tests, and for a portable copy.
pub const HOME_VARIABLE: &str = "SANDTRAY_HOME";

/// Bound on a socket path: it fits in a `sockaddr_un` with the NUL that ends it.
const MAX_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Files that the owner may want to edit or copy.
    pub config: PathBuf,
    /// Files that Sandtray keeps.
    pub data: PathBuf,
    /// Files that live only while the service runs.
    pub runtime: PathBuf,
}

#[derive(Debug, Error)]
pub enum PathsError {
    #[error("Sandtray cannot find your home folder; set {HOME_VARIABLE} to a folder that it may use.")]
    NoHome,
    #[error(
        "The path of Sandtray's socket is too long ({length} bytes, at most {MAX_SOCKET_PATH}): {path}. \
         Set {HOME_VARIABLE} to a folder with a shorter path."
    )]
    SocketPathTooLong { path: PathBuf, length: usize },
    #[error("Sandtray cannot use the folder {path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
}

/// The environment as far as it matters. Passed in, so that tests need none.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The value of [`HOME_VARIABLE`].
    pub home_override: Option<OsString>,
    /// The value of `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<OsString>,
    pub user_config: Option<PathBuf>,
    pub user_data: Option<PathBuf>,
}

impl Surroundings {
    pub fn of_process() -> Self {
        let project = ProjectDirs::from("", "", "Sandtray");
        Self {
            home_override: env::var_os(HOME_VARIABLE),
            runtime_dir: if cfg!(target_os = "linux") { env::var_os("XDG_RUNTIME_DIR") } else { None },
            user_config: project.as_ref().map(|dirs| dirs.config_dir().to_owned()),
            user_data: project.as_ref().map(|dirs| dirs.data_local_dir().to_owned()),
        }
    }
}

impl Paths {
    /// The paths of the user who runs this process.
    ///
    /// # Errors
    ///
    /// As for [`Paths::resolve`].
    pub fn of_user() -> Result<Self, PathsError> {
        Self::resolve(&Surroundings::of_process())
    }

    /// The paths for these surroundings. `home_override` puts all of them under one folder.
    ///
    /// # Errors
    ///
    /// If there is no home folder, or the override cannot be made absolute.
    pub fn resolve(surroundings: &Surroundings) -> Result<Self, PathsError> {
        if let Some(root) = surroundings.home_override.as_ref().filter(|root| !root.is_empty()) {
            let root = PathBuf::from(root);
            return std::path::absolute(&root)
                .map(|root| Self::under(&root))
                .map_err(|source| PathsError::Folder { path: root, source });
        }
        let (Some(config), Some(data)) = (&surroundings.user_config, &surroundings.user_data) else {
            return Err(PathsError::NoHome);
        };
        let runtime = match &surroundings.runtime_dir {
            // If it is set but missing (after `su`, for example), only root can make it.
            Some(folder) if Path::new(folder).is_absolute() && Path::new(folder).is_dir() => {
                Path::new(folder).join("sandtray")
            }
            Some(_) | None => data.join("run"),
        };
        Ok(Self { config: config.clone(), data: data.clone(), runtime })
    }

    /// All paths under one folder.
    pub fn under(root: &Path) -> Self {
        Self { config: root.join("config"), data: root.join("data"), runtime: root.join("run") }
    }

    pub fn settings_file(&self) -> PathBuf {
        self.config.join("settings.json")
    }

    pub fn history_file(&self) -> PathBuf {
        self.data.join("history.sqlite")
    }

    /// The record of images that the app has pulled.
    pub fn fetched_file(&self) -> PathBuf {
        self.data.join("fetched.json")
    }

    /// Locked by the one service of this data folder, as long as it runs.
    pub fn lock_file(&self) -> PathBuf {
        self.data.join("service.lock")
    }

    /// The id of the process that holds the lock. A separate file, because Windows does not allow a locked one to be
    /// read.
    pub fn pid_file(&self) -> PathBuf {
        self.data.join("service.pid")
    }

    /// Exists once the owner was told that the service goes on when the app's window is closed.
    pub fn told_of_closing_file(&self) -> PathBuf {
        self.data.join("told-of-closing")
    }

    /// The data folder's own id.
    pub fn home_file(&self) -> PathBuf {
        self.data.join("home-id")
    }

    /// The address for agents: a socket, or on Windows the name of a pipe.
    ///
    /// # Errors
    ///
    /// If the path is too long for a socket.
    pub fn socket_file(&self) -> Result<PathBuf, PathsError> {
        self.local_socket("agent", "")
    }

    /// The address at which a second start of the app finds the first.
    ///
    /// # Errors
    ///
    /// If the path is too long for a socket.
    pub fn app_socket_file(&self) -> Result<PathBuf, PathsError> {
        self.local_socket("app", "-app")
    }

    fn local_socket(&self, file: &str, pipe: &str) -> Result<PathBuf, PathsError> {
        if cfg!(windows) {
            return Ok(self.pipe_name(pipe));
        }
        let path = self.runtime.join(format!("{file}.sock"));
        let length = path.as_os_str().len();
        if length > MAX_SOCKET_PATH {
            return Err(PathsError::SocketPathTooLong { path, length });
        }
        Ok(path)
    }

    /// Makes the folders, and closes each to everyone but the owner.
    ///
    /// # Errors
    ///
    /// If a folder cannot be made or closed.
    pub fn ensure(&self) -> Result<(), PathsError> {
        for folder in [&self.config, &self.data, &self.runtime] {
            disk::private_folder(folder).map_err(|source| PathsError::Folder { path: folder.clone(), source })?;
        }
        Ok(())
    }

    /// The name of a pipe. All pipes share one namespace, so it carries a hash of the folder that owns it.
    fn pipe_name(&self, suffix: &str) -> PathBuf {
        use sha2::{Digest, Sha256};
        let hash = Sha256::digest(self.runtime.as_os_str().as_encoded_bytes());
        let short: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        PathBuf::from(format!(r"\\.\pipe\sandtray-{short}{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Surroundings {
        Surroundings {
            user_config: Some("/home/ada/.config/sandtray".into()),
            user_data: Some("/home/ada/.local/share/sandtray".into()),
            ..Surroundings::default()
        }
    }

    #[test]
    fn the_socket_lies_in_the_runtime_folder_of_the_session() {
        let session = tempfile::tempdir().unwrap();
        let surroundings = Surroundings { runtime_dir: Some(session.path().into()), ..user() };
        let paths = Paths::resolve(&surroundings).unwrap();
        assert_eq!(paths.socket_file().unwrap(), session.path().join("sandtray/agent.sock"));
        assert_eq!(paths.settings_file(), Path::new("/home/ada/.config/sandtray/settings.json"));
        assert_eq!(paths.history_file(), Path::new("/home/ada/.local/share/sandtray/history.sqlite"));
    }

    #[test]
    fn without_a_usable_runtime_folder_the_data_folder_serves() {
        for folder in [None, Some("".into()), Some("relative".into()), Some("/no/such/folder".into())] {
            let paths = Paths::resolve(&Surroundings { runtime_dir: folder, ..user() }).unwrap();
            assert_eq!(paths.runtime, Path::new("/home/ada/.local/share/sandtray/run"));
        }
    }

    #[test]
    fn the_override_puts_everything_under_one_folder() {
        let surroundings = Surroundings { home_override: Some("/tmp/x".into()), ..user() };
        assert_eq!(Paths::resolve(&surroundings).unwrap(), Paths::under(Path::new("/tmp/x")));
        let empty = Surroundings { home_override: Some("".into()), ..user() };
        assert_eq!(Paths::resolve(&empty).unwrap(), Paths::resolve(&user()).unwrap());
        let relative = Surroundings { home_override: Some("here".into()), ..Surroundings::default() };
        assert!(Paths::resolve(&relative).unwrap().data.is_absolute());
    }

    #[test]
    fn without_a_home_the_error_says_what_to_do() {
        let error = Paths::resolve(&Surroundings::default()).unwrap_err();
        assert!(error.to_string().contains(HOME_VARIABLE), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_path_that_does_not_fit_is_named() {
        let root = Path::new("/").join("x".repeat(120));
        let error = Paths::under(&root).socket_file().unwrap_err().to_string();
        assert!(error.contains(&format!("{}/run/agent.sock", root.display())), "{error}");
        let fitting = Path::new("/").join("x".repeat(MAX_SOCKET_PATH - "//run/agent.sock".len()));
        assert_eq!(Paths::under(&fitting).socket_file().unwrap().as_os_str().len(), MAX_SOCKET_PATH);
    }

    #[cfg(unix)]
    #[test]
    fn folders_are_made_private() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::under(&root.path().join("deep/er"));
        paths.ensure().unwrap();
        paths.ensure().unwrap();
        for folder in [&paths.config, &paths.data, &paths.runtime] {
            assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }
}
