#!/usr/bin/env bash
# Owns: the Docker engine of the test bench. An engine that already answers is used as it is; else one is started by
# hand on the default socket, with everything it keeps in the bench's folder.
# Usage: engine.sh up|down|status|can-pull IMAGE|may-serve-stand-ins
#   status prints `engine=URL owned=yes|no mirror=yes|no`, or `engine=none owned=no mirror=no`.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/bench/cgroup.sh
. "$here/cgroup.sh"

own_socket=/var/run/docker.sock
url=${DOCKER_HOST:-unix://$own_socket}
dir=$bench_dir/engine
data=$dir/data
pidfile=$dir/dockerd.pid
log=$dir/dockerd.log
start_seconds=60
# The engine makes sockets below its exec-root; a socket's path may not be longer than 108 bytes.
exec_root=$dir/exec
[ ${#exec_root} -le 60 ] || exec_root=/var/run/sandtray-bench-$(printf %s "$dir" | sha256sum | cut -c1-8)

# api PATH [SECONDS]: a GET to the engine's API; fails with curl's own exit code: 7 says that nobody listens.
api() {
  case $url in
    unix://*) curl -fsS -m "${2:-20}" --unix-socket "${url#unix://}" "http://engine$1" 2>/dev/null ;;
    tcp://*) curl -fsS -m "${2:-20}" "http://${url#tcp://}$1" 2>/dev/null ;;
    *) die "DOCKER_HOST=$url: the test bench knows unix:// and tcp:// only" ;;
  esac
}
answers() {
  local reply
  reply=$(api /_ping 3) || return
  [ "$reply" = OK ]
}

# Told by the data folder on its command line, which no engine but ours has.
owned() { [ "$url" = "unix://$own_socket" ] && pid_runs "$pidfile" "--data-root $data"; }
has_mirror() { api /info | grep -qF "\"$registry_url/\""; }
yes_no() { if "$@"; then echo yes; else echo no; fi; }

status() {
  if answers; then
    echo "engine=$url owned=$(yes_no owned) mirror=$(yes_no has_mirror)"
  else
    echo "engine=none owned=no mirror=no"
  fi
}

# What an engine of ours that died uncleanly left behind: its containerd, the containers and their keepers. All of them
# have our exec-root on their command lines.
clear_leftovers() {
  local proc pid mount children=()
  ! pid_runs "$pidfile" "--data-root $data" || return 0
  for proc in /proc/[0-9]*; do
    pid=${proc#/proc/}
    tr '\0' ' ' 2>/dev/null <"$proc/cmdline" | grep -qE "^[^ ]*containerd(-shim[^ ]*)? .*$exec_root/containerd/" || continue
    read -ra children 2>/dev/null <"$proc/task/$pid/children" || true
    kill -KILL "${children[@]}" "$pid" 2>/dev/null || true
    say "engine: ended pid $pid, left by an engine that died"
  done
  awk -v top="$dir/" -v run="$exec_root/" 'index($2, top) == 1 || index($2, run) == 1 {print $2}' /proc/mounts | sort -r |
    while read -r mount; do umount -l "$mount" 2>/dev/null || true; done
  rm -rf "$pidfile" "$exec_root"
}

started_or_dead() { answers || [ ! -d "/proc/$1" ]; }

start() {
  local pid
  command -v dockerd >/dev/null || die "no engine answers and dockerd is not installed: run tests/bench/packages.sh"
  mkdir -p "$data" "$exec_root"
  mount_cgroups_if_missing
  setsid dockerd --host "unix://$own_socket" --data-root "$data" --exec-root "$exec_root" --pidfile "$pidfile" \
    --registry-mirror "$registry_url" --group "${SUDO_GID:-$(id -g)}" >"$log" 2>&1 </dev/null 9>&- &
  pid=$!
  wait_for "$start_seconds" started_or_dead "$pid" || true
  answers && return
  kill -TERM "$pid" 2>/dev/null || true
  tail -n 20 "$log" >&2
  die "engine: dockerd did not come up (it had $start_seconds s); its log: $log"
}

up() {
  if answers; then
    say "engine: $url already answers, and is used as it is"
    return
  fi
  [ "$url" = "unix://$own_socket" ] || die "DOCKER_HOST=$url does not answer: start that engine, or unset DOCKER_HOST"
  need_root "$0" up
  mkdir -p "$dir"
  exec 9>"$dir/lock"
  flock -w 120 9 || die "another engine.sh has been at work for 2 minutes"
  if owned; then wait_for "$start_seconds" answers || stop_pid "$pidfile" "--data-root $data" 30; fi
  local code=0
  answers || code=$?
  [ "$code" -ne 0 ] || return 0
  [ "$code" -eq 7 ] || die "something listens on $own_socket but does not answer: it is not the bench's to replace"
  clear_leftovers
  start
  say "engine: started dockerd on $own_socket, everything it keeps is in $dir"
}

down() {
  [ -d "$dir" ] || return 0
  need_root "$0" down
  exec 9>"$dir/lock"
  flock -w 120 9 || die "another engine.sh has been at work for 2 minutes"
  stop_pid "$pidfile" "--data-root $data" 30
  clear_leftovers
}

# can-pull IMAGE: true when the engine has the image, or its registry says that it could be pulled.
can_pull() { api "/images/$1/json" >/dev/null || api "/distribution/$1/json" >/dev/null; }

may_serve_stand_ins() {
  if ! answers || owned || [ "${SANDTRAY_BENCH_ALLOW_FOREIGN:-}" = 1 ]; then return 0; fi
  die "$url was not started by the test bench. Stand-ins go only into an engine that the command started itself," \
    "under its own data folder, never into one that the owner already runs." \
    "(A developer whose engine is for tests only may set SANDTRAY_BENCH_ALLOW_FOREIGN=1.)"
}

case ${1:-} in
  up) up ;;
  down) down ;;
  status) status ;;
  can-pull) can_pull "$2" ;;
  may-serve-stand-ins) may_serve_stand_ins ;;
  *) die "usage: engine.sh up|down|status|can-pull IMAGE|may-serve-stand-ins" ;;
esac
