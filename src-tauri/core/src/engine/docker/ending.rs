//! Reads the engine's record of a container's end. The engine keeps its latest events for a while, so they are
//! requested after the fact, and a run that ends well costs no request.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bollard::Docker as Client;
use bollard::errors::Error;
use bollard::models::EventMessage;
use bollard::query_parameters::EventsOptions;
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use crate::engine::{ContainerId, LastEvents};

/// Bound on the wait for stored events; the engine sends them at once.
const KEPT: Duration = Duration::from_secs(2);
/// Docker may report that the kernel ran out of memory a moment after it reports the death.
const LATE: Duration = Duration::from_millis(300);
/// Bound on clock skew: the engine may run on another computer.
const SKEW: Duration = Duration::from_secs(3600);
/// Bound on events that are read. Only a container that is killed over and over for an hour has more.
const MOST_EVENTS: usize = 4096;

/// Reads events until the death is found and explained, or no more can be expected.
pub(super) async fn last_events(client: &Client, id: &ContainerId) -> Result<LastEvents, Error> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let filters = [
        ("type".to_owned(), words(&["container"])),
        ("container".to_owned(), words(&[id.0.as_str()])),
        ("event".to_owned(), words(&["kill", "oom", "die", "destroy"])),
    ];
    let since = SystemTime::now().checked_sub(SKEW).and_then(|since| since.duration_since(UNIX_EPOCH).ok());
    let options = EventsOptions {
        since: Some(since.unwrap_or_default().as_secs().to_string()),
        filters: Some(filters.into()),
        ..EventsOptions::default()
    };
    let mut events = std::pin::pin!(client.events(Some(options)).take(MOST_EVENTS));
    let (mut seen, mut end) = (LastEvents::default(), Instant::now() + KEPT);
    while let Ok(Some(event)) = timeout_at(end, events.next()).await {
        take(&mut seen, &event?);
        if seen.died && (seen.killed || seen.out_of_memory) {
            break;
        }
        if seen.died {
            end = end.min(Instant::now() + LATE);
        }
    }
    Ok(seen)
}

fn take(seen: &mut LastEvents, event: &EventMessage) {
    let attributes = event.actor.as_ref().and_then(|actor| actor.attributes.as_ref());
    match event.action.as_deref() {
        Some("die") => seen.died = true,
        Some("destroy") => seen.removed = true,
        Some("oom") => seen.out_of_memory = true,
        Some("kill") => {
            let signal = attributes.and_then(|attributes| attributes.get("signal")).map(String::as_str);
            seen.killed |= signal.is_none_or(is_deadly);
        }
        Some(_) | None => {}
    }
}

/// The launcher ignores all signals that can be ignored. Of the others, only SIGKILL ends PID 1.
fn is_deadly(signal: &str) -> bool {
    matches!(signal, "9" | "KILL" | "SIGKILL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::EventActor;

    fn seen(events: &[(&str, Option<&str>)]) -> LastEvents {
        let mut seen = LastEvents::default();
        for (action, signal) in events {
            let attributes = signal.map(|signal| [("signal".to_owned(), signal.to_owned())].into());
            let actor = Some(EventActor { attributes, ..EventActor::default() });
            take(&mut seen, &EventMessage { action: Some((*action).into()), actor, ..EventMessage::default() });
        }
        seen
    }

    #[test]
    fn a_kill_is_told_from_other_signals_and_ends() {
        let died = LastEvents { died: true, ..LastEvents::default() };
        assert_eq!(seen(&[("die", None)]), died);
        assert_eq!(seen(&[("kill", Some("10")), ("kill", Some("15")), ("die", None)]), died);
        assert_eq!(seen(&[("kill", Some("9")), ("die", None)]), LastEvents { killed: true, ..died });
        assert_eq!(seen(&[("kill", None), ("die", None)]), LastEvents { killed: true, ..died }, "as Podman tells it");
        assert_eq!(seen(&[("oom", None), ("die", None)]), LastEvents { out_of_memory: true, ..died });
        assert_eq!(seen(&[("die", None), ("destroy", None)]), LastEvents { removed: true, ..died });
        assert_eq!(seen(&[("exec_die", Some("9")), ("start", None)]), LastEvents::default());
    }
}
