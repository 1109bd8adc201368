//! What the app leaves with the desktop: its entry for the login, the clipboard, and files that its owner saves.

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::keyboard::{ENTER, ESCAPE, Keyboard};
use sandtray_tests::rig::{built, eventually};
use serde_json::json;

use crate::told;

#[tokio::test(flavor = "multi_thread")]
async fn start_at_login_is_an_entry_that_comes_and_goes_with_the_setting() {
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    let entry = desktop.home().join("xdg/config/autostart/sandtray.desktop");
    let mut settings = window.invoke("settings", json!({})).await.expect("settings");
    assert_eq!((&settings["start_at_login"], entry.exists()), (&json!(false), false), "off until it is asked for");
    settings["start_at_login"] = json!(true);
    window.invoke("apply_settings", json!({ "settings": settings })).await.expect("on");
    let text = std::fs::read_to_string(&entry).expect("the entry");
    assert!(text.contains(&format!("\nExec=\"{}\" --background\n", built("sandtray-app").display())), "{text}");
    settings["start_at_login"] = json!(false);
    window.invoke("apply_settings", json!({ "settings": settings })).await.expect("off");
    assert!(!entry.exists());

    // Where it cannot be written the setting stays off, and the field is named.
    let folder = entry.parent().expect("a folder");
    std::fs::remove_dir(folder).expect("an empty folder");
    std::fs::write(folder, "in the way").expect("a file in its place");
    settings["start_at_login"] = json!(true);
    let refused = window.invoke("apply_settings", json!({ "settings": settings })).await.expect_err("refused");
    assert_eq!(refused["field"], "start_at_login");
    assert!(!desktop.settings().start_at_login);
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_copied_can_be_pasted() {
    const TEXT: &str = "printed \u{20ac} exactly <b>so</b>";
    /// Held down until it is pressed again.
    const CONTROL: char = '\u{e009}';
    let desktop = Desktop::start().await;
    let window = Window::of(&desktop).await;
    let tray = desktop.tray().await;
    let too_much = json!({ "text": "x".repeat((16 << 20) + 1) });
    assert_eq!(window.invoke("copy_text", too_much).await.expect_err("too much")["code"], "too_large");
    // Control characters are removed, and counted.
    let hostile = format!("{}\u{1b}[201~\u{9b}\u{7}", TEXT);
    assert_eq!(window.invoke("copy_text", json!({ "text": hostile })).await.expect("copied"), 3);
    window.invoke("copy_text", json!({ "text": TEXT })).await.expect("copied");
    window.click("[aria-label='Places'] button:nth-child(4)").await;
    let field = window.find("input[placeholder='python:3.12-slim']").await;
    field.click().await.expect("a click");
    field.send_keys(&format!("{CONTROL}v{CONTROL}")).await.expect("keys");
    eventually("it is pasted", || async { window.script("return document.activeElement.value").await == TEXT }).await;
    tray.press("Quit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_saved_where_the_owner_says_in_the_systems_dialog() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let result = agent.run(told("shell", "mkdir out/plots; printf 'a\\0b\\377' >out/plots/data.bin")).await;
    let file = json!({ "runId": result["run_id"], "name": "plots/data.bin" });
    let keyboard = Keyboard::of(desktop.display()).expect("a keyboard");
    let asked = async {
        eventually("a dialog asks where", || async { keyboard.focus("Save").expect("a screen") }).await;
    };
    let path = desktop.home().join("mine.bin");
    let saving = async {
        asked.await;
        // What it suggests is the file's own name, of which all but the ending is selected.
        keyboard.write(path.with_extension("").to_str().expect("plain letters")).expect("keys");
        keyboard.press(ENTER).expect("a key");
    };
    let (saved, ()) = tokio::join!(window.invoke("save_file", file), saving);
    let saved = saved.expect("an answer");
    assert_eq!((&saved["name"], &saved["count"]), (&json!("mine.bin"), &json!(1)));
    assert_eq!(saved["folder"], desktop.home().to_str().expect("a plain path"));
    assert_eq!(std::fs::read(&path).expect("the file"), b"a\0b\xff");

    let gone = json!({ "runId": result["run_id"], "name": "other" });
    assert_eq!(window.invoke("save_file", gone).await.expect_err("no such file")["code"], "no_such_file");
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_files_are_saved_to_a_folder_and_nothing_is_replaced_unasked() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let result = agent.run(told("shell", "mkdir out/plots; echo 1 >out/plots/a.txt; echo 2 >out/b.txt")).await;
    let files = json!({ "runId": result["run_id"] });
    let keyboard = Keyboard::of(desktop.display()).expect("a keyboard");
    let folder = desktop.home().join("chosen");
    std::fs::create_dir(&folder).expect("a folder");
    let choose = || async {
        eventually("a dialog asks where", || async { keyboard.focus("Save all files").expect("a screen") }).await;
        // The first letter opens the field for a path, and the next may get lost meanwhile: a slash, of which some are too many.
        keyboard.write("///").expect("keys");
        keyboard.write(folder.to_str().expect("plain letters")).expect("keys");
        // The first press may only complete the path.
        eventually("the dialog has gone", || async {
            let there = keyboard.focus("Save all files").expect("a screen");
            if there {
                keyboard.press(ENTER).expect("a key");
            }
            !there
        })
        .await;
    };
    let (saved, ()) = tokio::join!(window.invoke("save_all", files.clone()), choose());
    let saved = saved.expect("an answer");
    assert_eq!(std::path::Path::new(saved["folder"].as_str().expect("a path")), folder);
    assert_eq!(saved["count"], 2);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    assert_eq!((read("plots/a.txt"), read("b.txt")), ("1\n".into(), "2\n".into()));

    std::fs::write(folder.join("b.txt"), "mine by now").expect("a file");
    // The dialog completes a path into a folder that is the only one.
    std::fs::create_dir(folder.join("another")).expect("a folder");
    let refuse = async {
        choose().await;
        eventually("it asks", || async { keyboard.focus("Replace files?").expect("a screen") }).await;
        keyboard.press(ESCAPE).expect("a key");
    };
    let (saved, ()) = tokio::join!(window.invoke("save_all", files), refuse);
    assert_eq!(saved.expect("an answer"), json!(null));
    assert_eq!(read("b.txt"), "mine by now");
    // The page opens no folder but those.
    let unknown = window.invoke("open_saved", json!({ "place": 99 })).await.expect_err("not one of them");
    assert_eq!(unknown["code"], "not_opened");
    tray.press("Quit").await;
}
