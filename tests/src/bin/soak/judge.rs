//! Decides which answers are right: what may follow from what was disturbed, and how late an answer may be.

use super::calls::{Call, End};
use super::disturb::{Disturbance, Kind};

/// Seconds for an answer beside the program's own: its turn, behind five other clients, and a container made for it on a busy machine.
const BOUND: u64 = 25;
/// Seconds more for each disturbance of a kind that the call met, and at most in all.
const MOST: u64 = 75;

/// These take the engine away.
const AWAY: [Kind; 2] = [Kind::Engine, Kind::Crash];
/// These remove containers in which a program may run.
const REMOVING: [Kind; 3] = [Kind::Containers, Kind::Images, Kind::Prune];

#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) at: u64,
    pub(crate) what: String,
    /// The latest disturbance before it.
    pub(crate) after: Option<Disturbance>,
    pub(crate) call: Option<Call>,
}

impl Finding {
    pub(crate) fn new(at: u64, what: String, disturbances: &[Disturbance]) -> Self {
        let after = disturbances.iter().filter(|disturbance| disturbance.began <= at).max_by_key(|latest| latest.began);
        Self { at, what, after: after.cloned(), call: None }
    }
}

/// Milliseconds after its end in which a disturbance still explains an error: the engine is looked at and its walls are proved anew, an
/// image is fetched, a note of a removed container arrives.
fn echo(kind: Kind) -> u64 {
    match kind {
        Kind::Engine | Kind::Crash => 6_000,
        Kind::Images | Kind::Prune => 25_000,
        Kind::Containers | Kind::Disk => 3_000,
        Kind::Service => 1_000,
    }
}

/// Seconds by which it may delay an answer.
fn delay(kind: Kind) -> u64 {
    match kind {
        Kind::Engine | Kind::Crash => 15,
        Kind::Images | Kind::Prune => 30,
        Kind::Service => 10,
        Kind::Containers | Kind::Disk => 5,
    }
}

/// All that is wrong with a call; `disturbances` are those that began before it ended.
pub(crate) fn findings(call: &Call, disturbances: &[Disturbance]) -> Vec<Finding> {
    let met: Vec<Kind> = disturbances
        .iter()
        .filter(|met| met.began <= call.ended && met.ended.is_none_or(|ended| ended + echo(met.kind) >= call.sent))
        .map(|met| met.kind)
        .collect();
    let whats = call.wrong.clone().into_iter().chain(unexplained(call, &met)).chain(late(call, &met));
    whats.map(|what| Finding { call: Some(call.clone()), ..Finding::new(call.ended, what, disturbances) }).collect()
}

fn unexplained(call: &Call, met: &[Kind]) -> Option<String> {
    let any = |kinds: &[Kind]| kinds.iter().any(|kind| met.contains(kind));
    let explained = match &call.end {
        End::Result { recorded: false, .. } => any(&[Kind::Disk]),
        End::Result { status, ended_by, .. } if status == "cancelled" && !call.cancelled => {
            any(&[Kind::Service]) && ended_by.as_deref().is_none_or(|by| by == "shutdown")
        }
        End::Result { .. } | End::Left => true,
        End::Error { code, cause, .. } => match (code.as_str(), cause.as_deref()) {
            ("run_interrupted", Some("engine")) => any(&AWAY),
            ("run_interrupted", Some("outside")) => any(&REMOVING),
            ("run_interrupted", Some("unknown")) => any(&REMOVING) || any(&AWAY),
            ("engine_unavailable", _) => any(&AWAY) && call.answer["data"]["trouble"] != "wall_missing",
            ("image_unavailable", _) => any(&[Kind::Images, Kind::Prune]),
            ("shutting_down", _) => any(&[Kind::Service]),
            ("queue_full", _) => true,
            _ => false,
        },
        End::Lost => any(&[Kind::Service]),
        End::Silent => false,
    };
    (!explained).then(|| format!("nothing explains {}", call.end.word()))
}

fn late(call: &Call, met: &[Kind]) -> Option<String> {
    let more: u64 = met.iter().map(|kind| delay(*kind)).sum();
    let bound = call.longest.ceil() as u64 + BOUND + more.min(MOST);
    let took = call.ended.saturating_sub(call.sent);
    (took > bound * 1000).then(|| {
        format!(
            "{}.{} s and not {bound} (its own {} + {BOUND} + {} for {met:?})",
            took / 1000,
            took % 1000 / 100,
            call.longest,
            more.min(MOST)
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn call(sent: u64, ended: u64, end: End) -> Call {
        let (kind, label) = ("print".into(), "soak 1-1".into());
        let (request, answer) = (Value::Null, Value::Null);
        Call {
            client: 1,
            kind,
            label,
            sent,
            ended,
            longest: 1.0,
            calm: false,
            end,
            cancelled: false,
            wrong: None,
            request,
            answer,
        }
    }

    fn error(code: &str, cause: Option<&str>) -> End {
        End::Error { code: code.into(), cause: cause.map(str::to_owned), run_id: None }
    }

    fn disturbance(kind: Kind, began: u64, ended: u64) -> Disturbance {
        Disturbance { kind, what: "", began, ended: Some(ended), done: true }
    }

    fn whats(call: &Call, disturbances: &[Disturbance]) -> Vec<String> {
        findings(call, disturbances).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn an_error_needs_a_disturbance_that_explains_it() {
        let restart = [disturbance(Kind::Engine, 1_000, 2_000)];
        for (end, sent, found) in [
            (error("engine_unavailable", None), 1_500, 0),
            (error("engine_unavailable", None), 8_001, 1),
            (error("run_interrupted", Some("engine")), 1_500, 0),
            (error("run_interrupted", Some("outside")), 1_500, 1),
            (error("run_interrupted", None), 1_500, 1),
            (error("internal", None), 1_500, 1),
            (End::Lost, 1_500, 1),
            (End::Silent, 1_500, 1),
        ] {
            assert_eq!(whats(&call(sent, sent + 10, end.clone()), &restart).len(), found, "{end:?} at {sent}");
        }
    }

    #[test]
    fn an_answer_may_be_late_by_what_it_met() {
        let end = || End::Result { run_id: String::new(), status: "ok".into(), ended_by: None, recorded: true };
        let restart = [disturbance(Kind::Engine, 1_000, 2_000)];
        assert_eq!(whats(&call(0, 26_000, end()), &[]), [""; 0]);
        assert_eq!(whats(&call(0, 26_001, end()), &[]), ["26.0 s and not 26 (its own 1 + 25 + 0 for [])"]);
        assert_eq!(whats(&call(0, 41_000, end()), &restart), [""; 0]);
        assert_eq!(whats(&call(0, 41_001, end()), &restart).len(), 1);
    }
}
