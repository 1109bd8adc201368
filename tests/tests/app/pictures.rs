//! Pictures that a program returned: what the window shows of them, and what they cost it.

use std::time::{Duration, Instant};

use sandtray_core::settings::Settings;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::{Desktop, Process};
use sandtray_tests::rig::eventually;
use serde_json::{Value, json};

use crate::told;

/// The app, the window and WebKit's processes together.
const MOST_MIB: f64 = 600.0;
const QUICK: Duration = Duration::from_secs(2);
const TOO_LARGE: &str = "return document.body.innerText.split('too large to show').length - 1";

/// A run that returned the files of `program`, with its page open.
async fn page_of(desktop: &Desktop, window: &Window, program: &str) -> Value {
    let mut agent = desktop.agent().await;
    let result = agent.run(told("python", program)).await;
    assert_eq!(result["status"], "ok", "{result}");
    window.click("[aria-label='Places'] button:nth-child(2)").await;
    eventually("its page opens", || async {
        // The row is drawn anew when the list changes.
        window
            .script("document.querySelector('[role=option]')?.click(); return !!document.querySelector('[role=tab]')")
            .await
            == true
    })
    .await;
    result["run_id"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_that_would_fill_the_memory_are_named_and_not_shown() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let run = page_of(&desktop, &window, include_str!("../../programs/pictures/bombs.py")).await;
    let opening = async {
        let begun = Instant::now();
        window.click("[role=tab]:nth-of-type(4)").await;
        window.until("bomb.webp").await;
        assert!(begun.elapsed() < QUICK, "the page answered after {:?}", begun.elapsed());
        while window.script(TOO_LARGE).await.as_u64() < Some(20) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        window.click(".files > button").await;
        while window.script(TOO_LARGE).await.as_u64() < Some(22) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let asked = Instant::now();
        assert_eq!(window.script("return 6 * 7").await, 42);
        assert!(asked.elapsed() < QUICK, "the page answered after {:?}", asked.elapsed());
    };
    tokio::select! {
        opened = tokio::time::timeout(Duration::from_secs(30), opening) => {
            assert!(opened.is_ok(), "not all were told of: {}", window.text().await);
        }
        used = passes(&window, MOST_MIB) => panic!("{used:.0} MiB"),
    }
    // The owner can still get the bytes.
    let file = json!({ "runId": run, "name": "bomb.gif", "pixels": true });
    let picture = window.invoke("history_picture", file).await.expect("an answer");
    assert_eq!(picture, json!({ "kind": "too_large", "width": 65535, "height": 65535 }));
    tray.press("Quit").await;
}

/// Returns once all its processes together take more than `most`.
async fn passes(window: &Window, most: f64) -> f64 {
    loop {
        let used = window.mebibytes();
        if used > most {
            return used;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A PNG of noise, which is as large in the file as in memory.
const NOISE: &str = r#"
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
width, height = 1200, 300
lines = b"".join(b"\0" + os.urandom(width * 3) for _ in range(height))
header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
for n in range(4):
    open(f"out/noise-{n}.png", "wb").write(png)
open("out/drawing.svg", "w").write("<svg xmlns='http://www.w3.org/2000/svg'><rect width='9' height='9'/></svg>")
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_shown_as_the_app_wrote_it_and_the_app_gives_its_memory_back() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let run = page_of(&desktop, &window, NOISE).await;
    window.click("[role=tab]:nth-of-type(4)").await;
    window.find(".frame img[src^='data:image/png;base64,']").await;
    let drawn = "const [image] = document.querySelectorAll('.frame img'); return [image.complete, image.naturalWidth, image.naturalHeight]";
    eventually("its pixels are there", || async { window.script(drawn).await == json!([true, 1200, 300]) }).await;
    // An SVG can hold programs, so it is shown as text.
    window.until("<rect width='9' height='9'/>").await;

    let app = window.app();
    let before = Process::mebibytes(app, "Pss");
    for n in 0..20 {
        let file = json!({ "runId": run, "name": format!("noise-{}.png", n % 4), "pixels": true });
        let picture = window.invoke("history_picture", file).await.expect("a picture");
        assert_eq!(
            (&picture["kind"], &picture["width"], &picture["moves"]),
            (&json!("fits"), &json!(1200), &json!(false))
        );
    }
    let grown = Process::mebibytes(app, "Pss") - before;
    assert!(grown < 24.0, "the app took {grown:.0} MiB and kept them");
    let gone = json!({ "runId": run, "name": "other.png", "pixels": false });
    assert_eq!(window.invoke("history_picture", gone).await.expect_err("no such file")["code"], "no_such_file");
    tray.press("Quit").await;
}
