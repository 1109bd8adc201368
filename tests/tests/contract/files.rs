//! Files in and out: every odd name returned or told of, every flood bounded.

use sandtray_tests::rig::Rig;
use serde_json::{Value, json};

use crate::{base64, parts, python, shell};

#[tokio::test(flavor = "multi_thread")]
async fn files_go_in_and_come_out_whatever_they_are_called() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let files = json!({
        "empty": "", "a..b.txt": "dots", "-rf": "dash", "new\nline": "newline", "d/e/f.bin": base64(&every_byte),
        ("n".repeat(255)): "long", "ünï.txt": "€", " ": "a blank", "*": "a star",
    });
    let code = "
import shutil, os
for name in set(os.listdir('.')) - {'out', 'main.py'}:
    (shutil.copytree if os.path.isdir(name) else shutil.copy)(name, 'out/' + name)";
    let result = agent.run(json!({ "language": "python", "code": code, "files": files })).await;
    let expected = json!({ "status": "ok", "files": files, "skipped_files": [], "left_behind": [] });
    assert_eq!(parts(&result, &["status", "files", "skipped_files", "left_behind"]), expected);

    let again = agent.run(json!({ "language": "python", "code": code, "files": result["files"] })).await;
    assert_eq!(again["files"], files, "the output of one run is the input of the next");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_plain_file_is_left_out_and_named() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let code = r#"
import os, socket
os.symlink('/etc/passwd', 'out/link')
os.mkfifo('out/fifo')
socket.socket(socket.AF_UNIX).bind('out/sock')
open('out/first', 'w').write('kept'); os.link('out/first', 'out/second')
open(b'out/bad\xff', 'w').write('x')
open('out/back\\slash', 'w').write('x')
deep = 'out/' + '/'.join('d' * 16)
os.makedirs(deep); open(deep + '/f', 'w').write('x')
open('out/secret', 'w').write('x'); os.chmod('out/secret', 0)
open('out/large', 'wb').write(bytes(6_000_000))
open('beside', 'w').write('x'); os.mkdir('folder'); open('.hidden', 'w')
"#;
    let result = agent.run(python(code)).await;
    assert_eq!((&result["status"], &result["stderr"]), (&json!("ok"), &json!("")));
    assert_eq!(result["files"], json!({ "first": "kept", "second": "kept" }));

    let deep = format!("{}/f", ["d"; 16].join("/"));
    let expected = [
        ("back\\slash", "bad_name"),
        ("bad\u{fffd}", "bad_name"),
        (&*deep, "too_deep"),
        ("fifo", "special_file"),
        ("large", "too_large"),
        ("link", "symlink"),
        ("secret", "unreadable"),
        ("sock", "special_file"),
    ];
    assert_eq!(skipped(&result), named(&expected));
    assert_eq!(result["left_behind"], json!(["beside", "folder", ".hidden"]));
    rig.stop().await;
}

/// The files left out, sorted by name: tar lists a folder in the order of its file system.
fn skipped(result: &Value) -> Vec<(String, String)> {
    let word = |entry: &Value, what: &str| entry[what].as_str().unwrap_or_default().to_owned();
    let entries = result["skipped_files"].as_array().into_iter().flatten();
    let mut all: Vec<_> = entries.map(|entry| (word(entry, "name"), word(entry, "reason"))).collect();
    all.sort();
    all
}

fn named(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<_> = expected.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect();
    all.sort();
    all
}

/// The same in both images: one has GNU tar, the other busybox tar.
#[tokio::test(flavor = "multi_thread")]
async fn every_name_of_a_file_comes_back_and_links_to_skipped_files_are_listed() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let prepare = r#"
set -e
cd out
many() { printf "%0$2d" 0 | tr 0 "$1"; }
printf text >one; mkdir -p a/b; ln one a/b/two; ln a/b/two three
: >empty; ln empty empty2
for n in 87 88 89 242 243 244 255; do
    x=$(many x $n) y=$(many y $n)
    printf $n >$x; ln $x $y; ln $x h$n
done
printf beside >../beside; ln ../beside inside; rm ../beside
deep=$(printf 'd/%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)
mkdir -p $deep
printf deep >${deep}f; ln ${deep}f found
printf found >also; ln also ${deep}g
printf bad >'bad\'; ln 'bad\' fine
dd if=/dev/zero of=large bs=1000000 count=6 2>/dev/null; ln large large2
ln -s loop2 loop1; ln -s loop1 loop2; ln -s . here; ln -s /etc/passwd passwd
mkfifo fifo; ln fifo fifo2
"#;
    let mut files = json!({
        "one": "text", "a/b/two": "text", "three": "text", "empty": "", "empty2": "", "inside": "beside",
        "found": "deep", "also": "found", "fine": "bad",
    });
    for length in [87, 88, 89, 242, 243, 244, 255] {
        for name in ["x".repeat(length), "y".repeat(length), format!("h{length}")] {
            files[name] = length.to_string().into();
        }
    }
    let top = ["d"; 17].join("/");
    let left_out = [
        (&*top, "too_deep"),
        ("bad\\", "bad_name"),
        ("large", "too_large"),
        ("large2", "too_large"),
        ("loop1", "symlink"),
        ("loop2", "symlink"),
        ("here", "symlink"),
        ("passwd", "symlink"),
        ("fifo", "special_file"),
        ("fifo2", "special_file"),
    ];
    let by_python = format!("import subprocess\nsubprocess.run(['sh', '-c', {}], check=True)", json!(prepare));
    for request in [shell(prepare), python(&by_python)] {
        let result = agent.run(request).await;
        let expected = json!({ "status": "ok", "stderr": "", "files": files });
        assert_eq!(parts(&result, &["status", "stderr", "files"]), expected, "{}", result["image"]);
        assert_eq!(skipped(&result), named(&left_out), "{}", result["image"]);
    }
    rig.stop().await;
}

/// Before and after a file in the order of tar, with names that together are longer than an archive may be.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_beside_thousands_of_nested_folders_comes_back() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let around = json!({ "a.txt": "a", "good.txt": "good", "z/z.txt": "z" });
    for (length, folders) in [(1, 2000), (22, 2000), (70, 2000), (255, 2000)] {
        let folder = "d".repeat(length);
        let by_python = format!(
            "
import os
open('out/good.txt', 'w').write('good')
os.chdir('out')
for _ in range({folders}): os.mkdir('{folder}'); os.chdir('{folder}')
open('f', 'w').write('x')
os.chdir('/sandbox/out')
os.mkdir('z'); open('z/z.txt', 'w').write('z'); open('a.txt', 'w').write('a')"
        );
        // Busybox gives up on a path that is longer than the kernel takes, and says so.
        let by_shell = format!(
            "set -e
printf good >out/good.txt; cd out
some={folder}/{folder}/{folder}/{folder}/{folder}/{folder}/{folder}/{folder}/{folder}/{folder}
for i in $(seq {}); do mkdir -p $some; cd -P $some; done
echo x >f
cd /sandbox/out; mkdir z; printf z >z/z.txt; printf a >a.txt",
            folders / 10
        );
        for request in [python(&by_python), shell(&by_shell)] {
            let result = agent.run(request).await;
            let expected = json!({ "status": "ok", "stderr": "", "files": around });
            let seen = parts(&result, &["status", "stderr", "files"]);
            assert_eq!(seen, expected, "{length}, {}: {}", result["image"], result["skipped_files"]);
            let path = vec![folder.as_str(); 17].join("/");
            let shown = if path.len() > 300 { format!("{}...", &path[..300]) } else { path };
            assert_eq!(skipped(&result), named(&[(&shown, "too_deep")]), "{length}, {}", result["image"]);
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn out_itself_may_be_replaced_by_anything() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    for (code, skipped) in [
        ("rmdir out; ln -s /etc out", json!([{ "name": "out", "reason": "symlink" }])),
        ("rmdir out; mkfifo out", json!([{ "name": "out", "reason": "special_file" }])),
        ("rmdir out; echo x > out", json!([{ "name": "out", "reason": "special_file" }])),
        ("rmdir out", json!([])),
        ("chmod 0 out", json!([{ "name": "out", "reason": "unreadable" }])),
    ] {
        let result = agent.run(shell(code)).await;
        let expected = json!({ "status": "ok", "files": {}, "skipped_files": skipped });
        assert_eq!(parts(&result, &["status", "files", "skipped_files"]), expected, "{code}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terabyte_cannot_be_claimed_and_many_holes_are_not_read_for_ever() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let one = "
import os
try:
    with open('out/huge', 'wb') as f: os.ftruncate(f.fileno(), 1 << 40)
except OSError as e: print(e.strerror)";
    let result = agent.run(python(one)).await;
    assert_eq!(parts(&result, &["status", "stdout"]), json!({ "status": "ok", "stdout": "File too large\n" }));

    let ten = "
import os
for n in range(10):
    with open(f'out/{n}', 'wb') as f: os.ftruncate(f.fileno(), 60 << 20)";
    let result = agent.run(python(ten)).await;
    let reasons: Vec<&Value> = result["skipped_files"].as_array().unwrap().iter().map(|skip| &skip["reason"]).collect();
    // Two of 60 MiB are passed over; the third would take the archive past 128 MiB.
    assert_eq!(reasons, ["too_large", "too_large", "not_read"], "{result}");
    assert_eq!((&result["status"], &result["files"]), (&json!("ok"), &json!({})));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_names_are_bounded_and_counted() {
    let rig = Rig::start().await;
    let mut agent = rig.agent().await;
    let flood = "
made = 0
try:
    for made in range(100_000): open(f'out/{made:06}', 'w').close()
except OSError as e: print(made, e.strerror)";
    let result = agent.run(python(flood)).await;
    let (made, error) = result["stdout"].as_str().unwrap().trim().split_once(' ').unwrap();
    let made: usize = made.parse().unwrap();
    assert_eq!(error, "No space left on device", "the inodes run out before the bytes");
    assert!(made < 16_384, "{made}");
    assert_eq!(result["files"].as_object().unwrap().len(), 256);
    let skipped = result["skipped_files"].as_array().unwrap();
    assert_eq!(skipped.len(), 101);
    assert_eq!(skipped[100]["name"], format!("({} more)", made - 256 - 100));

    let nested = "
import os
os.chdir('out')
for _ in range(2000): os.mkdir('d'); os.chdir('d')
open('f', 'w').write('x')
print('made')";
    let result = agent.run(python(nested)).await;
    let expected = json!({ "status": "ok", "stdout": "made\n", "files": {} });
    assert_eq!(parts(&result, &["status", "stdout", "files"]), expected);
    assert_eq!(result["skipped_files"][0]["reason"], "too_deep", "{result}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_greatest_reply_that_a_program_can_cause_arrives() {
    // As much as the settings let both be at once.
    let rig = Rig::start_with(|settings| {
        settings.limits.files_mb = 10;
        settings.limits.output_kb = 116;
    })
    .await;
    let code = r"
import os
for at in range(256):
    with open(f'out/{at:03}' + '\x01' * 252, 'w') as f: f.write('\n' * 40960)
for at in range(100): open(f'{at:03}' + '\x02' * 252, 'w')
for at in range(100): os.symlink('x', f'out/link{at:03}' + '\x03' * 240)
for stream in (1, 2): os.write(stream, b'\xff' + b'\x04' * (116 * 1024 - 1))";
    let result = rig.agent().await.run(python(code)).await;
    assert_eq!(result["status"], "ok", "{}", result["status"]);
    let files = result["files"].as_object().unwrap();
    assert_eq!((files.len(), result["left_behind"].as_array().unwrap().len()), (256, 100));
    assert_eq!(result["skipped_files"].as_array().unwrap().len(), 100);
    assert!(files.values().all(|file| file["base64"].as_str().is_some_and(|text| text.len() == 54_616)));
    assert_eq!(result["output_bytes"], json!({ "stdout": 118_784, "stderr": 118_784 }));
    let bytes = result.to_string().len();
    assert!(((15 << 20)..(16 << 20)).contains(&bytes), "{bytes}");
    rig.stop().await;
}
