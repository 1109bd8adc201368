//! The list of clients, and the result of the owner's example program.

use std::collections::HashMap;
use std::time::Duration;

use sandtray_core::history::ClientFigure;
use sandtray_core::protocol::own_name::OWN_NAME;
use sandtray_core::run::{Outcome, RunId};
use sandtray_core::time::to_millis;
use sandtray_core::visitors::Visitor;
use serde::Serialize;

use super::error::CommandError;

/// Most clients listed: those that are connected, then those that were seen last.
pub const MAX_AGENTS: usize = 256;

/// One name of one program. Two programs that claim the same name are two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AgentView {
    /// As the client says.
    pub name: String,
    /// From the kernel.
    pub program: Option<String>,
    /// Of the connection that came last, while one is open.
    pub pid: Option<u32>,
    pub first_ms: u64,
    /// When it came, left, or asked for a run last.
    pub last_ms: u64,
    /// Of those that the history keeps.
    pub runs: u64,
    pub connected: bool,
}

impl AgentView {
    fn of_visitor(visitor: Visitor) -> Self {
        let connected = visitor.connections > 0;
        Self {
            name: visitor.name,
            program: visitor.program,
            pid: visitor.pid.filter(|_| connected),
            first_ms: to_millis(visitor.first_seen),
            last_ms: to_millis(visitor.last_seen),
            runs: 0,
            connected,
        }
    }

    fn of_figure(figure: ClientFigure) -> Self {
        Self {
            name: figure.name,
            program: figure.program,
            pid: None,
            first_ms: to_millis(figure.first),
            last_ms: to_millis(figure.last),
            runs: figure.runs,
            connected: false,
        }
    }

    /// Whether this is the owner's own window: no other client may have its name, and it has no program.
    fn is_own(&self) -> bool {
        self.name == OWN_NAME && self.program.is_none()
    }
}

/// Merges the clients that connected since this service started with those whose runs are kept.
pub fn agents(visitors: Vec<Visitor>, figures: Vec<ClientFigure>) -> Vec<AgentView> {
    let mut known: HashMap<(String, Option<String>), AgentView> = HashMap::new();
    let visitors = visitors.into_iter().map(AgentView::of_visitor);
    for one in visitors.chain(figures.into_iter().map(AgentView::of_figure)) {
        let who = (one.name.clone(), one.program.clone());
        match known.get_mut(&who) {
            Some(other) => {
                other.first_ms = other.first_ms.min(one.first_ms);
                other.last_ms = other.last_ms.max(one.last_ms);
                other.runs += one.runs;
            }
            None => drop(known.insert(who, one)),
        }
    }
    let mut agents: Vec<AgentView> = known.into_values().filter(|agent| !agent.is_own()).collect();
    agents.sort_by(|a, b| {
        (b.connected, b.last_ms)
            .cmp(&(a.connected, a.last_ms))
            .then_with(|| (&a.name, &a.program).cmp(&(&b.name, &b.program)))
    });
    agents.truncate(MAX_AGENTS);
    agents
}

/// Told once, when the program that the owner tried has ended, or could not run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TryEvent {
    Ran {
        run_id: String,
        /// From the question to the answer, as an agent waits for it.
        seconds: f64,
        /// Of that, the program itself.
        program_seconds: f64,
        status: String,
        /// Hostile text, as all output is.
        stdout: String,
        stderr: String,
    },
    Refused {
        error: CommandError,
    },
}

impl TryEvent {
    pub fn ran(run: RunId, outcome: &Outcome, waited: Duration) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self::Ran {
            run_id: run.to_string(),
            seconds: waited.as_secs_f64(),
            program_seconds: outcome.wall.as_secs_f64(),
            status: outcome.status.as_str().into(),
            stdout: text(&outcome.stdout.bytes),
            stderr: text(&outcome.stderr.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn visitor(name: &str, program: &str, (first, last): (u64, u64), connections: u32) -> Visitor {
        let program = Some(program.to_owned());
        Visitor { name: name.into(), program, pid: Some(7), first_seen: at(first), last_seen: at(last), connections }
    }

    fn figure(name: &str, program: Option<&str>, (first, last): (u64, u64), runs: u64) -> ClientFigure {
        ClientFigure { name: name.into(), program: program.map(str::to_owned), runs, first: at(first), last: at(last) }
    }

    #[test]
    fn those_that_are_here_and_those_whose_runs_are_kept_are_one_list() {
        let visitors = vec![visitor("claude", "node", (50, 60), 2), visitor("gone", "python3", (55, 70), 0)];
        let figures = vec![
            figure("claude", Some("node"), (10, 58), 12),
            figure("claude", Some("python3"), (20, 30), 3),
            figure(OWN_NAME, None, (1, 99), 5),
        ];
        let told: Vec<_> = agents(visitors, figures)
            .into_iter()
            .map(|one| {
                let program = one.program.unwrap_or_default();
                (one.name, program, one.first_ms, one.last_ms, one.runs, one.connected, one.pid)
            })
            .collect();
        let expected = [
            ("claude".into(), "node".into(), 10_000, 60_000, 12, true, Some(7)),
            ("gone".into(), "python3".into(), 55_000, 70_000, 0, false, None),
            ("claude".into(), "python3".into(), 20_000, 30_000, 3, false, None),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn the_list_is_bounded_and_keeps_who_is_connected() {
        let figures = (0..2 * MAX_AGENTS as u64).map(|at| figure(&format!("agent {at}"), None, (at, at), 1)).collect();
        let told = agents(vec![visitor("here", "node", (0, 0), 1)], figures);
        assert_eq!((told.len(), told[0].name.as_str()), (MAX_AGENTS, "here"));
        assert_eq!(told[1].name, format!("agent {}", 2 * MAX_AGENTS - 1));
    }
}
