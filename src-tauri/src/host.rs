//! The app's lifecycle from its start to Quit: starts the service, keeps the snapshot up to date, and shuts down.

use std::sync::Arc;
use std::time::Duration;

use sandtray_core::instance::InstanceError;
use sandtray_core::paths::Paths;
use sandtray_core::service::{self, Options, Service, StartError};
use tokio::task::JoinSet;
use tracing::error;

use crate::app::App;
use crate::dto::snapshot::{OwnerSnapshot, ServiceView};
use crate::link::VERSION;
use crate::notify::notice::Notice;
use crate::{notify, picture, window};

/// Retry interval of the start while another program runs the service. An attempt is one try for a lock.
const LOOK: Duration = Duration::from_secs(1);
const TAKEN_OVER: &str = "The program that ran Sandtray before has ended. This app runs it now.";
/// Timeout for the service's shutdown, whatever the engine does. The next start sweeps what is left.
const QUIT_LIMIT: Duration = Duration::from_secs(5);
/// Timeout for the app's tasks at the end. The window takes two seconds at most; the rest ends with the process.
const LAST_TASKS: Duration = Duration::from_secs(3);

/// The snapshot before the service has started.
pub(crate) fn blank() -> OwnerSnapshot {
    OwnerSnapshot {
        version: VERSION.into(),
        first_start: false,
        service: ServiceView::Starting,
        enabled: false,
        engine: crate::dto::snapshot::EngineView::Checking,
        warm: None,
        images: Vec::new(),
        running: Vec::new(),
        queued: Vec::new(),
        turned_on_ms: None,
        history_trouble: None,
        notices: Vec::new(),
        socket: String::new(),
        visits: 0,
    }
}

/// Runs the service until the app quits.
pub(crate) async fn run(app: &Arc<App>) {
    let desk = &app.desk;
    // The state of the last failed attempt.
    let mut was: Option<ServiceView> = None;
    while !desk.quit.is_cancelled() {
        match start().await {
            Ok((service, first_start)) => {
                let takes_over = matches!(was.take(), Some(ServiceView::Elsewhere { .. }));
                serve(app, service, first_start, takes_over).await;
            }
            Err(failure) => {
                let state = state_of(&failure);
                desk.publish_state(state.clone());
                if was.as_ref() != Some(&state) {
                    error!(%failure, "the service did not start");
                }
                if was.is_none() {
                    // Nothing runs, so only the window can report it.
                    open_unasked(app);
                }
                let looks = matches!(state, ServiceView::Elsewhere { .. });
                was = Some(state);
                tokio::select! {
                    () = desk.again.notified() => desk.publish_state(ServiceView::Starting),
                    () = tokio::time::sleep(LOOK), if looks => {}
                    () = desk.quit.cancelled() => {}
                }
            }
        }
    }
    // The window, and the tasks that it waits for.
    if tokio::time::timeout(LAST_TASKS, app.ended()).await.is_err() {
        error!("a part of the app did not end in time");
    }
    app.gatekeeper.close().await;
}

/// Opens the window, unless the app was started at login.
fn open_unasked(app: &Arc<App>) {
    if !app.quiet {
        window::open(app, None, app.take_leave());
    }
}

async fn start() -> Result<(Service, bool), StartError> {
    let paths = Paths::of_user()?;
    let first_start = !paths.settings_file().exists();
    let service = service::start(Options { paths, enable: false, socket: None }).await?;
    if first_start {
        // Written so that the next start is not the first. If that fails, the greeting is shown again.
        if let Err(failure) = service.owner.apply(service.owner.settings()).await {
            error!(%failure, "the settings were not saved");
        }
    }
    Ok((service, first_start))
}

async fn serve(app: &Arc<App>, mut service: Service, first_start: bool, takes_over: bool) {
    let desk = &app.desk;
    if takes_over {
        service.notices.push(TAKEN_OVER.into());
    }
    let here = desk.open(&service);
    let over = desk.quit.child_token();
    let mut parts = JoinSet::new();
    parts.spawn(picture::keep(Arc::clone(app), Arc::clone(&here), first_start, over.clone()));
    parts.spawn(notify::watch(Arc::clone(app), here, over));
    if takes_over {
        notify::tell(app, Notice::TookOver);
    } else {
        open_unasked(app);
    }
    desk.quit.cancelled().await;
    desk.close();
    desk.views.end();
    while let Some(ended) = parts.join_next().await {
        if let Err(failure) = ended {
            error!(%failure, "a part of the app failed");
        }
    }
    if tokio::time::timeout(QUIT_LIMIT, service.shutdown()).await.is_err() {
        error!("the engine did not let go in time; the next start removes what is left");
    }
}

pub(crate) fn state_of(failure: &StartError) -> ServiceView {
    let message = failure.to_string();
    match failure {
        StartError::Instance(InstanceError::AlreadyRunning { .. }) => ServiceView::Elsewhere {
            message,
            hint: "That program, perhaps `sandtray serve` in a terminal, answers agents. When it ends, this app takes over \
                   by itself."
                .into(),
        },
        StartError::Paths(_)
        | StartError::Instance(InstanceError::File { .. })
        | StartError::Settings(_)
        | StartError::History(_)
        | StartError::Bind(_) => ServiceView::Failed { message, hint: "Mend that and choose Retry.".into() },
    }
}
