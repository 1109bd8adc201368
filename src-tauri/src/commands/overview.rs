//! The switch, the engine and the images, and the window's subscription to their state.

use std::sync::Arc;

use sandtray_core::event::{Event, ImageState};
use sandtray_core::language::Language;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::{Answer, run_id};
use crate::app::App;
use crate::dto::error::CommandError;
use crate::dto::present;
use crate::dto::snapshot::WindowEvent;
use crate::window::{Channel, Page};

/// Sends the current snapshot and then each change, until the window ends.
pub(super) async fn subscribe(app: &Arc<App>, page: &Page, channel: Channel) -> Answer<()> {
    let over = app.desk.views.begin();
    let telling = Arc::clone(app);
    let said = app.desk.said();
    app.spawn(async move {
        // Each ends when the window stops listening.
        tokio::select! {
            () = tell_snapshots(&telling, &channel, &over) => {}
            () = tell_runs(&telling, &channel, &over) => {}
            () = tell_said(said, &channel, &over) => {}
        }
        channel.end().await;
    });
    Ok(page.subscribed().await?)
}

async fn tell_snapshots(app: &App, channel: &Channel, over: &CancellationToken) {
    let mut snapshots = app.desk.snapshots();
    loop {
        let snapshot = Box::new(snapshots.borrow_and_update().clone());
        if channel.send(&WindowEvent::Snapshot { snapshot }).await.is_err() {
            return;
        }
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            () = over.cancelled() => return,
        }
    }
}

async fn tell_said(mut said: Receiver<WindowEvent>, channel: &Channel, over: &CancellationToken) {
    loop {
        let event = tokio::select! {
            event = said.recv() => event,
            () = over.cancelled() => return,
        };
        match event {
            Ok(event) => {
                if channel.send(&event).await.is_err() {
                    return;
                }
            }
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

async fn tell_runs(app: &App, channel: &Channel, over: &CancellationToken) {
    let mut services = app.desk.services();
    loop {
        let here = services.borrow_and_update().clone();
        let told = async {
            let Some(here) = here else { return std::future::pending().await };
            let mut events = here.supervisor.events();
            loop {
                let run = match events.recv().await {
                    Ok(
                        Event::RunFinished { run_id, .. }
                        | Event::RunCutOff { run_id, .. }
                        | Event::RunRefused { run_id, .. },
                    ) => run_id,
                    Ok(
                        Event::EnabledChanged { .. }
                        | Event::EngineChanged { .. }
                        | Event::PullProgress { .. }
                        | Event::PullFinished { .. }
                        | Event::PullFailed { .. }
                        | Event::RunQueued { .. }
                        | Event::RunStarted { .. },
                    ) => continue,
                    // The window reloads the history whenever it shows it.
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => return std::future::pending().await,
                };
                let Ok(Some(row)) = here.history.row(run).await else { continue };
                if channel.send(&WindowEvent::Finished { run: Box::new(present::row(row)) }).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = told => return,
            changed = services.changed() => if changed.is_err() { return },
            () = over.cancelled() => return,
        }
    }
}

pub(super) async fn set_enabled(app: &App, enabled: bool) -> Answer<()> {
    Ok(app.desk.here()?.owner.set_enabled(enabled).await?)
}

/// Checks the engine now. If the service could not start, retries the start.
pub(super) fn retry_engine(app: &App) {
    match app.desk.here() {
        Ok(here) => here.health.nudge(),
        Err(_) => app.desk.again.notify_one(),
    }
}

/// Starts a pull. Its progress and end are in the snapshots.
pub(super) async fn pull_image(app: &App, language: Language) -> Answer<()> {
    let here = app.desk.here()?;
    here.supervisor.start_pull(language).await?;
    Ok(())
}

pub(super) async fn cancel_pull(app: &App, language: Language) -> Answer<()> {
    app.desk.here()?.supervisor.cancel_pull(language).await;
    Ok(())
}

pub(super) async fn remove_image(app: &App, language: Language) -> Answer<()> {
    Ok(app.desk.here()?.supervisor.remove_image(language).await?)
}

/// Pins runs to the version of the image that is here, or returns to the image's tag.
pub(super) async fn pin_image(app: &App, language: Language, pinned: bool) -> Answer<()> {
    let here = app.desk.here()?;
    let mut settings = here.owner.settings();
    if pinned {
        let images = here.supervisor.snapshot().images;
        let digest = images.into_iter().find(|image| image.language == language).and_then(|image| digest(image.state));
        settings.pin(language, &digest.ok_or_else(no_digest)?);
    } else {
        settings.unpin(language);
    }
    here.owner.apply(settings).await?;
    Ok(())
}

fn digest(state: ImageState) -> Option<String> {
    match state {
        ImageState::Ready(info) | ImageState::Unprepared(info) => info.digest,
        ImageState::Unknown | ImageState::NotPulled | ImageState::Pulling(_) | ImageState::Failed { .. } => None,
    }
}

fn no_digest() -> CommandError {
    CommandError::new("no_digest", "The engine doesn't know the fingerprint of this image.")
        .hint("Only an image that came from a registry has one. Pull it first.")
}

/// Stops a run. A run that has just ended is not an error.
pub(super) async fn stop_run(app: &App, run: &str) -> Answer<()> {
    app.desk.here()?.supervisor.stop(run_id(run)?).await;
    Ok(())
}

pub(super) async fn stop_all(app: &App) -> Answer<()> {
    app.desk.here()?.supervisor.stop_all().await;
    Ok(())
}
