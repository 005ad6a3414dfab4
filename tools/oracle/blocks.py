#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/blocks/sha256.txt: what the package `gguf` makes of random blocks of each type.

The blocks are the low bytes of a xorshift32 that starts from the type's number + 1; the sixth bit of
the high byte of every 16-bit float is cleared, which keeps scales finite. A line is the type, the
SHA-256 of 64 blocks as little-endian f32, and the first weights, for eyes.
"""
import hashlib
import os

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

BLOCKS = 64
# Where a block has 16-bit floats.
FLOATS = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
          "MXFP4": [], "TQ2_0": [64], "TQ1_0": [52], "Q1_0": [0], "Q2_0": [0], "IQ2_XXS": [0],
          "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "IQ1_S": [0],
          "IQ1_M": [54]}  # whose four high bits of d are in the last byte
# The package has no decoder of these: number, weights, bytes, bits of a weight. One bit is -1 or 1,
# two are -1 to 2.
OTHERS = {"Q1_0": (41, 128, 18, 1), "Q2_0": (42, 64, 18, 2)}


def dequantize(name, blocks):
    if name not in OTHERS:
        return quants.dequantize(blocks, GGMLQuantizationType[name])
    _, cols, _, bits = OTHERS[name]
    d = blocks[:, :2].copy().view("<f2").astype(np.float32)
    q = np.unpackbits(blocks[:, 2:], axis=1, bitorder="little").reshape(-1, cols, bits)
    q = (q * (1 << np.arange(bits))).sum(axis=2).astype(np.int32)
    return d * ((2 * q - 1) if bits == 1 else (q - 1)).astype(np.float32)


def random_bytes(seed, n):
    x, out = seed, bytearray()
    for _ in range(n):
        x ^= x << 13 & 0xFFFFFFFF
        x ^= x >> 17
        x ^= x << 5 & 0xFFFFFFFF
        out.append(x & 255)
    return out


def main():
    path = os.path.join(os.path.dirname(__file__), "../../test/golden/blocks/sha256.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("# tools/oracle/blocks.py: type, SHA-256 of 64 blocks as f32, the first four weights\n")
        for name, at in FLOATS.items():
            if name in OTHERS:
                number, _, size, _ = OTHERS[name]
            else:
                number = GGMLQuantizationType[name].value
                size = GGML_QUANT_SIZES[number][1]
            data = random_bytes(number + 1, BLOCKS * size)
            for block in range(BLOCKS):
                for offset in at:
                    data[block * size + offset + 1] &= 0xBF
                if name == "MXFP4":  # exponents that keep the products in range
                    data[block * size] &= 0x7F
            x = dequantize(name, np.frombuffer(bytes(data), np.uint8).reshape(BLOCKS, size))
            x = x.astype("<f4")
            first = " ".join(f"{v:.9g}" for v in x.flat[:4])
            f.write(f"{name} {hashlib.sha256(x.tobytes()).hexdigest()} {first}\n")


main()
