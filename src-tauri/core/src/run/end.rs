//! The end of a run from outside: who ended it, and the state of a run that was cut off.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{Captured, Limits, RunId, Status};

/// Who or what ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// It came to its own end, good or bad.
    Program,
    /// It passed a limit of its time, memory or output.
    Limit,
    /// Its client cancelled it.
    Client,
    /// Its client's connection or process went away.
    ClientLeft,
    /// The owner stopped it.
    Owner,
    /// The owner turned Sandtray off.
    Switch,
    /// Sandtray itself was ended.
    Shutdown,
}

impl EndedBy {
    pub const ALL: [EndedBy; 7] = [
        EndedBy::Program,
        EndedBy::Limit,
        EndedBy::Client,
        EndedBy::ClientLeft,
        EndedBy::Owner,
        EndedBy::Switch,
        EndedBy::Shutdown,
    ];

    /// The source of the end of a run that was not cancelled.
    pub fn of(status: Status) -> Self {
        match status {
            Status::Ok | Status::Failed => Self::Program,
            Status::Timeout | Status::OutOfMemory | Status::OutputLimit => Self::Limit,
            // A `Cancel` names every other source of a cancellation.
            Status::Cancelled => Self::Client,
        }
    }

    /// The word on the wire and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Limit => "limit",
            Self::Client => "client",
            Self::ClientLeft => "client_left",
            Self::Owner => "owner",
            Self::Switch => "switch",
            Self::Shutdown => "shutdown",
        }
    }
}

impl FromStr for EndedBy {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|by| by.as_str() == word).ok_or(())
    }
}

/// Ends a run early, and remembers the first source. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    token: CancellationToken,
    by: Arc<OnceLock<EndedBy>>,
    /// The source of the parent.
    above: Option<Arc<OnceLock<EndedBy>>>,
}

impl Cancel {
    /// A child that is cancelled with this one, and can be cancelled without it.
    pub fn child(&self) -> Self {
        Self { token: self.token.child_token(), by: Arc::default(), above: Some(Arc::clone(&self.by)) }
    }

    /// Cancels. Only the first source is remembered.
    pub fn by(&self, who: EndedBy) {
        if self.above.as_ref().is_none_or(|above| above.get().is_none()) {
            let _ = self.by.set(who);
        }
        self.token.cancel();
    }

    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// The source. Call it once the run is cancelled.
    pub fn who(&self) -> EndedBy {
        let above = || self.above.as_ref().and_then(|above| above.get());
        self.by.get().or_else(above).copied().unwrap_or(EndedBy::of(Status::Cancelled))
    }
}

/// Why a run was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutBy {
    /// The engine went away, or the connection to it.
    Engine,
    /// The engine was asked by another than Sandtray to end the container.
    Outside,
    /// The engine cannot say; it was not the program.
    Unknown,
}

impl CutBy {
    pub const ALL: [CutBy; 3] = [CutBy::Engine, CutBy::Outside, CutBy::Unknown];

    /// The word on the wire and in the history.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Outside => "outside",
            Self::Unknown => "unknown",
        }
    }

    /// The next step.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Engine => "What it had done so far is lost but for its output. Run it again once the engine is back.",
            Self::Outside => "Another program on this computer removes or stops containers. Run it again.",
            Self::Unknown => {
                "The program did not end itself. Run it again; if this repeats, the computer may be short of memory."
            }
        }
    }
}

/// The word of a run that was cut off, in the history.
pub const INTERRUPTED: &str = "interrupted";

/// A run whose program had started, and that was ended neither by itself nor by Sandtray.
#[derive(Debug, Clone, PartialEq)]
pub struct Interrupted {
    pub run: RunId,
    pub by: CutBy,
    /// The engine's usual name.
    pub engine: &'static str,
    /// From the program's start until the cut was noticed.
    pub wall: Duration,
    pub queued: Duration,
    pub stdout: Captured,
    pub stderr: Captured,
    /// As last read, if its figures were read while it ran.
    pub memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
    pub image: String,
    pub limits: Limits,
    /// Whether the run is in the history.
    pub recorded: bool,
}

impl Interrupted {
    /// The approximate size in memory, in bytes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.stdout.bytes.len() + self.stderr.bytes.len()
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cut off after {:.1} s: ", self.wall.as_secs_f64())?;
        match self.by {
            CutBy::Engine => write!(f, "{} went away.", self.engine),
            CutBy::Outside => f.write_str("something other than Sandtray ended its container."),
            CutBy::Unknown => f.write_str("its container ended, and it is not known why."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_own_word() {
        for by in EndedBy::ALL {
            assert_eq!(by.as_str().parse(), Ok(by));
            assert_eq!(serde_json::to_value(by).unwrap(), by.as_str());
        }
        for by in CutBy::ALL {
            assert_eq!(serde_json::to_value(by).unwrap(), by.as_str());
            assert!(by.as_str().parse::<EndedBy>().is_err(), "one column holds both");
        }
    }

    #[tokio::test]
    async fn the_first_who_cancels_is_the_one_who_did() {
        let cancel = Cancel::default();
        let other = cancel.clone();
        assert!(!other.is_cancelled());
        cancel.by(EndedBy::Owner);
        other.by(EndedBy::ClientLeft);
        other.cancelled().await;
        assert_eq!((other.is_cancelled(), other.who()), (true, EndedBy::Owner));
    }

    #[test]
    fn a_child_ends_with_its_parent_and_its_parent_not_with_it() {
        let parent = Cancel::default();
        let (first, second) = (parent.child(), parent.child());
        first.by(EndedBy::ClientLeft);
        assert_eq!((first.is_cancelled(), second.is_cancelled(), parent.is_cancelled()), (true, false, false));
        parent.by(EndedBy::Owner);
        second.by(EndedBy::ClientLeft);
        assert_eq!((second.is_cancelled(), second.who()), (true, EndedBy::Owner), "the parent was first");
        assert_eq!((first.who(), parent.who()), (EndedBy::ClientLeft, EndedBy::Owner));
        let third = parent.child();
        assert_eq!((third.is_cancelled(), third.who()), (true, EndedBy::Owner));
    }
}
