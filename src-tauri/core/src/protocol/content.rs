//! Bytes in requests and replies: a string if they are text, otherwise `{"base64": "..."}`.

use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use super::error::quote;
use super::reader::FIELD;

/// Padding is accepted but not required, because many encoders leave it out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes that came in a request, decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Given(pub(super) Bytes);

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrBase64).map(Self)
    }
}

impl JsonSchema for Given {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Text as it is, or any bytes as base64 of the standard alphabet.",
            "oneOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "base64": { "type": "string", "contentEncoding": "base64" } },
                    "required": ["base64"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

struct TextOrBase64;

impl<'de> Visitor<'de> for TextOrBase64 {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or {\"base64\": \"...\"}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Bytes, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bytes, A::Error> {
        match map.next_key::<String>()?.as_deref() {
            None => return Err(A::Error::custom(format!("{FIELD} is an empty object; it needs `base64`."))),
            Some("base64") => {}
            Some(other) => {
                let other = quote(other);
                let message =
                    format!("{FIELD} has an unknown field `{other}`; an object here is {{\"base64\": \"...\"}}.");
                return Err(A::Error::custom(message));
            }
        }
        let mut text: String = map.next_value()?;
        if map.next_key::<String>()?.is_some() {
            return Err(A::Error::custom(format!("{FIELD} has more than 1 entries.")));
        }
        // `base64` and Python's `encodebytes` break their output into lines.
        text.retain(|c| !c.is_ascii_whitespace());
        BASE64.decode(text).map(Bytes::from).map_err(|error| {
            A::Error::custom(format!("{FIELD} is not base64 of the standard alphabet (A-Z a-z 0-9 + /): {error}."))
        })
    }
}
