#!/usr/bin/env bash
# Owns: stopping what the test bench started, and nothing else. What was made (images, layers) stays in its folder.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/engine.sh" down
"$here/registry.sh" down
