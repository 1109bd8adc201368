//! A folder of Go files is built as `go build` builds it, with a `go.mod` and without.

use sandtray_core::language::Language;
use sandtray_tests::rig::Rig;
use serde_json::{Map, Value, json};

use crate::parts;

/// Breaks the build unless it is left out.
const ALIEN: &str = "package main\nfunc helper() string { return nonsense }\n";

fn with_helper(code: &str) -> String {
    format!("{code}\nfunc main() {{ println(helper()) }}\n")
}

fn folder(files: &[(&str, String)], module: bool) -> Value {
    let mut files: Map<String, Value> =
        files.iter().map(|(name, text)| ((*name).to_owned(), text.clone().into())).collect();
    if module {
        files.insert("go.mod".into(), "module example.com/thing\n\ngo 1.21\n".into());
    }
    files.into()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_of_go_files_is_what_go_build_makes_of_it() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let helper = ("helper.go", "package main\nfunc helper() string { return \"helped\" }\n".to_owned());
    let constrained = |line: &str| format!("{line}\n\n{ALIEN}");
    let main = with_helper("package main");
    for module in [true, false] {
        for (what, left_out) in [
            ("for another system", ("helper_windows.go", ALIEN.to_owned())),
            ("for another system and processor", ("helper_darwin_arm64.go", ALIEN.to_owned())),
            ("for another processor", ("helper_linux_riscv64.go", ALIEN.to_owned())),
            ("a test", ("main_test.go", ALIEN.to_owned())),
            ("a test of another package", ("main_test.go", "package main_test\nvar _ = nonsense\n".to_owned())),
            ("built by name alone", ("gen.go", constrained("//go:build ignore"))),
            ("built by name alone, as of old", ("gen.go", constrained("// +build ignore\n"))),
            ("of another tag", ("wip.go", constrained("//go:build wip && !linux"))),
            ("begins with _", ("_draft.go", ALIEN.to_owned())),
            ("begins with a dot", (".draft.go", ALIEN.to_owned())),
            ("needs C", ("c.go", format!("{ALIEN}\nimport \"C\"\n").replace("func", "// func"))),
            ("another package in a folder", ("other/other.go", "package other\nvar X = nonsense\n".to_owned())),
        ] {
            let call = json!({ "language": "go", "code": main, "files": folder(&[helper.clone(), left_out], module) });
            let result = agent.run(call).await;
            let expected = json!({ "status": "ok", "stderr": "helped\n", "left_behind": [] });
            assert_eq!(parts(&result, &["status", "stderr", "left_behind"]), expected, "{what}, go.mod: {module}");
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_files_of_a_go_program_are_built_into_it() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let embeds = "package main\nimport _ \"embed\"\n//go:embed data/words.txt\nvar words string\nfunc helper() string { return words }\n";
    let mine = format!(
        "package main\nfunc helper() string {{ return \"for {}\" }}\n",
        if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
    );
    // Allowed only by the language of the compiler's own version: ranging over an integer, a new variable for each
    // iteration.
    let newest = "package main\nfunc helper() string { s := \"\"; for range 3 { s += \"x\" }; return s }\n";
    for module in [true, false] {
        let mut cases = vec![
            (
                "several files",
                vec![
                    ("a.go", "package main\nfunc helper() string { return b }\n".into()),
                    ("b.go", "package main\nvar b = \"b\"\n".into()),
                ],
                "b",
            ),
            (
                "for this system",
                vec![("a_linux.go", "package main\nfunc helper() string { return \"linux\" }\n".into())],
                "linux",
            ),
            (
                "for this processor",
                vec![("a_linux_amd64.go", mine.replace("arm64", "amd64")), ("a_linux_arm64.go", mine.clone())],
                if cfg!(target_arch = "aarch64") { "for arm64" } else { "for amd64" },
            ),
            ("an embedded file", vec![("embed.go", embeds.into()), ("data/words.txt", "embedded".into())], "embedded"),
            (
                "for whatever is not Windows",
                vec![(
                    "a.go",
                    "//go:build !windows\n\npackage main\nfunc helper() string { return \"unix\" }\n".into(),
                )],
                "unix",
            ),
        ];
        if module {
            let sub = "package main\nimport \"example.com/thing/sub\"\nfunc helper() string { return sub.X }\n";
            cases.push((
                "a package of the module",
                vec![
                    ("a.go", sub.into()),
                    ("sub/x.go", "package sub\nconst X = \"sub\"\n".into()),
                    ("sub/x_windows.go", ALIEN.into()),
                ],
                "sub",
            ));
        } else {
            cases.push(("the newest language", vec![("a.go", newest.into())], "xxx"));
        }
        for (what, files, said) in cases {
            let call =
                json!({ "language": "go", "code": with_helper("package main"), "files": folder(&files, module) });
            let result = agent.run(call).await;
            let expected = json!({ "status": "ok", "stderr": format!("{said}\n"), "left_behind": [] });
            assert_eq!(parts(&result, &["status", "stderr", "left_behind"]), expected, "{what}, go.mod: {module}");
        }
    }
    rig.stop().await;
}

/// One image for all languages: the first of them needs no preparation, but Go does.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_serves_several_languages_is_prepared_for_go() {
    let rig = Rig::start_with(|settings| {
        settings.images.insert(Language::Shell, Language::Go.recipe().default_image.into());
    })
    .await;
    let mut agent = rig.agent().await;
    let call = json!({ "language": "shell", "code": "test -d /opt/sandtray/go-cache && echo prepared" });
    assert_eq!(agent.run(call).await["stdout"], "prepared\n");
    let call = json!({ "language": "go", "code": "package main\nimport \"os\"\nfunc main() { _, err := os.Stat(\"/tmp/go-cache\"); println(err != nil) }" });
    assert_eq!(agent.run(call).await["stderr"], "true\n", "nothing of the standard library was compiled for the call");
    rig.stop().await;
}

/// As `go run main.go` runs it.
#[tokio::test(flavor = "multi_thread")]
async fn a_go_program_alone_runs_whatever_its_build_constraints_say() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let code = "//go:build ignore\n\npackage main\n\nimport _ \"embed\"\n\n//go:embed words.txt\nvar words string\n\nfunc main() { print(words) }\n";
    let call = json!({ "language": "go", "code": code, "files": { "words.txt": "ran\n" } });
    assert_eq!(parts(&agent.run(call).await, &["status", "stderr"]), json!({ "status": "ok", "stderr": "ran\n" }));
    rig.stop().await;
}

/// The compiler indexes a package whose files are older than two seconds, in its cache, which is read-only.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_compiler_builds_a_package_of_the_programs_own() {
    let rig = Rig::start().await;
    let call = json!({
        "language": "go", "code": "package main\n\nimport \"m/lib\"\n\nfunc main() { println(lib.F()) }\n",
        "files": { "go.mod": "module m\n\ngo 1.21\n", "lib/l.go": "package lib\n\nfunc F() int { return 4 }\n" },
        "limits": { "cpus": 0.1 },
    });
    let result = rig.agent().await.run(call).await;
    assert_eq!(parts(&result, &["status", "stderr"]), json!({ "status": "ok", "stderr": "4\n" }), "{result}");
    rig.stop().await;
}
