//! The owner's settings, applied at once.

use sandtray_core::settings::Settings;
use tauri::{AppHandle, State, command};
use tracing::warn;

use super::Answer;
use crate::desk::Desk;
use crate::dto::error::CommandError;
use crate::{login, window};

#[command]
pub(crate) async fn settings(desk: State<'_, Desk>) -> Answer<Settings> {
    Ok(desk.here()?.owner.settings())
}

/// All of them or none: a setting that is out of its bounds is named, and nothing changes.
#[command]
pub(crate) async fn apply_settings(app: AppHandle, desk: State<'_, Desk>, settings: Settings) -> Answer<Settings> {
    let here = desk.here()?;
    let faults = settings.validate();
    if !faults.is_empty() {
        return Err(CommandError::of_faults(faults));
    }
    let before = here.owner.settings();
    if before.start_at_login != settings.start_at_login {
        start_at_login(&app, settings.start_at_login)?;
    }
    let applied = here.owner.apply(settings).await?;
    if before.theme != applied.theme
        && let Err(failure) = window::apply_theme(&app, applied.theme)
    {
        warn!(%failure, "the window kept its colours");
    }
    Ok(applied)
}

/// Before the settings are saved, so that they never claim what the system refused.
fn start_at_login(app: &AppHandle, wanted: bool) -> Answer<()> {
    login::set(app, wanted).map_err(|failure| CommandError {
        field: Some("start_at_login".into()),
        ..CommandError::new("start_at_login", format!("The system did not take it: {failure}."))
    })
}
