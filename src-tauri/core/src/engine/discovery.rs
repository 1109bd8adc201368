//! Lists the places where an engine may listen on this computer, most deliberate choice first. It looks at names and
//! files, and asks no engine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{Endpoint, Unfit};

/// Bound on Docker's own files, which are a few hundred bytes long.
const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// The places where the user names an engine's address.
pub(super) const BY_SETTINGS: &str = "Sandtray's settings";
pub(super) const BY_VARIABLE: &str = "DOCKER_HOST";
pub(super) const BY_CONTEXT: &str = "the Docker context ";
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// A user who sets a variable for `docker` does not expect that agents' programs and data go to that computer.
const NOT_CHOSEN: &str = "it is another computer's, where programs, inputs and results would go unencrypted; if you mean it, name \
    it as `engine` in Sandtray's settings, otherwise forward its socket with `ssh -L`";

const NO_TLS: &str =
    "Sandtray doesn't speak TLS to an engine; run Sandtray on that computer, or forward its socket with `ssh -L`";
const NO_SSH: &str = "Sandtray doesn't connect over SSH by itself; forward the socket with \
    `ssh -L /tmp/docker.sock:/var/run/docker.sock HOST` and name `unix:///tmp/docker.sock` in the settings";

/// The environment variables that are read; no others are kept.
const VARIABLES: &[&str] = &[
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_TLS",
    "DOCKER_TLS_VERIFY",
    "COLIMA_HOME",
    "XDG_RUNTIME_DIR",
    "PATH",
];

/// The inputs of discovery.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The engine that the owner chose in the settings.
    pub chosen: Option<String>,
    pub environment: BTreeMap<String, String>,
    pub home: Option<PathBuf>,
    /// The user's id, for `/run/user/UID` if the environment names no runtime folder.
    pub uid: Option<u32>,
}

/// The result of a look at a path. The caller passes the function that looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// `real` is the path with symbolic links resolved, so that one socket under two names is tried once.
    There {
        real: PathBuf,
    },
    Missing,
    /// A folder above the path is not accessible.
    Hidden,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidate {
    Try(Endpoint),
    Unusable { endpoint: Endpoint, unfit: Unfit, reason: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidates {
    /// In the order of attempts.
    pub found: Vec<Candidate>,
    /// Every place that was considered, for display.
    pub looked_at: Vec<String>,
}

/// An engine named in the settings or by `DOCKER_HOST` is the only candidate, because another one would be a surprise.
pub fn candidates(places: &Places, probe: &dyn Fn(&Path) -> Presence) -> Candidates {
    let mut search = Search { probe, real: Vec::new(), out: Candidates::default() };
    if let Some(url) = places.chosen.as_deref().map(str::trim).filter(|url| !url.is_empty()) {
        search.named(places, &Named { url, found: BY_SETTINGS, tls: false, by_owner: true });
        return search.out;
    }
    if let Some(url) = places.variable(BY_VARIABLE) {
        search.named(places, &Named { url, found: BY_VARIABLE, tls: places.wants_tls(), by_owner: false });
        return search.out;
    }
    if let Some(context) = context(places) {
        let found = format!("{BY_CONTEXT}{}", context.name);
        search.named(places, &Named { url: &context.url, found: &found, tls: context.tls, by_owner: false });
    }
    for (path, found) in usual_places(places) {
        search.look(&path, &found);
    }
    if search.out.found.is_empty() {
        for (path, found) in installed_but_silent(places, probe) {
            search.add(Candidate::Try(endpoint(&path, &found)));
        }
    }
    search.out
}

/// Looks at a path on the real disk.
pub fn on_disk(path: &Path) -> Presence {
    #[cfg(windows)]
    if let Some(name) = path.to_str().and_then(|path| path.strip_prefix("//./pipe/")) {
        return pipe_presence(path, name);
    }
    match std::fs::canonicalize(path) {
        Ok(real) => Presence::There { real },
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Presence::Hidden,
        Err(_) => Presence::Missing,
    }
}

/// Lists the names of pipes. Opening a pipe to see whether it exists would use up one of its instances.
#[cfg(windows)]
fn pipe_presence(path: &Path, name: &str) -> Presence {
    let there = std::fs::read_dir(r"\\.\pipe\").is_ok_and(|pipes| pipes.flatten().any(|pipe| pipe.file_name() == name));
    if there { Presence::There { real: path.to_owned() } } else { Presence::Missing }
}

/// An address that the user named.
struct Named<'a> {
    url: &'a str,
    found: &'a str,
    tls: bool,
    /// Whether it is from Sandtray's settings, rather than from a setting of `docker`.
    by_owner: bool,
}

struct Search<'a> {
    probe: &'a dyn Fn(&Path) -> Presence,
    real: Vec<PathBuf>,
    out: Candidates,
}

impl Search<'_> {
    /// Adds a candidate even if its socket is missing: the engine is then not running.
    fn named(&mut self, places: &Places, named: &Named<'_>) {
        let (url, fault) = read_url(places, named.url, named.tls);
        if let Some(Presence::There { real }) = socket_path(&url).map(|path| (self.probe)(&path)) {
            self.real.push(real);
        }
        self.out.looked_at.push(url.clone());
        let endpoint = Endpoint { url, found: named.found.to_owned() };
        let unasked = || (endpoint.is_remote() && !named.by_owner).then(|| (Unfit::Elsewhere, NOT_CHOSEN.to_owned()));
        self.add(match fault.or_else(unasked) {
            None => Candidate::Try(endpoint),
            Some((unfit, reason)) => Candidate::Unusable { endpoint, unfit, reason },
        });
    }

    /// Adds a candidate only if its socket exists. A hidden path was not put there for this user, so it is skipped.
    fn look(&mut self, path: &Path, found: &str) {
        let endpoint = endpoint(path, found);
        if self.out.looked_at.contains(&endpoint.url) {
            return;
        }
        self.out.looked_at.push(endpoint.url.clone());
        let Presence::There { real } = (self.probe)(path) else { return };
        if !self.real.contains(&real) {
            self.real.push(real);
            self.add(Candidate::Try(endpoint));
        }
    }

    fn add(&mut self, candidate: Candidate) {
        self.out.found.push(candidate);
    }
}

impl Places {
    /// Reads this process's environment. Only for the outermost layer.
    pub fn of_this_process(chosen: Option<String>) -> Self {
        let read = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        #[cfg(unix)]
        let uid = Some(rustix::process::getuid().as_raw());
        #[cfg(not(unix))]
        let uid = None;
        Self {
            chosen,
            environment: VARIABLES.iter().filter_map(read).collect(),
            home: directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_owned()),
            uid,
        }
    }

    /// An empty variable counts as unset, as it does for `docker`.
    fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn wants_tls(&self) -> bool {
        self.variable("DOCKER_TLS_VERIFY").is_some() || self.variable("DOCKER_TLS").is_some()
    }

    fn docker_config(&self) -> Option<PathBuf> {
        self.variable("DOCKER_CONFIG").map(PathBuf::from).or_else(|| Some(self.home.as_ref()?.join(".docker")))
    }

    fn runtime_dir(&self) -> Option<PathBuf> {
        let of_user = || self.uid.map(|uid| PathBuf::from(format!("/run/user/{uid}")));
        self.variable("XDG_RUNTIME_DIR").map(PathBuf::from).or_else(of_user)
    }
}

/// The reason why an address cannot be used.
type Fault = (Unfit, String);

/// Normalises a URL. Also returns the reason why it cannot be used, if there is one.
fn read_url(places: &Places, url: &str, tls: bool) -> (String, Option<Fault>) {
    let here = |path: &str| match (path.strip_prefix("~/"), &places.home) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => path.to_owned(),
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        if url.starts_with('/') || url.starts_with("~/") {
            return (format!("unix://{}", here(url)), not_here("unix"));
        }
        let fault = "an engine's address starts with `unix://`, `npipe://` or `tcp://`";
        return (url.to_owned(), Some((Unfit::Address, fault.into())));
    };
    let fault = match scheme {
        "unix" | "npipe" if rest.is_empty() => Some((Unfit::Address, "the address names no socket".into())),
        "unix" => return (format!("unix://{}", here(rest)), not_here("unix")),
        "npipe" => not_here("npipe"),
        "tcp" | "http" if rest.is_empty() => Some((Unfit::Address, "the address names no host".into())),
        "tcp" | "http" if !tls => None,
        "tcp" | "http" | "https" => Some((Unfit::Tls, NO_TLS.into())),
        "ssh" => Some((Unfit::Ssh, NO_SSH.into())),
        other => Some((Unfit::Address, format!("Sandtray doesn't know addresses that start with `{other}://`"))),
    };
    (url.to_owned(), fault)
}

fn not_here(scheme: &str) -> Option<Fault> {
    match (scheme, cfg!(windows)) {
        ("unix", true) => Some((Unfit::Address, "Unix sockets can't be used on Windows; use `npipe://`".into())),
        ("npipe", false) => Some((Unfit::Address, "named pipes exist on Windows only; use `unix://`".into())),
        _ => None,
    }
}

fn endpoint(path: &Path, found: &str) -> Endpoint {
    let scheme = if cfg!(windows) { "npipe" } else { "unix" };
    Endpoint { url: format!("{scheme}://{}", path.display()), found: found.to_owned() }
}

fn socket_path(url: &str) -> Option<PathBuf> {
    url.strip_prefix("unix://").or_else(|| url.strip_prefix("npipe://")).map(PathBuf::from)
}

struct Context {
    name: String,
    url: String,
    tls: bool,
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct ContextMeta {
    #[serde(rename = "Endpoints")]
    endpoints: BTreeMap<String, ContextEndpoint>,
}

#[derive(Deserialize)]
struct ContextEndpoint {
    #[serde(rename = "Host")]
    host: String,
}

/// The context that `docker` would use. `None` for `default`, which stands for the default socket.
fn context(places: &Places) -> Option<Context> {
    let folder = places.docker_config()?;
    let current = || read_json::<DockerConfig>(&folder.join("config.json"))?.current_context;
    let name = places.variable("DOCKER_CONTEXT").map(str::to_owned).or_else(current)?;
    if name.is_empty() || name == "default" {
        return None;
    }
    let digest: String = Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    let meta = read_json::<ContextMeta>(&folder.join("contexts/meta").join(&digest).join("meta.json"))?;
    let url = meta.endpoints.get("docker")?.host.clone();
    let tls = folder.join("contexts/tls").join(&digest).join("docker").is_dir();
    (!url.is_empty()).then_some(Context { name, url, tls })
}

/// Reads one of Docker's files. An unreadable one is ignored, because it is not Sandtray's.
fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Option<T> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_CONFIG_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(not(windows))]
fn usual_places(places: &Places) -> Vec<(PathBuf, String)> {
    let mut list = vec![(PathBuf::from(DEFAULT_SOCKET), "the default socket")];
    if let Some(home) = &places.home {
        list.push((home.join(".docker/run/docker.sock"), "Docker Desktop"));
        list.push((home.join(".docker/desktop/docker.sock"), "Docker Desktop"));
        let colima = places.variable("COLIMA_HOME").map_or_else(|| home.join(".colima"), PathBuf::from);
        list.push((colima.join("default/docker.sock"), "Colima"));
        list.push((home.join(".config/colima/default/docker.sock"), "Colima"));
        list.push((home.join(".orbstack/run/docker.sock"), "OrbStack"));
        list.push((home.join(".rd/docker.sock"), "Rancher Desktop"));
    }
    let runtime = places.runtime_dir();
    if let Some(runtime) = &runtime {
        list.push((runtime.join("docker.sock"), "rootless Docker"));
        list.push((runtime.join("podman/podman.sock"), "rootless Podman"));
    }
    if let Some(home) = &places.home {
        list.push((home.join(".local/share/containers/podman/machine/podman.sock"), "Podman machine"));
    }
    list.push((PathBuf::from("/run/podman/podman.sock"), "Podman"));
    list.into_iter().map(|(path, found)| (path, found.to_owned())).collect()
}

#[cfg(windows)]
fn usual_places(_: &Places) -> Vec<(PathBuf, String)> {
    [
        ("//./pipe/docker_engine", "the default pipe"),
        ("//./pipe/dockerDesktopLinuxEngine", "Docker Desktop"),
        ("//./pipe/podman-machine-default", "Podman machine"),
    ]
    .map(|(path, found)| (PathBuf::from(path), found.to_owned()))
    .into()
}

/// A stopped engine removes its socket. The presence of its program tells "not running" from "not installed".
fn installed_but_silent(places: &Places, probe: &dyn Fn(&Path) -> Presence) -> Vec<(PathBuf, String)> {
    let there = |path: &Path| matches!(probe(path), Presence::There { .. });
    let path = places.variable("PATH").unwrap_or_default();
    let program = |name: &str| {
        let usual = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin"].map(PathBuf::from);
        std::env::split_paths(path).chain(usual).any(|folder| there(&folder.join(name)))
    };
    if cfg!(windows) {
        let desktop = Path::new(r"C:\Program Files\Docker\Docker\Docker Desktop.exe");
        return if there(desktop) { vec![usual_places(places).swap_remove(0)] } else { Vec::new() };
    }
    if there(Path::new("/Applications/Docker.app")) || there(Path::new("/opt/docker-desktop")) {
        return vec![(PathBuf::from(DEFAULT_SOCKET), "Docker Desktop".into())];
    }
    if program("dockerd") {
        return vec![(PathBuf::from(DEFAULT_SOCKET), "the default socket".into())];
    }
    match places.runtime_dir() {
        Some(runtime) if program("podman") => vec![(runtime.join("podman/podman.sock"), "rootless Podman".into())],
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
