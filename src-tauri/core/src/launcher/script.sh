# PID 1 of every container. Runs on dash and on busybox ash. "$1" is the program's file, the rest its argument vector.
# Speaks the protocol of launcher/mod.rs: a header line, the program, a tar and the program's stdin come in on standard
# input; a start line, the program's output, a trailer and a tar of out/ go out on standard output.

# --- Ahead of the call: all that needs no program -----------------------------------------------------------------
umask 022
cd /sandbox && mkdir -p out || exit 125
# A signal with a handler reaches PID 1 even from inside; without one of ours, INT would end it.
trap : INT
# Reopened, so that a program that sets O_NONBLOCK on its own stdout does not set it on ours.
exec 3>/proc/self/fd/1 5>/proc/self/fd/2 4<&0 </dev/null
file=$1
shift
# tar's complaints go to a file that is itself archived last. Its page is taken now, lest the program fill the disk.
log=.sandtray.log
printf '%4095s\n' '' >/tmp/$log
exec 6<>/tmp/$log
# A shell starts background jobs with INT and QUIT ignored; GNU env can undo that, busybox has nothing that can.
reset=
env --default-signal=INT,QUIT true 2>/dev/null && reset='env --default-signal=INT,QUIT'
group=/sys/fs/cgroup
if [ -f $group/cgroup.controllers ]; then
    peak_file=$group/memory.peak oom_file=$group/memory.events cpu_file=$group/cpu.stat
else
    peak_file=$group/memory/memory.max_usage_in_bytes oom_file=$group/memory/memory.oom_control
    cpu_file=$group/cpuacct/cpuacct.usage
fi
# What a shell exports of itself is not the program's environment.
unset PWD OLDPWD SHLVL
exec 2>/dev/null

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
# The keeper waits for the program, then ends all others: the program's children and the watchdog, for whose end PID 1
# waits. What the shell has to say of a killed job is no output of the program.
start_program() {
    {
        # Were it like any other to the kernel, PID 1 could be the one to go when memory runs out.
        echo 1000 >/proc/self/oom_score_adj
        # Redirected inside the subshell: outside, dash would say "Aborted" on the program's standard error.
        (exec $reset "$@" <&4 2>&5 4<&- 3>&- 5>&- 6>&-)
        code=$?
        # It ended before it opened its program: PID 1 is let go, which waits for somebody to do that. Does not block.
        [ -z "$preloading" ] || { [ -p "$file" ] && true <>"$file"; }
        kill -9 -1
        exit $code
    } 2>/dev/null &
    keeper=$!
}
# Whether the keeper is gone or a zombie.
keeper_ended() {
    read -r state </proc/$keeper/stat || return 0
    case $state in *') Z '*) return 0 ;; esac
    return 1
}
# It may be about to go, so it is asked a few times, which takes a millisecond.
keeper_ends() {
    try=0
    while [ $((try += 1)) -lt 100 ]; do
        keeper_ended && return 0
    done
    return 1
}
# Starts the interpreter before there is a program. It comes as far as opening its file, which is a pipe: the program is
# what PID 1 will write into it. By then the file is a regular one with the same text, for whoever looks at it again.
# The watchdog is there too, and learns by a pipe of its own how long to sleep.
preload() {
    command -v cat >/dev/null || return
    # In a subshell: bash notes the last program in a variable that it exports to the next.
    (mkfifo "$file" /tmp/.sandtray.fuse) || return
    preloading=yes
    start_program "$@"
    exec 7>"$file" 8<>/tmp/.sandtray.fuse
    (rm -f "$file" /tmp/.sandtray.fuse)
    (read -r time <&8 && exec sleep "$time" 8<&-) </dev/null >/dev/null 3>&- 4<&- 5>&- 6>&- 7>&- &
    watchdog=$!
    ! keeper_ends
}
read_oom() {
    oom=0
    while read -r key value; do [ "$key" = oom_kill ] && oom=$value; done <$oom_file
}

# --- The call -----------------------------------------------------------------------------------------------------
# End-of-file instead of a header: the service is gone, and so is the reason for this container.
keeper= preloading=
read -r size nonce seconds lines feed <&4 || exit 0
if [ "$size" = preload ]; then
    preload "$@" || [ -z "$keeper" ] || exit 125
    printf 'ready\n' >&3
    read -r size nonce seconds lines feed <&4 || exit 0
fi
# The interpreter is not to be had for this program, or somebody ended it: as if it had never been started.
if [ -n "$keeper" ] && { [ "$feed" = 0 ] || keeper_ended; }; then
    kill -9 -1
    wait
    exec 7>&- 8>&-
    (rm -f "$file")
    keeper= preloading=
fi
# A short program comes in lines of its own, the last of which may lack its end. That takes no process, unlike the tar.
code=
left=${lines%-}
while [ $((left -= 1)) -ge 0 ]; do
    IFS= read -r line || exit 0
    code="$code$line
"
done <&4
[ "$lines" = "${lines%-}" ] || code=${code%?}
[ "$lines" = 0 ] || printf '%s' "$code" >"$file"
if [ "$size" != 0 ] && ! dd bs=65536 count="$size" iflag=fullblock,count_bytes <&4 | tar xf -; then
    printf '\036%s unpack\n' "$nonce" >&3
    exit 125
fi
read_cpu
cpu_before=$cpu
read_oom
oom_before=$oom
read_now
end=$((now + seconds))
printf '\036%s start\n' "$nonce" >&3
# First the watchdog: a program may end before PID 1 gets to its next line, and the watchdog has to be there to be ended.
if [ -z "$keeper" ]; then
    watch_over "$seconds"
    start_program "$@"
else
    echo "$seconds" >&8
    # A program that was cut short must not pass for a whole one. Of a long one the interpreter may end (`cat` is killed
    # then) or close the pipe (141) before it has read all: at a mistake in the first line.
    if [ "$lines" = 0 ]; then cat "$file" >&7; else printf '%s' "$code" >&7; fi
    case $lines:$? in *:0 | 0:137 | 0:141) ;; *) kill -9 -1; exit 125 ;; esac
    exec 7>&- 8>&-
fi
exec 4<&-

# The service ends an overrun run itself; this is for the case that the service is dead. The program may kill the
# watchdog as often as it likes, but not PID 1, whose `wait` for one that is dead already returns at once.
while :; do
    wait $watchdog
    keeper_ends && break
    read_now
    [ "$now" -lt $end ] || exit 124
    kill -0 $watchdog || watch_over 0.05
done
wait $keeper
code=$?

# --- What came of it. Nothing below may fork: the program may have left no process free ---------------------------
kill -9 -1
peak=0
read -r peak <$peak_file
read_oom
read_cpu
printf '\036%s\n' "$nonce" >&5
printf '\036%s end %s %s %s %s\n' "$nonce" "$code" "$peak" $((oom - oom_before)) $((cpu - cpu_before)) >&3
count=0
for name in * .[!.]* ..?*; do
    { [ -e "$name" ] || [ -L "$name" ]; } || continue
    [ $((count += 1)) -le 600 ] || break
    printf '%s\0' "$name" >&3
done
# An empty out/ is said in one word, which saves the time that tar takes to start.
files=none
{ [ -d out ] && [ ! -L out ] && [ -r out ] && [ -x out ]; } || files=tar
for name in out/* out/.[!.]* out/..?*; do
    { [ -e "$name" ] || [ -L "$name" ]; } && files=tar && break
done
printf '\0%s\0' $files >&3
cd /
# Its end costs the engine time, which it has more of in a moment; until then PID 1 is a program that does nothing.
[ $files = tar ] || exec sleep 1 <&- >&- 3>&- 5>&- 6>&-
exec tar cf - sandbox/out tmp/$log >&3 2>&6
