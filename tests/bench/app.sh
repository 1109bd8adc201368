#!/usr/bin/env bash
# Owns: opening the desktop app from the sources, behind `make run`.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."
PATH=$HOME/.cargo/bin:$PATH
command -v cargo >/dev/null || die "cargo is not installed: Sandtray needs Rust 1.91 or newer"
[ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] || die "there is no display here to open a window on: \`make demo\` shows Sandtray in the terminal"
say "building the app; the first time takes some minutes"
# The app and its window are two programs: the app starts the other one from where it lies itself.
cargo build --locked -p sandtray-app
exec "$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/debug/sandtray-app"
