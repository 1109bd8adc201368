//! What the system says of a program and of all that it has started.

use std::collections::HashMap;
use std::time::Duration;

pub(crate) struct Figures {
    /// Mebibytes, with a fair share of what is shared with others.
    pub(crate) proportional: f64,
    /// Mebibytes of that which are in no file: what the kernel cannot drop and read again.
    pub(crate) anonymous: f64,
    pub(crate) names: Vec<String>,
    pub(crate) cpu: Duration,
}

impl Figures {
    pub(crate) fn of(pid: u32) -> Self {
        let mut figures = Self { proportional: 0.0, anonymous: 0.0, names: Vec::new(), cpu: Duration::ZERO };
        for pid in family(pid) {
            let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let rollup = file("smaps_rollup");
            figures.proportional += mebibytes(&rollup, "Pss:");
            figures.anonymous += mebibytes(&rollup, "Pss_Anon:");
            figures.names.push(file("comm").trim().to_owned());
            figures.cpu += cpu(&file("stat"));
        }
        figures
    }

    pub(crate) fn webviews(&self) -> usize {
        self.names.iter().filter(|name| name.starts_with("WebKit")).count()
    }
}

/// The process itself, and whatever it or these have started.
fn family(pid: u32) -> Vec<u32> {
    let mut children = HashMap::<u32, Vec<u32>>::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = fields(&stat).nth(1).and_then(|parent| parent.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(pid) = family.get(at) {
        family.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    family
}

/// Behind the name, which may hold anything.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit(')').next().unwrap_or_default().split_whitespace()
}

/// The clock ticks a hundred times a second.
fn cpu(stat: &str) -> Duration {
    let ticks: u64 = fields(stat).skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

fn mebibytes(rollup: &str, name: &str) -> f64 {
    let line = rollup.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|figure| figure.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
