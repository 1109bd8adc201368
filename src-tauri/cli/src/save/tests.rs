use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use serde_json::json;

use super::Existing::{Keep, Replace};
use super::*;

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it was saved")
}

/// The number of saved files, and the messages about the others.
fn saved(files: &Value, folder: &Path, existing: Existing) -> (usize, Vec<String>) {
    let saved = save(files, folder, existing).expect("a folder that can be written");
    assert_eq!(saved.failure(folder).is_some(), !saved.refused.is_empty());
    (saved.number, saved.refused.iter().map(Refused::to_string).collect())
}

#[test]
fn files_arrive_exactly() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("new/out");
    let files = json!({ "a.txt": "ä", "d/e/f.bin": { "base64": "AP8=" }, "a..b": "", "...": "x" });
    assert_eq!(
        saved(&files, &out, Keep),
        (3, vec!["... was not saved: its name is hidden, or in a hidden folder.".into()])
    );
    assert_eq!(read(&out.join("a.txt")), "ä".as_bytes());
    assert_eq!(read(&out.join("d/e/f.bin")), [0, 255]);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3, "no draft is left");
    assert_eq!(saved(&json!({}), &root.path().join("none"), Keep), (0, vec![]));
    assert!(!root.path().join("none").exists());
}

#[test]
fn existing_files_stay_unless_they_may_be_replaced() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path();
    fs::write(out.join("a"), "mine").unwrap();
    fs::create_dir(out.join("b")).unwrap();
    symlink("nowhere", out.join("c")).unwrap();
    symlink("a", out.join("d")).unwrap();
    let files = json!({ "a": "new", "b": "new", "c": "new", "d": "new", "e": "new" });
    let there = |name| format!("{name} was not saved: there is a file of that name.");
    assert_eq!(saved(&files, out, Keep), (1, ["a", "b", "c", "d"].map(there).into()));
    assert_eq!((read(&out.join("a")), read(&out.join("e"))), (b"mine".to_vec(), b"new".to_vec()));
    assert_eq!(fs::read_link(out.join("c")).unwrap(), Path::new("nowhere"));
    assert_eq!(fs::read_dir(out).unwrap().count(), 5, "no draft is left");
    let failure = save(&files, out, Keep).unwrap().failure(out).unwrap();
    assert_eq!(failure.message, format!("5 of 5 files could not be saved under {}.", out.display()));
    assert!(failure.hint.unwrap().contains("--force"));
}

#[test]
fn a_replaced_file_is_new_and_the_old_one_is_not_written_to() {
    let root = tempfile::tempdir().unwrap();
    let (out, outside) = (root.path().join("out"), root.path().join("precious"));
    fs::create_dir_all(out.join("folder")).unwrap();
    fs::write(&outside, "precious").unwrap();
    symlink(&outside, out.join("link")).unwrap();
    fs::hard_link(&outside, out.join("hard")).unwrap();
    fs::write(out.join("a"), "old").unwrap();
    let before = fs::metadata(out.join("a")).unwrap().ino();
    let open = fs::File::open(out.join("a")).unwrap();
    let files = json!({ "a": "new", "link": "new", "hard": "new", "folder": "new" });
    let (number, refused) = saved(&files, &out, Replace);
    assert_eq!((number, refused.len()), (3, 1), "{refused:?}");
    assert!(refused[0].starts_with("folder was not saved: "), "{refused:?}");
    assert_eq!(std::io::read_to_string(open).unwrap(), "old", "an open file stays the old one to its end");
    assert_ne!(fs::metadata(out.join("a")).unwrap().ino(), before);
    assert_eq!(read(&outside), b"precious");
    for name in ["a", "link", "hard"] {
        assert!(fs::symlink_metadata(out.join(name)).unwrap().is_file());
        assert_eq!(read(&out.join(name)), b"new");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 4, "no draft is left");
}

#[test]
fn hidden_names_are_refused_at_any_depth_and_with_force() {
    let hidden = [
        ".envrc",
        ".git/config",
        ".vscode/tasks.json",
        "sub/.git/hooks/pre-commit",
        "sub/.envrc",
        "...",
        "..a",
        "\u{200c}.git/config",
        "\u{202e}\u{feff}.bashrc",
    ];
    for existing in [Keep, Replace] {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".git")).unwrap();
        fs::write(root.path().join(".git/config"), "mine").unwrap();
        let mut files: serde_json::Map<String, Value> =
            hidden.map(|name| (name.to_owned(), json!("x"))).into_iter().collect();
        files.insert("fine.txt".into(), json!("y"));
        let (number, refused) = saved(&Value::Object(files), root.path(), existing);
        let mut said = hidden.map(|name| format!("{name} was not saved: its name is hidden, or in a hidden folder."));
        let mut refused = refused;
        said.sort();
        refused.sort();
        assert_eq!((number, refused), (1, said.to_vec()));
        assert_eq!(read(&root.path().join(".git/config")), b"mine");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2, "nothing hidden was made");
    }
}

#[test]
fn nothing_leaves_the_folder() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    for name in ["../x", "/tmp/x", "a/../../x", "", "a\\..\\x"] {
        let (number, refused) = saved(&json!({ name: "x" }), &out, Replace);
        assert_eq!(number, 0);
        assert!(refused[0].contains("its name"), "{refused:?}");
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn links_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let (out, outside) = (root.path().join("out"), root.path().join("outside"));
    fs::create_dir(&out).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, out.join("folder")).unwrap();
    for existing in [Keep, Replace] {
        let (number, refused) = saved(&json!({ "folder/x": "x" }), &out, existing);
        assert_eq!((number, refused.len()), (0, 1));
        assert!(refused[0].contains("folder is there and is not a folder"), "{refused:?}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    // The folder itself may be a link.
    symlink(&outside, root.path().join("chosen")).unwrap();
    assert_eq!(saved(&json!({ "y": "y" }), &root.path().join("chosen"), Keep), (1, vec![]));
    assert_eq!(read(&outside.join("y")), b"y");
}

#[test]
fn a_returned_file_that_looks_like_a_draft_stops_nothing() {
    let root = tempfile::tempdir().unwrap();
    let name = format!(".sandtray-{}.part", std::process::id());
    let (number, refused) = saved(&json!({ name: "x", "a": "a", "b": "b" }), root.path(), Keep);
    assert_eq!((number, refused.len()), (2, 1));
    assert_ne!(draft(), draft());
}
