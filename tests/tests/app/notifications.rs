//! The desktop's service for notifications, which keeps what it is told; and what the app tells it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandtray_core::settings::Settings;
use sandtray_tests::rig::eventually;
use serde_json::json;
use zbus::zvariant::OwnedValue;
use zbus::{Connection, interface};

use crate::desktop::Desktop;
use crate::told;

#[derive(Clone, Default)]
pub(crate) struct Notifications(Arc<Mutex<Vec<(String, String)>>>);

struct Service(Notifications);

#[interface(name = "org.freedesktop.Notifications")]
impl Service {
    #[expect(clippy::too_many_arguments, reason = "the interface has so many")]
    async fn notify(
        &self,
        _app: String,
        _replaces: u32,
        _icon: String,
        summary: String,
        body: String,
        _actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> u32 {
        let mut told = self.0.0.lock().expect("nobody panics here");
        told.push((summary, body));
        told.len() as u32
    }

    async fn get_capabilities(&self) -> Vec<String> {
        vec!["body".into()]
    }

    async fn get_server_information(&self) -> (String, String, String, String) {
        ("test".into(), "test".into(), "1".into(), "1.2".into())
    }

    async fn close_notification(&self, _id: u32) {}
}

impl Notifications {
    pub(crate) async fn serve(connection: &Connection) -> Self {
        let notifications = Self::default();
        let service = Service(notifications.clone());
        connection.object_server().at("/org/freedesktop/Notifications", service).await.expect("a place for it");
        connection.request_name("org.freedesktop.Notifications").await.expect("the service's name");
        notifications
    }

    pub(crate) fn told(&self) -> Vec<(String, String)> {
        self.0.lock().expect("nobody panics here").clone()
    }

    pub(crate) async fn until(&self, summary: &str) -> String {
        eventually(&format!("a notification {summary:?}"), || async {
            self.told().iter().any(|(told, _)| told == summary)
        })
        .await;
        self.told().into_iter().find(|(told, _)| told == summary).map(|(_, body)| body).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_and_a_run_killed_by_a_limit_are_told_once() {
    let desktop = Desktop::with(Settings { enabled: true, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    agent.call("hello", json!({ "name": "a <b>robot</b>" })).await.expect("hello");
    for _ in 0..2 {
        let mut params = told("shell", "sleep 100");
        params["limits"] = json!({ "seconds": 0.5 });
        assert_eq!(agent.run(params).await["status"], "timeout");
    }
    let body = desktop.notifications.until("Program stopped at a limit").await;
    assert_eq!(body, "Shell for a &lt;b&gt;robot&lt;/b&gt; took longer than it may.");
    let body = desktop.notifications.until("A new client runs code").await;
    assert!(body.starts_with("a &lt;b&gt;robot"), "{body}");
    assert_eq!(desktop.notifications.told().len(), 2, "{:?}", desktop.notifications.told());
    tray.press("Quit").await;
    app.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_who_wants_none_gets_none() {
    let desktop = Desktop::with(Settings { enabled: true, notifications: false, ..Settings::default() }).await;
    let app = desktop.app().await;
    let tray = desktop.tray().await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let mut params = told("shell", "sleep 100");
    params["limits"] = json!({ "seconds": 0.2 });
    assert_eq!(agent.run(params).await["status"], "timeout");
    // The app has seen the end when its tray has.
    tray.press("Quit").await;
    app.ended().await;
    assert_eq!(desktop.notifications.told(), []);
}
