//! The owner's settings, applied at once.

use sandtray_core::settings::Settings;

use super::Answer;
use crate::app::App;
use crate::dto::error::CommandError;
use crate::login;

pub(super) fn settings(app: &App) -> Answer<Settings> {
    Ok(app.desk.here()?.owner.settings())
}

/// All of them or none: a setting that is out of its bounds is named, and nothing changes.
pub(super) async fn apply_settings(app: &App, settings: Settings) -> Answer<Settings> {
    let here = app.desk.here()?;
    let faults = settings.validate();
    if !faults.is_empty() {
        return Err(CommandError::of_faults(faults));
    }
    let before = here.owner.settings();
    if before.start_at_login != settings.start_at_login {
        start_at_login(settings.start_at_login)?;
    }
    let applied = here.owner.apply(settings).await?;
    if before.theme != applied.theme {
        app.window.apply_theme(applied.theme);
    }
    Ok(applied)
}

/// Before the settings are saved, so that they never claim what the system refused.
fn start_at_login(wanted: bool) -> Answer<()> {
    login::set(wanted).map_err(|failure| CommandError {
        field: Some("start_at_login".into()),
        ..CommandError::new("start_at_login", format!("The system did not take it: {failure}."))
    })
}
