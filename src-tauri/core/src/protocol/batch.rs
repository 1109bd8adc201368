//! `code.batch`: several runs in one request, with one reply for all of them that fits a frame. Pure.

use schemars::JsonSchema;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::error::ErrorObject;
use super::reader::{self, FIELD, Hints};
use super::reply::{About, RunReply};
use super::request::RunRequest;
use super::{Answer, MAX_ID_BYTES};
use crate::codec::MAX_FRAME;
use crate::error::RunError;

/// Most runs of one batch.
pub const MAX_BATCH: usize = 64;
/// Items of at most this many bytes always fit the reply, whatever the other items take. Most results are that small,
/// and so are all errors but those of interrupted runs.
pub const SMALL_ITEM: usize = 4 << 10;
/// Bytes that a frame has left for the larger items.
pub const LARGE_ITEMS: usize = MAX_FRAME - MAX_BATCH * (SMALL_ITEM + 1) - MAX_ID_BYTES - 256;

/// What `code.batch` is asked to do.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// 1 to 64 runs, without `stream`.
    #[serde(deserialize_with = "reader::at_most::<MAX_BATCH, _, _>")]
    #[schemars(length(min = 1, max = "MAX_BATCH"))]
    pub runs: Vec<RunRequest>,
    /// How many run at once, at least 1; no more than the owner allows.
    #[serde(default, deserialize_with = "max_parallel")]
    #[schemars(range(min = 1))]
    pub max_parallel: Option<usize>,
    /// Whether the first that does not end with `ok` keeps those from starting that have not.
    #[serde(default)]
    pub stop_on_failure: bool,
    /// Whether the client is told of each run while it runs and as it ends.
    #[serde(default)]
    pub stream: bool,
}

impl BatchRequest {
    /// Reads the parameters of `code.batch`.
    ///
    /// # Errors
    ///
    /// [`RunError::Invalid`], which names the run and its field.
    pub fn decode(params: Option<&RawValue>) -> Result<Self, RunError> {
        let request: Self = reader::read(params).map_err(|fault| match fault.within("runs") {
            Ok((index, fault)) => in_run(index, RunRequest::refusal(fault)),
            Err(fault) => fault.refusal(&Hints { missing: |_| None, unknown: meant }),
        })?;
        if request.runs.is_empty() {
            return Err(RunError::invalid("runs", format!("`runs` is empty; it holds 1 to {MAX_BATCH} runs.")));
        }
        if let Some(index) = request.runs.iter().position(|run| run.stream) {
            let message = "`stream` stands beside `runs` and holds for all of them.";
            return Err(in_run(index, RunError::invalid("stream", message)));
        }
        Ok(request)
    }
}

/// Names the run in an error about one run of a batch.
pub fn in_run(index: usize, error: RunError) -> RunError {
    let RunError::Invalid { field, message } = error else { return error };
    let run = format!("runs[{index}]");
    let field = if field == "params" { run.clone() } else { format!("{run}.{field}") };
    RunError::Invalid { field, message: format!("In `{run}`: {message}") }
}

/// The upper bound is not checked: more than there are runs has the same effect as their number.
fn max_parallel<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<usize>, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if number.fract() != 0.0 || number < 1.0 {
        return Err(D::Error::custom(format!("{FIELD} is a whole number of at least 1.")));
    }
    // The cast saturates: a float beyond the integer's range becomes the greatest integer.
    Ok(Some(number as usize))
}

fn meant(field: &str) -> Option<String> {
    let meant = match field {
        "parallel" | "concurrency" | "max_concurrency" | "jobs" => "max_parallel",
        "fail_fast" | "stop_on_error" => "stop_on_failure",
        "calls" | "requests" | "programs" | "batch" | "items" => "runs",
        _ => return None,
    };
    Some(format!("Did you mean `{meant}`?"))
}

/// The result of one run of a batch as JSON, or its error.
pub type Item = Answer<Box<RawValue>>;

impl Item {
    pub fn of<T: Serialize>(answer: Result<T, ErrorObject>) -> Self {
        match answer.map(|result| to_raw_value(&result)) {
            Ok(Ok(raw)) => Self::Result(raw),
            Ok(Err(_)) => Self::Error(RunError::Internal("a result has no JSON form".into()).into()),
            Err(error) => Self::Error(error),
        }
    }

    /// The item of a run whose result was dropped because too many bytes are kept already.
    pub fn no_room(index: usize, streamed: bool) -> Self {
        Self::Error(ErrorObject::no_room_in_batch(index, streamed))
    }

    /// Bytes of the item in the reply, with its name and the braces around it.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Result(raw) => raw.get().len() + r#"{"result":}"#.len(),
            Self::Error(_) => serde_json::to_string(self).map_or(usize::MAX, |text| text.len()),
        }
    }
}

/// `code.result`: one run of a batch is over.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Finished<'a> {
    #[serde(flatten)]
    pub about: About<'a>,
    #[serde(flatten)]
    #[schemars(with = "Answer<RunReply<'_>>")]
    pub item: &'a Item,
}

/// Collects the items of a reply in the order of the runs, as they end in any order. An item that does not fit is
/// dropped at once, so a batch keeps no more than a frame.
///
/// A large item is kept if it fits together with all large items before it in the order of the runs. So which items are
/// dropped depends on the results, and not on when the runs ended.
#[derive(Debug)]
pub struct Results {
    items: Vec<Option<Item>>,
    /// Bytes of each large item. Zero for a small item and for one that has not come yet.
    large: Vec<usize>,
    streamed: bool,
}

impl Results {
    pub fn new(runs: usize, streamed: bool) -> Self {
        Self { items: (0..runs).map(|_| None).collect(), large: vec![0; runs], streamed }
    }

    /// The bytes of large items that are kept once `item` is added. None for a small item, which is always kept.
    pub fn bytes_with(&self, item: &Item) -> Option<usize> {
        let large = |item: &Item| Some(item.bytes()).filter(|bytes| *bytes > SMALL_ITEM);
        let kept: usize = self.items.iter().flatten().filter_map(large).sum();
        large(item).map(|bytes| (kept + bytes).min(LARGE_ITEMS))
    }

    pub fn put(&mut self, index: usize, item: Item) {
        let bytes = item.bytes();
        self.large[index] = if bytes > SMALL_ITEM { bytes } else { 0 };
        self.items[index] = Some(item);
        let mut total: usize = 0;
        for (index, bytes) in self.large.iter().enumerate() {
            total = total.saturating_add(*bytes);
            if *bytes > 0 && total > LARGE_ITEMS {
                self.items[index] = Some(Item::Error(ErrorObject::reply_too_large(index, self.streamed)));
            }
        }
    }

    /// Makes the reply. Runs without an item were not started; `why` gives the reason.
    pub fn finish(self, why: impl Fn() -> String) -> BatchReply {
        let missing = || Item::Error(ErrorObject::not_started(why()));
        BatchReply { results: self.items.into_iter().map(|item| item.unwrap_or_else(missing)).collect() }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BatchReply {
    /// In the order of the runs.
    #[schemars(with = "Vec<Answer<RunReply<'_>>>")]
    results: Vec<Item>,
}

impl BatchReply {
    pub fn bytes(&self) -> usize {
        self.results.iter().map(Item::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::{Id, Response};

    fn decode(params: &Value) -> Result<BatchRequest, RunError> {
        BatchRequest::decode(Some(&to_raw_value(params).unwrap()))
    }

    fn refused(params: &Value) -> (String, String) {
        match decode(params) {
            Err(RunError::Invalid { field, message }) => (field, message),
            other => panic!("{params} gave {other:?}"),
        }
    }

    fn run() -> Value {
        json!({"language": "py", "code": ""})
    }

    #[test]
    fn a_batch_is_decoded() {
        let request = decode(&json!({"runs": [run(), run()]})).unwrap();
        assert_eq!((request.runs.len(), request.max_parallel), (2, None));
        assert_eq!((request.stop_on_failure, request.stream), (false, false));
        let request = decode(&json!({"runs": [run()], "max_parallel": 3, "stop_on_failure": true, "stream": true}));
        let request = request.unwrap();
        assert_eq!((request.max_parallel, request.stop_on_failure, request.stream), (Some(3), true, true));
        let nulls = decode(&json!({"runs": [run()], "max_parallel": null, "stop_on_failure": null, "stream": null}));
        assert_eq!(nulls, decode(&json!({"runs": [run()]})));
        assert_eq!(decode(&json!({"runs": vec![run(); MAX_BATCH]})).unwrap().runs.len(), MAX_BATCH);
        let vast = decode(&json!({"runs": [run()], "max_parallel": 1e300})).unwrap();
        assert_eq!(vast.max_parallel, Some(usize::MAX));
    }

    #[test]
    fn a_mistake_names_the_run_and_the_field() {
        let second = |bad: Value| json!({"runs": [run(), bad]});
        for (params, field, message) in [
            (json!({}), "runs", "`runs` is missing."),
            (json!({"runs": null}), "runs", "`runs` is missing."),
            (json!({"runs": []}), "runs", "`runs` is empty; it holds 1 to 64 runs."),
            (json!({"runs": {}}), "runs", "`runs` must be an array, not an object."),
            (json!({"runs": vec![run(); 65]}), "runs", "`runs` has more than 64 entries."),
            (json!({"runs": vec![0; 100_000]}), "runs", "`runs` has more than 64 entries."),
            (second(json!(5)), "runs[1]", "In `runs[1]`: `params` must be an object, not a number."),
            (second(json!({"language": "py"})), "runs[1].code", "In `runs[1]`: `code` is missing."),
            (
                second(json!({"language": "py", "code": "", "files": {"a": 1}})),
                "runs[1].files[\"a\"]",
                "In `runs[1]`: `files[\"a\"]` must be a string or {\"base64\": \"...\"}, not a number.",
            ),
            (
                second(json!({"language": "py", "code": "", "stream": true})),
                "runs[1].stream",
                "In `runs[1]`: `stream` stands beside `runs` and holds for all of them.",
            ),
            (
                json!({"runs": [run()], "max_parallel": 0}),
                "max_parallel",
                "`max_parallel` is a whole number of at least 1.",
            ),
            (
                json!({"runs": [run()], "max_parallel": 1.5}),
                "max_parallel",
                "`max_parallel` is a whole number of at least 1.",
            ),
            (
                json!({"runs": [run()], "stop_on_failure": 1}),
                "stop_on_failure",
                "`stop_on_failure` must be true or false, not a number.",
            ),
            (json!({"concurrency": 1}), "concurrency", "There is no field `concurrency`. Did you mean `max_parallel`?"),
            (
                json!({"language": "py"}),
                "language",
                "There is no field `language`. There are runs, max_parallel, stop_on_failure and stream.",
            ),
        ] {
            assert_eq!(refused(&params), (field.to_owned(), message.to_owned()), "{params}");
        }
        assert_eq!(BatchRequest::decode(None).unwrap_err().code(), "invalid_params");
        assert_eq!(in_run(3, RunError::Off), RunError::Off);
    }

    fn item(bytes: usize) -> Item {
        Item::of(Ok("x".repeat(bytes)))
    }

    /// The result of each item, as `ok` or the error's code.
    fn words(results: Results) -> Vec<String> {
        let reply = serde_json::to_value(results.finish(|| "stopped".into())).unwrap();
        let word = |item: &Value| item["error"]["data"]["code"].as_str().unwrap_or("ok").to_owned();
        reply["results"].as_array().unwrap().iter().map(word).collect()
    }

    #[test]
    fn items_stand_in_the_order_of_the_runs_and_what_never_came_was_not_started() {
        let mut results = Results::new(3, false);
        results.put(2, item(1));
        results.put(0, Item::of::<()>(Err(RunError::Off.into())));
        let reply = serde_json::to_value(results.finish(|| "stopped".into())).unwrap();
        assert_eq!(reply["results"][0]["error"]["data"]["code"], "capability_off");
        assert_eq!(
            reply["results"][1],
            json!({"error": {"code": -32007, "message": "stopped", "data": {"code": "not_started"}}})
        );
        assert_eq!(reply["results"][2], json!({"result": "x"}));
    }

    #[test]
    fn what_is_left_out_is_the_same_in_whatever_order_the_runs_end() {
        let sizes = [10, 6 << 20, 8 << 20, 3 << 20, 100, 1 << 20];
        let kept = ["ok", "ok", "ok", "reply_too_large", "ok", "reply_too_large"];
        for order in [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 5, 2, 0, 4, 1]] {
            let mut results = Results::new(sizes.len(), false);
            for index in order {
                results.put(index, item(sizes[index]));
            }
            assert_eq!(words(results), kept, "{order:?}");
        }
    }

    #[test]
    fn what_cannot_fit_is_let_go_of_before_the_batch_ends() {
        let mut results = Results::new(MAX_BATCH, true);
        for index in (0..MAX_BATCH).rev() {
            results.put(index, item(5 << 20));
            let kept: usize = results.items.iter().flatten().map(Item::bytes).sum();
            assert!(kept <= MAX_FRAME, "{kept} bytes are kept");
        }
        let reply = serde_json::to_value(results.finish(String::new)).unwrap();
        let hint = |reply: &Value| reply["results"][63]["error"]["data"]["hint"].as_str().unwrap().to_owned();
        assert_eq!(hint(&reply), "It was delivered on its own, as `code.result`.");
        let mut results = Results::new(MAX_BATCH, false);
        (0..MAX_BATCH).for_each(|index| results.put(index, item(5 << 20)));
        let reply = serde_json::to_value(results.finish(String::new)).unwrap();
        assert_eq!(hint(&reply), "With `stream: true` each result is delivered on its own, as `code.result`.");
    }

    #[test]
    fn the_greatest_reply_fits_a_frame_to_the_byte() {
        let mut results = Results::new(MAX_BATCH, true);
        let around = r#"{"result":""}"#.len();
        results.put(0, item(LARGE_ITEMS - around));
        for index in 1..MAX_BATCH {
            results.put(index, item(SMALL_ITEM - around));
        }
        assert_eq!(words_of_large(&results), 1);
        let id = Id::read(&to_raw_value(&"i".repeat(MAX_ID_BYTES - 2)).unwrap()).unwrap();
        let line = serde_json::to_vec(&Response::new(&id, Ok(results.finish(String::new)))).unwrap();
        assert!((MAX_FRAME - 8192..=MAX_FRAME).contains(&line.len()), "{}", line.len());
        let mut results = Results::new(1, true);
        results.put(0, item(LARGE_ITEMS - around + 1));
        assert_eq!(words(results), ["reply_too_large"]);
    }

    fn words_of_large(results: &Results) -> usize {
        results.large.iter().filter(|bytes| **bytes > 0).count()
    }
}
