# SPDX-License-Identifier: Apache-2.0
"""gguf_file.py - small GGUF files that tests put together, so that every field can be another one."""
import random
import struct

U8, U32, I32, F32, BOOL, STRING, ARRAY = 0, 4, 5, 6, 7, 8, 9
WIDTH, FF, V, CTX = 32, 64, 8, 16
TOKENS = ["a", "b", "c", "d", "e", "f", "\u0120", "<s>"]


def text(s):
    data = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(data)) + data


def array(kind, items):
    form = {U8: "<B", U32: "<I", I32: "<i", F32: "<f"}.get(kind)
    data = b"".join(struct.pack(form, x) if form else text(x) for x in items)
    return struct.pack("<IQ", kind, len(items)) + data


def alphabet():
    """GPT-2's spelling of all bytes, in their order."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


class Gguf:
    """A Llama of one layer, whose last token is <s>. A value is (type, bytes); a tensor
    [dims, type, data, offset]."""

    def __init__(self, tokens=TOKENS):
        n = len(tokens)
        self.version, self.counts, self.tail = 3, None, b""
        self.values = {"general.architecture": (STRING, text("llama"))}
        for key, value in (("context_length", CTX), ("embedding_length", WIDTH), ("block_count", 1),
                           ("feed_forward_length", FF), ("attention.head_count", 2),
                           ("attention.head_count_kv", 2), ("rope.dimension_count", 16)):
            self.values["llama." + key] = (U32, struct.pack("<I", value))
        self.values["llama.attention.layer_norm_rms_epsilon"] = (F32, struct.pack("<f", 1e-5))
        for key, kind, data in (("model", STRING, text("gpt2")), ("pre", STRING, text("gpt-2")),
                                ("tokens", ARRAY, array(STRING, tokens)),
                                ("token_type", ARRAY, array(I32, [1] * (n - 1) + [3])),
                                ("merges", ARRAY, array(STRING, [])),
                                ("bos_token_id", U32, struct.pack("<I", n - 1))):
            self.values["tokenizer.ggml." + key] = (kind, data)
        self.tensors, draw = {}, random.Random(1)
        for name, *dims in (("token_embd", WIDTH, n), ("output_norm", WIDTH),
                            ("blk.0.attn_norm", WIDTH), ("blk.0.attn_q", WIDTH, WIDTH),
                            ("blk.0.attn_k", WIDTH, WIDTH), ("blk.0.attn_v", WIDTH, WIDTH),
                            ("blk.0.attn_output", WIDTH, WIDTH), ("blk.0.ffn_norm", WIDTH),
                            ("blk.0.ffn_gate", WIDTH, FF), ("blk.0.ffn_up", WIDTH, FF),
                            ("blk.0.ffn_down", FF, WIDTH)):
            n = dims[0] * (dims[1] if len(dims) > 1 else 1)
            data = b"".join(struct.pack("<f", draw.uniform(-0.3, 0.3)) for _ in range(n))
            self.tensors[name + ".weight"] = [dims, 0, data, None]

    def number(self, key, value):
        self.values[key] = (U32, struct.pack("<I", value))

    def types(self, kinds):
        self.values["tokenizer.ggml.token_type"] = (ARRAY, array(I32, kinds))

    def float(self, key, value):
        self.values[key] = (F32, struct.pack("<f", value))

    def string(self, key, value):
        self.values[key] = (STRING, text(value))

    def bool(self, key, value):
        self.values[key] = (BOOL, bytes([value]))

    def bytes(self):
        head, data = b"", b""
        for key, (kind, value) in self.values.items():
            head += text(key.rstrip("*")) + struct.pack("<I", kind & 0xffffffff) + value
        for name, (dims, kind, rows, offset) in self.tensors.items():
            head += text(name.rstrip("*")) + struct.pack("<I", len(dims))
            head += b"".join(struct.pack("<Q", d) for d in dims)
            head += struct.pack("<IQ", kind, len(data) if offset is None else offset)
            data += rows + bytes(-len(rows) % 32)
        n = self.counts or (len(self.tensors), len(self.values))
        head = b"GGUF" + struct.pack("<IQQ", self.version, *n) + head
        return head + bytes(-len(head) % 32) + data + self.tail
