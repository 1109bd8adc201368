//! The verdict on a container that sent no trailer. It uses the engine's records, never anything that the program can
//! write.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

use crate::engine::{EngineError, EngineTrouble, Exit, LastEvents};
use crate::error::RunError;
use crate::launcher::Ending;
use crate::lease::Container;
use crate::run::{CutBy, Status};

/// Bound on one question about a container's end, and on the wait until the engine notices the end of a container
/// without a trailer.
const EXIT_LIMIT: Duration = Duration::from_secs(5);
/// The wait for the engine to notice the end of a container whose program has not started. Shorter, because another
/// container takes its place while the caller waits.
const NOTICE_LIMIT: Duration = Duration::from_secs(1);
const EXIT_POLL: Duration = Duration::from_millis(50);

/// 128 + SIGKILL: the exit code that a shell reports for a killed program.
pub(super) const KILLED: i32 = 137;
/// PID 1's exit code after its watchdog ended the run.
const WATCHDOG: i32 = 124;
/// PID 1's exit code after the program did not reach its interpreter whole.
const NOT_FED: i32 = 125;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) status: Status,
    pub(super) exit_code: i32,
    pub(super) oom_kills: u32,
}

impl Verdict {
    pub(super) fn killed(status: Status) -> Self {
        Self { status, exit_code: KILLED, oom_kills: 0 }
    }

    /// The verdict from the launcher's trailer.
    pub(super) fn of(ending: &Ending) -> Self {
        let exit_code = i32::from(ending.exit_code);
        let status = match (exit_code, ending.oom_kills) {
            (0, _) => Status::Ok,
            (_, 0) => Status::Failed,
            (_, _) => Status::OutOfMemory,
        };
        Self { status, exit_code, oom_kills: ending.oom_kills }
    }
}

/// The end of a run that has no trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Verdict(Verdict),
    CutOff(CutBy),
    /// The launcher could not hand the program over.
    NotFed,
}

/// The state of the channel to a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channel {
    /// The connection broke; it did not end with its container.
    pub(super) broke: bool,
    /// The program cannot touch PID 1.
    pub(super) sealed: bool,
}

/// The end of a container that printed its start line but no trailer.
pub(super) async fn without_trailer(container: &Container, channel: Channel) -> End {
    // A broken connection tells nothing about the container, which may run as long as its program. So there is no wait.
    let patience = if channel.broke { Duration::ZERO } else { EXIT_LIMIT };
    let exit = match stand(container, patience).await {
        Stand::Away(_) | Stand::Running => return End::CutOff(CutBy::Engine),
        Stand::Untold => return End::CutOff(CutBy::Unknown),
        Stand::Gone => None,
        Stand::Ended(exit) => Some(exit),
    };
    match container.last_events().await {
        Ok(events) => decide(exit.as_ref(), events, channel),
        Err(EngineError::Unavailable(_) | EngineError::Broken { .. }) => End::CutOff(CutBy::Engine),
        Err(error) => {
            debug!(%error, "the engine keeps no record");
            decide(exit.as_ref(), LastEvents::default(), channel)
        }
    }
}

/// `exit` is `None` if the container is gone.
fn decide(exit: Option<&Exit>, events: LastEvents, channel: Channel) -> End {
    let code = exit.map(|exit| exit.exit_code);
    let killed_for_memory = events.out_of_memory || exit.is_some_and(|exit| exit.oom_killed);
    // Records that no program can cause come first.
    if events.killed {
        return End::CutOff(CutBy::Outside);
    }
    // The flag may be about a child, while PID 1 exited well.
    if killed_for_memory && code != Some(0) {
        return End::Verdict(Verdict { status: Status::OutOfMemory, exit_code: KILLED, oom_kills: 1 });
    }
    match code {
        _ if events.removed => End::CutOff(CutBy::Outside),
        None => End::CutOff(CutBy::Unknown),
        // The program may have chosen PID 1's exit code, so every code counts as a failure.
        Some(_) if !channel.sealed && !channel.broke => End::Verdict(Verdict::killed(Status::Failed)),
        Some(WATCHDOG) if channel.sealed => End::Verdict(Verdict::killed(Status::Timeout)),
        Some(NOT_FED) if channel.sealed => End::NotFed,
        Some(_) if channel.broke => End::CutOff(CutBy::Engine),
        // The launcher wrote its trailer, and the trailer was lost on the way.
        Some(0) => End::CutOff(CutBy::Engine),
        // A process inside cannot kill a sealed PID 1.
        Some(KILLED) => End::CutOff(CutBy::Unknown),
        // The launcher failed. The program may be the cause.
        Some(_) => End::Verdict(Verdict::killed(Status::Failed)),
    }
}

/// The end of a container before the program started.
#[derive(Debug)]
pub(super) enum Early {
    Engine(EngineTrouble),
    /// It was removed or killed from outside. Another container can take its place.
    Removed,
    /// The connection to it broke. Another container can take its place.
    Broke,
    /// It exited with 0, as the launcher does on end-of-file. The connection to it may have broken.
    Unheard,
    /// It failed without outside cause.
    Own,
}

pub(super) async fn before_the_start(container: &Container, broke: bool) -> Early {
    let patience = if broke { Duration::ZERO } else { NOTICE_LIMIT };
    let exit = match stand(container, patience).await {
        Stand::Away(trouble) => return Early::Engine(trouble),
        Stand::Running => return Early::Broke,
        Stand::Gone => return Early::Removed,
        Stand::Untold => return Early::Own,
        Stand::Ended(exit) => exit,
    };
    match container.last_events().await {
        Err(EngineError::Unavailable(trouble)) => Early::Engine(trouble),
        Ok(events) if events.killed || events.removed => Early::Removed,
        Ok(events) if events.out_of_memory || exit.oom_killed => Early::Own,
        Ok(_) | Err(_) if broke => Early::Broke,
        Ok(_) | Err(_) if exit.exit_code == KILLED => Early::Removed,
        Ok(_) | Err(_) if exit.exit_code == 0 => Early::Unheard,
        Ok(_) | Err(_) => Early::Own,
    }
}

/// The container's state as its engine reports it.
enum Stand {
    /// The engine cannot be reached.
    Away(EngineTrouble),
    Running,
    Gone,
    Ended(Exit),
    /// The engine answers with an error that does not tell.
    Untold,
}

/// Asks for the container's state. Its pipes may close before the engine notices the end, so the question is repeated
/// for as long as `patience`.
async fn stand(container: &Container, patience: Duration) -> Stand {
    let endpoint = container.endpoint();
    let end = Instant::now() + patience;
    loop {
        match timeout(EXIT_LIMIT, container.exit()).await {
            Ok(Ok(exit)) if exit.running && Instant::now() < end => sleep(EXIT_POLL).await,
            Ok(Ok(exit)) if exit.running => return Stand::Running,
            Ok(Ok(exit)) => return Stand::Ended(exit),
            Ok(Err(EngineError::NoContainer)) => return Stand::Gone,
            Ok(Err(error)) => return error.trouble(endpoint).map_or(Stand::Untold, Stand::Away),
            Err(_) => return Stand::Away(EngineTrouble::NotAnswering { endpoint: endpoint.clone() }),
        }
    }
}

/// The error of a run whose program the launcher could not hand over.
pub(super) fn not_fed() -> RunError {
    RunError::Internal("the program could not be handed to its interpreter; run it again".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEALED: Channel = Channel { broke: false, sealed: true };
    const OPEN: Channel = Channel { broke: false, sealed: false };
    const BROKE: Channel = Channel { broke: true, sealed: true };
    const DIED: LastEvents = LastEvents { died: true, killed: false, out_of_memory: false, removed: false };
    const NOTHING: LastEvents = LastEvents { died: false, ..DIED };

    fn exit(exit_code: i32) -> Option<Exit> {
        Some(Exit { running: false, exit_code, oom_killed: false, started_at: None })
    }

    fn out_of_memory() -> End {
        End::Verdict(Verdict { status: Status::OutOfMemory, exit_code: 137, oom_kills: 1 })
    }

    #[test]
    fn the_engines_own_events_decide() {
        let killed = LastEvents { killed: true, ..DIED };
        let removed = LastEvents { removed: true, ..DIED };
        let memory = LastEvents { out_of_memory: true, ..DIED };
        let flagged = Some(Exit { oom_killed: true, ..exit(137).unwrap() });
        let outside = End::CutOff(CutBy::Outside);
        for (exit, events, expected) in [
            (exit(137), killed, outside),
            (None, LastEvents { removed: true, ..killed }, outside),
            (None, removed, outside),
            (exit(137), memory, out_of_memory()),
            (None, LastEvents { removed: true, ..memory }, out_of_memory()),
            (flagged.clone(), DIED, out_of_memory()),
            // A child ran out of memory some time before.
            (flagged, LastEvents { out_of_memory: true, ..killed }, outside),
        ] {
            for channel in [SEALED, OPEN] {
                assert_eq!(decide(exit.as_ref(), events, channel), expected, "{exit:?} {events:?} {channel:?}");
            }
        }
    }

    #[test]
    fn only_a_sealed_launcher_tells_by_its_exit_code() {
        assert_eq!(decide(exit(124).as_ref(), DIED, SEALED), End::Verdict(Verdict::killed(Status::Timeout)));
        assert_eq!(decide(exit(125).as_ref(), DIED, SEALED), End::NotFed);
        let both = Channel { broke: true, sealed: false };
        for code in [0, 124, 125, 137] {
            assert_eq!(decide(exit(code).as_ref(), DIED, both), End::CutOff(CutBy::Engine), "{code}");
        }
    }

    #[test]
    fn without_an_event_the_cause_is_unknown_and_not_the_program() {
        for (exit, events) in [(exit(137), DIED), (exit(137), NOTHING), (None, DIED), (None, NOTHING)] {
            assert_eq!(decide(exit.as_ref(), events, SEALED), End::CutOff(CutBy::Unknown), "{exit:?} {events:?}");
        }
        assert_eq!(decide(None, NOTHING, OPEN), End::CutOff(CutBy::Unknown), "no program can remove its container");
        // PID 1 exited well, but its trailer was lost.
        assert_eq!(decide(exit(0).as_ref(), DIED, SEALED), End::CutOff(CutBy::Engine));
        let child = Some(Exit { oom_killed: true, ..exit(0).unwrap() });
        assert_eq!(decide(child.as_ref(), DIED, SEALED), End::CutOff(CutBy::Engine));
        assert_eq!(decide(exit(137).as_ref(), DIED, BROKE), End::CutOff(CutBy::Engine));
    }

    #[test]
    fn a_program_that_can_end_its_launcher_hides_nothing_by_that() {
        for code in [0, 1, 124, 125, 137, 139] {
            for events in [DIED, NOTHING] {
                let end = decide(exit(code).as_ref(), events, OPEN);
                assert_eq!(end, End::Verdict(Verdict::killed(Status::Failed)), "{code} {events:?}");
            }
        }
        // Nor an exit code by which a sealed PID 1 failed.
        assert_eq!(decide(exit(2).as_ref(), DIED, SEALED), End::Verdict(Verdict::killed(Status::Failed)));
    }
}
