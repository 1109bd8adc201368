//! What the history could not take is told, and where the owner wants, does not start.

use super::*;

#[tokio::test]
async fn the_outcome_says_whether_the_history_has_it() {
    let rig = Rig::new();
    let labelled = |label: &str| RunSpec { label: Some(label.into()), ..spec(Language::Python, "exit 0") };
    assert!(rig.start_spec(1, labelled("recorded")).result().await.unwrap().recorded);
    assert!(!rig.start_spec(1, labelled("unrecorded")).result().await.unwrap().recorded);
    let cut = RunSpec { label: Some("unrecorded".into()), ..spec(Language::Python, "die killed") };
    match rig.start_spec(1, cut).result().await {
        Err(RunError::Interrupted(cut)) => assert!(!cut.recorded),
        other => panic!("not cut off: {other:?}"),
    }
}

#[tokio::test]
async fn where_the_history_is_not_ready_no_container_is_taken() {
    let rig = Rig::new();
    rig.memory.1.store(true, Relaxed);
    let mut events = rig.supervisor.events();
    assert_eq!(rig.start(1, "exit 0").result().await, Err(unwritable()));
    let refused = async {
        loop {
            if let Event::RunRefused { code, .. } = events.recv().await.unwrap() {
                return code;
            }
        }
    };
    assert_eq!(refused.await, "history_unavailable");
    rig.memory.1.store(false, Relaxed);
    assert_eq!(rig.start(1, "exit 0").result().await.unwrap().status, Status::Ok);
}

#[tokio::test]
async fn a_live_run_is_named_by_its_label_or_its_program() {
    let rig = Rig::new();
    let titles = async |label: Option<&str>| {
        let spec = RunSpec { label: label.map(str::to_owned), ..spec(Language::Python, "hang\n# Sum the sales") };
        let run = rig.start_spec(1, spec);
        let mut snapshots = rig.supervisor.watch();
        let live = snapshots.wait_for(|snapshot| !snapshot.running.is_empty()).await.unwrap().running[0].clone();
        rig.supervisor.stop(live.run_id).await;
        run.result().await.unwrap();
        snapshots.wait_for(|snapshot| snapshot.running.is_empty()).await.unwrap();
        // To agents goes neither the program nor a word of it.
        assert!(!serde_json::to_string(&live).unwrap().contains("Sum"));
        (live.label, live.title)
    };
    assert_eq!(titles(None).await, (None, Some("Sum the sales".into())));
    assert_eq!(titles(Some("a label")).await, (Some("a label".into()), None));
}
