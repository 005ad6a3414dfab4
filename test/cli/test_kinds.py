#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_kinds.py - folders whose weights FP8, GPTQ, AWQ, bitsandbytes or MLX's mxfp4 has quantised.

tools/oracle/quant_folders.py writes each, and what it stands for as floats; `verify` compares them bit by
bit, and `convert` asks both ways of reading, piece by piece and packed, for the same answers.
"""
import json
import os
import shutil
import sys

from util import TOP, check, equal, expect, main, tinygpt

sys.path.insert(0, os.path.join(TOP, "tools", "oracle"))
import quant_folders as made  # noqa: E402

SOURCE = os.path.join(TOP, "test", "golden", "lm", "mistral")
MATRIX = "model.layers.1.mlp.down_proj"


def folder(kind):
    if not os.path.exists(kind):
        made.make(SOURCE, ".", kind)
    return kind


def values():
    """Every value is that of the format, wherever nibbles, zero points and scales lie."""
    for kind, (_, _, label) in made.KINDS.items():
        folder(kind)
        expect(tinygpt("verify", kind, kind + "-floats"), 0, f"{kind}: the same values")
        r = tinygpt("convert", kind, "x.gguf", "--dtype", "f32", "--json")
        expect(r, 0, f"{kind} as f32")
        check(r.json()["max_error"] < 2e-3, f"{kind}: packed, it answers alike", r.text)
        expect(tinygpt("verify", "x.gguf", kind + "-floats"), 0, f"{kind} as f32: the same values")
        expect(tinygpt("info", kind), 0, f"{kind}: info", out=f"{label} +{21 if label == 'F16' else 14} tensors")
        j = tinygpt("info", kind, "--json").json()
        how = made.KINDS[kind][0]
        equal(j["quantization"], how["quant_method"] if how else "MLX", f"{kind}: what it is of")


def experts():
    """Of routed experts, one by one, too."""
    for kind in "gptq4-zeros", "fp8-blocks":
        made.make(os.path.join(TOP, "test", "golden", "lm", "qwen3moe"), ".", kind)
        expect(tinygpt("verify", kind, kind + "-floats"), 0, f"{kind}: the same values")
        r = tinygpt("convert", kind, "x.gguf", "--dtype", "f32", "--json")
        expect(r, 0, f"{kind} as f32")
        check(r.json()["max_error"] < 2e-3, f"{kind}: packed, it answers alike", r.text)
    # What is left in floats need not be of other experts than what is quantised.
    tensors, floats = made.read("fp8-blocks"), made.read("fp8-blocks-floats")
    mixed = {k: v for k, v in tensors.items() if ".experts.0." not in k}
    for name, (dtype, shape, data) in floats.items():
        if ".experts.0." in name:
            equal(dtype, "F32", "floats of 32 bits, which these hold in 16")
            mixed[name] = "BF16", shape, b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))
    with open(os.path.join("fp8-blocks", "config.json"), encoding="utf-8") as f:
        made.write("mixed", json.load(f), mixed)
    expect(tinygpt("verify", "mixed", "fp8-blocks-floats"), 0, "an expert in floats: the same values")
    r = tinygpt("convert", "mixed", "x.gguf", "--dtype", "f32", "--json")
    expect(r, 0, "an expert in floats, as f32")
    check(r.json()["max_error"] < 2e-3, "an expert in floats: packed, it answers alike", r.text)


def told():
    """Floats take more room than the file: it is said."""
    r = tinygpt("eval", folder("fp8-all"), "--data", os.path.join(SOURCE, "config.json"))
    check(b"weights of modelopt are read as BF16" in r.err, "floats are told of", r.err)


def changed(kind, edit_config=lambda q: None, edit=lambda tensors: None):
    """A copy of a kind's folder."""
    shutil.rmtree("bad", ignore_errors=True)
    with open(os.path.join(folder(kind), "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    edit_config(config.get("quantization_config", config.get("quantization")))
    tensors = made.read(kind)
    edit(tensors)
    made.write("bad", config, tensors)
    return "bad"


def flip(end, at=0, bit=1):
    def edit(tensors):
        dtype, shape, data = tensors[MATRIX + end]
        data = bytearray(data)
        data[at] ^= bit
        tensors[MATRIX + end] = (dtype, shape, bytes(data))
    return edit


def every_part_counts():
    """A bit of any part makes another model."""
    parts = {"fp8-blocks": [".weight", ".weight_scale_inv"], "gptq4": [".qweight", ".scales"],
             "gptq4-zeros": [".qweight", ".qzeros", ".scales"], "gptq4-ordered": [".g_idx", ".qzeros"],
             "awq": [".qweight", ".qzeros", ".scales"], "mxfp4": [".weight", ".scales"], "int8": [".weight", ".SCB"],
             "nf4-nested": [".weight", ".weight.absmax", ".weight.nested_absmax", ".weight.quant_map"]}
    for kind, ends in parts.items():
        for end in ends:
            # Of floats of 32 bits the exponent, which no rounding hides.
            at = 3 if end.endswith(("nested_absmax", "quant_map", "scale_inv")) else 0
            bad = changed(kind, edit=flip(end, at))
            expect(tinygpt("verify", bad, kind + "-floats"), 1, f"{kind}: a bit of {end}",
                   out="blk.1.ffn_down.weight: element .* differs")


def refused():
    def config(kind, name, value, says):
        expect(tinygpt("info", changed(kind, lambda q: q.__setitem__(name, value))), 2, f"{kind}: {name} {value}",
               err=says)
    config("gptq4", "bits", 3, "bits: want 4 or 8, have 3")
    config("gptq4", "checkpoint_format", "marlin", "want gptq or gptq_v2, have marlin")
    config("gptq4", "dynamic", {"x": {"bits": 8}}, "dynamic: want one kind")
    config("gptq4", "quant_method", "aqlm",
           "want MLX's, fp8, gptq, awq, bitsandbytes, fbgemm_fp8, compressed-tensors, modelopt, have aqlm")
    config("gptq4", "group_size", 0, "group_size: want -1 or")
    config("gptq4", "group_size", 64, "tensor .* of I32: want words with scales")
    config("awq", "version", "gemv", "version: want gemm, have gemv")
    config("awq", "bits", 8, "bits: want 4, have 8")
    config("nf4", "load_in_8bit", True, "says .bitsandbytes., have U8")
    config("fp8-rows", "format", "pack-quantized", "format: want float-quantized, have pack-quantized")
    config("fp8-all", "quant_algo", "NVFP4", "quant_algo: want FP8, have NVFP4")
    config("fp8-blocks", "weight_block_size", [16], "want two sizes")
    config("fp8-blocks", "weight_block_size", [16, 32], "of F8_E4M3: want a matrix with a scale")
    config("mxfp4", "mode", "nvfp4", "want affine or mxfp4, have nvfp4")
    config("mxfp4", "group_size", 16, "group_size: want 32, have 16")

    def parts(kind, edit, says, command="info"):
        expect(tinygpt(command, changed(kind, edit=edit), *(["x"] if command == "tokenize" else [])), 2, f"{kind}: {says}",
               err=says)
    for kind, end in (("gptq4", ".scales"), ("gptq4", ".qzeros"), ("fp8-all", ".weight_scale"), ("awq", ".scales"),
                      ("nf4", ".weight.absmax"), ("int8", ".SCB"), ("nf4-nested", ".weight.nested_quant_map"), ("mxfp4", ".scales")):
        parts(kind, lambda t: t.pop(MATRIX + end), f"tensor {MATRIX}.*: want {MATRIX}{end} of .* beside it, have none")
    parts("gptq4-ordered", lambda t: t.pop(MATRIX + ".g_idx"), "want a g_idx beside it")
    parts("fp8-all", lambda t: t.__setitem__(MATRIX + ".weight", ("F8_E5M2",) + t[MATRIX + ".weight"][1:]),
          "what quantization of config.json says .modelopt., have F8_E5M2")
    # Sizes that no bytes stand for.
    parts("gptq4-ordered", lambda t: t.__setitem__(MATRIX + ".g_idx", ("I32", [t[MATRIX + ".g_idx"][1][0], 0], b"")),
          "want .*g_idx of I32 beside it")
    state = MATRIX + ".weight.quant_state.bitsandbytes__nf4"
    parts("nf4", lambda t: t.__setitem__(state, ("U8", [400000000, 0], b"")), "want .*quant_state.* of U8 beside it")
    config("gptq4", "rotation", "hadamard", "rotation: want none, have hadamard")
    config("fp8-rows", "transform_config", {"config_groups": {"a": 1}}, "transform_config: want none")
    # What only the bytes tell, as they are read.
    expect(tinygpt("verify", changed("gptq4", edit=flip(".qzeros"))), 2, "another zero point",
           err="zero point of row 0, group 0: want 8, as sym is true in config.json, have 7")
    expect(tinygpt("verify", changed("gptq4", edit=flip(".g_idx"))), 2, "another order",
           err="g_idx of column 0: want groups in order")
    expect(tinygpt("verify", changed("gptq4-ordered", edit=flip(".g_idx", bit=64))), 2, "an unknown group",
           err="g_idx of column 0: want one of the groups")


main(values, experts, told, every_part_counts, refused)
