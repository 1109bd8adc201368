//! Whether an engine really holds the walls: a program that looks at them from inside, and the judgement of what it saw.
//! Pure. Who runs the probe, and when, is not known here; what it prints is the word of our own program in an image
//! whose user code has not run yet.
//!
//! It fails closed: what is absent, double, or not understood counts as a wall that is missing.

use std::collections::{BTreeSet, HashMap};

use super::container::{self, ENVIRONMENT, FILE_BYTES, HOSTNAME, INODES, MEMLOCK_BYTES, NOFILE, TMP, UID, WORK};
use crate::language::Language;
use crate::run::Limits;

/// A shell program. Its standard output, whole, is what [`missing`] judges; more than [`PROBE_BYTES`] is not an answer.
pub const PROBE: &str = include_str!("probe.sh");
pub const PROBE_BYTES: usize = 64 << 10;

/// What a shell adds to its own environment.
const SHELL_VARIABLES: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];
/// PID 1, the probe's shells and what they start. In the host's PID namespace there would be many more.
const MOST_PROCESSES: u64 = 10;

/// Every wall that is missing, in words that finish "The engine doesn't hold a wall that keeps programs in: ...".
pub fn missing(facts: &str, expected: &Limits) -> Vec<String> {
    let Some(facts) = Facts::parse(facts) else {
        return vec!["the probe of the walls gave no answer that can be understood".into()];
    };
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

struct Facts<'a>(HashMap<&'a str, Vec<&'a str>>);

impl<'a> Facts<'a> {
    /// `None` where a line is not a fact, or the last one is not there: the probe broke off.
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

    /// The value of a key that stands once.
    fn one(&self, key: &str) -> Option<&'a str> {
        match self.all(key) {
            [value] => Some(value),
            _ => None,
        }
    }

    /// Where and how: the options of the mount that lies on top at `point`.
    fn mount(&self, point: &str) -> Option<Vec<&'a str>> {
        let on_top = self.all("mount").iter().rev().find(|mount| mount.split(' ').next() == Some(point))?;
        Some(on_top.split(' ').nth(2)?.split(',').collect())
    }
}

/// A whole number in plain digits, of at least one and at most so many. `max`, `-1` and `unlimited` are none.
fn at_most(value: Option<&str>, most: u64) -> bool {
    value.and_then(whole).is_some_and(|number| (1..=most).contains(&number))
}

fn whole(text: &str) -> Option<u64> {
    // `parse` alone would take a sign.
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn is_nobody(facts: &Facts) -> bool {
    // Real, effective, saved and file system.
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

/// A filter is there, and it is ours: it refuses [`super::seccomp::CANARY`], which the engines' own profiles allow.
fn is_filtered(facts: &Facts) -> bool {
    let unshare = facts.one("call.unshare");
    facts.one("status.Seccomp") == Some("2")
        && facts.one("call.ionice") == Some("refused")
        && (unshare == Some("refused") || unshare == Some("absent"))
}

fn has_no_network(facts: &Facts) -> bool {
    let interfaces = facts.all("interface");
    let down = |flags: &str| {
        let flags = flags.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        flags.is_some_and(|flags| flags & 1 == 0)
    };
    interfaces.iter().any(|interface| interface.starts_with("lo "))
        && interfaces.iter().all(|interface| match interface.split_once(' ') {
            Some(("lo", _)) => true,
            Some((_, flags)) => down(flags),
            None => false,
        })
        && facts.one("routes") == Some("0")
        && facts.one("routes6") == Some("0")
}

fn root_is_read_only(facts: &Facts) -> bool {
    facts.mount("/").is_some_and(|options| options.contains(&"ro"))
}

/// Both are there as well: a probe that can write nowhere did not look properly.
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

/// Apart from what the kernel makes up, there are the places that we mount and the three files that engines write.
fn mounts_are_known(facts: &Facts) -> bool {
    const FILES: [&str; 4] = ["/etc/resolv.conf", "/etc/hosts", "/etc/hostname", "/run/.containerenv"];
    const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];
    let mounts = facts.all("mount");
    let under = |point: &str, folder: &str| point.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let known = |point: &str| {
        ["/", WORK, TMP, "/run", "/var/tmp"].contains(&point)
            || FILES.contains(&point)
            || KERNEL.into_iter().any(|folder| point == folder || under(point, folder))
    };
    at_most(facts.one("mounts"), 200)
        && facts.one("mounts").and_then(whole) == u64::try_from(mounts.len()).ok()
        && mounts.iter().all(|mount| mount.split(' ').next().is_some_and(known))
}

fn memory_is_limited(facts: &Facts, expected: &Limits) -> bool {
    at_most(facts.one("memory"), expected.memory_bytes)
}

/// Version 2 of control groups limits swap alone, version 1 limits it together with memory. Some kernels limit it in
/// neither way; that does no harm where there is no swap at all.
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
mod tests {
    use super::*;

    /// What the probe said on Docker 20.10 with control groups version 1, where every wall held.
    const GOOD: &str = include_str!("testdata/probe-docker-cgroup1.txt");

    /// The limits of that run.
    fn limits() -> Limits {
        crate::settings::Settings::default().limits()
    }

    /// The answer with one line changed into others (or none).
    fn with(line: &str, instead: &str) -> String {
        assert_eq!(GOOD.lines().filter(|l| *l == line).count(), 1, "{line}");
        GOOD.replace(&format!("{line}\n"), instead)
    }

    #[test]
    fn an_engine_that_holds_every_wall() {
        assert_eq!(missing(GOOD, &limits()), Vec::<String>::new());
    }

    #[test]
    fn the_same_with_version_2_of_control_groups() {
        let facts = with("swap.together=536870912", "swap.alone=0\n")
            .replace("cpu.quota=100000\ncpu.period=100000\n", "cpu.both=100000 100000\n");
        assert_eq!(missing(&facts, &limits()), Vec::<String>::new());
        let endless =
            facts.replace("cpu.both=100000 100000", "cpu.both=max 100000").replace("swap.alone=0", "swap.alone=max");
        assert_eq!(missing(&endless, &limits()), ["swap is not limited", "the CPU limit is not enforced"]);
    }

    #[test]
    fn a_kernel_that_cannot_limit_swap_will_do_where_there_is_none() {
        let facts = with("swap.together=536870912", "");
        assert_eq!(missing(&facts, &limits()), Vec::<String>::new());
        let facts = facts.replace("swap.machine=0 kB", "swap.machine=2097148 kB");
        assert_eq!(missing(&facts, &limits()), ["swap is not limited"]);
    }

    #[test]
    fn tunnel_devices_that_are_down_are_no_network() {
        let facts = with("interface=lo 0x9", "interface=lo 0x9\ninterface=tunl0 0x80\ninterface=ip6tnl0 0x80\n");
        assert_eq!(missing(&facts, &limits()), Vec::<String>::new());
    }

    #[test]
    fn each_wall_is_missed_by_its_name() {
        for (line, instead, words) in [
            (
                "status.Uid=65534 65534 65534 65534",
                "status.Uid=0 0 0 0\n",
                "programs do not run as an unprivileged user",
            ),
            (
                "status.Uid=65534 65534 65534 65534",
                "status.Uid=65534 0 65534 65534\n",
                "programs do not run as an unprivileged user",
            ),
            ("status.Groups=65534", "status.Groups=65534 998\n", "programs do not run as an unprivileged user"),
            (
                "status.CapBnd=0000000000000000",
                "status.CapBnd=00000000a80425fb\n",
                "programs keep capabilities of root",
            ),
            ("status.CapAmb=0000000000000000", "", "programs keep capabilities of root"),
            ("status.NoNewPrivs=1", "status.NoNewPrivs=0\n", "programs may gain new privileges"),
            ("status.Seccomp=2", "status.Seccomp=0\n", "the filter of system calls is not in force"),
            ("call.ionice=refused", "call.ionice=allowed\n", "the filter of system calls is not in force"),
            ("call.ionice=refused", "call.ionice=absent\n", "the filter of system calls is not in force"),
            ("call.unshare=refused", "call.unshare=allowed\n", "the filter of system calls is not in force"),
            ("interface=lo 0x9", "interface=lo 0x9\ninterface=eth0 0x1003\n", "the network is not cut off"),
            ("interface=lo 0x9", "interface=lo 0x9\ninterface=eth0 unknown\n", "the network is not cut off"),
            ("interface=lo 0x9", "", "the network is not cut off"),
            ("routes=0", "routes=2\n", "the network is not cut off"),
            ("routes=0", "routes=-1\n", "the network is not cut off"),
            ("routes6=0", "routes6=1\n", "the network is not cut off"),
            ("mount=/ overlay ro,relatime", "mount=/ overlay rw,relatime\n", "the root file system is not read-only"),
            (
                "writable=/sandbox",
                "writable=/sandbox\nwritable=/dev/shm\n",
                "more than the working folder and /tmp can be written",
            ),
            (
                "mount=/sandbox tmpfs rw,nosuid,nodev,relatime,size=65536k,nr_inodes=16384",
                "mount=/sandbox tmpfs rw,nosuid,nodev,relatime,size=65536k\n",
                "the size of the working folder is not bounded",
            ),
            (
                "mount=/tmp tmpfs rw,nosuid,nodev,noexec,relatime,size=16384k,nr_inodes=16384",
                "mount=/tmp tmpfs rw,nosuid,nodev,noexec,relatime,size=12345678k,nr_inodes=16384\n",
                "the size of /tmp is not bounded",
            ),
            (
                "mount=/etc/hostname ext4 ro,relatime,discard,resv_strict,resuid=65534,resgid=65534",
                "mount=/var/run/docker.sock tmpfs rw,nosuid\n",
                "something of the host's disk is mounted",
            ),
            ("mounts=44", "mounts=45\n", "something of the host's disk is mounted"),
            ("memory=536870912", "memory=9223372036854771712\n", "the memory limit is not enforced"),
            ("memory=536870912", "memory=max\n", "the memory limit is not enforced"),
            ("memory=536870912", "memory=0\n", "the memory limit is not enforced"),
            ("memory=536870912", "memory=+5\n", "the memory limit is not enforced"),
            ("memory=536870912", "memory=5\nmemory=max\n", "the memory limit is not enforced"),
            ("swap.together=536870912", "swap.together=1073741824\n", "swap is not limited"),
            ("pids=128", "pids=max\n", "the limit on processes is not enforced"),
            ("pids=128", "pids=129\n", "the limit on processes is not enforced"),
            ("cpu.quota=100000", "cpu.quota=-1\n", "the CPU limit is not enforced"),
            ("cpu.quota=100000", "cpu.quota=200000\n", "the CPU limit is not enforced"),
            ("cpu.period=100000", "", "the CPU limit is not enforced"),
            ("ulimit.core=0 0", "ulimit.core=0 unlimited\n", "the limits of a single process are not enforced"),
            ("ulimit.cpu=70 70", "ulimit.cpu=unlimited unlimited\n", "the limits of a single process are not enforced"),
            ("hostname=sandbox", "hostname=gerdas-laptop\n", "the host's name can be seen"),
            ("processes=1", "processes=211\n", "the processes of the host can be seen"),
            ("hostname=sandbox", "hostname=sandbox\nenvironment=GPG_KEY\n", "the environment is not clean"),
        ] {
            assert_eq!(missing(&with(line, instead), &limits()), [words], "{line} -> {instead:?}");
        }
    }

    #[test]
    fn lower_limits_than_those_in_force_are_not_held() {
        let lower = Limits { memory_bytes: 256 << 20, milli_cpus: 999, processes: 127, ..limits() };
        assert_eq!(
            missing(GOOD, &lower),
            [
                "the memory limit is not enforced",
                "swap is not limited",
                "the limit on processes is not enforced",
                "the CPU limit is not enforced"
            ]
        );
    }

    #[test]
    fn an_answer_that_is_none_misses_everything() {
        let nothing = ["the probe of the walls gave no answer that can be understood"];
        for answer in ["", "sh: not found\n", &GOOD.replace("end=sandtray\n", ""), &format!("{GOOD}more\n")] {
            assert_eq!(missing(answer, &limits()), nothing);
        }
        assert_eq!(missing(&format!("a={}\n{GOOD}", "x".repeat(PROBE_BYTES)), &limits()), nothing);
        // A broken probe that says nothing but that it ended.
        assert_eq!(missing("end=sandtray\n", &limits()).len(), 18);
    }
}
