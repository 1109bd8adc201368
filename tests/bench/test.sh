#!/usr/bin/env bash
# Owns: what `make test` does once the packages are there: bench up, every check and test, and the bench down again if
# it was this call that started it.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
command -v cargo >/dev/null || die "cargo is not installed: Sandtray needs Rust 1.91 or newer"

case $("$here/engine.sh" status) in
  *owned=yes*) say "the bench is already up: it stays up afterwards" ;;
  *) trap '"$here/down.sh"' EXIT ;;
esac
timed "bench up" "$here/up.sh"

timed "cargo fmt" cargo fmt --check
timed "dependencies" "$here/dependencies.sh"
timed "npm ci" npm --prefix ui ci
timed "window: types" npm --prefix ui run check
timed "window: units" npm --prefix ui test
timed "window: in a browser" npm --prefix ui run test:window
timed "cargo clippy" cargo clippy --workspace --all-targets --locked -- -D warnings
# The suites start the programs themselves, which cargo does not build for tests.
timed "cargo build" cargo build --workspace --locked
timed "cargo test" cargo test --workspace --locked --no-fail-fast
