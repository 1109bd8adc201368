# PID 1 of every container. Runs on dash, busybox ash and bash. "$1" is the program's file, the rest its argument vector.
# Speaks the protocol of launcher/mod.rs: a header line, the program, a tar and the program's stdin come in on standard
# input; a start line, the program's output, a trailer and a tar of out/ go out on standard output.

# --- Ahead of the call: all that needs no program -----------------------------------------------------------------
umask 022
cd /sandbox && rm -f sh && mkdir -p out || exit 125
# Whether the program will be able to read this process, and so the nonce.
seal=sealed
{ true </proc/$$/mem; } 2>/dev/null && seal=open
# A signal from inside reaches PID 1 only if PID 1 handles it. dash and busybox handle INT, bash handles all of these.
signals='HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM XCPU XFSZ VTALRM PROF IO SYS'
trap '' $signals
# Reopened, so that a program that sets O_NONBLOCK on its own stdout does not set it on ours.
exec 3>/proc/self/fd/1 5>/proc/self/fd/2 4<&0 </dev/null
file=$1
shift
# tar's complaints go to a file that is itself archived last. Its page is taken now, lest the program fill the disk.
log=.sandtray.log
printf '%4095s\n' '' >/tmp/$log
exec 6<>/tmp/$log
# The program is started by its path: by a name alone, some builds of busybox run a tool inside the calling shell. Then
# the program would be as unreadable to itself as PID 1 is.
path_of() {
    path=
    IFS=:
    for folder in $PATH; do
        [ -z "$path" ] && [ -x "$folder/$1" ] && path=$folder/$1
    done
    unset IFS
    [ -n "$path" ]
}
# A session of its own: signals that the program sends to its process group reach only its own processes.
path_of setsid || path_of env
starter=$path
# A shell starts background jobs with INT and QUIT ignored; GNU env can undo that, busybox has nothing that can.
reset=
env --default-signal=INT,QUIT true 2>/dev/null && reset='env --default-signal=INT,QUIT'
# Entries too deep to be returned are not packed: their names alone could take all of the memory.
# Only the tar of busybox may lack the option.
shallow='--exclude=sandbox/out/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*'
if path_of busybox && ! tar cf /dev/null --exclude=x /dev/null 2>/dev/null; then shallow=; fi
group=/sys/fs/cgroup
if [ -f $group/cgroup.controllers ]; then
    peak_file=$group/memory.peak oom_file=$group/memory.events cpu_file=$group/cpu.stat
else
    peak_file=$group/memory/memory.max_usage_in_bytes oom_file=$group/memory/memory.oom_control
    cpu_file=$group/cpuacct/cpuacct.usage
fi
read -r own_adj </proc/$$/oom_score_adj
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
read_oom() {
    oom=0
    while read -r key value; do [ "$key" = oom_kill ] && oom=$value; done <$oom_file
}
# Sets `now` to hundredths of a second since the machine started.
read_now() { read -r now rest </proc/uptime && now=${now%.*}${now#*.}; }
# As printf. Where a process ends while busybox waits to write into a full pipe, busybox drops what it had to write, and
# tells by its exit code. Other shells go on writing.
say() {
    refused=0
    until printf "$@"; do [ $((refused += 1)) -lt 1000 ] || return; done
}
# Reads as many lines as "$1" says into `text`. A `-` behind the number: the last one's end is not part of it.
read_text() {
    text=
    left=${1%-}
    while [ $((left -= 1)) -ge 0 ]; do
        IFS= read -r line || return
        text="$text$line
"
    done
    [ "$1" = "${1%-}" ] || text=${text%?}
}
# Notes the processes that are not part of the program.
note_processes() {
    set -- /proc/[0-9]*
    ours=" $* "
}
# Whether a process that the program started still runs. Zombies do not count.
any_left() {
    for process in /proc/[0-9]*; do
        case $ours in *" $process "*) continue ;; esac
        read -r state <"$process/stat" || continue
        # What precedes the last bracket is the process's name, which is its own to choose.
        case ${state##*) } in Z*) ;; *) return 0 ;; esac
    done
    return 1
}
program_ended() {
    read -r state </proc/$program/stat || return 0
    case ${state##*) } in Z*) return 0 ;; esac
    return 1
}
# Ends everything but PID 1 when the time is over, in case the service is dead; a living service is sooner.
# Reads `SECONDS END` from descriptor 8. Two processes, so that none has to be started during a run: the first sleeps,
# the second sees the first end. A program may have ended the first, so the second looks at the clock.
watch_over() {
    {
        read -r time end <&8 && printf '%s' "$end" && exec sleep "$time" 8<&-
    } </dev/null 3>&- 4<&- 5>&- 6>&- 7>&- 9>&- | {
        read -r end
        [ -n "$end" ] || exit
        while read_now && [ "$now" -lt "$end" ]; do sleep 0.2; done
        kill -9 -1
    } >/dev/null 3>&- 4<&- 5>&- 6>&- 7>&- 8<&- 9>&- &
}
# PID 1 itself waits for the program, so it sees the program's end whatever the program signals.
start_program() {
    # Without this the kernel might kill PID 1 when memory runs out.
    echo 1000 >&9
    (
        trap - $signals
        exec $starter $reset "$@" <&4 2>&5 3>&- 4<&- 5>&- 6>&- 7>&- 8<&- 9>&-
    ) &
    program=$!
    echo "$own_adj" >&9
}
# Starts the interpreter before there is a program. It comes as far as opening its file, which is a pipe: the program is
# what PID 1 will write into it. By then the file is a regular one with the same text, for whoever looks at it again.
# The watchdog is there too, and learns by a pipe of its own how long to sleep.
preload() {
    command -v cat >/dev/null || return
    # In a subshell: bash notes the last program in a variable that it exports to the next.
    (mkfifo "$file" /tmp/.sandtray.fuse) || return
    exec 8<>/tmp/.sandtray.fuse
    watch_over
    start_program "$@"
    # If the interpreter ends before it opens its program, PID 1 would wait for that forever.
    (until program_ended; do sleep 0.05; done; true <>"$file") 3>&- 4<&- 5>&- 6>&- 8<&- 9>&- &
    doorman=$!
    exec 7>"$file"
    kill -9 $doorman
    wait $doorman
    (rm -f "$file" /tmp/.sandtray.fuse)
    note_processes
    ! program_ended
}

# --- The call -----------------------------------------------------------------------------------------------------
# End-of-file instead of a header: the service is gone, and so is the reason for this container.
program=
read -r size nonce seconds lines feed args <&4 || exit 0
if [ "$size" = preload ]; then
    preload "$@" || [ -z "$program" ] || exit 125
    printf 'ready\n' >&3
    read -r size nonce seconds lines feed args <&4 || exit 0
fi
# The interpreter is not to be had for this program, or somebody ended it: as if it had never been started.
if [ -n "$program" ] && { [ "$feed" = 0 ] || program_ended; }; then
    kill -9 $program
    wait $program
    exec 7>&-
    program=
fi
# A short program comes in lines of its own. That takes no process, unlike the tar.
read_text "$lines" <&4 || exit 0
code=$text
[ "$lines" = 0 ] || printf '%s' "$code" >"$file"
while [ $((args -= 1)) -ge 0 ]; do
    read -r count <&4 && read_text "$count" <&4 || exit 0
    set -- "$@" "$text"
done
if [ "$size" != 0 ] && ! dd bs=65536 count="$size" iflag=fullblock,count_bytes <&4 | tar xf - -C /; then
    printf '\036unpack\n' >&3
    exit 125
fi
# The folders of the program's files, while the list is still the service's.
folders=
if [ "$size" != 0 ]; then
    while IFS= read -r folder; do
        folders="$folders$folder
"
    done </tmp/.sandtray.inputs
fi
read_cpu
cpu_before=$cpu
read_oom
oom_before=$oom
read_now
end=$((now + seconds * 100))
printf '\036start %s\n' $seal >&3
# First the watchdog: a program may end before PID 1 gets to its next line.
if [ -z "$ours" ]; then
    exec 8<<END
$seconds $end
END
    watch_over
    note_processes
else
    echo "$seconds $end" >&8
fi
# The service gave all files the time of this one. Another time shows that the program wrote a file. Opened before the
# program can replace it.
exec 8<&-
if [ "$size" != 0 ]; then exec 8</tmp/.sandtray.inputs; fi
if [ -z "$program" ]; then
    start_program "$@"
else
    # A program that was cut short must not pass for a whole one. An interpreter may end or close the pipe before it has
    # read all of a long one: at a mistake in the first line. Then `cat` ends by PIPE, which PID 1 itself ignores.
    if [ "$lines" = 0 ]; then (trap - PIPE; exec cat "$file" >&7); else printf '%s' "$code" >&7; fi
    case $lines:$? in *:0 | 0:141) ;; *) kill -9 -1; exit 125 ;; esac
    exec 7>&-
fi
exec 4<&-
wait $program
code=$?

# --- What came of it. Nothing below may fork: the program may have left no process free ---------------------------
linger=0
if any_left; then
    # Output may still be on its way through a child of the program. Hundredths of a second.
    read_now
    ended=$now
    while any_left && read_now && [ $((linger = now - ended)) -lt 10 ]; do :; done
    kill -9 -1
    # One that reads the program's output would take the trailer on its way out. It ends at once, so this has no clock.
    try=0
    while any_left && [ $((try += 1)) -lt 500 ]; do :; done
fi
kill -9 -1
read_cpu
read_now
[ "$code" != 137 ] || [ "$now" -lt "$end" ] || exit 124
peak=0
read -r peak <$peak_file
read_oom
# Opened anew: the program may have made its own standard error, which is the same open file, refuse to wait.
say '\036%s\n' "$nonce" >/proc/self/fd/5
say '\036%s end %s %s %s %s %s\n' "$nonce" "$code" "$peak" $((oom - oom_before)) $((cpu - cpu_before)) $linger >&3
# Names, with `!` before those whose time differs from the one that the service gave its files.
count=0
list() {
    for name in "$1"* "$1".[!.]* "$1"..?*; do
        { [ -e "$name" ] || [ -L "$name" ]; } || continue
        [ $((count += 1)) -le 600 ] || return
        same='='
        if [ "$size" != 0 ] && { [ -L "$name" ] || [ "$name" -nt /proc/self/fd/8 ] || [ "$name" -ot /proc/self/fd/8 ]; }; then same='!'; fi
        say '%s%s\0' $same "$name" >&3
    done
}
list ''
IFS='
'
set -f
set -- $folders
set +f
unset IFS
for folder; do
    [ ! -d "$folder" ] || [ -L "$folder" ] || list "$folder/"
done
# An empty out/ is said in one word, which saves the time that tar takes to start.
files=none
{ [ -d out ] && [ ! -L out ] && [ -r out ] && [ -x out ]; } || files=tar
for name in out/* out/.[!.]* out/..?*; do
    { [ -e "$name" ] || [ -L "$name" ]; } && files=tar && break
done
say '\0%s\0' $files >&3
cd /
# Its end costs the engine time, which it has more of in a moment; until then PID 1 is a program that does nothing.
[ $files = tar ] || exec sleep 1 <&- >&- 3>&- 5>&- 6>&- 8<&- 9>&-
exec tar cf - ${shallow:+"$shallow"} sandbox/out tmp/$log >&3 2>&6 8<&- 9>&-
