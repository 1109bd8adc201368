//! Filters the arguments of calls that have hundreds of functions. These are allow lists, with Linux's numbers on both
//! supported machines.
//!
//! The kernel looks at 32 bits of each of these arguments, but a filter sees 64. So each is compared under the mask
//! [`INT`]: a sign-extended number, as some C libraries pass it, is the same number, and higher bits cannot hide one.

use serde_json::Value;

use super::{allow, masked};

/// The bits of an argument that form a C `int`.
const INT: u64 = 0xffff_ffff;

/// Allowed requests on descriptors. Left out: TIOCSETD (the kernel loads a module for the line discipline), TIOCSTI and
/// TIOCLINUX (input for others), TIOCCONS, the out-of-band mark of a socket, and all requests to devices.
const IOCTLS: [&[u64]; 5] = [DESCRIPTORS, FILES, TERMIOS, TERMINALS, INTERFACES];

/// FIONCLEX, FIOCLEX, FIOASYNC, FIOQSIZE, FIONBIO, FIONREAD; RNDGETENTCNT.
const DESCRIPTORS: &[u64] = &[0x5450, 0x5451, 0x5452, 0x5460, 0x5421, 0x541b, 0x8004_5200];

/// Copying of files: FICLONE, FICLONERANGE, FIDEDUPERANGE, FS_IOC_FIEMAP, FS_IOC_GETFLAGS.
const FILES: &[u64] = &[0x4004_9409, 0x4020_940d, 0xc018_9436, 0xc020_660b, 0x8008_6601];

/// TCGETS, TCSETS, TCSETSW, TCSETSF, TCGETA, TCSETA, TCSETAW, TCSETAF, TCSBRK, TCXONC, TCFLSH, TCSBRKP, TIOCOUTQ,
/// TCGETS2, TCSETS2, TCSETSW2, TCSETSF2.
const TERMIOS: &[u64] = &[
    0x5401,
    0x5402,
    0x5403,
    0x5404,
    0x5405,
    0x5406,
    0x5407,
    0x5408,
    0x5409,
    0x540a,
    0x540b,
    0x5425,
    0x5411,
    0x802c_542a,
    0x402c_542b,
    0x402c_542c,
    0x402c_542d,
];

/// Requests for terminals that a program makes by `/dev/ptmx`: TIOCSCTTY, TIOCNOTTY, TIOCGPGRP, TIOCSPGRP, TIOCGSID,
/// TIOCGETD, TIOCGWINSZ, TIOCSWINSZ, TIOCEXCL, TIOCNXCL, TIOCGEXCL, TIOCMGET, TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK,
/// TIOCGPTPEER, TIOCPKT, TIOCGPKT, TIOCSIG, TIOCGDEV.
const TERMINALS: &[u64] = &[
    0x540e,
    0x5422,
    0x540f,
    0x5410,
    0x5429,
    0x5424,
    0x5413,
    0x5414,
    0x540c,
    0x540d,
    0x8004_5440,
    0x5415,
    0x8004_5430,
    0x4004_5431,
    0x8004_5439,
    0x5441,
    0x5420,
    0x8004_5438,
    0x4004_5436,
    0x8004_5432,
];

/// Listing of interfaces, of which there is only the loopback: SIOCGIFNAME, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFADDR,
/// SIOCGIFBRDADDR, SIOCGIFNETMASK, SIOCGIFMETRIC, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFINDEX, SIOCGIFTXQLEN.
const INTERFACES: &[u64] = &[0x8910, 0x8912, 0x8913, 0x8915, 0x8919, 0x891b, 0x891d, 0x8921, 0x8927, 0x8933, 0x8942];

/// Settings of a process for itself. Left out: filters, maps of its memory, and settings for a tracer, a scheduler or
/// the device of a disk.
const PRCTLS: [&[u64]; 3] = [PROCESS, CAPABILITIES, MACHINE];

/// PR_SET_PDEATHSIG, GET_PDEATHSIG, GET_DUMPABLE, SET_DUMPABLE, SET_NAME, GET_NAME, GET_SECCOMP, SET_TIMERSLACK,
/// GET_TIMERSLACK, SET_CHILD_SUBREAPER, GET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS, GET_NO_NEW_PRIVS, GET_TID_ADDRESS,
/// SET_THP_DISABLE, GET_THP_DISABLE, SET_MDWE, GET_MDWE, SET_VMA (names for memory), GET_AUXV.
const PROCESS: &[u64] = &[1, 2, 3, 4, 15, 16, 21, 29, 30, 36, 37, 38, 39, 40, 41, 42, 65, 66, 0x5356_4d41, 0x4155_5856];

/// Without effect, because there are no capabilities; some runtimes drop them when the filter is already in force:
/// PR_GET_KEEPCAPS, SET_KEEPCAPS, CAPBSET_READ, CAPBSET_DROP, GET_SECUREBITS, CAP_AMBIENT.
const CAPABILITIES: &[u64] = &[7, 8, 23, 24, 27, 47];

/// For the processor: PR_SVE_SET_VL, SVE_GET_VL, GET_SPECULATION_CTRL, PAC_RESET_KEYS, SET_TAGGED_ADDR_CTRL,
/// GET_TAGGED_ADDR_CTRL.
const MACHINE: &[u64] = &[50, 51, 52, 54, 55, 56];

/// Refused flags of a message: MSG_OOB, MSG_SOCK_DEVMEM, MSG_ZEROCOPY.
const ODD_MESSAGES: u64 = 0x1 | 0x0200_0000 | 0x0400_0000;

const PRIO_PROCESS: u64 = 0;

const SOL_IP: u64 = 0;
const SOL_SOCKET: u64 = 1;
const SOL_TCP: u64 = 6;
const SOL_UDP: u64 = 17;
const SOL_IPV6: u64 = 41;

/// Options that can be set and read, by level. Left out: filters (SO_ATTACH_*), SO_DEBUG, SO_MARK, SO_ZEROCOPY, busy
/// polling, time stamps, TCP_ULP and TCP_CONGESTION (the kernel loads a module by name), TCP_REPAIR, encapsulation,
/// segmentation, multicast groups, and the levels and numbers by which netfilter's tables are read and written.
const OPTIONS: [(u64, &[u64]); 5] =
    [(SOL_SOCKET, SOCKET), (SOL_IP, IP), (SOL_IPV6, IPV6), (SOL_TCP, TCP), (SOL_UDP, UDP)];

/// SO_REUSEADDR, DONTROUTE, BROADCAST, SNDBUF, RCVBUF, KEEPALIVE, PRIORITY, LINGER, REUSEPORT, PASSCRED, RCVLOWAT,
/// SNDLOWAT, RCVTIMEO, SNDTIMEO; the last two also by their newer numbers.
const SOCKET: &[u64] = &[2, 5, 6, 7, 8, 9, 12, 13, 15, 16, 18, 19, 20, 21, 66, 67];
/// IP_TOS, TTL, PKTINFO, MTU_DISCOVER, RECVERR, RECVTTL, RECVTOS, FREEBIND, BIND_ADDRESS_NO_PORT, MULTICAST_TTL,
/// MULTICAST_LOOP.
const IP: &[u64] = &[1, 2, 8, 10, 11, 12, 13, 15, 24, 33, 34];
/// IPV6_UNICAST_HOPS, MULTICAST_HOPS, MULTICAST_LOOP, MTU_DISCOVER, RECVERR, V6ONLY, RECVPKTINFO, RECVHOPLIMIT,
/// DONTFRAG, RECVTCLASS, TCLASS.
const IPV6: &[u64] = &[16, 18, 19, 23, 25, 26, 49, 51, 62, 66, 67];
/// TCP_NODELAY, MAXSEG, CORK, KEEPIDLE, KEEPINTVL, KEEPCNT, SYNCNT, LINGER2, DEFER_ACCEPT, WINDOW_CLAMP, QUICKACK,
/// USER_TIMEOUT, NOTSENT_LOWAT.
const TCP: &[u64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 18, 25];
/// UDP_CORK.
const UDP: &[u64] = &[1];

/// Options that can only be read.
const ANSWERS: [(u64, &[u64]); 4] = [(SOL_SOCKET, OF_SOCKET), (SOL_IP, OF_IP), (SOL_IPV6, OF_IPV6), (SOL_TCP, OF_TCP)];

/// SO_TYPE, ERROR, OOBINLINE, PEERCRED, PEERNAME, ACCEPTCONN, PROTOCOL, DOMAIN, COOKIE.
const OF_SOCKET: &[u64] = &[3, 4, 10, 17, 28, 30, 38, 39, 57];
/// IP_MTU, MULTICAST_IF.
const OF_IP: &[u64] = &[14, 32];
/// IPV6_MULTICAST_IF, MTU.
const OF_IPV6: &[u64] = &[17, 24];
/// TCP_INFO, CONGESTION.
const OF_TCP: &[u64] = &[11, 13];

pub(super) fn rules() -> Vec<Value> {
    let mut rules = Vec::new();
    rules.extend(IOCTLS.into_iter().flatten().map(|number| allow("ioctl", &[masked(1, INT, *number)])));
    rules.extend(PRCTLS.into_iter().flatten().map(|number| allow("prctl", &[masked(0, INT, *number)])));
    // Only on the calling process: 0. Other numbers would reach PID 1, which has the same user. Without files to open
    // or time to run, PID 1 could not report what the program used.
    rules.push(allow("prlimit64 sched_setattr sched_setparam sched_setscheduler", &[masked(0, INT, 0)]));
    rules.push(allow("setpriority", &[masked(0, INT, PRIO_PROCESS), masked(1, INT, 0)]));
    // Threads are placed by their numbers, so every number but 1 is allowed: those with a bit other than the lowest.
    rules.push(allow("sched_setaffinity", &[masked(0, INT, 0)]));
    rules.extend((1..32).map(|bit| allow("sched_setaffinity", &[masked(0, 1 << bit, 1 << bit)])));
    rules.push(allow("sendmsg recvmsg", &[masked(2, ODD_MESSAGES, 0)]));
    rules.push(allow("sendto sendmmsg recvfrom recvmmsg", &[masked(3, ODD_MESSAGES, 0)]));
    rules.extend(options("setsockopt getsockopt", &OPTIONS));
    rules.extend(options("getsockopt", &ANSWERS));
    rules
}

fn options(calls: &'static str, levels: &'static [(u64, &'static [u64])]) -> impl Iterator<Item = Value> {
    levels.iter().flat_map(move |(level, names)| {
        names.iter().map(move |name| allow(calls, &[masked(1, INT, *level), masked(2, INT, *name)]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Whether any rule allows the call with these arguments, decided as by a kernel.
    fn allowed(name: &str, args: [u64; 6]) -> bool {
        let holds = |condition: &Value| {
            let at = |key: &str| condition[key].as_u64().unwrap();
            assert_eq!(condition["op"], "SCMP_CMP_MASKED_EQ");
            args[at("index") as usize] & at("value") == at("valueTwo")
        };
        rules().iter().any(|rule| {
            rule["names"].as_array().unwrap().iter().any(|other| other == name)
                && rule["args"].as_array().unwrap().iter().all(holds)
        })
    }

    #[test]
    fn no_number_is_listed_twice() {
        let mut seen = HashSet::new();
        let (ioctls, prctls) = (IOCTLS.into_iter().flatten(), PRCTLS.into_iter().flatten());
        for number in ioctls.map(|n| ("ioctl", *n)).chain(prctls.map(|n| ("prctl", *n))) {
            assert!(seen.insert(number), "{number:x?}");
        }
        let mut seen = HashSet::new();
        for (level, names) in OPTIONS.iter().chain(&ANSWERS) {
            for name in *names {
                assert!(seen.insert((level, name)), "{level} {name}");
            }
        }
    }

    #[test]
    fn a_terminal_keeps_its_line_discipline_and_its_input() {
        let ioctl = |number| allowed("ioctl", [3, number, 0, 0, 0, 0]);
        for harmful in [0x5412, 0x541c, 0x541d, 0x5423, 0x541e, 0x541f, 0x8905, 0x8946, 0x4008_6602, 0x4b3a] {
            for bits in [0, 1 << 32, INT << 32] {
                assert!(!ioctl(harmful | bits), "{harmful:x} {bits:x}");
            }
        }
        // TCGETS, TIOCSWINSZ, TIOCGPTN; the last sign-extended, as some C libraries pass it.
        assert!([0x5401, 0x5414, 0x8004_5430, 0xffff_ffff_8004_5430].into_iter().all(ioctl));
    }

    #[test]
    fn no_call_sends_or_receives_out_of_band_data() {
        for (call, at) in
            [("sendto", 3), ("recvfrom", 3), ("sendmmsg", 3), ("recvmmsg", 3), ("sendmsg", 2), ("recvmsg", 2)]
        {
            let with = |flags| {
                let mut args = [3, 0, 0, 0, 0, 0];
                args[at] = flags;
                allowed(call, args)
            };
            assert!(with(0) && with(0x4040) && with(0x4000_0000), "{call}");
            for flags in [1, 0x41, 0x4001, 1 | INT << 32, 0x0400_0000] {
                assert!(!with(flags), "{call} {flags:x}");
            }
        }
    }

    #[test]
    fn options_go_by_level_and_name() {
        let set = |level, name| allowed("setsockopt", [3, level, name, 0, 4, 0]);
        let get = |level, name| allowed("getsockopt", [3, level, name, 0, 4, 0]);
        assert!(set(1, 2) && get(1, 2) && set(6, 1) && set(41, 26) && get(1, 4) && get(1, 17));
        assert!(!set(1, 4) && !set(1, 17), "what is only asked cannot be set");
        for (level, name) in [
            (6, 31),
            (6, 13),
            (17, 100),
            (17, 103),
            (1, 26),
            (1, 50),
            (1, 51),
            (1, 52),
            (1, 1),
            (1, 36),
            (0, 64),
            (41, 64),
        ] {
            for bits in [0, 1 << 32, INT << 32] {
                assert!(!set(level | bits, name) && !set(level, name | bits), "{level} {name}");
            }
        }
        assert!(!get(0, 64) && !get(0, 65) && !get(41, 64) && !get(1, 26) && !get(0, 96));
        assert!(!set(263, 10) && !set(270, 1) && !set(282, 1));
    }
}
