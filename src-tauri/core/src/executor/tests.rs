use super::*;
use crate::language::Language;
use crate::name::FileName;
use crate::run::{InputFile, Overflow, RunId};
use crate::settings::Settings;

fn spec(files: &[&str]) -> RunSpec {
    let file = |name: &&str| InputFile { name: FileName::parse(name).unwrap(), bytes: "x".into() };
    RunSpec {
        id: RunId::generate(),
        language: Language::Python,
        code: "".into(),
        args: Vec::new(),
        files: files.iter().map(file).collect(),
        stdin: "".into(),
        limits: Settings::default().limits(),
        overflow: Overflow::Kill,
        label: None,
    }
}

fn left(listed: &[&str], files: &[&str]) -> Vec<String> {
    let beside = listed.iter().map(|entry| {
        let (sign, name) = entry.split_at(1);
        Beside { name: name.to_owned(), written: sign == "!" }
    });
    left_behind(beside.collect(), &spec(files))
}

#[test]
fn files_that_the_program_wrote_are_listed_and_its_inputs_are_not() {
    let files = ["a.csv", "b.csv", "data/c.csv", "data/deep/d.csv"];
    let listed = [
        "!main.py",
        "=a.csv",
        "!b.csv",
        "!data",
        "!new.txt",
        "!__pycache__",
        "=data/c.csv",
        "!data/deep",
        "!data/made",
        "!data/__pycache__",
        "!data/deep/d.csv",
        "=data/deep/with the old time",
    ];
    let told = ["b.csv", "new.txt", "data/made", "data/deep/d.csv", "data/deep/with the old time"];
    assert_eq!(left(&listed, &files), told);
    assert_eq!(left(&["=main.py"], &[]), Vec::<String>::new());
}

#[test]
fn a_long_list_is_cut() {
    let names: Vec<String> = (0..600).map(|number| format!("!{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let told = left(&names, &[]);
    assert_eq!(
        (told.len(), told.first().map(String::as_str), told.last().map(String::as_str)),
        (100, Some("0"), Some("99"))
    );
}
