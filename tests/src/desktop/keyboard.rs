//! A person's hands on the keyboard: keys go to the X server, which gives them to whatever window has them.

use std::time::Duration;

use x11rb::connection::Connection;
use x11rb::errors::{ConnectionError, ReplyOrIdError};
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, InputFocus, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, MapState, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;
use x11rb::{CURRENT_TIME, NONE};

pub const ENTER: u32 = 0xff0d;
pub const ESCAPE: u32 = 0xff1b;
const SHIFT: u32 = 0xffe1;
const NAME_CHARS: u32 = 64;
/// Between two keys, as fast as anybody types.
const TYPING: Duration = Duration::from_millis(5);

pub struct Keyboard {
    connection: RustConnection,
    root: Window,
    first: u8,
    /// Of each key in turn.
    symbols: Vec<Vec<u32>>,
}

impl Keyboard {
    pub fn of(display: &str) -> Result<Self, ReplyOrIdError> {
        let (connection, screen) = RustConnection::connect(Some(display)).map_err(|_| ConnectionError::UnknownError)?;
        let (root, first) = (connection.setup().roots[screen].root, connection.setup().min_keycode);
        let count = connection.setup().max_keycode - first + 1;
        let mapping = connection.get_keyboard_mapping(first, count)?.reply()?;
        let each = usize::from(mapping.keysyms_per_keycode);
        let symbols = mapping.keysyms.chunks(each).map(<[u32]>::to_vec).collect();
        Ok(Self { connection, root, first, symbols })
    }

    /// Gives the keys to the window in view whose title begins so, and says whether there is one.
    pub fn focus(&self, title: &str) -> Result<bool, ReplyOrIdError> {
        for window in self.connection.query_tree(self.root)?.reply()?.children {
            let attributes = self.connection.get_window_attributes(window)?.reply()?;
            let name = self
                .connection
                .get_property(false, window, AtomEnum::WM_NAME, AtomEnum::ANY, 0, NAME_CHARS)?
                .reply()?
                .value;
            if attributes.map_state == MapState::VIEWABLE && name.starts_with(title.as_bytes()) {
                self.connection.set_input_focus(InputFocus::PARENT, window, CURRENT_TIME)?;
                self.connection.flush()?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Letters, digits and punctuation of ASCII.
    pub fn write(&self, text: &str) -> Result<(), ReplyOrIdError> {
        text.chars().try_for_each(|letter| self.press(u32::from(letter)))
    }

    pub fn press(&self, symbol: u32) -> Result<(), ReplyOrIdError> {
        let (key, shifted) = self.key(symbol);
        let shift = shifted.then(|| self.key(SHIFT).0);
        for key in shift.into_iter().chain([key]) {
            self.fake(KEY_PRESS_EVENT, key)?;
        }
        for key in [key].into_iter().chain(shift) {
            self.fake(KEY_RELEASE_EVENT, key)?;
        }
        self.connection.flush()?;
        std::thread::sleep(TYPING);
        Ok(())
    }

    fn fake(&self, kind: u8, key: u8) -> Result<(), ReplyOrIdError> {
        self.connection.xtest_fake_input(kind, key, CURRENT_TIME, NONE, 0, 0, 0)?.check()?;
        Ok(())
    }

    fn key(&self, symbol: u32) -> (u8, bool) {
        let at = |level: usize| self.symbols.iter().position(|symbols| symbols.get(level) == Some(&symbol));
        let (place, shifted) = match (at(0), at(1)) {
            (Some(place), _) => (place, false),
            (None, Some(place)) => (place, true),
            (None, None) => panic!("there is no key for {symbol:#x}"),
        };
        (self.first + u8::try_from(place).expect("as many keys as a keyboard has"), shifted)
    }
}
