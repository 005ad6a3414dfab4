#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""icons.py [FOLDER]: draws the page's PNG icons, which phones want beside web/public/icon.svg.

Same drawing, same colours: a square with three round corners and two eyes. The maskable one fills
its square, since the phone cuts it to a shape of its own, and keeps the eyes in the middle part.
Edges are smoothed by 4 x 4 samples a pixel; the PNG is written here, so nothing has to be
installed, and the same script gives the same bytes.
"""
import os
import struct
import sys
import zlib

GREEN, WHITE = (0x0B, 0x6B, 0x5D), (0xFF, 0xFF, 0xFF)
SAMPLES = 4


def in_shape(x, y):
    """The rounded square of icon.svg, whose side is 64: the corner at the lower left is sharper."""
    radius = 6 if x < 32 and y >= 32 else 20
    dx = max(radius - x, x - (64 - radius), 0)
    dy = max(radius - y, y - (64 - radius), 0)
    return dx * dx + dy * dy <= radius * radius


def in_eye(x, y):
    return min((x - 21) ** 2, (x - 43) ** 2) + (y - 32) ** 2 <= 36


def sample(x, y, maskable):
    """(r, g, b, a) at a point of the 64 x 64 drawing, each 0..255."""
    if maskable:  # the eyes at three quarters of their size, in the safe middle
        x, y = 32 + (x - 32) / 0.75, 32 + (y - 32) / 0.75
    elif not in_shape(x, y):
        return 0, 0, 0, 0
    return (*(WHITE if in_eye(x, y) else GREEN), 255)


def pixel(px, py, size, maskable):
    total = [0, 0, 0, 0]
    for k in range(SAMPLES * SAMPLES):
        x = (px + (k % SAMPLES + 0.5) / SAMPLES) * 64 / size
        y = (py + (k // SAMPLES + 0.5) / SAMPLES) * 64 / size
        r, g, b, a = sample(x, y, maskable)
        for i, v in enumerate((r * a, g * a, b * a, a)):
            total[i] += v
    a = total[3]
    colour = [round(v / a) if a else 0 for v in total[:3]]
    return bytes(colour + [round(a / SAMPLES ** 2)])


def png(size, maskable):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + b"".join(pixel(x, y, size, maskable) for x in range(size))
                    for y in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) +
            chunk(b"IEND", b""))


def main(folder):
    for name, size, maskable in (("icon-192", 192, False), ("icon-512", 512, False),
                                 ("icon-maskable-512", 512, True)):
        with open(os.path.join(folder, name + ".png"), "wb") as f:
            f.write(png(size, maskable))


main(sys.argv[1] if len(sys.argv) > 1 else "web/public")
