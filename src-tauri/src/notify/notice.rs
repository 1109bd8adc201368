//! The notices: their text, and how often they are shown. Pure.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use sandtray_core::engine::EngineState;
use sandtray_core::history::Trouble;
use sandtray_core::run::Status;

use crate::dto::snapshot::{Navigate, Page};
use crate::text::{by, plain};

/// Throttle: at most one notification of a kind in this time. Ten runs that hit a limit are one piece of news.
const QUIET: Duration = Duration::from_secs(10);
const NAME_CHARS: usize = 60;
/// Longest quote of an engine's or registry's message.
const MESSAGE_CHARS: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    PullFinished { image: String },
    PullFailed { image: String, message: String },
    EngineLost { message: String, hint: String },
    EngineBack { name: String },
    HistoryLost { message: String, hint: String },
    HistoryBack,
    RunKilled { run_id: String, title: &'static str, client: String, program: Option<String>, why: Why },
    RunCutOff { run_id: String, title: &'static str, client: String, program: Option<String>, sentence: String },
    NewClient { client: String, program: Option<String> },
    TurnedOn,
    NotSaved { message: String },
    StaysInTray,
    TookOver,
    NoWindow { message: String },
    Updated,
}

/// The limit that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Time,
    Memory,
    Output,
}

impl Why {
    pub(crate) fn of(status: Status) -> Option<Self> {
        match status {
            Status::Timeout => Some(Self::Time),
            Status::OutOfMemory => Some(Self::Memory),
            Status::OutputLimit => Some(Self::Output),
            Status::Ok | Status::Failed | Status::Cancelled => None,
        }
    }
}

impl Notice {
    /// The notice when the engine is lost or comes back.
    pub(crate) fn of_engine(before: &EngineState, now: &EngineState) -> Option<Self> {
        match (before, now) {
            (EngineState::Ready(_), EngineState::Trouble(trouble)) => {
                Some(Self::EngineLost { message: trouble.to_string(), hint: trouble.hint() })
            }
            (EngineState::Trouble(_), EngineState::Ready(info)) => Some(Self::EngineBack { name: info.name.clone() }),
            (EngineState::Checking, _) | (_, EngineState::Checking) => None,
            (EngineState::Ready(_), EngineState::Ready(_)) | (EngineState::Trouble(_), EngineState::Trouble(_)) => None,
        }
    }

    /// The notice when runs are no longer recorded, and when they are again. Once each.
    pub(crate) fn of_history(was_told: bool, now: Option<&Trouble>) -> Option<Self> {
        match (was_told, now) {
            (false, Some(trouble)) if !trouble.records => {
                Some(Self::HistoryLost { message: trouble.to_string(), hint: trouble.why.hint().into() })
            }
            (true, None) => Some(Self::HistoryBack),
            (false, Some(_) | None) | (true, Some(_)) => None,
        }
    }

    pub(crate) fn title(&self) -> String {
        match self {
            Self::PullFinished { .. } => "Image ready".into(),
            Self::PullFailed { .. } => "Image not ready".into(),
            Self::EngineLost { .. } => "Programs cannot run".into(),
            Self::EngineBack { .. } => "Programs can run again".into(),
            Self::HistoryLost { .. } => "Runs are not recorded".into(),
            Self::HistoryBack => "Runs are recorded again".into(),
            Self::RunKilled { .. } => "Program stopped at a limit".into(),
            Self::RunCutOff { .. } => "Program cut off".into(),
            Self::NewClient { .. } => "A new client runs code".into(),
            Self::TurnedOn => "Running code was turned on".into(),
            Self::NotSaved { .. } => "Settings were not saved".into(),
            Self::StaysInTray => "Sandtray stays in the tray".into(),
            Self::TookOver => "Sandtray runs in this app now".into(),
            Self::NoWindow { .. } => "The window is not there".into(),
            Self::Updated => "Sandtray was updated".into(),
        }
    }

    pub(crate) fn body(&self) -> String {
        match self {
            Self::PullFinished { image } => format!("{} is here.", plain(image, NAME_CHARS)),
            Self::PullFailed { image, message } => {
                format!("{}: {}", plain(image, NAME_CHARS), plain(message, MESSAGE_CHARS))
            }
            Self::EngineLost { message, hint } | Self::HistoryLost { message, hint } => {
                plain(&format!("{message} {hint}"), MESSAGE_CHARS)
            }
            Self::HistoryBack => "The history can be written again.".into(),
            Self::EngineBack { name } => format!("{} answers again.", plain(name, NAME_CHARS)),
            Self::RunKilled { title, client, program, why, .. } => {
                let why = match why {
                    Why::Time => "took longer than it may",
                    Why::Memory => "used more memory than it may",
                    Why::Output => "printed more than it may",
                };
                format!("{title} for {} {why}.", by(client, program.as_deref(), NAME_CHARS))
            }
            Self::RunCutOff { title, client, program, sentence, .. } => {
                let client = by(client, program.as_deref(), NAME_CHARS);
                match sentence.strip_prefix("Cut off ") {
                    Some(how) => format!("{title} for {client} was cut off {how}"),
                    None => format!("{title} for {client}: {sentence}"),
                }
            }
            Self::NewClient { client, program } => {
                let who = by(client, program.as_deref(), NAME_CHARS);
                format!("{who} runs a program in a sandbox for the first time.")
            }
            Self::TurnedOn => "Agents on this computer can run programs now. If that was not you, turn it off.".into(),
            Self::NotSaved { message } => message.clone(),
            Self::StaysInTray => {
                "Agents can go on using it. Its icon in the tray opens the window again, and quits it.".into()
            }
            Self::TookOver => "The program that ran it before has ended. Agents are answered by this app now.".into(),
            Self::Updated => "Choose Quit in the tray, then start it again: its window is newer than what runs.".into(),
            Self::NoWindow { message } => format!("What runs goes on. Open it again from the tray. ({message})"),
        }
    }

    /// What a click on the notification opens.
    pub(super) fn opens(&self) -> Opens {
        let page = |page| Opens::Window(Some(Navigate { page, run_id: None }));
        match self {
            Self::RunKilled { run_id, .. } | Self::RunCutOff { run_id, .. } => {
                Opens::Window(Some(Navigate { page: Page::Runs, run_id: Some(run_id.clone()) }))
            }
            Self::NewClient { .. } => page(Page::Agents),
            Self::NotSaved { .. } => page(Page::Settings),
            Self::PullFinished { .. }
            | Self::PullFailed { .. }
            | Self::EngineLost { .. }
            | Self::EngineBack { .. }
            | Self::HistoryLost { .. }
            | Self::HistoryBack
            | Self::TurnedOn
            | Self::TookOver => page(Page::Overview),
            Self::StaysInTray | Self::NoWindow { .. } => Opens::Window(None),
            // The installed window is of another version than this app.
            Self::Updated => Opens::Nothing,
        }
    }

    /// Whether the notice answers what the owner has just done. It is shown even if notifications are off.
    fn is_an_answer(&self) -> bool {
        matches!(self, Self::NotSaved { .. } | Self::StaysInTray | Self::NoWindow { .. } | Self::Updated)
    }

    /// Whether the notice must not be missed. It is shown even if the window is in front, because another program may
    /// have used the switch.
    pub(super) fn is_an_alarm(&self) -> bool {
        *self == Self::TurnedOn
    }

    fn kind(&self) -> NoticeKind {
        match self {
            Self::PullFinished { .. } => NoticeKind::PullFinished,
            Self::PullFailed { .. } => NoticeKind::PullFailed,
            Self::EngineLost { .. } => NoticeKind::EngineLost,
            Self::EngineBack { .. } => NoticeKind::EngineBack,
            Self::HistoryLost { .. } => NoticeKind::HistoryLost,
            Self::HistoryBack => NoticeKind::HistoryBack,
            Self::RunKilled { .. } => NoticeKind::RunKilled,
            Self::RunCutOff { .. } => NoticeKind::RunCutOff,
            Self::NewClient { .. } => NoticeKind::NewClient,
            Self::TurnedOn => NoticeKind::TurnedOn,
            Self::NotSaved { .. } => NoticeKind::NotSaved,
            Self::StaysInTray => NoticeKind::StaysInTray,
            Self::TookOver => NoticeKind::TookOver,
            Self::NoWindow { .. } => NoticeKind::NoWindow,
            Self::Updated => NoticeKind::Updated,
        }
    }
}

/// The target of a click on a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Opens {
    Nothing,
    Window(Option<Navigate>),
}

/// The settings of the window name each: it has words for all of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename_all = "snake_case"))]
pub(crate) enum NoticeKind {
    PullFinished,
    PullFailed,
    EngineLost,
    EngineBack,
    HistoryLost,
    HistoryBack,
    RunKilled,
    RunCutOff,
    NewClient,
    TurnedOn,
    NotSaved,
    StaysInTray,
    TookOver,
    NoWindow,
    Updated,
}

/// Throttles notices.
#[derive(Debug, Default)]
pub(crate) struct Gate(HashMap<NoticeKind, Instant>);

impl Gate {
    /// Whether to show a notice. `wanted` is the owner's setting. `in_front`: the window is in front, and shows
    /// everything but alarms anyway.
    pub(crate) fn admits(&mut self, notice: &Notice, wanted: bool, in_front: bool, now: Instant) -> bool {
        if !(wanted || notice.is_an_answer()) || (in_front && !notice.is_an_alarm()) {
            return false;
        }
        let recent = self.0.get(&notice.kind()).is_some_and(|last| now.duration_since(*last) < QUIET);
        if !recent {
            self.0.insert(notice.kind(), now);
        }
        !recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::engine::{Endpoint, EngineInfo, EngineTrouble};

    fn killed(client: &str) -> Notice {
        let (run_id, program) = ("r".into(), Some("node".into()));
        Notice::RunKilled { run_id, title: "Python", client: client.into(), program, why: Why::Time }
    }

    #[test]
    fn one_of_a_kind_in_ten_seconds() {
        let (mut gate, start) = (Gate::default(), Instant::now());
        assert!(gate.admits(&killed("a"), true, false, start));
        assert!(!gate.admits(&killed("b"), true, false, start + QUIET / 2));
        assert!(gate.admits(&Notice::EngineBack { name: "Docker".into() }, true, false, start + QUIET / 2));
        assert!(gate.admits(&killed("c"), true, false, start + QUIET));
    }

    #[test]
    fn nothing_while_the_window_is_in_front_or_the_owner_wants_none_and_nothing_is_used_up() {
        let (mut gate, start) = (Gate::default(), Instant::now());
        assert!(!gate.admits(&killed("a"), true, true, start));
        assert!(!gate.admits(&killed("a"), false, false, start));
        assert!(gate.admits(&killed("a"), true, false, start));
    }

    #[test]
    fn turning_on_is_told_whatever_is_in_front() {
        let (mut gate, start) = (Gate::default(), Instant::now());
        assert!(!gate.admits(&Notice::TurnedOn, false, false, start), "the window and the tray say it then");
        assert!(gate.admits(&Notice::TurnedOn, true, true, start));
        assert!(!gate.admits(&Notice::TurnedOn, true, false, start + QUIET / 2), "and then too");
    }

    #[test]
    fn a_newcomer_is_named_with_its_program() {
        let body = |client: &str, program: Option<&str>| {
            Notice::NewClient { client: client.into(), program: program.map(str::to_owned) }.body()
        };
        assert_eq!(
            body("claude", Some("node")),
            "claude (the program node) runs a program in a sandbox for the first time."
        );
        assert_eq!(body("node", Some("node")), "node runs a program in a sandbox for the first time.");
        assert_eq!(body("claude", None), "claude (program unknown) runs a program in a sandbox for the first time.");
    }

    #[test]
    fn a_press_leads_to_what_the_notice_tells_of() {
        let opened = |notice: &Notice| match notice.opens() {
            Opens::Window(Some(Navigate { page, run_id })) => Some((page, run_id)),
            Opens::Window(None) | Opens::Nothing => None,
        };
        assert_eq!(opened(&killed("a")), Some((Page::Runs, Some("r".into()))));
        let newcomer = Notice::NewClient { client: "a".into(), program: None };
        assert_eq!(opened(&newcomer), Some((Page::Agents, None)));
        assert_eq!(opened(&Notice::EngineBack { name: "Docker".into() }), Some((Page::Overview, None)));
        assert_eq!(Notice::NoWindow { message: String::new() }.opens(), Opens::Window(None));
        assert_eq!(Notice::Updated.opens(), Opens::Nothing);
    }

    #[test]
    fn who_wants_no_news_is_answered_all_the_same() {
        let (mut gate, start) = (Gate::default(), Instant::now());
        assert!(gate.admits(&Notice::NoWindow { message: String::new() }, false, false, start));
        assert!(gate.admits(&Notice::NotSaved { message: String::new() }, false, false, start));
    }

    #[test]
    fn an_engine_that_goes_and_comes_is_news_and_the_first_look_is_not() {
        let endpoint = Endpoint { url: "unix:///x".into(), found: "a test".into() };
        let lost = EngineState::Trouble(EngineTrouble::NotRunning { endpoint: endpoint.clone() });
        let ready = EngineState::Ready(EngineInfo {
            name: "Docker".into(),
            version: String::new(),
            api_version: String::new(),
            endpoint,
            os: String::new(),
            arch: String::new(),
            cpus: 1,
            memory_bytes: 1,
            fingerprint: String::new(),
        });
        assert!(matches!(Notice::of_engine(&ready, &lost), Some(Notice::EngineLost { .. })));
        let back = Notice::of_engine(&lost, &ready);
        assert_eq!(back, Some(Notice::EngineBack { name: "Docker".into() }));
        for (before, now) in [(&EngineState::Checking, &lost), (&EngineState::Checking, &ready), (&ready, &ready)] {
            assert_eq!(Notice::of_engine(before, now), None);
        }
    }

    #[test]
    fn a_run_that_was_cut_off_says_by_what() {
        let sentence = "Cut off after 3.7 s: Docker went away.".into();
        let (run_id, client, program) = ("r".into(), "agent".into(), Some("node".into()));
        let notice = Notice::RunCutOff { run_id, title: "Python", client, program, sentence };
        assert_eq!(notice.title(), "Program cut off");
        assert_eq!(notice.body(), "Python for agent (the program node) was cut off after 3.7 s: Docker went away.");
    }

    #[test]
    fn a_history_is_told_once_when_it_takes_no_runs_and_once_when_it_does() {
        let trouble = |records| Trouble {
            why: sandtray_core::history::Why::DiskFull,
            since: std::time::SystemTime::UNIX_EPOCH,
            unrecorded: 1,
            given_up: 0,
            records,
        };
        let lost = Notice::of_history(false, Some(&trouble(false))).unwrap();
        assert_eq!(lost.title(), "Runs are not recorded");
        assert_eq!(
            lost.body(),
            "Runs cannot be recorded, and 1 was not: the disk is full. Free some disk space. Recording then goes on by itself."
        );
        assert_eq!(Notice::of_history(false, Some(&trouble(true))), None, "what is recorded is no alarm");
        assert_eq!(Notice::of_history(true, Some(&trouble(false))), None);
        assert_eq!(Notice::of_history(true, None), Some(Notice::HistoryBack));
        assert_eq!(Notice::of_history(false, None), None);
    }

    #[test]
    fn a_clients_name_cannot_dress_up_as_something_else() {
        let notice = killed("evil\u{202e}\nSandtray: click here");
        assert_eq!(notice.body(), "Python for evil Sandtray: click here (the program node) took longer than it may.");
    }
}
