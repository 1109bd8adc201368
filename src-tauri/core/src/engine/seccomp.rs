//! The allow list of system calls, handed to the engine as JSON.
//!
//! It is the same for all languages. The kernel refuses every other call with EPERM, whatever the engine's own profile
//! says. Calls that user space is known to do without are refused with ENOSYS, so that it falls back.

mod arguments;

use std::sync::LazyLock;

use serde_json::{Value, json};

/// The profile in the form that an engine expects after `seccomp=`. One text serves every engine: it names the native
/// architectures of both supported machines, and the engine keeps the entry of its own.
pub fn profile() -> &'static str {
    static PROFILE: LazyLock<String> = LazyLock::new(|| build().to_string());
    &PROFILE
}

/// `ionice` calls it. Unlike nearly every other call that is refused here, the default profiles of Docker and Podman
/// allow it to any user, and a shell can try it. So it shows [`super::walls`] that the profile in force is Sandtray's.
pub const CANARY: &str = "ioprio_set";

/// Includes `fstatfs` for runc, which looks at /proc after the filter is in force.
const FILES: &str = "\
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 \
    fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock \
    fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr \
    inotify_add_watch inotify_init inotify_init1 inotify_rm_watch lchown lgetxattr link linkat listxattr \
    llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat newfstatat open openat openat2 pipe pipe2 pread64 \
    preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr rename renameat \
    renameat2 rmdir sendfile setxattr splice stat statfs statx symlink symlinkat sync_file_range tee truncate umask \
    unlink unlinkat utime utimensat utimes write writev";

const MEMORY: &str = "\
    brk get_mempolicy madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync \
    munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect";

/// Includes calls that change identity: without capabilities and with no-new-privileges they change nothing, and
/// busybox dies if `setuid(getuid())` is refused.
const PROCESSES: &str = "\
    capget capset execve execveat exit exit_group fork getegid geteuid getgid getgroups getpgid getpgrp getpid \
    getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid ioprio_get kill pidfd_open \
    pidfd_send_signal sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr \
    sched_getparam sched_getscheduler sched_rr_get_interval sched_yield setfsgid setfsuid setgid setgroups setpgid setregid setresgid \
    setresuid setreuid setrlimit setsid setuid tgkill tkill uname vfork wait4 waitid";

const THREADS_AND_SIGNALS: &str = "\
    futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list getcpu pause restart_syscall rseq \
    rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait \
    rt_tgsigqueueinfo set_robust_list set_tid_address sigaltstack signalfd signalfd4";

/// Reading clocks and waiting, but not setting a clock.
const TIME_AND_WAITING: &str = "\
    alarm clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 \
    epoll_wait eventfd eventfd2 getitimer getrandom gettimeofday nanosleep poll ppoll pselect6 select setitimer \
    sysinfo time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create \
    timerfd_gettime timerfd_settime times";

/// Calls on an existing socket. [`socket_rules`] decides which sockets there can be; [`arguments`] decides which
/// messages and options are allowed.
const SOCKETS: &str = "accept accept4 bind connect getpeername getsockname listen shutdown";

/// Refused with ENOSYS, as if the kernel did not know them. Their users probe and fall back on ENOSYS alone: glibc from
/// `clone3` (whose flags are in memory, where a filter cannot look) to `clone`, libuv and others from io_uring to
/// epoll.
const UNKNOWN: &str = "\
    clone3 fanotify_init fanotify_mark io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit \
    io_uring_enter io_uring_register io_uring_setup landlock_add_rule landlock_create_ruleset landlock_restrict_self \
    listmount mbind memfd_secret mq_open mq_unlink msgget process_madvise process_mrelease seccomp semget \
    set_mempolicy shmget statmount userfaultfd";

/// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET together.
const NAMESPACE_FLAGS: u64 = 0x7e02_0000;

const AF_UNIX: u64 = 1;
const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;
const AF_NETLINK: u64 = 16;

/// The `type` of a socket without the flags that may be or-ed into it.
const SOCK_TYPE: u64 = 0xf;
const SOCK_STREAM: u64 = 1;
const SOCK_DGRAM: u64 = 2;
const IPPROTO_TCP: u64 = 6;
const IPPROTO_UDP: u64 = 17;

/// The bits of a file mode that hold the kind of file.
const FILE_KIND: u64 = 0o170_000;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
const EAFNOSUPPORT: u32 = 97;

fn build() -> Value {
    let mut rules: Vec<Value> = [FILES, MEMORY, PROCESSES, THREADS_AND_SIGNALS, TIME_AND_WAITING, SOCKETS]
        .into_iter()
        .map(|names| allow(names, &[]))
        .collect();

    // Thread-local storage on x86-64. Other machines do not have this call.
    rules.push(on(&["amd64"], allow("arch_prctl", &[])));
    // Threads and children, in the existing namespaces. On a machine whose `clone` takes its flags in another argument
    // there is no rule, so no process can start, and no run.
    rules.push(on(&["amd64", "arm64"], allow("clone", &[masked(0, NAMESPACE_FLAGS, 0)])));
    // Reading the execution domain, and setting the plain Linux one. No domain that turns off address randomisation.
    for domain in [0, 0xffff_ffff] {
        rules.push(allow("personality", &[equal(0, domain)]));
    }
    // Regular files, fifos and sockets, but no device nodes, even if a capability should be left by mistake.
    for kind in [0, 0o100_000, 0o010_000, 0o140_000] {
        rules.push(allow("mknod", &[masked(1, FILE_KIND, kind)]));
        rules.push(allow("mknodat", &[masked(2, FILE_KIND, kind)]));
    }
    rules.extend(socket_rules());
    rules.extend(arguments::rules());
    rules.push(refuse(UNKNOWN, ENOSYS, &[]));

    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        // The engine picks the entry of its own architecture. No 32-bit architecture is listed beneath: through `int
        // 0x80` a program would reach ptrace, io_uring and, by way of socketcall (whose arguments a filter cannot see),
        // every socket family.
        "archMap": [
            { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": [] },
            { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": [] },
        ],
        "syscalls": rules,
    })
}

/// Rules for making sockets. There is no network, so an internet socket reaches only a server in the same container;
/// programs like to test themselves that way. Every other family (VSOCK reaches the machine underneath, the rest are
/// kernel surface), raw sockets and the rarer protocols are refused.
fn socket_rules() -> Vec<Value> {
    let mut rules = vec![
        // Event loops use it to wake themselves.
        allow("socketpair", &[equal(0, AF_UNIX)]),
        allow("socket", &[equal(0, AF_UNIX)]),
        // Used to list network interfaces. EAFNOSUPPORT is the true answer; on EPERM Node throws, and Go returns the
        // error.
        refuse("socket", EAFNOSUPPORT, &[equal(0, AF_NETLINK)]),
    ];
    for family in [AF_INET, AF_INET6] {
        for (kind, protocols) in [(SOCK_STREAM, [0, IPPROTO_TCP]), (SOCK_DGRAM, [0, IPPROTO_UDP])] {
            for protocol in protocols {
                let args = [equal(0, family), masked(1, SOCK_TYPE, kind), equal(2, protocol)];
                rules.push(allow("socket", &args));
            }
        }
    }
    rules
}

/// `names` are separated by blanks.
fn allow(names: &str, args: &[Value]) -> Value {
    let names: Vec<&str> = names.split_whitespace().collect();
    json!({ "names": names, "action": "SCMP_ACT_ALLOW", "args": args })
}

fn refuse(names: &str, errno: u32, args: &[Value]) -> Value {
    let names: Vec<&str> = names.split_whitespace().collect();
    json!({ "names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": args })
}

/// Restricts the rule to engines on these machines.
fn on(arches: &[&str], mut rule: Value) -> Value {
    rule["includes"] = json!({ "arches": arches });
    rule
}

fn equal(index: u32, value: u64) -> Value {
    json!({ "index": index, "value": value, "op": "SCMP_CMP_EQ" })
}

/// `argument & mask == value`
fn masked(index: u32, mask: u64, value: u64) -> Value {
    json!({ "index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashSet};

    /// Every rule of the profile, by the names of its calls.
    fn rules() -> BTreeMap<String, Vec<Value>> {
        let profile: Value = serde_json::from_str(profile()).unwrap();
        let mut rules: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for rule in profile["syscalls"].as_array().unwrap() {
            for name in rule["names"].as_array().unwrap() {
                rules.entry(name.as_str().unwrap().to_owned()).or_default().push(rule.clone());
            }
        }
        rules
    }

    #[test]
    fn no_name_stands_in_two_groups() {
        let mut seen = HashSet::new();
        let groups = [FILES, MEMORY, PROCESSES, THREADS_AND_SIGNALS, TIME_AND_WAITING, SOCKETS, UNKNOWN];
        for name in groups.into_iter().flat_map(str::split_whitespace) {
            assert!(seen.insert(name), "{name} stands twice");
        }
    }

    #[test]
    fn what_the_design_forbids_is_allowed_nowhere() {
        let rules = rules();
        for name in "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd io_uring_setup io_uring_enter \
            io_uring_register keyctl add_key request_key bpf userfaultfd perf_event_open mount umount2 open_tree \
            move_mount fsopen fsconfig fsmount fspick pivot_root mount_setattr chroot unshare setns clone3 quotactl \
            quotactl_fd swapon swapoff reboot kexec_load kexec_file_load init_module finit_module delete_module iopl \
            ioperm lookup_dcookie name_to_handle_at open_by_handle_at acct settimeofday clock_settime clock_adjtime \
            adjtimex vhangup fanotify_init sethostname setdomainname syslog modify_ldt vmsplice socketcall ioprio_set \
            sync syncfs ipc nfsservctl uselib ustat sysfs migrate_pages move_pages shmget semget msgget mq_open"
            .split_whitespace()
        {
            let allowed = rules.get(name).is_some_and(|rules| rules.iter().any(|r| r["action"] == "SCMP_ACT_ALLOW"));
            assert!(!allowed, "{name} is allowed");
        }
        assert!(!rules.contains_key(CANARY));
    }

    #[test]
    fn what_has_harmless_and_harmful_arguments_is_never_allowed_whole() {
        let rules = rules();
        for name in "clone personality mknod mknodat socket socketpair ioctl prctl setsockopt getsockopt sendto sendmsg sendmmsg \
            recvfrom recvmsg recvmmsg prlimit64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler setpriority"
            .split_whitespace()
        {
            for rule in &rules[name] {
                assert!(!rule["args"].as_array().unwrap().is_empty(), "{name} is allowed with any argument");
            }
        }
    }

    #[test]
    fn only_native_architectures_are_open() {
        let profile: Value = serde_json::from_str(profile()).unwrap();
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        assert_eq!(
            profile["archMap"],
            json!([
                { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": [] },
                { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": [] },
            ])
        );
        assert!(profile.get("architectures").is_none());
    }
}
