#!/usr/bin/env bash
# Owns: building the command line and the app as they are shipped, each by itself: built together with the tests they would
# hold what only tests use.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
command -v cargo >/dev/null || die "cargo is not installed: Sandtray needs Rust 1.91 or newer"
timed "command line" cargo build --release --locked -p sandtray
# With its pages inside: that is what the feature custom-protocol means, and it is on unless turned off.
timed "app" cargo build --release --locked -p sandtray-app
