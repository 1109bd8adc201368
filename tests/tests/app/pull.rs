//! An image that comes from a registry, as the window and the tray tell of it.

use std::time::Duration;

use sandtray_core::language::Language;
use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::rig::{eventually, registry};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

/// The base has been pulled already, so that what is left is one layer of this test's own: random, for it to take a while.
const LARGE: &str = "head -c 100000000 /dev/urandom > /large";

async fn docker(arguments: &[&str]) {
    let output = Command::new("docker").args(arguments).output().await.expect("the docker command");
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Kept in the registry from one test run to the next: it is large.
async fn is_published(name: &str) -> bool {
    let mut registry = TcpStream::connect(registry()).await.expect("the bench's registry");
    let question = format!("GET /v2/tests/{name}/tags/list HTTP/1.0\r\n\r\n");
    registry.write_all(question.as_bytes()).await.expect("a question");
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
    if !is_published("large").await {
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

/// A way to the registry that carries a few megabytes a second. Returns its address.
async fn slow_registry(connections: &mut JoinSet<()>) -> String {
    const PIECE: usize = 64 << 10;
    const PAUSE: Duration = Duration::from_millis(20);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    connections.spawn(async move {
        let mut all = JoinSet::new();
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(registry()).await.expect("the bench's registry");
            let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
                (client.into_split(), server.into_split());
            all.spawn(async move { drop(tokio::io::copy(&mut from_client, &mut to_server).await) });
            all.spawn(async move {
                let mut piece = vec![0; PIECE];
                while let Ok(read @ 1..) = from_server.read(&mut piece).await {
                    if to_client.write_all(&piece[..read]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
    });
    address
}

/// An image of this test's own, so that nothing else takes it away.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_its_image_says_so_everywhere_and_is_stopped_in_its_row() {
    if !is_published("waiting").await {
        publish(&format!("{}/tests/waiting:1", registry()), &format!("waiting-{}", std::process::id())).await;
    }
    let mut connections = JoinSet::new();
    let image = format!("{}/tests/waiting:1", slow_registry(&mut connections).await);
    let mut settings = Settings { enabled: true, ..Settings::default() };
    settings.images.insert(Language::Javascript, image.clone());
    let desktop = Desktop::with(settings).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.send("code.run", json!({ "language": "javascript", "code": "1", "stream": true })).await;
    loop {
        let waiting = agent.notification("code.waiting").await;
        if waiting["why"] == "pull" && waiting["fraction"].as_f64() > Some(0.0) {
            assert_eq!(waiting["image"], json!(image));
            break;
        }
    }
    tray.until("Fetching JavaScript: ").await;
    window.until("Fetching JavaScript: ").await;
    assert_eq!(window.script("return document.querySelector('nav .count').textContent").await, "1 running or waiting");
    window.click("[aria-label='Places'] button:nth-child(2)").await;
    window.click(".live li .open").await;
    window.until("Waiting for the image of JavaScript: ").await;
    window.find(".main [role=progressbar][aria-label='Fetching JavaScript']").await;
    window.click(".live li > .btn").await;
    assert_eq!(agent.reply(run).await.expect("a result")["status"], "cancelled");
    window.invoke("cancel_pull", json!({ "language": "javascript" })).await.expect("a cancel");
    tray.until_gone("Fetching JavaScript: ").await;
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
    let _ = Command::new("docker").args(["rmi", "--force", &image]).output().await;
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
