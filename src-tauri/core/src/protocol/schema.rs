//! The JSON Schema of the protocol, generated from its types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::batch::{BatchReply, BatchRequest, Finished};
use super::capability::{Capabilities, HelloReply};
use super::error::ErrorObject;
use super::reply::{About, Output, RunReply, WaitingNote};
use super::request::{CancelReply, CancelRequest, HelloRequest, HistoryRequest, RunRequest};
use super::status::ServiceStatus;
use super::{CODE_BATCH, CODE_RUN, PROTOCOL};
use crate::history::Page;

/// For a method without parameters.
#[derive(JsonSchema)]
struct Nothing {}

/// The schema of each method's parameters and result, of each notification's parameters, and of the error object.
/// Shared definitions are in `$defs`.
pub fn document() -> Value {
    // Two generators, because a field with a default is optional to read and always written.
    let mut read = SchemaSettings::draft2020_12().into_generator();
    let mut written = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut methods = Map::new();
    let mut method = |name: &str, params: Schema, result: Schema| {
        methods.insert(name.into(), json!({ "params": params, "result": result }));
    };
    method("hello", of::<HelloRequest>(&mut read), of::<HelloReply>(&mut written));
    method("subscribe", of::<Nothing>(&mut read), of::<Capabilities<'_>>(&mut written));
    method("status", of::<Nothing>(&mut read), of::<ServiceStatus<'_>>(&mut written));
    method(CODE_RUN, of::<RunRequest>(&mut read), of::<RunReply<'_>>(&mut written));
    method(CODE_BATCH, of::<BatchRequest>(&mut read), of::<BatchReply>(&mut written));
    method("code.cancel", of::<CancelRequest>(&mut read), of::<CancelReply>(&mut written));
    method("code.history", of::<HistoryRequest>(&mut read), of::<Page>(&mut written));
    let notifications = json!({
        "capabilities.changed": of::<Capabilities<'_>>(&mut written),
        "code.waiting": of::<WaitingNote<'_>>(&mut written),
        "code.started": of::<About<'_>>(&mut written),
        "code.output": of::<Output<'_>>(&mut written),
        "code.result": of::<Finished<'_>>(&mut written),
    });
    let error = of::<ErrorObject>(&mut written);
    let mut definitions = read.take_definitions(true);
    definitions.append(&mut written.take_definitions(true));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sandtray's protocol",
        "protocol": PROTOCOL,
        "methods": methods,
        "notifications": notifications,
        "error": error,
        "$defs": definitions,
    })
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/schema.json` is the output of `sandtray schema`.
    #[test]
    fn the_schema_that_is_checked_in_is_this_one() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema.json");
        let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(checked_in == text, "docs/schema.json is stale: `cargo run -p sandtray -- schema > docs/schema.json`");
    }

    #[test]
    fn what_is_read_and_what_is_written_share_no_name_with_two_meanings() {
        let (mut read, mut written) = (
            SchemaSettings::draft2020_12().into_generator(),
            SchemaSettings::draft2020_12().for_serialize().into_generator(),
        );
        of::<BatchRequest>(&mut read);
        of::<BatchReply>(&mut written);
        of::<ServiceStatus<'_>>(&mut written);
        let written = written.take_definitions(true);
        for (name, schema) in read.take_definitions(true) {
            assert!(written.get(&name).is_none_or(|other| *other == schema), "{name}");
        }
    }

    #[test]
    fn a_request_is_told_with_its_bounds() {
        let schema = document();
        let run = &schema["$defs"]["RunRequest"];
        assert_eq!((&run["additionalProperties"], &run["required"]), (&json!(false), &json!(["language", "code"])));
        assert_eq!(run["properties"]["args"]["maxItems"], 64);
        assert_eq!(schema["methods"]["code.run"]["params"], json!({ "$ref": "#/$defs/RunRequest" }));
        assert_eq!(schema["$defs"]["BatchRequest"]["properties"]["runs"]["maxItems"], 64);
    }
}
