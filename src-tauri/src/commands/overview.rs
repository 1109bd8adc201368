//! The switch, the engine and the images; and the subscription by which the window knows of them.

use sandtray_core::event::Event;
use sandtray_core::language::Language;
use tauri::ipc::Channel;
use tauri::{AppHandle, Manager, State, command};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::{Answer, run_id};
use crate::desk::Desk;
use crate::dto::error::CommandError;
use crate::dto::present;
use crate::dto::snapshot::WindowEvent;
use crate::{picture, window};

/// Everything as it is now, and then each change, until the window goes.
#[command]
pub(crate) async fn subscribe(app: AppHandle, desk: State<'_, Desk>, channel: Channel<WindowEvent>) -> Answer<()> {
    let page = desk.views.begin();
    tauri::async_runtime::spawn(tell_snapshots(app.clone(), channel.clone(), page.clone()));
    tauri::async_runtime::spawn(tell_runs(app.clone(), channel, page));
    window::ready(&app).map_err(|error| CommandError::new("internal", error.to_string()))
}

async fn tell_snapshots(app: AppHandle, channel: Channel<WindowEvent>, page: CancellationToken) {
    let mut snapshots = app.state::<Desk>().snapshots();
    loop {
        let snapshot = Box::new(snapshots.borrow_and_update().clone());
        if channel.send(WindowEvent::Snapshot { snapshot }).is_err() {
            return;
        }
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            () = page.cancelled() => return,
        }
    }
}

async fn tell_runs(app: AppHandle, channel: Channel<WindowEvent>, page: CancellationToken) {
    let mut services = app.state::<Desk>().services();
    loop {
        let here = services.borrow_and_update().clone();
        let told = async {
            let Some(here) = here else { return std::future::pending().await };
            let mut events = here.supervisor.events();
            loop {
                let run = match events.recv().await {
                    Ok(Event::RunFinished { run_id, .. } | Event::RunRefused { run_id, .. }) => run_id,
                    Ok(
                        Event::EnabledChanged { .. }
                        | Event::EngineChanged { .. }
                        | Event::PullProgress { .. }
                        | Event::PullFinished { .. }
                        | Event::PullFailed { .. }
                        | Event::RunQueued { .. }
                        | Event::RunStarted { .. },
                    ) => continue,
                    // The window reads the history anew whenever it shows it.
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return std::future::pending().await,
                };
                let Ok(Some(row)) = here.history.row(run).await else { continue };
                if channel.send(WindowEvent::Finished { run: Box::new(present::row(row)) }).is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = told => return,
            changed = services.changed() => if changed.is_err() { return },
            () = page.cancelled() => return,
        }
    }
}

#[command]
pub(crate) async fn set_enabled(desk: State<'_, Desk>, enabled: bool) -> Answer<()> {
    Ok(desk.here()?.owner.set_enabled(enabled).await?)
}

/// Looks at the engine now; or, where another program is in the way, tries once more to be the service.
#[command]
pub(crate) async fn retry_engine(desk: State<'_, Desk>) -> Answer<()> {
    match desk.here() {
        Ok(here) => here.health.nudge(),
        Err(_) => desk.again.notify_one(),
    }
    Ok(())
}

/// Returns once it has been asked for; how far it is and how it ends is in the snapshots.
#[command]
pub(crate) async fn pull_image(desk: State<'_, Desk>, language: Language) -> Answer<()> {
    let here = desk.here()?;
    // What fails at once is said at once.
    let pull = async move { here.supervisor.pull(language).await };
    let mut pull = tauri::async_runtime::spawn(pull);
    match tokio::time::timeout(picture::COALESCE, &mut pull).await {
        Ok(Ok(ended)) => Ok(ended?),
        Ok(Err(failure)) => Err(CommandError::new("internal", failure.to_string())),
        Err(_) => Ok(()),
    }
}

#[command]
pub(crate) async fn cancel_pull(desk: State<'_, Desk>, language: Language) -> Answer<()> {
    desk.here()?.supervisor.cancel_pull(language).await;
    Ok(())
}

#[command]
pub(crate) async fn remove_image(desk: State<'_, Desk>, language: Language) -> Answer<()> {
    Ok(desk.here()?.supervisor.remove_image(language).await?)
}

/// One that has just ended is stopped enough.
#[command]
pub(crate) async fn stop_run(desk: State<'_, Desk>, run_id: String) -> Answer<()> {
    desk.here()?.supervisor.stop(self::run_id(&run_id)?).await;
    Ok(())
}

#[command]
pub(crate) async fn stop_all(desk: State<'_, Desk>) -> Answer<()> {
    desk.here()?.supervisor.stop_all().await;
    Ok(())
}
