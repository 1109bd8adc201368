//! What is on the screen, pixel by pixel, and closing a window as its button does. Nothing of it asks the app: the picture
//! is the one that the X server keeps, which a person would see.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use x11rb::CURRENT_TIME;
use x11rb::connection::Connection;
use x11rb::errors::ReplyOrIdError;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, CLIENT_MESSAGE_EVENT, ClientMessageData, ClientMessageEvent, ConnectionExt, CreateWindowAux, EventMask,
    MapState, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// Every so manieth line of the screen is looked at: letters are taller.
const LINES: usize = 4;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(3);
/// A picture that has stood still for so long is the last one.
const STILL: Duration = Duration::from_millis(700);
/// A colour that covers more of the screen than this is background; what is not background is content.
const BACKGROUND: f64 = 0.01;
/// Fewer points of content than this are no page: an empty window, or none.
const CONTENT: usize = 300;

/// The screen as the X server dumps it: an XWD file that changes with every pixel drawn.
pub struct Screen {
    file: File,
    first: u64,
    stride: usize,
    lines: usize,
}

pub struct Painted {
    /// Until something of the page was there: a twentieth of its content.
    pub first: Duration,
    /// Until all of it was there, but for a fiftieth.
    pub whole: Duration,
}

impl Screen {
    pub fn open(dump: &Path) -> io::Result<Self> {
        let file = File::open(dump)?;
        let mut header = [0; 100];
        file.read_exact_at(&mut header, 0)?;
        let field = |at: usize| {
            u32::from_be_bytes([header[at * 4], header[at * 4 + 1], header[at * 4 + 2], header[at * 4 + 3]])
        };
        // The sizes of header, line and colour table, by the header's fields 0, 5, 12 and 19.
        let first = u64::from(field(0)) + u64::from(field(19)) * 12;
        Ok(Self { file, first, stride: field(12) as usize, lines: field(5) as usize })
    }

    /// Watches from `begun` until the picture stands still. `None` where no page was drawn within `bound`.
    pub fn watch(&self, begun: Instant, bound: Duration) -> io::Result<Option<Painted>> {
        let mut pictures = vec![(Duration::ZERO, self.look()?)];
        loop {
            let now = begun.elapsed();
            let picture = self.look()?;
            let (changed, last) = pictures.last().map(|(at, last)| (*at, last)).expect("there is a first one");
            if picture != *last {
                pictures.push((now, picture));
            } else if pictures.len() > 1 && now - changed > STILL && content(last).len() >= CONTENT {
                return Ok(painted(&pictures));
            }
            if now > bound {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn look(&self) -> io::Result<Vec<u32>> {
        let mut picture = Vec::with_capacity(self.lines / LINES * self.stride / 4);
        let mut line = vec![0; self.stride];
        for number in (0..self.lines).step_by(LINES) {
            self.file.read_exact_at(&mut line, self.first + (number * self.stride) as u64)?;
            picture.extend(line.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)));
        }
        Ok(picture)
    }
}

/// The places of a picture that are not background.
fn content(picture: &[u32]) -> Vec<usize> {
    let mut colours = std::collections::HashMap::<u32, usize>::new();
    for colour in picture {
        *colours.entry(*colour).or_default() += 1;
    }
    let most = picture.len() as f64 * BACKGROUND;
    (0..picture.len()).filter(|at| (colours[&picture[*at]] as f64) < most).collect()
}

/// When the content of the last picture came to be there.
fn painted(pictures: &[(Duration, Vec<u32>)]) -> Option<Painted> {
    let (_, last) = pictures.last()?;
    let content = content(last);
    let since = |share: f64| {
        let enough = content.len() as f64 * share;
        let has = |picture: &[u32]| content.iter().filter(|at| picture[**at] == last[**at]).count() as f64 >= enough;
        pictures.iter().find(|(_, picture)| has(picture)).map(|(at, _)| *at)
    };
    Some(Painted { first: since(0.05)?, whole: since(0.98)? })
}

/// Asks every window in view to close, as the button in its frame would. How many there were.
pub fn close_windows(display: &str) -> Result<usize, ReplyOrIdError> {
    let (connection, root) = root(display)?;
    let atom = |name: &str| connection.intern_atom(false, name.as_bytes())?.reply().map(|reply| reply.atom);
    let (protocols, delete) = (atom("WM_PROTOCOLS")?, atom("WM_DELETE_WINDOW")?);
    let understands = |window: Window| -> Result<bool, ReplyOrIdError> {
        let in_view = connection.get_window_attributes(window)?.reply()?.map_state == MapState::VIEWABLE;
        let property = connection.get_property(false, window, protocols, AtomEnum::ATOM, 0, 16)?.reply()?;
        Ok(in_view && property.value32().is_some_and(|mut atoms| atoms.any(|atom| atom == delete)))
    };
    let mut closed = 0;
    for window in connection.query_tree(root)?.reply()?.children {
        if understands(window)? {
            let event = ClientMessageEvent {
                response_type: CLIENT_MESSAGE_EVENT,
                format: 32,
                sequence: 0,
                window,
                type_: protocols,
                data: ClientMessageData::from([delete, 0, 0, 0, 0]),
            };
            connection.send_event(false, window, EventMask::NO_EVENT, event)?;
            closed += 1;
        }
    }
    // A server may drop what a client that has gone asked for last: the answer to a question says that it did not.
    connection.get_input_focus()?.reply()?;
    Ok(closed)
}

/// What every window on the screen calls itself, as a desktop reads it: the first of the two names in `WM_CLASS`.
pub fn classes(display: &str) -> Result<Vec<String>, ReplyOrIdError> {
    let (connection, root) = root(display)?;
    let mut names = Vec::new();
    for window in connection.query_tree(root)?.reply()?.children {
        let class = connection.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 64)?.reply()?.value;
        names.extend(class.split(|byte| *byte == 0).next().map(|name| String::from_utf8_lossy(name).into_owned()));
    }
    Ok(names)
}

/// The text that would be pasted now.
pub fn copied(display: &str) -> Result<String, ReplyOrIdError> {
    let (connection, root) = root(display)?;
    let atom = |name: &str| connection.intern_atom(false, name.as_bytes())?.reply().map(|reply| reply.atom);
    let (clipboard, text, here) = (atom("CLIPBOARD")?, atom("UTF8_STRING")?, atom("HERE")?);
    let window = connection.generate_id()?;
    let (kind, aux) = (WindowClass::INPUT_ONLY, CreateWindowAux::new());
    connection.create_window(0, window, root, 0, 0, 1, 1, 0, kind, 0, &aux)?;
    connection.convert_selection(window, clipboard, text, here, CURRENT_TIME)?;
    connection.flush()?;
    while !matches!(connection.wait_for_event()?, Event::SelectionNotify(_)) {}
    let most = 1 << 20;
    let pasted = connection.get_property(false, window, here, text, 0, most)?.reply()?.value;
    Ok(String::from_utf8_lossy(&pasted).into_owned())
}

fn root(display: &str) -> Result<(RustConnection, Window), ReplyOrIdError> {
    let (connection, screen) =
        RustConnection::connect(Some(display)).map_err(|_| x11rb::errors::ConnectionError::UnknownError)?;
    let root = connection.setup().roots[screen].root;
    Ok((connection, root))
}
