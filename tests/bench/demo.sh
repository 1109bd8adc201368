#!/usr/bin/env bash
# Owns: the terminal demonstration. Starts a service in a data folder of its own, so that neither your settings nor your
# history are touched, sends it real programs through its socket, shows what comes back, and stops it.
# Usage: demo.sh   An engine must answer: `make demo` sees to that. SANDTRAY=PATH uses a built `sandtray` as it is.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
programs=$here/../programs/demo

ready_seconds=20
stop_seconds=10
if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
# What is typed, as a person would type it in the folder of the programs.
typed() { printf '%s$ sandtray %s%s\n' "$dim" "$*" "$plain"; }
# Output of the product stands under what caused it.
indented() { sed 's/^/  /'; }
fail() {
  printf 'demo: %s\n' "$@" >&2
  exit 1
}

find_sandtray() {
  sandtray=${SANDTRAY:-}
  [ -z "$sandtray" ] || { [ -x "$sandtray" ] || fail "SANDTRAY=$sandtray is no program."; return 0; }
  PATH=$HOME/.cargo/bin:$PATH
  command -v cargo >/dev/null || fail "cargo is not installed: get Rust from https://rustup.rs, then try again."
  say "building sandtray (the first time takes some minutes)"
  cargo build --quiet --locked --package sandtray --manifest-path "$here/../../Cargo.toml"
  sandtray=$(cargo metadata --format-version 1 --no-deps --manifest-path "$here/../../Cargo.toml" |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/sandtray
}

# The service says one line on stdout once agents can connect.
start_service() {
  # A short path: a socket's may be 107 bytes long.
  home=$(mktemp -d /tmp/sandtray-demo.XXXXXX)
  export SANDTRAY_HOME=$home
  trap stop_service EXIT
  "$sandtray" serve --enable >"$home/ready" 2>"$home/errors" &
  service=$!
  wait_for "$ready_seconds" ready_or_dead || true
  [ -s "$home/ready" ] || {
    cat "$home/errors" >&2
    fail "the service did not come up; what it said stands above."
  }
}
ready_or_dead() { [ -s "$home/ready" ] || ! kill -0 "$service"; }
settled() { ! "$sandtray" status | grep -q '^Looking for an engine'; }
stopped() { ! kill -0 "$service"; }

# For each container on the engine, the start of the service that it belongs to. Prints nothing without a docker
# command.
instances() {
  docker ps -a --filter label=sandtray.instance --format '{{.Label "sandtray.instance"}}' 2>/dev/null || true
}

stop_service() {
  [ -n "${service:-}" ] || { rm -rf "$home"; return 0; }
  kill -TERM "$service" 2>/dev/null || true
  wait_for "$stop_seconds" stopped || kill -KILL "$service" 2>/dev/null || true
  wait "$service" 2>/dev/null || true
  service=
  rm -rf "$home"
}

# Nothing can be shown without an engine; the product itself says what is wrong and what to do.
need_engine() {
  wait_for "$ready_seconds" settled || true
  "$sandtray" status | grep -q ' is ready at ' && return
  "$sandtray" status | sed -n 2,3p >&2
  fail "there is no engine to run programs in. Do what stands above, then run this again."
}

# image_state LANGUAGE: what `status` says of its image.
image_state() { "$sandtray" status | sed -n "s/^  $1 .*  \(being fetched, .*\|fetched when.*\|could not.*\|not known\)\$/\1/p"; }

# fetch LANGUAGE CODE: has the image pulled by a first run. On a terminal `sandtray run` draws the bar itself.
fetch() {
  local language=$1 code=$2 state shown='' run
  state=$(image_state "$language")
  [ -n "$state" ] || return 0
  if [ -t 2 ]; then
    "$sandtray" run -q -l "$language" -c "$code" || [ $? -ne 125 ] || fail "the image for $language could not be fetched; see above."
    printf '  %s is here\n' "$language"
    return
  fi
  "$sandtray" run -q -l "$language" -c "$code" &
  run=$!
  while kill -0 "$run" 2>/dev/null; do
    state=$(image_state "$language")
    case $state in
      "$shown") ;;
      'being fetched'*) printf '  %s: %s\n' "$language" "$state" && shown=$state ;;
    esac
    sleep 0.5
  done
  wait "$run" || [ $? -ne 125 ] || fail "the image for $language could not be fetched; see above."
  printf '  %s: is here\n' "$language"
}

# show EXPECTED_CODE ARGS...: one run; what it printed, what the command line says of it, and its exit code.
show() {
  local expected=$1 code=0
  shift
  typed "run $*"
  { (cd "$programs" && "$sandtray" run "$@") 2>&1 || code=$?; echo "$code" >"$home/code"; } | indented
  code=$(cat "$home/code")
  printf '  %sexit code %s%s\n' "$dim" "$code" "$plain"
  [ "$code" = "$expected" ] || fail "that should have ended with exit code $expected."
}

find_sandtray
title "The service"
typed "serve --enable"
before=$(instances | sort -u)
start_service
indented <"$home/ready"
need_engine

title "Images (each is fetched once, by the first run that needs it)"
fetch shell 'true'
fetch python ''
fetch javascript ''
fetch go $'package main\nfunc main() {}'
fetch rust 'fn main() {}'
printf '  all five are here\n'

title "A file in, a file out"
show 0 report.py --file sales.csv --out "$home/results"
[ "$(head -c 4 "$home/results/chart.png" | tail -c 3)" = PNG ] || fail "the chart did not come back."
printf '  %schart.png: %s bytes%s\n' "$dim" "$(wc -c <"$home/results/chart.png")" "$plain"

title "Standard input"
printf 'pears\napples\nplums\n' >"$home/fruit.txt"
show 0 sort.js --stdin "$home/fruit.txt"

title "A shell, and two languages that are compiled inside the container (a moment for Go)"
show 0 hello.sh
show 0 primes.go
show 0 sum.rs

title "A program that fails: its own words, its own exit code"
show 1 fails.py

title "A program that does not stop: ended at its limit"
show 137 forever.js --seconds 1

title "A program that tries the network"
show 0 network.py

title "What ran"
typed "history"
"$sandtray" history -n 8 | indented

title "The state of things"
typed "status"
"$sandtray" status | indented

title "Stopping the service"
# The containers of this start: those whose start was not there before.
ours=$(comm -13 <(echo "$before") <(instances | sort -u))
stop_service
if [ -n "$ours" ]; then
  printf '  containers left behind: %s\n' "$(instances | grep -cFx "$ours" || true)"
fi
printf '\nTo use it yourself: %s serve --enable\n' "$sandtray"
