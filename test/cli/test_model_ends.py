#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_model_ends.py - how texts of third-party models begin and end: tokens that a file adds, all ids
that end a text, names of splitters, and which text is the chat template.
"""
import json
import os
import shutil

from gguf_file import ARRAY, I32, U32, Gguf, alphabet, array
from util import check, equal, expect, main, refused, tinygpt, write

SPECIAL = ["<s>", "<|im_end|>", "<x>", "<y>", "<z>"]
BOS, IM_END, X, Y, Z = range(256, 261)
T = "tokenizer.ggml."


def gguf(name, change=lambda g: None):
    g = Gguf(alphabet() + SPECIAL)
    g.types([1] * 256 + [3] * 5)
    g.number(T + "bos_token_id", BOS)
    change(g)
    return write(name, g.bytes())


def folder(name, change=lambda g: None):
    shutil.rmtree(name, ignore_errors=True)
    expect(tinygpt("convert", gguf("source.gguf", change), name, "--format", "safetensors"), 0, name)
    return name


def edit(path, **change):
    have = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            have = json.load(f)
    have.update(change)
    write(path, json.dumps({k: v for k, v in have.items() if v is not Ellipsis}))


def n_drawn(path, token):
    """Tokens that are drawn where one is all but certain: 1 if it ends a text, else 6."""
    r = tinygpt("sample", path, "--prompt", "Hi", "--tokens", "6", "--bias", f"{token}:1000", "--json")
    return len(r.json()["ids"]) if r.code == 0 else r.errors


def ends_of_gguf():
    path = gguf("a.gguf", lambda g: (g.number(T + "eos_token_id", X), g.number(T + "eot_token_id", Y),
                                     g.number(T + "eom_token_id", Z)))
    for token in X, Y, Z, IM_END:
        equal(n_drawn(path, token), 1, f"token {token} ends")
    equal(n_drawn(path, 65), 6, "a byte does not")
    equal(n_drawn(path, BOS), 6, "the one that begins does not")
    path = gguf("o.gguf", lambda g: g.values.update({T + "eos_token_ids": (ARRAY, array(U32, [X, Z]))}))
    equal([n_drawn(path, t) for t in (X, Y, Z)], [1, 6, 1], "a list of Ollama's")
    gguf("bad.gguf", lambda g: g.values.update({T + "eos_token_ids": (ARRAY, array(U32, [X, 999]))}))
    refused("a list with an id beyond", "sample", "bad.gguf", "--prompt", "a", err=("bad.gguf", "999"))
    for key in "eos", "eot", "eom", "bos":
        gguf("bad.gguf", lambda g: g.number(T + key + "_token_id", 261))
        refused(f"{key} beyond", "sample", "bad.gguf", "--prompt", "a", err=f"{key}_token_id")
    r = tinygpt("sample", gguf("a.gguf"), "--prompt", "Hi", "--tokens", "2", "--bias", f"{IM_END}:1000")
    check("im_end" not in r.text, "the text of an end is not shown", r.text)


def ends_of_folder():
    path = folder("f")
    edit("f/generation_config.json", eos_token_id=[X, Z])
    equal([n_drawn(path, t) for t in (X, Y, Z, IM_END)], [1, 6, 1, 6], "all of a list end")
    expect(tinygpt("convert", "f", "f.gguf", "--dtype", "f32"), 0, "as GGUF")
    equal([n_drawn("f.gguf", t) for t in (X, Y, Z)], [1, 6, 1], "all of them in GGUF, too")
    expect(tinygpt("convert", "f.gguf", "back", "--format", "safetensors"), 0, "and back")
    with open("back/generation_config.json", encoding="utf-8") as f:
        equal(json.load(f)["eos_token_id"][:2], [X, Z], "all of them in the folder again")
    edit("f/generation_config.json", eos_token_id=[X, Z, 65, 66, 67])
    expect(tinygpt("convert", "f", "many.gguf", "--dtype", "f32"), 0, "five as GGUF")
    equal([n_drawn("many.gguf", t) for t in (X, Y, Z, 65, 66, 67)], [1, 6, 1, 1, 1, 1], "five in GGUF, too")
    edit("f/generation_config.json", eos_token_id=...)
    edit("f/config.json", eos_token_id=Y)
    equal([n_drawn(path, t) for t in (X, Y)], [6, 1], "config.json is asked second")
    for value in -1, 1 << 31, "x", [X, 999], [X, -1], 1.5, True, {"a": 1}:
        edit("f/generation_config.json", eos_token_id=value)
        refused(f"eos_token_id {value}", "sample", "f", "--prompt", "a",
                err="ids of its 261 tokens, have 999" if value == [X, 999] else "eos_token_id: want ids, have")
    edit("f/generation_config.json", eos_token_id=None)
    equal([n_drawn(path, t) for t in (X, Y)], [6, 1], "null is none")


def prompt_ids(path):
    r = tinygpt("sample", path, "--prompt", "Hi", "--tokens", "1", "--json")
    return r.json()["prompt_ids"] if r.code == 0 else r.errors


def beginnings():
    bare, marked = [72, 105], [BOS, 72, 105]
    def pre(name, **more):
        def change(g):
            g.string(T + "pre", name)
            for key, value in more.items():
                g.bool(T + key, value)
        return change
    for name in "llama-bpe", "llama3", "llama-v3", "falcon3", "lfm2":
        equal(prompt_ids(gguf("a.gguf", pre(name))), marked, f"{name} begins with bos")
    for name in "gpt-2", "smollm", "qwen2", "deepseek-r1-qwen", "megrez", "smaug-bpe":
        equal(prompt_ids(gguf("a.gguf", pre(name))), bare, f"{name} begins with the text")
    equal(prompt_ids(gguf("a.gguf", pre("llama3", add_bos_token=0))), bare, "a file that says no")
    equal(prompt_ids(gguf("a.gguf", pre("qwen2", add_bos_token=1))), marked, "a file that says yes")
    folder("f", pre("llama3"))
    equal(prompt_ids("f"), marked, "converted into a folder")
    expect(tinygpt("convert", "f", "b.gguf", "--dtype", "f32"), 0, "and back")
    equal(prompt_ids("b.gguf"), marked, "converted back")
    def no_id(change):
        def both(g):
            change(g)
            del g.values[T + "bos_token_id"]
        return both
    gguf("a.gguf", no_id(pre("gpt-2", add_bos_token=1)))
    refused("a file that asks for what it lacks", "sample", "a.gguf", "--prompt", "a",
            err=("add_bos_token: want tokenizer.ggml.bos_token_id",))
    gguf("a.gguf", pre("gpt-2", add_eos_token=1))
    refused("an end that it lacks", "sample", "a.gguf", "--prompt", "a",
            err=("add_eos_token: want tokenizer.ggml.eos_token_id",))
    r = tinygpt("sample", gguf("a.gguf", no_id(pre("llama3"))), "--prompt", "Hi", "--tokens", "1", "--json")
    expect(r, 0, "a name that asks for what the file lacks is told", err="bos_token_id: none")
    equal(r.json()["prompt_ids"], bare, "and adds nothing")
    for name, why in ("viking", "have viking"), ("default", "does not say how"), ("poro", "have poro"):
        gguf("a.gguf", pre(name))
        refused(f"splitter {name}", "sample", "a.gguf", "--prompt", "a", err=("tokenizer.ggml.pre", why))
    gguf("a.gguf", lambda g: g.values.pop(T + "pre"))
    refused("no splitter", "sample", "a.gguf", "--prompt", "a", err=("have none", "does not say how"))
    gguf("a.gguf", lambda g: g.values.update({T + "suppress_tokens": (ARRAY, array(I32, [X]))}))
    refused("tokens that are never drawn", "sample", "a.gguf", "--prompt", "a", err="suppress_tokens")


def template(path):
    r = tinygpt("info", path)
    return next((line.split(None, 1)[1] for line in r.text.splitlines() if "begins" in line), None)


def templates():
    path = folder("f")
    named = [{"name": "tool_use", "template": "a tool's"}, {"name": "default", "template": "the default one"}]
    edit("f/tokenizer_config.json", chat_template=named)
    equal(template(path), "the default one", "the one called default of a list")
    edit("f/tokenizer_config.json", chat_template=named[:1])
    equal(template(path), None, "a list without a default has none")
    edit("f/tokenizer_config.json", chat_template=...)
    edit("f/chat_template.json", chat_template="a processor's")
    equal(template(path), "a processor's", "chat_template.json")
    edit("f/tokenizer_config.json", chat_template="a text")
    equal(template(path), "a text", "the tokenizer's own comes before it")
    write("f/chat_template.jinja", "a file's")
    equal(template(path), "a file's", "a file of its own comes first")


main(ends_of_gguf, ends_of_folder, beginnings, templates)
