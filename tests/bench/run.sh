#!/usr/bin/env bash
# Owns: what `make run` does: builds the app and opens it, or says what to do where there is no screen.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
command -v cargo >/dev/null || die "cargo is not installed: Sandtray needs Rust 1.91 or newer"
cargo build -p sandtray-app -p sandtray
if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  say "there is no screen here, so no window can open. Without one:"
  say "  make demo                 see programs run, from the command line"
  say "  xvfb-run -a dbus-run-session -- target/debug/sandtray-app    the app on a screen that nobody sees"
  exit 0
fi
exec target/debug/sandtray-app
