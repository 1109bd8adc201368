"""Fills both writable places with bytes, then with files; and asks for files larger than any may be."""
import errno, json, os, shutil, signal

CAPS = {"/sandbox": (64 << 20, 16384), "/tmp": (192 << 20, 16384)}
PROGRAM = os.stat(__file__).st_blocks * 512
succeeded, seen = [], {"program_bytes": PROGRAM}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
BLOCK = b"x" * 65536
for place, (most_bytes, most_files) in CAPS.items():
    folder = os.path.join(place, "fill")
    os.mkdir(folder)
    written, number, end = 0, 0, None
    while written <= most_bytes * 2 and end != errno.ENOSPC:
        number += 1
        fd = os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY)
        try:
            while written <= most_bytes * 2:
                written += os.write(fd, BLOCK)
        except OSError as error:
            end = error.errno
        os.close(fd)
    if end != errno.ENOSPC or written > most_bytes:
        succeeded.append(f"{written} bytes in {place}")
    shutil.rmtree(folder)
    os.mkdir(folder)
    count, end = 0, None
    while count <= most_files * 2 and end is None:
        try:
            os.close(os.open(f"{folder}/{count}", os.O_CREAT | os.O_WRONLY))
            count += 1
        except OSError as error:
            end = error.errno
    if end != errno.ENOSPC or count > most_files:
        succeeded.append(f"{count} files in {place}")
    shutil.rmtree(folder)
    seen[place] = {"bytes": written, "files": count}


def size(what, fd, most):
    try:
        os.ftruncate(fd, most)
        succeeded.append(f"{what} of {most} bytes")
    except OSError as error:
        seen[what] = errno.errorcode[error.errno]
    os.close(fd)


size("sparse file", os.open("/sandbox/sparse", os.O_CREAT | os.O_WRONLY), 1 << 40)
size("memory file", os.memfd_create("sparse"), 1 << 40)
size("file one byte too long", os.open("/sandbox/sparse", os.O_CREAT | os.O_WRONLY), (64 << 20) + 1)
os.unlink("/sandbox/sparse")
descriptors = []
try:
    while len(descriptors) < 5000:
        descriptors.append(os.open("/dev/null", os.O_RDONLY))
    succeeded.append(f"{len(descriptors)} open files")
except OSError as error:
    seen["open_files"] = descriptors[-1] + 1
for fd in descriptors:
    os.close(fd)
print(json.dumps({"succeeded": succeeded, **seen}))
