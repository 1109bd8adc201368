//! The tray: shows what [`crate::menu`] says and does what is chosen there. While something runs, the menu is renewed each
//! second for the elapsed times; else only when something changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sandtray_core::time::to_millis;
use tauri::image::Image;
use tauri::menu::{CheckMenuItem, IsMenuItem, Menu, MenuItem, PredefinedMenuItem};
use tauri::tray::{MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent};
use tauri::{AppHandle, Manager, Wry};
use tracing::{error, warn};

use crate::desk::Desk;
use crate::dto::snapshot::{Navigate, OwnerSnapshot, Page};
use crate::menu::{self, Action, Icon, Item, SWITCH};
use crate::picture::COALESCE;
use crate::{act, panel, window};

const TICK: Duration = Duration::from_secs(1);

/// What each entry of the menu that is up now does, by its id.
type Actions = Arc<Mutex<HashMap<String, Action>>>;

/// Makes the icon and keeps it up to date. A desktop without a tray is none of our failings: the window does everything too.
pub(crate) fn install(app: &AppHandle) -> tauri::Result<()> {
    let desk = app.state::<Desk>();
    let snapshot = desk.snapshot();
    let actions = Actions::default();
    let items = menu::menu(&snapshot, now());
    let shown = Shown::make(app, items, &actions)?;
    let icon = menu::icon(&snapshot);
    let chosen = Arc::clone(&actions);
    let tray = TrayIconBuilder::with_id("sandtray")
        .icon(image(app, icon)?)
        .icon_as_template(cfg!(target_os = "macos"))
        .tooltip("Sandtray")
        .menu(&shown.menu)
        // Windows has its menu on the right button, and the left one opens what the icon stands for.
        .show_menu_on_left_click(!cfg!(windows))
        .on_menu_event(move |app, event| {
            let action = chosen.lock().unwrap_or_else(PoisonError::into_inner).get(event.id().as_ref()).cloned();
            if let Some(action) = action {
                perform(app, action);
            }
        })
        .on_tray_icon_event(|tray, event| {
            if let TrayIconEvent::Click { button: MouseButton::Left, button_state, .. } = event
                && cfg!(windows)
                && button_state == MouseButtonState::Up
            {
                open(tray.app_handle(), None);
            }
        })
        .build(app)?;
    let keeper = Keeper { app: app.clone(), tray, shown, icon, actions };
    tauri::async_runtime::spawn(keeper.keep());
    Ok(())
}

fn perform(app: &AppHandle, action: Action) {
    match action {
        Action::Toggle => act::toggle(app),
        Action::Stop => act::stop_all(app),
        Action::Open(page) => open(app, page.map(|page| Navigate { page, run_id: None })),
        Action::OpenRun(run) => open(app, Some(Navigate { page: Page::Runs, run_id: Some(run) })),
        Action::Quit => app.state::<Desk>().quit.cancel(),
    }
}

fn open(app: &AppHandle, to: Option<Navigate>) {
    if let Err(failure) = window::open(app, to) {
        error!(%failure, "the window did not open");
    }
}

struct Keeper {
    app: AppHandle,
    tray: TrayIcon,
    shown: Shown,
    icon: Icon,
    actions: Actions,
}

impl Keeper {
    async fn keep(mut self) {
        let app = self.app.clone();
        let desk = app.state::<Desk>();
        let mut snapshots = desk.snapshots();
        loop {
            let snapshot = snapshots.borrow_and_update().clone();
            if let Err(failure) = self.show(&snapshot) {
                warn!(%failure, "the tray could not be renewed");
            }
            let ticks = !snapshot.running.is_empty();
            tokio::select! {
                changed = snapshots.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(TICK), if ticks => {}
                () = desk.quit.cancelled() => return,
            }
            tokio::time::sleep(COALESCE).await;
        }
    }

    fn show(&mut self, snapshot: &OwnerSnapshot) -> tauri::Result<()> {
        let items = menu::menu(snapshot, now());
        if !self.shown.renew(&items, &self.actions)? {
            let shown = Shown::make(&self.app, items, &self.actions)?;
            self.tray.set_menu(Some(shown.menu.clone()))?;
            self.shown = shown;
        }
        let icon = menu::icon(snapshot);
        if icon != self.icon {
            self.tray.set_icon(Some(image(&self.app, icon)?))?;
            self.icon = icon;
        }
        Ok(())
    }
}

/// The menu that is up. A menu of the same shape is renewed in place: a new one would close under the reader's hand.
struct Shown {
    menu: Menu<Wry>,
    items: Vec<Item>,
    handles: Vec<Handle>,
}

enum Handle {
    Item(MenuItem<Wry>),
    Switch(CheckMenuItem<Wry>),
    Separator(PredefinedMenuItem<Wry>),
}

impl Shown {
    fn make(app: &AppHandle, items: Vec<Item>, actions: &Actions) -> tauri::Result<Self> {
        let handles =
            items.iter().enumerate().map(|(at, item)| Handle::make(app, at, item)).collect::<Result<_, _>>()?;
        let shown = Self { menu: Menu::new(app)?, items, handles };
        for handle in &shown.handles {
            shown.menu.append(handle.item())?;
        }
        shown.tell(actions);
        Ok(shown)
    }

    /// False where the shape differs.
    fn renew(&mut self, items: &[Item], actions: &Actions) -> tauri::Result<bool> {
        let same_kind = |(old, new): (&Item, &Item)| std::mem::discriminant(old) == std::mem::discriminant(new);
        if self.items.len() != items.len() || !self.items.iter().zip(items).all(same_kind) {
            return Ok(false);
        }
        for ((old, new), handle) in self.items.iter().zip(items).zip(&self.handles) {
            if old != new {
                handle.renew(new)?;
            }
        }
        self.items = items.to_vec();
        self.tell(actions);
        Ok(true)
    }

    fn tell(&self, actions: &Actions) {
        let does = self.items.iter().enumerate().filter_map(|(at, item)| match item {
            Item::Action { does, .. } => Some((id(at), does.clone())),
            Item::Switch { .. } => Some((id(at), Action::Toggle)),
            Item::Words(_) | Item::Separator => None,
        });
        *actions.lock().unwrap_or_else(PoisonError::into_inner) = does.collect();
    }
}

impl Handle {
    fn make(app: &AppHandle, at: usize, item: &Item) -> tauri::Result<Self> {
        Ok(match item {
            Item::Words(text) => Self::Item(MenuItem::with_id(app, id(at), literal(text), false, None::<&str>)?),
            Item::Action { text, .. } => Self::Item(MenuItem::with_id(app, id(at), literal(text), true, None::<&str>)?),
            Item::Switch { on, works } => {
                Self::Switch(CheckMenuItem::with_id(app, id(at), SWITCH, *works, *on, None::<&str>)?)
            }
            Item::Separator => Self::Separator(PredefinedMenuItem::separator(app)?),
        })
    }

    fn renew(&self, item: &Item) -> tauri::Result<()> {
        match (self, item) {
            (Self::Item(handle), Item::Words(text) | Item::Action { text, .. }) => handle.set_text(literal(text)),
            (Self::Switch(handle), Item::Switch { on, works }) => {
                handle.set_enabled(*works)?;
                handle.set_checked(*on)
            }
            (Self::Item(_) | Self::Switch(_) | Self::Separator(_), _) => Ok(()),
        }
    }

    fn item(&self) -> &dyn IsMenuItem<Wry> {
        match self {
            Self::Item(handle) => handle,
            Self::Switch(handle) => handle,
            Self::Separator(handle) => handle,
        }
    }
}

fn id(at: usize) -> String {
    format!("item-{at}")
}

/// Menus take `&` for the mark of a shortcut.
fn literal(text: &str) -> String {
    text.replace('&', "&&")
}

fn image(app: &AppHandle, icon: Icon) -> tauri::Result<Image<'static>> {
    Image::from_bytes(panel::picture(icon, panel::tone(app)))
}

fn now() -> u64 {
    to_millis(SystemTime::now())
}
