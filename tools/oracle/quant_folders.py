#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders whose weights are quantised as libraries do it, and the same models as floats.

    quant_folders.py SOURCE OUT      of a folder of floats, OUT/KIND and OUT/KIND-floats for each kind

What q, scales and zero points stand for is written down here from the formats' own descriptions
(transformers' quantizers, AutoGPTQ, AutoAWQ, bitsandbytes' QuantState, MLX, the OCP's e4m3 and MXFP4), in
plain loops, and shares nothing with src/io/hf. Numbers are drawn, so every value of q occurs. The
tests call it; it needs Python alone.
"""
import json
import os
import random
import struct
import sys


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def pack(kind, values):
    return struct.pack(f"<{len(values)}{kind}", *values)



def read(folder):
    """name: (dtype, shape, bytes) of model.safetensors."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in json.loads(data[8:8 + n]).items() if k != "__metadata__"}


def write(folder, config, tensors):
    os.makedirs(folder, exist_ok=True)
    head, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(d for _, _, d in tensors.values()))
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, indent=1)


# Each kind: matrix(rng, R, C) -> {end of a name: (dtype, shape, bytes)}, R lists of C values.

def e4m3(x):
    sign, e, m = -1.0 if x & 128 else 1.0, x >> 3 & 15, x & 7
    return sign * (2.0 ** (e - 7) * (1 + m / 8) if e else m / 8 * 2.0 ** -6)


def fp8(ends, form):
    def matrix(rng, R, C):
        block = (16, 24) if form == "blocks" else (1, C) if form == "rows" else (R, C)
        rows, cols = -(-R // block[0]), -(-C // block[1])
        scales = [f32(rng.uniform(0.0005, 0.002)) for _ in range(rows * cols)]
        codes = [rng.choice([c for c in range(256) if c & 127 != 127]) for _ in range(R * C)]
        values = [[bf16(f32(e4m3(codes[r * C + c]) * scales[r // block[0] * cols + c // block[1]]))
                   for c in range(C)] for r in range(R)]
        shape = {"blocks": [rows, cols], "rows": [R, 1], "all": []}[form]
        return {".weight": ("F8_E4M3", [R, C], bytes(codes)), ends: ("F32", shape, pack("f", scales)),
                ".input_scale": ("F32", [1], pack("f", [0.5]))}, values
    return matrix


AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # which row of eight is in bits 4i to 4i + 3


def columns(bits, group, awq=False, symmetric=False, more=0, ordered=False):
    def matrix(rng, R, C):
        per, size = 32 // bits, C if group == -1 else group
        groups = -(-C // size)
        most = 2**bits - 1
        scale = [[f16(rng.uniform(0.01, 0.04)) for _ in range(R)] for _ in range(groups)]
        zero = [[(most + 1) // 2 if symmetric else rng.randint(0, most) for _ in range(R)] for _ in range(groups)]
        q = [[rng.randint(0, most) for _ in range(C)] for _ in range(R)]
        of = [c // size for c in range(C)]
        if ordered:
            rng.shuffle(of)
        values = [[scale[of[c]][r] * (q[r][c] - zero[of[c]][r]) for c in range(C)] for r in range(R)]
        if (ordered and groups > 1) or size % 32 or C % 32:
            values = [[f16(v) for v in row] for row in values]
        order = AWQ_ORDER if awq else range(per)
        def line(numbers):  # words along the rows
            return [sum(numbers[w * per + order[i]] << bits * i for i in range(per)) for w in range(R // per)]
        if awq:
            words = [w for c in range(C) for w in line([q[r][c] for r in range(R)])]
            shape = [C, R // per]
        else:
            words = [sum(q[r][k * per + i] << bits * i for i in range(per)) for k in range(C // per) for r in range(R)]
            shape = [C // per, R]
        zeros = [w for g in range(groups) for w in line([(z - more) & most for z in zero[g]])]
        flat = [s for g in range(groups) for s in scale[g]]
        parts = {".qweight": ("I32", shape, pack("I", words)), ".qzeros": ("I32", [groups, R // per], pack("I", zeros)),
                 ".scales": ("F16", [groups, R], pack("e", flat))}
        if not awq:
            parts[".g_idx"] = ("I32", [C], pack("i", of))
        return parts, values
    return matrix


NF4 = [f32(x) for x in (-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0,
                        0.07958030, 0.16093020, 0.24611230, 0.33791524, 0.44070983, 0.56261700, 0.72295684, 1.0)]


def nf4(nested, dtype):
    round_to = {"bfloat16": bf16, "float16": f16, "float32": f32}[dtype]
    def matrix(rng, R, C):
        block, outer = 64, 256
        blocks = -(-R * C // block)
        parts, state = {}, {"quant_type": "nf4", "blocksize": block, "dtype": dtype, "shape": [R, C]}
        if nested:
            codes = [rng.randint(0, 255) for _ in range(blocks)]
            of = [f32(i / 127.5 - 1) for i in range(256)]
            scales = [f32(rng.uniform(0.05, 0.1)) for _ in range(-(-blocks // outer))]
            offset = f32(0.1234)
            absmax = [f32(f32(of[c] * scales[i // outer]) + offset) for i, c in enumerate(codes)]
            state |= {"nested_blocksize": outer, "nested_dtype": "float32", "nested_offset": offset}
            parts[".weight.absmax"] = ("U8", [blocks], bytes(codes))
            parts[".weight.nested_absmax"] = ("F32", [len(scales)], pack("f", scales))
            parts[".weight.nested_quant_map"] = ("F32", [256], pack("f", of))
        else:
            absmax = [f32(rng.uniform(0.1, 0.4)) for _ in range(blocks)]
            parts[".weight.absmax"] = ("F32", [blocks], pack("f", absmax))
        q = [rng.randint(0, 15) for _ in range(R * C)]
        values = [[round_to(f32(NF4[q[i]] * absmax[i // block])) for i in range(r * C, r * C + C)] for r in range(R)]
        text = json.dumps(state).encode()
        parts[".weight"] = ("U8", [R * C // 2, 1], bytes(q[i] << 4 | q[i + 1] for i in range(0, R * C, 2)))
        parts[".weight.quant_map"] = ("F32", [16], pack("f", NF4))
        parts[".weight.quant_state.bitsandbytes__nf4"] = ("U8", [len(text)], text)
        return parts, values
    return matrix


def int8(rng, R, C):
    scales = [f32(rng.uniform(0.5, 2)) for _ in range(R)]
    q = [[rng.randint(-127, 127) for _ in range(C)] for _ in range(R)]
    values = [[f32(f32(scales[r] / 127) * x) for x in q[r]] for r in range(R)]
    return {".weight": ("I8", [R, C], pack("b", [x for row in q for x in row])), ".SCB": ("F32", [R], pack("f", scales)),
            ".weight_format": ("U8", [], b"\0")}, values


MXFP4 = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0.0, -0.5, -1, -1.5, -2, -3, -4, -6)


def mxfp4(rng, R, C):
    e = [[rng.randint(120, 124) for _ in range(C // 32)] for _ in range(R)]
    q = [[rng.randint(0, 15) for _ in range(C)] for _ in range(R)]
    values = [[MXFP4[q[r][c]] * 2.0 ** (e[r][c // 32] - 127) for c in range(C)] for r in range(R)]
    words = [sum(q[r][8 * w + i] << 4 * i for i in range(8)) for r in range(R) for w in range(C // 8)]
    return {".weight": ("U32", [R, C // 8], pack("I", words)),
            ".scales": ("U8", [R, C // 32], bytes(x for row in e for x in row))}, values


def gptq(**more):
    return {"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False} | more


BNB = {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}
# Kind: (quantization_config, matrix, the type that its matrices become).
KINDS = {
    "fp8-blocks": ({"quant_method": "fp8", "weight_block_size": [16, 24], "activation_scheme": "dynamic"},
                   fp8(".weight_scale_inv", "blocks"), "BF16"),
    "fp8-rows": ({"quant_method": "compressed-tensors", "format": "float-quantized"},
                 fp8(".weight_scale", "rows"), "BF16"),
    "fp8-all": ({"quant_method": "modelopt", "quant_algo": "FP8"}, fp8(".weight_scale", "all"), "BF16"),
    "gptq4": (gptq(), columns(4, 32, symmetric=True, more=1), "Q4_0"),
    "gptq8": (gptq(bits=8), columns(8, 32, symmetric=True, more=1), "Q8_0"),
    "gptq4-zeros": (gptq(sym=False), columns(4, 32, more=1), "MLX4"),
    "gptq8-v2": (gptq(bits=8, sym=False, group_size=-1, checkpoint_format="gptq_v2"), columns(8, -1), "MLX8"),
    "gptq4-ordered": (gptq(desc_act=True, sym=False, group_size=16, checkpoint_format="gptq"),
                      columns(4, 16, more=1, ordered=True), "F16"),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True},
            columns(4, 32, awq=True), "MLX4"),
    "nf4": (BNB, nf4(False, "float16"), "F16"),
    "nf4-nested": (BNB | {"bnb_4bit_use_double_quant": True}, nf4(True, "bfloat16"), "BF16"),
    "int8": (BNB | {"load_in_4bit": False, "load_in_8bit": True}, int8, "MLX8"),
    "mxfp4": (None, mxfp4, "MXFP4"),
}


def make(source, out, kind):
    how, matrix, _ = KINDS[kind]
    rng = random.Random(kind)
    with open(os.path.join(source, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    stored, floats = {}, {}
    for name, (dtype, shape, data) in read(source).items():
        if "_proj.weight" not in name:
            stored[name] = floats[name] = (dtype, shape, data)
            continue
        parts, values = matrix(rng, *shape)
        for end, part in parts.items():
            stored[name.removesuffix(".weight") + end] = part
        floats[name] = ("F32", shape, pack("f", [v for row in values for v in row]))
    write(os.path.join(out, kind + "-floats"), config, floats)
    if how:
        config["quantization_config"] = how
    else:
        config["quantization"] = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    write(os.path.join(out, kind), config, stored)


if __name__ == "__main__":
    for each in KINDS:
        make(sys.argv[1], sys.argv[2], each)
