//! What `make deb` packs, as far as it can be told without building it: that the configuration names what is there, and that
//! it says what a Debian package must say.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn app() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../src-tauri")
}

fn bundle() -> Value {
    let text = fs::read_to_string(app().join("tauri.conf.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["bundle"].take()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

#[test]
fn every_file_of_the_package_is_in_the_sources_or_built_by_its_script() {
    let bundle = bundle();
    let script = fs::read_to_string(app().join("../tests/bench/deb.sh")).unwrap();
    let files = bundle["linux"]["deb"]["files"].as_object().unwrap();
    for (to, from) in files {
        let from = from.as_str().unwrap();
        match from.strip_prefix("../target/") {
            Some("release/sandtray") => assert!(script.contains("/release.sh\"")),
            Some(built) => {
                let file = built.strip_prefix("deb/").and_then(|file| file.strip_suffix(".gz")).unwrap();
                assert!(app().join("linux").join(file).exists(), "{from}");
                assert!(script.contains(&format!(" {file}")), "{from}");
            }
            None => assert!(app().join(from).exists(), "{to} comes from {from}"),
        }
    }
    for to in [
        "bin/sandtray",
        "share/doc/sandtray/copyright",
        "share/doc/sandtray/changelog.gz",
        "share/man/man1/sandtray.1.gz",
    ] {
        assert!(files.contains_key(&format!("/usr/{to}")), "{to}");
    }
}

#[test]
fn its_icons_are_as_large_as_their_names_say() {
    let bundle = bundle();
    let mut sizes = Vec::new();
    for icon in texts(&bundle["icon"]).filter(|icon| icon.ends_with(".png")) {
        let picture = fs::read(app().join(icon)).unwrap();
        // Behind the signature and the head of the first chunk.
        let side = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
        assert_eq!(side(16), side(20), "{icon}");
        assert!(icon.ends_with(&format!("-{}.png", side(16))), "{icon}");
        sizes.push(side(16));
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [16, 32, 48, 64, 128, 256, 512]);
}

#[test]
fn it_says_who_made_it_what_it_is_and_what_goes_with_it() {
    let bundle = bundle();
    let publisher = bundle["publisher"].as_str().unwrap();
    assert!(publisher.contains(" <") && publisher.contains('@') && publisher.ends_with('>'), "{publisher}");
    assert!(!bundle["shortDescription"].as_str().unwrap().ends_with('.'));
    // A line of a package's description may have so many characters.
    assert!(bundle["longDescription"].as_str().unwrap().lines().all(|line| line.len() < 79));
    let deb = &bundle["linux"]["deb"];
    assert_eq!((deb["section"].as_str(), deb["priority"].as_str()), (Some("devel"), Some("optional")));
    assert!(texts(&deb["recommends"]).any(|package| package.contains("docker.io")));
    let changelog = fs::read_to_string(app().join("linux/changelog")).unwrap();
    assert!(
        changelog.starts_with(&format!("sandtray ({}) ", env!("CARGO_PKG_VERSION"))),
        "a version without a word of it"
    );
    let maintainer = changelog.lines().find_map(|line| line.strip_prefix(" -- ")).unwrap();
    assert!(maintainer.starts_with(publisher), "{maintainer}");
}
