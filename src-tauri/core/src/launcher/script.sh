# PID 1 of every container. Runs on dash and on busybox ash. "$@" is the program's argument vector.
# Speaks the protocol of launcher/mod.rs: a header line, a tar and the program's stdin come in on standard input;
# a start line, the program's output, a trailer and a tar of out/ go out on standard output.

# --- Ahead of the call: all that needs no program -----------------------------------------------------------------
umask 022
cd /work && mkdir -p out || exit 125
# Signals with a handler reach PID 1 even from inside: INT must not end it, CHLD must wake `wait`.
woken=0
trap : INT
trap 'woken=1' CHLD
# Reopened, so that a program that sets O_NONBLOCK on its own stdout does not set it on ours.
exec 3>/proc/self/fd/1 5>/proc/self/fd/2
# tar's complaints go to a file that is itself archived last. Its page is taken now, lest the program fill the disk.
log=.sandtray.log
printf '%4095s\n' '' >/tmp/$log
exec 6<>/tmp/$log
# A shell starts background jobs with INT and QUIT ignored; GNU env can undo that, busybox has nothing that can.
reset=
env --default-signal=INT,QUIT true 2>/dev/null && reset='env --default-signal=INT,QUIT'
# busybox: `wait PID` is cut short by CHLD even where PID itself has ended; dash: it is not.
cut_short=0
[[ 1 = 1 ]] 2>/dev/null && cut_short=1
group=/sys/fs/cgroup
if [ -f $group/cgroup.controllers ]; then
    peak_file=$group/memory.peak oom_file=$group/memory.events cpu_file=$group/cpu.stat
else
    peak_file=$group/memory/memory.max_usage_in_bytes oom_file=$group/memory/memory.oom_control
    cpu_file=$group/cpuacct/cpuacct.usage
fi

# Microseconds in v2 (`usage_usec N`), nanoseconds in v1 (`N`): either way sets `cpu` to nanoseconds.
read_cpu() {
    cpu=0
    { read -r key value <$cpu_file; } 2>/dev/null || return
    case $key in
    usage_usec) cpu=$((value * 1000)) ;;
    *) cpu=$key ;;
    esac
}
read_now() { read -r now rest </proc/uptime && now=${now%.*}; }
watch_over() {
    sleep "$1" </dev/null >/dev/null 2>&1 3>&- 5>&- 6>&- &
    watchdog=$!
}

# --- The call -----------------------------------------------------------------------------------------------------
# End-of-file instead of a header: the service is gone, and so is the reason for this container.
read -r size nonce seconds || exit 0
if ! dd bs=65536 count="$size" iflag=fullblock,count_bytes 2>/dev/null | tar xf - 2>/dev/null; then
    printf '\036%s unpack\n' "$nonce" >&3
    exit 125
fi
exec 4<&0 </dev/null
read_cpu
cpu_before=$cpu
read_now
end=$((now + seconds))
# What a shell exports of itself is not the program's environment.
unset PWD OLDPWD SHLVL
printf '\036%s start\n' "$nonce" >&3
# Were both alike to the kernel, it could pick PID 1 when memory runs out, and nobody would be left to tell.
{
    echo 1000 >/proc/self/oom_score_adj
    exec $reset "$@"
} <&4 4<&- 3>&- 5>&- 6>&- &
program=$!
# What the shell itself has to say of a killed job is no output of the program.
exec 4<&- 2>/dev/null
watch_over "$seconds"

# The service ends an overrun run itself; this is for the case that the service is dead. The program may kill the
# watchdog, but not PID 1, which is woken by that death and looks at the clock.
while :; do
    woken=0
    wait $program
    code=$?
    [ $code -gt 128 ] || break
    if kill -0 $program 2>/dev/null; then
        read_now
        [ "$now" -lt $end ] || exit 124
        kill -0 $watchdog 2>/dev/null || watch_over $((end - now))
        continue
    fi
    [ $cut_short = 1 ] && [ $woken = 0 ] && break
    # Either it was cut short and the second answer is the true one, or the first was and the second is "no such job".
    wait $program
    again=$?
    [ $again = 127 ] && [ $cut_short = 0 ] || code=$again
    break
done

# --- What came of it. Nothing below may fork: the program may have left no process free ---------------------------
kill -9 -1
peak=0 oom=0
read -r peak <$peak_file
while read -r key value; do [ "$key" = oom_kill ] && oom=$value; done <$oom_file
read_cpu
printf '\036%s\n' "$nonce" >&5
printf '\036%s end %s %s %s %s\n' "$nonce" "$code" "$peak" "$oom" $((cpu - cpu_before)) >&3
count=0
for name in * .[!.]* ..?*; do
    { [ -e "$name" ] || [ -L "$name" ]; } || continue
    [ $((count += 1)) -le 600 ] || break
    printf '%s\0' "$name" >&3
done
printf '\0' >&3
cd /
exec tar cf - work/out tmp/$log >&3 2>&6
