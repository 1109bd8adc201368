//! What came of it: a table of answers, of disturbances, the longest answers, and every finding.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;

use super::calls::Call;
use super::disturb::{Disturbance, Kind};
use super::judge::Finding;
use super::target_folder;

/// Findings that are printed; all are in the file.
const PRINTED: usize = 60;

pub(crate) struct Report {
    pub(crate) began: u64,
    /// A line of JSON for each call, for a closer look.
    pub(crate) kept: File,
    pub(crate) calls: Vec<Call>,
    pub(crate) disturbances: Vec<Disturbance>,
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    pub(crate) fn print(&self) {
        self.print_answers();
        self.print_disturbances();
        self.print_longest();
        self.print_findings();
    }

    fn seconds(&self, at: u64) -> f64 {
        at.saturating_sub(self.began) as f64 / 1000.0
    }

    fn print_answers(&self) {
        let mut by_answer: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for call in &self.calls {
            *by_answer.entry(call.end.word()).or_default().entry(&call.kind).or_default() += 1;
        }
        println!("\n{} calls, by answer", self.calls.len());
        for (answer, kinds) in by_answer {
            let all: usize = kinds.values().sum();
            let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            println!("{all:7}  {answer:20}  {}", kinds.join(", "));
        }
    }

    fn print_disturbances(&self) {
        println!("\n{} disturbances", self.disturbances.len());
        let mut file = File::create(target_folder().join("disturbances")).unwrap();
        for one in &self.disturbances {
            writeln!(file, "{} {} {}", one.began, one.ended.unwrap_or(0), one.what).unwrap();
        }
        for kind in Kind::ALL {
            let of_kind: Vec<&Disturbance> = self.disturbances.iter().filter(|one| one.kind == kind).collect();
            let took = |one: &&Disturbance| one.ended.map_or(0, |ended| ended - one.began);
            let longest = of_kind.iter().map(took).max().unwrap_or(0) as f64 / 1000.0;
            let latest = |finding: &&Finding| finding.after.as_ref().is_some_and(|after| after.kind == kind);
            let findings = self.findings.iter().filter(latest).count();
            let done = of_kind.iter().filter(|one| one.done).count();
            println!(
                "{:7}  {:20}  {done} took effect, the longest {longest:.1} s, findings after it: {findings}",
                of_kind.len(),
                kind.word()
            );
        }
    }

    fn print_longest(&self) {
        let mut longest: BTreeMap<&str, &Call> = BTreeMap::new();
        let took = |call: &Call| call.ended.saturating_sub(call.sent);
        for call in &self.calls {
            let slot = longest.entry(&call.kind).or_insert(call);
            if took(call) > took(slot) {
                *slot = call;
            }
        }
        println!("\nThe longest answer of each kind");
        for (kind, call) in longest {
            let seconds = took(call) as f64 / 1000.0;
            println!("{seconds:7.1}  {kind:20}  {}, asked at {:.1} s", call.end.word(), self.seconds(call.sent));
        }
    }

    fn print_findings(&self) {
        println!("\n{} findings", self.findings.len());
        let mut file = std::fs::File::create(target_folder().join("findings")).unwrap();
        for (at, finding) in self.findings.iter().enumerate() {
            let text = self.text(finding);
            if at < PRINTED {
                println!("{text}");
            }
            writeln!(file, "{text}").unwrap();
        }
        if self.findings.len() > PRINTED {
            println!("... all of them are in {}", target_folder().join("findings").display());
        }
    }

    fn text(&self, finding: &Finding) -> String {
        let mut text = format!("{:7.1}  {}", self.seconds(finding.at), finding.what);
        if let Some(after) = &finding.after {
            let ended = after.ended.map_or("goes on".into(), |ended| format!("{:.1}", self.seconds(ended)));
            text += &format!("\n         after {:.1} to {ended}: {}", self.seconds(after.began), after.what);
        }
        if let Some(call) = &finding.call {
            let calm = if call.calm { ", when all was calm" } else { "" };
            text +=
                &format!("\n         {} ({}{calm}), asked at {:.1}", call.label, call.kind, self.seconds(call.sent));
            text += &format!("\n         {}\n         {}", call.request, call.answer);
        }
        text
    }
}
