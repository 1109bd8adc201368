//! The tray of macOS and Windows: the system's own icon and menu, and the event loop that both need on the main thread.

use std::sync::Arc;

use tao::event::{Event, StartCause};
use tao::event_loop::{ControlFlow, EventLoop, EventLoopBuilder, EventLoopProxy};
use tao::platform::run_return::EventLoopExtRunReturn;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tracing::{debug, error, warn};
use tray_icon::menu::{self, CheckMenuItem, IsMenuItem, Menu, MenuEvent, MenuId, MenuItem, PredefinedMenuItem};
use tray_icon::{BadIcon, MouseButton, MouseButtonState, TrayIcon, TrayIconBuilder, TrayIconEvent};

use super::{Face, Faces, perform};
use crate::app::App;
use crate::menu::{Action, Icon, Item, SWITCH};
use crate::text::plain;
use crate::{host, panel};

/// Longest text of the tooltip. Windows has room for 128 characters, with the name and a NUL.
const MAX_TIP_WORDS: usize = 100;

/// A message to the main thread.
#[derive(Debug)]
enum Told {
    Show(Face),
    Chosen(MenuId),
    Clicked,
    /// The app has ended.
    Over,
}

#[derive(Debug, Error)]
enum Failure {
    #[error("a picture cannot be read: {0}")]
    Picture(#[from] png::DecodingError),
    #[error(transparent)]
    Icon(#[from] BadIcon),
    #[error(transparent)]
    Menu(#[from] menu::Error),
    #[error(transparent)]
    Tray(#[from] tray_icon::Error),
}

/// Runs the app, with its tray, until it ends.
pub(crate) fn hold(runtime: &Runtime, app: &Arc<App>) {
    // Actions from the menu spawn tasks.
    let _inside = runtime.enter();
    let mut events = events();
    let line = events.create_proxy();
    forward(&line);
    let mut stage = Stage { runtime, app, line, shown: None, life: None };
    events.run_return(|event, _, flow| stage.hear(event, flow));
}

#[cfg(windows)]
fn events() -> EventLoop<Told> {
    EventLoopBuilder::with_user_event().build()
}

#[cfg(target_os = "macos")]
fn events() -> EventLoop<Told> {
    use tao::platform::macos::{ActivationPolicy, EventLoopExtMacOS};
    let mut events = EventLoopBuilder::with_user_event().build();
    // Not in the Dock; the window's program is there while it is open.
    events.set_activation_policy(ActivationPolicy::Accessory);
    // Does not take the keyboard focus from other programs.
    events.set_activate_ignoring_other_apps(false);
    events
}

fn forward(line: &EventLoopProxy<Told>) {
    let chosen = line.clone();
    MenuEvent::set_event_handler(Some(move |event: MenuEvent| tell(&chosen, Told::Chosen(event.id))));
    let clicked = line.clone();
    TrayIconEvent::set_event_handler(Some(move |event| {
        if opens(&event) {
            tell(&clicked, Told::Clicked);
        }
    }));
}

fn tell(line: &EventLoopProxy<Told>, told: Told) {
    if line.send_event(told).is_err() {
        debug!("the tray has gone");
    }
}

/// Whether a click opens the window. On Windows the right button has the menu, and the left one opens the window.
fn opens(event: &TrayIconEvent) -> bool {
    let (left, up) = (MouseButton::Left, MouseButtonState::Up);
    cfg!(windows)
        && matches!(event, TrayIconEvent::Click { button, button_state, .. } if (*button, *button_state) == (left, up))
}

/// The main thread's state.
struct Stage<'a> {
    runtime: &'a Runtime,
    app: &'a Arc<App>,
    line: EventLoopProxy<Told>,
    shown: Option<Shown>,
    life: Option<JoinHandle<()>>,
}

impl Stage<'_> {
    fn hear(&mut self, event: Event<'_, Told>, flow: &mut ControlFlow) {
        if let Event::UserEvent(told) = event {
            self.told(told, flow);
        } else if let Event::NewEvents(StartCause::Init) = event {
            *flow = ControlFlow::Wait;
            self.begin();
        } else if let Event::Reopen { .. } = event {
            perform(self.app, Action::Open(None), None);
        } else if let Event::LoopDestroyed = event {
            self.end();
        }
    }

    fn told(&mut self, told: Told, flow: &mut ControlFlow) {
        match told {
            Told::Show(face) => {
                if let Some(Err(failure)) = self.shown.as_mut().map(|shown| shown.show(face)) {
                    warn!(%failure, "the tray could not be renewed");
                }
            }
            Told::Chosen(id) => {
                if let Some(action) = self.shown.as_ref().and_then(|shown| shown.chosen(&id)) {
                    perform(self.app, action, None);
                }
            }
            Told::Clicked => perform(self.app, Action::Open(None), None),
            Told::Over => *flow = ControlFlow::Exit,
        }
    }

    fn begin(&mut self) {
        match Shown::make(Face::of(&self.app.desk.snapshot())) {
            Ok(shown) => {
                self.shown = Some(shown);
                self.app.tray.set(true);
                self.follow();
            }
            // The app goes on: the window can do everything too.
            Err(failure) => error!(%failure, "there is no tray here"),
        }
        let (app, over) = (Arc::clone(self.app), Over(self.line.clone()));
        self.life = Some(self.runtime.spawn(async move {
            host::run(&app).await;
            drop(over);
        }));
    }

    fn follow(&self) {
        let (mut faces, line) = (Faces::of(self.app), self.line.clone());
        self.app.spawn(async move {
            while let Some(face) = faces.next().await {
                tell(&line, Told::Show(face));
            }
        });
    }

    /// Quits and waits for the app. macOS ends the loop, and the process with it, when the session ends.
    fn end(&mut self) {
        self.shown = None;
        self.app.desk.quit.cancel();
        if let Some(Err(failure)) = self.life.take().map(|life| self.runtime.block_on(life)) {
            error!(%failure, "the app failed");
        }
    }
}

/// Drop guard that reports the app's end, also after a panic.
struct Over(EventLoopProxy<Told>);

impl Drop for Over {
    fn drop(&mut self) {
        tell(&self.0, Told::Over);
    }
}

/// The shown tray.
struct Shown {
    tray: TrayIcon,
    entries: Vec<Entry>,
    face: Face,
}

impl Shown {
    fn make(face: Face) -> Result<Self, Failure> {
        let (menu, entries) = made(&face.items)?;
        let tray = TrayIconBuilder::new()
            .with_icon(picture(face.icon)?)
            .with_icon_as_template(cfg!(target_os = "macos"))
            .with_tooltip(tip(&face.words))
            .with_menu(Box::new(menu))
            .with_menu_on_left_click(!cfg!(windows))
            .build()?;
        Ok(Self { tray, entries, face })
    }

    /// Updates the tray. A menu of the same shape is updated in place, because a new one would close an open menu.
    fn show(&mut self, face: Face) -> Result<(), Failure> {
        if same_shape(&self.face.items, &face.items) {
            for ((old, new), entry) in self.face.items.iter().zip(&face.items).zip(&self.entries) {
                if old != new {
                    entry.renew(new);
                }
            }
        } else {
            let (menu, entries) = made(&face.items)?;
            self.tray.set_menu(Some(Box::new(menu)));
            self.entries = entries;
        }
        self.face.items = face.items;
        if self.face.icon != face.icon {
            self.paint(picture(face.icon)?)?;
            self.face.icon = face.icon;
        }
        if self.face.words != face.words {
            self.tray.set_tooltip(Some(tip(&face.words)))?;
            self.face.words = face.words;
        }
        Ok(())
    }

    /// Sets the icon. macOS needs it set as a template each time; Windows has no templates.
    fn paint(&self, icon: tray_icon::Icon) -> tray_icon::Result<()> {
        if cfg!(target_os = "macos") {
            self.tray.set_icon_with_as_template(Some(icon), true)
        } else {
            self.tray.set_icon(Some(icon))
        }
    }

    /// The action of a menu entry. `None` if the entry is of a menu that was replaced.
    fn chosen(&self, id: &MenuId) -> Option<Action> {
        let (entry, item) = self.entries.iter().zip(&self.face.items).find(|(entry, _)| entry.item().id() == id)?;
        // The system has toggled the switch by itself. It must show the actual state.
        entry.renew(item);
        does(item)
    }
}

/// The handle of a menu item.
enum Entry {
    Line(MenuItem),
    Switch(CheckMenuItem),
    Separator(PredefinedMenuItem),
}

impl Entry {
    /// Makes an item, with a unique id.
    fn make(item: &Item) -> Self {
        match item {
            Item::Words(text) => Self::Line(MenuItem::new(literal(text), false, None)),
            Item::Action { text, .. } => Self::Line(MenuItem::new(literal(text), true, None)),
            Item::Switch { on, works } => Self::Switch(CheckMenuItem::new(SWITCH, *works, *on, None)),
            Item::Separator => Self::Separator(PredefinedMenuItem::separator()),
        }
    }

    fn renew(&self, item: &Item) {
        match (self, item) {
            (Self::Line(line), Item::Words(text) | Item::Action { text, .. }) => line.set_text(literal(text)),
            (Self::Switch(switch), Item::Switch { on, works }) => {
                switch.set_enabled(*works);
                switch.set_checked(*on);
            }
            (Self::Line(_) | Self::Switch(_) | Self::Separator(_), _) => {}
        }
    }

    fn item(&self) -> &dyn IsMenuItem {
        match self {
            Self::Line(line) => line,
            Self::Switch(switch) => switch,
            Self::Separator(separator) => separator,
        }
    }
}

fn made(items: &[Item]) -> Result<(Menu, Vec<Entry>), menu::Error> {
    let entries: Vec<Entry> = items.iter().map(Entry::make).collect();
    let menu = Menu::new();
    entries.iter().try_for_each(|entry| menu.append(entry.item()))?;
    Ok((menu, entries))
}

fn same_shape(old: &[Item], new: &[Item]) -> bool {
    old.iter().map(std::mem::discriminant).eq(new.iter().map(std::mem::discriminant))
}

fn does(item: &Item) -> Option<Action> {
    match item {
        Item::Action { does, .. } => Some(does.clone()),
        Item::Switch { .. } => Some(Action::Toggle),
        Item::Words(_) | Item::Separator => None,
    }
}

fn picture(icon: Icon) -> Result<tray_icon::Icon, Failure> {
    let panel::Pixels { width, height, rgba } = panel::pixels(icon)?;
    Ok(tray_icon::Icon::from_rgba(rgba, width, height)?)
}

fn tip(words: &str) -> String {
    let words = plain(words, MAX_TIP_WORDS);
    if words.starts_with("Sandtray") { words } else { format!("Sandtray\n{words}") }
}

/// Escapes `&`, which menus take for the mark of a shortcut.
fn literal(text: &str) -> String {
    text.replace('&', "&&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dto::snapshot::Page;

    fn action(text: &str, does: Action) -> Item {
        Item::Action { text: text.into(), does }
    }

    #[test]
    fn a_menu_keeps_its_shape_while_only_words_and_switches_change() {
        let menu = |text: &str, on| [Item::Switch { on, works: true }, Item::Separator, action(text, Action::Stop)];
        assert!(same_shape(&menu("Stop", false), &menu("Stop all", true)));
        assert!(!same_shape(&menu("Stop", true), &menu("Stop", true)[..2]));
        assert!(!same_shape(&menu("Stop", true)[..2], &menu("Stop", true)));
        assert!(!same_shape(&[Item::Words("Stop".into())], &[action("Stop", Action::Stop)]));
    }

    #[test]
    fn words_and_lines_between_do_nothing() {
        assert_eq!(does(&Item::Switch { on: false, works: true }), Some(Action::Toggle));
        assert_eq!(does(&action("Runs", Action::Open(Some(Page::Runs)))), Some(Action::Open(Some(Page::Runs))));
        assert_eq!(does(&Item::Words("Ready".into())), None);
        assert_eq!(does(&Item::Separator), None);
    }

    #[test]
    fn a_tip_begins_with_the_name_and_has_room_on_windows() {
        assert_eq!(tip("2 running"), "Sandtray\n2 running");
        assert_eq!(tip("Sandtray could not start"), "Sandtray could not start");
        assert!(tip(&"x".repeat(500)).encode_utf16().count() < 128);
    }

    #[test]
    fn an_ampersand_stays_what_it_is() {
        assert_eq!(literal("R&D for a && b"), "R&&D for a &&&& b");
    }

    #[test]
    fn every_picture_is_one_for_the_tray() {
        for icon in [Icon::Off, Icon::Ready, Icon::Running, Icon::Trouble] {
            assert!(picture(icon).is_ok());
        }
    }
}
