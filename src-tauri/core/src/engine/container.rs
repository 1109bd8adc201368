//! Builds the container config for a purpose: every wall that keeps a program in, each with its reason. Pure.
//! [`super::walls`] checks whether an engine really holds the walls.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, ResourcesUlimits,
    RestartPolicy, RestartPolicyNameEnum,
};

use super::{ContainerSpec, Derivation, LABEL_INSTANCE, LABEL_RUN, seccomp};
use crate::launcher;
use crate::run::Limits;

/// The working folder. No image has this path, so Docker's tmpfs keeps the given mode.
pub const WORK: &str = "/sandbox";
pub const WORK_MIB: u32 = 64;
pub const TMP: &str = "/tmp";
/// Files and folders that each of the two writable places can hold. An empty file costs kernel memory too.
pub const INODES: u32 = 16_384;

/// User id of every program, in the container and on the host. It owns no file of any image.
pub const UID: u32 = 65_534;
pub const HOSTNAME: &str = "sandbox";

/// The names of all environment variables that a program gets.
pub const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

pub const NOFILE: i64 = 1024;
/// No single file is larger. A sparse file could otherwise claim a terabyte, and its readers would have to believe
/// that.
pub const FILE_BYTES: i64 = (WORK_MIB as i64) << 20;
/// Locked memory cannot be reclaimed, and nothing here needs any.
pub const MEMLOCK_BYTES: i64 = 64 << 10;

/// The config with all its walls. It does not depend on where the engine is, because no path of the host is named.
pub fn config(spec: &ContainerSpec) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint: Some(entrypoint(spec)),
        cmd: Some(Vec::new()),
        env: Some(for_the_runtime()),
        // Not the working folder, because Docker would hand that folder to root.
        working_dir: Some("/".into()),
        user: Some(format!("{UID}:{UID}")),
        // Not the host's name, nor the id by which a program could look itself up in the engine.
        hostname: Some(HOSTNAME.into()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // End-of-file on our input becomes the program's end-of-file.
        stdin_once: Some(true),
        // A terminal would merge the streams, change their bytes, and let a program push input with TIOCSTI.
        tty: Some(false),
        // Set together with the network mode, so that no endpoint is set up. This also saves 80 ms of each start.
        network_disabled: Some(true),
        // An image may bring a health check: a process that Sandtray did not start, and that takes a share of the
        // container's limits.
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".into()]), ..Default::default() }),
        // A stop sends SIGKILL at once, because the container needs no warning before it ends.
        stop_signal: Some("SIGKILL".into()),
        labels: Some(HashMap::from([
            (LABEL_INSTANCE.into(), spec.instance.to_string()),
            (LABEL_RUN.into(), spec.run.to_string()),
        ])),
        host_config: Some(host_config(spec)),
        ..Default::default()
    }
}

/// The config of a container that prepares an image of the owner's choice with a script of Sandtray's. The root is
/// writable and owned by root, and the limits of memory, processes and file sizes suffice for a compiler. The rest is
/// as for a run, because the programs are the image's. The caller watches how much the script writes, because few
/// engines can bound a root file system.
pub fn preparing(derivation: &Derivation) -> ContainerCreateBody {
    const MEMORY: i64 = 4 << 30;
    const PROCESSES: u32 = 512;
    const FILE: i64 = 1 << 30;
    const DESCRIPTORS: i64 = 4096;
    let path = format!("PATH={}", derivation.path);
    let limits = Limits { memory_bytes: MEMORY as u64, processes: PROCESSES, ..derivation.limits };
    let run = walls(&limits);
    let ulimits = [("core", 0), ("fsize", FILE), ("memlock", MEMLOCK_BYTES), ("msgqueue", 0), ("nofile", DESCRIPTORS)];
    ContainerCreateBody {
        image: Some(derivation.base.clone()),
        entrypoint: Some(["env", "-i", &path, "LANG=C.UTF-8", "sh", "-c", derivation.script].map(str::to_owned).into()),
        cmd: Some(Vec::new()),
        env: Some(for_the_runtime()),
        user: Some("0:0".into()),
        working_dir: Some("/".into()),
        hostname: Some(HOSTNAME.into()),
        network_disabled: Some(true),
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".into()]), ..Default::default() }),
        stop_signal: Some("SIGKILL".into()),
        labels: Some(HashMap::from([
            (LABEL_INSTANCE.into(), derivation.instance.to_string()),
            (LABEL_RUN.into(), derivation.run.to_string()),
        ])),
        host_config: Some(HostConfig {
            readonly_rootfs: Some(false),
            ulimits: Some(ulimits.map(|(name, most)| ulimit(name, most)).into()),
            ..run
        }),
        ..Default::default()
    }
}

/// Variables for the container runtime. The image's own variables cannot be removed here, only by `env -i`. Some
/// runtimes act on one of them: NVIDIA's gives a container the host's devices and drivers if its image asks, as every
/// image for CUDA does. This value overrides it.
fn for_the_runtime() -> Vec<String> {
    vec!["NVIDIA_VISIBLE_DEVICES=void".into()]
}

/// The command of PID 1. `env -i` starts it in a clean environment: it drops the variables of the image and of the
/// engine (HOSTNAME) before the first line of the script, so that not even /proc/1/environ holds them.
fn entrypoint(spec: &ContainerSpec) -> Vec<String> {
    let recipe = spec.language.recipe();
    let path = format!("PATH={}", recipe.path);
    [
        "env",
        "-i",
        &path,
        "HOME=/tmp",
        "LANG=C.UTF-8",
        "TMPDIR=/tmp",
        "sh",
        "-c",
        launcher::SEAL,
        "sandtray",
        launcher::SCRIPT,
        recipe.program,
    ]
    .into_iter()
    .chain(recipe.command.iter().copied())
    .map(str::to_owned)
    .collect()
}

fn host_config(spec: &ContainerSpec) -> HostConfig {
    HostConfig { tmpfs: Some(tmpfs(spec)), ulimits: Some(ulimits(&spec.limits)), ..walls(&spec.limits) }
}

/// The walls around every program that is started from an image.
fn walls(limits: &Limits) -> HostConfig {
    let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
    HostConfig {
        // A network namespace with nothing but its own loopback.
        network_mode: Some("none".into()),
        // Without these two, the host's resolv.conf is copied in, with its name servers and search domains.
        dns: Some(vec!["0.0.0.0".into()]),
        dns_search: Some(vec![".".into()]),

        readonly_rootfs: Some(true),
        // Shared memory would be one more writable place, so there is no /dev/shm.
        ipc_mode: Some("none".into()),
        masked_paths: Some(masked_paths().map(str::to_owned).collect()),
        readonly_paths: Some(readonly_paths().map(str::to_owned).collect()),

        privileged: Some(false),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec![
            // Set-user-id programs of the image have no effect.
            "no-new-privileges:true".into(),
            // Passed as text, because some engines read a path on this machine and others on theirs.
            format!("seccomp={}", seccomp::profile()),
        ]),
        // Hides the engine's own tree of control groups, and with it the container's id.
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),

        memory: Some(memory),
        // Memory and swap together: the same figure means no swap at all.
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(limits.milli_cpus) * 1_000_000),
        // Stops a fork bomb. (RLIMIT_NPROC cannot: it counts a user's processes in all containers together.)
        pids_limit: Some(i64::from(limits.processes)),
        // When the machine runs out of memory, runs are killed before the owner's programs. Below the maximum, so that
        // the launcher can raise the program's value further and the kernel does not pick PID 1.
        oom_score_adj: Some(500),

        // The output is read from the attached streams. json-file would write it to the host's disk as well.
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: Some(HashMap::new()) }),
        // Used once. The engine must not restart it, and Sandtray removes it after its last output is read.
        restart_policy: Some(RestartPolicy { name: Some(RestartPolicyNameEnum::NO), maximum_retry_count: None }),
        auto_remove: Some(false),
        // PID 1 is the launcher, which reaps and kills by itself. The engine's init would be a bind-mounted file.
        init: Some(false),
        publish_all_ports: Some(false),
        ..Default::default()
    }
}

/// The two writable places, and empty read-only mounts over the places that some engines leave writable in a read-only
/// root. Their memory counts against the container's limit.
fn tmpfs(spec: &ContainerSpec) -> HashMap<String, String> {
    let recipe = spec.language.recipe();
    let tmp_exec = if recipe.tmp_exec { "exec" } else { "noexec" };
    let tmp = recipe.tmp_mib;
    // A compiled program or a script may be started from the working folder.
    let work = format!("rw,exec,nosuid,nodev,size={WORK_MIB}m,nr_inodes={INODES},mode=1777");
    let tmp = format!("rw,{tmp_exec},nosuid,nodev,size={tmp}m,nr_inodes={INODES},mode=1777");
    let nothing = "ro,noexec,nosuid,nodev,size=4k";
    HashMap::from([
        (WORK.into(), work),
        (TMP.into(), tmp),
        // The kernel's message queues are files that any process may make, whatever the IPC mode.
        ("/dev/mqueue".into(), nothing.into()),
        // Podman mounts these writable beside a read-only root.
        ("/run".into(), nothing.into()),
        ("/var/tmp".into(), nothing.into()),
    ])
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    [
        // A core file is a copy of memory, written to the place that the host's kernel is set to.
        ("core", 0),
        // A backstop in case every deadline fails: CPU seconds for the whole wall time on every CPU, with a margin.
        // Counts per process.
        ("cpu", cpu_seconds(limits)),
        ("fsize", FILE_BYTES),
        ("memlock", MEMLOCK_BYTES),
        // The kernel counts message queues per user, across containers.
        ("msgqueue", 0),
        ("nofile", NOFILE),
    ]
    .into_iter()
    .map(|(name, most)| ulimit(name, most))
    .collect()
}

fn ulimit(name: &str, most: i64) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(name.into()), soft: Some(most), hard: Some(most) }
}

pub(super) fn cpu_seconds(limits: &Limits) -> i64 {
    const MARGIN: u64 = 10;
    let seconds = limits.millis.div_ceil(1000).saturating_mul(u64::from(limits.milli_cpus.div_ceil(1000)));
    i64::try_from(seconds.saturating_add(MARGIN)).unwrap_or(i64::MAX)
}

/// Paths of /proc and /sys that describe the machine, hidden. Naming any replaces the engine's own list, so this list
/// holds all paths that engines hide, from the oldest to the newest. The newest hides each CPU's `thermal_throttle`, a
/// part of /sys/devices.
///
/// The runtime skips a path that the kernel does not have. Whole folders are hidden where possible, because a hidden
/// name in one may be a link into another. The rest is visible on purpose: the number of CPUs comes from the scheduler
/// and from /proc/cpuinfo, limits come from /sys/fs/cgroup.
const MASKED_PROC: &str = "\
    /proc/acpi /proc/allocinfo /proc/asound /proc/bootconfig /proc/buddyinfo /proc/bus /proc/cmdline /proc/config.gz \
    /proc/consoles /proc/crypto /proc/devices /proc/diskstats /proc/dma /proc/driver /proc/dynamic_debug \
    /proc/execdomains /proc/fb /proc/fs /proc/interrupts /proc/iomem /proc/ioports /proc/irq /proc/kallsyms \
    /proc/kcore /proc/key-users /proc/keys /proc/kmsg /proc/kpagecgroup /proc/kpagecount /proc/kpageflags \
    /proc/latency_stats /proc/locks /proc/mdstat /proc/misc /proc/modules /proc/mtrr /proc/pagetypeinfo \
    /proc/partitions /proc/pressure /proc/sched_debug /proc/schedstat /proc/scsi /proc/slabinfo /proc/softirqs \
    /proc/spl /proc/swaps /proc/sys/dev /proc/sys/kernel/random/boot_id /proc/sysrq-trigger /proc/timer_list \
    /proc/timer_stats /proc/tty /proc/vmallocinfo /proc/vmcore /proc/xen /proc/zoneinfo";
/// All of /sys but /sys/fs/cgroup. File systems have a folder below /sys/fs for each disk that they use.
const MASKED_SYS: &str = "\
    /sys/block /sys/bus /sys/class /sys/dev /sys/devices /sys/firmware /sys/fs/afs /sys/fs/bcachefs /sys/fs/bpf \
    /sys/fs/btrfs /sys/fs/ecryptfs /sys/fs/erofs /sys/fs/ext4 /sys/fs/f2fs /sys/fs/fuse /sys/fs/gfs2 /sys/fs/lustre \
    /sys/fs/nfs /sys/fs/nilfs2 /sys/fs/o2cb /sys/fs/ocfs2 /sys/fs/ocfs2_stack /sys/fs/orangefs /sys/fs/pstore /sys/fs/resctrl \
    /sys/fs/selinux /sys/fs/smackfs /sys/fs/tmpfs /sys/fs/ubifs /sys/fs/unicode /sys/fs/virtiofs /sys/fs/xfs \
    /sys/fs/zonefs /sys/hypervisor /sys/kernel /sys/module /sys/power";

/// Paths mounted read-only. Two of them are masked as well; either measure alone keeps them from being written.
const READONLY: &str = "/proc/fs /proc/irq /proc/sys";

/// Each path of /proc and /sys that is empty in a container, if it exists.
pub(super) fn masked_paths() -> impl Iterator<Item = &'static str> {
    MASKED_PROC.split_whitespace().chain(MASKED_SYS.split_whitespace())
}

/// Each path of /proc that no user can write in a container.
pub(super) fn readonly_paths() -> impl Iterator<Item = &'static str> {
    READONLY.split_whitespace()
}

#[cfg(test)]
mod tests;
