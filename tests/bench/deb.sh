#!/usr/bin/env bash
# Owns: what `make deb` does: a release build of the app and the command line, packed as a Debian package.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
command -v cargo >/dev/null || die "cargo is not installed: Sandtray needs Rust 1.91 or newer"
[ -x ui/node_modules/.bin/tauri ] || npm --prefix ui ci --no-audit --no-fund
timed "command line" cargo build --release --locked -p sandtray
# The bundler takes it from beside the app.
timed "app and package" ui/node_modules/.bin/tauri build --bundles deb --ci -- --locked
ls -l target/release/bundle/deb/*.deb
