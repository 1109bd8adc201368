//! The text that searches look through: label, client, and the beginnings of code, output and inputs.

use super::record::RunRecord;

/// Indexed bytes of the code. An index of all of it would cost more than the run.
const CODE: usize = 4 << 10;
/// Indexed bytes of each output stream.
const STREAM: usize = 64 << 10;
/// Indexed bytes of standard input and the input files together. Only text is indexed.
const INPUTS: usize = 64 << 10;

pub(super) fn of(record: &RunRecord) -> String {
    let mut words = format!("{}\n{}", record.row.label.as_deref().unwrap_or_default(), record.row.client);
    for piece in pieces(record) {
        words.push('\n');
        words.push_str(&String::from_utf8_lossy(piece));
    }
    words
}

/// Estimated bytes in the index: half of the text.
pub(super) fn bytes(record: &RunRecord) -> usize {
    pieces(record).map(<[u8]>::len).sum::<usize>() / 2
}

fn pieces(record: &RunRecord) -> impl Iterator<Item = &[u8]> {
    record.body.iter().flat_map(|body| {
        let mut room = INPUTS;
        let inputs = body.stdin.iter().chain(body.files_in.iter().filter_map(|file| file.bytes.as_ref()));
        let inputs = inputs.map(move |bytes| {
            let piece = beginning(bytes, room);
            let piece = if is_text(piece) { piece } else { &[] };
            room -= piece.len();
            piece
        });
        [beginning(&body.code, CODE), beginning(&body.stdout, STREAM), beginning(&body.stderr, STREAM)]
            .into_iter()
            .chain(inputs)
            .filter(|piece| !piece.is_empty())
    })
}

fn beginning(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[..bytes.len().min(most)]
}

/// Whether bytes are text: UTF-8 without NUL, which is valid UTF-8 but not text. The last character may be cut.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).err().is_none_or(|error| error.error_len().is_none())
}
