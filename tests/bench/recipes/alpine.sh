# shellcheck shell=bash
# shellcheck disable=SC2034 # read by images.sh
# Owns: the stand-in for alpine: Debian's static busybox with its applets where Alpine has them.

IMAGE=alpine:3.22
LAYERS="alpine"
CONFIG='{"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], "Cmd": ["/bin/sh"], "WorkingDir": "/"}'

layer_alpine() {
  local root=$1 applet
  mkdir -p "$root"/{bin,dev,etc,home,lib,mnt,opt,proc,root,run,sbin,srv,sys,tmp,usr/bin,usr/sbin,usr/local/bin,var/tmp}
  chmod 1777 "$root/tmp" "$root/var/tmp"
  chmod 0700 "$root/root"
  cp "$(command -v busybox)" "$root/bin/busybox"
  "$root/bin/busybox" --list-full | while read -r applet; do
    mkdir -p "$root/$(dirname "$applet")"
    [ -e "$root/$applet" ] || ln -s /bin/busybox "$root/$applet"
  done
  for applet in sh ash; do ln -sf /bin/busybox "$root/bin/$applet"; done
  [ -e "$root/usr/bin/env" ] || [ -L "$root/usr/bin/env" ] || ln -s /bin/busybox "$root/usr/bin/env"
  printf '%s\n' 'root:x:0:0:root:/root:/bin/sh' 'nobody:x:65534:65534:nobody:/:/sbin/nologin' >"$root/etc/passwd"
  printf '%s\n' 'root:x:0:root' 'nobody:x:65534:' >"$root/etc/group"
  printf '%s\n' 'NAME="Alpine Linux (stand-in)"' 'ID=alpine' 'VERSION_ID=3.22.0' >"$root/etc/os-release"
  printf '%s\n' '3.22.0' >"$root/etc/alpine-release"
}
