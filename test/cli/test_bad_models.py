#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_bad_models.py - GGUF files that are wrong in one place each, and good ones that are asked for
what they cannot do: after less than a second of work, exit code 2, and a message with what was wanted
and found.

The file is put together here, so that every field can be another one; folders and zip files of
safetensors are in test/unit/model/test_lm_files.c, and random changes in test/fuzz/fuzz_gguf, fuzz_hf, fuzz_tok.c.
"""
import copy
import os
import struct

from gguf_file import ARRAY, CTX, F32, FF, STRING, TOKENS, U8, U32, V, WIDTH, Gguf, array, text
from util import expect, main, refused, tinygpt, write

GOOD = Gguf()


def bad(what, change, *err, command=("sample", "bad.gguf", "--prompt", "ab", "--tokens", "2")):
    g = copy.deepcopy(GOOD)
    change(g)
    write("bad.gguf", g.bytes())
    refused(what, *command, err=("bad.gguf",) + err)


def setting(name, at, value):
    def change(g):
        g.tensors[name + ".weight"][at] = value
    return change


def valued(key, kind, data):
    return lambda g: g.values.update({key: (kind, data)})


def good():
    write("good.gguf", GOOD.bytes())
    expect(tinygpt("sample", "good.gguf", "--prompt", "ab", "--tokens", "2"), 0, "the good one")
    expect(tinygpt("info", "good.gguf"), 0, "its info", out="model +llama, layers 1")


def tensors():
    def three(g):
        del g.tensors["blk.0.attn_norm.weight"]
        g.tensors["blk.0.ffn_pu.weight"] = g.tensors.pop("blk.0.ffn_up.weight")
        g.tensors["blk.0.ffn_down.weight"][0] = [WIDTH, FF]
        g.tensors["output_norm.weight"][0] = [WIDTH // 2]
    bad("all that is wrong at once", three, "blk.0.attn_norm.weight: missing",
        "blk.0.ffn_up.weight: missing", "blk.0.ffn_pu.weight: of no use here",
        "blk.0.ffn_down.weight: want", "output_norm.weight: want")
    for kind, have in ((5, "5"), (13 + 64, "77"), (4, "4"), (0xffffffff, "4294967295"), (1 << 31, "2147483648")):
        bad(f"type {have}", setting("blk.0.attn_q", 1, kind), "blk.0.attn_q.weight", "want one of F32",
            "Q4_K", have)
    for dims in [], [2, 2, 2, 2, 2], [0], [WIDTH, 0], [1 << 33, 1 << 33], [1 << 63, 2], [(1 << 64) - 1]:
        bad(f"dims {dims}", setting("blk.0.attn_q", 0, dims), "blk.0.attn_q.weight")
    bad("half a block", lambda g: (setting("blk.0.attn_q", 1, 8)(g), setting("blk.0.attn_q", 0, [31, 32])(g)),
        "blk.0.attn_q.weight")
    for what, offset in (("beyond the end", 1 << 20), ("wrapping", (1 << 64) - 32), ("unaligned", 4100),
                         ("of another", 0)):
        bad(f"an offset {what}", setting("blk.0.attn_q", 3, offset), "blk.0.attn_q.weight")
    bad("a name twice", lambda g: g.tensors.update({"output_norm.weight*": [[WIDTH], 0, bytes(128), None]}),
        "output_norm.weight")
    bad("no name", lambda g: g.tensors.update({"": [[WIDTH], 0, bytes(128), None]}), "name")


def metadata():
    bad("another architecture", valued("general.architecture", STRING, text("mamba")), "mamba", "llama", "qwen3",
        "gemma3", "gpt2", "bert")
    bad("no architecture", lambda g: g.values.pop("general.architecture"), "architecture: want one of")
    for key, values in (("block_count", (0, 513, 10 ** 5)), ("attention.head_count", (0, 3, 1 << 31)),
                        ("attention.head_count_kv", (0, 3)), ("embedding_length", (0, 31)),
                        ("feed_forward_length", (0,)), ("context_length", (0, (1 << 32) - 1)),
                        ("rope.dimension_count", (0, 15, 64))):
        for value in values:
            bad(f"{key} {value}", lambda g: g.number("llama." + key, value))
    for value in 0, 3, 1 << 31:
        bad(f"alignment {value}", lambda g: g.number("general.alignment", value), "general.alignment")
    bad("an alignment that is a text", valued("general.alignment", STRING, text("32")), "general.alignment")
    for what, key in (("empty", ""), ("repeated", "llama.block_count*"), ("long", "k" * 65536)):
        bad(f"a key that is {what}", valued(key, U32, bytes(4)), "key")
    for what, kind, data in (("type", 13, b""), ("type", -1, b""), ("text", STRING, struct.pack("<Q", (1 << 64) - 1)),
                             ("array", ARRAY, struct.pack("<IQ", U32, 1 << 62)),
                             ("array of arrays", ARRAY, struct.pack("<IQ", ARRAY, 1) * 1000),
                             ("array of texts", ARRAY, struct.pack("<IQ", STRING, 1 << 40))):
        bad(f"a hostile {what}", valued("x", kind, data))


def heads():
    for version in 0, 1, 99, 3 << 24:
        bad(f"version {version}", lambda g: setattr(g, "version", version), "version")
    for counts in (1 << 63, 20), (20, (1 << 64) - 1), (0, 20), (4 * 10 ** 9, 20), (11, 4 * 10 ** 9):
        bad(f"counts {counts}", lambda g: setattr(g, "counts", counts))
    data = GOOD.bytes()
    for keep in [4, 8, 23, 24, 37] + list(range(60, len(data), len(data) // 25)) + [len(data) - 1]:
        write("bad.gguf", data[:keep])
        refused(f"{keep} bytes of it", "sample", "bad.gguf", "--prompt", "a", err="bad.gguf")
    os.mkdir("folder")
    os.mkfifo("pipe")
    for path in "folder", "pipe", "/dev/zero", "/dev/random", "none.gguf":
        refused(path, "sample", path, "--prompt", "a", err=path)


def tokenizers():
    t = "tokenizer.ggml."
    bad("more rows than tokens", lambda g: g.tensors.update({
        "token_embd.weight": [[WIDTH, V + 1], 0, bytes(4 * WIDTH * (V + 1)), None]}), "want 9 tokens", "have 8")
    bad("fewer tokens", valued(t + "tokens", ARRAY, array(STRING, TOKENS[:-1])), "tokenizer", "want 8 tokens")
    bad("no tokens", lambda g: g.values.pop(t + "tokens"), "tokenizer")
    bad("types of u8", valued(t + "token_type", ARRAY, array(U8, [1] * V)), "token_type")
    bad("seven types", valued(t + "token_type", ARRAY, array(5, [1] * 7)), "tokenizer")
    bad("a type of 9", valued(t + "token_type", ARRAY, array(5, [9] * V)), "type")
    bad("scores of u8", valued(t + "scores", ARRAY, array(U8, [1] * V)), "scores")
    bad("tokens of numbers", valued(t + "tokens", ARRAY, array(U32, range(V))), "tokens")
    bad("another kind", valued(t + "model", STRING, text("rwkv")), "want gpt2, llama, gemma4 or bert", "rwkv")
    bad("another splitter", valued(t + "pre", STRING, text("poro")), "want gpt-2", "poro")
    bad("no scores", valued(t + "model", STRING, text("llama")), "score")
    bad("no merges of gemma4", lambda g: (g.values.pop(t + "merges", None),
                                          g.values.update({t + "model": (STRING, text("gemma4"))})),
        "tokenizer.ggml.merges: want some")
    bad("a merge of what there is not", valued(t + "merges", ARRAY, array(STRING, ["a z"])), "merge 0")
    bad("half a merge", valued(t + "merges", ARRAY, array(STRING, ["ab"])), "merge 0")
    bad("an id beyond", valued(t + "bos_token_id", U32, struct.pack("<I", V)), "bos_token_id")
    bad("no UTF-8", valued(t + "tokens", ARRAY, array(STRING, [b"\xff"] + TOKENS[1:])), "piece 0")
    bytes_ = TOKENS[:-1] + ["<0x-1>"]
    g = copy.deepcopy(GOOD)
    g.values.update({t + "tokens": (ARRAY, array(STRING, bytes_)), t + "token_type": (ARRAY, array(5, [1] * 7 + [6]))})
    write("bad.gguf", g.bytes())
    refused("a byte of minus one", "tokenize", "bad.gguf", "a", err="<0x-1>")
    # A template is run, within limits.
    for what, template, err in (
            ("long", "{{ x }}" * 150000, "want at most 1048576 bytes"),
            ("endless", "{% for a in range(10 ** 9) %}x{% endfor %}", "range: want at most 100000 numbers"),
            ("open", "{% for x in messages %}", "want endfor, have the end"),
            ("of another language", "{% import 'x' as y %}", "not known here: tag import"),
            ("deep", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deep"),
            ("growing", "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x * 2 %}{% endfor %}", "too m")):
        g = copy.deepcopy(GOOD)
        g.values["tokenizer.chat_template"] = (STRING, text(template))
        write("bad.gguf", g.bytes())
        refused(f"a template that is {what}", "chat", "bad.gguf", err=(err, "--template takes a file, or one of smollm2"))


def questions():
    """What a good file cannot answer."""
    write("good.gguf", GOOD.bytes())
    refused("a prompt beyond the context", "sample", "good.gguf", "--prompt", "ab" * 20, "--full", "refuse",
            err=("41 tokens", "16"))
    refused("no token for it", "sample", "good.gguf", "--prompt", "xyz", err="byte 0x78")
    refused("a context that it has not", "sample", "good.gguf", "--prompt", "a", "--ctx", "-1", err="--ctx")
    refused("no token for an embedding", "embed", "good.gguf", "xyz", err="byte 0x78")
    refused("text for eval", "eval", "good.gguf", "--data", "none.txt", err="none.txt")
    for option, values in (("--temp", ("-1", "nan", "inf", "101")), ("--top-k", ("-1", "nan", "inf", "0.5", "1e9")),
                           ("--top-p", ("-1", "0", "1.1", "nan", "inf")), ("--min-p", ("-1", "1.1", "nan", "inf")),
                           ("--typical-p", ("-1", "1.1", "nan", "inf")),
                           ("--repeat-penalty", ("-1", "0", "nan", "inf", "101")),
                           ("--frequency-penalty", ("nan", "inf", "-101", "101")),
                           ("--presence-penalty", ("nan", "-inf", "101")), ("--repeat-last", ("-1", "nan", "1025")),
                           ("--best", ("-1", "nan", "1001")),
                           ("--bias", ("8:1", "-1:1", "0:nan", "0:inf", "x:1", "0")),
                           ("--seed", ("-1", "x"))):
        for value in values:
            refused(f"{option} {value}", "sample", "good.gguf", "--prompt", "a", option, value, err=option[2:])
    for option, value in (("--temp", "0"), ("--top-k", "0"), ("--top-k", "1000000"), ("--top-p", "1"), ("--min-p", "0"),
                          ("--min-p", "1"), ("--typical-p", "0"), ("--typical-p", "1"), ("--repeat-penalty", "1"),
                          ("--presence-penalty", "-1"), ("--frequency-penalty", "0"), ("--repeat-last", "0"),
                          ("--best", "1000"), ("--bias", "0:-inf"), ("--bias", "0:-1")):
        expect(tinygpt("sample", "good.gguf", "--prompt", "a", "--tokens", "3", option, value), 0, f"{option} {value}")


main(good, tensors, metadata, heads, tokenizers, questions)
