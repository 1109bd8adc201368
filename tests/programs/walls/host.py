"""Looks for anything of the host. Standard input: {"secret": a text, "files": [paths of the host that hold it]}."""
import json, os, socket, sys

told = json.loads(sys.stdin.read() or "{}")
secret = told.get("secret", "")
succeeded = []


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20).decode(errors="replace")
    except OSError:
        return ""


OURS = {"PATH", "HOME", "LANG", "TMPDIR"}
SHELL = {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
environment = set()
for pid in ("1", "self"):
    environment |= {entry.split("=")[0] for entry in read(f"/proc/{pid}/environ").split("\0") if entry}
environment |= set(os.environ)
succeeded += [f"environment {name}" for name in sorted(environment - OURS - SHELL)]
succeeded += [f"no environment {name}" for name in sorted(OURS - environment)]

for path in told.get("files", []):
    if os.path.lexists(path):
        succeeded.append(f"sees {path}")
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
             "/host", "/mnt/host", "/Users", "/dev/vda", "/dev/sda", "/dev/kmsg", "/dev/mem", "/dev/fuse", "/dev/kvm",
             "/dev/net/tun", "/dev/shm"):
    if os.path.lexists(path):
        succeeded.append(f"sees {path}")
for path in ("/proc/cmdline", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list", "/proc/sched_debug",
             "/proc/interrupts", "/proc/partitions", "/proc/diskstats", "/proc/swaps", "/proc/modules",
             "/proc/kallsyms", "/proc/config.gz", "/proc/iomem", "/proc/ioports", "/proc/vmallocinfo",
             "/proc/pressure/cpu", "/sys/class/dmi/id/product_name", "/sys/devices/virtual/dmi/id/sys_vendor",
             "/sys/kernel/notes", "/sys/kernel/vmcoreinfo", "/sys/firmware/acpi/tables/DSDT"):
    if read(path):
        succeeded.append(f"reads {path}")
for path in ("/sys/block", "/sys/bus", "/sys/class/block", "/sys/dev", "/sys/firmware", "/sys/kernel", "/sys/module"):
    if os.path.isdir(path) and os.listdir(path):
        succeeded.append(f"lists {path}")
names = {os.uname().nodename, socket.gethostname(), read("/etc/hostname").strip(), read("/proc/sys/kernel/hostname").strip()}
succeeded += [f"host name {name}" for name in sorted(names - {"sandbox", ""})]
for line in read("/etc/resolv.conf").splitlines():
    if line.split("#")[0].strip() not in ("", "nameserver 0.0.0.0", "search .", "options ndots:0"):
        succeeded.append(f"resolv.conf: {line}")
for line in read("/etc/hosts").splitlines():
    if not set(line.split("#")[0].split()[1:]) <= {"localhost", "ip6-localhost", "ip6-loopback", "ip6-localnet",
                                                  "ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters", "sandbox"}:
        succeeded.append(f"hosts: {line}")
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and os.stat(f"/proc/{pid}").st_uid != os.getuid()]
succeeded += [f"process {pid} of another user" for pid in others]
if secret:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("environ", "cmdline", "mountinfo"):
            if secret in read(f"/proc/{pid}/{name}"):
                succeeded.append(f"the secret in /proc/{pid}/{name}")
print(json.dumps({"succeeded": succeeded}))
