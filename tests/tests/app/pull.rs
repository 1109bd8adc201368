//! An image that comes from a registry, as the window and the tray tell of it.

use sandtray_core::language::Language;
use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::rig::{eventually, registry};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

/// The base has been pulled already, so that what is left is one layer of this test's own: random, for it to take a while.
const LARGE: &str = "head -c 100000000 /dev/urandom > /large";

async fn docker(arguments: &[&str]) {
    let output = Command::new("docker").args(arguments).output().await.expect("the docker command");
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Kept in the registry from one test run to the next: it is large.
async fn is_published() -> bool {
    let mut registry = TcpStream::connect(registry()).await.expect("the bench's registry");
    registry.write_all(b"GET /v2/tests/large/tags/list HTTP/1.0\r\n\r\n").await.expect("a question");
    let mut answer = String::new();
    registry.read_to_string(&mut answer).await.expect("an answer");
    answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200")
}

/// Makes an image that only the registry has.
async fn publish(image: &str, container: &str) {
    docker(&["run", "--name", container, "--network", "none", "alpine:3.22", "sh", "-c", LARGE]).await;
    docker(&["commit", container, image]).await;
    docker(&["rm", container]).await;
    docker(&["push", image]).await;
    docker(&["rmi", image]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_pulled_with_progress_and_removed_from_the_window() {
    let image = format!("{}/tests/large:1", registry());
    if !is_published().await {
        publish(&image, &format!("large-{}", std::process::id())).await;
    }
    // An earlier run of this test may have been interrupted.
    let _ = Command::new("docker").args(["rmi", "--force", &image]).output().await;
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    let mut settings = window.invoke("settings", json!({})).await.expect("settings");
    settings["images"] = json!({ "javascript": image });
    window.invoke("apply_settings", json!({ "settings": settings })).await.expect("another image");
    // Other languages' images may be missing too.
    eventually("the images are known, and this one is missing", || async {
        let text = window.text().await;
        text.contains(&image) && text.contains("Not downloaded") && !text.contains("Not known yet")
    })
    .await;
    let missing = not_pulled(&window).await;
    let javascript = json!({ "language": "javascript" });
    window.invoke("pull_image", javascript.clone()).await.expect("a pull");
    tray.until("Fetching JavaScript: ").await;
    tray.until_gone("Fetching JavaScript: ").await;
    eventually("one is missing less", || async { not_pulled(&window).await == missing - 1 }).await;
    window.invoke("remove_image", javascript.clone()).await.expect("it goes");
    eventually("it is missing again", || async { not_pulled(&window).await == missing }).await;

    // Once more, and cancelled on the way.
    window.invoke("pull_image", javascript.clone()).await.expect("a pull");
    tray.until("Fetching JavaScript: ").await;
    window.invoke("cancel_pull", javascript).await.expect("a cancel");
    tray.until_gone("Fetching JavaScript: ").await;
    eventually("it is missing still", || async { not_pulled(&window).await == missing }).await;
    tray.press("Quit").await;
}

async fn not_pulled(window: &Window) -> usize {
    window.text().await.matches("Not downloaded").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_present_version_is_pinned_in_one_step_and_unpinned_in_another() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let shell = json!({ "language": "shell", "code": "echo hi" });
    let image = agent.run(shell.clone()).await["image"].as_str().expect("a name").to_owned();
    let (name, digest) = image.split_once('@').expect("a digest");
    assert_eq!(name, "alpine:3.22");
    window.click("[aria-label='Keep this version of Shell']").await;
    window.find("[aria-label='Allow newer versions of Shell']").await;
    assert_eq!(desktop.settings().image(Language::Shell), format!("alpine:3.22@{digest}"));
    let pinned = agent.run(shell.clone()).await;
    assert_eq!((&pinned["stdout"], &pinned["image"]), (&json!("hi\n"), &json!(image)));
    window.click("[aria-label='Allow newer versions of Shell']").await;
    window.find("[aria-label='Keep this version of Shell']").await;
    assert_eq!(desktop.settings().images.get(&Language::Shell), None);
    assert_eq!(agent.run(shell).await["image"], json!(image));

    // A missing image has no known version.
    let mut settings = desktop.settings();
    settings.images.insert(Language::Rust, "127.0.0.1:1/none:1".into());
    window.invoke("apply_settings", json!({ "settings": settings })).await.expect("another image");
    let refused =
        window.invoke("pin_image", json!({ "language": "rust", "pinned": true })).await.expect_err("no digest");
    assert_eq!(refused["code"], "no_digest");
    tray.press("Quit").await;
}
