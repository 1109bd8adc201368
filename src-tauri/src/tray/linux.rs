//! The tray of the free desktops: an item and its menu on the session's bus, after the specification StatusNotifierItem.

use std::sync::Arc;
use std::time::Duration;

use ksni::menu::{CheckmarkItem, StandardItem};
use ksni::{Handle, MenuItem, OfflineReason, ToolTip, Tray, TrayMethods};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tracing::{debug, error};

use super::{Face, Faces, perform};
use crate::app::App;
use crate::menu::{Action, Item, SWITCH};
use crate::{host, panel};

/// A bus that takes longer is no reason to wait with all the rest.
const BUS: Duration = Duration::from_secs(3);

/// The app's whole life.
pub(crate) fn hold(runtime: &Runtime, app: &Arc<App>) {
    runtime.block_on(async {
        let tray = match timeout(BUS, show(app)).await {
            Ok(Ok(handle)) => Some(handle),
            // None of our failings: the window does everything too.
            Ok(Err(failure)) => {
                debug!(%failure, "there is no tray here");
                None
            }
            Err(_) => {
                debug!("there is no tray here: the session's bus does not answer");
                None
            }
        };
        if let Some(handle) = &tray {
            app.spawn(keep(Faces::of(app), handle.clone()));
        }
        host::run(app).await;
        // Last: who chose Quit there is to be answered.
        if let Some(handle) = tray {
            handle.shutdown().await;
        }
    });
}

async fn show(app: &Arc<App>) -> Result<Handle<Shown>, ksni::Error> {
    app.tray.set(true);
    let shown = Shown { face: Face::of(&app.desk.snapshot()), app: Arc::clone(app) };
    // A panel may come after us; a failure says that there is none yet.
    let spawned = shown.assume_sni_available(true).spawn().await;
    spawned.inspect_err(|_| app.tray.set(false))
}

async fn keep(mut faces: Faces, handle: Handle<Shown>) {
    while let Some(face) = faces.next().await {
        let _gone: Option<()> = handle.update(|shown| shown.face = face).await;
    }
}

struct Shown {
    app: Arc<App>,
    face: Face,
}

impl Tray for Shown {
    const MENU_ON_ACTIVATE: bool = true;

    fn id(&self) -> String {
        "sandtray".into()
    }

    fn title(&self) -> String {
        "Sandtray".into()
    }

    fn icon_pixmap(&self) -> Vec<ksni::Icon> {
        match panel::pixels(self.face.icon) {
            Ok(panel::Pixels { width, height, mut rgba }) => {
                // The bus wants opacity first.
                rgba.chunks_exact_mut(4).for_each(|pixel| pixel.rotate_right(1));
                vec![ksni::Icon { width: width.cast_signed(), height: height.cast_signed(), data: rgba }]
            }
            Err(failure) => {
                error!(%failure, "a picture of the tray cannot be read");
                Vec::new()
            }
        }
    }

    fn tool_tip(&self) -> ToolTip {
        ToolTip { title: "Sandtray".into(), description: self.face.words.clone(), ..ToolTip::default() }
    }

    fn menu(&self) -> Vec<MenuItem<Self>> {
        self.face.items.iter().map(item).collect()
    }

    fn watcher_online(&self) {
        self.app.tray.set(true);
    }

    fn watcher_offline(&self, reason: OfflineReason) -> bool {
        debug!(?reason, "there is no tray here");
        self.app.tray.set(false);
        // One may come.
        true
    }
}

fn item(item: &Item) -> MenuItem<Shown> {
    match item {
        Item::Words(text) => StandardItem { label: literal(text), enabled: false, ..StandardItem::default() }.into(),
        Item::Action { text, does } => {
            StandardItem { label: literal(text), activate: chosen(does.clone()), ..StandardItem::default() }.into()
        }
        Item::Switch { on, works } => CheckmarkItem {
            label: SWITCH.into(),
            checked: *on,
            enabled: *works,
            activate: chosen(Action::Toggle),
            ..CheckmarkItem::default()
        }
        .into(),
        Item::Separator => MenuItem::Separator,
    }
}

fn chosen(action: Action) -> Box<dyn Fn(&mut Shown) + Send> {
    Box::new(move |shown| perform(&shown.app, action.clone(), ksni::current_xdg_activation_token()))
}

/// Menus take `_` for the mark of a shortcut.
fn literal(text: &str) -> String {
    text.replace('_', "__")
}
