//! Damaged files are set aside and reported, and work goes on.

use sandtray_core::paths::Paths;
use sandtray_core::service::{self, Options};
use sandtray_tests::rig::Rig;

use crate::shell;

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_history_is_kept_aside_and_runs_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::under(folder.path());
    paths.ensure().unwrap();
    std::fs::write(paths.history_file(), "this is no database, however much it is one").unwrap();
    let rig = Rig::start_in(folder, |_| ()).await;
    assert_eq!(rig.service.notices.len(), 1);
    assert!(rig.service.notices[0].contains("history"), "{:?}", rig.service.notices);
    assert_eq!(rig.agent().await.run(shell("echo on")).await["stdout"], "on\n");
    let kept = std::fs::read_dir(paths.history_file().parent().unwrap()).unwrap();
    let kept = kept.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("damaged")).count();
    assert_eq!(kept, 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_settings_are_kept_aside_and_the_capability_is_off() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::under(folder.path());
    paths.ensure().unwrap();
    std::fs::write(paths.settings_file(), r#"{"version":1,"enabled":true,"limits":{"seconds":"many"}}"#).unwrap();
    let service = service::start(Options { paths: paths.clone(), enable: false, socket: None }).await.unwrap();
    assert!(!service.supervisor.snapshot().enabled);
    assert!(service.notices[0].contains("settings"), "{:?}", service.notices);
    service.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_service_on_the_same_folder_is_refused() {
    let rig = Rig::start().await;
    let paths = Paths::under(rig.folder());
    let error = service::start(Options { paths, enable: false, socket: None }).await.unwrap_err();
    assert!(error.to_string().contains("running already"), "{error}");
    rig.stop().await;
}
