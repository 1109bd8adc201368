//! The owner's settings, applied at once.

use std::num::NonZero;
use std::thread::available_parallelism;

use sandtray_core::engine::EngineState;
use sandtray_core::settings::{Fault, Settings};

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
    if before.limits.cpus != settings.limits.cpus
        && let Some(fault) = too_many_cpus(settings.limits.cpus, &here.supervisor.snapshot().engine)
    {
        return Err(CommandError::of_faults(vec![fault]));
    }
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

/// An engine refuses a container that is to have more processors than there are, or gives it fewer than were promised. Only a figure
/// that the owner has just written is refused: a file that was right on another computer stays as it is.
fn too_many_cpus(wanted: f64, engine: &EngineState) -> Option<Fault> {
    let (most, has) = match engine {
        EngineState::Ready(info) => (info.cpus, info.name.clone()),
        EngineState::Checking | EngineState::Trouble(_) => {
            let cores = available_parallelism().map_or(1, NonZero::get);
            (u32::try_from(cores).unwrap_or(u32::MAX), "this computer".into())
        }
    };
    // An engine that does not say how many it has is asked to make the container, and refuses it itself.
    (most > 0 && wanted > f64::from(most)).then(|| Fault {
        field: "limits.cpus".into(),
        with: None,
        message: format!("can be at most {most}: {has} has no more processors"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::engine::{Endpoint, EngineInfo};

    fn of(cpus: u32) -> EngineState {
        EngineState::Ready(EngineInfo {
            name: "Docker".into(),
            version: String::new(),
            api_version: String::new(),
            endpoint: Endpoint { url: "unix:///x".into(), found: "a test".into() },
            os: String::new(),
            arch: String::new(),
            cpus,
            memory_bytes: 1,
            fingerprint: String::new(),
        })
    }

    #[test]
    fn no_more_processors_than_the_engine_has() {
        let said = |wanted, cpus| too_many_cpus(wanted, &of(cpus)).map(|fault| fault.to_string());
        assert_eq!(said(2.5, 2).as_deref(), Some("limits.cpus can be at most 2: Docker has no more processors"));
        assert_eq!((said(2.0, 2), said(0.5, 1), said(64.0, 0)), (None, None, None));
    }

    #[test]
    fn without_an_engine_this_computer_is_the_bound() {
        let here = available_parallelism().unwrap().get() as f64;
        assert_eq!(too_many_cpus(here, &EngineState::Checking), None);
        assert!(too_many_cpus(here + 1.0, &EngineState::Checking).is_some());
    }
}
