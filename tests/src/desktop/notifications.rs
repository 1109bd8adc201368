//! The desktop's service for notifications, which keeps what it is told, and a hand that presses them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zbus::object_server::InterfaceRef;
use zbus::zvariant::OwnedValue;
use zbus::{Connection, interface};

use crate::rig::eventually;

const NAME: &str = "org.freedesktop.Notifications";
const PATH: &str = "/org/freedesktop/Notifications";
const ABLE: [&str; 2] = ["body", "actions"];

#[derive(Clone)]
pub struct Notifications {
    connection: Connection,
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    told: Vec<Told>,
    able: Vec<String>,
    /// How often it was asked what it can do.
    asked: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub summary: String,
    pub body: String,
    /// The words of each action behind its key.
    pub actions: Vec<String>,
}

struct Service(Arc<Mutex<Book>>);

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

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
        actions: Vec<String>,
        _hints: HashMap<String, OwnedValue>,
        _timeout: i32,
    ) -> u32 {
        let mut book = lock(&self.0);
        book.told.push(Told { summary, body, actions });
        book.told.len() as u32
    }

    async fn get_capabilities(&self) -> Vec<String> {
        let mut book = lock(&self.0);
        book.asked += 1;
        book.able.clone()
    }

    async fn get_server_information(&self) -> (String, String, String, String) {
        ("test".into(), "test".into(), "1".into(), "1.2".into())
    }

    async fn close_notification(&self, _id: u32) {}

    #[zbus(signal)]
    async fn action_invoked(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        id: u32,
        action: &str,
    ) -> zbus::Result<()>;
}

impl Notifications {
    pub async fn serve(connection: &Connection) -> Self {
        let book = Book { able: ABLE.map(str::to_owned).to_vec(), ..Book::default() };
        let notifications = Self { connection: connection.clone(), book: Arc::new(Mutex::new(book)) };
        let service = Service(Arc::clone(&notifications.book));
        connection.object_server().at(PATH, service).await.expect("a place for it");
        connection.request_name(NAME).await.expect("the service's name");
        notifications
    }

    /// What it says it can do from now on.
    pub fn can(&self, words: &[&str]) {
        lock(&self.book).able = words.iter().map(|word| (*word).to_owned()).collect();
    }

    pub fn asked(&self) -> usize {
        lock(&self.book).asked
    }

    pub fn all(&self) -> Vec<Told> {
        lock(&self.book).told.clone()
    }

    pub fn told(&self) -> Vec<(String, String)> {
        self.all().into_iter().map(|told| (told.summary, told.body)).collect()
    }

    pub async fn until(&self, summary: &str) -> String {
        eventually(&format!("a notification {summary:?}"), || async {
            self.told().iter().any(|(told, _)| told == summary)
        })
        .await;
        self.told().into_iter().find(|(told, _)| told == summary).map(|(_, body)| body).unwrap_or_default()
    }

    /// Presses the latest notification with this summary, as an owner does on the notification itself.
    pub async fn press(&self, summary: &str) {
        self.until(summary).await;
        let all = self.all();
        let at = all.iter().rposition(|told| told.summary == summary).expect("it was told");
        assert_eq!(all[at].actions.first().map(String::as_str), Some("default"), "{summary:?} cannot be pressed");
        let service: InterfaceRef<Service> =
            self.connection.object_server().interface(PATH).await.expect("it is there");
        Service::action_invoked(service.signal_emitter(), at as u32 + 1, "default").await.expect("a signal");
    }
}
