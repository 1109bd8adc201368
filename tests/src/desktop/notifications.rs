//! The desktop's service for notifications, which keeps what it is told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use zbus::zvariant::OwnedValue;
use zbus::{Connection, interface};

use crate::rig::eventually;

#[derive(Clone, Default)]
pub struct Notifications(Arc<Mutex<Vec<(String, String)>>>);

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
    pub async fn serve(connection: &Connection) -> Self {
        let notifications = Self::default();
        let service = Service(notifications.clone());
        connection.object_server().at("/org/freedesktop/Notifications", service).await.expect("a place for it");
        connection.request_name("org.freedesktop.Notifications").await.expect("the service's name");
        notifications
    }

    pub fn told(&self) -> Vec<(String, String)> {
        self.0.lock().expect("nobody panics here").clone()
    }

    pub async fn until(&self, summary: &str) -> String {
        eventually(&format!("a notification {summary:?}"), || async {
            self.told().iter().any(|(told, _)| told == summary)
        })
        .await;
        self.told().into_iter().find(|(told, _)| told == summary).map(|(_, body)| body).unwrap_or_default()
    }
}
