//! A full disk under a whole service: each run is recorded or told, and recording goes on by itself.

use std::collections::HashSet;

use sandtray_tests::rig::{Rig, built, eventually};
use sandtray_tests::small_disk::SmallDisk;
use serde_json::{Value, json};

use crate::shell;

/// Runs on the full disk.
const RUNS: usize = 60;

fn prints(kilobytes: usize) -> Value {
    shell(&format!("head -c {} /dev/zero | tr '\\0' x", kilobytes << 10))
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_runs_on_a_full_disk_are_each_recorded_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::over(&folder, 40);
    let rig = Rig::start_in(folder, |_| ()).await;
    let mut agent = rig.agent().await;
    for _ in 0..40 {
        assert_eq!(agent.run(prints(60)).await.get("recorded"), None, "said only where it is not so");
    }
    let reserve = rig.service.history.clone();
    eventually("room is set aside", || async {
        let _ = reserve.stats().await;
        std::fs::read_dir(rig.folder().join("data")).is_ok_and(|files| {
            files.flatten().any(|file| {
                file.file_name() == "history.sqlite-reserve"
                    && file.metadata().is_ok_and(|found| found.len() == 16 << 20)
            })
        })
    })
    .await;
    disk.fill();
    let (mut recorded, mut told) = (HashSet::new(), 0);
    for _ in 0..RUNS {
        let result = agent.run(prints(20)).await;
        assert_eq!(result["status"], "ok");
        match result.get("recorded") {
            None => drop(recorded.insert(result["run_id"].as_str().unwrap().to_owned())),
            Some(flag) => {
                assert_eq!(*flag, false);
                told += 1;
            }
        }
        disk.fill();
    }
    assert!(!recorded.is_empty(), "old output was given up for them");
    let page = agent.call("code.history", json!({ "limit": 500 })).await.unwrap();
    let known: HashSet<String> =
        page["runs"].as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(recorded.difference(&known).count(), 0, "what is not told is there");
    assert_eq!(known.len(), 40 + RUNS - told, "and no figures of old runs were lost");
    let status = agent.call("status", json!({})).await.unwrap();
    let history = &status["history"];
    assert_eq!((&history["state"], &history["why"]["reason"]), (&json!("trouble"), &json!("disk_full")), "{history}");
    assert_eq!((&history["unrecorded"], history["given_up"].as_u64() > Some(0)), (&json!(told), true), "{history}");

    disk.empty();
    eventually("it can be written again", || async { rig.service.history.troubles().borrow().is_none() }).await;
    assert_eq!(agent.call("status", json!({})).await.unwrap()["history"], json!({ "state": "ready" }));
    let id = agent.run(prints(1)).await["run_id"].as_str().unwrap().parse().unwrap();
    let record = rig.service.history.get(id).await.unwrap().unwrap();
    assert_eq!(record.body.unwrap().stdout.len(), 1024);
    rig.stop().await;
}

/// Records, with all the room that there may be left, until one cannot.
async fn until_unrecorded(rig: &Rig, disk: &SmallDisk) -> Value {
    let mut agent = rig.agent().await;
    for _ in 0..100 {
        disk.fill();
        let result = agent.run(shell("echo out")).await;
        if result["recorded"] == false {
            return result;
        }
    }
    panic!("a full disk took a hundred runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_recorded_is_told_to_client_and_owner() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::over(&folder, 32);
    let rig = Rig::start_in(folder, |_| ()).await;
    assert_eq!(until_unrecorded(&rig, &disk).await["stdout"], "out\n");
    let mut agent = rig.agent().await;
    let batch = agent.call("code.batch", json!({ "runs": [shell("echo 1"), shell("exit 2")] })).await.unwrap();
    for item in batch["results"].as_array().unwrap() {
        assert_eq!(item["result"]["recorded"], false, "{item}");
    }
    let told = tokio::process::Command::new(built("sandtray"))
        .args(["status", "--socket"])
        .arg(&rig.service.socket)
        .output()
        .await
        .unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("Runs cannot be recorded, and 3 were not: the disk is full."), "{told}");
    disk.empty();
    eventually("it can be written again", || async { rig.service.history.troubles().borrow().is_none() }).await;
    assert_eq!(agent.run(shell("echo out")).await.get("recorded"), None);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_every_run_must_be_on_record_none_starts_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::over(&folder, 32);
    let rig = Rig::start_in(folder, |settings| settings.history.required = true).await;
    // The one during which the disk was found full has run.
    until_unrecorded(&rig, &disk).await;
    let mut agent = rig.agent().await;
    let error = agent.call("code.run", shell("echo never")).await.unwrap_err();
    assert_eq!((&error["data"]["code"], &error["code"]), (&json!("history_unavailable"), &json!(-32010)), "{error}");
    assert_eq!(
        error["message"],
        "The run was not started: the disk is full, so it could not be recorded, and the owner wants every run on record."
    );
    assert!(error["data"]["hint"].as_str().unwrap().starts_with("Free some disk space."), "{error}");
    let unrecorded = rig.service.history.troubles().borrow().as_ref().unwrap().unrecorded;
    assert_eq!(unrecorded, 1, "one that did not start is not missing");
    disk.empty();
    // The first that asks finds that there is room.
    let result = agent.run(shell("echo again")).await;
    assert_eq!((&result["stdout"], result.get("recorded")), (&json!("again\n"), None));
    rig.stop().await;
}
