# shellcheck shell=bash
# Owns: the base layer: a minimal Debian without documents, as the official slim images have it.

layer_base() {
  local root=$1
  debian_base "$root"
  rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*
  find "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" -mindepth 1 -delete
  : >"$root/etc/hostname"
  : >"$root/etc/resolv.conf"
  # This machine's mirror and names are nobody's business in an image.
  echo "# none: stand-in image of Sandtray's test bench" >"$root/etc/apt/sources.list"
}
