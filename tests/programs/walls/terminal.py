"""Makes a terminal and tries what a kernel does beyond passing bytes: other line disciplines, input for other terminals."""
import ctypes, errno, fcntl, json, os, platform, pty, signal, struct, termios

libc = ctypes.CDLL(None, use_errno=True)
IOCTL = 16 if platform.machine() == "x86_64" else 29
TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD = 0x5412, 0x541C, 0x541D, 0x5423
TIOCGSERIAL, TIOCVHANGUP, KDSKBENT, SIOCETHTOOL, SIOCATMARK, FS_IOC_SETFLAGS = 0x541E, 0x5437, 0x4B47, 0x8946, 0x8905, 0x40086602
succeeded = []


def attempt(what, fd, number, argument):
    """Anything but EPERM got past the filter, whatever the kernel made of it."""
    buffer = ctypes.create_string_buffer(argument, 64)
    result = libc.syscall(ctypes.c_long(IOCTL), ctypes.c_long(fd), ctypes.c_ulong(number), ctypes.c_void_p(ctypes.addressof(buffer)))
    said = errno.errorcode[ctypes.get_errno()] if result == -1 else "0"
    if said != "EPERM":
        succeeded.append(f"{what}: {said}")


def disciplines():
    try:
        return open("/proc/tty/ldiscs").read()
    except OSError:
        return ""


# A terminal of the program's own works.
works = {}
parent, child = pty.openpty()
fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
works["size"] = list(struct.unpack("4H", fcntl.ioctl(parent, termios.TIOCGWINSZ, bytes(8)))[:2])
settings = termios.tcgetattr(child)
settings[3] &= ~(termios.ECHO | termios.ICANON)
termios.tcsetattr(child, termios.TCSANOW, settings)
os.write(parent, b"k")
works["key"] = os.read(child, 1).decode()
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "test -t 0 && stty size && tty >/dev/null && echo terminal"])
said = b""
try:
    while piece := os.read(fd, 100):
        said += piece
except OSError:
    pass  # Linux says EIO at the end
works["child"] = said.decode().split()
works["exit"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

before = disciplines()
parent, child = pty.openpty()
direct = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
for name, fd in (("ptmx", direct), ("parent", parent), ("child", child), ("a bad one", 4000)):
    for bits in (0, 1 << 32, 0xFFFFFFFF << 32):
        for discipline in range(1, 32):
            attempt(f"line discipline {discipline} of {name} with {bits:x}", fd, TIOCSETD | bits, struct.pack("i", discipline))
        for number in (TIOCSTI, TIOCLINUX, TIOCCONS, TIOCGSERIAL, TIOCVHANGUP, KDSKBENT, SIOCETHTOOL, SIOCATMARK, FS_IOC_SETFLAGS):
            attempt(f"ioctl {number:x} of {name} with {bits:x}", fd, number | bits, b"x")
if disciplines() != before:
    succeeded.append("a line discipline was loaded")
print(json.dumps({"succeeded": succeeded[:100], "works": works}))
