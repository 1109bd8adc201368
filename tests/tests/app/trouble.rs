//! An engine in each of its troubles, as its owner meets it: the title in window and tray, what mends it, and that it does. What
//! the machine has of Docker's is taken away with a mount namespace of the app's own, so these tests need root.
//! `SANDTRAY_TEST_PICTURES` names a folder for a picture of each.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use sandtray_core::language::Language;
use sandtray_core::settings::Settings;
use sandtray_tests::desktop::Desktop;
use sandtray_tests::desktop::driver::Window;
use sandtray_tests::desktop::tray::Tray;
use sandtray_tests::dockerd::{ASKING, Dockerd};
use sandtray_tests::rig::{built, eventually};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// A start of the app in this place of the world.
struct Place<'a> {
    desktop: &'a Desktop,
    /// Commands of a shell, in a mount namespace of the app's own.
    prepare: String,
    /// What the app is started through, with the environment.
    through: &'a str,
}

impl<'a> Place<'a> {
    fn of(desktop: &'a Desktop) -> Self {
        Self { desktop, prepare: "true".into(), through: "env" }
    }

    /// Without the default socket.
    fn without_socket(desktop: &'a Desktop) -> Self {
        Self { prepare: "mount -t tmpfs none /run".into(), ..Self::of(desktop) }
    }

    async fn open(&self, picture: &str) -> (Window, Tray) {
        let script = self.desktop.home().join("start");
        let app = built("sandtray-app");
        let text = format!(
            "#!/bin/sh\nexec unshare --mount sh -c '{} && exec {} \"$@\"' sh {} \"$@\"\n",
            self.prepare,
            self.through,
            app.display()
        );
        std::fs::write(&script, text).expect("a script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("a script that can be run");
        let (window, tray) = tokio::join!(Window::started(self.desktop, &script, &[]), self.desktop.tray());
        tray.until("On, but").await;
        window.until("Retry").await;
        keep(picture, &window).await;
        (window, tray)
    }
}

async fn keep(name: &str, window: &Window) {
    if let Some(folder) = std::env::var_os("SANDTRAY_TEST_PICTURES") {
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), window.picture().await).expect("a picture");
    }
}

async fn on() -> Desktop {
    Desktop::with(Settings { enabled: true, ..Settings::default() }).await
}

async fn with_engine(url: &str) -> Desktop {
    Desktop::with(Settings { enabled: true, engine: Some(url.into()), ..Settings::default() }).await
}

/// The title is the same in header, card and tray.
async fn titled(window: &Window, tray: &Tray, title: &str) {
    tray.until(&format!("On, but {title}")).await;
    let shown = window.script("return [document.querySelector('#state-in-words').innerText.trim(), document.querySelector('.trouble h1').innerText]").await;
    assert_eq!(shown, serde_json::json!([format!("On, but {title}"), title]));
}

async fn quit(tray: Tray) {
    tray.press("Quit").await;
    eventually("it has gone", || async { !tray.lives().await }).await;
}

/// In the place of the desktop's opener: writes down what it is to open.
fn opener(desktop: &Desktop) -> PathBuf {
    let folder = desktop.home().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (program, opened) = (folder.join("xdg-open"), desktop.home().join("opened"));
    std::fs::write(&program, format!("#!/bin/sh\necho \"$@\" >>'{}'\n", opened.display())).expect("a script");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("a script that can be run");
    opened
}

#[tokio::test(flavor = "multi_thread")]
async fn absent_it_is_explained_with_a_page_that_opens() {
    let desktop = on().await;
    let opened = opener(&desktop);
    let through = format!("env PATH={}/bin:$PATH", desktop.home().display());
    let hidden = "mount -t tmpfs none /run && mount -t tmpfs none /usr/sbin".to_owned();
    let place = Place { prepare: hidden, through: &through, ..Place::of(&desktop) };
    let (window, tray) = place.open("absent").await;
    titled(&window, &tray, "Docker isn't installed").await;
    window.until("Docker is a program that runs other programs in containers").await;
    window.click(".link-row .btn").await;
    let read = || std::fs::read_to_string(&opened).unwrap_or_default();
    eventually("the page is opened", || async { !read().is_empty() }).await;
    assert_eq!(read(), "https://docs.docker.com/get-docker/\n");
    // The page names a page, and never an address.
    let refused = window.invoke("open_link", serde_json::json!({ "link": "https://example.com/" })).await;
    assert_eq!(refused.expect_err("no address")["code"], "invalid_params");
    assert_eq!(read(), "https://docs.docker.com/get-docker/\n");
    quit(tray).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn installed_and_not_running_it_says_how_to_start_it() {
    let desktop = on().await;
    let (window, tray) = Place::without_socket(&desktop).open("not-running").await;
    titled(&window, &tray, "Docker isn't running").await;
    window.until("sudo service docker start").await;
    quit(tray).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_may_not_be_used_comes_with_what_the_group_means() {
    let desktop = on().await;
    let socket = desktop.home().join("engine.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).expect("its owner's alone");
    chown(&socket, Some(1), Some(1)).expect("another owner");
    let prepare = format!(
        "mount -t tmpfs none /run && touch /run/docker.sock && mount --bind {} /run/docker.sock",
        socket.display()
    );
    let place =
        Place { prepare, through: "setpriv --bounding-set=-dac_override,-dac_read_search", ..Place::of(&desktop) };
    let (window, tray) = place.open("permission-denied").await;
    titled(&window, &tray, "Docker isn't open to you").await;
    window.until("sudo usermod -aG docker \"$USER\"").await;
    window.until("A member of this group can get all rights on this computer (root)").await;
    quit(tray).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_takes_calls_and_says_nothing_is_not_called_stopped() {
    let socket = tempfile::tempdir().expect("a folder");
    let path = socket.path().join("engine.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let taking = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    let desktop = on().await;
    let prepare = format!(
        "mount -t tmpfs none /run && touch /run/docker.sock && mount --bind {} /run/docker.sock",
        path.display()
    );
    let (window, tray) = Place { prepare, ..Place::of(&desktop) }.open("not-answering").await;
    titled(&window, &tray, "Docker isn't answering").await;
    window.until("sudo service docker restart").await;
    quit(tray).await;
    taking.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_ones_own_that_is_wrong_leads_to_its_setting() {
    let desktop = with_engine("unix:///nowhere/docker.sock").await;
    let (window, tray) = Place::of(&desktop).open("wrong-address").await;
    titled(&window, &tray, "Docker isn't at the address given").await;
    window.until("The address is from Sandtray's settings, under Engine:").await;
    window.until("unix:///nowhere/docker.sock").await;
    window.click(".named .btn:not(.square)").await;
    let focused = || async { window.script("return document.activeElement.value").await };
    eventually("its field has the focus", || async { focused().await == "unix:///nowhere/docker.sock" }).await;
    // Mended there, it works without a restart.
    window.script("document.activeElement.select()").await;
    window.keys("input:focus", "unix:///var/run/docker.sock\u{e007}").await;
    tray.until("Ready").await;
    quit(tray).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_the_sessions_that_cannot_be_used_says_why() {
    for (picture, address, title, sentence) in [
        (
            "over-ssh",
            "ssh://me@host",
            "Docker can't be reached over SSH",
            "ssh -N -L /tmp/docker.sock:/var/run/docker.sock me@host",
        ),
        (
            "elsewhere",
            "tcp://10.1.2.3:2375",
            "Docker is on another computer",
            "If you mean it, enter that address in Settings.",
        ),
    ] {
        let desktop = on().await;
        let through = format!("env DOCKER_HOST={address}");
        let (window, tray) = Place { through: &through, ..Place::of(&desktop) }.open(picture).await;
        titled(&window, &tray, title).await;
        window.until(sentence).await;
        window.until("The address is from the variable DOCKER_HOST").await;
        assert!(!window.text().await.contains('`'), "no raw backticks");
        quit(tray).await;
    }
}

/// Answers every call as an engine of ten years ago.
async fn answer_as_of_old(stream: UnixStream) -> std::io::Result<()> {
    let body = "{\"Version\":\"1.12.0\",\"ApiVersion\":\"1.24\",\"Os\":\"linux\",\"Arch\":\"amd64\"}";
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        if line.trim().is_empty() {
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).await?;
        }
        line.clear();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_too_old_says_so_in_its_title() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_as_of_old(stream));
        }
    });
    let desktop = on().await;
    let prepare = format!(
        "mount -t tmpfs none /run && touch /run/docker.sock && mount --bind {} /run/docker.sock",
        path.display()
    );
    let (window, tray) = Place { prepare, ..Place::of(&desktop) }.open("too-old").await;
    titled(&window, &tray, "Docker is too old").await;
    window.until("It speaks version 1.24 of Docker's API, and 1.40 is needed.").await;
    quit(tray).await;
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_without_a_wall_says_which_and_what_that_means() {
    let engine = Dockerd::new();
    let mut process = engine.start("shim").await;
    engine.fill(&["alpine:3.22", "python:3.12-slim"]).await;
    engine.make_asking().await;
    let mut settings = Settings { enabled: true, engine: Some(engine.url()), ..Settings::default() };
    // The only image that is here asks for more than a program may have.
    settings.images = Language::ALL.map(|language| (language, format!("127.0.0.1:1/none/{language}:1"))).into();
    settings.images.insert(Language::Python, ASKING.into());
    let desktop = Desktop::with(settings).await;
    let (window, tray) = Place::of(&desktop).open("wall-missing").await;
    titled(&window, &tray, "Docker doesn't hold every wall").await;
    window.until("Sandtray runs nothing where a program could get out").await;
    window.until(ASKING).await;
    quit(tray).await;
    engine.stop(&mut process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_again_while_it_is_off_offers_the_switch() {
    let desktop = on().await;
    let (window, tray) = Window::from_tray(&desktop).await;
    tray.until("Ready").await;
    let mut agent = desktop.agent().await;
    let run = agent.run(crate::told("shell", "echo once more")).await;
    tray.press("Run code in isolation").await;
    tray.until("Off").await;
    let again = serde_json::json!({ "runId": run["run_id"] });
    let refused = window.invoke("run_again", again).await.expect_err("it is off");
    assert_eq!(
        (&refused["code"], &refused["mend"]),
        (&serde_json::json!("capability_off"), &serde_json::json!("turn_on"))
    );
    window.click("[aria-label='Places'] button:nth-child(2)").await;
    // The list may be drawn anew between a look and a click.
    eventually("the run is open", || async {
        window.script("document.querySelector('[role=option]')?.click()").await;
        window.text().await.contains("Run again")
    })
    .await;
    window.script("[...document.querySelectorAll('.acts .btn')].find((button) => button.textContent.includes('Run again')).click()").await;
    window.until("Turn on the switch first.").await;
    keep("run-again-off", &window).await;
    window.click(".messages .act").await;
    tray.until("Ready").await;
    quit(tray).await;
}
