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

/// Applies all settings or none: if one is out of its bounds, the error names it and nothing changes.
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

/// Called before the settings are saved, so that they never claim what the system refused.
fn start_at_login(wanted: bool) -> Answer<()> {
    login::set(wanted).map_err(|failure| CommandError {
        field: Some("start_at_login".into()),
        ..CommandError::new("start_at_login", format!("The system did not take it: {failure}."))
    })
}

/// Checks the number of CPUs. An engine refuses a container with more processors than it has, or gives it fewer. Only a
/// changed value is refused: a settings file from another computer stays as it is.
fn too_many_cpus(wanted: f64, engine: &EngineState) -> Option<Fault> {
    let (most, has) = match engine {
        EngineState::Ready(info) => (info.cpus, info.name.clone()),
        EngineState::Checking | EngineState::Trouble(_) => {
            let cores = available_parallelism().map_or(1, NonZero::get);
            (u32::try_from(cores).unwrap_or(u32::MAX), "this computer".into())
        }
    };
    // If the engine reports no number (0), it checks the limit itself when it makes a container.
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
