//! The contract of `code.run`, as an agent meets it: JSON over the socket, real containers behind it.

mod arguments;
mod ending;
mod files;
mod go;
mod hints;
mod images;
mod limits;
mod preload;
mod programs;
mod requests;
mod schema;
mod streams;
mod walls;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

fn python(code: &str) -> Value {
    json!({ "language": "python", "code": code })
}

fn shell(code: &str) -> Value {
    json!({ "language": "shell", "code": code })
}

fn base64(bytes: &[u8]) -> Value {
    json!({ "base64": STANDARD.encode(bytes) })
}

/// The parts of a result that a test names, as one value to compare.
fn parts(result: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), result[*name].clone())).collect::<serde_json::Map<_, _>>().into()
}
