#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_files.py - third-party model files at the command line: embed, convert to GGUF and .tinygpt, what info says.

Small models are those of test/golden/lm; MiniLM, which the set-up has fetched, is compared with
transformers' cosines (test/golden/lm/minilm.txt, made by tools/oracle/minilm.py).
"""
import json
import math
import os
import random
import re
import shutil
import struct
import zipfile

from gguf_file import FF, WIDTH, Gguf, alphabet
from util import SILENT, TOP, check, equal, expect, have_model, main, read, text_file, tinygpt, train, write

LM = os.path.join(TOP, "test", "golden", "lm")
MINILM = have_model("minilm.zip")


def lm(name):
    return os.path.join(LM, name)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def embeddings():
    r = tinygpt("embed", lm("bert.zip"), "the cat", "a", "the cat", "--json")
    expect(r, 0, "embed")
    j = r.json()
    equal((j["texts"], j["width"], len(j["vectors"]), len(j["vectors"][0])), (3, 32, 3, 32), "sizes")
    a, b, c = j["vectors"]
    equal(a, c, "the same text, the same vector")
    check(abs(dot(a, a) - 1) < 1e-6, "length 1")
    s = tinygpt("embed", lm("bert.zip"), "the cat", "a", "the cat", "--json", "--similar").json()
    check(abs(s["cosines"][0][1] - dot(a, b)) < 1e-6, "cosines are those of the vectors")
    check(abs(s["cosines"][0][2] - 1) < 1e-6, "a text is like itself")
    write("lines.txt", b"the cat\r\na\nthe cat\n")
    lines = tinygpt("embed", lm("bert.zip"), "--file", "lines.txt", "--json").json()
    equal(lines["vectors"], j["vectors"], "lines of a file")
    matrix = tinygpt("embed", lm("bert.zip"), "the cat", "a")
    rows = [[float(x) for x in line.split()] for line in matrix.text.splitlines()]
    check(len(rows) == 2 and max(abs(x - y) for x, y in zip(rows[1], b)) < 1e-7, "a matrix")
    expect(tinygpt("embed", lm("bert.zip")), 2, "no text", err="want TEXT or --file F, have none")
    expect(tinygpt("embed", lm("gpt2"), "a"), 2, "an id beyond the vocabulary", err="want an id below 48, have 97")
    expect(tinygpt("embed", lm("bert.zip"), "a " * 99), 2, "too long", err="at most 64 tokens, have 101")
    expect(tinygpt("embed", lm("bert.zip"), "a " * 99, "--cut"), 0, "too long, cut")
    expect(tinygpt("sample", lm("bert.zip"), "--prompt", "a"), 2, "an encoder writes nothing",
           err="want a model that writes text")


def runs_and_models():
    """A run is told of as the GGUF file that it becomes: family, sizes, kinds of layers, caches."""
    tune = os.path.join(LM, "tune_qwen35.zip")
    r = tinygpt("train", "--data", text_file(), "--from", tune, "--steps", "1", "--row-tokens", "16",
                "--eval-windows", "2", *SILENT, "--out", "q.tinygpt")
    expect(r, 0, "a run of Qwen 3.5")
    expect(tinygpt("convert", "q.tinygpt", "q.gguf"), 0, "to GGUF")
    run, gguf = (tinygpt("info", name, "--json").json() for name in ("q.tinygpt", "q.gguf"))
    story = {"file", "format", "bytes", "checksummed", "name", "tokenizer", "splitter", "template", "weight_bytes",
             "has_moments", "step", "train", "loss_history", "final_loss", "best_val", "tensors"}
    equal({k: v for k, v in run.items() if k not in story}, {k: v for k, v in gguf.items() if k not in story},
          "what is told of the model")
    equal((run["family"], run["config"]["layer_kind"], len(run["caches"])), ("qwen35", "dad", 1),
          "family, kinds, caches")
    equal((run["step"], run["has_moments"], "step" in gguf), (1, True, False), "a run's story")
    equal((run["tokenizer"], gguf["tokenizer"]), ("tokenizer.json", "gpt2"), "a vocabulary")
    parts = ("name", "dtype", "type", "rows", "cols")
    equal({tuple(t[k] for k in parts) for t in run["tensors"] if not t["name"].startswith("adam_")},
          {tuple(t[k] for k in parts) for t in gguf["tensors"]}, "tensors")
    lines = [tinygpt("info", name).text.splitlines() for name in ("q.tinygpt", "q.gguf")]
    same = ("model ", "kinds ", "parameters ", "  F32 ", "cache ")
    equal(*([line for line in told if line.startswith(same)] for told in lines), "lines")
    write("a.gguf", read(lm("qwen35.gguf")))
    expect(tinygpt("convert", "a.gguf", "a.tinygpt", "--dtype", "q8_0"), 0, "a model in .tinygpt")
    for name, family in (("q.tinygpt", "qwen35"), ("a.tinygpt", "qwen35"), (lm("bert.zip"), "bert"),
                         (lm("llama"), "llama")):
        config = tinygpt("info", name, "--json").json()
        equal((config["family"], config["config"]["d_model"], config["config"]["layers"]),
              (family, config["width"], config["layers"]), f"sizes of {os.path.basename(name)}")


def runs_to_any_type():
    """A run becomes what a GGUF file of it becomes; a run in f32 stays one."""
    expect(train("--steps", "1", "--out", "b.tinygpt"), 0, "a byte GPT")
    expect(tinygpt("train", "--data", text_file(), "--from", lm("tune_qwen3.zip"), "--steps", "1", "--row-tokens", "16",
                   "--eval-windows", "2", *SILENT, "--out", "q.tinygpt"), 0, "a run of Qwen 3")
    for name in "b.tinygpt", "q.tinygpt":
        expect(tinygpt("convert", name, "m.gguf", "--dtype", "q8_0"), 0, "to GGUF")
        expect(tinygpt("convert", name, "m.tinygpt", "--dtype", "q8_0"), 0, "to .tinygpt", out="^m.tinygpt: v3 q8_0")
        expect(tinygpt("verify", "m.gguf", "m.tinygpt"), 0, "the same in both", out="equal: ")
        expect(tinygpt("convert", name, name + ".hf", "--dtype", "f16"), 0, "to a folder", out="safetensors f16")
        equal(tinygpt("info", name + ".hf", "--json").json()["dtype"], "f16", "a folder of f16")
        expect(tinygpt("convert", name, "c.tinygpt"), 0, "to .tinygpt of f32")
        equal(read("c.tinygpt"), read(name), "the very run")
    expect(tinygpt("convert", "b.tinygpt", "two.tinygpt", "--dtype", "f16"), 0, "the original's layout", out="v2 f16")
    expect(tinygpt("convert", "q.tinygpt", "q16.tinygpt", "--dtype", "f16"), 0, "which Qwen has not", out="v3 f16")


def minilm():
    lines = read(lm("minilm.txt")).decode("utf-8").split("\n")
    pairs = [(lines[i], lines[i + 1], float(lines[i + 2])) for i in range(0, len(lines) - 2, 3)]
    equal(len(pairs), 20, "pairs")
    write("texts", "".join(a + "\n" + b + "\n" for a, b, _ in pairs).encode("utf-8"))
    v = tinygpt("embed", MINILM, "--file", "texts", "--json").json()["vectors"]
    worst = max(abs(dot(v[2 * i], v[2 * i + 1]) - want) for i, (_, _, want) in enumerate(pairs))
    check(worst <= 1e-4, f"cosines of twenty pairs: want 1e-4, have {worst:.2g}")


# A model of each family, in f16.
GGUF = sorted(n for n in os.listdir(lm("")) if n.endswith(".gguf") and "split" not in n)
FOLDERS = sorted(n for n in os.listdir(lm("")) if os.path.isdir(lm(n)) and not n.startswith("mlx"))
# Decays are logarithms in folders, and what they stand for in GGUF.
DECAYS = {"granite": 1e-5, "falcon": 1e-5, "falcon_norm": 1e-5, "nemotron": 1e-5, "qwen35": 4e-5}
# Rounding may send a row to another expert, whose answer is another one: logits up to 5.9 differ by up to
# 4.8 in such a row, and the mean over rows goes up. Where nothing is rounded, nothing is allowed.
ROUTED = ("qwen3moe", "olmoe", "granitemoe")
ROUTED_KL = {"bf16": 5e-3, "q8_0": 0.02}
# Rows of 48, 24, 16 and 8, which no block of 32 divides.
ODD_ROWS = ("granite", "nemotron", "olmo3", "gemma4") + ROUTED


def to_gguf():
    for name in FOLDERS + ["gemma3.gguf"]:
        r = tinygpt("convert", lm(name), "exact.gguf", "--dtype", "f16", "--json")
        expect(r, 0, f"{name} as f16")
        j = r.json()
        equal((j["max_error"] <= DECAYS.get(name, 0), j["finer"], j["same_best"]), (True, 0, 1),
              f"{name}: nothing is lost: {j['max_error']}")
        r = tinygpt("convert", lm(name), "small.gguf", "--dtype", "q8_0", "--json")
        expect(r, 0, f"{name} as q8_0")
        j = r.json()
        most = 8 if name in ROUTED else 2
        check(0 < j["max_error"] < most and 0 < j["mean_kl"] < 0.02, f"{name}: q8_0 costs a little")
    # Rows of 32 and 64: no block of 256 divides them, and each is named.
    r = tinygpt("convert", lm("qwen2"), "k.gguf", "--dtype", "q4_k")
    expect(r, 0, "q4_k", out="finer +15 of 15 matrices, .*blk.N.attn_k.weight Q5_0 .2., .*token_embd.weight Q5_0")
    coarse = tinygpt("convert", lm("qwen2"), "4.gguf", "--dtype", "q4_0", "--json").json()
    check(coarse["mean_kl"] > j["mean_kl"], "q4_0 costs more than q8_0")
    check(os.path.getsize("4.gguf") < os.path.getsize("small.gguf"), "and is smaller")
    # MLX's weights in f32 are what they stand for.
    j = tinygpt("convert", lm("mlx4"), "mlx.gguf", "--dtype", "f32", "--json").json()
    check(j["max_error"] < 1e-4, "MLX's weights in f32")
    expect(tinygpt("convert", lm("gemma3.gguf"), "x.tinygpt", "--format", "v2", "--dtype", "q8_0"), 2,
           "not ours", err="--format v2: want --dtype f32, f16 or int4, have q8_0: leave --format out")


def every_type():
    """Six types, three forms, every family: read back, with what it cost, and what is finer listed."""
    sources = FOLDERS + ["gemma3.gguf", "mlx4"]
    most = {"f32": 1e-12, "f16": 1e-5, "bf16": 1e-3, "q8_0": 1e-2, "q4_0": 1, "q4_k": 0.5}
    for form, out in ("gguf", "x.gguf"), ("v3", "x.tinygpt"), ("safetensors", "x.folder"):
        for dtype, kl in most.items():
            for name in sources:
                if form == "safetensors" and name == "mlx4":
                    continue
                what = f"{name} as {form} {dtype}"
                r = tinygpt("convert", lm(name), out, "--format", form, "--dtype", dtype, "--json")
                if form == "safetensors" and dtype[0] == "q":
                    expect(r, 2, what, err="want f32, f16 or bf16")
                    continue
                expect(r, 0, what)
                j = r.json()
                low = kl / 1e5 if dtype[0] == "q" else 0
                high = ROUTED_KL.get(dtype, kl) if name in ROUTED else kl
                # A folder has one type, so its biases and norms are rounded, too; the others keep those.
                if (form, dtype) == ("safetensors", "bf16"):
                    high *= 2
                check(low <= j["mean_kl"] <= high and j["texts_same"] == j["texts"], what, str(j))
                equal(j["finer"] > 0, dtype == "q4_k" or (dtype[0] == "q" and name in ODD_ROWS),
                      f"{what}: rows that its blocks do not divide")


def to_tinygpt():
    """Every family in the checksummed file; with its tokenizer, and each byte of it watched."""
    for name in FOLDERS + ["qwen3.gguf", "gemma3.zip", "mlx4"]:
        for kind, exact in ("f32", True), ("q4_0", False):
            r = tinygpt("convert", lm(name), "x.tinygpt", "--dtype", kind, "--json")
            expect(r, 0, f"{name} as {kind}", out=f'"layout":"v3 {kind}"')
            j = r.json()
            equal(j["out_bytes"], os.path.getsize("x.tinygpt"), "its length")
            equal(j["texts_same"], j["texts"], f"{name}: the same tokens")
            check((j["max_error"] < 1e-4) == exact, f"{name} as {kind}: {j['max_error']}")
    for kind in "f16", "bf16", "q8_0", "q4_k":
        expect(tinygpt("convert", lm("qwen2.gguf"), "q.tinygpt", "--dtype", kind), 0, kind)
    expect(tinygpt("info", "q.tinygpt"), 0, "info", out=["tinygpt v3, .* SHA-256", "model +qwen2"])
    expect(tinygpt("verify", "q.tinygpt"), 0, "whole", out="q.tinygpt is whole")
    expect(tinygpt("verify", lm("gemma3.gguf")), 0, "a file without checksums", out="no checksums to try its bytes by")
    expect(tinygpt("convert", "q.tinygpt", "back.gguf"), 0, "and on to GGUF")
    expect(tinygpt("convert", lm("bert.zip"), "b.tinygpt", "--dtype", "f16"), 0, "BERT")
    expect(tinygpt("embed", "b.tinygpt", "the cat"), 0, "its vectors")
    # With a tokenizer: one of ours as a GPT-2.
    expect(train("--steps", "1", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "a.gguf"), 0, "as GGUF")
    expect(tinygpt("convert", "a.gguf", "t.tinygpt", "--dtype", "bf16"), 0, "and as GPT-2")
    expect(tinygpt("info", "t.tinygpt"), 0, "info", out="tokenizer +gpt2")
    for command, *rest in ("sample", "--prompt", "ab", "--tokens", "3"), ("tokenize", "ab"):
        expect(tinygpt(command, "t.tinygpt", *rest), 0, command)
    expect(tinygpt("train", "--data", text_file(), "--from", "q.tinygpt"), 2, "not to be trained",
           err="training wants f32, f16 or bf16, have q")
    good = read("q.tinygpt")
    for at in range(0, len(good), len(good) // 40 + 1):
        write("bad.tinygpt", good[:at] + bytes([good[at] ^ 4]) + good[at + 1:])
        expect(tinygpt("verify", "bad.tinygpt"), 2, f"byte {at} changed", err="bad.tinygpt")
    middle = len(good) * 3 // 4
    write("bad.tinygpt", good[:middle] + b"\x00\xff" + good[middle + 2:])
    expect(tinygpt("sample", "bad.tinygpt"), 2, "damaged weights", err="chunk 0: want CRC")
    write("bad.tinygpt", good[:-1])
    expect(tinygpt("sample", "bad.tinygpt"), 2, "cut", err="file length: want")


def pack_cache():
    """The second start maps what the first one packed; what is stale, cut or damaged is packed anew."""
    def run(said=None, mapped=None, model="m.gguf"):
        r = tinygpt("sample", model, "--pack-cache", "kept", "--tokens", "4", "--temp", "0", "--json")
        expect(r, 0, f"a start: {said}", err=said or r"^(?!.*pack cache)")
        if mapped is not None:
            equal(r.json()["pack_mapped"], mapped, f"mapped: {said}")
        return r.json()["ids"]
    expect(train("--steps", "1", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "m.gguf", "--dtype", "q8_0"), 0, "a model")
    want = run(mapped=False)
    kept = os.path.join("kept", os.listdir("kept")[0])
    good = read(kept)
    equal((run(mapped=True), len(os.listdir("kept"))), (want, 1), "the same text, mapped")
    for name, bytes_ in (("is damaged", good[:100] + b"x" + good[101:]),
                         ("is damaged", good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]),
                         ("is damaged", good[:-1] + bytes([good[-1] ^ 1])),
                         ("has another length", good[:-1]), ("want some bytes", b"")):
        if bytes_[100:101] == b"x":
            bytes_ = good[:20] + b"x" + good[21:]
            name = "another state of the model"
        write(kept, bytes_)
        equal(run(name, False), want, f"after {name}")
        equal(run(mapped=True), want, "and written again")
    os.utime("m.gguf", (1, 1))
    equal(run("another state of the model", False), want, "a file that was touched")
    write("file", b"")
    r = tinygpt("sample", "m.gguf", "--pack-cache", "file/folder", "--tokens", "4", "--temp", "0", "--json")
    expect(r, 0, "a folder that cannot be made is no error", err="pack cache: not written")
    equal(r.json()["ids"], want, "and costs nothing but time")
    for name in "gpt2", "qwen2-split-00001-of-00004.gguf", "gemma3.zip", "mlx4":
        same = [tinygpt("convert", lm(name), f"{i}.gguf", "--pack-cache", "kept", "--json") for i in "ab"]
        for r in same:
            expect(r, 0, f"{name}, packed and mapped", out='"max_error":0,')
    # Weights that are multiplied with numbers of config.json are others with others of these.
    shutil.copytree(lm("falcon"), "numbers")
    config = json.loads(read("numbers/config.json"))
    for number in config["lm_head_multiplier"], 50.0:
        write("numbers/config.json", json.dumps(config | {"lm_head_multiplier": number}).encode())
        os.utime("numbers/model.safetensors", (1, 1))
        r = tinygpt("convert", "numbers", "n.gguf", "--dtype", "f32", "--pack-cache", "kept", "--force", "--json")
        expect(r, 0, f"a head times {number}")
        check(r.json()["max_error"] < 1e-3, f"a head times {number}: not that of another number", r.text)


def makers_sampling():
    """generation_config.json draws where no option does, and goes along into other formats."""
    shutil.copytree(lm("gpt2"), "gen")
    write("gen/generation_config.json", b'{"do_sample": true, "temperature": 0.5, "top_k": 7, "top_p": 2}')
    expect(tinygpt("convert", "gen", "gen.gguf"), 0, "as GGUF")
    expect(tinygpt("convert", "gen.gguf", "gen.tinygpt"), 0, "as .tinygpt")
    said = r"drawing as the file says.*: temperature 0.5, top-k 7\n"
    for name in "gen", "gen.gguf", "gen.tinygpt":
        expect(tinygpt("sample", name, "--prompt", "", "--tokens", "1"), 0, name, err=said)
    draws = [tinygpt("sample", "gen.gguf", "--prompt", "", "--tokens", "20", "--json", *options).json()["ids"]
             for options in ((), ("--temp", "0.5", "--top-k", "7"), ("--temp", "1"), ("--top-k", "7"))]
    equal(draws[0], draws[1], "what the file says is what is drawn")
    check(draws[2] != draws[0] and draws[3] == draws[0], "but an option comes first")
    expect(tinygpt("sample", "gen", "--prompt", "", "--tokens", "1", "--json"), 0, "with --json", err=said)
    write("gen/generation_config.json", b'{"do_sample": false, "temperature": 0.5, "top_k": 7, "typical_p": 0.3}')
    greedy = tinygpt("sample", "gen", "--prompt", "", "--tokens", "20", "--json")
    expect(greedy, 0, "greedy makers", err="file says.*: temperature 0\n$")
    equal(greedy.json()["ids"], tinygpt("sample", "gen", "--prompt", "", "--tokens", "20", "--json", "--temp", "0").json()["ids"],
          "draw the likeliest")
    expect(tinygpt("convert", "gen", "greedy.gguf"), 0, "as GGUF")
    expect(tinygpt("convert", "greedy.gguf", "greedy", "--format", "safetensors"), 0, "and back")
    g = json.loads(read("greedy/generation_config.json"))
    equal((g["do_sample"], "temperature" in g), (False, False), "still greedy")
    write("gen/generation_config.json", b'{"do_sample": true, "typical_p": 0.3, "num_beams": 1, "suppress_tokens": []}')
    typical = tinygpt("sample", "gen", "--prompt", "", "--tokens", "20", "--json")
    expect(typical, 0, "typical_p", err=r"^drawing as the file says.*: typical-p 0.3\n$")
    equal(typical.json()["ids"], tinygpt("sample", lm("gpt2"), "--prompt", "", "--tokens", "20", "--json", "--typical-p",
                                         "0.3").json()["ids"], "is drawn so")
    for key, value in (("suppress_tokens", [1]), ("bad_words_ids", [[1]]), ("no_repeat_ngram_size", 2), ("num_beams", 4),
                       ("forced_bos_token_id", 0), ("penalty_of_tomorrow", 1.5)):
        write("gen/generation_config.json", json.dumps({key: value}).encode())
        expect(tinygpt("sample", "gen", "--prompt", "", "--tokens", "1"), 0, key, err=f"generation_config.json: {key}: .* is not done")


def damaged():
    """A bit of tensors that lie in a zip file as they are, and weights that are no numbers, are found by who reads them."""
    for name, use in (("bert.zip", ("embed", "x.zip", "the cat")), ("tune_llama.zip", ("sample", "x.zip", "--prompt", "a"))):
        with zipfile.ZipFile(lm(name)) as z, zipfile.ZipFile("x.zip", "w", zipfile.ZIP_STORED) as stored:
            for member in z.namelist():
                stored.writestr(member, z.read(member))
        expect(tinygpt(*use), 0, f"{name}, stored")
        with zipfile.ZipFile("x.zip") as z:
            tensors = next(i for i in z.infolist() if i.filename.endswith(".safetensors"))
        data = bytearray(read("x.zip"))
        data[tensors.header_offset + tensors.file_size - 100] ^= 1
        write("x.zip", bytes(data))
        for command in (use, ("convert", "x.zip", "x.gguf"), ("convert", "x.zip", "x.tinygpt")):
            expect(tinygpt(*command), 2, f"{command}", err=r"x.zip: model.safetensors: want the CRC .* of the directory, have")
    expect(tinygpt("train", "--data", text_file(), "--from", "x.zip", "--no-save"), 2, "training", err="want the CRC")
    check(not os.path.exists("x.gguf") and not os.path.exists("x.tinygpt"), "nothing was made of it")
    for number in math.nan, math.inf:
        g = Gguf(alphabet() + ["<s>"])
        weight = g.tensors["blk.0.attn_norm.weight"]
        weight[2] = struct.pack("<f", number) + weight[2][4:]
        write("nan.gguf", g.bytes())
        for to in "out.gguf", "out.tinygpt":
            expect(tinygpt("convert", "nan.gguf", to), 2, f"{number} to {to}", err="nan.gguf: comparison: want finite numbers")
            check(not os.path.exists(to), "nothing is made of it")


def own_to_gguf():
    text = text_file()
    expect(train("--steps", "30", "--lr", "1e-2", "--out", "a.tinygpt"), 0, "a run")
    r = tinygpt("convert", "a.tinygpt", "a.gguf", "--json")
    expect(r, 0, "our own as GGUF")
    j = r.json()
    check(j["max_error"] < 1e-4 and j["texts_same"] == j["texts"], "the same model")
    check(1e-6 < j["tanh_error"] < 0.1, "what llama.cpp's gelu makes of it")
    expect(tinygpt("convert", "a.tinygpt", "b.gguf"), 0, "the same in words", out="llama.cpp +.*by tanh")
    expect(tinygpt("info", "a.gguf"), 0, "info", out=["GGUF v3", "model +gpt2, layers 1, width 16"])
    a = tinygpt("sample", "a.tinygpt", "--prompt", "ab", "--tokens", "9", "--temp", "0", "--json").json()
    b = tinygpt("sample", "a.gguf", "--prompt", "ab", "--tokens", "9", "--temp", "0", "--json").json()
    equal(a["ids"], b["ids"], "the same text")


def to_folders():
    """GGUF to safetensors and on to GGUF again: rows, gains and names come back as they were."""
    for file in GGUF:
        name = file.removesuffix(".gguf")
        r = tinygpt("convert", lm(file), f"{name}.folder", "--format", "safetensors",
                    "--dtype", "f16", "--json")
        expect(r, 0, f"{name} as a folder")
        check(r.json()["max_error"] < 1e-4, f"{name}: the same answers")
        r = tinygpt("convert", f"{name}.folder", "back.gguf", "--dtype", "f16", "--json")
        expect(r, 0, f"{name} back")
        check(r.json()["max_error"] <= DECAYS.get(name, 0), f"{name}: the same answers again")
    expect(tinygpt("convert", lm("mlx8"), "mlx", "--format", "safetensors", "--json"), 0, "MLX as f32",
           out='"layout":"safetensors f32"')
    check("quantization" not in read("mlx/config.json").decode(), "it is not quantised any more")
    expect(tinygpt("convert", lm("llama"), "x", "--format", "safetensors", "--dtype", "q8_0"), 2,
           "no blocks there", err="want f32, f16 or bf16, have Q8_0")
    r = tinygpt("convert", lm("llama3.gguf"), "y", "--format", "safetensors", "--json")
    expect(r, 0, "factors become the rule that they follow")
    check(r.json()["max_error"] < 1e-4 and b'"llama3"' in read("y/config.json"),
          "the rule gives the same answers")


def short_windows():
    """eval of a third-party model whose context is shorter than a piece: windows of 16 tokens, each of
    which begins with the last one of the window before, as the log-probabilities of single tokens say."""
    expect(train("--steps", "30", "--lr", "1e-2", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "a.gguf"), 0, "as GGUF")
    text = "The cat sat on a mat."
    write("text", text.encode())
    j = tinygpt("eval", "a.gguf", "--data", "text", "--json").json()
    logs = []
    for i in range(1, len(text)):
        r = tinygpt("sample", "a.gguf", "--prompt", text[(i - 1) // 15 * 15:i], "--best", "256", "--json")
        logs += [row["logprob"] for row in r.json()["best"] if row["id"] == ord(text[i])]
    equal(len(logs), len(text) - 1, "tokens with one before them")
    check(abs(j["loss"] + sum(logs) / len(logs)) < 1e-5, "their mean", f"{j['loss']} {logs}")


def folders_with_tokenizers():
    """What a GGUF file has of a tokenizer becomes tokenizer.json and what transformers reads beside it."""
    expect(train("--steps", "1", "--out", "a.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "bytes.gguf"), 0, "bytes")
    expect(tinygpt("convert", lm("bert.zip"), "bert.gguf"), 0, "WordPiece")
    texts = ("don't  stop\n\n\tnow 12345", "na\u00efve \u65e5\u672c\u8a9e \U0001f600", "<|im_start|>user [SEP]", "")
    for name, folder in ("bytes.gguf", "one"), ("bert.gguf", "words"):
        r = tinygpt("convert", name, folder, "--format", "safetensors", "--dtype", "f16", "--json")
        expect(r, 0, f"{name} as a folder")
        equal(r.json()["texts_same"], r.json()["texts"], f"{name}: the same tokens")
        for text in texts:
            for options in (), ("--special", "--ends"):
                a, b = (tinygpt("tokenize", p, text, "--json", *options) for p in (name, folder + "/tokenizer.json"))
                equal(b.json()["ids"], a.json()["ids"], f"{name}: ids of {text!r}", b.argv)
        config = json.loads(read(folder + "/tokenizer_config.json"))
        equal(config["tokenizer_class"], "PreTrainedTokenizerFast", "its class")
        if name == "bert.gguf":
            a, b = (tinygpt("embed", p, "the cat", "--json").json()["vectors"][0] for p in (name, folder))
            check(max(abs(x - y) for x, y in zip(a, b)) < 1e-5, "the same vector")
    # What is said beside the tokenizer goes with it, by way of GGUF: the chat template, and how to draw.
    write("one/tokenizer_config.json", json.dumps({**json.loads(read("one/tokenizer_config.json")),
                                                   "chat_template": "{{ a }} <|im_start|>"}).encode())
    write("one/generation_config.json", b'{"do_sample": true, "temperature": 0.5, "top_k": 7, "eos_token_id": 1}')
    expect(tinygpt("convert", "one", "two.gguf", "--dtype", "f16"), 0, "to GGUF")
    expect(tinygpt("convert", "two.gguf", "three", "--format", "safetensors", "--dtype", "f16"), 0, "and back")
    equal(json.loads(read("three/tokenizer_config.json"))["chat_template"], "{{ a }} <|im_start|>", "the template")
    g = json.loads(read("three/generation_config.json"))
    equal((g["do_sample"], g["temperature"], g["top_k"], g["eos_token_id"]), (True, 0.5, 7, 1), "how to draw")
    expect(tinygpt("convert", "three", "four", "--format", "safetensors", "--dtype", "f16"), 0, "to another folder")
    for name in "tokenizer.json", "tokenizer_config.json", "generation_config.json", "config.json":
        equal(read(f"four/{name}"), read(f"three/{name}"), f"{name} is copied")


FORMS = ("gguf", "x.gguf"), ("v3", "x.tinygpt"), ("safetensors", "x.folder")


def superblocks():
    """Q4_K in, any form and type out, and back: what the blocks stand for is kept where it can be."""
    expect(tinygpt("train", "--data", text_file(), "--layers", "1", "--width", "256", "--heads", "4", "--ctx", "16",
                   "--batch", "2", "--steps", "3", "--out", "a.tinygpt", *SILENT), 0, "a run")
    r = tinygpt("convert", "a.tinygpt", "k.gguf", "--dtype", "q4_k", "--json")
    expect(r, 0, "as q4_k")
    equal(r.json()["finer"], 0, "rows that the blocks divide")
    check(r.json()["max_error"] > 1e-4, "it is rounded")
    expect(tinygpt("info", "k.gguf"), 0, "info", out="Q4_K")
    most = {"f32": 1e-5, "f16": 1e-2, "bf16": 0.05, "q8_0": 0.05, "q4_0": 1, "q4_k": 1e-5}
    for form, out in FORMS:
        for dtype, error in most.items():
            if form == "safetensors" and dtype[0] == "q":
                continue
            what = f"q4_k as {form} {dtype}"
            r = tinygpt("convert", "k.gguf", out, "--format", form, "--dtype", dtype, "--json")
            expect(r, 0, what)
            j = r.json()
            low = 1e-6 if dtype in ("bf16", "q8_0", "q4_0") else 0
            check(low <= j["max_error"] <= error and j["texts_same"] == j["texts"], what, str(j))
            check(j["positions"] == 256 and 0 <= j["mean_kl"] < error and j["finer"] == 0, what, str(j))
            expect(tinygpt("sample", out, "--prompt", "ab", "--tokens", "3"), 0, f"{what} writes")
            r = tinygpt("convert", out, "back.gguf", "--dtype", "q4_k", "--json")
            expect(r, 0, f"{what} and back")
            check(r.json()["max_error"] < 1 and (dtype != "q4_k" or read("back.gguf") == read("k.gguf")),
                  f"{what} and back", str(r.json()))
        if form == "safetensors":
            expect(tinygpt("convert", "k.gguf", "no", "--format", form, "--dtype", "q4_k"), 2, "no blocks there",
                   err="want f32, f16 or bf16, have Q4_K")


def types_of(path):
    return {t["name"]: t["type"] for t in tinygpt("info", path, "--json").json()["tensors"] if t["rows"] > 1}


def mixtures():
    """As llama.cpp mixes (its src/llama-quant.cpp): of nine layers 0, 3, 6, 7 and 8 have values and the
    MLP's way down in Q6_K, as are the weights that logits are made of."""
    run = ("train", "--data", text_file(), "--layers", "9", "--width", "256", "--ctx", "16", "--batch", "2",
           "--steps", "1", *SILENT)
    expect(tinygpt(*run, "--heads", "4", "--out", "own.tinygpt"), 0, "of tinygpt's own")
    expect(tinygpt(*run, "--family", "llama", "--heads", "4", "--kv-heads", "1", "--head-size", "64", "--mlp", "288",
                   "--out", "llama.tinygpt"), 0, "a Llama")
    # Nine of eighteen layers are MLPs, which llama.cpp counts among eighteen.
    expect(tinygpt("train", "--data", text_file(), "--family", "nemotron_h", "--layers", "18", "--width", "256",
                   "--heads", "4", "--mlp", "256", "--ctx", "16", "--batch", "2", "--steps", "1", *SILENT, "--out",
                   "nemotron.tinygpt"), 0, "layers that are an MLP")
    more = (0, 3, 6, 7, 8)
    for dtype, plain in ("q4_k_m", "Q4_K"), ("q5_k_m", "Q5_K"):
        expect(tinygpt("convert", "own.tinygpt", "o.gguf", "--dtype", dtype), 0, dtype)
        have = types_of("o.gguf")
        equal((have["token_embd.weight"], have["position_embd.weight"]), ("Q6_K", "F32"), f"{dtype}: embeddings")
        for n in range(9):
            finer = "Q6_K" if n in more else plain
            for kind, want in (("attn_qkv", finer), ("attn_output", plain), ("ffn_up", plain), ("ffn_down", finer)):
                equal(have[f"blk.{n}.{kind}.weight"], want, f"{dtype}: {kind} of layer {n}")
        # Rows of the way down are 288 long, which no block of 256 divides.
        shorter = {"Q4_K": "Q5_0", "Q5_K": "Q5_1"}[plain]
        r = tinygpt("convert", "llama.tinygpt", "l.gguf", "--dtype", dtype, "--json")
        expect(r, 0, f"a Llama as {dtype}")
        equal(r.json()["finer"], 9, "rows that its blocks do not divide")
        have = types_of("l.gguf")
        equal(have["token_embd.weight"], "Q6_K", f"{dtype}: embeddings that make logits, too")
        for n in range(9):
            for kind, want in (("attn_q", plain), ("attn_k", plain), ("attn_v", "Q6_K" if n in more else plain),
                               ("ffn_down", "Q8_0" if n in more else shorter), ("ffn_gate", plain)):
                equal(have[f"blk.{n}.{kind}.weight"], want, f"{dtype}: {kind} of layer {n}")
        expect(tinygpt("sample", "l.gguf", "--prompt", "ab", "--tokens", "3"), 0, f"{dtype} writes")
        expect(tinygpt("convert", "nemotron.tinygpt", "n.gguf", "--dtype", dtype), 0, f"layers that are an MLP as {dtype}")
        have = types_of("n.gguf")
        equal([have[f"blk.{2 * n + 1}.ffn_down.weight"] for n in range(9)],
              ["Q6_K" if n in (0, 1, 4, 7) else plain for n in range(9)], f"{dtype}: MLPs among other layers")
        expect(tinygpt("convert", lm("phi3"), "p.gguf", "--dtype", dtype), 0, f"Phi-3 as {dtype}")
        have = types_of("p.gguf")
        equal((have["token_embd.weight"], have["output.weight"]), (shorter, "Q8_0"), f"{dtype}: both ends")
        # Eight experts: keys and values in Q8_0, and the smaller mixture has a finer way out of attention.
        expect(tinygpt("convert", write("eight.gguf", Routed().bytes()), "e.gguf", "--dtype", dtype, "--force"), 0, f"eight as {dtype}")
        have = types_of("e.gguf")
        for kind, want in (("attn_q", shorter), ("attn_k", "Q8_0"), ("attn_v", "Q8_0"), ("attn_output", "Q5_1"),
                           ("ffn_up_exps", shorter), ("ffn_down_exps", "Q8_0")):
            equal(have[f"blk.0.{kind}.weight"], want, f"{dtype}: {kind} beside eight experts")
    errors = {}
    for dtype in "q4_0", "iq4_nl", "q5_0", "q5_k", "q6_k":
        r = tinygpt("convert", "own.tinygpt", "o.gguf", "--dtype", dtype, "--json")
        expect(r, 0, dtype)
        errors[dtype] = r.json()["max_error"]
    check(errors["q6_k"] < errors["q5_k"] < errors["q4_0"] and errors["q5_0"] < errors["q4_0"] and
          errors["iq4_nl"] < errors["q4_0"], "the finer the closer", str(errors))


class Routed(Gguf):
    """A Qwen3-MoE whose attention adds nothing: what each product reads follows from its token alone."""
    EXPERTS, USED = 8, 2

    def __init__(self):
        super().__init__(alphabet() + ["<s>"])
        draw = random.Random(2)
        self.values = {k.replace("llama.", "qwen3moe."): v for k, v in self.values.items()}
        self.string("general.architecture", "qwen3moe")
        self.bool("tokenizer.ggml.add_bos_token", False)
        for key, value in ("expert_count", self.EXPERTS), ("expert_used_count", self.USED), \
                ("expert_feed_forward_length", FF), ("attention.key_length", 16), ("attention.value_length", 16):
            self.number("qwen3moe." + key, value)
        for name in "gate", "up", "down":
            del self.tensors[f"blk.0.ffn_{name}.weight"]
        for name, *dims in (("attn_q_norm", 16), ("attn_k_norm", 16), ("ffn_gate_inp", WIDTH, self.EXPERTS),
                            ("ffn_gate_exps", WIDTH, FF, self.EXPERTS), ("ffn_up_exps", WIDTH, FF, self.EXPERTS),
                            ("ffn_down_exps", FF, WIDTH, self.EXPERTS)):
            rows = [draw.uniform(-0.3, 0.3) for _ in range(math.prod(dims))]
            self.tensors[f"blk.0.{name}.weight"] = [dims, 0, struct.pack(f"<{len(rows)}f", *rows), None]
        dims, kind, rows, offset = self.tensors["blk.0.attn_output.weight"]
        self.tensors["blk.0.attn_output.weight"] = [dims, kind, bytes(len(rows)), offset]

    def rows(self, name, cols):
        data = self.tensors[name + ".weight"][2]
        x = struct.unpack(f"<{len(data) // 4}f", data)
        return [x[i:i + cols] for i in range(0, len(x), cols)]

    def importance(self, ids):
        """Sums of squares and counts of each tensor's experts, as llama-imatrix writes them."""
        sums = {}

        def add(name, experts, e, x):
            s, n = sums.setdefault(f"blk.0.{name}.weight", ([0] * (len(x) * experts), [0] * experts))
            for i, v in enumerate(x):
                s[e * len(x) + i] += v * v
            n[e] += 1

        def normed(x, gain):
            return [v / math.sqrt(dot(x, x) / WIDTH + 1e-5) * g for v, g in zip(x, self.rows(gain, WIDTH)[0])]

        embd, gates, ups = self.rows("token_embd", WIDTH), self.rows("blk.0.ffn_gate_exps", WIDTH), \
            self.rows("blk.0.ffn_up_exps", WIDTH)
        for token in ids:
            for name in "attn_q", "attn_k", "attn_v":
                add(name, 1, 0, normed(embd[token], "blk.0.attn_norm"))
            x = normed(embd[token], "blk.0.ffn_norm")
            add("ffn_gate_inp", 1, 0, x)
            score = [dot(x, row) for row in self.rows("blk.0.ffn_gate_inp", WIDTH)]
            for e in sorted(range(self.EXPERTS), key=lambda e: -score[e])[:self.USED]:
                add("ffn_gate_exps", self.EXPERTS, e, x)
                add("ffn_up_exps", self.EXPERTS, e, x)
                gate, up = ([dot(x, row) for row in m[e * FF:(e + 1) * FF]] for m in (gates, ups))
                add("ffn_down_exps", self.EXPERTS, e, [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])
        sums["blk.0.attn_output.weight"] = [1] * WIDTH, [1]  # of zeros, which nothing changes
        return sums


class Imatrix(Gguf):
    """A file of llama-imatrix."""

    def __init__(self, sums):
        super().__init__()
        self.values, self.tensors = {}, {}
        self.string("general.type", "imatrix")
        self.number("imatrix.chunk_count", 20)
        for name, (s, n) in sums.items():
            self.tensors[name + ".in_sum2"] = [[len(s) // len(n), len(n)], 0, struct.pack(f"<{len(s)}f", *s), None]
            self.tensors[name + ".counts"] = [[1, len(n)], 0, struct.pack(f"<{len(n)}f", *n), None]


def calibrated():
    """What columns are multiplied with in a text, of each expert by its tokens, is what arithmetic of the
    test's own finds, and what a file of llama-imatrix says of it."""
    draw, routed = random.Random(3), Routed()
    ids = [ord(draw.choice("abc")) for _ in range(16 * 20)]
    write("text", "".join(map(chr, ids)) + "a")
    write("routed.gguf", routed.bytes())
    sums = routed.importance(ids)
    unused = [n for n in sums["blk.0.ffn_up_exps.weight"][1] if n == 0]
    check(0 < len(unused) < 7, "an expert that no token goes through", str(sums["blk.0.ffn_up_exps.weight"][1]))
    write("imatrix.gguf", Imatrix(sums).bytes())
    for dtype in "q4_0", "iq4_nl", "q5_0":
        as_type = ("--dtype", dtype, "--json", "--force")
        r = tinygpt("convert", "routed.gguf", "text.gguf", "--calibrate", "text", *as_type)
        expect(r, 0, f"{dtype} by a text")
        equal((r.json()["weighed"], r.json()["calibration_tokens"]), (7, 320), "seven matrices of the layer")
        r = tinygpt("convert", "routed.gguf", "file.gguf", "--imatrix", "imatrix.gguf", *as_type)
        expect(r, 0, f"{dtype} by a file")
        equal(r.json()["weighed"], 7, "as many")
        expect(tinygpt("verify", "text.gguf", "file.gguf"), 0, f"{dtype}: both are the same")
        expect(tinygpt("convert", "routed.gguf", "plain.gguf", *as_type), 0, f"{dtype} without")
        expect(tinygpt("verify", "text.gguf", "plain.gguf"), 1, f"{dtype}: which is something else")
        for threads in "1", "2":
            expect(tinygpt("convert", "routed.gguf", f"{threads}.gguf", "--calibrate", "text", *as_type,
                           "--threads", threads), 0, f"{dtype} by {threads} threads")
        equal(read("1.gguf"), read("2.gguf"), f"{dtype}: the same bytes for any number of threads")
    has = read("file.gguf")
    for key in b"file", b"entries_count", b"chunks_count":
        check(b"quantize.imatrix." + key in has, f"it says so: {key}")
    check(b"quantize.imatrix.dataset" in read("text.gguf"), "and on which text")
    expect(tinygpt("convert", "text.gguf", "again.gguf", "--dtype", "q4_0"), 0, "and on without")
    check(b"quantize.imatrix" not in read("again.gguf"), "which says nothing")

    expect(tinygpt("train", "--data", text_file(), "--layers", "1", "--width", "256", "--heads", "4", "--ctx", "16",
                   "--batch", "2", "--steps", "3", "--out", "a.tinygpt", *SILENT), 0, "a run")
    expect(tinygpt("convert", "a.tinygpt", "a.gguf"), 0, "and as a file")
    for source, out in ("a.tinygpt", "run.gguf"), ("a.gguf", "file.gguf"):
        r = tinygpt("convert", source, out, "--dtype", "q4_k", "--calibrate", "text", "--force", "--json")
        expect(r, 0, f"{source} as q4_k by a text")
        equal((r.json()["weighed"], r.json()["calibration_tokens"]), (4, 320), f"{source}: the layer's")
    expect(tinygpt("verify", "run.gguf", "file.gguf"), 0, "of floats in one array, and of tensors of a file")

    by_text = ("--calibrate", "text")
    sums["blk.0.attn_q.weight"][0].append(1.0)
    write("long.gguf", Imatrix(sums).bytes())
    sums["blk.0.attn_q.weight"] = ([math.nan] * WIDTH, [1])
    write("nan.gguf", Imatrix(sums).bytes())
    write("other.gguf", Imatrix({"blk.7.attn_q.weight": ([1.0] * WIDTH, [1])}).bytes())
    write("empty", "")
    for what, args, code, err in (
            ("a type without scales to choose", ("--dtype", "q8_0", *by_text), 2, "want --dtype of 4 to 6 bits"),
            ("a folder", ("--dtype", "q4_0", "--format", "safetensors", *by_text), 2, "have a folder"),
            ("both", ("--dtype", "q4_0", *by_text, "--imatrix", "imatrix.gguf"), 2, "want one of them"),
            ("no text", ("--dtype", "q4_0", "--calibrate", "none"), 2, "none"),
            ("an empty text", ("--dtype", "q4_0", "--calibrate", "empty"), 2, "empty"),
            ("a model", ("--dtype", "q4_0", "--imatrix", "routed.gguf"), 2, 'general.type: want "imatrix"'),
            ("another model's", ("--dtype", "q4_0", "--imatrix", "other.gguf"), 2, "other.gguf: want entries"),
            ("a longer row", ("--dtype", "q4_0", "--imatrix", "long.gguf"), 2, "blk.0.attn_q.weight.in_sum2: want 32"),
            ("no number", ("--dtype", "q4_0", "--imatrix", "nan.gguf"), 2, "importance of blk.0.attn_q.weight")):
        expect(tinygpt("convert", "routed.gguf", "x.gguf", *args), code, what, err=err)
        check(not os.path.exists("x.gguf"), f"{what}: nothing is written")
    expect(tinygpt("convert", lm("qwen2.gguf"), "x.gguf", "--dtype", "q4_0", *by_text), 2, "no tokenizer",
           err="has no tokenizer")
    expect(tinygpt("convert", lm("bert.zip"), "x.gguf", "--dtype", "q4_0", *by_text), 2, "an encoder",
           err="want a model that writes text")


def encoder_as(source, out, form, dtype, finer=0):
    """Reads back; the loss of a type shows in what is said and in the vectors themselves."""
    what = f"{os.path.basename(source)} as {form} {dtype}"
    r = tinygpt("convert", source, out, "--format", form, "--dtype", dtype, "--json")
    expect(r, 0, what)
    j = r.json()
    most = {"f32": 1e-5, "f16": 1e-3, "bf16": 1e-2, "q8_0": 1e-2, "q4_0": 0.1, "q4_k": 0.1}[dtype]
    check(j["vectors"] == 5 and j["max_error"] <= most and j["texts_same"] == j["texts"], what, str(j))
    check(1 - 20 * most <= j["min_cosine"] <= 1 + 1e-6 and (dtype[0] != "q" or j["max_error"] > 1e-5), what, str(j))
    told = [int(n or 1) for n in re.findall(r"[a-z] Q5_0(?: \((\d+)\))?", j["finer_ones"])]
    check(j["finer"] == finer == sum(told), what, str(j))
    a, b = (tinygpt("embed", p, "the cat", "--json").json()["vectors"][0] for p in (source, out))
    check(max(abs(x - y) for x, y in zip(a, b)) < 2 * most + 5e-3, f"{what}: the same vector")


def encoders():
    for form, out in FORMS:
        for dtype in "f32", "f16", "bf16", "q8_0", "q4_0", "q4_k":
            if form != "safetensors" or dtype[0] != "q":
                encoder_as(lm("bert.zip"), out, form, dtype, 13 if dtype == "q4_k" else 0)
    expect(tinygpt("convert", lm("bert.zip"), "x.gguf", "--dtype", "q8_0"), 0, "in words",
           out="read back +vectors of 5 texts: largest difference .*, cosine at least")
    expect(tinygpt("convert", lm("bert.zip"), "no", "--format", "safetensors", "--dtype", "q4_0"), 2,
           "no blocks there", err="want f32, f16 or bf16, have Q4_0")


def real_ones():
    """Gemma's Q4_K_M and MiniLM once; all of their matrix is slow, and is that of superblocks and encoders."""
    gemma = have_model("gemma-3-270m-q4_k_m.gguf")
    r = tinygpt("convert", gemma, "g.tinygpt", "--dtype", "q4_k_m", "--json")
    expect(r, 0, "Gemma as llama.cpp mixes")
    equal((r.json()["max_error"], types_of("g.tinygpt")), (0, types_of(gemma)), "each matrix has the type it had")
    r = tinygpt("convert", gemma, "g.tinygpt", "--dtype", "q4_k", "--json")
    expect(r, 0, "Gemma as .tinygpt")
    j = r.json()
    check(j["finer"] > 0 and "Q5_0" in j["finer_ones"] and j["positions"] == 256 and 0 < j["mean_kl"] < 0.1 and
          j["same_best"] > 0.8, "Gemma as .tinygpt", str(j))
    expect(tinygpt("sample", "g.tinygpt", "--prompt", "The capital", "--tokens", "3"), 0, "it writes")
    encoder_as(MINILM, "m.gguf", "gguf", "q4_k", 31)
    encoder_as("m.gguf", "m.folder", "safetensors", "f32")


def what_they_are():
    expect(tinygpt("info", lm("llama")), 0, "info of a folder",
           out=["safetensors, .* in 2 files", "model +llama, layers 2"])
    expect(tinygpt("info", lm("qwen2-split-00001-of-00004.gguf")), 0, "info of a split model",
           out="GGUF v3, .* in 4 files")
    expect(tinygpt("info", lm("mlx4"), "--json"), 0, "info of MLX", out='"type":"MLX4"')
    expect(tinygpt("tokenize", lm("bert.zip"), "the cats", "--ends", "--json"), 0, "tokens of a zip",
           out=r'"ids":\[2,')
    shutil.copytree(lm("qwen3"), "copy")
    config = read("copy/config.json").replace(b'"qwen3"', b'"gemma4"')
    write("copy/config.json", config)
    named = Gguf()
    for name, says in ("x" * 119 + "\u00e9t\u00e9", r"x{119} \.\.\.\n"), ("\u00e9" * 60, "\u00e9{60}\n"), ("a\x1b[2Jb", r"a \[2Jb\n"):
        named.string("general.name", name)
        expect(tinygpt("info", write("named.gguf", named.bytes())), 0, "a long name, cut between characters", out=says)
    expect(tinygpt("info", "copy"), 2, "another architecture", err="want one of gpt2 llama.*have gemma4")


main(embeddings, runs_and_models, runs_to_any_type, minilm, to_gguf, every_type, to_tinygpt, pack_cache,
     makers_sampling, damaged, own_to_gguf, to_folders, short_windows, folders_with_tokenizers, superblocks, mixtures, calibrated, encoders, real_ones, what_they_are)
