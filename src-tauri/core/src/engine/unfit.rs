//! The kinds of reasons that keep an engine from being used. The sentence about it is stored beside the kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// An address that cannot be read, or of another system.
    Address,
    /// An `ssh://` address.
    Ssh,
    /// An address that needs TLS.
    Tls,
    /// Another computer's address, and the owner's settings do not name it.
    Elsewhere,
    TooOld,
    /// It runs containers of another system.
    OtherSystem,
    /// What the engine says itself.
    #[default]
    Other,
}

impl Unfit {
    /// The trouble in a few words that follow the engine's name.
    pub(super) fn summary(self, engine: &str) -> String {
        match self {
            Self::Address => format!("{engine}'s address can't be used"),
            Self::Ssh => format!("{engine} can't be reached over SSH"),
            Self::Tls => format!("{engine} can't be reached over TLS"),
            Self::Elsewhere => format!("{engine} is on another computer"),
            Self::TooOld => format!("{engine} is too old"),
            Self::OtherSystem => format!("{engine} runs Windows containers"),
            Self::Other => format!("{engine} can't be used"),
        }
    }
}
