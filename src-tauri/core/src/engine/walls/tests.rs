use super::*;

/// The probe's output on Docker 20.10 with control groups version 1, where every wall held.
const GOOD: &str = include_str!("../testdata/probe-docker-cgroup1.txt");

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
fn a_kernel_that_cannot_limit_swap_is_fine_without_swap() {
    let facts = with("swap.together=536870912", "");
    assert_eq!(missing(&facts, &limits()), Vec::<String>::new());
    let facts = facts.replace("swap.machine=0 kB", "swap.machine=2097148 kB");
    assert_eq!(missing(&facts, &limits()), ["swap is not limited"]);
}

#[test]
fn tunnels_without_an_address_are_no_network() {
    let facts = with("interface=lo", "interface=lo\ninterface=tunl0\ninterface=ip6tnl0\n");
    assert_eq!(missing(&facts, &limits()), Vec::<String>::new());
}

#[test]
fn each_missing_wall_is_named() {
    for (line, instead, words) in [
        ("status.Uid=65534 65534 65534 65534", "status.Uid=0 0 0 0\n", "programs do not run as an unprivileged user"),
        (
            "status.Uid=65534 65534 65534 65534",
            "status.Uid=65534 0 65534 65534\n",
            "programs do not run as an unprivileged user",
        ),
        ("status.Groups=65534", "status.Groups=65534 998\n", "programs do not run as an unprivileged user"),
        ("status.CapBnd=0000000000000000", "status.CapBnd=00000000a80425fb\n", "programs keep capabilities of root"),
        ("status.CapAmb=0000000000000000", "", "programs keep capabilities of root"),
        ("status.NoNewPrivs=1", "status.NoNewPrivs=0\n", "programs may gain new privileges"),
        ("status.Seccomp=2", "status.Seccomp=0\n", "the filter of system calls is not in force"),
        ("call.ionice=refused", "call.ionice=allowed\n", "the filter of system calls is not in force"),
        ("call.ionice=refused", "call.ionice=absent\n", "the filter of system calls is not in force"),
        ("call.unshare=refused", "call.unshare=allowed\n", "the filter of system calls is not in force"),
        ("interface=lo", "interface=lo\ninterface=eth0\n", "the network is not cut off"),
        ("interface=lo", "", "the network is not cut off"),
        ("inet6=lo", "inet6=lo\ninet6=tunl0\n", "the network is not cut off"),
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
        ("mounts=80", "mounts=81\n", "something of the host's disk is mounted"),
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
        (
            "mount=/sys/devices tmpfs ro,relatime",
            "mount=/sys/devices ext4 ro,relatime\n",
            "something of the host's disk is mounted",
        ),
        (
            "mount=/sys/devices tmpfs ro,relatime",
            "mount=/dev/sda devtmpfs rw,relatime\n",
            "something of the host's disk is mounted",
        ),
        ("device=/dev/zero c 1 5", "device=/dev/zero c 1 1\n", "a device of the machine's can be reached"),
        ("device=/dev/zero c 1 5", "device=/dev/sda b\n", "a device of the machine's can be reached"),
        ("device=/dev/zero c 1 5", "device=/dev/nvidia0 c 195 0\n", "a device of the machine's can be reached"),
        ("device=/dev/zero c 1 5", "device=/dev/extra other\n", "a device of the machine's can be reached"),
        ("device=/dev/null c 1 3", "", "a device of the machine's can be reached"),
        ("devices=9", "devices=201\n", "a device of the machine's can be reached"),
        ("masked=93", "masked=92\n", "what tells of the machine's devices can be read"),
        ("masked=93", "masked=93\nunmasked=/proc/fs\n", "what tells of the machine's devices can be read"),
        (
            "mount=/proc/sys proc ro,nosuid,nodev,noexec,relatime",
            "mount=/proc/sys proc rw,relatime\n",
            "the kernel's settings are not read-only",
        ),
        (
            "mount=/sys sysfs ro,nosuid,nodev,noexec,relatime",
            "mount=/sys sysfs rw,relatime\n",
            "the kernel's settings are not read-only",
        ),
        ("readonly=/proc/sys", "", "the kernel's settings are not read-only"),
        ("hostname=sandbox", "hostname=gerdas-laptop\n", "the host's name can be seen"),
        ("processes=1", "processes=211\n", "the processes of the host can be seen"),
        ("hostname=sandbox", "hostname=sandbox\nenvironment=GPG_KEY\n", "the environment is not clean"),
    ] {
        assert_eq!(missing(&with(line, instead), &limits()), [words], "{line} -> {instead:?}");
    }
}

#[test]
fn an_image_without_the_tools_of_the_probe_is_told_as_such() {
    let facts = format!("lacks=ionice\nlacks=tr\n{GOOD}");
    assert_eq!(missing(&facts, &limits()), ["its image lacks ionice, tr, which looking at the walls needs"]);
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
fn an_invalid_answer_is_a_missing_wall() {
    let nothing = ["the probe of the walls gave no answer that can be understood"];
    for answer in ["", "sh: not found\n", &GOOD.replace("end=sandtray\n", ""), &format!("{GOOD}more\n")] {
        assert_eq!(missing(answer, &limits()), nothing);
    }
    assert_eq!(missing(&format!("a={}\n{GOOD}", "x".repeat(PROBE_BYTES)), &limits()), nothing);
    // A broken probe that printed only its end.
    assert_eq!(missing("end=sandtray\n", &limits()).len(), 21);
}

#[test]
fn a_rootless_engine_binds_the_nodes_that_it_may_not_make() {
    let null = "mount=/proc/keys devtmpfs rw,nosuid,relatime\n";
    let facts = GOOD.replace(&format!("{}\n", line("mount=/proc/keys ")), null);
    let facts = facts.replace(&line("mounts="), &format!("mounts={}", 1 + mounts()));
    let facts = facts.replace("mount=/dev/pts ", "mount=/dev/null devtmpfs rw,nosuid\nmount=/dev/pts ");
    assert_eq!(missing(&facts, &limits()), Vec::<String>::new());
}

#[test]
fn a_launcher_is_sealed_if_every_attack_was_tried_and_refused() {
    assert_eq!(launcher(GOOD), Launcher::Readable, "the probe was PID 1 itself");
    let sealed: String = GOOD
        .lines()
        .map(|line| if line.starts_with("pid1.") { line.replace(" reached", " refused") } else { line.to_owned() } + "\n")
        .collect();
    assert_eq!(launcher(&sealed), Launcher::Sealed);
    for (line, instead) in [
        ("pid1.read=mem refused", "pid1.read=mem reached"),
        ("pid1.read=fd/2 refused", "pid1.read=fd/2 reached"),
        ("pid1.write=oom_score_adj refused", "pid1.write=oom_score_adj reached"),
        ("pid1.write=mem refused\n", ""),
        ("end=sandtray\n", ""),
    ] {
        assert!(sealed.contains(line), "{line}");
        assert_eq!(launcher(&sealed.replace(line, instead)), Launcher::Readable, "{line}");
    }
}

/// The one line that begins with this.
fn line(start: &str) -> String {
    GOOD.lines().find(|line| line.starts_with(start)).unwrap().to_owned()
}

fn mounts() -> usize {
    GOOD.lines().filter(|line| line.starts_with("mount=")).count()
}
