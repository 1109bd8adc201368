//! The web pages that the app can open, with the desktop's own opener and by a fixed address. The window names a page
//! and never an address, and no page opens in the window itself.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;
use tracing::warn;

use crate::dto::error::CommandError;
use crate::dto::trouble::{Link, LinkView};

/// Timeout for the opener. If it still runs by then, it has become the browser or waits for it.
const OPENING: Duration = Duration::from_secs(3);

impl Link {
    pub(crate) fn url(self) -> &'static str {
        match self {
            Self::InstallDocker => "https://docs.docker.com/get-docker/",
            Self::RootlessDocker => "https://docs.docker.com/engine/security/rootless/",
        }
    }

    pub(super) fn view(self, name: &str) -> LinkView {
        LinkView { link: self, name: name.into(), url: self.url().into() }
    }
}

pub(crate) async fn open(link: Link) -> Result<(), CommandError> {
    let refused = |why: String| {
        warn!(why, "a page was not opened");
        CommandError::new("not_opened", "No browser could be opened here.").hint(format!("The page is {}", link.url()))
    };
    let mut child = opener(link.url()).spawn().map_err(|failure| refused(failure.to_string()))?;
    match timeout(OPENING, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(refused(status.to_string())),
        Ok(Err(failure)) => Err(refused(failure.to_string())),
        Err(_) => Ok(()),
    }
}

fn opener(url: &str) -> Command {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Its own process group, so that Ctrl-C in the app's terminal does not end the browser.
    #[cfg(unix)]
    command.process_group(0);
    command
}
