//! The scripted engine keeps the promises that the real one keeps, so what is tested on it holds on the other.

use std::sync::Arc;

use sandtray_core::engine::fake::Fake;
use sandtray_tests::contract::{Subject, Talk};
use sandtray_tests::contract_suite;

async fn subject() -> Subject {
    Subject {
        engine: Arc::new(Fake::new().with_image("here:1")),
        image: "here:1".into(),
        missing_image: "nowhere:1".into(),
        talk: Talk::echo(),
    }
}

contract_suite!(subject);
