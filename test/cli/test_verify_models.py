#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_verify_models.py - verify of third-party models: what a zip file's CRCs and the weights
themselves can tell, and whether two files of any kinds are one model.
"""
import os
import struct
import zipfile

from gguf_file import Gguf, alphabet
from util import SILENT, TINY, TOP, check, equal, expect, main, read, refused, tinygpt, write

LM = os.path.join(TOP, "test", "golden", "lm")
SOURCE = os.path.join(LM, "llama3")


def zipped(path, method):
    with zipfile.ZipFile(path, "w", method) as z:
        for name in sorted(os.listdir(SOURCE)):
            z.write(os.path.join(SOURCE, name), name)
    return path


def changed_bytes():
    """One bit of each member, at its beginning, in its middle and at its end."""
    for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
        path = zipped("good.zip", method)
        r = tinygpt("verify", path, "--json")
        expect(r, 0, "a whole zip file")
        equal(r.json(), {"whole": True, "checksummed": True}, "it has checksums")
        expect(tinygpt("verify", path), 0, "in words", out="is whole")
        expect(tinygpt("info", path), 0, "info names them", out="CRC-32 of members")
        good = read(path)
        with zipfile.ZipFile(path) as z:
            members = z.infolist()
        for m in members:
            begin = m.header_offset + 30 + len(m.filename) + struct.unpack_from("<H", good, m.header_offset + 28)[0]
            for at in begin, begin + m.compress_size // 2, begin + m.compress_size - 1:
                bad = bytearray(good)
                bad[at] ^= 16
                write("bad.zip", bytes(bad))
                refused(f"byte {at} of {m.filename}, method {method}", "verify", "bad.zip",
                        err=("bad.zip", m.filename))
    expect(tinygpt("verify", SOURCE, "--json"), 0, "a folder has none", out='"checksummed":false')


def numbers():
    """A weight that is none."""
    def changed(name, kind, form, value, at):
        g = Gguf(alphabet() + ["<s>"])
        dims, _, data, _ = g.tensors[name]
        each = struct.calcsize(form)
        floats = struct.unpack(f"<{len(data) // 4}f", data)
        data = bytearray(b"".join(struct.pack(form, x) for x in floats))
        data[at * each:(at + 1) * each] = struct.pack(form, value)
        g.tensors[name] = [dims, kind, bytes(data), None]
        return write("x.gguf", g.bytes())
    expect(tinygpt("verify", changed("blk.0.attn_q.weight", 0, "<f", 0.5, 7)), 0, "numbers", out="numbers are right")
    for kind, form in (0, "<f"), (1, "<e"):
        for value, shown in (float("nan"), "nan"), (float("inf"), "inf"), (float("-inf"), "-inf"):
            for name, at in ("blk.0.attn_q.weight", 1023), ("blk.0.ffn_down.weight", 0):
                changed(name, kind, form, value, at)
                refused(f"{shown} in {name}", "verify", "x.gguf",
                        err=(f"x.gguf: tensor {name}: element {at}: want a finite number, have {shown}",))
    r = tinygpt("verify", changed("output_norm.weight", 0, "<f", float("nan"), 3))
    check(r.code == 2 and "output_norm.weight: element 3" in r.errors, "a vector's, too", r.errors)


def two_models():
    """Files of one model, whatever their kinds, are equal; and what differs is named."""
    both = 0
    # Falcon-H1's numbers are multiplied into its weights: f32 in memory, f16 in its GGUF; test_lm has both answer alike.
    rounded = "falcon.gguf", "falcon_norm.gguf"
    for name in sorted(os.listdir(LM)):
        folder = os.path.join(LM, name[:-5])
        if name.endswith(".gguf") and os.path.isdir(folder) and name not in rounded:
            expect(tinygpt("verify", os.path.join(LM, name), folder), 0, f"{name} and its folder", out="equal: ")
            both += 1
    check(both > 10, "folders that have a GGUF file")
    write("text", b"Once upon a time there was a fox. " * 40)
    for name in "qwen35", "gemma3":  # logs of decays, heads in turns; gains less 1
        expect(tinygpt("train", "--data", "text", "--from", os.path.join(LM, f"tune_{name}.zip"), "--steps", "1",
                       "--row-tokens", "16", "--eval-windows", "2", *SILENT, "--out", "run.tinygpt",
                       "--force"), 0, "a run")
        expect(tinygpt("convert", "run.tinygpt", "m.gguf"), 0, "to GGUF")
        expect(tinygpt("convert", "m.gguf", "m.tinygpt"), 0, "to .tinygpt")
        expect(tinygpt("convert", "run.tinygpt", f"{name}.hf"), 0, "to a folder")
        for a, b in ("run.tinygpt", "m.gguf"), ("m.tinygpt", "run.tinygpt"), ("run.tinygpt", f"{name}.hf"), \
                ("m.gguf", f"{name}.hf"):
            r = tinygpt("verify", a, b, "--json")
            expect(r, 0, f"{a} and {b}")
            equal(r.json()["equal"], True, f"{a} and {b} are one model")
    expect(tinygpt("train", "--data", "text", "--layers", "1", "--width", "96", "--heads", "2", "--ctx", "16", "--batch",
                   "2", "--steps", "1", *SILENT, "--out", "bytes.tinygpt"), 0, "bytes")
    expect(tinygpt("convert", "bytes.tinygpt", "bytes.gguf"), 0, "to GGUF")
    expect(tinygpt("verify", "bytes.tinygpt", "bytes.gguf"), 0, "the byte GPT", out="equal: gpt2")
    expect(tinygpt("verify", "bytes.tinygpt", "m.gguf"), 1, "other families", out="family differs: gpt2 and gemma3")
    data = bytearray(read("bytes.gguf"))
    up = next(t for t in tinygpt("info", "bytes.gguf", "--json").json()["tensors"] if t["name"].endswith("ffn_up.weight"))
    data[up["offset"] + up["bytes"] - 4] ^= 1
    write("bad.gguf", bytes(data))
    expect(tinygpt("verify", "bytes.tinygpt", "bad.gguf"), 1, "one bit", out="blk.0.ffn_up.weight: element 36863 differs: ")
    expect(tinygpt("verify", "bytes.gguf", "text"), 2, "no model", err="text: ")
    expect(tinygpt("train", "--data", "text", *TINY, "--mlp", "32", "--steps", "1", *SILENT, "--family", "llama",
                   "--out", "mlp.tinygpt"), 0, "llama")
    expect(tinygpt("train", "--data", "text", *TINY, "--mlp", "48", "--steps", "1", *SILENT, "--family", "llama",
                   "--out", "more.tinygpt"), 0, "a wider one")
    expect(tinygpt("convert", "mlp.tinygpt", "mlp.gguf"), 0, "to GGUF")
    expect(tinygpt("verify", "more.tinygpt", "mlp.gguf"), 1, "other sizes", out="config differs: dMlp is 48 and 32")


main(changed_bytes, numbers, two_models)
