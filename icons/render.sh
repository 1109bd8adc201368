#!/usr/bin/env bash
# Renders every picture that the app and its packages need from the SVGs here. Needs rsvg-convert (librsvg2-bin) and python3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for size in 16 32 48 64 128 256 512; do
  rsvg-convert -w "$size" -h "$size" app.svg -o "app-$size.png"
done

# Ink for panels of either tone. The shapes tell the states apart; the colour never does.
for state in off ready running trouble; do
  rsvg-convert -w 64 -h 64 "tray/$state.svg" -o "tray/$state-on-light.png"
  sed 's/#000/#fff/g' "tray/$state.svg" | rsvg-convert -w 64 -h 64 -o "tray/$state-on-dark.png"
done

# Both formats are PNGs in a list.
python3 - <<'PY'
import struct

def png(size):
    with open(f"app-{size}.png", "rb") as file:
        return file.read()

sizes = [16, 32, 48, 64, 256]
offset, entries, images = 6 + 16 * len(sizes), b"", b""
for size in sizes:
    data = png(size)
    entries += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(data), offset)
    images += data
    offset += len(data)
with open("app.ico", "wb") as file:
    file.write(struct.pack("<HHH", 0, 1, len(sizes)) + entries + images)

kinds = {b"icp4": 16, b"icp5": 32, b"icp6": 64, b"ic07": 128, b"ic08": 256, b"ic09": 512}
chunks = b"".join(kind + struct.pack(">I", len(png(size)) + 8) + png(size) for kind, size in kinds.items())
with open("app.icns", "wb") as file:
    file.write(b"icns" + struct.pack(">I", len(chunks) + 8) + chunks)
PY
