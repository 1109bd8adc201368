# shellcheck shell=bash
# Owns: giving a machine that mounts no control groups (a bare chroot, a minimal VM) the ones that an engine needs.
# Sourced by engine.sh; does nothing where any are mounted.

mount_cgroups_if_missing() {
  ! grep -qE '^[^ ]+ [^ ]+ cgroup2? ' /proc/mounts || return 0
  local root=/sys/fs/cgroup name
  [ -d "$root" ] || die "this kernel has no control groups: no engine can run here"
  say "engine: no control groups are mounted: mounting them on $root"
  mount -t cgroup2 cgroup2 "$root" 2>/dev/null || true
  if grep -qs memory "$root/cgroup.controllers" && grep -qs pids "$root/cgroup.controllers"; then return 0; fi
  umount "$root" 2>/dev/null || true
  mount -t tmpfs -o mode=755 cgroup "$root"
  awk '!/^#/ && $4 == 1 {print $1}' /proc/cgroups | while read -r name; do
    mkdir "$root/$name"
    mount -t cgroup -o "$name" cgroup "$root/$name" || rmdir "$root/$name"
  done
}
