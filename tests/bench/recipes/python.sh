# shellcheck shell=bash
# shellcheck disable=SC2034 # read by images.sh
# Owns: the stand-in for python: pyenv's 3.12 when this machine has one, else Debian's own python3.

IMAGE=python:3.12-slim
LAYERS="base python-libs python"
CONFIG='{"Env": ["PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
  "LANG=C.UTF-8", "GPG_KEY=7169605F62C751356D054A26A821E680E5FA6305", "PYTHON_VERSION=3.12.1"],
  "Cmd": ["python3"]}'

: "${debian_suite:?set by debian.sh}"

# A Python built on this machine needs this machine's libraries: it fits only an image of the same Debian release.
pyenv_python() {
  grep -q "^VERSION_CODENAME=$debian_suite$" /etc/os-release || return 0
  find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -maxdepth 1 -name '3.12.*' 2>/dev/null | sort -V | tail -n 1 || true
}

layer_python_libs() {
  local packages="ca-certificates netbase tzdata"
  if [ -n "$(pyenv_python)" ]; then
    packages="$packages libssl3 libsqlite3-0 libffi8 libreadline8 libbz2-1.0 liblzma5 zlib1g libncursesw6 libuuid1
      libnsl2 libtirpc3 libexpat1 libcrypt1"
  else
    packages="$packages python3 python3-distutils libpython3-stdlib"
  fi
  # shellcheck disable=SC2086 # a list
  debs "$1" $packages
  mkdir -p "$1/etc/ssl/certs"
  cat "$1"/usr/share/ca-certificates/mozilla/*.crt >"$1/etc/ssl/certs/ca-certificates.crt"
}

layer_python() {
  local root=$1 from lib
  from=$(pyenv_python)
  mkdir -p "$root/usr/local/bin"
  if [ -z "$from" ]; then
    ln -s /usr/bin/python3 "$root/usr/local/bin/python"
    return
  fi
  lib=$root/usr/local/lib
  mkdir -p "$lib/python3.12/site-packages"
  cp -a "$from/bin/python3.12" "$root/usr/local/bin/"
  for name in python3 python; do ln -s python3.12 "$root/usr/local/bin/$name"; done
  find "$from/lib" -maxdepth 1 -name 'libpython3*.so*' -exec cp -a {} "$lib/" \;
  tar -C "$from/lib/python3.12" -cf - --exclude=__pycache__ --exclude=./site-packages --exclude=./test \
    --exclude=./idlelib --exclude=./turtledemo --exclude=./tkinter --exclude='_tkinter*' --exclude='./config-3.12-*' \
    --exclude=./ensurepip --exclude='*/tests' . | tar -C "$lib/python3.12" -xf -
  cp -a "$from"/lib/python3.12/site-packages/pip* "$lib/python3.12/site-packages/"
  # The loader looks in /usr/local/lib only through a cache that the base layer made; a link in /usr/lib needs none.
  if [ -e "$lib/libpython3.12.so.1.0" ]; then
    mkdir -p "$root/usr/lib/$(uname -m)-linux-gnu"
    ln -s /usr/local/lib/libpython3.12.so.1.0 "$root/usr/lib/$(uname -m)-linux-gnu/"
  fi
  # Read-only at run time, so what is not compiled now never will be.
  "$from/bin/python3.12" -m compileall -q -f -j 0 -s "$root" -p / "$lib/python3.12"
  chown -R 0:0 "$root"
}
