#!/usr/bin/env bash
# Owns: the image registry of the test bench: Debian's docker-registry on 127.0.0.1, storage in the bench's folder.
# Usage: registry.sh up|down
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"

dir=$bench_dir/registry
config=$dir/config-$registry_port.yml
pidfile=$dir/registry-$registry_port.pid
log=$dir/registry-$registry_port.log

answers() { curl -fs -m 2 -o /dev/null "$registry_url/v2/"; }

write_config() {
  cat >"$config" <<EOF
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: $dir/storage}
  delete: {enabled: true}
http: {addr: "127.0.0.1:$registry_port"}
EOF
}

up() {
  if answers; then
    say "registry: $registry_url already answers"
    return
  fi
  command -v docker-registry >/dev/null || die "docker-registry is not installed: run tests/bench/packages.sh"
  mkdir -p "$dir/storage"
  write_config
  # Away from the caller's process group, so that a Ctrl-C there does not take the registry along.
  setsid docker-registry serve "$config" >"$log" 2>&1 </dev/null &
  echo $! >"$pidfile"
  wait_for 15 answers || {
    tail -n 20 "$log" >&2
    die "registry: $registry_url did not answer within 15 s"
  }
  say "registry: started $registry_url"
}

case ${1:-} in
  up) need_root "$0" "$@" && up ;;
  down)
    need_root "$0" "$@"
    stop_pid "$pidfile" "$config" 10
    rm -f "$pidfile"
    ;;
  *) die "usage: registry.sh up|down" ;;
esac
