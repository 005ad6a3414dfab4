#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_safetensors.py - to transformers and back: convert, config.json, and every command on it.

Files are read and made here by the description of the format, with the standard library alone.
"""
import json
import math
import os
import shutil
import struct

from util import (SILENT, check, equal, expect, main, read, text_file, tinygpt, train, whole, write)


def parts(path):
    """Header and data of a .safetensors file."""
    data = read(path)
    n = struct.unpack_from("<Q", data)[0]
    return json.loads(data[8:8 + n]), data[8 + n:]


def assemble(path, header, data):
    text = json.dumps(header).encode()
    return write(path, struct.pack("<Q", len(text)) + text + data)


def export():
    """A short run as folder/model.safetensors and what belongs to it."""
    expect(train("--steps", "20", "--lr", "1e-2", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "folder", "--format", "safetensors"), 0, "convert",
           out=["^folder: safetensors f32", "difference 0,", "6 of 6 texts"])
    equal(sorted(os.listdir("folder")),
          ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"], "its files")


def there_and_back():
    export()
    header, data = parts("folder/model.safetensors")
    metadata = header.pop("__metadata__")
    equal(metadata["format"], "pt", "format of the metadata")
    own = json.loads(metadata["tinygpt"])
    equal((own["step"], own["config"]["ctx"]), (20, 16), "our JSON in the metadata")
    equal(sorted(header)[:3], ["h.0.attn.c_attn.bias", "h.0.attn.c_attn.weight",
                               "h.0.attn.c_proj.bias"], "names")
    equal(header["h.0.attn.c_attn.weight"]["shape"], [16, 48], "q, k and v side by side")
    end = 0
    for name, t in header.items():
        equal(t["data_offsets"][0], end, f"{name} follows the one before")
        end += 4 * math.prod(t["shape"])
        equal(t["data_offsets"][1], end, f"length of {name}")
    equal(len(data), end, "no byte is left over")
    config = json.loads(read("folder/config.json"))
    equal([config[k] for k in ("model_type", "n_layer", "n_embd", "n_head", "n_positions",
                               "vocab_size", "activation_function", "eos_token_id")],
          ["gpt2", 1, 16, 2, 16, 256, "gelu", None], "config.json")

    expect(tinygpt("convert", "folder/model.safetensors", "back.tinygpt"), 0, "convert back",
           out="^back.tinygpt: v3 f32")
    whole("back.tinygpt", "converted back")
    expect(tinygpt("verify", "folder/model.safetensors", "back.tinygpt"), 0, "the same model",
           out="^equal")
    r = tinygpt("verify", "a.tinygpt", "back.tinygpt")
    expect(r, 1, "the moments stay behind", out="adam_m.token_embedding.weight is in a.tinygpt only")
    again = tinygpt("convert", "back.tinygpt", "again/model.safetensors", "--json")
    expect(again, 0, "the file stands for its folder")
    equal((again.json()["max_error"], again.json()["texts_same"]), (0, 6), "read back")
    for name in os.listdir("folder"):
        equal(read(f"again/{name}"), read(f"folder/{name}"), f"the same model, the same {name}")


def a_tokenizer_of_bytes():
    """tokenizer.json says that token n is byte n, and nothing else."""
    export()
    tokenizer = json.loads(read("folder/tokenizer.json"))
    vocab = tokenizer["model"]["vocab"]
    equal((tokenizer["model"]["type"], tokenizer["model"]["merges"], len(vocab)), ("BPE", [], 256),
          "its model")
    # GPT-2's alphabet: printable bytes are themselves, the others follow from 256 on.
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    alphabet = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}
    equal([vocab[alphabet[b]] for b in range(256)], list(range(256)), "token n is byte n")
    config = json.loads(read("folder/tokenizer_config.json"))
    equal((config["tokenizer_class"], config["model_max_length"]), ("PreTrainedTokenizerFast", 16),
          "what AutoTokenizer wants to know")
    text = "Hi \u00e9"
    r = tinygpt("tokenize", "folder/tokenizer.json", text, "--json")
    equal(r.json()["ids"], list(text.encode()), "as a tokenizer of others")
    equal(tinygpt("sample", "folder", "--prompt", "A", "--temp", "0", "--tokens", "30").out,
          tinygpt("sample", "a.tinygpt", "--prompt", "A", "--temp", "0", "--tokens", "30").out,
          "the folder says what the run says")


def commands_take_it():
    export()
    st = "folder/model.safetensors"
    info = tinygpt("info", st, "--json").json()
    equal((info["format"], info["step"], info["has_moments"]), ("safetensors", 20, False), "info")
    equal(next(t["stored_as"] for t in info["tensors"] if t["name"].endswith("v_proj.bias")),
          "h.0.attn.c_attn.bias", "info tells the names in the file")
    expect(tinygpt("info", st), 0, "info for people", out=r"k_proj.weight .* h.0.attn.c_attn.weight")
    whole(st, "safetensors")
    says = [tinygpt("sample", m, "--prompt", "A", "--temp", "0", "--tokens", "30").out
            for m in ("a.tinygpt", st)]
    equal(says[0], says[1], "both say the same")
    losses = [tinygpt("eval", m, "--data", text_file(), "--json").json()["loss"]
              for m in ("a.tinygpt", st)]
    equal(losses[0], losses[1], "both have the same loss")
    expect(tinygpt("train", "--from", st, "--data", text_file(), *SILENT, "--steps", "2", "--batch",
                   "4", "--out", "on.tinygpt"), 0, "training goes on from it")
    expect(tinygpt("train", "--resume", st, "--data", text_file()), 2, "it is no run",
           err="holds weights alone")


def configuration_of_others():
    """A file as transformers saves it: a prefix, no metadata of ours, config.json beside it."""
    export()
    header, data = parts("folder/model.safetensors")
    del header["__metadata__"]
    theirs = {"__metadata__": {"format": "pt"}}
    theirs.update({"transformer." + name: t for name, t in header.items()})
    os.mkdir("theirs")
    assemble("theirs/model.safetensors", theirs, data)
    expect(tinygpt("info", "theirs/model.safetensors"), 2, "no configuration",
           err='want "tinygpt" in __metadata__, or config.json in the same folder, have neither')
    shutil.copy("folder/config.json", "theirs/config.json")
    expect(tinygpt("convert", "theirs/model.safetensors", "t.tinygpt"), 0, "with config.json")
    r = tinygpt("verify", "t.tinygpt", "folder/model.safetensors")
    expect(r, 1, "all weights are equal", out="^step differs: 0 and 20")
    os.chdir("theirs")
    expect(tinygpt("info", "model.safetensors"), 0, "in the folder itself", out="weights only")
    os.chdir("..")
    config = json.loads(read("theirs/config.json"))
    # Another GPT-2 than ours is a third-party model, which can be run if it fits its tensors.
    for key, value, says in (("vocab_size", 50257, "gpt2.vocab_size: want 256, .* have 50257"),
                             ("model_type", "opt", "model_type"), ("n_head", 3, "heads")):
        write("theirs/config.json", json.dumps({**config, key: value}))
        expect(tinygpt("sample", "theirs/model.safetensors"), 2, f"config.json with {key} {value}",
               err=says)
    write("theirs/config.json", json.dumps({**config, "activation_function": "gelu_new"}))
    expect(tinygpt("sample", "theirs/model.safetensors", "--tokens", "2"), 0, "a gelu by tanh")
    expect(tinygpt("convert", "theirs/model.safetensors", "n.tinygpt"), 0, "as a file of its family",
           out="difference 0,")
    expect(tinygpt("info", "n.tinygpt"), 0, "which is a GPT-2's", out="gpt2")
    expect(tinygpt("train", "--data", text_file(), "--from", "n.tinygpt", "--steps", "1",
                   *SILENT, "--row-tokens", "8", "--no-save"), 0, "and trained")
    write("theirs/config.json", "<html>")
    expect(tinygpt("sample", "theirs/model.safetensors"), 2, "config.json is a web page",
           err="config.json: byte 0")


def other_peoples_files_stay():
    expect(train("--steps", "2", "--out", "a.tinygpt"), 0, "a run")
    os.mkdir("m")
    write("m/config.json", '{"compilerOptions":{}}')
    r = tinygpt("convert", "a.tinygpt", "m/model.safetensors")
    expect(r, 2, "a config.json of something else", err=["m: want", "another model", "--force"])
    equal(os.listdir("m"), ["config.json"], "nothing was written")
    equal(read("m/config.json"), b'{"compilerOptions":{}}', "it stays")
    os.remove("m/config.json")
    for step in ("first", "second"):
        expect(tinygpt("convert", "a.tinygpt", "m/model.safetensors"), 0, f"the {step} time")
    equal([f for f in sorted(os.listdir(".")) if not f.startswith("a.tinygpt")], ["m", "m.prev"],
          "no temporary files")
    equal(sorted(os.listdir("m")), sorted(os.listdir("m.prev")), "the one before")
    expect(tinygpt("convert", "a.tinygpt", "h", "--format", "safetensors", "--dtype", "q8_0"), 2, "blocks",
           err="want f32, f16 or bf16")
    check(not os.path.exists("h"), "no folder is left")


def broken_files():
    export()
    header, data = parts("folder/model.safetensors")
    good = read("folder/model.safetensors")
    bad = "folder/bad.safetensors"
    for n in (0, 7, 8, 9, 100, len(good) - len(data), len(good) - 1):
        write(bad, good[:n])
        expect(tinygpt("sample", bad), 2, f"cut to {n} bytes", err=bad)
    write(bad, good + b"x")
    expect(tinygpt("info", bad), 2, "a byte too many", err="data: want")

    def changed(name, **change):
        return {**header, name: {**header[name], **change}}
    end = len(data)
    for what, new, says in (
            ("an unknown dtype", changed("wte.weight", dtype="F31"), "wte.weight: dtype"),
            ("another shape", changed("wte.weight", shape=[256, 15]), "wte.weight: data_offsets"),
            ("an overlap", changed("wpe.weight", data_offsets=[0, 1024]), "begin"),
            ("an end outside", changed("wte.weight", data_offsets=[end, end + 16384]), "within"),
            ("a missing tensor", {k: v for k, v in header.items() if k != "ln_f.bias"},
             "ln_f.weight|data|begin"),
            ("no metadata of ours", {k: v for k, v in header.items() if k != "__metadata__"}, None),
            ("deep nesting", {**header, "x": [[[[[[]]]]]]}, "header: byte")):
        assemble(bad, new, data)
        if says:
            expect(tinygpt("info", bad), 2, what, err=[bad, says])
        else:
            expect(tinygpt("info", bad), 0, what, out="step 0")
    text = json.dumps(header)[:-1] + ',"wte.weight":{}}'
    write(bad, struct.pack("<Q", len(text)) + text.encode() + data)
    expect(tinygpt("info", bad), 2, "a key twice", err="wte.weight")
    write(bad, "<!DOCTYPE html><title>Not found</title>")
    expect(tinygpt("info", bad), 2, "a web page", err='have "<!DOCTYPE html><"')


main(there_and_back, a_tokenizer_of_bytes, commands_take_it, configuration_of_others, other_peoples_files_stay,
     broken_files)
