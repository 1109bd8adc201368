"""Tries to become more than nobody, in every way that needs no bug of the kernel."""
import ctypes, json, mmap, os, platform, signal, stat, struct, subprocess, time

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
succeeded, seen = [], {}


def attempt(what, action):
    """In a child of its own: what succeeds there does not change what is tried next."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status == 0:
        succeeded.append(what)
    return status


def call(*args):
    if libc.syscall(*[ctypes.c_long(a) for a in args]) < 0:
        raise OSError(ctypes.get_errno(), "refused")


attempt("setuid(0)", lambda: os.setuid(0))
attempt("setgid(0)", lambda: os.setgid(0))
attempt("setresuid(0, 0, 0)", lambda: os.setresuid(0, 0, 0))
attempt("setgroups([0])", lambda: os.setgroups([0]))


def header():
    global kept_header
    kept_header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
    return ctypes.addressof(kept_header)


def everything():
    global kept_data
    kept_data = ctypes.create_string_buffer(struct.pack("6I", *[0xFFFFFFFF] * 6))
    return ctypes.addressof(kept_data)


attempt("capset of every capability", lambda: call(126 if X86 else 91, header(), everything()))
NAMESPACES = {"user": 0x10000000, "mount": 0x20000, "pid": 0x20000000, "net": 0x40000000, "uts": 0x4000000,
              "ipc": 0x8000000, "cgroup": 0x2000000, "time": 0x80}
for name, flag in NAMESPACES.items():
    attempt(f"unshare {name}", lambda: call(272 if X86 else 97, flag))
    attempt(f"unshare user and {name}", lambda: call(272 if X86 else 97, flag | NAMESPACES["user"]))
    if name != "time":
        attempt(f"clone {name}", lambda: call(56 if X86 else 220, flag | signal.SIGCHLD, 0, 0, 0, 0))
        attempt(f"clone user and {name}", lambda: call(56 if X86 else 220, flag | NAMESPACES["user"] | 17, 0, 0, 0, 0))
    arguments = ctypes.create_string_buffer(struct.pack("11Q", flag, 0, 0, 0, signal.SIGCHLD, *[0] * 6))
    attempt(f"clone3 {name}", lambda: call(435, ctypes.addressof(arguments), 88))
for name in os.listdir("/proc/self/ns"):
    attempt(f"setns {name}", lambda: call(308 if X86 else 268, os.open(f"/proc/1/ns/{name}", os.O_RDONLY), 0))

PTRACE, TRACEME, ATTACH, DETACH, SEIZE = (101 if X86 else 117), 0, 16, 17, 0x4206


def attach():
    call(PTRACE, ATTACH, 1, 0, 0)
    # It stands still now, and may be the one who waits for this child.
    os.waitpid(1, 0)
    call(PTRACE, DETACH, 1, 0, 0)


attempt("ptrace itself", lambda: call(PTRACE, TRACEME, 0, 0, 0))
attempt("ptrace PID 1", attach)
attempt("seize PID 1", lambda: call(PTRACE, SEIZE, 1, 0, 0))
attempt("seize its parent", lambda: call(PTRACE, SEIZE, os.getppid(), 0, 0))

# Programs of the image that run as somebody else, root above all. Those that ask for a password wait for it.
programs = []
for folder in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib"):
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            try:
                mode = os.lstat(path).st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                programs.append(path)
seen["set_id_programs"] = len(programs)
for path in sorted(set(map(os.path.realpath, programs))):
    child = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(20):
        try:
            status = open(f"/proc/{child.pid}/status").read()
        except OSError:
            break
        ids = {word for line in status.splitlines() if line.startswith(("Uid:", "Gid:")) for word in line.split()[1:]}
        if ids - {str(os.getuid()), str(os.getgid())}:
            succeeded.append(f"{path} runs as {sorted(ids)}")
            break
        time.sleep(0.005)
    child.kill()
    child.wait()
# One of our own, should the folder honour it.
os.makedirs("/sandbox/out", exist_ok=True)
subprocess.run(["cp", "/bin/cat", "/sandbox/out/suid"], check=True)
os.chmod("/sandbox/out/suid", 0o6777)
seen["own_set_id"] = oct(os.stat("/sandbox/out/suid").st_mode & 0o7000)
os.unlink("/sandbox/out/suid")

if X86:
    # The 32-bit doors: int 0x80 has other numbers and other argument registers, x32 a bit in the number.
    def int80(nr):
        code = b"\x53\xb8" + struct.pack("<I", nr) + b"\x31\xdb\x31\xc9\x31\xd2\x31\xf6\x31\xff\xcd\x80\x5b\xc3"
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(code)
        function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        assert function() not in (-1, -38)

    ends = set()
    # getpid, ptrace, mount, socketcall, unshare, io_uring_setup, clone3
    for nr in (20, 26, 21, 102, 310, 425, 435):
        ends.add(attempt(f"int 0x80 number {nr}", lambda: int80(nr)) & 0x7F)
    seen["int_0x80_ends_by_signal"] = sorted(ends)
    for nr in (39, 521, 41):
        attempt(f"x32 number {nr}", lambda: call(0x40000000 | nr, 0, 0, 0, 0))
print(json.dumps({"succeeded": succeeded, **seen}))
