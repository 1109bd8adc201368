# shellcheck shell=bash
# shellcheck disable=SC2034 # read by images.sh
# Owns: the stand-in for golang: Go 1.24 as the next Debian release has it, laid out under /usr/local/go.

IMAGE=golang:1.24-bookworm
LAYERS="base gcc golang"
CONFIG='{"Env": ["PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "GOLANG_VERSION=1.24", "GOTOOLCHAIN=local", "GOPATH=/go"], "Cmd": ["bash"], "WorkingDir": "/go"}'

: "${work_dir:?set by images.sh}"

layer_golang() {
  local root=$1 from=$work_dir/go
  debs_from trixie "$from" golang-1.24-go golang-1.24-src
  mkdir -p "$root/usr/local" "$root/go/bin" "$root/go/src"
  chmod 1777 "$root/go" "$root/go/bin" "$root/go/src"
  # Debian splits Go between /usr/share and /usr/lib, with links from the second to the first.
  cp -a "$from/usr/share/go-1.24" "$root/usr/local/go"
  cp -a "$from"/usr/lib/go-1.24/{VERSION,go.env,bin} "$root/usr/local/go/"
  cp -a "$from/usr/lib/go-1.24/pkg/tool" "$root/usr/local/go/pkg/"
  find "$root/usr/local/go" -name testdata -prune -exec rm -rf {} +
  find "$root/usr/local/go" -name '*_test.go' -delete
  rm -rf "$root/usr/local/go/test" "$root/usr/local/go/api"
  chown -R 0:0 "$root/usr/local/go"
  "$root/usr/local/go/bin/go" version
}
