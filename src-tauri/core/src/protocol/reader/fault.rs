//! An error in a request: what is wrong, and where.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};

use crate::error::RunError;
use crate::protocol::error::quote;

/// What a refusal calls the parameters as a whole.
const WHOLE: &str = "params";

/// Placeholder for the field's name in the error message of a request's type.
pub(in crate::protocol) const FIELD: &str = "{field}";

/// Adds sentences of a request's type to a refusal.
pub(in crate::protocol) struct Hints {
    pub(in crate::protocol) missing: fn(&str) -> Option<String>,
    pub(in crate::protocol) unknown: fn(&str) -> Option<String>,
}

impl Hints {
    pub(in crate::protocol) const NONE: Self = Self { missing: |_| None, unknown: |_| None };
}

#[derive(Debug)]
pub(in crate::protocol) struct Fault {
    /// From the innermost step outwards.
    path: Vec<Step>,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A declared field of a struct.
    Field(String),
    /// A key of a map, chosen by the client.
    Key(String),
    Index(usize),
}

impl Step {
    fn append_to(&self, place: &mut String) {
        match self {
            Self::Field(name) if place.is_empty() => place.push_str(&quote(name)),
            Self::Field(name) => place.push_str(&format!(".{}", quote(name))),
            Self::Key(name) => place.push_str(&format!("[\"{}\"]", quote(name))),
            Self::Index(index) => place.push_str(&format!("[{index}]")),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Wrong {
        wanted: String,
        got: String,
    },
    Missing(&'static str),
    Unknown {
        name: String,
        known: &'static [&'static str],
    },
    /// A word that is not one of `known`.
    Word {
        word: String,
        known: &'static [&'static str],
    },
    /// Occurs twice in one object.
    Twice(Step),
    /// More entries than this bound.
    Many(usize),
    /// An unpaired surrogate: an escape from \ud800 to \udfff on its own.
    HalfCharacter,
    HalfCharacterInKey,
    /// A number too large for a finite `f64`.
    TooGreat,
    /// A whole sentence, in which [`FIELD`] stands for the field's name.
    Sentence(String),
}

impl From<What> for Fault {
    fn from(what: What) -> Self {
        Self { path: Vec::new(), what }
    }
}

impl Fault {
    pub(super) fn below(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }

    /// For a fault in an item of the array `field`: the item's index, and the fault relative to the item.
    ///
    /// # Errors
    ///
    /// The fault itself, if it lies elsewhere.
    pub(in crate::protocol) fn within(mut self, field: &str) -> Result<(usize, Self), Self> {
        match self.path.as_slice() {
            [.., Step::Index(index), Step::Field(name)] if name == field => {
                let index = *index;
                self.path.truncate(self.path.len() - 2);
                Ok((index, self))
            }
            _ => Err(self),
        }
    }

    /// The path of the faulty field, or of the object in which a field is missing or unknown.
    fn place(&self) -> String {
        let mut place = String::new();
        for step in self.path.iter().rev() {
            step.append_to(&mut place);
        }
        place
    }

    fn named(&self, name: &str) -> String {
        let mut place = self.place();
        Step::Field(name.to_owned()).append_to(&mut place);
        place
    }

    /// The error for the client. `hints` adds a sentence about an unknown or missing field, by its full path.
    pub(in crate::protocol) fn refusal(self, hints: &Hints) -> RunError {
        let place = self.place();
        let place = if place.is_empty() { WHOLE.to_owned() } else { place };
        let (field, message) = match &self.what {
            What::Wrong { wanted, got } => (place.clone(), format!("`{place}` must be {wanted}, not {got}.")),
            What::Missing(name) => {
                let name = self.named(name);
                let message = match (hints.missing)(&name) {
                    Some(more) => format!("`{name}` is missing; {more}"),
                    None => format!("`{name}` is missing."),
                };
                (name, message)
            }
            What::Unknown { name, known } => {
                let name = self.named(name);
                let more = (hints.unknown)(&name).unwrap_or_else(|| format!("There are {}.", list(known)));
                (name.clone(), format!("There is no field `{name}`. {more}"))
            }
            What::Word { word, known } => {
                let known: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
                let message = format!("`{place}` is {}, not \"{}\".", known.join(" or "), quote(word));
                (place, message)
            }
            What::Twice(step) => {
                let name = match step {
                    Step::Field(name) | Step::Key(name) => quote(name),
                    Step::Index(index) => index.to_string(),
                };
                let mut inner = self.place();
                step.append_to(&mut inner);
                (inner, format!("`{place}` names `{name}` twice."))
            }
            What::Many(most) => (place.clone(), format!("`{place}` has more than {most} entries.")),
            What::HalfCharacter => {
                let message = format!(
                    "`{place}` holds half of a surrogate pair (an escape from \\ud800 to \\udfff on its own), which is no \
                     character and can't be written as UTF-8."
                );
                (place, message)
            }
            What::HalfCharacterInKey => {
                (place.clone(), format!("`{place}` has a key with half of a surrogate pair in it."))
            }
            What::TooGreat => (place.clone(), format!("`{place}` is a number beyond any bound.")),
            What::Sentence(sentence) => (place.clone(), sentence.replace(FIELD, &format!("`{place}`"))),
        };
        RunError::Invalid { field, message }
    }
}

/// Joins words as "a, b and c".
fn list(words: &[&str]) -> String {
    match words {
        [] => "none".into(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}", self.what, self.place())
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: Display>(sentence: T) -> Self {
        What::Sentence(sentence.to_string()).into()
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "serde may add kinds; JSON's are all here")]
    fn invalid_type(got: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let got = match got {
            Unexpected::Bool(true) => "true",
            Unexpected::Bool(false) => "false",
            Unexpected::Str(_) => "a string",
            Unexpected::Unit | Unexpected::Option => "null",
            Unexpected::Seq => "an array",
            Unexpected::Map | Unexpected::StructVariant | Unexpected::NewtypeStruct => "an object",
            _ => "a number",
        };
        What::Wrong { wanted: wanted.to_string(), got: got.to_owned() }.into()
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        What::Unknown { name: name.to_owned(), known }.into()
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        What::Word { word: word.to_owned(), known }.into()
    }

    fn missing_field(name: &'static str) -> Self {
        What::Missing(name).into()
    }

    fn duplicate_field(name: &'static str) -> Self {
        What::Twice(Step::Field(name.to_owned())).into()
    }
}
