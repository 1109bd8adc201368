//! The tray on Linux: an item and its menu on the session's bus, by the StatusNotifierItem specification.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ksni::menu::{CheckmarkItem, StandardItem};
use ksni::{Handle, MenuItem, OfflineReason, ToolTip, Tray, TrayMethods};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use super::{Face, Faces, perform};
use crate::app::App;
use crate::menu::{Action, Item, SWITCH};
use crate::{host, panel};

/// How long the start and the end of the app wait for the tray.
const BUS: Duration = Duration::from_secs(3);
/// Timeout for a panel. Then it is asked again after a pause, because it may be starting.
const ANSWERING: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(5);

/// Runs the app, with its tray, until it ends.
pub(crate) fn hold(runtime: &Runtime, app: &Arc<App>) {
    runtime.block_on(async {
        let (known, first) = oneshot::channel();
        let over = CancellationToken::new();
        let staying = tokio::spawn(stay(Arc::clone(app), known, over.clone()));
        // The window opens by itself if there is no tray, so this must be known first.
        if timeout(BUS, first).await.is_err() {
            debug!("the session's bus, or what shows its trays, takes its time");
        }
        host::run(app).await;
        // After everything else, so that the menu still answers the Quit that was chosen in it.
        over.cancel();
        let abort = staying.abort_handle();
        if timeout(BUS, staying).await.is_err() {
            abort.abort();
        }
    });
}

/// Keeps the tray until the app ends, and retries while there is none. `known` is dropped after the first attempt.
async fn stay(app: Arc<App>, known: oneshot::Sender<()>, over: CancellationToken) {
    let mut known = Some(known);
    while !over.is_cancelled() {
        let shown = timeout(ANSWERING, show(&app)).await;
        drop(known.take());
        match shown {
            Ok(Ok(handle)) => {
                keep(&app, &handle).await;
                over.cancelled().await;
                return handle.shutdown().await;
            }
            // Only logged: the window can do everything too.
            Ok(Err(failure)) => debug!(%failure, "there is no tray here"),
            Err(_) => debug!("there is no tray here: nobody answers"),
        }
        app.tray.set(false);
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = over.cancelled() => return,
        }
    }
}

async fn show(app: &Arc<App>) -> Result<Handle<Shown>, ksni::Error> {
    let there = Arc::new(AtomicBool::new(true));
    let shown = Shown { face: Face::of(&app.desk.snapshot()), app: Arc::clone(app), there: Arc::clone(&there) };
    // Registered without a panel too: one that starts later shows it.
    let handle = shown.assume_sni_available(true).spawn().await?;
    app.tray.set(there.load(Ordering::Relaxed));
    Ok(handle)
}

async fn keep(app: &Arc<App>, handle: &Handle<Shown>) {
    let mut faces = Faces::of(app);
    while let Some(face) = faces.next().await {
        let _gone: Option<()> = handle.update(|shown| shown.face = face).await;
    }
}

struct Shown {
    app: Arc<App>,
    face: Face,
    /// Whether there is a panel. The panel's callbacks may set it before `spawn` returns.
    there: Arc<AtomicBool>,
}

impl Shown {
    fn panel(&self, there: bool) {
        self.there.store(there, Ordering::Relaxed);
        self.app.tray.set(there);
    }
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
                // The bus expects ARGB.
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
        self.panel(true);
    }

    fn watcher_offline(&self, reason: OfflineReason) -> bool {
        debug!(?reason, "there is no tray here");
        self.panel(false);
        // Keeps the item, because a panel may come.
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

/// Escapes `_`, which menus take for the mark of a shortcut.
fn literal(text: &str) -> String {
    text.replace('_', "__")
}
