mod links;

use bytes::Bytes;

use super::basket::{MAX_NAMES, MAX_SKIPPED};
use super::*;
use crate::run::{MAX_FILES, OutputFile, SkipReason, SkippedFile};

fn header(kind: u8, name: &[u8], size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len().min(100)].copy_from_slice(&name[..name.len().min(100)]);
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn entry(kind: u8, name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, name, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn long(kind: u8, name: &[u8], content: &[u8]) -> Vec<u8> {
    [entry(b'L', b"././@LongLink", &[name, b"\0"].concat()), entry(kind, name, content)].concat()
}

/// A link and its target.
fn link(kind: u8, name: &[u8], target: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, name, 0);
    bytes[157..157 + target.len().min(100)].copy_from_slice(&target[..target.len().min(100)]);
    sealed(bytes)
}

fn sealed(mut block: Vec<u8>) -> Vec<u8> {
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

fn read(stream: &[u8], budget: u64) -> (Harvest, bool) {
    let mut archive = Archive::new(budget);
    for piece in stream.chunks(1000) {
        archive.push(piece);
    }
    let done = archive.is_done();
    (archive.finish(), done)
}

fn with_end(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 2 * BLOCK]].concat()
}

fn harvest(files: &[(&str, &str)], skipped: &[(&str, SkipReason)]) -> Harvest {
    Harvest {
        files: files
            .iter()
            .map(|(name, text)| OutputFile {
                name: FileName::parse(name).unwrap(),
                bytes: Bytes::from((*text).to_owned()),
            })
            .collect(),
        skipped: skipped.iter().map(|(name, reason)| SkippedFile { name: (*name).into(), reason: *reason }).collect(),
    }
}

#[test]
fn plain_files_come_back_with_their_names() {
    let longest = "n".repeat(255);
    let stream = with_end(&[
        entry(b'5', b"sandbox/out/", b""),
        entry(b'0', b"sandbox/out/a..b.txt", b"dots"),
        entry(b'0', b"sandbox/out/-rf", b"dash"),
        entry(b'0', b"sandbox/out/new\nline", b""),
        entry(0, b"sandbox/out/d/old", b"old type"),
        long(b'0', format!("sandbox/out/{longest}").as_bytes(), b"long"),
        entry(b'0', b"tmp/.sandtray.log", b"   \n"),
    ]);
    let expected =
        [("a..b.txt", "dots"), ("-rf", "dash"), ("new\nline", ""), ("d/old", "old type"), (&*longest, "long")];
    assert_eq!(read(&stream, 1000), (harvest(&expected, &[]), true));
}

#[test]
fn whatever_is_no_plain_file_is_named_and_left_out() {
    use SkipReason::*;
    let deep = format!("sandbox/out/{}", ["d"; 17].join("/"));
    let stream = with_end(&[
        entry(b'2', b"sandbox/out/link", b""),
        entry(b'1', b"sandbox/out/hard", b""),
        entry(b'6', b"sandbox/out/fifo", b""),
        entry(b'3', b"sandbox/out/device", b""),
        entry(b'0', b"sandbox/out/back\\slash", b"x"),
        entry(b'0', b"sandbox/out/\xff", b"x"),
        entry(b'0', b"sandbox/out/../../etc/passwd", b"x"),
        entry(b'0', b"sandbox/out//etc/passwd", b"x"),
        entry(b'0', deep.as_bytes(), b"x"),
        entry(b'0', b"/etc/passwd", b"not ours"),
        entry(b'0', b"sandbox/outside", b"not ours"),
        entry(b'0', b"sandbox/out/fine", b"y"),
        entry(b'0', b"sandbox/out/fine", b"twice"),
    ]);
    let skipped = [
        ("link", Symlink),
        ("hard", HardLink),
        ("fifo", SpecialFile),
        ("device", SpecialFile),
        ("back\\slash", BadName),
        ("\u{fffd}", BadName),
        ("../../etc/passwd", BadName),
        ("/etc/passwd", BadName),
        (&deep["sandbox/out/".len()..], TooDeep),
        ("fine", BadName),
    ];
    assert_eq!(read(&stream, 1000).0, harvest(&[("fine", "y")], &skipped));
}

#[test]
fn out_itself_may_be_anything() {
    for (kind, reason) in
        [(b'2', SkipReason::Symlink), (b'6', SkipReason::SpecialFile), (b'0', SkipReason::SpecialFile)]
    {
        let stream = with_end(&[entry(kind, b"sandbox/out", b"")]);
        assert_eq!(read(&stream, 1000).0, harvest(&[], &[("out", reason)]));
    }
}

#[test]
fn files_over_the_budget_are_skipped_and_those_that_still_fit_are_kept() {
    let stream = with_end(&[
        entry(b'0', b"sandbox/out/a", &[b'a'; 600]),
        entry(b'0', b"sandbox/out/b", &[b'b'; 600]),
        entry(b'0', b"sandbox/out/c", &[b'c'; 400]),
    ]);
    let (found, _) = read(&stream, 1000);
    assert_eq!(
        found.files.iter().map(|file| (file.name.as_str(), file.bytes.len())).collect::<Vec<_>>(),
        [("a", 600), ("c", 400)]
    );
    assert_eq!(found.skipped, harvest(&[], &[("b", SkipReason::TooLarge)]).skipped);
}

#[test]
fn a_sparse_terabyte_ends_the_reading_at_once() {
    let stream = [entry(b'0', b"sandbox/out/small", b"kept"), header(b'0', b"sandbox/out/huge", 1 << 40)].concat();
    assert_eq!(read(&stream, 1000), (harvest(&[("small", "kept")], &[("huge", SkipReason::NotRead)]), true));
}

#[test]
fn absurd_sizes_and_broken_headers_end_the_reading() {
    let mut negative = header(b'0', b"sandbox/out/x", 0);
    negative[124..136].fill(0xff);
    let mut garbage = header(b'0', b"sandbox/out/x", 0);
    garbage[0] ^= 1;
    for block in [negative, garbage] {
        let (found, done) = read(&[block, vec![1; 4096]].concat(), 1000);
        assert!(done);
        assert_eq!(found.files, []);
        assert_eq!(found.skipped.last().map(|skipped| skipped.reason), Some(SkipReason::NotRead));
    }
}

#[test]
fn a_hundred_thousand_empty_files_are_counted_not_kept() {
    let mut archive = Archive::new(1000);
    for number in 0..100_000 {
        archive.push(&entry(b'0', format!("sandbox/out/f{number}").as_bytes(), b""));
    }
    archive.push(&[0; 2 * BLOCK]);
    let found = archive.finish();
    assert_eq!(found.files.len(), MAX_FILES);
    assert_eq!(found.skipped.len(), MAX_SKIPPED + 1);
    let rest = 100_000 - MAX_FILES - MAX_SKIPPED;
    assert_eq!(found.skipped[MAX_SKIPPED].name, format!("({rest} more)"));
}

#[test]
fn two_thousand_nested_folders_cost_nothing() {
    let deep = format!("sandbox/out/{}", ["d"; 2000].join("/"));
    let stream = with_end(&[long(b'5', deep.as_bytes(), b""), long(b'0', format!("{deep}/f").as_bytes(), b"x")]);
    let (found, done) = read(&stream, 1000);
    assert!(done);
    assert_eq!(found.skipped.len(), 1);
    assert_eq!(found.skipped[0].reason, SkipReason::TooDeep);
    assert!(found.skipped[0].name.len() < 400);
}

#[test]
fn an_archive_that_breaks_off_says_so() {
    let stream = entry(b'0', b"sandbox/out/a", b"whole");
    assert_eq!(read(&stream, 1000), (harvest(&[("a", "whole")], &[("out", SkipReason::NotRead)]), false));
}

#[test]
fn what_tar_could_not_read_is_told() {
    let log = "tar: sandbox/out/secret: Cannot open: Permission denied\n\
        tar: can't open 'sandbox/out/it's': Permission denied\n\
        tar: sandbox/out/sock: socket ignored\n\
        tar: sandbox/out: Cannot open: Permission denied\n\
        tar: sandbox/out/folder: Permission denied\n\
        tar: sandbox/outside: Cannot open: Permission denied\n\
        tar: Exiting with failure status due to previous errors\n   \n";
    let stream = with_end(&[entry(b'0', b"tmp/.sandtray.log", log.as_bytes())]);
    let skipped = [
        ("secret", SkipReason::Unreadable),
        ("it's", SkipReason::Unreadable),
        ("sock", SkipReason::SpecialFile),
        ("out", SkipReason::Unreadable),
        ("folder", SkipReason::Unreadable),
    ];
    assert_eq!(read(&stream, 1000).0, harvest(&[], &skipped));
}

#[test]
fn names_are_kept_up_to_a_bound_of_all_their_bytes() {
    let folder = format!("sandbox/out/{}", vec!["d".repeat(250); 15].join("/"));
    let entries: Vec<Vec<u8>> = (0..20).map(|at| long(b'0', format!("{folder}/{at:02}").as_bytes(), b"x")).collect();
    let (harvest, done) = read(&with_end(&entries), 1 << 20);
    assert!(done);
    // Each is 3,767 bytes long below out/.
    assert_eq!((harvest.files.len(), harvest.skipped.len()), (MAX_NAMES / 3767, 20 - MAX_NAMES / 3767));
    assert!(harvest.skipped.iter().all(|skipped| skipped.reason == SkipReason::TooMany));
}

#[test]
fn a_name_in_two_fields_is_put_together() {
    let mut block = header(b'0', b"name", 0);
    block[257..265].copy_from_slice(b"ustar\x0000");
    let folder = format!("sandbox/out/{}", "d".repeat(143));
    block[345..500].copy_from_slice(folder.as_bytes());
    let name = format!("{}/name", "d".repeat(143));
    assert_eq!(read(&with_end(&[sealed(block)]), 10), (harvest(&[(&name, "")], &[]), true));
}

#[test]
fn the_records_of_posix_name_what_follows() {
    let record = |text: &str| {
        let with = |digits: usize| format!("{} {text}\n", digits + text.len() + 2);
        let one = with(1);
        if one.len() < 10 {
            one
        } else if with(2).len() < 100 {
            with(2)
        } else {
            with(3)
        }
    };
    let (first, second) = (format!("sandbox/out/{}", "ä".repeat(120)), format!("sandbox/out/{}", "b".repeat(200)));
    let of_first = record("mtime=1.5") + &record(&format!("path={first}")) + &record("size=4");
    let of_second = record(&format!("linkpath={first}")) + &record(&format!("path={second}"));
    let mut without_size = entry(b'0', b"cut", b"text");
    without_size.splice(..BLOCK, header(b'0', b"cut", 0));
    let stream = with_end(&[
        entry(b'g', b"pax_global_header", record("comment=x").as_bytes()),
        entry(b'x', b"PaxHeaders/cut", of_first.as_bytes()),
        without_size,
        entry(b'x', b"PaxHeaders/cut", of_second.as_bytes()),
        link(b'1', b"cut", b"cut"),
        entry(b'x', b"PaxHeaders/broken", b"9999999999999999999999 path=sandbox/out/x\n"),
        entry(b'0', b"sandbox/out/own", b"its own name"),
    ]);
    let expected = [(&first[12..], "text"), (&second[12..], "text"), ("own", "its own name")];
    assert_eq!(read(&stream, 1000), (harvest(&expected, &[]), true));
}

#[test]
fn a_tree_too_deep_is_listed_once_and_later_entries_are_read() {
    let top = ["d"; 17].join("/");
    let mut entries = vec![entry(b'0', b"sandbox/out/before", b"x")];
    for depth in 1..2000 {
        entries.push(long(b'5', format!("sandbox/out/{}/", vec!["d"; depth].join("/")).as_bytes(), b""));
    }
    entries.push(long(b'0', format!("sandbox/out/{}/f", vec!["d"; 1999].join("/")).as_bytes(), b"deep"));
    let other = format!("{}/e", ["d"; 16].join("/"));
    entries.push(entry(b'0', format!("sandbox/out/{other}").as_bytes(), b"deep too"));
    entries.push(entry(b'0', b"sandbox/out/good.txt", b"y"));
    let skipped = [(top.as_str(), SkipReason::TooDeep), (&other, SkipReason::TooDeep)];
    assert_eq!(read(&with_end(&entries), 1000), (harvest(&[("before", "x"), ("good.txt", "y")], &skipped), true));
}

#[test]
fn half_a_gigabyte_of_names_is_skipped_and_the_next_file_read() {
    let mut archive = Archive::new(1000);
    let folder = "d".repeat(255) + "/";
    let whole = ["sandbox/out/", &folder.repeat(2000)].concat();
    for depth in 1..=2000 {
        archive.push(&entry(b'L', b"././@LongLink", &whole.as_bytes()[..12 + 256 * depth]));
        archive.push(&header(b'5', &whole.as_bytes()[..100], 0));
    }
    archive.push(&with_end(&[entry(b'0', b"sandbox/out/good.txt", b"good")]));
    assert!(archive.is_done());
    let shown = format!("{}...", &whole[12..312]);
    assert_eq!(archive.finish(), harvest(&[("good.txt", "good")], &[(&shown, SkipReason::TooDeep)]));
}

#[test]
fn after_endless_names_the_rest_is_listed_as_not_read() {
    let mut archive = Archive::new(1000);
    archive.push(&entry(b'0', b"sandbox/out/kept", b"kept"));
    for _ in 0..9 {
        archive.push(&header(b'L', b"././@LongLink", 64 << 20));
        for _ in 0..64 {
            archive.push(&vec![b'd'; 1 << 20]);
        }
    }
    assert!(archive.is_done());
    assert_eq!(archive.finish(), harvest(&[("kept", "kept")], &[("out", SkipReason::NotRead)]));
}

#[test]
fn tars_messages_about_long_paths_are_listed_with_short_names() {
    let path = ["x".repeat(255).as_str(); 16].join("/");
    let deep = ["d"; 2000].join("/");
    let log = format!("tar: sandbox/out/{path}: File name too long\ntar: sandbox/out/{deep}: File name too long\n");
    let stream = with_end(&[entry(b'0', b"tmp/.sandtray.log", log.as_bytes())]);
    let (path, deep) = (format!("{}...", &path[..300]), ["d"; 17].join("/"));
    assert_eq!(read(&stream, 0).0, harvest(&[], &[(&path, SkipReason::TooDeep), (&deep, SkipReason::TooDeep)]));
}
