#!/usr/bin/env bash
# Owns: what `make deb` does: a release build of the app and the command line, packed as a Debian package.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
command -v cargo >/dev/null || die "cargo is not installed: Sandtray needs Rust 1.91 or newer"
[ -x ui/node_modules/.bin/tauri ] || npm --prefix ui ci --no-audit --no-fund
# The same programs that `make bench` measures. `tauri build` would make others, with their symbols left in.
"$here/release.sh"
# The bundler takes files as they are.
mkdir -p target/deb
for file in changelog sandtray.1 sandtray-app.1 sandtray-window.1; do
  gzip -9nc "src-tauri/linux/$file" >"target/deb/$file.gz"
done
timed "package" ui/node_modules/.bin/tauri bundle --bundles deb --ci
ls -l target/release/bundle/deb/*.deb
