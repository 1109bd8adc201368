//! What the system says of a program and of all that it has started.

use std::time::Duration;

use sandtray_tests::desktop::Process;

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
        let started = Process::descendants(pid).into_iter().map(|process| process.pid);
        for pid in std::iter::once(pid).chain(started) {
            let file = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            figures.proportional += Process::mebibytes(pid, "Pss");
            figures.anonymous += Process::mebibytes(pid, "Pss_Anon");
            figures.names.push(file("comm").trim().to_owned());
            figures.cpu += cpu(&file("stat"));
        }
        figures
    }

    pub(crate) fn webviews(&self) -> usize {
        self.names.iter().filter(|name| name.starts_with("WebKit")).count()
    }
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
