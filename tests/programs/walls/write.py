"""Tries to make a file of every kind in every folder there is, and to open for writing every file there is."""
import errno, json, os, socket, stat

ALLOWED = ("/sandbox", "/tmp")
# What a process may write about itself is no place on any disk; and all processes here are this run's own.
OWN = {"self", "thread-self", *filter(str.isdigit, os.listdir("/proc"))}
succeeded, folders, files = [], 0, 0


def makers(folder):
    path = os.path.join(folder, ".sandtray-write")

    def unix_socket():
        # Beside itself: the name of a socket may be 107 bytes long only.
        os.chdir(folder)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(".sandtray-write")

    yield "file", path, lambda: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    yield "folder", path, lambda: os.mkdir(path)
    yield "symlink", path, lambda: os.symlink("/sandbox", path)
    yield "hard link", path, lambda: os.link(__file__, path)
    yield "hard link to itself", path, lambda: os.link(first_file(folder), path)
    yield "fifo", path, lambda: os.mkfifo(path)
    yield "socket", path, unix_socket
    yield "character device", path, lambda: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    yield "block device", path, lambda: os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(8, 0))
    yield "unnamed file", None, lambda: os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    yield "mode", None, lambda: os.chmod(folder, 0o777)
    yield "times", None, lambda: os.utime(folder)
    yield "attribute", None, lambda: os.setxattr(folder, "user.sandtray", b"1")


def first_file(folder):
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                return entry.path
    raise OSError(errno.ENOENT, "no file")


def inside(path):
    return any(path == place or path.startswith(place + "/") for place in ALLOWED)


def try_folder(folder):
    for kind, path, make in makers(folder):
        try:
            make()
        except OSError:
            continue
        device = kind.endswith("device")
        if device or not inside(folder):
            succeeded.append(f"{kind} in {folder}")
        if path:
            (os.rmdir if kind == "folder" else os.unlink)(path)


def try_file(path):
    if inside(path):
        return
    for how, flags in (("write", os.O_WRONLY), ("append", os.O_WRONLY | os.O_APPEND), ("truncate", os.O_WRONLY | os.O_TRUNC)):
        try:
            # Nothing is written, and nothing waits.
            fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            continue
        # Over what the engine hides lies the null device.
        if not stat.S_ISCHR(os.fstat(fd).st_mode):
            succeeded.append(f"{how} {path}")
        os.close(fd)


def walk(folder):
    global folders, files
    folders += 1
    try_folder(folder)
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        path = entry.path
        if folder == "/proc" and (entry.name in OWN or entry.name == "1"):
            continue
        if entry.is_dir(follow_symlinks=False):
            walk(path)
        elif entry.is_file(follow_symlinks=False):
            files += 1
            try_file(path)


walk("/")
devices = [e.path for e in os.scandir("/dev") if stat.S_ISBLK(e.stat(follow_symlinks=False).st_mode)]
succeeded += [f"block device {path}" for path in devices]
print(json.dumps({"succeeded": succeeded[:100], "folders": folders, "files": files}))
