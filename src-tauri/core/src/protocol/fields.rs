//! Reading parameters one field at a time, so that a refusal names the field and says in plain words what is wrong.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::quote;
use crate::error::RunError;

/// Padding is accepted and not asked for: half of the world's encoders leave it out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An object's entries in order. More than `most`, or two of one name, are refused.
pub(super) fn object<'a>(field: &str, raw: &'a RawValue, most: usize) -> Result<Vec<(String, &'a RawValue)>, RunError> {
    if !raw.get().starts_with('{') {
        return Err(wrong(field, "an object", raw));
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    match deserializer.deserialize_map(Entries { most }) {
        Ok(Ok(entries)) => Ok(entries),
        Ok(Err(Fault::Many)) => Err(RunError::invalid(field, format!("`{field}` has more than {most} entries."))),
        Ok(Err(Fault::Twice(name))) => {
            let name = quote(&name);
            Err(RunError::invalid(below(field, &name), format!("`{field}` names `{name}` twice.")))
        }
        // The text was read as JSON before, so what fails here is a key.
        Err(_) => Err(RunError::invalid(field, format!("`{field}` has a key with half of a surrogate pair in it."))),
    }
}

/// An array's items. More than `most` are refused before they are kept.
pub(super) fn array<'a>(field: &str, raw: &'a RawValue, most: usize) -> Result<Vec<&'a RawValue>, RunError> {
    if !raw.get().starts_with('[') {
        return Err(wrong(field, "an array", raw));
    }
    let mut deserializer = serde_json::Deserializer::from_str(raw.get());
    match deserializer.deserialize_seq(Items { most }) {
        Ok(Some(items)) => Ok(items),
        // The text was read as JSON before, so nothing else fails here.
        Ok(None) | Err(_) => Err(RunError::invalid(field, format!("`{field}` has more than {most} entries."))),
    }
}

pub(super) fn string(field: &str, raw: &RawValue) -> Result<String, RunError> {
    if !raw.get().starts_with('"') {
        return Err(wrong(field, "a string", raw));
    }
    serde_json::from_str(raw.get()).map_err(|_| {
        RunError::invalid(
            field,
            format!(
                "`{field}` holds half of a surrogate pair (an escape from \\ud800 to \\udfff on its own), which is no character and can't be written as UTF-8."
            ),
        )
    })
}

pub(super) fn boolean(field: &str, raw: &RawValue) -> Result<bool, RunError> {
    match raw.get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(wrong(field, "true or false", raw)),
    }
}

pub(super) fn number(field: &str, raw: &RawValue) -> Result<f64, RunError> {
    if !raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Err(wrong(field, "a number", raw));
    }
    match serde_json::from_str::<f64>(raw.get()) {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(RunError::invalid(field, format!("`{field}` is a number beyond any bound."))),
    }
}

/// Text as it is, or `{"base64": "..."}` for anything else.
pub(super) fn content(field: &str, raw: &RawValue) -> Result<Bytes, RunError> {
    if raw.get().starts_with('"') {
        return string(field, raw).map(Bytes::from);
    }
    if !raw.get().starts_with('{') {
        return Err(wrong(field, "a string or {\"base64\": \"...\"}", raw));
    }
    let entries = object(field, raw, 1)?;
    let [(name, encoded)] = entries.as_slice() else {
        return Err(RunError::invalid(field, format!("`{field}` is an empty object; it needs `base64`.")));
    };
    if name != "base64" {
        let message =
            format!("`{field}` has an unknown field `{}`; an object here is {{\"base64\": \"...\"}}.", quote(name));
        return Err(RunError::invalid(field, message));
    }
    base64(field, string(field, encoded)?)
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// White space is dropped first: `base64` and Python's `encodebytes` break lines.
fn base64(field: &str, mut text: String) -> Result<Bytes, RunError> {
    text.retain(|c| !c.is_ascii_whitespace());
    BASE64.decode(text).map(Bytes::from).map_err(|error| {
        let message = format!("`{field}` is not base64 of the standard alphabet (A-Z a-z 0-9 + /): {error}.");
        RunError::invalid(field, message)
    })
}

fn wrong(field: &str, wanted: &str, raw: &RawValue) -> RunError {
    let got = match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't') => "true",
        Some(b'f') => "false",
        Some(b'n') => "null",
        _ => "a number",
    };
    RunError::invalid(field, format!("`{field}` must be {wanted}, not {got}."))
}

fn below(field: &str, name: &str) -> String {
    match field {
        "params" => name.to_owned(),
        "files" => file_field(name),
        _ => format!("{field}.{name}"),
    }
}

/// How a refusal names one of the files.
pub(crate) fn file_field(name: &str) -> String {
    format!("files[\"{}\"]", quote(name))
}

struct Entries {
    most: usize,
}

enum Fault {
    Many,
    Twice(String),
}

impl<'de> Visitor<'de> for Entries {
    type Value = Result<Vec<(String, &'de RawValue)>, Fault>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries: Vec<(String, &'de RawValue)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut fault = None;
        // Read to the end even after a fault: the parser asks for it.
        while let Some((name, value)) = map.next_entry::<String, &'de RawValue>()? {
            if fault.is_some() {
                continue;
            }
            if entries.len() == self.most {
                fault = Some(Fault::Many);
            } else if !seen.insert(name.clone()) {
                fault = Some(Fault::Twice(name));
            } else {
                entries.push((name, value));
            }
        }
        Ok(fault.map_or(Ok(entries), Err))
    }
}

struct Items {
    most: usize,
}

impl<'de> Visitor<'de> for Items {
    /// None where there are too many.
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        let mut many = false;
        // Read to the end even when there are too many: the parser asks for it.
        while let Some(item) = seq.next_element::<&'de RawValue>()? {
            many |= items.len() == self.most;
            if !many {
                items.push(item);
            }
        }
        Ok((!many).then_some(items))
    }
}
