//! Judges whether an engine holds the walls for an image: a probe looks at them from inside, and this module judges its
//! output. Pure; the caller decides when to run the probe. The output comes from Sandtray's own program in an image
//! whose user code has not run yet.
//!
//! It fails closed: a fact that is absent, repeated, or not understood counts as a missing wall.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;

use super::container::{self, ENVIRONMENT, FILE_BYTES, HOSTNAME, INODES, MEMLOCK_BYTES, NOFILE, TMP, UID, WORK};
use crate::language::Language;
use crate::run::Limits;

/// Bound on the probe's standard output; a longer one is invalid.
pub const PROBE_BYTES: usize = 64 << 10;

/// The probe, a shell script. [`missing`] judges its whole standard output.
pub fn probe() -> &'static str {
    static PROBE: LazyLock<String> = LazyLock::new(|| {
        let list = |paths: Vec<&str>| paths.join(" ");
        let (masked, readonly) =
            (list(container::masked_paths().collect()), list(container::readonly_paths().collect()));
        format!("masked='{masked}'\nreadonly='{readonly}'\n{}", include_str!("probe.sh"))
    });
    &PROBE
}

/// What a program can do to PID 1 of its container. This is not a wall: where the launcher can be read, a program can
/// forge what the launcher says, so that is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Launcher {
    Sealed,
    Readable,
}

/// Variables that a shell adds to its environment.
const SHELL_VARIABLES: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];
/// Bound on processes: PID 1, the probe's shells and their children. The host's PID namespace would show many more.
const MOST_PROCESSES: u64 = 10;
/// Bound on mounts, and on entries in /dev. There are usually about eighty mounts and twelve entries.
const MOST_SEEN: u64 = 200;
/// The attacks on PID 1 that the probe tries: the key of each fact, and the files that it names.
const WAYS_TO_PID_1: [(&str, &[&str]); 2] = [
    ("pid1.read", &["mem", "maps", "environ", "auxv", "fd/0", "fd/1", "fd/2"]),
    ("pid1.write", &["mem", "oom_score_adj"]),
];
/// The kernel adds these to every network namespace when their modules are loaded. They have no address.
const TUNNELS: [&str; 10] =
    ["tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0", "teql0"];
/// The devices that every runtime makes: null, zero, full, random, urandom, tty, and the terminals' two. The machine's
/// memory, disks and graphics cards have other numbers.
const DEVICES: [(&str, &str); 8] = [
    ("/dev/null", "1 3"),
    ("/dev/zero", "1 5"),
    ("/dev/full", "1 7"),
    ("/dev/random", "1 8"),
    ("/dev/urandom", "1 9"),
    ("/dev/tty", "5 0"),
    ("/dev/ptmx", "5 2"),
    ("/dev/pts/ptmx", "5 2"),
];

/// Every missing wall, in words that finish "The engine doesn't hold a wall that keeps programs in: ...".
pub fn missing(facts: &str, expected: &Limits) -> Vec<String> {
    let Some(facts) = Facts::parse(facts) else {
        return vec!["the probe of the walls gave no answer that can be understood".into()];
    };
    let lacks = facts.all("lacks");
    if !lacks.is_empty() {
        return vec![format!("its image lacks {}, which looking at the walls needs", lacks.join(", "))];
    }
    let mut missing = Vec::new();
    for (holds, words) in [
        (is_nobody(&facts), "programs do not run as an unprivileged user"),
        (has_no_capability(&facts), "programs keep capabilities of root"),
        (facts.one("status.NoNewPrivs") == Some("1"), "programs may gain new privileges"),
        (is_filtered(&facts), "the filter of system calls is not in force"),
        (has_no_network(&facts), "the network is not cut off"),
        (root_is_read_only(&facts), "the root file system is not read-only"),
        (writable_are_only_two(&facts), "more than the working folder and /tmp can be written"),
        (is_bounded(&facts, WORK, u64::from(container::WORK_MIB)), "the size of the working folder is not bounded"),
        (is_bounded(&facts, TMP, largest_tmp()), "the size of /tmp is not bounded"),
        (mounts_are_known(&facts), "something of the host's disk is mounted"),
        (devices_are_harmless(&facts), "a device of the machine's can be reached"),
        (machine_is_hidden(&facts), "what tells of the machine's devices can be read"),
        (settings_are_read_only(&facts), "the kernel's settings are not read-only"),
        (memory_is_limited(&facts, expected), "the memory limit is not enforced"),
        (swap_is_off(&facts, expected), "swap is not limited"),
        (at_most(facts.one("pids"), expected.processes.into()), "the limit on processes is not enforced"),
        (cpu_is_limited(&facts, expected), "the CPU limit is not enforced"),
        (ulimits_hold(&facts, expected), "the limits of a single process are not enforced"),
        (facts.one("hostname") == Some(HOSTNAME), "the host's name can be seen"),
        (at_most(facts.one("processes"), MOST_PROCESSES), "the processes of the host can be seen"),
        (environment_is_ours(&facts), "the environment is not clean"),
    ] {
        if !holds {
            missing.push(words.to_owned());
        }
    }
    missing
}

/// Sealed if every attack of the probe on PID 1 was refused. An attack that was not tried counts as successful.
pub fn launcher(facts: &str) -> Launcher {
    let refused = |facts: &Facts| {
        WAYS_TO_PID_1.iter().all(|(key, names)| {
            let expected: Vec<String> = names.iter().map(|name| format!("{name} refused")).collect();
            facts.all(key) == expected
        })
    };
    if Facts::parse(facts).is_some_and(|facts| refused(&facts)) { Launcher::Sealed } else { Launcher::Readable }
}

struct Facts<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Facts<'a> {
    /// `None` if a line is not a fact, or the last one is missing because the probe broke off.
    fn parse(text: &'a str) -> Option<Self> {
        if text.len() > PROBE_BYTES {
            return None;
        }
        let mut facts: HashMap<&str, Vec<&str>> = HashMap::new();
        for line in text.lines() {
            let (key, value) = line.split_once('=')?;
            facts.entry(key).or_default().push(value);
        }
        (text.lines().last() == Some("end=sandtray")).then_some(Self(facts))
    }

    fn all(&self, key: &str) -> &[&'a str] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// The value of a key that occurs exactly once.
    fn one(&self, key: &str) -> Option<&'a str> {
        match self.all(key) {
            [value] => Some(value),
            _ => None,
        }
    }

    /// The options of the topmost mount at `point`.
    fn mount(&self, point: &str) -> Option<Vec<&'a str>> {
        let on_top = self.all("mount").iter().rev().find(|mount| mount.split(' ').next() == Some(point))?;
        Some(on_top.split(' ').nth(2)?.split(',').collect())
    }
}

/// Whether the value is a whole number in plain digits, from 1 to `most`. `max`, `-1` and `unlimited` are not.
fn at_most(value: Option<&str>, most: u64) -> bool {
    value.and_then(whole).is_some_and(|number| (1..=most).contains(&number))
}

fn whole(text: &str) -> Option<u64> {
    // `parse` alone would accept a sign.
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn is_nobody(facts: &Facts) -> bool {
    // Real, effective, saved and file system ids.
    let four = [UID; 4].map(|id| id.to_string()).join(" ");
    let groups = facts.one("status.Groups");
    facts.one("status.Uid") == Some(&four)
        && facts.one("status.Gid") == Some(&four)
        && (groups == Some("") || groups == Some(&UID.to_string()))
}

fn has_no_capability(facts: &Facts) -> bool {
    ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]
        .into_iter()
        .all(|set| facts.one(&format!("status.{set}")) == Some("0000000000000000"))
}

/// A filter is in force, and it is Sandtray's: it refuses [`super::seccomp::CANARY`], which the engines' own profiles
/// allow.
fn is_filtered(facts: &Facts) -> bool {
    let unshare = facts.one("call.unshare");
    facts.one("status.Seccomp") == Some("2")
        && facts.one("call.ionice") == Some("refused")
        && (unshare == Some("refused") || unshare == Some("absent"))
}

fn has_no_network(facts: &Facts) -> bool {
    let interfaces = facts.all("interface");
    interfaces.contains(&"lo")
        && interfaces.iter().all(|name| *name == "lo" || TUNNELS.contains(name))
        && facts.all("inet6").iter().all(|name| *name == "lo")
        && facts.one("routes") == Some("0")
        && facts.one("routes6") == Some("0")
}

fn root_is_read_only(facts: &Facts) -> bool {
    facts.mount("/").is_some_and(|options| options.contains(&"ro"))
}

/// Both must be found: a probe that can write nowhere did not look properly.
fn writable_are_only_two(facts: &Facts) -> bool {
    let places: BTreeSet<&str> = facts.all("writable").iter().copied().collect();
    places == BTreeSet::from([TMP, WORK])
}

fn is_bounded(facts: &Facts, place: &str, mib: u64) -> bool {
    let Some(options) = facts.mount(place) else { return false };
    let option = |name: &str| options.iter().find_map(|option| option.strip_prefix(name));
    at_most(option("size=").and_then(|size| size.strip_suffix('k')), mib << 10)
        && at_most(option("nr_inodes="), INODES.into())
        && options.contains(&"nosuid")
        && options.contains(&"nodev")
}

fn largest_tmp() -> u64 {
    Language::ALL.into_iter().map(|language| u64::from(language.recipe().tmp_mib)).max().unwrap_or(0)
}

/// Beside the kernel's own mounts, there are only those of Sandtray and the files that engines write.
fn mounts_are_known(facts: &Facts) -> bool {
    const FILES: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/run/.containerenv"];
    let mounts = facts.all("mount");
    let known = |mount: &&str| {
        let mut words = mount.split(' ');
        let (Some(point), Some(kind)) = (words.next(), words.next()) else { return false };
        ["/", WORK, TMP, "/run", "/var/tmp"].contains(&point) || FILES.contains(&point) || made_up(point, kind)
    };
    at_most(facts.one("mounts"), MOST_SEEN)
        && facts.one("mounts").and_then(whole) == u64::try_from(mounts.len()).ok()
        && mounts.iter().all(known)
}

/// No mount shows a disk: only kinds without a disk, below the kernel's own folders. A rootless engine may not make
/// device nodes, and binds those of the host instead; [`devices_are_harmless`] checks which.
fn made_up(point: &str, kind: &str) -> bool {
    let within = |folder: &str| point.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let bound = kind == "devtmpfs"
        && (DEVICES.iter().any(|(device, _)| *device == point) || container::masked_paths().any(|path| path == point));
    match kind {
        "proc" => within("/proc"),
        "sysfs" => within("/sys"),
        "cgroup" | "cgroup2" => within("/sys/fs/cgroup"),
        "devpts" | "mqueue" => within("/dev"),
        "tmpfs" => within("/dev") || within("/proc") || within("/sys"),
        _ => bound,
    }
}

/// Entries of /dev besides folders and links: only harmless nodes, each with the number of its name.
fn devices_are_harmless(facts: &Facts) -> bool {
    let harmless = |device: &&str| match device.split_once(" c ") {
        Some((path, numbers)) => DEVICES.contains(&(path, numbers)),
        None => false,
    };
    let devices = facts.all("device");
    at_most(facts.one("devices"), MOST_SEEN) && devices.contains(&"/dev/null c 1 3") && devices.iter().all(harmless)
}

/// All paths that should be hidden were looked at and were empty.
fn machine_is_hidden(facts: &Facts) -> bool {
    let hidden = u64::try_from(container::masked_paths().count()).ok();
    facts.one("masked").and_then(whole) == hidden && facts.all("unmasked").is_empty()
}

/// Checks how they are mounted, because most of them can only be written by root in any case.
fn settings_are_read_only(facts: &Facts) -> bool {
    let places = facts.all("readonly");
    places.contains(&"/proc/sys")
        && places.iter().chain(&["/sys"]).all(|place| facts.mount(place).is_some_and(|options| options.contains(&"ro")))
}

fn memory_is_limited(facts: &Facts, expected: &Limits) -> bool {
    at_most(facts.one("memory"), expected.memory_bytes)
}

/// Control groups version 2 limit swap alone, version 1 limits it together with memory. Some kernels have neither
/// limit, which does no harm if there is no swap at all.
fn swap_is_off(facts: &Facts, expected: &Limits) -> bool {
    match (facts.one("swap.alone"), facts.one("swap.together")) {
        (Some(alone), None) => alone == "0",
        (None, Some(together)) => at_most(Some(together), expected.memory_bytes),
        (None, None) => facts.one("swap.machine") == Some("0 kB"),
        (Some(_), Some(_)) => false,
    }
}

fn cpu_is_limited(facts: &Facts, expected: &Limits) -> bool {
    let pair = match (facts.one("cpu.both"), facts.one("cpu.quota"), facts.one("cpu.period")) {
        (Some(both), None, None) => both.split_once(' '),
        (None, Some(quota), Some(period)) => Some((quota, period)),
        _ => None,
    };
    let Some((Some(quota), Some(period))) = pair.map(|(quota, period)| (whole(quota), whole(period))) else {
        return false;
    };
    quota > 0 && quota.saturating_mul(1000) <= period.saturating_mul(expected.milli_cpus.into())
}

fn ulimits_hold(facts: &Facts, expected: &Limits) -> bool {
    [
        ("core", 0),
        ("cpu", container::cpu_seconds(expected)),
        ("fsize", FILE_BYTES),
        ("memlock", MEMLOCK_BYTES),
        ("msgqueue", 0),
        ("nofile", NOFILE),
    ]
    .into_iter()
    .all(|(name, most)| facts.one(&format!("ulimit.{name}")) == Some(format!("{most} {most}").as_str()))
}

fn environment_is_ours(facts: &Facts) -> bool {
    let names = facts.all("environment");
    ENVIRONMENT.iter().all(|name| names.contains(name))
        && names.iter().all(|name| ENVIRONMENT.contains(name) || SHELL_VARIABLES.contains(name))
}

#[cfg(test)]
mod tests;
