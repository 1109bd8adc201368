nproc
grep -c ^processor /proc/cpuinfo
grep MemTotal /proc/meminfo
free | head -n 1
df -P /sandbox | tail -n 1 | tr -s ' ' | cut -d ' ' -f 1-2
uname -mr
ps >/tmp/ps; wc -l </tmp/ps
cat /proc/sys/vm/overcommit_memory /proc/sys/net/core/somaxconn
stty size 2>&1
