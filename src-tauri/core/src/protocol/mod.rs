//! JSON-RPC 2.0 on the local socket: parses lines into messages and encodes replies.
//! Pure: no socket, no clock. [`crate::policy`] decides what a request may ask for.

pub mod batch;
pub mod capability;
mod content;
pub mod error;
pub mod own_name;
mod reader;
pub mod reply;
pub mod request;
pub mod schema;
pub mod status;

pub(crate) use request::file_field;

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use error::ErrorObject;
use reader::FIELD;

/// The protocol's version. Incremented by a change that would break existing clients.
pub const PROTOCOL: u32 = 1;
pub const CODE_RUN: &str = "code.run";
pub const CODE_BATCH: &str = "code.batch";
/// Longest id. Every notification about a run repeats its request's id, so the id is bounded.
pub const MAX_ID_BYTES: usize = 256;

/// A request's id. It keeps the exact JSON, so that it is echoed unchanged: `1.0`, `10000000000000000000000`, `null`.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Id(Box<RawValue>);

impl Id {
    /// The id of a reply to a message whose own id could not be read.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// A normalised form for comparison: different escapes of one string are one id.
    pub fn key(&self) -> String {
        match serde_json::from_str::<String>(self.0.get()) {
            Ok(text) => serde_json::Value::String(text).to_string(),
            Err(_) => self.0.get().to_owned(),
        }
    }

    pub(crate) fn read(raw: &RawValue) -> Option<Self> {
        let scalar = matches!(raw.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9' | b'n'));
        (scalar && raw.get().len() <= MAX_ID_BYTES).then(|| Self(raw.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AsWritten;

        impl Visitor<'_> for AsWritten {
            type Value = Id;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the id of a request")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Id, E> {
                let raw = RawValue::from_string(text.to_owned()).ok();
                let fault = || E::custom(format!("{FIELD} is the id of a request of this connection."));
                raw.as_deref().and_then(Id::read).ok_or_else(fault)
            }
        }

        deserializer.deserialize_newtype_struct(reader::AS_WRITTEN, AsWritten)
    }
}

impl JsonSchema for Id {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The id of a request of the same connection, as JSON-RPC has it.",
            "type": ["string", "number", "null"],
        })
    }
}

/// One message from a client. Its parameters are parsed later, so that an error in them can be answered with its id.
#[derive(Debug)]
pub struct Message<'a> {
    /// None in a notification, which gets no reply.
    pub id: Option<Id>,
    pub method: String,
    pub params: Option<&'a RawValue>,
}

/// The error for a line that is not a valid message, with the id to answer.
#[derive(Debug)]
pub struct Refusal {
    pub id: Id,
    pub error: ErrorObject,
}

impl Refusal {
    fn new(id: Id, error: ErrorObject) -> Self {
        Self { id, error }
    }
}

/// The id of a message of which only the beginning is known. `null` if the id comes later, which JSON allows.
pub fn id_in_beginning(beginning: &[u8]) -> Id {
    let mut found = None;
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&beginning[..error.valid_up_to()]).unwrap_or_default(),
    };
    // The cut text always ends in a parse error. An id found before that is valid.
    let _ = IdSeeker(&mut found).deserialize(&mut serde_json::Deserializer::from_str(text));
    found.unwrap_or_else(Id::null)
}

struct IdSeeker<'a>(&'a mut Option<Id>);

impl<'de> DeserializeSeed<'de> for IdSeeker<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for IdSeeker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(name) = map.next_key::<String>()? {
            // The value at the very end may be cut, so an id is accepted only once something follows it.
            *self.0 = id.take().or(self.0.take());
            if name == "id" {
                id = Id::read(map.next_value::<&RawValue>()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// Tells `null` from absent, unlike serde's own `Option`: `"id": null` is a request, no id is a notification.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Parses one line. Values are skipped instead of built, so nesting uses no stack.
///
/// # Errors
///
/// A [`Refusal`] with the error to answer.
pub fn parse(line: &[u8]) -> Result<Message<'_>, Refusal> {
    let text = std::str::from_utf8(line)
        .map_err(|_| Refusal::new(Id::null(), ErrorObject::parse("The line is not valid UTF-8.")))?;
    let whole: &RawValue = serde_json::from_str(text)
        .map_err(|error| Refusal::new(Id::null(), ErrorObject::parse(format!("The line is not JSON: {error}."))))?;
    match whole.get().as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => {
            let message =
                "Batches are not spoken here; send each call on a line of its own, or several runs with `code.batch`.";
            return Err(Refusal::new(Id::null(), ErrorObject::invalid_request(message)));
        }
        _ => {
            return Err(Refusal::new(Id::null(), ErrorObject::invalid_request("A message is a JSON object.")));
        }
    }
    let envelope: Envelope<'_> = serde_json::from_str(whole.get()).map_err(|error| {
        Refusal::new(Id::null(), ErrorObject::invalid_request(format!("The message can't be read: {error}.")))
    })?;
    read(&envelope)
}

fn read<'a>(envelope: &Envelope<'a>) -> Result<Message<'a>, Refusal> {
    let id = match envelope.id {
        None => None,
        Some(raw) => Some(Id::read(raw).ok_or_else(|| {
            let message = format!("`id` is a string or a number of at most {MAX_ID_BYTES} bytes.");
            Refusal::new(Id::null(), ErrorObject::invalid_request(message))
        })?),
    };
    let refuse = |message: &str| {
        Refusal::new(id.clone().unwrap_or_else(Id::null), ErrorObject::invalid_request(message.to_owned()))
    };
    if envelope.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(refuse("`jsonrpc` must be \"2.0\"."));
    }
    let method = envelope.method.ok_or_else(|| refuse("`method` is missing."))?;
    let method = serde_json::from_str(method.get()).map_err(|_| refuse("`method` must be a string."))?;
    // The specification lets parameters be left out; `null` is treated the same.
    let params = envelope.params.filter(|params| params.get() != "null");
    Ok(Message { id, method, params })
}

#[derive(Debug, Serialize)]
pub struct Response<'a, T> {
    jsonrpc: &'static str,
    id: &'a Id,
    #[serde(flatten)]
    body: Answer<T>,
}

/// `"result": ...` or `"error": ...`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer<T> {
    Result(T),
    Error(ErrorObject),
}

impl<'a, T: Serialize> Response<'a, T> {
    pub fn new(id: &'a Id, answer: Result<T, ErrorObject>) -> Self {
        let body = match answer {
            Ok(result) => Answer::Result(result),
            Err(error) => Answer::Error(error),
        };
        Self { jsonrpc: "2.0", id, body }
    }
}

#[derive(Debug, Serialize)]
pub struct Notification<T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: T,
}

impl<T: Serialize> Notification<T> {
    pub fn new(method: &'static str, params: T) -> Self {
        Self { jsonrpc: "2.0", method, params }
    }
}

#[cfg(test)]
mod tests;
