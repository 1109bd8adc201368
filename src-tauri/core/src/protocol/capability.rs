//! The capabilities that an agent is told of. The list is empty while the capability is off.

use schemars::JsonSchema;
use serde::Serialize;

use super::batch::MAX_BATCH;
use super::{CODE_RUN, PROTOCOL};
use crate::language::Language;
use crate::run::{Limits, MAX_CODE_BYTES, MAX_FILES, MAX_STDIN_BYTES};

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Capability {
    pub name: &'static str,
    /// `read`: nothing inside the container reaches anything outside, so it may be called while an agent rehearses.
    pub kind: &'static str,
    pub description: &'static str,
    pub annotations: Annotations,
    pub limits: CapabilityLimits,
    pub languages: Vec<LanguageInfo>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub open_world: bool,
}

/// The owner's limits. Those of time, memory and CPU may be lowered by a call; none may be raised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CapabilityLimits {
    pub seconds: f64,
    pub memory_mb: f64,
    pub cpus: f64,
    pub processes: u32,
    pub output_bytes: u64,
    pub file_bytes: u64,
    pub files: usize,
    pub code_bytes: usize,
    pub stdin_bytes: usize,
    /// Runs of one `code.batch`.
    pub batch_runs: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LanguageInfo {
    pub name: &'static str,
    pub title: &'static str,
    pub version: &'static str,
    pub aliases: &'static [&'static str],
    /// The program's own file in its folder; no other file may have its name.
    pub program: &'static str,
}

/// The answer to `hello`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HelloReply {
    pub name: &'static str,
    pub version: &'static str,
    /// [`PROTOCOL`]
    pub protocol: u32,
    pub capabilities: Vec<Capability>,
}

impl HelloReply {
    pub fn new(capabilities: Vec<Capability>) -> Self {
        Self { name: "sandtray", version: env!("CARGO_PKG_VERSION"), protocol: PROTOCOL, capabilities }
    }
}

/// The answer to `subscribe`, and what `capabilities.changed` tells.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Capabilities<'a> {
    pub capabilities: &'a [Capability],
}

const DESCRIPTION: &str = "Runs a short program in a fresh, isolated container without a network and returns what it \
    printed and the files it wrote under out/. Nothing is kept between calls.";

pub fn capabilities(enabled: bool, owner: &Limits) -> Vec<Capability> {
    if enabled { vec![code_run(owner)] } else { Vec::new() }
}

fn code_run(owner: &Limits) -> Capability {
    Capability {
        name: CODE_RUN,
        kind: "read",
        description: DESCRIPTION,
        annotations: Annotations { read_only: true, destructive: false, open_world: false },
        limits: CapabilityLimits {
            seconds: owner.millis as f64 / 1000.0,
            memory_mb: owner.memory_bytes as f64 / f64::from(1 << 20),
            cpus: f64::from(owner.milli_cpus) / 1000.0,
            processes: owner.processes,
            output_bytes: owner.output_bytes,
            file_bytes: owner.file_bytes,
            files: MAX_FILES,
            code_bytes: MAX_CODE_BYTES,
            stdin_bytes: MAX_STDIN_BYTES,
            batch_runs: MAX_BATCH,
        },
        languages: Language::ALL.map(info).to_vec(),
    }
}

fn info(language: Language) -> LanguageInfo {
    let recipe = language.recipe();
    LanguageInfo {
        name: recipe.name,
        title: recipe.title,
        version: recipe.version,
        aliases: recipe.aliases,
        program: recipe.program,
    }
}
