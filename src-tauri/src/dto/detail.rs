//! A run's page: its texts and previews of its files, each bounded. A program's output is untrusted and passed on as
//! text, never as markup. Pictures are only named here; `thumbnail` re-encodes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sandtray_core::history::{self, FileOut};
use sandtray_core::run::RunSpec;
use sandtray_core::supervisor::Request;

use super::history::{FileView, InputView, Piece, Preview, RunBody, RunRecord};
use super::live::LiveRequest;
use super::present;
use crate::thumbnail::Kind;

/// Most bytes of one text or one preview.
const MAX_PIECE: usize = 1 << 20;
/// Most bytes of all previews of one run, as JSON. Files beyond it are listed without a preview.
const MAX_PREVIEWS: usize = 16 << 20;

pub fn detail(record: history::RunRecord, not_again: Option<String>) -> RunRecord {
    let history::RunRecord { row, body } = record;
    let stdin_bytes = row.stdin_bytes;
    RunRecord { run: present::row(row), body: body.map(|body| self::body(body, stdin_bytes)), not_again }
}

/// The same page for a run that is not over.
pub fn request(Request { spec, client }: Request) -> LiveRequest {
    let mut room = MAX_PREVIEWS;
    LiveRequest {
        client_pid: client.pid,
        client_program: client.program,
        code: piece(&spec.code),
        code_bytes: spec.code.len() as u64,
        args: spec.args.clone(),
        inputs: given(&spec, &mut room),
        limits: present::limits(&spec.limits),
        overflow: spec.overflow,
    }
}

fn given(spec: &RunSpec, room: &mut usize) -> Vec<InputView> {
    let mut input = |name: Option<&str>, bytes: &[u8]| InputView {
        name: name.map(str::to_owned),
        size: bytes.len() as u64,
        kept: true,
        preview: fitting(name.unwrap_or_default(), bytes, room),
    };
    let stdin = (!spec.stdin.is_empty()).then(|| input(None, &spec.stdin));
    let files = spec.files.iter().map(|file| input(Some(file.name.as_str()), &file.bytes));
    stdin.into_iter().chain(files).collect()
}

fn body(body: history::Body, stdin_bytes: u64) -> RunBody {
    let mut room = MAX_PREVIEWS;
    RunBody {
        inputs: inputs(&body, stdin_bytes, &mut room),
        code: piece(&body.code),
        args: body.args,
        stdout: piece(&body.stdout),
        stderr: piece(&body.stderr),
        files: body.files_out.iter().map(|file| self::file(file, &mut room)).collect(),
        skipped_files: body.skipped_files,
        left_behind: body.left_behind,
    }
}

fn piece(bytes: &[u8]) -> Piece {
    let (kept, cut) = bounded(bytes);
    let text = String::from_utf8_lossy(kept);
    // A character that was cut in two at the end does not count as invalid, so it needs no base64 copy.
    let is_text = std::str::from_utf8(kept).is_ok_or_incomplete();
    let base64 = (!is_text).then(|| STANDARD.encode(kept));
    Piece { text: text.into_owned(), base64, cut }
}

fn inputs(body: &history::Body, stdin_bytes: u64, room: &mut usize) -> Vec<InputView> {
    let mut input = |name: Option<&str>, size, bytes: Option<&Bytes>| InputView {
        name: name.map(str::to_owned),
        size,
        kept: bytes.is_some(),
        preview: bytes.map_or(Preview::None, |bytes| fitting(name.unwrap_or_default(), bytes, room)),
    };
    let stdin = (stdin_bytes > 0).then(|| input(None, stdin_bytes, body.stdin.as_ref()));
    let files = body.files_in.iter().map(|file| input(Some(&file.name), file.size, file.bytes.as_ref()));
    stdin.into_iter().chain(files).collect()
}

fn file(file: &FileOut, room: &mut usize) -> FileView {
    let preview = fitting(&file.name, &file.bytes, room);
    FileView { name: file.name.clone(), size: file.bytes.len() as u64, preview }
}

/// The preview of a file, or none once the bytes for previews are used up.
fn fitting(name: &str, bytes: &[u8], room: &mut usize) -> Preview {
    let shown = preview(name, bytes);
    let size = match &shown {
        Preview::Text { text, .. } | Preview::Csv { text, .. } => written(text),
        Preview::Picture | Preview::None => 0,
    };
    match room.checked_sub(size) {
        Some(rest) => {
            *room = rest;
            shown
        }
        None => Preview::None,
    }
}

/// Bytes of a text in JSON. A control character may take six.
fn written(text: &str) -> usize {
    let byte = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..=0x1f => 6,
        _ => 1,
    };
    text.bytes().map(byte).sum()
}

fn preview(name: &str, bytes: &[u8]) -> Preview {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    if Kind::of(bytes).is_some() {
        return Preview::Picture;
    }
    let (kept, cut) = bounded(bytes);
    // A NUL is valid UTF-8 but does not occur in text.
    if !std::str::from_utf8(kept).is_ok_or_incomplete() || kept.contains(&0) {
        return Preview::None;
    }
    let text = String::from_utf8_lossy(kept).into_owned();
    match extension.as_str() {
        "csv" | "tsv" => Preview::Csv { text, cut },
        _ => Preview::Text { text, cut },
    }
}

fn bounded(bytes: &[u8]) -> (&[u8], bool) {
    (&bytes[..bytes.len().min(MAX_PIECE)], bytes.len() > MAX_PIECE)
}

trait Utf8Verdict {
    /// Whether this is text, or text whose last character is incomplete.
    fn is_ok_or_incomplete(&self) -> bool;
}

impl Utf8Verdict for Result<&str, std::str::Utf8Error> {
    fn is_ok_or_incomplete(&self) -> bool {
        self.as_ref().err().is_none_or(|error| error.error_len().is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sandtray_core::language::Language;
    use sandtray_core::name::FileName;
    use sandtray_core::run::{Client, ClientId, InputFile, Overflow, RunId, RunSpec};
    use sandtray_core::settings::Settings;

    use super::*;
    use sandtray_core::history::FileIn;

    #[test]
    fn what_is_no_text_comes_twice_and_text_once() {
        let text = Piece { text: "<img src=x>".into(), base64: None, cut: false };
        assert_eq!(piece(b"<img src=x>"), text);
        let binary = Piece { text: "a\u{fffd}b".into(), base64: Some("Yf9i".into()), cut: false };
        assert_eq!(piece(b"a\xffb"), binary);
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let long = "\u{20ac}".repeat(MAX_PIECE);
        let piece = piece(long.as_bytes());
        assert!(piece.cut && piece.base64.is_none());
        assert!(piece.text.len() <= MAX_PIECE + 2);
    }

    #[test]
    fn files_are_shown_by_what_they_are() {
        let png = b"\x89PNG\r\n\x1a\n";
        assert_eq!(preview("chart.png", png), Preview::Picture);
        assert_eq!(preview("named.txt", png), Preview::Picture);
        assert_eq!(preview("a.SVG", b"<svg/>"), Preview::Text { text: "<svg/>".into(), cut: false });
        assert_eq!(preview("t.csv", b"a,b\n"), Preview::Csv { text: "a,b\n".into(), cut: false });
        assert_eq!(preview("page.html", b"<b>"), Preview::Text { text: "<b>".into(), cut: false });
        assert_eq!(preview("lying.png", b"\x00\x01"), Preview::None);
        assert_eq!(preview("x.bin", b"\xff\xfe"), Preview::None);
    }

    #[test]
    fn a_preview_is_measured_as_it_is_written() {
        for text in ["plain", "\u{1}\u{1f}\u{7f}", "\"\\\n\r\t\u{8}\u{c}", "\u{20ac}\u{0}"] {
            assert_eq!(written(text) + 2, serde_json::to_string(text).unwrap().len(), "{text:?}");
        }
    }

    /// The largest run that a program can produce. The window gets no larger message.
    #[test]
    fn a_runs_page_fits_the_line_to_the_window() {
        let worst = vec![1; MAX_PIECE + 1];
        let files_out = (0..64).map(|n| FileOut { name: format!("{n}.txt"), bytes: worst.clone().into() }).collect();
        let given = |n| FileIn { name: format!("{n}.txt"), size: 1, bytes: Some(worst.clone().into()) };
        let files_in = (0..64).map(given).collect();
        let stdin = Some(worst.clone().into());
        let (code, stdout, stderr) = (worst.clone().into(), worst.clone().into(), worst.clone().into());
        let body = history::Body { code, stdin, stdout, stderr, files_in, files_out, ..history::Body::default() };
        let body = super::body(body, 1);
        let length = serde_json::to_vec(&body).unwrap().len();
        assert!(length < crate::link::MAX_LINE * 9 / 10, "{length}");
    }

    /// The request of a run is one frame, so its inputs are far smaller than a run's page may be.
    #[test]
    fn a_request_of_a_live_run_is_shown_within_the_same_bounds() {
        let worst = vec![1; MAX_PIECE + 1];
        let files = (0..64)
            .map(|n| InputFile { name: FileName::parse(&format!("{n}.txt")).unwrap(), bytes: worst.clone().into() });
        let spec = RunSpec {
            id: RunId::generate(),
            language: Language::Python,
            code: worst.clone().into(),
            args: Vec::new(),
            files: files.collect(),
            stdin: worst.clone().into(),
            limits: Settings::default().limits(),
            overflow: Overflow::Truncate,
            label: None,
        };
        let client = Client { id: ClientId(7), name: "agent".into(), pid: Some(12), program: Some("node".into()) };
        let shown = request(Request { spec: Arc::new(spec), client });
        assert!(shown.code.cut && shown.code_bytes == (1 << 20 | 1));
        let (stdin, last) = (&shown.inputs[0], &shown.inputs[64]);
        assert_eq!((stdin.name.as_deref(), stdin.size, stdin.kept), (None, 1 << 20 | 1, true));
        assert_eq!((last.name.as_deref(), last.size), (Some("63.txt"), 1 << 20 | 1));
        assert_eq!((shown.client_pid, shown.client_program.as_deref()), (Some(12), Some("node")));
        let length = serde_json::to_vec(&shown).unwrap().len();
        assert!(length < crate::link::MAX_LINE * 9 / 10, "{length}");
    }

    #[test]
    fn inputs_are_shown_as_files_are_and_those_that_were_not_kept_say_so() {
        let files_in = vec![
            FileIn { name: "a.csv".into(), size: 4, bytes: Some("a,b\n".into()) },
            FileIn { name: "old".into(), size: 7, bytes: None },
        ];
        let body = history::Body { stdin: Some("in".into()), files_in, ..history::Body::default() };
        let input =
            |name: Option<&str>, size, kept, preview| InputView { name: name.map(str::to_owned), size, kept, preview };
        assert_eq!(
            super::body(body.clone(), 2).inputs,
            [
                input(None, 2, true, Preview::Text { text: "in".into(), cut: false }),
                input(Some("a.csv"), 4, true, Preview::Csv { text: "a,b\n".into(), cut: false }),
                input(Some("old"), 7, false, Preview::None),
            ]
        );
        let body = history::Body { stdin: None, files_in: Vec::new(), ..body };
        assert_eq!(super::body(body.clone(), 2).inputs, [input(None, 2, false, Preview::None)]);
        assert_eq!(super::body(body, 0).inputs, []);
    }

    #[test]
    fn previews_share_one_bound() {
        let file = |room: &mut usize| {
            super::file(&FileOut { name: "a.txt".into(), bytes: vec![b'x'; 10].into() }, room).preview
        };
        let mut room = 15;
        assert!(matches!(file(&mut room), Preview::Text { .. }));
        assert_eq!(file(&mut room), Preview::None);
    }
}
