#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_model_keys.py - keys of third-party models: what changes the answers is computed or refused by
its name, what changes nothing is taken, in GGUF's metadata and in config.json alike.
"""
import json
import math
import os
import shutil
import struct
import zipfile

from gguf_file import ARRAY, BOOL, STRING, U32, Gguf, alphabet, array, text
from util import TOP, check, equal, expect, main, refused, tinygpt, write

GOLDEN = os.path.join(TOP, "test", "golden", "lm")
TEXT = "abcabdabeabf" * 3


def loss(path):
    write("text", TEXT)
    r = tinygpt("eval", path, "--data", "text", "--json")
    return r.json()["loss"] if r.code == 0 else r.errors


def gguf(name, change):
    g = Gguf(alphabet() + ["<s>"])
    change(g)
    return write(name, g.bytes())


def scaling_of_positions():
    """llama.cpp takes a factor as linear where no type is named, under the older key, too."""
    plain = loss(gguf("plain.gguf", lambda g: None))
    def linear(g):
        g.string("llama.rope.scaling.type", "linear")
        g.float("llama.rope.scaling.factor", 4)
    want = loss(gguf("linear.gguf", linear))
    check(isinstance(want, float) and abs(want - plain) > 1e-4, "a factor shows", f"{plain} {want}")
    equal(loss(gguf("bare.gguf", lambda g: g.float("llama.rope.scaling.factor", 4))), want,
          "a factor without a type")
    equal(loss(gguf("older.gguf", lambda g: g.float("llama.rope.scale_linear", 4))), want,
          "the factor's older key")
    def none(g):
        linear(g)
        g.string("llama.rope.scaling.type", "none")
    equal(loss(gguf("none.gguf", none)), plain, "a factor with the type none")
    equal(loss(gguf("zero.gguf", lambda g: g.float("llama.rope.scaling.factor", 0))), plain,
          "a factor of 0")
    gguf("minus.gguf", lambda g: g.float("llama.rope.scaling.factor", -2))
    refused("a negative factor", "info", "minus.gguf", err="rope.scaling.factor: want 0 or more")
    gguf("yarn.gguf", lambda g: g.string("llama.rope.scaling.type", "yarn"))
    refused("YaRN without a factor", "info", "yarn.gguf", err="want a factor above 1")
    gguf("other.gguf", lambda g: g.string("llama.rope.scaling.type", "su"))
    refused("a scaling that is not known", "info", "other.gguf", err="want none, linear, yarn or longrope")
    for name in "bare", "older":
        expect(tinygpt("convert", f"{name}.gguf", f"{name}.d", "--format", "safetensors"), 0,
               f"{name} as a folder")
        equal(loss(f"{name}.d"), want, f"{name} as a folder has the factor, too")


def metadata():
    """Keys of the architecture that nobody reads."""
    def one(what, change, *err):
        path = gguf("x.gguf", change)
        if err:
            refused(what, "info", path, err=("x.gguf",) + err)
        else:
            expect(tinygpt("info", path), 0, what)
    p = "llama."
    one("a key that is not known", lambda g: g.number(p + "twist", 2), "llama.twist", "have this one as 2")
    one("a text", lambda g: g.string(p + "twist", "left"), "llama.twist", "'left'")
    one("a list", lambda g: g.values.update({p + "twist": (ARRAY, array(U32, [1]))}), "a list")
    one("a key of another architecture", lambda g: g.number("mamba.twist", 2))
    one("a key that only begins so", lambda g: g.number("llamas.twist", 2))
    for key, good, bad in (("attention.causal", 1, 0), ("use_parallel_residual", 0, 1)):
        one(f"{key} {good}", lambda g: g.bool(p + key, good))
        one(f"{key} {bad}", lambda g: g.bool(p + key, bad), key)
    for key, good, bad in (("expert_count", 0, 8), ("nextn_predict_layers", 0, 1)):
        one(f"{key} {good}", lambda g: g.number(p + key, good))
        one(f"{key} {bad}", lambda g: g.number(p + key, bad), key)
    for key, good, bad in (("logit_scale", 1, .5), ("embedding_scale", 1, 12), ("final_logit_softcapping", 0, 30),
                           ("attn_logit_softcapping", 0, 50), ("rope.scaling.attn_factor", 1, 2),
                           ("attention.clamp_kqv", 0, 8)):
        one(f"{key} {good}", lambda g: g.float(p + key, good))
        one(f"{key} {bad}", lambda g: g.float(p + key, bad), key)
    for window in 0, 15, 16, 4096:
        one(f"a window of {window}", lambda g: g.number(p + "attention.sliding_window", window))
    one("a word of 2023", lambda g: g.string(p + "tensor_data_layout", "Meta AI original pth"))
    for kind, name in (15, "Q8_K"), (31, "Q4_0_4_4"), (36, "IQ4_NL_4_4"), (40, "NVFP4"), (77, "one that is not known"):
        one(f"type {kind}", lambda g: g.tensors["blk.0.attn_q.weight"].__setitem__(1, kind),
            "blk.0.attn_q.weight", f"have {name}, type {kind}")
    one("a row beyond 2^62", lambda g: g.tensors["blk.0.attn_q.weight"].__setitem__(0, [1 << 62]),
        "a size in bytes that fits 64 bits")


def folder(source, name, edit=lambda c: None):
    """A copy of a golden folder or zip file with another config.json."""
    shutil.rmtree(name, ignore_errors=True)
    path = os.path.join(GOLDEN, source)
    if source.endswith(".zip"):
        with zipfile.ZipFile(path) as z:
            z.extractall(name)
        inside = [d for d, _, files in os.walk(name) if "config.json" in files and "1_Pooling" not in d]
        name = inside[0]
    else:
        shutil.copytree(path, name)
    config = os.path.join(name, "config.json")
    with open(config, encoding="utf-8") as f:
        c = json.load(f)
    edit(c)
    write(config, json.dumps(c))
    return name


def golden_gguf(name, source, key, kind, data):
    """A golden file with one value more; a text behind it keeps the tensors where they are aligned."""
    with open(os.path.join(GOLDEN, source), "rb") as f:
        b = f.read()
    tensors, values = struct.unpack_from("<QQ", b, 8)
    more = text(key) + struct.pack("<I", kind) + data
    fill = text("general.fill") + struct.pack("<I", STRING)
    more += fill + text("x" * (-(len(more) + len(fill) + 8) % 32))
    return write(name, b[:8] + struct.pack("<QQ", tensors, values + 2) + more + b[24:])


def llama_cpp():
    """What its converters write of some families."""
    def number(x):
        return struct.pack("<I", x)
    shared = "granitehybrid.expert_shared_feed_forward_length"
    expect(tinygpt("info", golden_gguf("x.gguf", "granite.gguf", shared, U32, number(48))), 0, "the MLP's size twice")
    refused("another size", "info", golden_gguf("x.gguf", "granite.gguf", shared, U32, number(64)),
            err=("x.gguf", shared, "48, have 64"))
    pattern = "olmo2.attention.sliding_window_pattern"
    for layers, says in ((1, 1, 1, 0), "all layers but one of 4"), ((1, 0, 1, 0), "all layers but one of 2"):
        bools = struct.pack("<IQ4B", BOOL, 4, *layers)
        path = golden_gguf("x.gguf", "olmo3.gguf", pattern, ARRAY, bools)
        expect(tinygpt("info", path), 0, "windows as bools", out=says)
        expect(tinygpt("convert", path, "x.d", "--format", "safetensors", "--force"), 0, "as a folder")
        expect(tinygpt("info", "x.d"), 0, "windows of the folder", out=says)
    bools = struct.pack("<IQ4B", BOOL, 4, 1, 0, 0, 1)
    refused("no rhythm", "info", golden_gguf("x.gguf", "olmo3.gguf", pattern, ARRAY, bools), err=(pattern, "rhythm"))
    for n in 0, 3, 5:
        bools = struct.pack(f"<IQ{n}B", BOOL, n, *[1] * n)
        refused("another number of layers", "info", golden_gguf("x.gguf", "olmo3.gguf", pattern, ARRAY, bools),
                err=(pattern, f"want one for each of 4 layers, have {n}"))
    with open(os.path.join(GOLDEN, "gemma2.gguf"), "rb") as f:
        b = f.read()
    write("x.gguf", b.replace(b"gemma2.attention.sliding_window", b"gemmas.attention.sliding_window"))
    expect(tinygpt("info", "x.gguf"), 0, "a window that is not named", out="window +4096, in all layers but one of 2")
    expect(tinygpt("info", os.path.join(GOLDEN, "gemma4.gguf")), 0, "layers that are unlike",
           out=["in all layers but one of 2, with heads of 8\n", "shared +keys and values, in the last 2 layers, of mlp 48\n"])
    path = golden_gguf("x.gguf", "gemma2.gguf", "gemma2.attention.sliding_window_pattern", U32, number(3))
    expect(tinygpt("info", path), 0, "another rhythm", out="all layers but one of 3")


def tensors_of(path):
    """name -> (entry of the head, bytes) of a .safetensors file."""
    with open(path, "rb") as f:
        b = f.read()
    n = struct.unpack_from("<Q", b)[0]
    head = json.loads(b[8:8 + n])
    head.pop("__metadata__", None)
    return {k: (v, b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in head.items()}


def write_tensors(path, tensors):
    head, data = {}, b""
    for name, (entry, bytes_of) in tensors.items():
        head[name] = dict(entry, data_offsets=[len(data), len(data) + len(bytes_of)])
        data += bytes_of
    text_of = json.dumps(head).encode()
    write(path, struct.pack("<Q", len(text_of)) + text_of + data)


def experts():
    """Routed experts: one that is missing, or too many; and gates beside values, as they are in memory."""
    source = os.path.join(GOLDEN, "qwen3moe")
    whole = tensors_of(os.path.join(source, "model.safetensors"))
    def folder_of(name, tensors):
        shutil.copytree(source, name)
        os.remove(os.path.join(name, "model.safetensors"))
        write_tensors(os.path.join(name, "model.safetensors"), tensors)
        return name
    lost = "model.layers.1.mlp.experts.3.up_proj.weight"
    refused("an expert is missing", "info", folder_of("lost", {k: v for k, v in whole.items() if k != lost}),
            err=("lost", "blk.1.ffn_up_exps.weight", "want all 5 experts, expert 3 is missing"))
    more = whole | {lost.replace(".3.", ".5."): whole[lost]}
    refused("a sixth of five", "info", folder_of("more", more), err=("experts.5.up_proj", "one of 5 experts"))
    fused = {k: v for k, v in whole.items() if ".experts." not in k}
    for room in "model.layers.0.mlp.experts.", "model.layers.1.mlp.experts.":
        def stack(*kinds):
            parts = [whole[f"{room}{e}.{kind}_proj.weight"] for e in range(5) for kind in kinds]
            rows, cols = parts[0][0]["shape"]
            return ({"dtype": parts[0][0]["dtype"], "shape": [5, rows * len(kinds), cols]},
                    b"".join(data for _, data in parts))
        fused[room + "gate_up_proj"] = stack("gate", "up")
        fused[room + "down_proj"] = stack("down")
    for name, path in ("one", source), ("fused", folder_of("side", fused)):
        expect(tinygpt("convert", path, name + ".gguf", "--dtype", "f16"), 0, f"{name} as GGUF")
    with open("one.gguf", "rb") as one, open("fused.gguf", "rb") as other:
        check(one.read() == other.read(), "gates beside values are the same model", "other bytes")
    with open(os.path.join(GOLDEN, "qwen3moe.gguf"), "rb") as f:
        b = f.read()
    write("x.gguf", b.replace(b"blk.1.ffn_up_exps.weight", b"blk.1.ffn_up_expz.weight"))
    refused("GGUF without a matrix", "info", "x.gguf", err=("blk.1.ffn_up_exps.weight: missing",))
    expect(tinygpt("info", os.path.join(GOLDEN, "qwen3moe.gguf")), 0, "info", out="5 in a layer, 2 of them")


def config_json():
    def one(what, source, change, *err):
        def edit(c):
            c.update(change)
        path = folder(source, "m", edit)
        if err:
            refused(what, "info", path, err=("config.json",) + err)
        else:
            expect(tinygpt("info", path), 0, what)
    one("a key that is not known", "llama", {"twist": 2}, "twist", "have this one as 2")
    one("an object", "llama", {"twist": {"a": 1}}, "twist", "an object")
    one("a key that is not known, off", "llama", {"twist": None})
    one("what transformers writes", "llama", {"partial_rotary_factor": 1.0, "attention_dropout": 0.1,
                                             "_name_or_path": "x", "pretraining_tp": 2, "temperature": 0.6})
    one("biases of attention that are none", "llama", {"attention_bias": True}, "attention_bias: want biases")
    one("half a head", "llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor: want 1, have 0.5")
    one("biases of the MLP", "llama", {"mlp_bias": True}, "mlp_bias")
    one("biases of the MLP, 0", "llama", {"mlp_bias": 0})
    one("SmolLM2's", "llama", {"is_llama_config": True, "rope_interleaved": False,
                               "transformers.js_config": {"dtype": "q4"}})
    one("interleaved", "llama", {"rope_interleaved": True}, "rope_interleaved")
    one("scaled logits", "llama", {"logits_scaling": 8.0}, "logits_scaling")
    one("logits that are not scaled", "llama", {"logits_scaling": 1.0})
    one("experts", "llama", {"num_local_experts": 8}, "num_local_experts")
    one("Qwen's windows, switched off", "qwen2", {"sliding_window": 64, "max_window_layers": 1})
    one("Qwen's windows, switched on", "qwen2", {"use_sliding_window": True, "sliding_window": 64},
        "use_sliding_window")
    one("a layer with a window", "qwen3", {"layer_types": ["full_attention", "sliding_attention"]},
        "layer_types: want full_attention")
    rope = {"rope_theta": 1e4, "rope_type": "linear", "factor": 2.0}
    one("linear", "llama", {"rope_parameters": rope})
    one("another rule's key", "llama", {"rope_parameters": dict(rope, beta_fast=32)}, "rope", "beta_fast")
    one("a factor without a type", "llama", {"rope_parameters": None, "rope_scaling": {"factor": 4.0}},
        "rope", "factor")
    one("both forms of it", "llama", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}, "rope_scaling")
    one("activation", "gpt2", {"activation_function": "relu"}, "want gelu_new or gelu_pytorch_tanh or gelu, have relu")
    one("layers that are scaled", "gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx")
    one("scores that are not scaled", "gpt2", {"scale_attn_weights": False}, "scale_attn_weights")
    one("norms of states that are none", "falcon", {"mamba_rms_norm": True, "mamba_norm_before_gate": False},
        "mamba_rms_norm: want true and norms of states, or neither, have no norms")
    one("norms of states that nobody wants", "falcon_norm", {"mamba_rms_norm": False}, "have norms alone")
    one("a decoder", "bert.zip", {"is_decoder": True}, "is_decoder")
    one("relative positions", "bert.zip", {"position_embedding_type": "relative_key"}, "position_embedding_type")


def own_family():
    """A GPT-2 of bytes as we write it, which another reader opens."""
    def one(what, change, *err):
        shutil.rmtree("own", ignore_errors=True)
        shutil.copytree(os.path.join(TOP, "test", "golden", "transformers"), "own")
        with open("own/config.json", encoding="utf-8") as f:
            c = json.load(f)
        c.update(change)
        write("own/config.json", json.dumps(c))
        if err:
            refused(what, "info", "own/model.safetensors", err=("own/config.json",) + err)
        else:
            expect(tinygpt("info", "own/model.safetensors"), 0, what)
    one("as it is", {})
    one("with what transformers adds", {"summary_type": "cls_index", "temperature": 0.7, "_name_or_path": "x"})
    one("a key that is not known", {"twist": [1]}, "twist", "a list")
    one("a head of its own", {"tie_word_embeddings": False}, "tie_word_embeddings")


def gemma3():
    """As its makers ship it: the rhythm of the windows is a number, and the older keys of positions."""
    def shipped(c):
        for key in "layer_types", "_sliding_window_pattern", "rope_parameters":
            del c[key]
        c.update(sliding_window_pattern=6, rope_theta=1000000, rope_local_base_freq=10000,
                 rope_scaling=None, cache_implementation="hybrid")
    def told(path):
        r = tinygpt("info", path)
        return [line for line in r.text.splitlines() if line.startswith(("model", "window"))] or r.errors
    want = told(folder("gemma3.zip", "golden"))
    equal(told(folder("gemma3.zip", "shipped", shipped)), want, "the 1B model's config.json")
    def third(c):
        shipped(c)
        c["sliding_window_pattern"] = 3
    check("one of 3" in str(told(folder("gemma3.zip", "third", third))), "another rhythm")
    expect(tinygpt("convert", folder("gemma3.zip", "third", third), "third.gguf", "--dtype", "f32"), 0,
           "another rhythm as GGUF")
    check("one of 3" in str(told("third.gguf")), "another rhythm in GGUF")
    expect(tinygpt("convert", "third.gguf", "back", "--format", "safetensors"), 0, "and back")
    check("one of 3" in str(told("back")), "another rhythm in the folder again")
    def list_of(*types):
        def edit(c):
            c["layer_types"] = types
        return edit
    w, f = "sliding_attention", "full_attention"
    check("one of 2" in str(told(folder("gemma3.zip", "list", list_of(w, f, w, f, w, f)))), "a list of every second")
    refused("a list without a rhythm", "info", folder("gemma3.zip", "list", list_of(w, f, f, f, w, f)),
            err="layer_types: want one layer of every 2 without a window, have full_attention as number 3")


def llama3_factors():
    """A GGUF file has what comes out of Llama 3's rule; config.json gets the rule again."""
    def factors(factor, original, base=5e5, head=16, low=1.0, high=4.0):
        out = []
        for i in range(head // 2):
            freq = base ** (-2 * i / head)
            turns = original * freq / (2 * math.pi)
            blend = (turns - low) / (high - low)
            out.append(1.0 if turns > high else factor if turns < low else 1 / ((1 - blend) / factor + blend))
        return struct.pack(f"<{head // 2}f", *out)
    def stretched(data):
        def change(g):
            g.float("llama.rope.freq_base", 5e5)
            g.tensors["rope_freqs.weight"] = [[8], 0, data, None]
        return change
    for factor, original in (8, 8192), (32, 8192), (8, 32):
        gguf("l.gguf", stretched(factors(factor, original)))
        shutil.rmtree("l", ignore_errors=True)
        expect(tinygpt("convert", "l.gguf", "l", "--format", "safetensors"), 0, f"factor {factor} as a folder")
        with open("l/config.json", encoding="utf-8") as f:
            rule = json.load(f)["rope_scaling"]
        equal({k: rule[k] for k in ("rope_type", "factor", "low_freq_factor", "high_freq_factor")},
              {"rope_type": "llama3", "factor": factor, "low_freq_factor": 1, "high_freq_factor": 4}, "its rule")
        if original == 8192:
            equal(rule["original_max_position_embeddings"], original, "its positions")
        equal(loss("l"), loss("l.gguf"), f"factor {factor}: the same answers")
    wrong = bytearray(factors(8, 8192))
    wrong[21] ^= 1
    gguf("w.gguf", stretched(bytes(wrong)))
    refused("factors of no rule", "convert", "w.gguf", "w", "--format", "safetensors",
            err=("rope_freqs.weight", "a rule of Llama 3"))


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0123456789abcdef" * 4 + "\nsize 4976698672\n"


def what_is_no_model():
    """Folders and files that hold something else say what it is."""
    for name in "model.safetensors", "config.json":
        write(os.path.join(folder("llama3", "m"), name), LFS)
        refused(f"a pointer as {name}", "info", "m", err=(f"m/{name}", "a pointer of git LFS", "git lfs pull"))
    write("p.gguf", LFS)
    refused("a pointer as GGUF", "info", "p.gguf", err=("p.gguf", "a pointer of git LFS"))
    refused("a pointer as a tokenizer", "tokenize", "p.gguf", "a", err="a pointer of git LFS")
    write("t.txt", LFS)
    refused("a pointer as a text", "train", "--data", "t.txt", "--no-save", err=("t.txt", "a pointer of git LFS"))
    refused("questions without an end", "eval", os.path.join(GOLDEN, "gpt2"), "--suite", "/dev/zero", err="have a device")
    for command in (("train", "--data", "t.txt"), ("corpus", "stories"), ("tokenize", "--train", "t.txt", "--kind", "chars")):
        refused(f"{command[0]} to -", *command, "--out", "-", err="--out: want the name of a file, have -, which is standard output")
    gpt2 = os.path.join(GOLDEN, "gpt2")
    refused("a conversation to -", "chat", gpt2, "--session", "-", err="--session: want the name of a file, have -")
    refused("a model to -", "convert", gpt2, "-", err="OUT: want the name of a file, have -")
    refused("a pointer as questions", "eval", os.path.join(GOLDEN, "gpt2"), "--suite", "t.txt", err=("t.txt", "a pointer of git LFS"))
    for name in "model.safetensors", "tokenizer.json":
        path = folder("tune_llama.zip", "m")
        write(os.path.join(path, name), LFS)
        with zipfile.ZipFile("m.zip", "w") as z:
            for member in os.listdir(path):
                z.write(os.path.join(path, member), member)
        refused(f"a pointer as {name} in a zip file", "sample", "m.zip", "--prompt", "a", err=(f"m.zip/{name}", "a pointer of git LFS"))
        write(os.path.join(path, name), "{x")
        if name == "tokenizer.json":
            refused("a broken tokenizer.json", "sample", path, "--prompt", "a", err=f"{path}/tokenizer.json: byte 1")
    for name, what in (("pytorch_model.bin", "a pickle"), ("adapter_config.json", "an adapter"),
                       ("tf_model.h5", "TensorFlow"), ("pytorch_model.bin.index.json", "pickles")):
        path = folder("llama3", "m")
        os.remove("m/model.safetensors")
        write(f"m/{name}", "{}")
        refused(f"a folder of {name}", "info", "m", err=(name, what))
        os.remove("m/config.json")
        refused(f"a folder of {name} alone", "info", "m", err=(name, what))


def header(path, change):
    """The JSON in front of a file of safetensors, changed."""
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        head, data = json.loads(f.read(n)), f.read()
    text = change(head)
    text = json.dumps(head if text is None else text).encode() if not isinstance(text, bytes) else text
    write(path, struct.pack("<Q", len(text)) + text + data)


def told(path):
    r = tinygpt("info", path, "--json")
    if r.code:
        return r.errors
    tensors = [{k: v for k, v in t.items() if k != "offset"} for t in r.json()["tensors"]]
    return {k: v for k, v in r.json().items() if k not in ("file", "bytes")} | {"tensors": tensors}


def shared_tensors():
    """safetensors' save_model stores what two parts share under one name, and notes the other."""
    source = folder("llama3", "whole")
    want = told(source)
    def renamed(note):
        def change(head):
            head["lm_head.weight"] = head.pop("model.embed_tokens.weight")
            head["__metadata__"] = {"format": "pt", **note}
        return change
    for note in {"model.embed_tokens.weight": "lm_head.weight"}, {}:
        header(os.path.join(folder("llama3", "m"), "model.safetensors"), renamed(note))
        equal(told("m"), want, f"the head alone, with the note {note}")
    def untie(c):
        c["tie_word_embeddings"] = False
    header(os.path.join(folder("llama3", "m", untie), "model.safetensors"),
           renamed({"model.embed_tokens.weight": "lm_head.weight"}))
    check("tensors" in str(told("m")) and "output.weight" in str(told("m")), "both, where they are not tied")
    header(os.path.join(folder("llama3", "m", untie), "model.safetensors"), renamed({}))
    refused("no embedding", "info", "m", err="token_embd.weight")


def messages():
    def zero(head):
        return json.dumps(head).replace('"F16"', '"F16\\u0000"', 1).encode()
    header(os.path.join(folder("llama3", "m"), "model.safetensors"), zero)
    refused("a zero in a type", "info", "m", err="have F16\\0")
    path = folder("llama3", "m", lambda c: c.update(hidden_act="silu\0"))
    refused("a zero in an activation", "info", path, err="have silu\\0")
    gguf("g.gguf", lambda g: None)
    expect(tinygpt("convert", "g.gguf", "t", "--format", "safetensors"), 0, "a folder with a tokenizer")
    with open("t/tokenizer.json", encoding="utf-8") as f:
        t = json.load(f)
    t["model"]["merges"] = [["a", "bc"]]
    write("t/tokenizer.json", json.dumps(t))
    refused("a merge of what there is not", "sample", "t", "--prompt", "a", err=("t: ", "merge 0"))
    refused("the same of the file alone", "tokenize", "t/tokenizer.json", "a", err=("t/tokenizer.json", "merge 0"))


main(own_family, what_is_no_model, shared_tensors, messages, scaling_of_positions, metadata, llama_cpp, experts,
     config_json, gemma3, llama3_factors)
