# shellcheck shell=bash
# Owns: what every script of the test bench shares: where its data lies, how it talks, waits and becomes root.
# Sourced, never run.

set -euo pipefail

bench_dir=${SANDTRAY_BENCH_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/sandtray/bench}
registry_port=${SANDTRAY_BENCH_REGISTRY_PORT:-5055}
# shellcheck disable=SC2034 # read by the scripts that source this
registry_url=http://127.0.0.1:$registry_port
# Debian keeps dockerd, debootstrap and iptables where a plain user's PATH does not look.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export PATH

say() { printf 'bench: %s\n' "$*"; }
die() {
  printf 'bench: %s\n' "$*" >&2
  exit 1
}

# wait_for SECONDS COMMAND...: tries COMMAND every 0.1 s until it succeeds; false when the time is over.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.1
  done
}

# timed WHAT PROGRAM...: runs PROGRAM, says how long it took, and fails as it did. Never for a function: behind `||`
# the shell would go on after a failed command inside it.
timed() {
  local what=$1 code=0 start=${EPOCHREALTIME/[.,]/}
  shift
  "$@" || code=$?
  local ms=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
  [ "$code" -eq 0 ] || what="$what FAILED"
  say "$(printf '%s: %d.%01d s' "$what" $((ms / 1000)) $((ms % 1000 / 100)))"
  return "$code"
}

# need_root SCRIPT ARGS...: runs the script again with sudo when it is not root, with the same data folder.
need_root() {
  [ "$(id -u)" -ne 0 ] || return 0
  command -v sudo >/dev/null || die "$1 needs root, and there is no sudo"
  say "$(basename "$1") needs root: asking sudo"
  exec sudo env "HOME=$HOME" "PATH=$PATH" "SANDTRAY_BENCH_DIR=$bench_dir" \
    "SANDTRAY_BENCH_REGISTRY_PORT=$registry_port" "DOCKER_HOST=${DOCKER_HOST:-}" "CI=${CI:-}" \
    "SANDTRAY_BENCH_ALLOW_FOREIGN=${SANDTRAY_BENCH_ALLOW_FOREIGN:-}" "$@"
}

# pid_runs PIDFILE WORD: true when the file names a living process whose command line has WORD in it, so that a pid
# that was given to somebody else meanwhile is never taken for ours.
pid_runs() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# stop_pid PIDFILE WORD SECONDS: TERM, a bounded wait, then KILL; only for a process that pid_runs recognises.
stop_pid() {
  pid_runs "$1" "$2" || return 0
  local pid
  pid=$(cat "$1")
  kill -TERM "$pid" 2>/dev/null || true
  wait_for "$3" not pid_runs "$1" "$2" && return 0
  say "pid $pid did not stop within $3 s: killing it"
  kill -KILL "$pid" 2>/dev/null || true
  wait_for 5 not pid_runs "$1" "$2" || die "pid $pid cannot be killed"
}
not() { ! "$@"; }
