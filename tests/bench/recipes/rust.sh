# shellcheck shell=bash
# shellcheck disable=SC2034 # read by images.sh
# Owns: the stand-in for rust: this machine's own toolchain (compiler and standard library) with Debian's gcc.

IMAGE=rust:1.90-slim-bookworm
LAYERS="base gcc rust-compiler rust-std"
CONFIG='{"Env": ["PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "RUSTUP_HOME=/usr/local/rustup", "CARGO_HOME=/usr/local/cargo", "RUST_VERSION=1.90.0"], "Cmd": ["bash"]}'

rust_target() { echo "usr/local/rustup/toolchains/stand-in-$(uname -m)-unknown-linux-gnu"; }
rust_sysroot() { PATH=$HOME/.cargo/bin:$PATH rustc --print sysroot; }

layer_rust_compiler() {
  local root=$1 to from
  to=$root/$(rust_target)
  from=$(rust_sysroot)
  mkdir -p "$to/bin" "$to/lib" "$root/usr/local/cargo/bin"
  cp -a "$from/bin/rustc" "$to/bin/"
  cp -a "$from"/lib/*.so* "$to/lib/"
  ln -s "/$(rust_target)/bin/rustc" "$root/usr/local/cargo/bin/rustc"
  chown -R 0:0 "$root"
}

layer_rust_std() {
  local root=$1 to host
  host=$(uname -m)-unknown-linux-gnu
  to=$root/$(rust_target)/lib/rustlib
  mkdir -p "$to"
  cp -a "$(rust_sysroot)/lib/rustlib/$host" "$to/"
  chown -R 0:0 "$root"
}
