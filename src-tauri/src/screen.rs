//! Watches the display that the app was started on. The app draws nothing there, but quits when the display goes, as a
//! program with a window would. So after a logout no code runs for agents, and the next login finds no old app.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tracing::info;
use x11rb::connection::Connection;
use x11rb::rust_connection::RustConnection;

use crate::app::App;

/// A connection to the display.
#[derive(Debug)]
pub(crate) enum Screen {
    Wayland(UnixStream),
    X11(Box<RustConnection>),
}

/// The display's names in the environment.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) wayland: Option<OsString>,
    pub(crate) runtime_folder: Option<OsString>,
    pub(crate) x11: Option<OsString>,
}

impl Named {
    pub(crate) fn by_environment() -> Self {
        let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self { wayland: value("WAYLAND_DISPLAY"), runtime_folder: value("XDG_RUNTIME_DIR"), x11: value("DISPLAY") }
    }
}

impl Screen {
    /// Connects to Wayland, or else to X11: if both are named, X11 runs inside Wayland.
    ///
    /// # Errors
    ///
    /// A sentence for the user who started the app.
    pub(crate) async fn connect(named: Named) -> Result<Self, String> {
        if let Some(name) = named.wayland {
            let path: PathBuf = named.runtime_folder.iter().map(PathBuf::from).chain([name.into()]).collect();
            match UnixStream::connect(&path).await {
                Ok(stream) => return Ok(Self::Wayland(stream)),
                Err(failure) if named.x11.is_none() => {
                    return Err(format!("the screen at {} cannot be reached: {failure}.", path.display()));
                }
                Err(failure) => info!(%failure, "no screen of Wayland; X11 is tried"),
            }
        }
        let Some(name) = named.x11 else {
            return Err("there is no desktop to show itself on. `sandtray serve` is the service without one.".into());
        };
        let name = name.to_string_lossy().into_owned();
        let failed = |failure: String| format!("the screen {name} cannot be reached: {failure}.");
        let connecting = name.clone();
        let connected = tokio::task::spawn_blocking(move || RustConnection::connect(Some(&connecting)));
        match connected.await {
            Ok(Ok((connection, _))) => Ok(Self::X11(Box::new(connection))),
            Ok(Err(failure)) => Err(failed(failure.to_string())),
            Err(failure) => Err(failed(failure.to_string())),
        }
    }

    /// Resolves when the connection ends.
    async fn gone(self) {
        match self {
            Self::Wayland(mut stream) => {
                // The app requested nothing, so events have no meaning and are dropped.
                let mut ignored = [0; 256];
                while stream.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
            }
            Self::X11(connection) => {
                let (end, ended) = oneshot::channel::<()>();
                // A separate thread, because this blocks. It lives as long as the display or the app.
                let watching = thread::Builder::new().name("screen".into()).spawn(move || {
                    while connection.wait_for_event().is_ok() {}
                    drop(end);
                });
                if watching.is_ok() {
                    let _gone = ended.await;
                } else {
                    std::future::pending().await
                }
            }
        }
    }
}

/// Quits the app when the display is gone.
pub(crate) async fn watch(app: Arc<App>, screen: Screen) {
    tokio::select! {
        () = screen.gone() => {
            info!("the screen has gone");
            app.desk.quit.cancel();
        }
        () = app.desk.quit.cancelled() => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixListener;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_screen_that_goes_away_is_noticed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let compositor = UnixListener::bind(folder.path().join("wayland-7"))?;
        let named = Named {
            wayland: Some("wayland-7".into()),
            runtime_folder: Some(folder.path().into()),
            x11: Some(":no such screen".into()),
        };
        let screen = Screen::connect(named).await.unwrap();
        let (mut seen_from_there, _) = compositor.accept().await?;
        let mut gone = std::pin::pin!(screen.gone());
        // Events in between have no effect.
        seen_from_there.write_all(b"an event").await?;
        assert!(timeout(Duration::from_millis(50), &mut gone).await.is_err());
        drop(seen_from_there);
        gone.await;
        Ok(())
    }

    #[tokio::test]
    async fn without_a_screen_it_says_what_to_do() {
        let refusal = Screen::connect(Named::default()).await.unwrap_err();
        assert!(refusal.contains("sandtray serve"), "{refusal}");
        let named = Named { x11: Some(":no such screen".into()), ..Named::default() };
        let refusal = Screen::connect(named).await.unwrap_err();
        assert!(refusal.starts_with("the screen :no such screen cannot be reached"), "{refusal}");
    }
}
