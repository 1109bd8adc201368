//! A desktop for one test or one measurement: a screen, a session bus with a host for trays and a service for
//! notifications, and a home. Two never stand beside each other in one process: on a small machine they would only make
//! each other slow.

pub mod driver;
pub mod keyboard;
pub mod notifications;
pub mod screen;
pub mod tray;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sandtray_core::instance::Instance;
use sandtray_core::paths::Paths;
use sandtray_core::settings::Settings;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;
use zbus::Connection;

use crate::rig::{Agent, PATIENCE, built, eventually};
use notifications::Notifications;
use tray::{Tray, Watcher};

/// Quit takes no longer than five seconds; a busy machine a little.
const QUIT_PATIENCE: Duration = Duration::from_secs(15);

/// The app's program, by the first fifteen letters of its name.
const APP: &str = "sandtray-app";
/// The window's program.
const WINDOW: &str = "sandtray-window";

/// Its argument where the system starts it.
pub const AT_LOGIN: &str = "--background";

static TURN: Mutex<()> = Mutex::const_new(());

pub struct Desktop {
    display: String,
    bus: String,
    pub connection: Connection,
    watcher: Watcher,
    pub notifications: Notifications,
    home: TempDir,
    pixels: TempDir,
    // Ended when the test is, however it ends; the app goes with its screen.
    screen: Child,
    _bus: Child,
    _turn: MutexGuard<'static, ()>,
}

impl Desktop {
    pub async fn start() -> Self {
        match Self::try_start().await {
            Ok(desktop) => desktop,
            Err(why) => panic!("THESE TESTS NEED A DESKTOP. {why}"),
        }
    }

    /// An error is a sentence for the person who ran this.
    pub async fn try_start() -> Result<Self, String> {
        let turn = TURN.lock().await;
        let pixels = tempfile::tempdir().expect("a folder for the screen");
        let mut screen = Command::new("Xvfb");
        screen
            .args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset", "-fbdir"])
            .arg(pixels.path());
        let (screen, number) = first_line(screen).await?;
        let mut bus = Command::new("dbus-daemon");
        bus.args(["--session", "--nofork", "--print-address=1"]);
        let (bus, address) = first_line(bus).await?;
        let connection = zbus::connection::Builder::address(address.as_str())
            .expect("the address of a bus")
            .build()
            .await
            .expect("a session bus");
        let watcher = Watcher::serve(&connection).await;
        let notifications = Notifications::serve(&connection).await;
        Ok(Self {
            display: format!(":{number}"),
            bus: address,
            connection,
            watcher,
            notifications,
            home: tempfile::tempdir().expect("a home for the test"),
            pixels,
            screen,
            _bus: bus,
            _turn: turn,
        })
    }

    /// As if it had been started before: the window stays shut.
    pub async fn used() -> Self {
        Self::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Self {
        let desktop = Self::start().await;
        desktop.settle_in(&settings);
        desktop
    }

    /// From now on the app was started before, with these settings.
    pub fn settle_in(&self, settings: &Settings) {
        let file = self.settings_file();
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder of the settings");
        settings.save(&file).expect("settings that are valid");
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The name of the screen, for a client of X11.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// What is on the screen now, as X servers dump it: an XWD file that changes with every pixel drawn.
    pub fn framebuffer(&self) -> PathBuf {
        self.pixels.path().join("Xvfb_screen0")
    }

    /// From now on its owner knows where Sandtray stays when the window closes.
    pub fn knows_of_closing(&self) {
        let file = Paths::under(self.home()).told_of_closing_file();
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the data folder");
        std::fs::write(file, "").expect("a file");
    }

    pub fn settings_file(&self) -> PathBuf {
        self.home().join("config/settings.json")
    }

    pub fn settings(&self) -> Settings {
        Settings::load(&self.settings_file()).expect("settings").settings
    }

    /// What every program of this desktop is started with.
    pub fn environment(&self, command: &mut Command) {
        for (name, folder) in
            [("XDG_CONFIG_HOME", "xdg/config"), ("XDG_DATA_HOME", "xdg/data"), ("XDG_CACHE_HOME", "xdg/cache")]
        {
            command.env(name, self.home().join(folder));
        }
        command
            .env("DISPLAY", &self.display)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus)
            .env("SANDTRAY_HOME", self.home())
            .env("NO_AT_BRIDGE", "1")
            .env("WEBKIT_DISABLE_DMABUF_RENDERER", "1")
            .env_remove("WAYLAND_DISPLAY")
            .kill_on_drop(true);
    }

    /// The app as at login: its window stays shut.
    pub async fn app(&self) -> App {
        self.app_with(&[AT_LOGIN]).await
    }

    /// As from a menu: its window opens, or that of the app which runs already.
    pub async fn by_hand(&self) -> App {
        self.app_with(&[]).await
    }

    pub async fn app_with(&self, arguments: &[&str]) -> App {
        let mut command = Command::new(built("sandtray-app"));
        self.environment(command.args(arguments));
        App { child: command.spawn().expect("the app starts"), _folder: None }
    }

    /// The app with another program in its window's place: a script, which also has a file of its own to write to, `$1`.
    pub async fn app_with_window(&self, script: &str) -> App {
        let folder =
            tempfile::tempdir_in(built("sandtray-app").parent().expect("a folder")).expect("a folder beside it");
        let app = folder.path().join("sandtray-app");
        std::fs::hard_link(built("sandtray-app"), &app).expect("another name for the app");
        let window = folder.path().join("sandtray-window");
        let file = self.home().join("window");
        let script = format!("#!/bin/sh\nset -- '{}'\n{script}\n", file.display());
        std::fs::write(&window, script).expect("a script");
        std::fs::set_permissions(&window, std::fs::Permissions::from_mode(0o700)).expect("a script that can be run");
        let mut command = Command::new(app);
        self.environment(command.arg(AT_LOGIN));
        let child = command.spawn().expect("the app starts");
        App { child, _folder: Some(folder) }
    }

    /// What [`Self::app_with_window`]'s script has written, by lines.
    pub fn window_wrote(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.home().join("window")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// With these arguments, and what it and WebKit complain of goes there.
    pub fn app_saying(&self, arguments: &[&str], complaints: impl Into<Stdio>) -> App {
        let mut command = Command::new(built("sandtray-app"));
        self.environment(command.args(arguments));
        App { child: command.stderr(complaints).spawn().expect("the app starts"), _folder: None }
    }

    /// As when the owner logs out.
    pub async fn lose_screen(&mut self) {
        self.screen.kill().await.expect("a screen that can be ended");
    }

    /// What shows trays here takes calls and answers none, or answers again those that come.
    pub fn hang_tray(&self, hangs: bool) {
        self.watcher.hang(hangs);
    }

    /// From now on this desktop has no tray.
    pub async fn lose_tray(&self) {
        self.watcher.end(&self.connection).await;
    }

    /// Of the app that came last.
    pub async fn tray(&self) -> Tray {
        self.watcher.next(&self.connection).await
    }

    pub async fn agent(&self) -> Agent {
        let socket = self.home().join("run/agent.sock");
        eventually("agents can connect", || async { socket.exists() }).await;
        Agent::connect(&socket).await
    }

    /// Containers of this home that the engine knows.
    pub async fn containers(&self) -> usize {
        let home = Instance::home_of(&Paths::under(self.home())).unwrap_or_default();
        let output = Command::new("docker")
            .args(["ps", "-a", "--filter", "label=sandtray.instance", "--format", "{{.Label \"sandtray.instance\"}}"])
            .output()
            .await
            .expect("docker ps");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with(&home)).count()
    }
}

pub struct App {
    pub child: Child,
    /// Where it lies, if that is a place of its own.
    _folder: Option<TempDir>,
}

impl App {
    /// The processes that it has started and those that these have: the window's, and a browser's for it.
    pub fn descendants(&self) -> Vec<Process> {
        Process::descendants(self.child.id().expect("it runs"))
    }

    /// The window's own process, where it is open.
    pub fn window(&self) -> Option<u32> {
        self.descendants().iter().find(|process| process.name == WINDOW).map(|process| process.pid)
    }

    /// The process of the window's page.
    pub fn has_webview(&self) -> bool {
        self.descendants().iter().any(|process| process.name.starts_with("WebKitWeb"))
    }

    pub async fn told_to_end(self) {
        let pid = self.child.id().expect("it runs").to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill can be run");
        assert!(told.success());
        self.ended().await;
    }

    pub async fn ended(mut self) {
        let status = timeout(QUIT_PATIENCE, self.child.wait()).await.expect("it ends in time").expect("a status");
        assert!(status.success(), "{status}");
    }
}

#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    /// Its first fifteen letters.
    pub name: String,
}

impl Process {
    pub fn descendants(ancestor: u32) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut parents = vec![ancestor];
        while let Some(parent) = parents.pop() {
            let children = Self::children(parent);
            parents.extend(children.iter().map(|child| child.pid));
            found.extend(children);
        }
        found
    }

    /// A figure of the system's on its memory, in mebibytes: `Pss` is all of it, with a fair share of what is shared with others.
    /// Nothing where it has ended.
    pub fn mebibytes(pid: u32, figure: &str) -> f64 {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let line = rollup.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':')).unwrap_or_default();
        line.split_whitespace().next().and_then(|kibibytes| kibibytes.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    }

    fn children(parent: u32) -> Vec<Self> {
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let pids: Vec<u32> = lists
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        let named = |pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| (pid, name));
        pids.into_iter().filter_map(named).map(|(pid, name)| Self { pid, name: name.trim_end().to_owned() }).collect()
    }
}

/// Starts it and reads the first line that it prints.
async fn first_line(mut command: Command) -> Result<(Child, String), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let name = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| {
        format!("{name} cannot be run ({error}): `make setup-app` installs what tests/bench/packages-app.txt names.")
    })?;
    let stdout = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.map_err(|_| format!("{name} does not come up."))?;
    // Kept open: a program whose stdout is closed may end.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    line.ok().flatten().map(|line| (child, line)).ok_or_else(|| format!("{name} ended before it was up."))
}
