//! The pipes from and to the app, each on its own thread, because the main thread draws.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use sandtray_app::link::{FromWindow, MAX_ASKED, MAX_LINE, ToWindow};
use tracing::error;

/// Capacity of the channel to the app: all requests, and as many other messages.
const WAITING: usize = 2 * MAX_ASKED;
/// A read buffer larger than this many bytes is shrunk after its line.
const KEPT: usize = 256 << 10;

pub(crate) struct Incoming {
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
}

impl Incoming {
    pub(crate) fn new(input: impl Read + Send + 'static) -> Self {
        Self { reader: BufReader::new(Box::new(input)), line: Vec::new() }
    }

    /// The next message. `None` at end-of-file.
    pub(crate) fn next(&mut self) -> io::Result<Option<ToWindow>> {
        self.line.clear();
        self.line.shrink_to(KEPT);
        let most = MAX_LINE as u64 + 1;
        if self.reader.by_ref().take(most).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        if self.line.pop_if(|last| *last == b'\n').is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is cut off"));
        }
        Ok(Some(serde_json::from_slice(&self.line)?))
    }
}

/// Starts a writer thread and returns the sender for it. The thread ends with the last sender, or when a write fails.
pub(crate) fn outgoing(output: impl Write + Send + 'static) -> io::Result<SyncSender<FromWindow>> {
    let (say, said) = sync_channel(WAITING);
    thread::Builder::new().name("line-out".into()).spawn(move || {
        if let Err(failure) = write(output, &said) {
            error!(%failure, "the app does not listen");
        }
    })?;
    Ok(say)
}

fn write(mut output: impl Write, said: &Receiver<FromWindow>) -> io::Result<()> {
    for message in said {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        output.write_all(&line)?;
        output.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::settings::Theme;

    fn incoming(bytes: &'static [u8]) -> Incoming {
        Incoming::new(bytes)
    }

    #[test]
    fn lines_are_read_one_at_a_time_to_the_end() {
        let mut lines = incoming(
            b"{\"show\":{\"theme\":\"dark\",\"version\":\"1\",\"asks\":true}}\n{\"front\":{\"leave\":null}}\n",
        );
        assert!(matches!(lines.next().unwrap(), Some(ToWindow::Show { theme: Theme::Dark, .. })));
        assert!(matches!(lines.next().unwrap(), Some(ToWindow::Front { leave: None })));
        assert!(lines.next().unwrap().is_none());
    }

    #[test]
    fn what_is_cut_off_or_not_understood_is_an_error() {
        assert!(incoming(b"{\"front\":{\"leave\":null}}").next().is_err());
        assert!(incoming(b"\"back\"\n").next().is_err());
    }

    #[test]
    fn a_line_has_a_bound() {
        let mut lines = Incoming::new(io::repeat(b'x'));
        assert_eq!(lines.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(lines.line.len(), MAX_LINE + 1);
    }
}
