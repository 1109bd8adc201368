//! The reader of the tar of `out/`: an archive from another tar writer comes back whole; a damaged or forged one stays
//! within every bound.

use std::collections::{BTreeMap, HashSet};

use fastrand::Rng;
use sandtray_core::launcher::{Ending, Nonce, START_SEALED};
use sandtray_core::run::{MAX_FILES, SkipReason};

use crate::each;
use crate::input::{bytes, choice, damage, size};
use crate::stream::{FILE_BYTES, Read, read, read_checked, trailer};

const BLOCK: usize = 512;
const OUT: &str = "sandbox/out/";
/// Bytes of all names of returned files.
const MAX_NAMES: usize = 64 << 10;
/// The listed entries that were left out, plus the one that says where the reading ended, and the one that counts the
/// others.
const MAX_SKIPPED: usize = 102;
/// Most bytes of a name that is shown: 300, each of which may have become a replacement character, and the mark for a
/// cut.
const MAX_SHOWN: usize = 300 * 3 + 3;
/// Most memory of the flood's reader: twice the cap of file bytes, and names.
const MAX_KEPT: usize = 16 << 20;

/// The stream ahead of the tar.
fn before(nonce: &Nonce) -> Vec<u8> {
    let ending = Ending {
        exit_code: 0,
        peak_bytes: None,
        oom_kills: 0,
        cpu: std::time::Duration::ZERO,
        linger: std::time::Duration::ZERO,
    };
    [START_SEALED, &trailer(&nonce.mark(), &ending, &[], "tar")].concat()
}

fn header(rng: &mut Rng, kind: u8, name: &[u8], link: &[u8], size: u64) -> Vec<u8> {
    let mut header = if rng.bool() { ::tar::Header::new_gnu() } else { ::tar::Header::new_ustar() };
    let bytes = header.as_mut_bytes();
    bytes[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    bytes[157..157 + link.len().min(100)].copy_from_slice(&link[..link.len().min(100)]);
    header.set_entry_type(::tar::EntryType::new(kind));
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn entry(rng: &mut Rng, kind: u8, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = header(rng, kind, name, link, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

/// Names from a small set, so that links find their files and names repeat.
fn path(rng: &mut Rng) -> Vec<u8> {
    let name = |rng: &mut Rng| -> Vec<u8> {
        match rng.u8(..12) {
            0 => vec![b'n'; size(rng, 600)],
            1 => bytes(rng, 40),
            2 => "ä\u{202e}".into(),
            3 => b"..".to_vec(),
            4 => b"back\\slash".to_vec(),
            _ => vec![b'a' + rng.u8(..4)],
        }
    };
    let depth = *choice(rng, &[1, 1, 1, 2, 3, 15, 16, 17, 18, 40, 2000]);
    let mut path = match rng.u8(..10) {
        0 => bytes(rng, 30),
        1 => b"tmp/.sandtray.log".to_vec(),
        _ => OUT.as_bytes().to_vec(),
    };
    if depth > 20 {
        path.extend(choice(rng, &[b"d/".as_slice(), b"deep/"]).repeat(depth));
    } else {
        for _ in 1..depth {
            path.extend(name(rng));
            path.push(b'/');
        }
    }
    path.extend(name(rng));
    path
}

/// An archive with every kind of entry, and with false sizes.
pub(crate) fn archive(rng: &mut Rng) -> Vec<u8> {
    let kinds = b"00000001111112357\0xgLKSMDVZ";
    let mut archive = Vec::new();
    for _ in 0..rng.usize(..14) {
        let (name, link) = (path(rng), path(rng));
        for (kind, text, record) in [(b'L', &name, "path"), (b'K', &link, "linkpath")] {
            if text.len() > 100 || rng.u8(..8) == 0 {
                archive.extend(match rng.u8(..4) {
                    0 => {
                        let text = [record.as_bytes(), b"=", text, b"\n"].concat();
                        let length = text.len() + 1 + (text.len() + 5).to_string().len();
                        entry(rng, b'x', b"PaxHeaders/x", b"", &[format!("{length} ").as_bytes(), &text].concat())
                    }
                    _ => entry(rng, kind, b"././@LongLink", b"", &[text, b"\0".as_slice()].concat()),
                });
            }
        }
        let kind = *choice(rng, kinds);
        let content = if kind == b'x' { b"12 size=100\n9 path=\n".to_vec() } else { bytes(rng, 3000) };
        match rng.u8(..20) {
            0 => {
                let size = *choice(rng, &[1 << 20, 1 << 26, 1 << 33, u64::MAX >> 1, FILE_BYTES, FILE_BYTES + 1]);
                archive.extend(header(rng, kind, &name, &link, size));
            }
            _ => archive.extend(entry(rng, kind, &name, &link, &content)),
        }
    }
    if rng.u8(..4) > 0 {
        archive.extend([0; 2 * BLOCK]);
    }
    archive
}

fn hold_the_bounds(read: &Read) {
    let files = &read.harvest.files;
    assert!(files.len() <= MAX_FILES);
    assert!(files.iter().map(|file| file.bytes.len() as u64).sum::<u64>() <= FILE_BYTES);
    assert!(files.iter().map(|file| file.name.as_str().len()).sum::<usize>() <= MAX_NAMES);
    let names: HashSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names.len(), files.len(), "no name comes twice");
    assert!(read.harvest.skipped.len() <= MAX_SKIPPED);
    assert!(read.harvest.skipped.iter().all(|skipped| !skipped.name.is_empty() && skipped.name.len() <= MAX_SHOWN));
}

#[test]
fn packed_files_come_back_under_every_name() {
    each("archives, as they are", |rng| {
        let mut expected: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut builder = ::tar::Builder::new(Vec::new());
        let mut left = FILE_BYTES as usize;
        for number in 0..rng.usize(..12) {
            let folders = "f/".repeat(rng.usize(..16));
            let length = *choice(rng, &[1, 80, 87, 88, 89, 100, 143, 144, 200, 250]);
            let name = format!("{folders}{}{number}", choice(rng, &["x", "ä"]).repeat(length / 2));
            let mut header = ::tar::Header::new_gnu();
            header.set_mode(0o644);
            let first = expected
                .iter()
                .nth(rng.usize(..=expected.len()))
                .map(|(name, content)| (name.clone(), content.clone()));
            let content = match first {
                Some((first, content)) if rng.u8(..3) == 0 && content.len() <= left => {
                    header.set_entry_type(::tar::EntryType::Link);
                    header.set_size(0);
                    builder.append_link(&mut header, format!("{OUT}{name}"), format!("{OUT}{first}")).unwrap();
                    content
                }
                _ => {
                    let content = bytes(rng, left.min(1000));
                    header.set_size(content.len() as u64);
                    builder.append_data(&mut header, format!("{OUT}{name}"), content.as_slice()).unwrap();
                    content
                }
            };
            left -= content.len();
            expected.insert(name, content);
        }
        let nonce = Nonce::random();
        let stream = [before(&nonce), builder.into_inner().unwrap()].concat();
        let read = read_checked(rng, &nonce, &stream);
        let found: BTreeMap<String, Vec<u8>> =
            read.harvest.files.iter().map(|file| (file.name.to_string(), file.bytes.to_vec())).collect();
        assert_eq!((found, read.harvest.skipped), (expected, Vec::new()));
    });
}

#[test]
fn a_damaged_archive_is_read_within_its_bounds_however_it_is_cut() {
    each("archives, damaged", |rng| {
        let mut archive = archive(rng);
        if rng.u8(..3) > 0 {
            damage(rng, &mut archive);
        }
        // Damage in a header ends the reading, unless its checksum is recomputed.
        if rng.bool() && archive.len() >= BLOCK {
            let block = rng.usize(..archive.len() / BLOCK) * BLOCK;
            let field = choice(rng, &[0..100, 124..136, 156..157, 157..257, 257..265, 345..500]);
            let field = block + field.start..block + field.end;
            let at = rng.usize(field);
            archive[at] = rng.u8(..);
            seal(&mut archive[block..block + BLOCK]);
        }
        let nonce = Nonce::random();
        let stream = [before(&nonce), archive].concat();
        hold_the_bounds(&read_checked(rng, &nonce, &stream));
    });
}

fn seal(block: &mut [u8]) {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// A thousandth of the usual number of inputs, since each is a thousand times as long.
#[test]
fn a_flood_of_entries_is_kept_in_bounded_memory() {
    let nonce = Nonce::random();
    let before = before(&nonce);
    each("archives, floods", |rng| {
        if rng.u16(..1000) > 0 {
            return;
        }
        let kind = *choice(rng, b"01256LKx");
        // The reader takes no content for links and the like, and would read it as headers.
        let content = if matches!(kind, b'1'..=b'6') { Vec::new() } else { bytes(rng, 3000) };
        let (name, link) = (path(rng), path(rng));
        let piece: Vec<u8> = (0..200)
            .flat_map(|at| {
                let name = [name.as_slice(), format!("{at}").as_bytes()].concat();
                [
                    entry(rng, b'L', b"l", b"", &name),
                    entry(rng, b'K', b"k", b"", &link),
                    entry(rng, kind, &name, &link, &content),
                ]
                .concat()
            })
            .collect();
        let stream: Vec<&[u8]> =
            std::iter::once(before.as_slice()).chain(std::iter::repeat_n(piece.as_slice(), 20)).collect();
        let read = crate::within(MAX_KEPT, || read(&nonce, &stream));
        hold_the_bounds(&read);
        assert!(read.harvest.skipped.iter().any(|skipped| skipped.reason == SkipReason::NotRead));
    });
}
