#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_vocabulary.py - a vocabulary from a text to the model that writes with it: tokenize --train, train
--tokenizer, resume, sample, convert; what is refused, and what of a place is left as it was.
"""
import json
import os

from util import TOP, check, equal, expect, main, read, refused, tinygpt, write

TINY = ("--preset", "modern-small", "--layers", "1", "--width", "32", "--heads", "2", "--ctx", "16", "--batch", "2",
        "--sample-every", "0")
TEXT = "the cat sat on the mat, and the other cat sat on the other mat\n".encode() * 40


def ids(model, text):
    r = tinygpt("tokenize", model, text, "--json")
    expect(r, 0, f"tokens of {model}")
    return r.json()["ids"]


def from_text_to_model():
    """All that a run becomes has the tokens that it was trained on."""
    write("t.txt", TEXT)
    r = tinygpt("tokenize", "--train", "t.txt", "--vocab", "272", "--out", "v.json", "--json")
    expect(r, 0, "a vocabulary")
    equal(r.json(), {"out": "v.json", "kind": "bpe", "tokens": 272, "text_bytes": len(TEXT)}, "what it says")
    again = tinygpt("tokenize", "--train", "t.txt", "--vocab", "272", "--out", "w.json")
    expect(again, 0, "the same again", out="272 tokens .bpe")
    equal(read("w.json"), read("v.json"), "the same text gives the same file")
    wanted = ids("v.json", "the cat sat")
    check(len(wanted) < 6, "words have become tokens", str(wanted))
    expect(tinygpt("train", "--data", "t.txt", "--tokenizer", "v.json", *TINY, "--steps", "3", "--out", "a.tinygpt"),
           0, "a run on its tokens", out=[" tokens", "bits/byte", "bytes each"])
    expect(tinygpt("train", "--data", "t.txt", "--resume", "a.tinygpt", "--steps", "5"), 0, "it goes on")
    expect(tinygpt("convert", "a.tinygpt", "folder", "--format", "safetensors"), 0, "a folder")
    expect(tinygpt("convert", "a.tinygpt", "a.gguf", "--dtype", "f32"), 0, "a GGUF file")
    for model in ("a.tinygpt", "folder", "a.gguf"):
        equal(ids(model, "the cat sat"), wanted, f"tokens of {model}")
    expect(tinygpt("sample", "a.tinygpt", "--prompt", "the cat", "--tokens", "4"), 0, "it writes")


def every_kind_trains():
    write("t.txt", TEXT)
    for kind, n in (("bpe", 270), ("wordpiece", 34), ("chars", 0)):
        size = ("--vocab", str(n)) if n else ()
        expect(tinygpt("tokenize", "--train", "t.txt", "--kind", kind, *size, "--out", f"{kind}.json"), 0, kind)
        expect(tinygpt("train", "--data", "t.txt", "--tokenizer", f"{kind}.json", *TINY, "--steps", "2", "--no-save"),
               0, f"a run on {kind}")
    chars = json.loads(read("chars.json"))["model"]["vocab"]
    equal(sorted(chars, key=chars.get), ["<unk>"] + sorted(set(TEXT.decode())), "characters in their order")


def merges_over_characters():
    """Gemma's tokenizer, as folders and GGUF files of Gemma 4 have it: the same tokens through all forms and back."""
    write("t.txt", TEXT)
    tokenizer = os.path.join(TOP, "test", "golden", "tok", "char_bpe.json")
    text = "The  dog\n\n\n  and\tthe cat \u2581 \u00e9 \u6f22 <0x41> \U0001f600\n"
    wanted = ids(tokenizer, text)
    expect(tinygpt("train", "--data", "t.txt", "--family", "gemma4", "--layers", "2", "--width", "16", "--heads", "2",
                   "--ctx", "16", "--batch", "2", "--tokenizer", tokenizer, "--steps", "1", "--out", "a.tinygpt"),
           0, "a run on it")
    for source, model in ("a.tinygpt", "a.gguf"), ("a.gguf", "folder"), ("folder", "b.gguf"), ("a.tinygpt", "other"):
        folder = ("--format", "safetensors") if "." not in model else ()
        expect(tinygpt("convert", source, model, *folder), 0, f"{source} to {model}", out="texts alike")
        equal(ids(model, text), wanted, f"tokens of {model}")
    expect(tinygpt("info", "a.gguf"), 0, "its name in GGUF", out="tokenizer   gemma4")


def a_run_makes_its_own():
    """The same run as with a vocabulary that was made before."""
    write("t.txt", TEXT)
    expect(tinygpt("tokenize", "--train", "t.txt", "--vocab", "272", "--out", "v.json"), 0, "a vocabulary")
    to = ("train", "--data", "t.txt", *TINY, "--steps", "3")
    expect(tinygpt(*to, "--tokenizer", "v.json", "--out", "a.tinygpt"), 0, "a run on it")
    expect(tinygpt(*to, "--tokens", "bpe:272", "--out", "b.tinygpt"), 0, "a run that makes it")
    expect(tinygpt("verify", "a.tinygpt", "b.tinygpt"), 0, "the same weights")
    equal(ids("b.tinygpt", "the cat sat"), ids("a.tinygpt", "the cat sat"), "and tokens")
    expect(tinygpt(*to, "--tokens", "chars", "--out", "c.tinygpt"), 0, "a run on characters")
    equal(len(ids("c.tinygpt", "the cat")), 7, "each a token")
    expect(tinygpt(*to, "--tokens", "bytes", "--no-save"), 0, "a run on bytes")
    for bad in ("bpe:", "bpe:x", "bpe:-3", "bpe:12kg", "a-very-long-kind-indeed"):
        refused("no tokens", *to, "--tokens", bad, "--no-save", err="bpe:4096")
    refused("no such kind", *to, "--tokens", "words", "--no-save", err="bpe, wordpiece, chars")
    refused("too many for the text", *to, "--tokens", "bpe:5000", "--no-save", err="at most so many")
    some = ("train", "--data", "t.txt", "--tokens", "chars", "--preset", "tiny", "--steps", "1", "--no-save")
    refused("a family of bytes", *some, "--family", "tinygpt", err="want 256 (bytes)")
    expect(tinygpt(*some), 0, "without a family", out="model +gpt2, 2 layers")
    refused("two vocabularies", *to, "--tokens", "chars", "--tokenizer", "v.json", err="have both")
    refused("another one for a run", "train", "--data", "t.txt", "--resume", "b.tinygpt", "--tokens", "chars",
            err="--tokens")


def places_and_options():
    write("t.txt", TEXT)
    write("empty.txt", b"")
    write("foreign.json", b'{"a": 1}')
    to = ("--train", "t.txt", "--vocab", "270")
    refused("a file of another kind", "tokenize", *to, "--out", "foreign.json", err="tokenizer.json of tinygpt")
    equal(read("foreign.json"), b'{"a": 1}', "it is as it was")
    expect(tinygpt("tokenize", *to, "--out", "foreign.json", "--force"), 0, "with --force")
    refused("an empty text", "tokenize", "--train", "empty.txt", err="0 bytes")
    refused("no such text", "tokenize", "--train", "none.txt", err="none.txt")
    refused("too many tokens", "tokenize", "--train", "t.txt", "--vocab", "5000", err="gives")
    refused("too few tokens", "tokenize", "--train", "t.txt", "--vocab", "200", err="256")
    refused("an unknown kind", "tokenize", *to, "--kind", "words", err="bpe, wordpiece, chars")
    refused("a model, too", "tokenize", "m.gguf", *to, err="--train")
    refused("--vocab alone", "tokenize", "m.gguf", "abc", "--vocab", "300", err="--train")
    refused("nothing", "tokenize", err="MODEL")
    refused("a vocabulary without a text", "doctor", "--tokenizer", "foreign.json", err="--data")


main(from_text_to_model, every_kind_trains, merges_over_characters, a_run_makes_its_own, places_and_options)
