#!/usr/bin/env bash
# Owns: which stand-in images exist and when one is made again. Makes them and puts them into the bench's registry
# under the names that the product pulls by default. How an image is made is its recipe's business (recipes/*.sh).
#
# No engine takes part: layers go straight to the registry (push.py). An image is made only when the registry lacks it
# or its recipe changed: every image also carries a tag recipe-HASH that tells from which text it was made.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/bench/lib.sh
. "$here/lib.sh"

recipes="alpine python node golang rust"
layers_dir=$bench_dir/layers
work_dir=$bench_dir/work
layer_log=$work_dir/layer.log
# shellcheck source=tests/bench/debian.sh
. "$here/debian.sh"

# The recipe that makes a layer: `rust-std` is made by recipes/rust.sh.
recipe_of() { echo "$here/recipes/${1%%-*}.sh"; }

# hash_of FILE...: of the texts' contents, wherever they lie.
hash_of() { cat "$here/debian.sh" "$@" | sha256sum | cut -c1-12; }

digest_in_registry() {
  curl -sS -m 5 -o /dev/null -I -w '%{http_code} %header{docker-content-digest}' \
    -H 'Accept: application/vnd.docker.distribution.manifest.v2+json' \
    "$registry_url/v2/library/$1/manifests/$2" | sed -n 's/^200 //p'
}

# Where a layer of the present recipe lies, whether it has been made or not.
layer_file() { echo "$layers_dir/$1@$(hash_of "$(recipe_of "$1")" "$here/recipes/base.sh").tar.gz"; }

# layer NAME: makes the layer's archive unless it is there.
layer() {
  local name=$1 root=$work_dir/$1 file
  file=$(layer_file "$name")
  [ ! -e "$file" ] || return 0
  rm -rf "$root" && mkdir -p "$root" "$layers_dir"
  # shellcheck source=/dev/null
  . "$(recipe_of "$name")"
  "layer_${name//-/_}" "$root" >"$layer_log" 2>&1
  rm -f "$layers_dir/$name"@*.tar.gz
  tar -C "$root" --sort=name --numeric-owner --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -cf - . |
    pigz -1 >"$file.part"
  mv "$file.part" "$file"
  rm -rf "$root"
}

# image RECIPE: makes and pushes one image unless the registry has it already.
image() (
  # shellcheck source=/dev/null
  . "$here/recipes/$1.sh"
  name=${IMAGE%%:*} tag=${IMAGE#*:} parts=() files=()
  for part in $LAYERS; do parts+=("$(recipe_of "$part")"); done
  mark=recipe-$(hash_of "$here/recipes/$1.sh" "${parts[@]}")
  made=$(digest_in_registry "$name" "$mark")
  if [ -n "$made" ] && [ "$made" = "$(digest_in_registry "$name" "$tag")" ]; then
    say "image $IMAGE is there"
    return
  fi
  for part in $LAYERS; do
    timed "  layer $part" "$0" --layer "$part"
    files+=("$(layer_file "$part")")
  done
  timed "image $IMAGE pushed" /usr/bin/python3 "$here/push.py" "$registry_url" "library/$name" "$tag,$mark" \
    "$(dpkg --print-architecture)" "$CONFIG" "${files[@]}"
)

need_root "$0" "$@"
# A process for each layer and image, called by this script alone: one that fails must not stop the others, and still
# must stop at its own first failed command.
case ${1:-} in
  --layer)
    trap '[ $? -eq 0 ] || tail -n 30 "$layer_log" >&2' EXIT
    layer "$2"
    exit
    ;;
  --image)
    image "$2"
    exit
    ;;
esac
"$here/engine.sh" may-serve-stand-ins
mkdir -p "$bench_dir"
exec 9>"$bench_dir/images.lock"
flock -w 900 9 || die "another images.sh has been at work for 15 minutes"
rm -rf "$work_dir" && mkdir -p "$work_dir"
failed=
for recipe in $recipes; do
  "$0" --image "$recipe" || failed="$failed $recipe"
done
rm -rf "$work_dir"
[ -z "$failed" ] || die "these images could not be made:$failed"
