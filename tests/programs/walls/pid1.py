# PID 1 knows the nonce that makes its report on this program trustworthy. Neither it nor its helpers can be read or
# changed.
import ctypes, errno, json, os, re, resource, stat, struct

succeeded = []


def attempt(what, f):
    try:
        f()
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ESRCH):
            succeeded.append(f"{what}: {error.strerror}")
    else:
        succeeded.append(what)


def syscall(number, *arguments):
    """By the numbers of x86-64."""
    libc = ctypes.CDLL(None, use_errno=True)
    passed = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    if libc.syscall(ctypes.c_long(number), *passed) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def read(name):
    with open(name, "rb") as file:
        file.read(1)


me = str(os.getpid())
others = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != me]
tried = 0
for pid in others:
    for name in ("mem", "maps", "environ", "auxv", "stack", "syscall", "pagemap", "exe", "cwd", "root", "map_files", "fd", "personality"):
        path = f"/proc/{pid}/{name}"
        # A sleeping tool in the watchdog holds no secret; a shell does.
        if open(f"/proc/{pid}/comm").read() != "sh\n":
            continue
        tried += 1
        if name in ("exe", "cwd", "root"):
            attempt(f"link {path}", lambda: os.readlink(path))
        elif name in ("fd", "map_files"):
            attempt(f"list {path}", lambda: os.listdir(path))
            for number in range(10):
                attempt(f"read {path}/{number}", lambda: os.open(f"{path}/{number}", os.O_RDONLY | os.O_NONBLOCK))
        else:
            attempt(f"read {path}", lambda: read(path))
    if open(f"/proc/{pid}/comm").read() == "sh\n":
        attempt(f"write {pid}/mem", lambda: os.open(f"/proc/{pid}/mem", os.O_RDWR))
        if pid == "1":
            attempt("turns of 1", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
            attempt("turns of 1, with higher bits", lambda: syscall(144, 1 << 32 | 1, os.SCHED_IDLE, bytes(4)))
            attempt("turns of 1 by another call", lambda: syscall(314, 1, struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0), 0))
            attempt("priority of 1", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
            attempt("priority of its group", lambda: os.setpriority(os.PRIO_PGRP, 1, 19))
            attempt("priority of its user", lambda: os.setpriority(os.PRIO_USER, 0, 19))
            attempt("processors of 1", lambda: os.sched_setaffinity(1, [0]))
            attempt("processors of 1, with higher bits", lambda: syscall(203, 1 << 32 | 1, 8, b"\1" + bytes(7)))
        attempt(f"limits of {pid}", lambda: resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (0, 0)))
        attempt(f"write {pid}/oom_score_adj", lambda: open(f"/proc/{pid}/oom_score_adj", "w").write("1000"))

# Everything that PID 1 wrote and read so far went through pipes that this program has too. The secret was not in it.
found = b""
for descriptor in (0, 1, 2):
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        try:
            pipe = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)
            found += os.read(pipe, 65536)
        except OSError:
            pass
if re.search(rb"[0-9a-f]{32}", found):
    succeeded.append(f"read the nonce in a pipe: {found!r}")
# The files of the launcher are gone or empty.
for folder in ("/sandbox", "/tmp"):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and name != "main.py" and re.search(rb"[0-9a-f]{32}", open(path, "rb").read()):
            succeeded.append(f"read the nonce in {path}")
print(json.dumps({"succeeded": succeeded, "tried": tried}))
