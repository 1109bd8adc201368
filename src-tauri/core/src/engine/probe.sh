# Prints what the walls look like from inside, one `key=value` a line, a key more than once where there are several.
# It judges nothing: that is walls.rs. POSIX sh and tools that every image with a shell has; no line is unbounded.
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
    tr '\000' '\n' <"/proc/$pid/environ" | head -n 64 | while read -r line; do fact environment "${line%%=*}"; done
done

# Tunnel devices that the kernel puts into every network namespace are there, but down.
while read -r name rest; do
    case $name in
    *:*)
        name=${name%%:*}
        flags=unknown
        read -r flags <"/sys/class/net/$name/flags"
        fact interface "$name $flags"
        ;;
    esac
done </proc/net/dev 2>/dev/null
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
count=0
while read -r device point kind options rest; do
    count=$((count + 1))
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
