#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_levers.py - dump, bench, doctor and corpus: what the program says about itself.

Levers are compared by what they promise: a plan that differs with each of them off, the same bits
in the file where keeps_bits says so, and a ledger that lists them all.
"""
import functools
import hashlib
import json
import os
import re
import subprocess

from util import (SILENT, TINY, TOP, check, equal, expect, finish, isas, levers, main, note, read,
                  same_run, start, text_file, tinygpt, train, write)

LLAMA = os.path.join(TOP, "test", "golden", "lm", "llama.gguf")

# These are of a GPU, whose backend compiles plans as they are.
GPU_ONLY = {"subgroups", "vec4_loads", "tuned_tiles", "static_bindings", "readback_pipelining", "single_dispatch",
            "fused_decode", "f16_storage", "subgroup_matrices"}
# The first two decide who computes and where memory comes from, not what is computed: no plan tells.
# The third one is of third-party model files, which are not trained.
NOT_IN_PLANS = {"threads", "huge_pages", "int8_activations"} | GPU_ONLY
# What this CPU has nothing for changes no plan either.
with open("/proc/cpuinfo", encoding="utf-8") as cpu:
    if "avx512_bf16" not in cpu.read():
        NOT_IN_PLANS.add("bf16")
PLANS = ("train", "eval", "decode", "prefill")


def dump(*args):
    r = tinygpt("dump", *args)
    expect(r, 0, f"dump {' '.join(args)}")
    return r.text


def switched(lever, default_on):
    return f"{'-' if default_on else '+'}{lever}"


@functools.cache
def ledger():
    """The levers as bench sees them, measured as shortly as it can be."""
    r = tinygpt("bench", "levers", "--preset", "tiny", "--pairs", "15", "--steps", "1", "--json")
    expect(r, 0, "bench levers")
    return r.json()


# -------------------------------------------------------------------------------------------- dump


def plans():
    """Stable across runs and threads, and different with every lever that shapes a plan."""
    default = dump("--preset", "tiny")
    equal(dump("--preset", "tiny"), default, "dump is the same every time")
    equal(dump("--preset", "tiny", "--threads", "1"), default, "dump does not depend on threads")
    check(dump("--preset", "small") != default, "another preset, another plan")
    check(dump("--preset", "tiny", "--batch", "3") != default, "another batch, another plan")
    for plan in PLANS:
        one = dump("--preset", "tiny", "--plan", plan)
        check(one in default and len(one) > 1000, f"dump --plan {plan} is its part of the whole")
        check(re.search(r"^#0 .*/", one, re.M), f"steps of plan {plan} have numbers and kernels")
    equal(set(tinygpt("dump", "--preset", "tiny", "--json").json()), set(PLANS), "dump --json")
    names = levers()
    check(len(names) >= 9, "levers are listed", str(names))
    seen = {}
    for lever in names:
        off, on = (dump("--preset", "tiny", "--levers", sign + lever) for sign in "-+")
        check(default in (off, on), f"{lever} is on or off by default")
        check((off != on) == (lever not in NOT_IN_PLANS), f"{lever} off changes the plan")
        if lever not in NOT_IN_PLANS:
            changed = off if on == default else on
            check(changed not in seen, f"{lever} changes what no other lever does")
            seen[changed] = lever
    both = dump("--preset", "tiny", "--levers", "-flash_attention,-recompute")
    check(both not in (default, *seen), "two levers off at once")
    for isa in isas():
        dump("--preset", "tiny", "--isa", isa)
    expect(train("--steps", "1", "--out", "a.tinygpt"), 0, "a model")
    check("16,16,16]" in dump("a.tinygpt", "--plan", "train"), "dump of a file has its sizes")


def types_of_weights():
    """Of a model file: sessions alone, whose weights have types and layouts."""
    whole = dump(LLAMA)
    equal(re.findall("^# (.*)", whole, re.M), ["decode", "prefill"], "plans of a model file")
    check("state blk.0.attn_q.weight f16[32,32] f16x16 2048 bytes" in whole, "packed: its rows turn")
    check("state blk.0.attn_output.weight f16[32,32] 2048 bytes" in whole, "where the file has it")
    check("f16[32,32] f16x16@blk.0.attn_q.weight+0" in whole, "a step reads it as that")
    expect(tinygpt("dump", LLAMA, "--plan", "train"), 2, "a plan that it does not have",
           err="want decode or prefill, have 'train'")


def levers_keep_their_promise():
    """A lever that keeps the bits gives the same file; any other one gives a near loss."""
    rows = {row["lever"]: row for row in ledger()["rows"]}
    options = ("--steps", "15", "--eval-every", "5", "--layers", "2", "--width", "24", "--heads",
               "3", "--ctx", "24", "--batch", "5", *SILENT, "--data", text_file())
    expect(tinygpt("train", *options, "--out", "default.tinygpt"), 0, "train as it is")
    loss = tinygpt("info", "default.tinygpt", "--json").json()["final_loss"]["train"]
    for lever in levers():
        out = f"{lever}.tinygpt"
        how = switched(lever, rows[lever]["default_on"])
        expect(tinygpt("train", *options, "--levers", how, "--out", out), 0, f"train with {how}")
        if rows[lever]["keeps_bits"]:
            same_run("default.tinygpt", out, how)
        else:
            other = tinygpt("info", out, "--json").json()["final_loss"]["train"]
            limit = 2e-3 if lever == "bf16" else 1e-5
            check(abs(other - loss) < limit * loss, f"{how} keeps the loss", f"{loss} and {other}")
        expect(tinygpt("sample", "default.tinygpt", "--tokens", "30", "--levers", how), 0,
               f"sample with {how}")


# ------------------------------------------------------------------------------------------- bench


def bf16_learns_as_well():
    """200 steps of small with operands rounded to bf16 end within 1 % of where f32 ends."""
    losses = {}
    for name, options in (("f32", ()), ("bf16", ("--levers", "+bf16"))):
        r = tinygpt("train", "--data", text_file(), "--preset", "small", "--steps", "200",
                    "--eval-every", "0", "--no-save", "--json", *SILENT, *options)
        expect(r, 0, f"200 steps of small in {name}")
        losses[name] = r.json_lines()[-1]["loss"]
    f32, bf16 = losses["f32"], losses["bf16"]
    check(f32 < 3.2, "200 steps teach small something", str(f32))
    check(abs(bf16 - f32) <= 0.01 * f32, "the loss in bf16", f"want {f32} within 1 %, have {bf16}")
    note(f"200 steps of small: loss {f32:.5f} in f32, {bf16:.5f} in bf16")
    if "bf16" not in NOT_IN_PLANS:
        check(bf16 != f32, "the lever does something")


def the_ledger():
    """bench levers: every lever with its gain, interval, parity and state."""
    report = ledger()
    withdrawn = [row for row in report["rows"] if row["state"].startswith("withdrawn")]
    equal([row["lever"] for row in report["rows"] if row not in withdrawn], levers(),
          "every lever has its row")
    check(len(withdrawn) >= 1, "and so have those that were tried")
    for row in report["rows"]:
        if row["gpu_only"] and row not in withdrawn:
            equal(row["why_not"], "not of this device", f"{row['lever']} without a GPU")
        if row["lever"] == "bf16" and "bf16" in NOT_IN_PLANS:
            equal((row["state"], row["why_not"]), ("blocked: this CPU has no bf16 products",) * 2,
                  "a lever that this CPU has nothing for")
    for row in withdrawn:
        equal(row["why_not"], row["state"], f"{row['lever']}: what decided it")
        expect(tinygpt("dump", "--preset", "tiny", "--levers", f"+{row['lever']}"), 2,
               f"{row['lever']} cannot be switched on", err="withdrawn")
    equal({row["lever"] for row in report["rows"] if row["gpu_only"]} - {
        row["lever"] for row in withdrawn}, GPU_ONLY, "levers of a GPU alone")
    for key in ("cpu", "isa", "threads", "version"):
        check(report.get(key), f"the ledger names {key}")
    for row in report["rows"]:
        name = row["lever"]
        check(isinstance(row["default_on"], bool) and row["state"] and row["preset"] == "tiny",
              f"{name}: default and state", str(row))
        if not row["measured"]:
            check(row["why_not"], f"{name}: why it is not measured")
            continue
        check(row["gain_low"] <= row["gain"] <= row["gain_high"], f"{name}: gain and interval",
              str(row))
        check(row["with_ms"] > 0 and row["without_ms"] > 0 and row["pairs"] == 15,
              f"{name}: times", str(row))
        check(row["same_bits"] or not row["keeps_bits"], f"{name}: bits are kept", str(row))
        check(row["loss_difference"] < 0.01, f"{name}: losses", str(row))
        check(re.match("shipped|optional|withdrawn", row["state"]), f"{name}: state", row["state"])
    one = tinygpt("bench", "levers", "--preset", "tiny", "--lever", "recompute", "--steps", "1")
    expect(one, 0, "one lever as a table", out=["recompute", "95 % interval", "shipped|withdrawn"])
    check("buffer_aliasing" not in one.text, "--lever measures that one alone")
    expect(tinygpt("bench", "levers", "--lever", "none"), 2, "a lever that is not there",
           err="none")
    expect(tinygpt("bench", "levers", "--pairs", "3"), 2, "too few pairs for an interval",
           err="--pairs: want a whole number from 15")


def benches():
    """Each benchmark prints one JSON object whose rows have numbers that fit together."""
    r = tinygpt("bench", "train", "--preset", "tiny,small", "--steps", "6", "--warmup", "1",
                "--json")
    expect(r, 0, "bench train")
    rows = r.json()["rows"]
    equal([row["preset"] for row in rows], ["tiny", "small"], "rows of bench train")
    for row in rows:
        check(len(row["ms"]) == 6 and all(ms > 0 for ms in row["ms"]), "times of bench train")
        check(min(row["ms"]) <= row["median_ms"] <= max(row["ms"]) and
              row["low_ms"] <= row["median_ms"] <= row["high_ms"], "median and interval", str(row))
        equal(row["tokens_per_step"], row["batch"] * row["ctx"], "tokens of a step")
        # Whatever else the machine did while the peak was measured is in the share, too.
        check(0 < row["gflops"] and 4 < row["loss"] < 6 and
              abs(row["share_of_peak"] * row["peak_gflops"] - row["gflops"]) <
              1e-4 * row["peak_gflops"] + 0.02,
              "numbers of bench train", str(row))
    equal([row["params"] for row in rows], [70464, 366432], "parameters of the presets")

    # Of fewer than six values there is no interval, and none is printed.
    few = ("bench", "train", "--preset", "tiny", "--steps", "5", "--warmup", "1")
    row, = tinygpt(*few, "--json").json()["rows"]
    equal((row["low_ms"], row["high_ms"], row["median_ms"] > 0), (None, None, True),
          "five steps have no interval")
    expect(tinygpt(*few), 0, "five steps as a table", out=r"tiny +70,464 +512 +[0-9.]+ +- ")
    few = ("bench", "prefill", "--preset", "tiny", "--times", "3")
    row, = tinygpt(*few, "--json").json()["rows"]
    equal((row["low_ms"], row["high_ms"]), (None, None), "three prompts have no interval")
    expect(tinygpt(*few), 0, "three prompts as text", out=r"95 %: -\)")

    r = tinygpt("bench", "matmul", "--m", "256", "--n", "192", "--k", "128", "--times", "5",
                "--json")
    expect(r, 0, "bench matmul")
    row, = r.json()["rows"]
    equal((row["m"], row["n"], row["k"]), (256, 192, 128), "the shape that was asked for")
    check(abs(row["gflops"] * row["median_ms"] * 1e6 / (2 * 256 * 192 * 128) - 1) < 0.1 and
          row["best_ms"] <= row["median_ms"], "GFLOP/s and milliseconds fit together", str(row))
    r = tinygpt("bench", "matmul", "--preset", "tiny", "--times", "3", "--json")
    expect(r, 0, "bench matmul of a preset")
    shapes = {(row["m"], row["n"], row["k"], row["trans"]) for row in r.json()["rows"]}
    check((512, 48, 48, 0) in shapes and (512, 256, 48, 2) in shapes, "shapes of a preset",
          str(shapes))

    for bench in ("decode", "prefill"):
        r = tinygpt("bench", bench, "--preset", "tiny", "--json")
        expect(r, 0, f"bench {bench}")
        row, = r.json()["rows"]
        check(row["params"] == 70464 and row["tok_per_s"] > 0 and
              row["low_ms"] <= row["median_ms"] <= row["high_ms"], f"row of bench {bench}",
              str(row))
        expect(tinygpt("bench", bench, "--preset", "tiny"), 0, f"bench {bench} as text", out="tiny")
    r = tinygpt("bench", "profile", "--preset", "tiny", "--steps", "2", "--json")
    expect(r, 0, "bench profile")
    rows = r.json()["rows"]
    check(abs(sum(row["share"] for row in rows) - 1) < 0.01, "shares of the profile add up to 1")
    check(rows == sorted(rows, key=lambda row: -row["ms"]), "costliest first")
    check({"matmul", "adamw"} <= {row["op"] for row in rows}, "ops of the profile")
    check(all(row["of_gflops"] >= 0 and row["of_gbytes_per_s"] >= 0 for row in rows) and
          any(row["of_gflops"] > 0 for row in rows) and any(row["of_gbytes_per_s"] > 0 for row in rows),
          "shares of both roofs", str(rows[0]))
    r = tinygpt("bench", "profile", "--preset", "tiny", "--steps", "2", "--json", "--each")
    expect(r, 0, "bench profile --each")
    steps = r.json()["rows"]
    equal(len(steps), sum(row["count"] for row in rows), "a row for every step")
    equal((steps[0]["op"], steps[-1]["op"]), ("embedding", "adamw"), "in the order of the plan")
    check(any(row["step"].startswith("blocks.1.") for row in steps), "steps have their names")
    for args, n_heads in ((("decode", "--after", "9"), 1), (("prefill", "--tokens", "16"), 1)):
        r = tinygpt("bench", "profile", "--preset", "tiny", "--steps", "2", "--json", "--plan", *args)
        expect(r, 0, f"bench profile --plan {args[0]}")
        counts = {}
        for row in r.json()["rows"]:
            counts[row["op"]] = counts.get(row["op"], 0) + row["count"]
        equal((counts["attention_cached"], counts["matmul"]), (2, 4 * 2 + n_heads), f"steps of a {args[0]}")
    expect(tinygpt("bench", "profile", "--preset", "tiny", "--plan", "decode", "--after", "32"), 2,
           "bench profile beyond the context", err="want room for 1 tokens")
    for args in (("train", "--preset", "tiny", "--steps", "3"), ("profile", "--preset", "tiny"),
                 ("matmul", "--m", "8", "--n", "8", "--k", "8")):
        expect(tinygpt("bench", *args), 0, f"bench {args[0]} as text", out="GFLOP/s")


def blocks_for_other_programs():
    """bench train --blocks answers each "go" with times, so that two programs can take turns."""
    p = start("bench", "train", "--preset", "tiny", "--blocks", "--steps-per-block", "3",
              stdin=subprocess.PIPE)
    equal(json.loads(p.stdout.readline()), {"ready": True}, "it says when it is ready")
    for _ in range(2):
        p.stdin.write(b"go\n")
        row = json.loads(p.stdout.readline())
        check(len(row["ms"]) == 3 and min(row["ms"]) > 0, "times of a block", str(row))
    p.stdin.write(b"quit\n")
    expect(finish(p), 0, "quit")
    p = start("bench", "train", "--preset", "tiny", "--blocks", stdin=subprocess.PIPE)
    p.stdout.readline()
    p.stdin.close()
    equal(p.wait(300), 0, "the end of its input is an end")


# ------------------------------------------------------------------------------------------ doctor


SECTIONS = ("machine", "instruction set", "levers", "speed", "kernels", "gradients", "training",
            "files")


def doctor():
    """All is well on this machine, in text and in JSON, and nothing stays behind."""
    r = tinygpt("doctor")
    expect(r, 0, "doctor", out=[f"(?m)^{s}$" for s in SECTIONS] +
           ["all is well|all works", "threads are the same to the bit",
            "a flipped bit .* is found"])
    check("FAIL" not in r.text, "doctor finds no failure")
    equal(os.listdir("."), [], "doctor leaves no file")
    j = tinygpt("doctor", "--quick", "--json")
    expect(j, 0, "doctor --quick --json")
    report = j.json()
    equal((report["ok"], report["failures"]), (True, 0), "verdict of doctor --json")
    equal({c["section"] for c in report["checks"]}, set(SECTIONS) - {"gradients"},
          "sections of doctor --quick")
    check(all(c["mark"] in ("ok", "warn", "note") and c["text"] for c in report["checks"]),
          "marks of doctor --json")
    check(set(isas()) <= {"scalar", "avx2", "avx512", "neon"} and "scalar" in isas(), "--list-isas",
          str(isas()))
    off = tinygpt("doctor", "--quick", "--levers", "-flash_attention", "--data", text_file())
    expect(off, 0, "doctor with a lever off, and of one text",
           out=["warn +flash_attention is switched off", "(?m)^text$", "valid UTF-8"])


def doctor_reads_texts():
    """Each fault of a text is named; what cannot be trained on fails. Texts share two runs, since a
    run looks at all of the machine, too."""
    words = read(text_file())[:60000]
    faults = {
        "good": (words, "ok .*B"),
        "short": (words[:1000], "warn +1000 bytes are very little"),
        "utf16": (words.decode().encode("utf-16"), "warn .*UTF-16.*byte order mark"),
        "utf16_unmarked": (words.decode().encode("utf-16-le"), "warn .*UTF-16.*every second"),
        "bom": (b"\xef\xbb\xbf" + words, "byte order mark stands at offset 0"),
        "nul": (words[:12345] + b"\0" + words[12345:], "warn +1 NUL bytes, the first at offset 12345"),
        "cr_only": (words.replace(b"\n", b"\r"), "warn .*CR alone"),
        "crlf": (words.replace(b"\n", b"\r\n"), "CR LF"),
        "invalid_utf8": (words[:33333] + b"\xff" + words[33333:], "warn +not valid UTF-8 from offset 33333"),
        "repeated": (words[:4096] * 12, "warn .*repeats earlier parts"),
        "few_symbols": (b"ab" * 30000, "warn +only 2 different bytes"),
        "binary": (bytes(range(1, 256)) * 200, "warn .*binary")}
    refused = {"empty": (b"", "FAIL +the text is empty"), "none": (None, "FAIL"), ".": (None, "FAIL")}
    for texts, code in ((faults, 0), ({**refused, "good": faults["good"]}, 1)):
        for name, (data, _) in texts.items():
            if data is not None:
                write(name, data)
        r = tinygpt("doctor", "--quick", *(arg for name in texts for arg in ("--data", name)))
        expect(r, code, f"doctor --data of {len(texts)} texts")
        sections = re.split(r"(?m)^(text \S+)$", r.text)
        found = dict(zip(sections[1::2], sections[2::2]))
        for name, (_, wanted) in texts.items():
            check(re.search(wanted, found.get(f"text {name}", "")), f"doctor --data, a text that is {name}",
                  f"want {wanted}, have {found.get(f'text {name}')}")
        check("FAIL" not in found["text good"], "the good text has no share in it")


# ------------------------------------------------------------------------------------------ corpus


def stories():
    """The same seed gives the same stories, everywhere; a longer text extends a shorter one."""
    def make(*args):
        r = tinygpt("corpus", "stories", *args)
        expect(r, 0, f"corpus stories {' '.join(args)}")
        return r.out

    text = make("--bytes", "300k", "--seed", "7")
    equal(len(text), 300000, "exactly as many bytes")
    equal(make("--bytes", "300000", "--seed", "7"), text, "same seed, same stories")
    for n in (1, 2, 999, 65536, 65537, 299999):
        equal(make("--bytes", str(n), "--seed", "7"), text[:n], f"the first {n} bytes")
    check(make("--bytes", "300k", "--seed", "8") != text, "another seed, other stories")
    check(make("--bytes", "1000") == make("--bytes", "1000", "--seed", "42"), "the default seed")
    check(text.isascii() and text.count(b"\n") > 500 and b". " in text, "it reads like text")
    halves = [hashlib.sha256(text[i:i + 4096]).digest() for i in range(0, 299008, 4096)]
    check(len(set(halves)) == len(halves), "stories do not repeat")
    r = tinygpt("corpus", "stories", "--bytes", "300k", "--seed", "7", "--out", "s.txt")
    expect(r, 0, "corpus --out", out="s.txt")
    equal(read("s.txt"), text, "corpus --out has the same bytes")
    j = tinygpt("corpus", "stories", "--bytes", "10", "--out", "t.txt", "--json")
    equal(j.json(), {"out": "t.txt", "bytes": 10, "seed": 42}, "corpus --json")
    expect(tinygpt("train", "--data", "s.txt", *TINY, *SILENT, "--steps", "20", "--no-save"), 0,
           "training on stories")
    expect(tinygpt("corpus", "stories", "--json"), 2, "--json without --out", err="--out")
    expect(tinygpt("corpus", "stories", "--out", "none/s.txt"), 2, "a folder that is not there",
           err="--out none: want the folder to save into")


main(plans, types_of_weights, levers_keep_their_promise, bf16_learns_as_well, the_ledger, benches, blocks_for_other_programs, doctor,
     doctor_reads_texts, stories)
