//! The window under a driver: WebKit's own, which starts the app and lets a test look and click.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::tray::Tray;
use super::{APP, AT_LOGIN, Desktop, Process, WINDOW};
use crate::rig::{PATIENCE, built, eventually};

/// Between two looks at the page.
const LOOK: Duration = Duration::from_millis(50);

pub struct Window {
    client: Client,
    driver: Child,
}

impl Window {
    /// Starts the app by hand, so that its window opens.
    pub async fn of(desktop: &Desktop) -> Self {
        Self::started(desktop, &built("sandtray-app"), &[]).await
    }

    /// Starts this program. The window must come by itself, or be opened from the tray meanwhile.
    pub async fn started(desktop: &Desktop, program: &Path, arguments: &[&str]) -> Self {
        let port = free_port().await;
        let mut command = Command::new("WebKitWebDriver");
        desktop.environment(&mut command);
        command
            .arg(format!("--port={port}"))
            .env("TAURI_AUTOMATION", "true")
            .env("TAURI_WEBVIEW_AUTOMATION", "true")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let driver = command.spawn().unwrap_or_else(|error| {
            panic!("THESE TESTS NEED WebKitWebDriver ({error}): `make setup-app` installs webkit2gtk-driver")
        });
        eventually("the driver listens", || async { TcpStream::connect(("127.0.0.1", port)).await.is_ok() }).await;
        let options = json!({ "binary": program, "args": arguments });
        let capabilities = [("webkitgtk:browserOptions".to_owned(), options)].into_iter().collect();
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let driver_url = format!("http://127.0.0.1:{port}");
        let client =
            timeout(PATIENCE, builder.connect(&driver_url)).await.expect("a window in time").expect("a window");
        let window = Self { client, driver };
        window.find("[aria-label='Places']").await;
        window
    }

    /// Starts the app as at login, and opens its window from the tray.
    pub async fn from_tray(desktop: &Desktop) -> (Self, Tray) {
        let pressing = async {
            let tray = desktop.tray().await;
            tray.press("Open Sandtray").await;
            tray
        };
        let app = built("sandtray-app");
        tokio::join!(Self::started(desktop, &app, &[AT_LOGIN]), pressing)
    }

    /// The window's own process.
    pub fn program(&self) -> u32 {
        let started = Process::descendants(self.driver.id().expect("it runs"));
        started.iter().find(|process| process.name == WINDOW).expect("a window").pid
    }

    /// The app's own process.
    pub fn app(&self) -> u32 {
        let started = Process::descendants(self.driver.id().expect("it runs"));
        started.iter().find(|process| process.name == APP).expect("an app").pid
    }

    /// Memory of the app, its window and a browser's processes together.
    pub fn mebibytes(&self) -> f64 {
        let started = Process::descendants(self.driver.id().expect("it runs"));
        started.iter().map(|process| Process::mebibytes(process.pid, "Pss")).sum()
    }

    pub async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).every(LOOK).for_element(Locator::Css(css)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("no {css}: {error}; the page says: {}", self.text().await),
        }
    }

    pub async fn click(&self, css: &str) {
        self.find(css).await.click().await.expect("a click");
    }

    /// A click that closes the window. The driver's answer can be lost with it.
    pub async fn click_and_close(&self, css: &str) {
        let _ = self.find(css).await.click().await;
    }

    /// What the window shows, as PNG.
    pub async fn picture(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a picture")
    }

    pub async fn text(&self) -> String {
        self.script("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page shows it.
    pub async fn until(&self, text: &str) {
        let looking = async {
            while !self.text().await.contains(text) {
                tokio::time::sleep(LOOK).await;
            }
        };
        if timeout(PATIENCE, looking).await.is_err() {
            panic!("the window never showed {text:?}; it says: {}", self.text().await);
        }
    }

    pub async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.expect("a script")
    }

    /// Keys, as a person would press them there.
    pub async fn keys(&self, css: &str, keys: &str) {
        self.find(css).await.send_keys(keys).await.expect("keys that arrive");
    }

    /// A script that calls its last argument when it is done.
    pub async fn promised(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.client.execute_async(script, arguments).await.expect("an answer")
    }

    /// A call as the page makes it: the value, or what it is refused with.
    pub async fn invoke(&self, command: &str, arguments: Value) -> Result<Value, Value> {
        const SCRIPT: &str = "const [command, given, done] = arguments; \
            window.__TAURI_INTERNALS__.invoke(command, given).then(ok => done({ ok }), error => done({ error }))";
        let mut answer = self.promised(SCRIPT, vec![json!(command), arguments]).await;
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["ok"].take()),
        }
    }
}

/// Whether the driver is installed.
pub fn is_here() -> bool {
    std::process::Command::new("WebKitWebDriver").arg("--version").stdout(Stdio::null()).status().is_ok()
}

async fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    listener.local_addr().expect("its address").port()
}
