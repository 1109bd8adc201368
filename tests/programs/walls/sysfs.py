"""Looks for the name of any disk, driver or device in /sys and /proc. What is left to see there are control groups and figures."""
import json, os, re

NAMES = re.compile(r"(block/\w+|loop/backing_file|dm/name|serial|uniq|edid|thermal_throttle|modalias|driver|address|firmware_node)$")
HIDDEN = ("/sys/devices", "/sys/class", "/sys/block", "/sys/bus", "/sys/dev", "/sys/module", "/sys/power", "/sys/hypervisor",
          "/proc/fs", "/proc/irq", "/proc/tty", "/proc/sys/dev", "/proc/driver", "/proc/bus", "/proc/scsi", "/proc/spl")
FILES = ("misc", "crypto", "locks", "mtrr", "dma", "fb", "execdomains", "schedstat", "devices", "consoles", "bootconfig",
         "dynamic_debug/control", "interrupts", "softirqs", "modules", "partitions", "diskstats", "swaps", "mdstat")
succeeded = []


def first(path):
    try:
        with open(path, "rb") as file:
            return file.read(1)
    except OSError:
        return b""


def entries(top):
    for at, folders, files in os.walk(top):
        if at == "/sys/fs" and "cgroup" in folders:
            folders.remove("cgroup")
        for name in folders + files:
            yield f"{at}/{name}"


def some(what, paths):
    """The first few of each place are enough."""
    found = [f"{what}: {path}" for path in paths]
    succeeded.extend(found[:5])


for name in FILES:
    some("read", [f"/proc/{name}"] if first(f"/proc/{name}") else [])
for top in HIDDEN:
    some("listed", entries(top))
some("named", (path for path in entries("/sys") if NAMES.search(path)))
some("file system", (path for path in entries("/sys/fs") if os.path.dirname(path) != "/sys/fs"))
# The files that programs need are there.
limits = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
needed = {"limits": any(map(first, limits)), "cpus": os.cpu_count() == len(os.sched_getaffinity(0)),
          "cpuinfo": bool(first("/proc/cpuinfo")), "random": len(open("/proc/sys/kernel/random/uuid").read()) == 37}
print(json.dumps({"succeeded": succeeded, "needed": needed}))
