#!/usr/bin/env bash
# Owns: the Debian package: the app, the command line, the desktop file and the icons.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."
PATH=$HOME/.cargo/bin:$PATH
cargo build --release -p sandtray
npm --prefix ui ci
npm --prefix ui run tauri -- build --bundles deb
ls target/release/bundle/deb/*.deb
