//! A program's own arguments arrive as they were sent, in each language.

use sandtray_tests::rig::Rig;
use serde_json::{Value, json};

use crate::{python, shell};

/// Each prints its arguments, each behind its length in bytes.
const PYTHON: &str = "import sys\nfor arg in sys.argv[1:]: print(f'{len(arg.encode())}:{arg}', end='')";
const JAVASCRIPT: &str =
    "for (const arg of process.argv.slice(2)) process.stdout.write(`${Buffer.byteLength(arg)}:${arg}`);";
const SHELL: &str = r#"for arg; do printf '%s:%s' "$(printf %s "$arg" | wc -c)" "$arg"; done"#;
const GO: &str = r#"package main
import ("fmt"; "os")
func main() { for _, arg := range os.Args[1:] { fmt.Printf("%d:%s", len(arg), arg) } }"#;
const RUST: &str = r#"fn main() { for arg in std::env::args().skip(1) { print!("{}:{arg}", arg.len()) } }"#;

#[tokio::test(flavor = "multi_thread")]
async fn arguments_arrive_as_they_were_sent() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let args = ["a b", "", "two\nlines\n", "\n", "-n", "--", "$HOME `id` 'x' \"y\" \\", "äöü 😀", "*", "last"];
    let expected: String = args.iter().map(|arg| format!("{}:{arg}", arg.len())).collect();
    for (language, code) in
        [("python", PYTHON), ("javascript", JAVASCRIPT), ("shell", SHELL), ("go", GO), ("rust", RUST)]
    {
        let files = json!({ "in.txt": "x" });
        for extra in [json!({}), json!({ "files": files, "stdin": "y" })] {
            let mut call = json!({ "language": language, "code": code, "args": args });
            call.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let result = agent.run(call).await;
            assert_eq!((&result["stdout"], &result["stderr"]), (&json!(expected), &json!("")), "{language}");
        }
    }
    // A program that is too long for lines, and as many and as long arguments as there may be.
    let long = format!("{PYTHON}\n# {}", "x".repeat(5000));
    let mut call = python(&long);
    call["args"] = vec!["y".repeat(128); 64].into();
    let result = agent.run(call).await;
    assert_eq!(result["stdout"], Value::String(format!("128:{}", "y".repeat(128)).repeat(64)));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_after_the_arguments_is_the_programs_input() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let mut call = shell("cat; printf '|%s' \"$@\" | cat");
    (call["args"], call["stdin"]) = (json!(["1\n2", "3"]), json!("4\n5\n"));
    assert_eq!(agent.run(call).await["stdout"], "4\n5\n|1\n2|3");
    // The next call without any gets none.
    assert_eq!(agent.run(shell("echo $#")).await["stdout"], "0\n");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_too_long_and_impossible_ones_are_refused() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (args, field, message) in [
        (json!(["a", "b\0"]), "args[1]", "`args[1]` holds a NUL, which no argument of a program can."),
        (json!(["x".repeat(8193)]), "args", "`args` holds 8193 bytes; at most 8192. Use `stdin` or `files` for more."),
        (json!(vec![""; 65]), "args", "`args` has more than 64 entries."),
    ] {
        let mut call = shell("echo never");
        call["args"] = args;
        let error = agent.call("code.run", call).await.unwrap_err();
        assert_eq!((&error["data"]["field"], &error["message"]), (&json!(field), &json!(message)));
    }
    rig.stop().await;
}
