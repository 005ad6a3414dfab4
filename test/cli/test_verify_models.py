#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_verify_models.py - verify of third-party models: what a zip file's CRCs and the weights
themselves can tell.
"""
import os
import struct
import zipfile

from gguf_file import Gguf, alphabet
from util import TOP, check, equal, expect, main, read, refused, tinygpt, write

SOURCE = os.path.join(TOP, "test", "golden", "lm", "llama3")


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


main(changed_bytes, numbers)
