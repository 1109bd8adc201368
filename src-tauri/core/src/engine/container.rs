//! From what a container is for to what an engine is asked to make: every wall that keeps a program in, each with the
//! reason why it is there. Pure; whether an engine really holds them is seen by [`super::walls`].

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, ResourcesUlimits,
    RestartPolicy, RestartPolicyNameEnum,
};

use super::{ContainerSpec, Derivation, LABEL_INSTANCE, LABEL_RUN, seccomp};
use crate::launcher;
use crate::run::Limits;

/// The working folder. No image has it, and so Docker's tmpfs keeps the mode that it is given.
pub const WORK: &str = "/sandbox";
pub const WORK_MIB: u32 = 64;
pub const TMP: &str = "/tmp";
/// Files and folders that each of the two writable places can hold. An empty file costs kernel memory too.
pub const INODES: u32 = 16_384;

/// Nobody, in the container as on the host: owns no file of any image.
pub const UID: u32 = 65_534;
pub const HOSTNAME: &str = "sandbox";

/// The environment's names; all that a program finds in it.
pub const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

pub const NOFILE: i64 = 1024;
/// No single file is larger. Otherwise a sparse one could claim a terabyte, which whoever reads it has to believe.
pub const FILE_BYTES: i64 = (WORK_MIB as i64) << 20;
/// Locked memory cannot be reclaimed, and nothing here needs any.
pub const MEMLOCK_BYTES: i64 = 64 << 10;

/// The config with all its walls. Nothing in it depends on where the engine is: no path of the host is named.
pub fn config(spec: &ContainerSpec) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(spec.image.clone()),
        entrypoint: Some(entrypoint(spec)),
        cmd: Some(Vec::new()),
        env: Some(for_the_runtime()),
        // Were it the working folder, Docker would hand that folder to root.
        working_dir: Some("/".into()),
        user: Some(format!("{UID}:{UID}")),
        // Not the host's name, nor an id by which a program could find itself in the engine's books.
        hostname: Some(HOSTNAME.into()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // The end of our input is the program's end-of-file.
        stdin_once: Some(true),
        // A terminal would merge the streams, change their bytes, and let a program push input with TIOCSTI.
        tty: Some(false),
        // Together with the network mode: so no endpoint is even set up, which also saves 80 ms of each start.
        network_disabled: Some(true),
        // An image may bring a health check: a process that we did not start, in a container that is counted out.
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".into()]), ..Default::default() }),
        // Nothing here deserves a warning before it ends, whoever stops it.
        stop_signal: Some("SIGKILL".into()),
        labels: Some(HashMap::from([
            (LABEL_INSTANCE.into(), spec.instance.to_string()),
            (LABEL_RUN.into(), spec.run.to_string()),
        ])),
        host_config: Some(host_config(spec)),
        ..Default::default()
    }
}

/// For a script of our own that changes an image of the owner's choice. The root is writable and owned by root, and the
/// memory, processes and file sizes suffice for a compiler. All else is as for a run, since the programs are the
/// image's. The caller watches how much it writes, since few engines can bound a root file system.
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

/// The image's own variables cannot be removed here, only by `env -i`. Some runtimes obey one of them: NVIDIA's gives a
/// container the host's devices and drivers if its image asks, as every image for CUDA does. This overrides it.
fn for_the_runtime() -> Vec<String> {
    vec!["NVIDIA_VISIBLE_DEVICES=void".into()]
}

/// PID 1 itself starts in a clean environment: what the image set (or the engine: HOSTNAME) is dropped by `env -i`
/// before the first line of the script, so that not even /proc/1/environ holds it.
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
        // Without these two the host's resolv.conf is copied in: its name servers, and the domains it lives in.
        dns: Some(vec!["0.0.0.0".into()]),
        dns_search: Some(vec![".".into()]),

        readonly_rootfs: Some(true),
        // Shared memory would be one more writable place: /dev/shm is not even there.
        ipc_mode: Some("none".into()),
        masked_paths: Some(masked_paths().map(str::to_owned).collect()),
        readonly_paths: Some(readonly_paths().map(str::to_owned).collect()),

        privileged: Some(false),
        cap_drop: Some(vec!["ALL".into()]),
        security_opt: Some(vec![
            // No set-user-id program of the image gives anything.
            "no-new-privileges:true".into(),
            // Passed as text: a path would be read on this machine by some engines and on theirs by others.
            format!("seccomp={}", seccomp::profile()),
        ]),
        // The engine's own tree of control groups stays out of sight, and with it the container's id.
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),

        memory: Some(memory),
        // Memory and swap together: the same figure means no swap at all.
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(limits.milli_cpus) * 1_000_000),
        // A fork bomb stops here. (RLIMIT_NPROC cannot do it: it counts a user's processes in all containers together.)
        pids_limit: Some(i64::from(limits.processes)),
        // When the machine itself runs short, runs go before anything of the owner's. Not the greatest value: the
        // launcher may raise the program's further, so that the kernel does not pick PID 1.
        oom_score_adj: Some(500),

        // The output is read from the attached streams. json-file would write all of it to the host's disk once more.
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: Some(HashMap::new()) }),
        // Used once: the engine must not start it again, and it is we who remove it, after its last word is read.
        restart_policy: Some(RestartPolicy { name: Some(RestartPolicyNameEnum::NO), maximum_retry_count: None }),
        auto_remove: Some(false),
        // PID 1 is the launcher, which reaps and kills by itself; an init of the engine's would be a file bound in.
        init: Some(false),
        publish_all_ports: Some(false),
        ..Default::default()
    }
}

/// The two writable places; and read-only nothing over those that some engine leaves writable in a read-only root.
/// The memory of all of them is the container's own and counts against its limit.
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
        // The kernel's message queues are files that anybody may make, whatever the IPC mode.
        ("/dev/mqueue".into(), nothing.into()),
        // Podman mounts these writable beside a read-only root.
        ("/run".into(), nothing.into()),
        ("/var/tmp".into(), nothing.into()),
    ])
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    [
        // A core file is a copy of memory, written where the host's kernel says.
        ("core", 0),
        // A backstop should every deadline fail: wall seconds on every CPU, and some to spare. It counts for each process.
        ("cpu", cpu_seconds(limits)),
        ("fsize", FILE_BYTES),
        ("memlock", MEMLOCK_BYTES),
        // The kernel counts message queues by user, across containers.
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

/// Paths of /proc and /sys that describe the machine, hidden. Naming any replaces the engine's own list, so this holds
/// all that engines hide, from the oldest to the newest. The newest hides each CPU's `thermal_throttle`, a part of
/// /sys/devices.
///
/// The runtime skips a path that the kernel does not have. Whole folders are hidden where possible, since a hidden name
/// in one may be a link into another. The rest is meant to be seen: the number of CPUs comes from the scheduler and
/// from /proc/cpuinfo, limits come from /sys/fs/cgroup.
const MASKED_PROC: &str = "\
    /proc/acpi /proc/allocinfo /proc/asound /proc/bootconfig /proc/buddyinfo /proc/bus /proc/cmdline /proc/config.gz \
    /proc/consoles /proc/crypto /proc/devices /proc/diskstats /proc/dma /proc/driver /proc/dynamic_debug \
    /proc/execdomains /proc/fb /proc/fs /proc/interrupts /proc/iomem /proc/ioports /proc/irq /proc/kallsyms \
    /proc/kcore /proc/key-users /proc/keys /proc/kmsg /proc/kpagecgroup /proc/kpagecount /proc/kpageflags \
    /proc/latency_stats /proc/locks /proc/mdstat /proc/misc /proc/modules /proc/mtrr /proc/pagetypeinfo \
    /proc/partitions /proc/pressure /proc/sched_debug /proc/schedstat /proc/scsi /proc/slabinfo /proc/softirqs \
    /proc/spl /proc/swaps /proc/sys/dev /proc/sys/kernel/random/boot_id /proc/sysrq-trigger /proc/timer_list \
    /proc/timer_stats /proc/tty /proc/vmallocinfo /proc/vmcore /proc/xen /proc/zoneinfo";
/// Everything but /sys/fs/cgroup. File systems have a folder below /sys/fs for each disk that they use.
const MASKED_SYS: &str = "\
    /sys/block /sys/bus /sys/class /sys/dev /sys/devices /sys/firmware /sys/fs/afs /sys/fs/bcachefs /sys/fs/bpf \
    /sys/fs/btrfs /sys/fs/ecryptfs /sys/fs/erofs /sys/fs/ext4 /sys/fs/f2fs /sys/fs/fuse /sys/fs/gfs2 /sys/fs/lustre \
    /sys/fs/nfs /sys/fs/nilfs2 /sys/fs/o2cb /sys/fs/ocfs2 /sys/fs/ocfs2_stack /sys/fs/orangefs /sys/fs/pstore /sys/fs/resctrl \
    /sys/fs/selinux /sys/fs/smackfs /sys/fs/tmpfs /sys/fs/ubifs /sys/fs/unicode /sys/fs/virtiofs /sys/fs/xfs \
    /sys/fs/zonefs /sys/hypervisor /sys/kernel /sys/module /sys/power";

/// Two of them are masked as well; either measure alone keeps them from being written.
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
