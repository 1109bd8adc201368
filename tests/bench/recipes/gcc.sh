# shellcheck shell=bash
# Owns: the layer with a C compiler and linker, shared by rust and golang.

layer_gcc() {
  debs "$1" gcc libc6-dev
  ln -s gcc "$1/usr/bin/cc" # what Debian does when the package is configured
  # Programs that only a C++ or profiling build needs, and the sanitizers' libraries.
  find "$1" \( -name 'lto-dump*' -o -name 'lib[alhtu]*san*' -o -name 'gnat*' \) -type f -delete
}
