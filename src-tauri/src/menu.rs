//! The tray's menu and icon as pure functions of the snapshot. Does not touch the desktop.

use sandtray_core::event::Waiting;

use crate::dto::snapshot::{EngineView, ImageStateView, LiveRunView, OwnerSnapshot, Page, ServiceView};
use crate::text::by;

/// Most runs listed singly; the others are counted.
const SHOWN_RUNS: usize = 8;
/// Longest client name in the menu.
const NAME_CHARS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// A text that cannot be chosen.
    Words(String),
    Action {
        does: Action,
        text: String,
    },
    Switch {
        on: bool,
        /// Whether the switch can be used.
        works: bool,
    },
    Separator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Toggle,
    Stop,
    Open(Option<Page>),
    OpenRun(String),
    /// Retries the start of the service.
    Retry,
    Quit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Icon {
    Off,
    Ready,
    Running,
    Trouble,
}

pub(crate) const SWITCH: &str = "Run code in isolation";
pub(crate) const ELSEWHERE: &str = "Sandtray runs in another program";
const TURNED_ON: &str = "It was turned on: see when";

pub(crate) fn menu(snapshot: &OwnerSnapshot, now_ms: u64) -> Vec<Item> {
    let works = snapshot.service == ServiceView::Here;
    let mut items = vec![Item::Words(words(snapshot)), Item::Switch { on: snapshot.enabled && works, works }];
    // This entry only opens the window, which clears it. Any program on the bus can press what is in the menu.
    if snapshot.turned_on_ms.is_some() {
        items.push(Item::Action { does: Action::Open(Some(Page::Overview)), text: TURNED_ON.into() });
    }
    if !snapshot.running.is_empty() || !snapshot.queued.is_empty() {
        items.push(Item::Separator);
        items.extend(snapshot.running.iter().take(SHOWN_RUNS).map(|run| running(run, now_ms)));
        items.extend(others(snapshot));
        items.push(Item::Action { does: Action::Stop, text: "Stop all".into() });
    }
    let said = words(snapshot);
    let pulls = snapshot.images.iter().filter_map(|image| pull(&image.title, &image.state));
    // A pull that the state line already shows is not repeated.
    let pulls: Vec<Item> = pulls.filter(|pull| !said.starts_with(pull)).map(Item::Words).collect();
    if !pulls.is_empty() {
        items.push(Item::Separator);
        items.extend(pulls);
    }
    items.push(Item::Separator);
    if matches!(snapshot.service, ServiceView::Elsewhere { .. } | ServiceView::Failed { .. }) {
        items.push(Item::Action { does: Action::Retry, text: "Retry".into() });
    }
    items.push(Item::Action { does: Action::Open(None), text: "Open Sandtray".into() });
    items.push(Item::Action { does: Action::Open(Some(Page::Settings)), text: "Settings".into() });
    items.push(Item::Action { does: Action::Quit, text: "Quit".into() });
    items
}

pub(crate) fn icon(snapshot: &OwnerSnapshot) -> Icon {
    match &snapshot.service {
        ServiceView::Starting => Icon::Off,
        ServiceView::Elsewhere { .. } | ServiceView::Failed { .. } => Icon::Trouble,
        ServiceView::Here if !snapshot.enabled => Icon::Off,
        ServiceView::Here => match &snapshot.engine {
            EngineView::Trouble(_) => Icon::Trouble,
            EngineView::Checking | EngineView::Ready(_) if snapshot.running.is_empty() => Icon::Ready,
            EngineView::Checking | EngineView::Ready(_) => Icon::Running,
        },
    }
}

/// The state as one line of text.
pub(crate) fn words(snapshot: &OwnerSnapshot) -> String {
    match &snapshot.service {
        ServiceView::Starting => return "Starting".into(),
        ServiceView::Elsewhere { .. } => return ELSEWHERE.into(),
        ServiceView::Failed { .. } => return "Sandtray couldn't start".into(),
        ServiceView::Here => {}
    }
    if !snapshot.enabled {
        return "Off: agents cannot run code".into();
    }
    match &snapshot.engine {
        EngineView::Checking => "On, looking for Docker".into(),
        EngineView::Trouble(trouble) => format!("On, but {}", trouble.title),
        EngineView::Ready(_) => match (snapshot.running.len(), snapshot.queued.len()) {
            (0, 0) => "Ready".into(),
            (0, waiting) => match snapshot.queued.first().and_then(waits_for) {
                Some(what) if waiting == 1 => what,
                Some(what) => format!("{what}, {waiting} waiting"),
                None => format!("{waiting} waiting"),
            },
            (running, 0) if snapshot.running.iter().all(|run| run.waiting.is_some()) => format!("{running} starting"),
            (running, 0) => format!("{running} running"),
            (running, waiting) => format!("{running} running, {waiting} waiting"),
        },
    }
}

/// What a run waits for, other than the runs before it. The window's header says the same.
fn waits_for(run: &LiveRunView) -> Option<String> {
    let title = run.language.recipe().title;
    match run.waiting? {
        Waiting::Engine => Some("Waiting for Docker".into()),
        Waiting::Pull { fraction, .. } => Some(fetching(title, fraction)),
        Waiting::Preparation => Some(preparing(title)),
        Waiting::Check => Some(format!("Checking {title}")),
        Waiting::Unread => Some("Waiting for its client to read".into()),
        Waiting::Turn { .. } | Waiting::Starting => None,
    }
}

fn fetching(title: &str, fraction: f64) -> String {
    format!("Fetching {title}: {:.0} %", (fraction * 100.0).floor())
}

fn preparing(title: &str) -> String {
    format!("Preparing {title}")
}

fn running(run: &LiveRunView, now_ms: u64) -> Item {
    let client = by(&run.client, run.program.as_deref(), NAME_CHARS);
    let title = run.language.recipe().title;
    let elapsed = match run.waiting {
        Some(_) => "starting".into(),
        None => elapsed(now_ms.saturating_sub(run.started_ms)),
    };
    Item::Action { does: Action::OpenRun(run.run_id.clone()), text: format!("{title} for {client}, {elapsed}") }
}

fn others(snapshot: &OwnerSnapshot) -> Option<Item> {
    let more = snapshot.running.len().saturating_sub(SHOWN_RUNS);
    let text = match (more, snapshot.queued.len()) {
        (0, 0) => return None,
        (0, waiting) => format!("{waiting} waiting"),
        (more, 0) => format!("{more} more"),
        (more, waiting) => format!("{more} more, {waiting} waiting"),
    };
    Some(Item::Action { does: Action::Open(Some(Page::Runs)), text })
}

fn pull(title: &str, state: &ImageStateView) -> Option<String> {
    match state {
        ImageStateView::Preparing => Some(preparing(title)),
        ImageStateView::Pulling { fraction, .. } => Some(fetching(title, *fraction)),
        ImageStateView::Unknown
        | ImageStateView::NotPulled
        | ImageStateView::Unprepared { .. }
        | ImageStateView::Ready { .. }
        | ImageStateView::Failed { .. } => None,
    }
}

fn elapsed(millis: u64) -> String {
    match millis / 1000 {
        seconds @ 0..=59 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests;
