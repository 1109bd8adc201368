# Prints what the walls look like from inside, one `key=value` a line, a key more than once where there are several.
# walls.rs judges the output; it puts the two lists `masked` and `readonly` above this script. POSIX sh and tools that every
# image with a shell has; no line is unbounded.
fact() { printf '%s=%.200s\n' "$1" "$2"; }
first() { # the first readable file's first line
    key=$1
    shift
    for file; do
        if [ -r "$file" ] && read -r line <"$file"; then
            fact "$key" "$line"
            return
        fi
    done
}

for tool in dd head ionice ls tr; do
    command -v "$tool" >/dev/null || fact lacks "$tool"
done

while read -r key rest; do
    case $key in
    Uid: | Gid: | Groups: | CapInh: | CapPrm: | CapEff: | CapBnd: | CapAmb: | NoNewPrivs: | Seccomp:)
        set -- $rest
        fact "status.${key%:}" "$*"
        ;;
    esac
done </proc/$$/status

while read -r line; do
    case $line in
    'Max core file size '*) set -- core ${line#Max core file size} ;;
    'Max cpu time '*) set -- cpu ${line#Max cpu time} ;;
    'Max file size '*) set -- fsize ${line#Max file size} ;;
    'Max locked memory '*) set -- memlock ${line#Max locked memory} ;;
    'Max msgqueue size '*) set -- msgqueue ${line#Max msgqueue size} ;;
    'Max open files '*) set -- nofile ${line#Max open files} ;;
    *) continue ;;
    esac
    fact "ulimit.$1" "$2 $3"
done </proc/$$/limits

cg=/sys/fs/cgroup
first memory $cg/memory.max $cg/memory/memory.limit_in_bytes
first swap.alone $cg/memory.swap.max
first swap.together $cg/memory/memory.memsw.limit_in_bytes
while read -r key rest; do
    case $key in SwapTotal:) fact swap.machine "$rest" ;; esac
done </proc/meminfo
first pids $cg/pids.max $cg/pids/pids.max
first cpu.both $cg/cpu.max
first cpu.quota $cg/cpu/cpu.cfs_quota_us $cg/cpu,cpuacct/cpu.cfs_quota_us
first cpu.period $cg/cpu/cpu.cfs_period_us $cg/cpu,cpuacct/cpu.cfs_period_us

first hostname /proc/sys/kernel/hostname
set -- /proc/[0-9]*
fact processes $#
for pid in 1 $$; do
    { tr '\000' '\n' <"/proc/$pid/environ" | head -n 64; } 2>/dev/null |
        while read -r line; do fact environment "${line%%=*}"; done
done

# Tries what one process of a user may do to another: here to PID 1, which reports on the program.
reached() { if "$@" 2>/dev/null; then echo reached; else echo refused; fi; }
opened() { (: <"$1"); }
rewritten() { (: >>"$1"); }
for name in mem maps environ auxv fd/0 fd/1 fd/2; do fact pid1.read "$name $(reached opened "/proc/1/$name")"; done
for name in mem oom_score_adj; do fact pid1.write "$name $(reached rewritten "/proc/1/$name")"; done

while read -r name rest; do
    case $name in *:*) fact interface "${name%%:*}" ;; esac
done </proc/net/dev 2>/dev/null
if [ -e /proc/net/if_inet6 ]; then
    while read -r address index length scope flags name; do fact inet6 "$name"; done </proc/net/if_inet6
fi
routes=-1
while read -r line; do routes=$((routes + 1)); done </proc/net/route
fact routes "$routes"
routes=0
if [ -e /proc/net/ipv6_route ]; then
    while read -r line; do
        case $line in *' lo') ;; *) routes=$((routes + 1)) ;; esac
    done </proc/net/ipv6_route
fi
fact routes6 "$routes"

points=
overlaid=
count=0
while read -r device point kind options rest; do
    count=$((count + 1))
    case "$kind $point" in
    'tmpfs /sys/fs/cgroup') ;;
    'tmpfs /proc/'* | 'tmpfs /sys/'*) overlaid="$overlaid $point" ;;
    esac
    [ $count -le 200 ] && fact mount "$point $kind ${options%%,lowerdir=*}"
    points="$points $point"
done </proc/self/mounts
fact mounts $count

for place in / /bin /boot /dev/shm /etc /home /lib /media /mnt /opt /root /run/lock /run/shm /run/user /sbin /srv /usr \
    /usr/local /usr/local/bin /var /var/cache /var/lib /var/lock /var/log /var/mail /var/spool $points; do
    if [ -d "$place" ]; then
        (: >"$place/.sandtray-probe") 2>/dev/null && rm -f "$place/.sandtray-probe" && fact writable "$place"
    elif [ -f "$place" ]; then
        [ -w "$place" ] && fact writable "$place"
    fi
done

# Settings that any user could open without this wall.
for place in /proc/sys/kernel/ns_last_pid /proc/sys/kernel/hostname; do
    [ -e "$place" ] && [ "$(reached rewritten "$place")" = reached ] && fact writable "$place"
done
for place in $readonly; do [ -e "$place" ] && fact readonly "$place"; done

hidden() { # reports a path that is not hidden: a folder with an entry, a file with a first byte
    if [ -d "$1" ]; then
        for path in "$1"/* "$1"/.[!.]*; do
            if [ -e "$path" ] || [ -L "$path" ]; then
                fact unmasked "$1"
                return
            fi
        done
    elif [ -f "$1" ] && [ -n "$(dd "if=$1" bs=1 count=1 2>/dev/null | tr '\000' 0)" ]; then
        fact unmasked "$1"
    fi
}
count=0
for place in $masked; do
    count=$((count + 1))
    hidden "$place"
done
fact masked $count
# Other mounts over a part of them must be empty too.
for place in $overlaid; do hidden "$place"; done

count=0
devices() { # each entry in a folder and its subfolders
    for path in "$1"/* "$1"/.[!.]*; do
        [ -L "$path" ] && continue # its target is looked at in its own place
        [ -e "$path" ] || continue
        count=$((count + 1))
        [ $count -le 200 ] || return
        if [ -c "$path" ]; then
            set -- "$1" $(ls -ldn "$path") # rights, links, user, group, "major,", minor
            fact device "$path c ${6%,} $7"
        elif [ -d "$path" ]; then
            devices "$path"
        elif [ -b "$path" ]; then
            fact device "$path b"
        else
            fact device "$path other"
        fi
    done
}
devices /dev
fact devices $count

tried() { # whether the tool may do what it is for; what it says is of no interest
    tool=$1
    shift
    if ! command -v "$tool" >/dev/null; then
        fact "call.$tool" absent
    elif "$tool" "$@" sh -c : >/dev/null 2>&1; then
        fact "call.$tool" allowed
    else
        fact "call.$tool" refused
    fi
}
tried ionice -c 3
tried unshare -r
fact end sandtray
