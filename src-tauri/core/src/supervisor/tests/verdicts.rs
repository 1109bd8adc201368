//! The verdict of each end of a program.

use super::*;

#[tokio::test]
async fn verdicts_come_from_the_launcher_or_else_from_the_engine() {
    let rig = Rig::new();
    for (program, expected) in [
        ("exit 0", (Status::Ok, 0)),
        ("exit 124", (Status::Failed, 124)),
        ("exit 137", (Status::Failed, 137)),
        ("oom\nexit 1", (Status::OutOfMemory, 1)),
        ("open\ndie", (Status::Failed, 137)),
        ("die 2", (Status::Failed, 137)),
        ("die oom", (Status::OutOfMemory, 137)),
        ("die oom told", (Status::OutOfMemory, 137)),
        ("die 124", (Status::Timeout, 137)),
    ] {
        let outcome = rig.start(1, program).result().await.unwrap();
        assert_eq!((outcome.status, outcome.exit_code), expected, "{program}");
    }
}

#[tokio::test]
async fn a_program_that_overruns_is_ended_with_what_it_printed() {
    let rig = Rig::new();
    let mut spec = spec(Language::Python, "out before\nhang");
    spec.limits.millis = 100;
    let outcome = rig.start_spec(1, spec).result().await.unwrap();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Timeout, 137));
    assert_eq!(outcome.stdout.bytes, "before\n");
    assert!(outcome.wall >= Duration::from_millis(100), "{:?}", outcome.wall);
}

#[tokio::test]
async fn a_stream_at_its_cap_is_fine_and_one_byte_more_ends_the_run() {
    let rig = Rig::new();
    let cap = limits().output_bytes as usize;
    let at = rig.start(1, &format!("out {}", "x".repeat(cap - 1))).result().await.unwrap();
    assert_eq!((at.status, at.stdout.produced), (Status::Ok, cap as u64));
    let over = rig.start(1, &format!("out {}\nhang", "x".repeat(cap))).result().await.unwrap();
    assert_eq!((over.status, over.exit_code, over.stdout.bytes.len()), (Status::OutputLimit, 137, cap));
    assert_eq!(over.stdout.produced, cap as u64 + 1);
}

#[tokio::test]
async fn a_flood_that_overtakes_the_start_line_is_judged_once_that_is_read() {
    let rig = Rig::new();
    let outcome = rig.start(1, &format!("early {}\nhang", limits().output_bytes + 1)).result().await.unwrap();
    assert_eq!((outcome.status, outcome.exit_code), (Status::OutputLimit, 137));
}
