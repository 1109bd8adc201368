#!/usr/bin/env bash
# Owns: the order in which the test bench comes up: engine, then registry and stand-in images where they are allowed
# and wanted. May be called again at any time. Its last line tells what there is:
#   engine=unix:///var/run/docker.sock owned=yes|no mirror=yes|no
# Usage: up.sh [--if-offline]   with --if-offline: stand-ins only when the public registry cannot be reached
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"

# Where the engine looks for images whose names have no host. Any answer will do, a refusal too.
public_registry_reached() {
  public_registry=$(docker info --format '{{.IndexServerAddress}}')
  curl -s -m 5 -o /dev/null "$public_registry"
}

# trouble MESSAGE: fatal in CI; a person's run goes on, and the tests that need the missing part say so themselves.
trouble() {
  [ "${CI:-}" != true ] || die "FAILED: $*"
  say "WARNING: $*"
}

stand_ins() {
  say "images under the product's default names are stand-ins made here, not the official ones"
  timed "registry" "$here/registry.sh" up
  timed "images" "$here/images.sh" || trouble "not every stand-in image could be made"
}

# An engine that somebody else runs is used as it is: all that can be done is to see whether it has what tests need.
check_foreign() {
  local image missing=
  while read -r image; do
    "$here/engine.sh" can-pull "$image" || missing="$missing $image"
  done < <(sed -n 's/^IMAGE=//p' "$here"/recipes/*.sh)
  [ -z "$missing" ] || trouble "the engine that already runs neither has nor can pull:$missing"
}

mkdir -p "$bench_dir"
timed "engine" "$here/engine.sh" up || true # why it failed has been said
state=$("$here/engine.sh" status)
if [ "${state#engine=none}" != "$state" ]; then
  trouble "NO ENGINE answers this user: tests that need one cannot run"
elif [ "${1:-}" = --if-offline ] && public_registry_reached; then
  say "the public registry can be reached: official images are pulled as they are needed"
elif [ "${state#*owned=yes}" != "$state" ] || [ "${SANDTRAY_BENCH_ALLOW_FOREIGN:-}" = 1 ]; then
  [ "${1:-}" != --if-offline ] || say "the public registry ($public_registry) cannot be reached"
  stand_ins
else
  say "this engine was not started here, so no stand-in image goes into it under a name that it could already have"
  # Tests pull from a registry of their own, under names that begin with its address, and remove what they pulled.
  [ "${1:-}" = --if-offline ] || SANDTRAY_BENCH_ALLOW_FOREIGN=1 stand_ins
  check_foreign
fi
echo "$state"
