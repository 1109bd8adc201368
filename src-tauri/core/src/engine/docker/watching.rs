//! Detects whether the engine may have changed since its walls were proved, by the facts on which the walls depend, and
//! by a connection that lasts as long as the engine's process.

use std::sync::Arc;

use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::SystemInfo;
use bollard::query_parameters::EventsOptions;
use futures_util::StreamExt;
use tokio::sync::Notify;

use crate::engine::Watched;

/// The only event that is requested. Events of containers are not sent.
const RELOADED: &str = "reload";

/// All facts about the engine on which the walls depend, as a text for comparison.
pub(super) fn fingerprint(info: &SystemInfo) -> String {
    let runtime = info.default_runtime.as_ref().and_then(|name| info.runtimes.as_ref()?.get(name));
    format!(
        "{:?}",
        (
            (&info.id, &info.default_runtime, runtime.map(|runtime| (&runtime.path, &runtime.runtime_args))),
            (&info.security_options, &info.cgroup_driver, &info.cgroup_version, &info.kernel_version),
            info.runc_commit.as_ref().map(|commit| &commit.id),
        )
    )
}

/// Waits for a change of the engine. The event stream ends with the engine's process. Until then it reports when the
/// engine reloads its configuration, which may name another runtime. A broken connection to a container counts as a
/// change too.
pub(super) async fn watch(client: Client, broke: Arc<Notify>) -> Watched {
    let filters = [("event".to_owned(), vec![RELOADED.to_owned()])].into();
    let options = EventsOptions { filters: Some(filters), ..EventsOptions::default() };
    let mut events = std::pin::pin!(client.events(Some(options)));
    tokio::select! {
        () = broke.notified() => Watched::Changed,
        event = events.next() => match event {
            Some(Err(Error::DockerResponseServerError { .. })) => Watched::Refused,
            // An event, or the end of the stream.
            Some(Ok(_) | Err(_)) | None => Watched::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{Commit, Runtime};

    #[test]
    fn every_fact_the_walls_depend_on_changes_the_fingerprint() {
        let runtime = |path: &str| Runtime { path: Some(path.into()), ..Default::default() };
        let info = SystemInfo {
            id: Some("A".into()),
            default_runtime: Some("runc".into()),
            runtimes: Some([("runc".to_owned(), runtime("runc")), ("shim".to_owned(), runtime("/opt/shim"))].into()),
            security_options: Some(vec!["name=seccomp,profile=default".into()]),
            kernel_version: Some("6.1".into()),
            runc_commit: Some(Commit { id: Some("v1.1".into()) }),
            ..Default::default()
        };
        let same = SystemInfo { containers: Some(7), images: Some(3), name: Some("other".into()), ..info.clone() };
        assert_eq!(fingerprint(&same), fingerprint(&info));
        for other in [
            SystemInfo { id: Some("B".into()), ..info.clone() },
            SystemInfo { default_runtime: Some("shim".into()), ..info.clone() },
            SystemInfo { runtimes: Some([("runc".to_owned(), runtime("/opt/shim"))].into()), ..info.clone() },
            SystemInfo { security_options: Some(vec!["name=rootless".into()]), ..info.clone() },
            SystemInfo { kernel_version: Some("6.2".into()), ..info.clone() },
            SystemInfo { cgroup_version: Some(bollard::models::SystemInfoCgroupVersionEnum::_2), ..info.clone() },
            SystemInfo { cgroup_driver: Some(bollard::models::SystemInfoCgroupDriverEnum::SYSTEMD), ..info.clone() },
            SystemInfo { runc_commit: None, ..info.clone() },
        ] {
            assert_ne!(fingerprint(&other), fingerprint(&info), "{other:?}");
        }
    }
}
