use super::*;
use crate::engine::InstanceId;
use crate::language::Language;
use crate::run::RunId;
use serde_json::{Value, json};

fn spec(language: Language, limits: Limits) -> ContainerSpec {
    ContainerSpec {
        image: "an/image:1".into(),
        language,
        limits,
        instance: InstanceId { home: "a1b2".into(), boot: "c3d4".into() },
        run: "0198f5e2a1b87c3d9e0f112233445566".parse::<RunId>().unwrap(),
    }
}

/// The owner's defaults: 60 s, 1 CPU, 512 MiB, 128 processes.
fn defaults() -> Limits {
    crate::settings::Settings::default().limits()
}

fn as_json(language: Language, limits: Limits) -> Value {
    serde_json::to_value(config(&spec(language, limits))).unwrap()
}

#[test]
fn the_whole_config_of_a_python_run() {
    let host = json!({
        "NetworkMode": "none",
        "Dns": ["0.0.0.0"],
        "DnsSearch": ["."],
        "ReadonlyRootfs": true,
        "Tmpfs": {
            "/sandbox": "rw,exec,nosuid,nodev,size=64m,nr_inodes=16384,mode=1777",
            "/tmp": "rw,noexec,nosuid,nodev,size=16m,nr_inodes=16384,mode=1777",
            "/dev/mqueue": "ro,noexec,nosuid,nodev,size=4k",
            "/run": "ro,noexec,nosuid,nodev,size=4k",
            "/var/tmp": "ro,noexec,nosuid,nodev,size=4k"
        },
        "IpcMode": "none",
        "MaskedPaths": [
            "/proc/acpi", "/proc/allocinfo", "/proc/asound", "/proc/bootconfig", "/proc/buddyinfo", "/proc/bus",
            "/proc/cmdline", "/proc/config.gz", "/proc/consoles", "/proc/crypto", "/proc/devices",
            "/proc/diskstats", "/proc/dma", "/proc/driver", "/proc/dynamic_debug", "/proc/execdomains",
            "/proc/fb", "/proc/fs", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/irq",
            "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecgroup",
            "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/locks", "/proc/mdstat",
            "/proc/misc", "/proc/modules", "/proc/mtrr", "/proc/pagetypeinfo", "/proc/partitions",
            "/proc/pressure", "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/slabinfo",
            "/proc/softirqs", "/proc/spl", "/proc/swaps", "/proc/sys/dev", "/proc/sys/kernel/random/boot_id",
            "/proc/sysrq-trigger", "/proc/timer_list", "/proc/timer_stats", "/proc/tty", "/proc/vmallocinfo",
            "/proc/vmcore", "/proc/xen", "/proc/zoneinfo", "/sys/block", "/sys/bus", "/sys/class", "/sys/dev",
            "/sys/devices", "/sys/firmware", "/sys/fs/afs", "/sys/fs/bcachefs", "/sys/fs/bpf", "/sys/fs/btrfs",
            "/sys/fs/ecryptfs", "/sys/fs/erofs", "/sys/fs/ext4", "/sys/fs/f2fs", "/sys/fs/fuse", "/sys/fs/gfs2",
            "/sys/fs/lustre", "/sys/fs/nfs", "/sys/fs/nilfs2", "/sys/fs/o2cb", "/sys/fs/ocfs2",
            "/sys/fs/ocfs2_stack", "/sys/fs/orangefs", "/sys/fs/pstore", "/sys/fs/resctrl", "/sys/fs/selinux",
            "/sys/fs/smackfs", "/sys/fs/tmpfs", "/sys/fs/ubifs", "/sys/fs/unicode", "/sys/fs/virtiofs",
            "/sys/fs/xfs", "/sys/fs/zonefs", "/sys/hypervisor", "/sys/kernel", "/sys/module", "/sys/power"
        ],
        "ReadonlyPaths": ["/proc/fs", "/proc/irq", "/proc/sys"],
        "Privileged": false,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", format!("seccomp={}", seccomp::profile())],
        "CgroupnsMode": "private",
        "Memory": 536_870_912,
        "MemorySwap": 536_870_912,
        "NanoCpus": 1_000_000_000,
        "PidsLimit": 128,
        "Ulimits": [
            { "Name": "core", "Soft": 0, "Hard": 0 },
            { "Name": "cpu", "Soft": 70, "Hard": 70 },
            { "Name": "fsize", "Soft": 67_108_864, "Hard": 67_108_864 },
            { "Name": "memlock", "Soft": 65_536, "Hard": 65_536 },
            { "Name": "msgqueue", "Soft": 0, "Hard": 0 },
            { "Name": "nofile", "Soft": 1024, "Hard": 1024 }
        ],
        "OomScoreAdj": 500,
        "LogConfig": { "Type": "none", "Config": {} },
        "RestartPolicy": { "Name": "no" },
        "AutoRemove": false,
        "Init": false,
        "PublishAllPorts": false
    });
    let expected = json!({
        "Image": "an/image:1",
        "Entrypoint": [
            "env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
            "LANG=C.UTF-8", "TMPDIR=/tmp", "sh", "-c", launcher::SEAL, "sandtray", launcher::SCRIPT, "main.py", "python3", "-u",
            "main.py"
        ],
        "Cmd": [],
        "Env": ["NVIDIA_VISIBLE_DEVICES=void"],
        "WorkingDir": "/",
        "User": "65534:65534",
        "Hostname": "sandbox",
        "AttachStdin": true,
        "AttachStdout": true,
        "AttachStderr": true,
        "OpenStdin": true,
        "StdinOnce": true,
        "Tty": false,
        "NetworkDisabled": true,
        "Healthcheck": { "Test": ["NONE"] },
        "StopSignal": "SIGKILL",
        "Labels": {
            "sandtray.instance": "a1b2-c3d4",
            "sandtray.run": "0198f5e2a1b87c3d9e0f112233445566"
        },
        "HostConfig": host
    });
    assert_eq!(as_json(Language::Python, defaults()), expected);
    // A check of its own: every setting that would let in the host's disk or devices is absent.
    for key in ["Binds", "Mounts", "VolumesFrom", "Devices", "DeviceRequests", "CapAdd", "GroupAdd", "PidMode"] {
        assert!(expected["HostConfig"].get(key).is_none(), "{key}");
    }
}

/// Preparing an image runs its programs as root, with a writable root and room for a compiler.
#[test]
fn preparing_an_image_has_the_walls_of_a_run() {
    let limits = Limits { milli_cpus: 1500, ..defaults() };
    let derivation = Derivation {
        base: "sha256:base".into(),
        name: "sandtray/go:1".into(),
        script: "true",
        path: "/bin",
        limits,
        instance: InstanceId { home: "a1b2".into(), boot: "c3d4".into() },
        run: "0198f5e2a1b87c3d9e0f112233445566".parse::<RunId>().unwrap(),
    };
    let prepares = serde_json::to_value(preparing(&derivation)).unwrap();
    let mut expected = as_json(Language::Go, limits)["HostConfig"].take();
    for (key, value) in [
        ("ReadonlyRootfs", json!(false)),
        ("Memory", json!(4_u64 << 30)),
        ("MemorySwap", json!(4_u64 << 30)),
        ("PidsLimit", json!(512)),
        (
            "Ulimits",
            json!([
                { "Name": "core", "Soft": 0, "Hard": 0 },
                { "Name": "fsize", "Soft": 1 << 30, "Hard": 1 << 30 },
                { "Name": "memlock", "Soft": 65_536, "Hard": 65_536 },
                { "Name": "msgqueue", "Soft": 0, "Hard": 0 },
                { "Name": "nofile", "Soft": 4096, "Hard": 4096 }
            ]),
        ),
    ] {
        expected[key] = value;
    }
    expected.as_object_mut().unwrap().remove("Tmpfs");
    assert_eq!(prepares["HostConfig"], expected);
    assert_eq!(
        (&prepares["User"], &prepares["Env"], &prepares["NetworkDisabled"]),
        (&json!("0:0"), &json!(["NVIDIA_VISIBLE_DEVICES=void"]), &json!(true))
    );
}

#[test]
fn the_limits_of_a_run_are_in_its_config() {
    let limits = Limits { millis: 2500, memory_bytes: 300 << 20, milli_cpus: 1500, processes: 17, ..defaults() };
    let host = &as_json(Language::Shell, limits)["HostConfig"];
    assert_eq!(host["Memory"], 314_572_800);
    assert_eq!(host["MemorySwap"], 314_572_800);
    assert_eq!(host["NanoCpus"], 1_500_000_000);
    assert_eq!(host["PidsLimit"], 17);
    // 3 s on each of 2 CPUs, and 10 to spare.
    assert_eq!(host["Ulimits"][1], json!({ "Name": "cpu", "Soft": 16, "Hard": 16 }));
}

#[test]
fn compiled_languages_get_a_larger_tmp_that_may_execute() {
    for (language, expected) in [
        (Language::Go, "rw,exec,nosuid,nodev,size=192m,nr_inodes=16384,mode=1777"),
        (Language::Rust, "rw,exec,nosuid,nodev,size=128m,nr_inodes=16384,mode=1777"),
        (Language::Shell, "rw,noexec,nosuid,nodev,size=16m,nr_inodes=16384,mode=1777"),
    ] {
        assert_eq!(as_json(language, defaults())["HostConfig"]["Tmpfs"]["/tmp"], expected);
    }
}
