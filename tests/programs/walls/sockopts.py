"""Out-of-band data, and options of sockets and processes behind which the kernel keeps machinery: filters, protocols above
protocols, tables. Anything but EPERM got past the filter, whatever the kernel made of it."""
import ctypes, errno, json, platform, socket, struct

libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
NR = {"prctl": 157, "setsockopt": 54, "getsockopt": 55, "sendto": 44, "recvfrom": 45, "sendmsg": 46, "recvmsg": 47,
      "sendmmsg": 307, "recvmmsg": 299} if X86 else \
     {"prctl": 167, "setsockopt": 208, "getsockopt": 209, "sendto": 206, "recvfrom": 207, "sendmsg": 211, "recvmsg": 212,
      "sendmmsg": 269, "recvmmsg": 243}
succeeded, tried = [], 0


def call(name, *arguments):
    result = libc.syscall(ctypes.c_long(NR[name]), *[ctypes.c_long(a) for a in arguments])
    return "0" if result >= 0 else errno.errorcode[ctypes.get_errno()]


def attempt(what, name, *arguments):
    global tried
    tried += 1
    said = call(name, *arguments)
    if said != "EPERM":
        succeeded.append(f"{what}: {said}")


def tcp():
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    return listener, one, listener.accept()[0]


MSG_OOB, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_ZEROCOPY = 1, 0x40, 0x4000, 0x4000000
buffer = ctypes.create_string_buffer(4096)
at = ctypes.addressof(buffer)
piece = ctypes.create_string_buffer(struct.pack("2Q", at, 1))
# msghdr with one buffer; as an element of sendmmsg a length follows it.
message = ctypes.create_string_buffer(struct.pack("Qi4xQQQQi4x", 0, 0, ctypes.addressof(piece), 1, 0, 0, 0) + bytes(8))
msg = ctypes.addressof(message)
pairs = {"stream": socket.socketpair(), "packets": socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET), "tcp": tcp()[1:]}
for kind, (one, other) in pairs.items():
    out, back = one.fileno(), other.fileno()
    for flags in (MSG_OOB, MSG_OOB | MSG_NOSIGNAL, MSG_OOB | 1 << 32, MSG_OOB | 0xFFFFFFFF << 32, MSG_ZEROCOPY):
        flags |= MSG_DONTWAIT
        attempt(f"sendto over {kind} {flags:x}", "sendto", out, at, 1, flags, 0, 0)
        attempt(f"recvfrom over {kind} {flags:x}", "recvfrom", back, at, 1, flags, 0, 0)
        attempt(f"sendmsg over {kind} {flags:x}", "sendmsg", out, msg, flags)
        attempt(f"recvmsg over {kind} {flags:x}", "recvmsg", back, msg, flags)
        attempt(f"sendmmsg over {kind} {flags:x}", "sendmmsg", out, msg, 1, flags)
        attempt(f"recvmmsg over {kind} {flags:x}", "recvmmsg", back, msg, 1, flags, 0)

ret = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xFFFF))
one_ret = struct.pack("HxxxxxxQ", 1, ctypes.addressof(ret))
number = struct.pack("i", 2)
OPTIONS = {
    # SO_DEBUG, SO_BINDTODEVICE, SO_ATTACH_FILTER, DETACH, TIMESTAMP, MARK, RXQ_OVFL, PEEK_OFF, LOCK_FILTER, BUSY_POLL, ATTACH_BPF,
    # ATTACH_REUSEPORT_CBPF and _EBPF, ZEROCOPY, TXTIME, OOBINLINE, DEVMEM_DONTNEED
    1: {1: number, 25: b"lo", 26: one_ret, 27: number, 29: number, 36: number, 40: number, 42: number, 44: number,
        46: number, 50: number, 51: one_ret, 52: number, 60: number, 61: bytes(8), 10: number, 80: bytes(8)},
    # TCP_CONGESTION, MD5SIG, REPAIR, FASTOPEN, ULP, SAVE_SYN, ZEROCOPY_RECEIVE, AO_ADD_KEY
    6: {13: b"reno", 14: bytes(216), 19: number, 23: number, 31: b"tls", 27: number, 35: bytes(64), 38: bytes(280)},
    # UDP_ENCAP, SEGMENT, GRO
    17: {100: number, 103: number, 104: number},
    # IP_OPTIONS, MSFILTER, ADD_MEMBERSHIP, TRANSPARENT, IPT_SO_SET_REPLACE, ARPT, EBT, IP_VS, MRT_INIT
    0: {4: bytes(8), 41: bytes(24), 35: bytes(8), 19: number, 64: bytes(84), 96: bytes(64), 128: bytes(64), 1152: bytes(64), 200: number},
    # IPV6_2292PKTOPTIONS, FLOWLABEL_MGR, ADD_MEMBERSHIP, IP6T_SO_SET_REPLACE, MRT6_INIT, HDRINCL
    41: {6: bytes(64), 32: bytes(32), 20: bytes(20), 64: bytes(84), 200: number, 36: number},
    # Packet sockets' versions and rings, netlink, TLS, MPTCP, SMC, ALG, raw, SCTP, DCCP, RDS, XDP, VSOCK's levels
    263: {10: number, 5: bytes(28)}, 270: {1: number}, 282: {1: bytes(40)}, 284: {1: number}, 286: {1: number}, 279: {1: bytes(16)},
    255: {1: number}, 132: {0: number}, 269: {1: number}, 276: {1: number}, 283: {1: bytes(32)}, 40: {0: bytes(8)},
}
sockets = {1: socket.socketpair()[0], 6: pairs["tcp"][0], 17: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
           41: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)}
length = ctypes.create_string_buffer(struct.pack("i", 84))
for level, options in OPTIONS.items():
    for fd in {sockets.get(level, sockets[6]).fileno(), sockets[6].fileno()}:
        for option, value in options.items():
            given = ctypes.create_string_buffer(value, max(len(value), 1))
            for bits in (0, 1 << 32, 0xFFFFFFFF << 32):
                attempt(f"setsockopt {level} {option} {bits:x}", "setsockopt", fd, level, option | bits, ctypes.addressof(given), len(value))
                attempt(f"setsockopt {level} {option} {bits:x} above", "setsockopt", fd, level | bits, option, ctypes.addressof(given), len(value))
for level, options in {0: (64, 65, 66, 67, 96, 97, 128, 129, 1152, 4), 41: (64, 65, 68, 69, 6), 1: (26, 31, 55, 59, 71, 77),
                       6: (26, 31, 35), 263: (6, 11), 17: (100,)}.items():
    for option in options:
        attempt(f"getsockopt {level} {option}", "getsockopt", sockets[6].fileno(), level, option, at, ctypes.addressof(length))

# SET_UNALIGN, SET_FPEMU, SET_SECCOMP, SET_TSC, SET_SECUREBITS, TASK_PERF_EVENTS_DISABLE, MCE_KILL, SET_MM, SET_SPECULATION_CTRL,
# SET_IO_FLUSHER, SET_SYSCALL_USER_DISPATCH, SCHED_CORE, SET_MEMORY_MERGE, SET_PTRACER, and one that no kernel has
for option in (6, 10, 22, 26, 28, 31, 33, 35, 53, 57, 59, 62, 67, 0x59616D61, 9999):
    for bits in (0, 1 << 32, 0xFFFFFFFF << 32):
        # Two of them would end the process that sets them in this way; reading the clock stays allowed.
        attempt(f"prctl {option} {bits:x}", "prctl", option | bits, 1 if option == 26 else 2, at, 0, 0)

# Ordinary use still works with every one of the calls.
works = []
for kind, (one, other) in pairs.items():
    for send, receive in ((one.send, other.recv), (lambda data: one.sendmsg([data]), lambda size: other.recvmsg(size)[0])):
        send(b"plain")
        works.append(receive(5) == b"plain")
works += [call("sendmmsg", one.fileno(), msg, 1, 0) == "0", call("recvmmsg", other.fileno(), msg, 1, MSG_DONTWAIT, 0) == "0"]
for level, option in ((socket.SOL_SOCKET, socket.SO_KEEPALIVE), (socket.IPPROTO_TCP, socket.TCP_NODELAY)):
    sockets[6].setsockopt(level, option, 1)
    works.append(sockets[6].getsockopt(level, option) != 0)
works.append(sockets[6].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0)
print(json.dumps({"succeeded": succeeded, "tried": tried, "works": all(works)}))
