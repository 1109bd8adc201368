#!/usr/bin/env bash
# Owns: installing the Debian packages of a list that are missing. Needs no network when none is.
# Usage: packages.sh [LIST...]   default: packages.txt beside this script
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"

[ $# -gt 0 ] || set -- "$here/packages.txt"
command -v dpkg-query >/dev/null || die "this is no Debian system: install by hand what $* name"

installed=" $(dpkg-query -W -f '${db:Status-Status}/${Package}\n' | sed -n 's|^installed/||p' | tr '\n' ' ')"
missing=
while read -r package command; do
  if [ -n "$command" ] && command -v "$command" >/dev/null; then continue; fi
  case $installed in *" $package "*) ;; *) missing="$missing $package" ;; esac
done < <(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@")

if [ -z "$missing" ]; then
  say "packages: all installed"
  exit 0
fi
say "packages: installing$missing"
need_root "$0" "$@"
export DEBIAN_FRONTEND=noninteractive
# Where the machine starts services by itself, Debian may start docker now; then that engine is the owner's.
timeout 300 apt-get -qq update </dev/null || say "packages: apt-get update failed: trying with the lists there are"
# shellcheck disable=SC2086 # a list
timeout 900 apt-get -qq -y --no-install-recommends -o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 install $missing \
  </dev/null >"${TMPDIR:-/tmp}/sandtray-packages.log" 2>&1 || {
  tail -n 20 "${TMPDIR:-/tmp}/sandtray-packages.log" >&2
  die "packages: apt-get could not install$missing"
}
