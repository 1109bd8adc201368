//! The desktop's side of a tray: the host that icons register with, and a hand that reads and presses their menu.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;
use tokio::sync::mpsc;
use tokio::time::timeout;
use zbus::message::Header;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};
use zbus::{Connection, Proxy, fdo, interface};

use crate::rig::{PATIENCE, eventually};

const NAME: &str = "org.kde.StatusNotifierWatcher";
const ITEM: &str = "/StatusNotifierItem";
/// Registrations that wait for a test to look at them.
const REGISTRATIONS: usize = 16;

pub struct Watcher {
    registered: Mutex<Registered>,
    hangs: Arc<AtomicBool>,
}

struct Registered {
    registrations: mpsc::Receiver<(String, String)>,
    /// An icon registers more than once.
    seen: HashSet<String>,
}

struct Host {
    registrations: mpsc::Sender<(String, String)>,
    /// Takes calls and answers none, as a panel that hangs.
    hangs: Arc<AtomicBool>,
}

#[interface(name = "org.kde.StatusNotifierWatcher")]
impl Host {
    /// By the specification an item passes its name on the bus; the path is always the same.
    async fn register_status_notifier_item(&self, service: String, #[zbus(header)] header: Header<'_>) {
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let sender = header.sender().map(ToString::to_string).unwrap_or_default();
        let _ = self.registrations.send((sender, service)).await;
    }

    async fn register_status_notifier_host(&self, _service: String) {}

    #[zbus(property)]
    async fn registered_status_notifier_items(&self) -> Vec<String> {
        Vec::new()
    }

    #[zbus(property)]
    async fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    async fn protocol_version(&self) -> i32 {
        0
    }
}

impl Watcher {
    pub async fn serve(connection: &Connection) -> Self {
        let (sender, receiver) = mpsc::channel(REGISTRATIONS);
        let hangs = Arc::new(AtomicBool::new(false));
        let host = Host { registrations: sender, hangs: Arc::clone(&hangs) };
        connection.object_server().at("/StatusNotifierWatcher", host).await.expect("a place for the host");
        connection.request_name(NAME).await.expect("the host's name");
        Self { registered: Mutex::new(Registered { registrations: receiver, seen: HashSet::new() }), hangs }
    }

    pub fn hang(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::Relaxed);
    }

    pub async fn end(&self, connection: &Connection) {
        connection.release_name(NAME).await.expect("the host's name was ours");
    }

    pub async fn next(&self, connection: &Connection) -> Tray {
        let mut registered = self.registered.lock().await;
        let (owner, service) = loop {
            let next = timeout(PATIENCE, registered.registrations.recv()).await.expect("an icon in the tray");
            let (owner, service) = next.expect("a host");
            if registered.seen.insert(owner.clone()) {
                break (owner, service);
            }
        };
        let item: Proxy<'static> =
            Proxy::new(connection, service, ITEM, "org.kde.StatusNotifierItem").await.expect("an item");
        let menu: OwnedObjectPath = item.get_property("Menu").await.expect("an item with a menu");
        let menu = Proxy::new(connection, owner.clone(), menu, "com.canonical.dbusmenu").await.expect("a menu");
        Tray { owner, menu, bus: fdo::DBusProxy::new(connection).await.expect("the bus itself") }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: i32,
    pub label: String,
    pub enabled: bool,
    /// `None` for what cannot be checked.
    pub checked: Option<bool>,
}

pub struct Tray {
    owner: String,
    menu: Proxy<'static>,
    bus: fdo::DBusProxy<'static>,
}

type Layout = (i32, HashMap<String, OwnedValue>, Vec<OwnedValue>);

impl Tray {
    pub async fn entries(&self) -> Vec<Entry> {
        // The desktop says that it is about to show the menu.
        let _: Result<bool, _> = self.menu.call("AboutToShow", &(0i32,)).await;
        let none: Vec<String> = Vec::new();
        let (_, (_, _, children)): (u32, Layout) =
            self.menu.call("GetLayout", &(0i32, -1i32, none)).await.expect("the layout of the menu");
        children.into_iter().filter_map(entry).collect()
    }

    pub async fn labels(&self) -> Vec<String> {
        self.entries().await.into_iter().map(|entry| entry.label).collect()
    }

    /// Presses the first entry that starts so, once it is there. The menu may be replaced between the look and the press: its entries then
    /// have other ids, and a desktop reads it again.
    pub async fn press(&self, label: &str) {
        eventually(&format!("{label:?} can be pressed"), || async {
            let id = self.find(label).await;
            match self.click(id).await {
                Ok(()) => true,
                Err(zbus::Error::MethodError(_, Some(why), _)) if why == "id not found" => false,
                Err(error) => panic!("a menu that can be pressed: {error}"),
            }
        })
        .await;
    }

    /// The first entry that starts so, once it is there.
    pub async fn find(&self, label: &str) -> i32 {
        self.until(label).await;
        let entries = self.entries().await;
        entries.iter().find(|entry| entry.label.starts_with(label)).expect("it was there a moment ago").id
    }

    pub async fn press_entry(&self, id: i32) {
        self.click(id).await.expect("a menu that can be pressed");
    }

    async fn click(&self, id: i32) -> zbus::Result<()> {
        let now = 0u32;
        let data = Value::from(0i32);
        self.menu.call("Event", &(id, "clicked", data, now)).await
    }

    /// Waits for an entry that starts so.
    pub async fn until(&self, label: &str) {
        eventually(&format!("the tray shows {label:?}"), || async {
            self.labels().await.iter().any(|shown| shown.starts_with(label))
        })
        .await;
    }

    pub async fn until_gone(&self, label: &str) {
        eventually(&format!("the tray no longer shows {label:?}"), || async {
            !self.labels().await.iter().any(|shown| shown.starts_with(label))
        })
        .await;
    }

    /// Whether the program that it belongs to is still there.
    pub async fn lives(&self) -> bool {
        let name = zbus::names::BusName::try_from(self.owner.as_str()).expect("the name of a connection");
        self.bus.name_has_owner(name).await.unwrap_or(false)
    }
}

fn entry(value: OwnedValue) -> Option<Entry> {
    let (id, properties, _): Layout = value.try_into().ok()?;
    let text = |name: &str| properties.get(name).and_then(|value| String::try_from(value.clone()).ok());
    if text("type").as_deref() == Some("separator") {
        return None;
    }
    let enabled = properties.get("enabled").and_then(|value| bool::try_from(value.clone()).ok()).unwrap_or(true);
    let checks = text("toggle-type").is_some_and(|kind| !kind.is_empty());
    let state = properties.get("toggle-state").and_then(|value| i32::try_from(value.clone()).ok());
    let label = text("label").unwrap_or_default().replace("__", "_");
    Some(Entry { id, label, enabled, checked: checks.then_some(state == Some(1)) })
}
