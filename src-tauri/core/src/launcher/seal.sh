# The first program of a container. It replaces itself by a copy of the same shell that may be executed and not read,
# and gives that copy the launcher's script, "$1". The kernel refuses other programs of the same user the memory, the
# descriptors and the environment of such a process and of its forks, so the launcher's secret stays with it. The other
# arguments are for the script.
script=$1
shift
unset PWD OLDPWD SHLVL
# Opened here, since an unreadable process may not open this file of its own.
adj=/proc/$$/oom_score_adj
[ -w $adj ] || adj=/dev/null
exec 9>$adj
# The copy is named `sh`: busybox chooses its tool by name.
umask 666
cp /proc/$$/exe /sandbox/sh 2>/dev/null && [ -x /sandbox/sh ] && exec /sandbox/sh -c "$script" sandtray "$@"
# Without the copy, runs still go on. The start line says that this launcher can be read.
exec sh -c "$script" sandtray "$@"
