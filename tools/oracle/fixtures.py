# SPDX-License-Identifier: Apache-2.0
"""Write .tinygpt fixtures of versions 1 and 2, and what a reader has to get out of them.

    python3 fixtures.py OUT_DIR

The files are built from the description of the format alone, with nothing but the standard
library, so that the C reader and writer are checked against somebody else's reading of it.

    OFFSET  SIZE  MEANING (little-endian, nothing aligned)
    0       4     "TGPT"
    4       4     u32 version, 1 or 2
    8       4     u32 H, bytes of the header
    12      H     JSON
    12+H    4     i32 training step
    16+H    ...   body, tensors in the order of spec.manifest, linear weights as [in, out]:
                    fp32   per tensor: weights, first moments, second moments, all f32
                    fp16   weights as half floats
                    int4   one half-float scale for each block of 64 elements, of all tensors;
                           then 32 bytes for each block: low nibble = even element, value + 8.
                           Each tensor begins a block. A scale of 0 means 64 zeros; the bytes of
                           such a block and the nibbles behind a tensor's end are 0.

Beside NAME.tinygpt lie NAME.w.f32 and, with moments, NAME.m.f32 and NAME.v.f32: raw f32 of all
tensors in file order. They hold bit for bit what the fp32 and fp16 files say (negative zeros and
subnormals too); for int4 they hold the product q * scale, and +0 where the scale is 0.

index.txt has one line for each fixture, fields separated by one space:

    NAME VERSION fp32|fp16|int4 MOMENTS STEP ELEMS HISTORY REWRITE

MOMENTS 0 or 1; ELEMS weights in all; HISTORY points of the loss history;
REWRITE  file  writing the model again, as the same kind, gives the same file byte for byte
         body   the same for everything behind the header (its keys come from another writer)
         -     the body is legal, but not what a writer that rounds to nearest would make
"""

import json
import os
import struct
import sys

from spec import Config, manifest

MODEL = Config(layers=2, width=24, heads=3, ctx=16)
BLOCK = 64
SEED = 0x7467707466697874


# ------------------------------------------------------------------------------------------ numbers


def f32(x):
    """Round a double to float32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def half_bytes(x):
    """Round to a half float, ties to even."""
    return struct.pack("<e", x)


def half(x):
    return struct.unpack("<e", half_bytes(x))[0]


def f32_bytes(values):
    return struct.pack(f"<{len(values)}f", *values)


def uniforms(seed):
    """Doubles in [0, 1) without end: splitmix64 (Steele, Lea, Flood 2014)."""
    mask = (1 << 64) - 1
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        yield ((z ^ z >> 31) >> 11) / 2.0**53


# Values that a conversion to half floats can get wrong. ulp is the spacing above 1.
ULP = 2.0**-10
TINY = 2.0**-24  # the smallest subnormal half
HARD_FOR_HALF = [
    0.0, -0.0,
    TINY, -TINY, 3 * TINY, 1023 * TINY, 1024 * TINY,  # subnormals, and the smallest normal number
    TINY / 2, -TINY / 2,                # ties with zero: to even, so to (signed) zero
    TINY / 2 * (1 + 2.0**-23),          # just above that tie
    1.5 * TINY, 2.5 * TINY,             # ties of subnormals: both to 2
    1023.5 * TINY,                      # a tie that carries into the normal numbers
    1e-40, -1e-40,                      # subnormal even in f32
    1 + ULP / 2, 1 + 1.5 * ULP,         # ties: down to even, up to even
    1 + ULP / 2 + 2.0**-23, 1 + ULP / 2 - 2.0**-23,
    2 - ULP / 2, -(2 - ULP / 2),        # a tie that carries into the exponent
    65504.0, -65504.0, 65519.0,         # the largest half, and what rounds down to it
    1 / 3, -0.1,
]


def hard_blocks():
    """Blocks of 64 weights, each hard in one way; they begin the token embedding."""
    yield HARD_FOR_HALF + [f32(0.001 * i) for i in range(BLOCK - len(HARD_FOR_HALF))]
    # Nothing but zeros of both signs: an int4 scale of zero.
    yield [0.0 if i % 3 else -0.0 for i in range(BLOCK)]
    # An int4 scale that is a subnormal half.
    yield [((i * 37) % 129 - 64) * TINY for i in range(BLOCK)]
    # Weights that a half float holds, under an int4 scale that none holds: it rounds to zero.
    yield [(i % 7 - 3) * TINY for i in range(BLOCK)]
    # Scale 1/64: every quotient lies in the middle between two integers, or at the end.
    yield [((i % 14) - 6.5) / 64 for i in range(BLOCK - 2)] + [7 / 64, -7 / 64]


def make_weights():
    """Weights, first and second moments {name: [floats that f32 holds]}."""
    random = uniforms(SEED)
    weights, first, second = {}, {}, {}
    for tensor in manifest(MODEL):
        n, base = tensor.elems, 1.0 if ".ln" in tensor.name and "weight" in tensor.name else 0.0
        weights[tensor.name] = [f32(base + 0.2 * next(random) - 0.1) for _ in range(n)]
        first[tensor.name] = [f32(1e-3 * (next(random) - 0.5)) for _ in range(n)]
        second[tensor.name] = [f32(1e-6 * next(random) ** 4) for _ in range(n)]
        first[tensor.name][0], second[tensor.name][0] = -0.0, 0.0
        second[tensor.name][1] = f32(1e-42)
    hard = [x for block in hard_blocks() for x in block]
    weights["token_embedding.weight"][: len(hard)] = [f32(x) for x in hard]
    for layer in range(MODEL.layers):
        weights[f"blocks.{layer}.attn.k_proj.bias"] = [0.0] * MODEL.width
    weights["ln_final.bias"] = [-0.0] * MODEL.width
    return weights, first, second


# ------------------------------------------------------------------------------------------- bodies


def body_fp32(weights, first, second):
    parts = []
    for tensor in manifest(MODEL):
        for kind in (weights, first, second):
            parts.append(f32_bytes(kind[tensor.name]))
    return b"".join(parts)


def body_fp16(weights):
    """Body and the decoded weights."""
    body = b"".join(half_bytes(x) for t in manifest(MODEL) for x in weights[t.name])
    decoded = {t.name: [half(x) for x in weights[t.name]] for t in manifest(MODEL)}
    return body, decoded


def encode_block(values):
    """Scale as a half float and 64 nibbles, for up to 64 weights.

    The quotient is by the scale before it was rounded to a half, in double; halves go away from 0.
    """
    scale = max(abs(x) for x in values) / 7
    stored = half(scale)
    # Computing the scale in single or in double precision has to make no difference here.
    assert stored == half(f32(scale)), scale
    if stored == 0:
        return 0.0, [0] * BLOCK
    nibbles = []
    for x in values:
        q = max(-7, min(7, int(abs(x) / scale + 0.5) * (1 if x > 0 else -1)))
        nibbles.append(q + 8)
    return stored, nibbles + [0] * (BLOCK - len(values))


def decode_block(scale, nibbles, n):
    return [(q - 8) * scale if scale else 0.0 for q in nibbles[:n]]


def body_int4(weights, encode):
    """Body, decoded weights, bytes of the scales, bytes of the nibbles."""
    scales, packed, decoded = [], [], {}
    for tensor in manifest(MODEL):
        values = weights[tensor.name]
        decoded[tensor.name] = []
        for i in range(0, tensor.elems, BLOCK):
            part = values[i : i + BLOCK]
            scale, nibbles = encode(part)
            scales.append(half_bytes(scale))
            packed.append(bytes(nibbles[j] | nibbles[j + 1] << 4 for j in range(0, BLOCK, 2)))
            decoded[tensor.name] += decode_block(scale, nibbles, len(part))
    scales, packed = b"".join(scales), b"".join(packed)
    return scales + packed, decoded, len(scales), len(packed)


def odd_encoder():
    """Blocks that rounding never makes: the nibble 0 (-8), blocks without a 7, any scale."""
    random = uniforms(SEED + 1)
    scales = [0.0, TINY, 1023 * TINY, 0.0625, 1.5, 65504.0 / 8]

    def encode(values):
        scale = scales[int(next(random) * len(scales))]
        low, count = (0, 16) if next(random) < 0.5 else (6, 5)
        nibbles = [low + int(next(random) * count) for _ in range(BLOCK)]
        return scale, nibbles  # the tail of a last block holds junk that nobody may look at

    return encode


# ------------------------------------------------------------------------------------------ headers


def manifest_json():
    entries, offset = [], 0
    for tensor in manifest(MODEL):
        entries.append({"name": tensor.name, "shape": list(tensor.stated_shape),
                        "floatOffset": offset})
        offset += tensor.elems
    return entries


def config_json():
    return {"layers": MODEL.layers, "dModel": MODEL.width, "ctx": MODEL.ctx, "heads": MODEL.heads,
            "dMlp": MODEL.mlp, "backend": "wasm"}


# Every number here is short in binary, so that no writer prints it in another way.
HISTORY = [
    {"step": 1, "train": 5.5, "val": None},
    {"step": 50, "train": 3.25, "val": 3.375},
    {"step": 100, "train": 2.5, "val": 2.625},
]


def header_minimal(dtype, moments, state_bytes, extra=()):
    """What a compatible file needs, plus the loss history. The key order is part of the fixture."""
    header = {"version": 2, "config": config_json(), "manifest": manifest_json(),
              "weightDtype": dtype, "includesOptimizerState": moments}
    header.update(extra)
    header["stateByteLength"] = state_bytes
    header["lossHistory"] = HISTORY
    return header


def header_browser(state_bytes):
    """As the web page writes it: all of its keys, the whole text, no weightDtype; and strangers."""
    corpus = 'He said: "No."\n\ttab \\ slash / \u0001 é ☃ \U0001F600 </script>\n' * 40
    return {
        "version": 2,
        "savedAt": "2026-06-13T12:34:56.789Z",
        "config": {"ctx": MODEL.ctx, "layers": MODEL.layers, "heads": MODEL.heads,
                   "dModel": MODEL.width, "dMlp": MODEL.mlp, "batchSize": 16,
                   "learningRate": 0.0003, "gradClip": 1, "maxSteps": 1500, "evalEvery": 50,
                   "seed": 42, "backend": "webgpu"},
        "corpus": corpus,
        "manifest": manifest_json(),
        "includesOptimizerState": True,
        "stateByteLength": state_bytes,
        "lossHistory": HISTORY,
        "finalLoss": {"step": 100, "train": 2.5, "val": 2.625},
        "sample": "ROMEO:\nWhat \U0001F339?",
        "bestVal": {"loss": 2.625, "step": 100},
        "project": "tinygpt",
        "unknown": {"nested": [[], {}, [1, [2.5e-3, -1e2], None, True, False, ""]], "ключ": "é"},
    }


def dump(header, **options):
    return json.dumps(header, separators=(",", ":"), ensure_ascii=False, **options).encode()


def aligned(header, remainder):
    """The header as JSON, stretched until the body begins at 4k + remainder."""
    for length in range(4):
        text = dump({**header, "project": "x" * length})
        if (16 + len(text)) % 4 == remainder:
            return text
    raise AssertionError("four lengths give four remainders")


# -------------------------------------------------------------------------------------------- files


class Writer:
    """Writes fixtures into a folder and remembers a line of the index for each."""

    def __init__(self, out):
        self.out = out
        self.index = []

    def raw(self, name, kind, values):
        with open(os.path.join(self.out, f"{name}.{kind}.f32"), "wb") as f:
            f.write(b"".join(f32_bytes(values[t.name]) for t in manifest(MODEL)))

    def fixture(self, name, version, dtype, header, step, body, weights, moments=(), history=3,
                rewrite="body"):
        with open(os.path.join(self.out, name + ".tinygpt"), "wb") as f:
            f.write(b"TGPT" + struct.pack("<II", version, len(header)) + header)
            f.write(struct.pack("<i", step) + body)
        self.raw(name, "w", weights)
        for kind, values in zip("mv", moments):
            self.raw(name, kind, values)
        elems = sum(t.elems for t in manifest(MODEL))
        self.index.append(f"{name} {version} {dtype} {int(bool(moments))} {step} {elems} {history} "
                          f"{rewrite}")

    def finish(self):
        with open(os.path.join(self.out, "index.txt"), "w") as f:
            f.writelines(line + "\n" for line in self.index)


def write_fp32(w, weights, first, second):
    body = body_fp32(weights, first, second)
    n = 4 + len(body)
    moments = (first, second)
    w.fixture("v2_fp32", 2, "fp32", dump(header_minimal("fp32", True, n)), 100, body, weights,
              moments, rewrite="file")
    w.fixture("v2_fp32_browser", 2, "fp32", dump(header_browser(n)), 2**31 - 1, body, weights,
              moments)
    # Version 1 has neither manifest nor history, and its dtype is what absence means.
    header = {"version": 1, "savedAt": "2026-05-01T00:00:00.000Z", "config": config_json()}
    w.fixture("v1_fp32", 1, "fp32", dump(header), 0, body, weights, moments, history=0)


def write_fp16(w, weights):
    body, decoded = body_fp16(weights)
    n = 4 + len(body)
    header = header_minimal("fp16", False, n)
    w.fixture("v2_fp16", 2, "fp16", dump(header), 5000, body, decoded, rewrite="file")
    for remainder in range(4):
        w.fixture(f"v2_fp16_align{remainder}", 2, "fp16", aligned(header, remainder), 5000, body,
                  decoded)
    # Keys sorted, spaces and line breaks between tokens, every foreign letter escaped.
    mac = {**header, "config": {**config_json(), "vocabSize": 256}}
    mac["tokenizerSource"] = "bytes \U0001F600"
    w.fixture("v2_fp16_sorted", 2, "fp16", json.dumps(mac, sort_keys=True, indent=1).encode(), 5000,
              body, decoded)
    header = {"version": 1, "config": config_json(), "weightDtype": "fp16",
              "includesOptimizerState": False}
    w.fixture("v1_fp16", 1, "fp16", dump(header), 7, body, decoded, history=0)


def write_int4(w, weights):
    for name, encode, rewrite in (("v2_int4", encode_block, "file"),
                                  ("v2_int4_odd", odd_encoder(), "-")):
        body, decoded, scale_bytes, packed_bytes = body_int4(weights, encode)
        extra = {"int4BlockSize": BLOCK, "int4ScalesBytes": scale_bytes,
                 "int4PackedBytes": packed_bytes}
        header = header_minimal("int4", False, 4 + len(body), extra)
        w.fixture(name, 2, "int4", dump(header), 5000, body, decoded, rewrite=rewrite)
        if rewrite == "file":
            again, _, _, _ = body_int4(decoded, encode)
            assert again == body, "quantising the decoded weights has to give the same bytes"


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: fixtures.py OUT_DIR")
    os.makedirs(sys.argv[1], exist_ok=True)
    weights, first, second = make_weights()
    writer = Writer(sys.argv[1])
    write_fp32(writer, weights, first, second)
    write_fp16(writer, weights)
    write_int4(writer, weights)
    writer.finish()


if __name__ == "__main__":
    main()
