"""Makes every forbidden system call, each in a child, with arguments that are wrong. A call that the filter lets through
complains of them (EFAULT, EINVAL, EBADF, ...) or succeeds; one that it stops says EPERM or ENOSYS whatever it is given."""
import ctypes, errno, json, os, platform, signal

libc = ctypes.CDLL(None, use_errno=True)
BAD = -1  # no such address, descriptor, process or flag
X86 = {
    "ptrace": 101, "syslog": 103, "uselib": 134, "personality": 135, "ustat": 136, "sysfs": 139, "vhangup": 153,
    "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159, "chroot": 161, "sync": 162, "acct": 163, "settimeofday": 164,
    "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
    "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "io_setup": 206, "io_destroy": 207, "io_submit": 209, "lookup_dcookie": 212, "clock_settime": 227, "mbind": 237,
    "set_mempolicy": 238, "mq_open": 240, "mq_unlink": 241, "mq_timedsend": 242, "mq_timedreceive": 243,
    "mq_getsetattr": 245, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251,
    "migrate_pages": 256, "unshare": 272, "vmsplice": 278, "move_pages": 279, "perf_event_open": 298,
    "fanotify_init": 300, "fanotify_mark": 301, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "clock_adjtime": 305, "syncfs": 306, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
    "finit_module": 313, "seccomp": 317, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "shmget": 29,
    "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "msgget": 68, "msgsnd": 69, "msgrcv": 70,
    "msgctl": 71,
}
ARM = {
    "ptrace": 117, "syslog": 116, "personality": 92, "vhangup": 58, "pivot_root": 41, "adjtimex": 171, "chroot": 51,
    "sync": 81, "acct": 89, "settimeofday": 170, "mount": 40, "umount2": 39, "swapon": 224, "swapoff": 225,
    "reboot": 142, "sethostname": 161, "setdomainname": 162, "init_module": 105, "delete_module": 106, "quotactl": 60,
    "io_setup": 0, "io_destroy": 1, "io_submit": 2, "lookup_dcookie": 18, "clock_settime": 112, "mbind": 235,
    "set_mempolicy": 237, "mq_open": 180, "mq_unlink": 181, "mq_timedsend": 182, "mq_timedreceive": 183,
    "mq_getsetattr": 185, "kexec_load": 104, "add_key": 217, "request_key": 218, "keyctl": 219, "ioprio_set": 30,
    "migrate_pages": 238, "unshare": 97, "vmsplice": 75, "move_pages": 239, "perf_event_open": 241,
    "fanotify_init": 262, "fanotify_mark": 263, "name_to_handle_at": 264, "open_by_handle_at": 265,
    "clock_adjtime": 266, "syncfs": 267, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "finit_module": 273, "seccomp": 277, "kexec_file_load": 294, "bpf": 280, "userfaultfd": 282, "shmget": 194,
    "shmat": 196, "shmctl": 195, "semget": 190, "semop": 193, "semctl": 191, "msgget": 186, "msgsnd": 189,
    "msgrcv": 188, "msgctl": 187,
}
# The same number everywhere.
BOTH = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "pidfd_getfd": 438,
    "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443, "landlock_create_ruleset": 444,
    "memfd_secret": 447, "process_mrelease": 448, "statmount": 457, "listmount": 458, "lsm_get_self_attr": 459,
    "lsm_set_self_attr": 460, "lsm_list_modules": 461, "open_tree_attr": 467,
}
numbers = {**(X86 if platform.machine() == "x86_64" else ARM), **BOTH}
# What forbidden calls are called with when they are to work: whoever checks no argument shows here.
VALID = {
    "ptrace": (0,), "io_uring_setup": (4, "buffer"), "userfaultfd": (1,), "keyctl": (0, -3, 1), "personality": (0x40000,),
    "semget": (0, 1, 0o600), "shmget": (0, 4096, 0o600), "msgget": (0, 0o600), "memfd_secret": (0,), "adjtimex": ("buffer",),
    "syslog": (10,), "kcmp": ("pid", "pid", 2, 0, 0), "syncfs": (1,), "ioprio_set": (1, 0, 3 << 13), "unshare": (0x10000000,),
    "process_vm_readv": ("pid", "buffer", 0, "buffer", 0, 0), "landlock_create_ruleset": (0, 0, 1), "bpf": (0, "buffer", 64),
    "seccomp": (2, 0, "buffer"), "fanotify_init": (0x200, 0),
}


def answer(number, arguments):
    """The error's name, "0" for success, or the signal that ended the child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(2)  # some of them wait
        buffer = ctypes.create_string_buffer(4096)
        words = {"buffer": ctypes.addressof(buffer), "pid": os.getpid()}
        arguments = [ctypes.c_long(words.get(a, a) if isinstance(a, str) else a) for a in arguments]
        result = libc.syscall(ctypes.c_long(number), *arguments)
        os.write(writer, (errno.errorcode[ctypes.get_errno()] if result == -1 else "0").encode())
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 64).decode()
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return said or f"signal {status & 0x7F}"


succeeded = []
for name, number in numbers.items():
    for arguments in ((BAD,) * 6, VALID.get(name, (0,) * 6)):
        if name == "personality" and arguments[0] == BAD:
            arguments = (0x20000,)  # all ones asks only
        said = answer(number, arguments)
        if said not in ("EPERM", "ENOSYS"):
            succeeded.append(f"{name}: {said}")
print(json.dumps({"succeeded": succeeded, "calls": len(numbers)}))
