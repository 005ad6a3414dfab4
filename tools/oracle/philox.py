# SPDX-License-Identifier: Apache-2.0
"""Philox 4x32-10 in numpy, and what is drawn from it: initial weights and batch starts.

A counter-based generator has no state: a number is a function of (seed, purpose, stream, index),
so the order in which parts of a program ask for numbers cannot change them.

    key      lo32(seed)   hi32(seed)
    counter  lo32(index)  hi32(index)  purpose  stream
    output   x0  x1  x2  x3        (u32 each)

    uniform  (x + 0.5) / 2^32, a double in (0, 1)
    normals  x0, x1 -> r = sqrt(-2 ln u(x0)), a = 2 pi u(x1): z0 = r cos a, z1 = r sin a
             x2, x3 -> z2, z3 the same way
    range n  high 64 bits of (x0 | x1 << 32) * n

Source of the generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011); the test vectors below are those of its authors' library, Random123.
Run this file to check the vectors.
"""

import math

import numpy as np

from spec import PRESETS, manifest

INIT, BATCH, MASK = 1, 2, 6

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
MASK32 = 0xFFFFFFFF


def philox(counter, key):
    """Ten rounds over counters. counter: [4] arrays of uint64 that hold u32; key: two ints."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    mask, shift = np.uint64(MASK32), np.uint64(32)
    for _ in range(ROUNDS):
        p0 = c0 * np.uint64(MULTIPLIERS[0])
        p1 = c2 * np.uint64(MULTIPLIERS[1])
        c0, c1, c2, c3 = (
            (p1 >> shift) ^ c1 ^ np.uint64(k0),
            p1 & mask,
            (p0 >> shift) ^ c3 ^ np.uint64(k1),
            p0 & mask,
        )
        k0, k1 = (k0 + WEYL[0]) & MASK32, (k1 + WEYL[1]) & MASK32
    return c0, c1, c2, c3


def blocks(seed, purpose, stream, first, count):
    """`count` blocks of four u32, from index `first` on: a uint64 array [count, 4]."""
    index = np.arange(first, first + count, dtype=np.uint64)
    counter = (
        index & np.uint64(MASK32),
        index >> np.uint64(32),
        np.full(count, purpose, np.uint64),
        np.full(count, stream, np.uint64),
    )
    return np.stack(philox(counter, (seed & MASK32, seed >> 32 & MASK32)), axis=1)


def normals(seed, purpose, stream, count):
    """`count` standard normals as doubles, four a block."""
    u = (blocks(seed, purpose, stream, 0, (count + 3) // 4).astype(np.float64) + 0.5) / 2.0**32
    r = np.sqrt(-2.0 * np.log(u[:, 0::2]))
    a = 2.0 * np.pi * u[:, 1::2]
    return np.stack((r * np.cos(a), r * np.sin(a)), axis=2).reshape(-1)[:count]


def init_std(name, config):
    """Standard deviation of a tensor's initial values; None where they are a constant."""
    if name.endswith(".bias") or ".ln" in name or name.startswith("ln_"):
        return None
    if name.endswith(("attn.o_proj.weight", "mlp.fc_out.weight")):
        # Both write into the residual stream, 2L times in all: scaled so that its variance holds.
        return 0.02 / math.sqrt(2 * config.layers)
    return 0.02


def init_weights(config, seed):
    """Initial weights {name: float32 array in the shape of the file's bytes}."""
    weights = {}
    for stream, tensor in enumerate(manifest(config)):
        std = init_std(tensor.name, config)
        if std is None:
            fill = 0.0 if tensor.name.endswith(".bias") else 1.0
            values = np.full(tensor.elems, fill, np.float32)
        else:
            values = (normals(seed, INIT, stream, tensor.elems) * std).astype(np.float32)
        weights[tensor.name] = values.reshape(tensor.shape)
    return weights


def batch_starts(seed, first, count, limit):
    """Start offsets in [0, limit) of the samples numbered first .. first + count."""
    draws = blocks(seed, BATCH, 0, first, count)
    return [(int(x[0]) | int(x[1]) << 32) * limit >> 64 for x in draws]


def _check():
    # counter, key, output: the "kat_vectors" of Random123 for philox4x32, 10 rounds.
    vectors = (
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    )
    for counter, key, want in vectors:
        words = [np.array([int(w, 16)], np.uint64) for w in counter.split()]
        output = philox(words, [int(w, 16) for w in key.split()])
        have = " ".join("%08x" % int(x[0]) for x in output)
        assert have == want, (counter, key, have, want)
    z = normals(42, INIT, 0, 1_000_000)
    assert abs(z.mean()) < 4e-3 and abs(z.std() - 1) < 3e-3, (z.mean(), z.std())
    starts = batch_starts(42, 0, 10_000, 1000)
    assert 0 <= min(starts) and max(starts) < 1000 and len(set(starts)) == 1000
    tokens = init_weights(PRESETS["small"], 42)["token_embedding.weight"]
    print("philox: vectors, moments and ranges agree; first weights of small, seed 42:",
          " ".join("%.9g" % x for x in tokens.reshape(-1)[:4]))


if __name__ == "__main__":
    _check()
