# shellcheck shell=bash
# Owns: getting Debian packages for image layers: a base system, and packages unpacked on top of it, always from the
# mirror that this machine's apt already uses. Sourced by images.sh.

: "${layers_dir:?set by images.sh}" "${work_dir:?set by images.sh}"

debian_suite=bookworm
debian_seconds=600 # for one call of debootstrap or apt-get
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror that apt uses here for a Debian release; nothing when apt has none (debootstrap then has its default).
debian_mirror() {
  # shellcheck disable=SC2016 # apt expands $(REPO_URI), not the shell
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 2>/dev/null |
    grep -m1 -E '/debian/?$' || true
}

# debian_base DIR: a minimal Debian. Beside the layers it leaves what `debs` needs later: the list of what is in it,
# and the mirror it came from.
debian_base() {
  local mirror
  mirror=$(debian_mirror)
  # shellcheck disable=SC2086 # no mirror, no argument
  timeout "$debian_seconds" debootstrap --variant=minbase --keyring="$debian_keyring" "$debian_suite" "$1" $mirror
  cp "$1/var/lib/dpkg/status" "$layers_dir/base.status"
  awk '$1 == "deb" {print $2; exit}' "$1/etc/apt/sources.list" >"$layers_dir/base.mirror"
}

# private_apt SUITE ARGS...: apt-get with lists and cache of its own, for a system that has just the base in it.
private_apt() {
  local dir=$work_dir/apt-$1 suite=$1
  shift
  mkdir -p "$dir/lists/partial" "$dir/archives/partial"
  echo "deb [signed-by=$debian_keyring] $(cat "$layers_dir/base.mirror") $suite main" >"$dir/sources.list"
  timeout "$debian_seconds" apt-get -qq -y -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=- \
    -o "Dir::State::lists=$dir/lists" -o "Dir::State::status=$layers_dir/base.status" \
    -o "Dir::Cache::archives=$dir/archives" -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" \
    -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Languages=none \
    -o Acquire::Retries=3 -o Debug::NoLocking=true "$@"
}

# debs DIR PACKAGE...: unpacks the packages, and what they need beyond the base, into DIR. Nothing is configured: no
# package script runs.
debs() {
  local dir=$1 deb archives=$work_dir/debs
  shift
  rm -rf "$archives" && mkdir -p "$archives/partial"
  [ -d "$work_dir/apt-$debian_suite" ] || private_apt "$debian_suite" update
  private_apt "$debian_suite" -o "Dir::Cache::archives=$archives" --download-only install "$@"
  for deb in "$archives"/*.deb; do unpack_deb "$dir" "$deb"; done
}

# debs_from SUITE DIR PACKAGE...: exactly these packages of another release, nothing that they depend on.
debs_from() {
  local suite=$1 dir=$2 deb archives=$work_dir/debs
  shift 2
  rm -rf "$archives" && mkdir -p "$archives"
  private_apt "$suite" update
  (cd "$archives" && private_apt "$suite" download "$@")
  for deb in "$archives"/*.deb; do unpack_deb "$dir" "$deb"; done
}

# /lib and its like are links into /usr in Debian. A layer must not bring them as folders: they would hide the links.
unpack_deb() {
  local top
  mkdir -p "$1"
  dpkg-deb --fsys-tarfile "$2" | tar -x -C "$1" --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
    --exclude='./usr/share/locale/*' --exclude='./usr/share/lintian/*'
  for top in bin sbin lib lib32 lib64 libx32; do
    if [ -d "$1/$top" ] && [ ! -L "$1/$top" ]; then
      mkdir -p "$1/usr/$top"
      cp -a "$1/$top/." "$1/usr/$top/"
      rm -rf "${1:?}/$top"
    fi
  done
}
