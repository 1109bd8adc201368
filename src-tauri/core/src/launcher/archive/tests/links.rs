//! Second names of files.

use super::*;

#[test]
fn every_name_of_a_file_comes_back_with_its_content() {
    let stream = with_end(&[
        entry(b'0', b"sandbox/out/first", b"kept"),
        link(b'1', b"sandbox/out/d/second", b"sandbox/out/first"),
        entry(b'0', b"sandbox/out/empty", b""),
        link(b'1', b"sandbox/out/empty too", b"sandbox/out/empty"),
        link(b'1', b"sandbox/out/third", b"sandbox/out/first"),
        link(b'1', b"sandbox/out/fourth", b"sandbox/out/third"),
    ]);
    let expected = [
        ("first", "kept"),
        ("d/second", "kept"),
        ("empty", ""),
        ("empty too", ""),
        ("third", "kept"),
        ("fourth", "kept"),
    ];
    assert_eq!(read(&stream, 16), (harvest(&expected, &[]), true));
}

#[test]
fn a_second_name_shares_the_memory_of_the_first_and_counts_like_it() {
    let stream = with_end(&[
        entry(b'0', b"sandbox/out/a", &[b'a'; 600]),
        link(b'1', b"sandbox/out/b", b"sandbox/out/a"),
        link(b'1', b"sandbox/out/c", b"sandbox/out/a"),
        entry(b'0', b"sandbox/out/d", &[b'd'; 100]),
    ]);
    let (found, _) = read(&stream, 1300);
    let sizes: Vec<_> = found.files.iter().map(|file| (file.name.as_str(), file.bytes.len())).collect();
    assert_eq!(sizes, [("a", 600), ("b", 600), ("d", 100)]);
    assert_eq!(found.files[0].bytes.as_ptr(), found.files[1].bytes.as_ptr());
    assert_eq!(found.skipped, harvest(&[], &[("c", SkipReason::TooLarge)]).skipped);
}

#[test]
fn a_second_name_of_a_skipped_file_is_skipped_for_the_same_reason() {
    use SkipReason::*;
    let many: Vec<Vec<u8>> =
        (0..MAX_FILES).map(|at| entry(b'0', format!("sandbox/out/f{at}").as_bytes(), b"")).collect();
    let stream = with_end(&[
        entry(b'0', b"sandbox/out/large", &[b'x'; 2000]),
        link(b'1', b"sandbox/out/large too", b"sandbox/out/large"),
        link(b'2', b"sandbox/out/link", b"x"),
        link(b'1', b"sandbox/out/link too", b"sandbox/out/link"),
        entry(b'6', b"sandbox/out/fifo", b""),
        link(b'1', b"sandbox/out/fifo too", b"sandbox/out/fifo"),
        link(b'1', b"sandbox/out/not there", b"sandbox/out/nowhere"),
        link(b'1', b"sandbox/out/itself", b"sandbox/out/itself"),
        link(b'1', b"sandbox/out/outside", b"etc/passwd"),
        link(b'1', b"sandbox/out/the log", b"tmp/.sandtray.log"),
        many.concat(),
        link(b'1', b"sandbox/out/f0 too", b"sandbox/out/f0"),
    ]);
    let skipped = [
        ("large", TooLarge),
        ("large too", TooLarge),
        ("link", Symlink),
        ("link too", Symlink),
        ("fifo", SpecialFile),
        ("fifo too", SpecialFile),
        ("not there", HardLink),
        ("itself", HardLink),
        ("outside", HardLink),
        ("the log", HardLink),
        ("f0 too", TooMany),
    ];
    let found = read(&stream, 1000).0;
    assert_eq!((found.files.len(), found.skipped), (MAX_FILES, harvest(&[], &skipped).skipped));
}

#[test]
fn a_content_with_a_refused_name_is_kept_for_a_valid_second_name() {
    let deep = format!("sandbox/out/{}", ["d"; 20].join("/"));
    let top = ["d"; 17].join("/");
    let stream = with_end(&[
        long(b'0', deep.as_bytes(), b"deep"),
        link(b'1', b"sandbox/out/good", deep.as_bytes()),
        entry(b'0', b"sandbox/out/bad\\name", b"bad"),
        link(b'1', b"sandbox/out/fine", b"sandbox/out/bad\\name"),
        link(b'1', b"sandbox/out/worse\\", b"sandbox/out/bad\\name"),
        entry(b'0', b"sandbox/out/\xff", &[b'x'; 1000]),
        link(b'1', b"sandbox/out/no room", b"sandbox/out/\xff"),
    ]);
    use SkipReason::*;
    let skipped = [
        (top.as_str(), TooDeep),
        ("bad\\name", BadName),
        ("worse\\", BadName),
        ("\u{fffd}", BadName),
        ("no room", TooLarge),
    ];
    assert_eq!(read(&stream, 1000).0, harvest(&[("good", "deep"), ("fine", "bad")], &skipped));
}

#[test]
fn names_and_targets_of_every_length_are_complete() {
    for length in [87, 88, 89, 143, 144, 242, 243, 244, 255] {
        let (first, second) = ("a".repeat(length), "b".repeat(length));
        let [from, to] = [&first, &second].map(|name| format!("sandbox/out/{name}"));
        let ahead = |kind, name: &str| entry(kind, b"././@LongLink", &[name.as_bytes(), b"\0"].concat());
        let expected = (harvest(&[(&first, "text"), (&second, "text")], &[]), true);
        // In either order, and whether or not the long form is needed.
        for ahead in [[ahead(b'L', &to), ahead(b'K', &from)], [ahead(b'K', &from), ahead(b'L', &to)]] {
            let cut = link(b'1', to.as_bytes(), from.as_bytes());
            assert_eq!(read(&with_end(&[long(b'0', from.as_bytes(), b"text"), ahead.concat(), cut]), 1000), expected);
        }
        if to.len() <= 100 {
            let stream = with_end(&[entry(b'0', from.as_bytes(), b"text"), link(b'1', to.as_bytes(), from.as_bytes())]);
            assert_eq!(read(&stream, 1000), expected, "{length}");
        }
    }
}
