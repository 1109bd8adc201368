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

# layer NAME: the path of the layer's archive, in $layer_file; made when it is not there yet.
layer() {
  local name=$1 recipe root
  recipe=$(recipe_of "$name")
  layer_file=$layers_dir/$name@$(hash_of "$recipe" "$here/recipes/base.sh").tar.gz
  [ ! -e "$layer_file" ] || return 0
  root=$work_dir/$name
  rm -rf "$root" && mkdir -p "$root" "$layers_dir"
  # shellcheck source=/dev/null
  . "$recipe"
  # Not `|| die`: that would make the shell go on after a failed command inside the recipe.
  "layer_${name//-/_}" "$root" >"$layer_log" 2>&1
  rm -f "$layers_dir/$name"@*.tar.gz
  tar -C "$root" --sort=name --numeric-owner --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*' -cf - . |
    pigz -1 >"$layer_file.part"
  mv "$layer_file.part" "$layer_file"
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
    timed "  layer $part" layer "$part"
    files+=("$layer_file")
  done
  timed "image $IMAGE pushed" /usr/bin/python3 "$here/push.py" "$registry_url" "library/$name" "$tag,$mark" \
    "$(dpkg --print-architecture)" "$CONFIG" "${files[@]}"
)

need_root "$0" "$@"
if [ "${1:-}" = --one ]; then # only ever called by the lines below: one image's failure must not stop the others
  trap '[ $? -eq 0 ] || tail -n 30 "$layer_log" >&2' EXIT
  image "$2"
  exit
fi
"$here/engine.sh" may-serve-stand-ins
mkdir -p "$bench_dir"
exec 9>"$bench_dir/images.lock"
flock -w 900 9 || die "another images.sh has been at work for 15 minutes"
rm -rf "$work_dir" && mkdir -p "$work_dir"
failed=
for recipe in $recipes; do
  "$0" --one "$recipe" || failed="$failed $recipe"
done
rm -rf "$work_dir"
[ -z "$failed" ] || die "these images could not be made:$failed"
