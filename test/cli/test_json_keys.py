#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The keys that --json prints are those of docs/json.md, no more and no fewer.

Usage: test_json_keys.py build/tinygpt

Each section of the document is a list of commands here, and the keys of all that they print
together are compared with its table. A key that is printed and not told fails, as does one that is
told and not printed.
"""
import os
import re
import signal
import sys

from util import (SILENT, TINY, TOP, Result, check, equal, expect, have_model, main, run, start,
                  text_file, tinygpt, write)

FAULTY = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "test", "tinygpt_nan")
TUNED = os.path.join(TOP, "test", "golden", "lm", "tune_qwen3.zip")
EXPERTS = os.path.join(TOP, "test", "golden", "lm", "tune_qwen3moe.zip")
RERANKER = os.path.join(TOP, "test", "golden", "lm", "rank_bert.zip")
LLAMA, BERT = "SmolLM2-135M-Instruct.Q4_1.gguf", "minilm.zip"
# What these print needs a GPU that is no software.
NOT_RUN = {"bench tiles", "bench fusion"}


def told():
    """The sections of the document, each with the keys of its table."""
    sections = {}
    with open(os.path.join(TOP, "docs", "json.md"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("## "):
                keys = sections[line[3:].strip()] = set()
            elif line.startswith("| `"):
                key = re.match(r"\| `([^`]+)` \| \S", line)
                assert key and key[1] not in keys, line
                keys.add(key[1])
    return sections


def keys_of(value, path=""):
    """Paths of all that is no object: config.ctx, rows[].ms."""
    if isinstance(value, dict):
        dot = path + "." if path else ""
        return set().union(*(keys_of(v, dot + k) for k, v in value.items()))
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return set().union(*(keys_of(v, path + "[]") for v in value))
    return set() if value == [] else {path}


def compared(section, *results, code=0):
    """All that these runs printed, against the table of the section."""
    want, have = told().get(section, set()), set()
    for r in results:
        if expect(r, code, f"{section} --json"):
            have |= set().union(*(keys_of(line) for line in r.json_lines()))
    check(have == want, f"keys of {section}",
          f"printed and not in docs/json.md: {sorted(have - want)}; "
          f"in docs/json.md and not printed: {sorted(want - have)}")
    check(all(re.fullmatch(r"[a-z0-9_.\[\]]+", key) for key in want | have),
          f"{section}: keys are in snake_case", str(sorted(have)))


def asked(*args, **options):
    return tinygpt(*args, "--json", **options)


def a_run(*args):
    return asked("train", "--data", text_file(), *TINY, "--eval-every", "2", *args)


def keys_of_runs():
    """train, and what reads a run."""
    first = a_run("--steps", "4", "--sample-every", "4", "--out", "a.tinygpt")
    resumed = asked("train", "--data", text_file(), "--resume", "a.tinygpt", "--steps", "5")
    skipped = run([FAULTY, "train", "--data", text_file(), *TINY, *SILENT, "--steps", "3",
                   "--no-save", "--skip-bad-steps", "--json"],
                  env={"TG_TEST_NAN": "grad.ln_final.bias@1"})
    tuned = asked("train", "--data", text_file(), "--from", TUNED, "--steps", "2",
                  "--row-tokens", "16", "--eval-windows", "2", *SILENT, "--no-save")
    lm = os.path.join(TOP, "test", "golden", "lm")
    pairs = asked("train", "--pairs", os.path.join(lm, "pairs_lfm2.jsonl"), "--from", os.path.join(lm, "tune_lfm2.zip"),
                  "--steps", "1", "--batch", "2", "--row-tokens", "32", "--no-save")
    compared("train", first, resumed, skipped, tuned, pairs)
    compared("train --sweep", a_run("--steps", "2", "--sweep", "lr=1e-3,1e-2"))
    write("t.txt", b"Once upon a time there was a fox. " * 40)
    compared("sample", asked("sample", "a.tinygpt", "--prompt", "abc", "--tokens", "3"),
             asked("sample", have_model(LLAMA), "--prompt", "abc", "--tokens", "1"))
    compared("sample --n", asked("sample", "a.tinygpt", "--prompt", "abc", "--n", "2", "--tokens", "2"))
    compared("sample --best", asked("sample", "a.tinygpt", "--prompt", "abc", "--best", "3"))
    compared("eval", asked("eval", "a.tinygpt", "--data", "t.txt"))
    compared("eval --losses", asked("eval", "a.tinygpt", "--data", "t.txt", "--losses"))
    write("q.tsv", b"Once\tupon\tthere\nOnce\tupon\n")
    compared("eval --suite", asked("eval", "a.tinygpt", "--suite", "q.tsv"))
    expect(tinygpt("convert", "a.tinygpt", "st", "--format", "safetensors"), 0, "a folder")
    compared("info", asked("info", "a.tinygpt"),
             asked("info", os.path.join("st", "model.safetensors")),
             asked("info", have_model(LLAMA)), asked("info", have_model(BERT)), asked("info", EXPERTS),
             asked("info", os.path.join(TOP, "test", "golden", "lm", "mlx4")))
    compared("verify", asked("verify", "a.tinygpt"), asked("verify", "a.tinygpt", "a.tinygpt"))
    compared("dump", asked("dump", "a.tinygpt"))
    compared("convert", asked("convert", "a.tinygpt", "b.tinygpt", "--dtype", "f16"),
             asked("convert", "a.tinygpt", "b.gguf"))


def keys_of_third_party_models():
    compared("tokenize", asked("tokenize", have_model(LLAMA), "Hello you"),
             asked("tokenize", "--train", text_file(), "--kind", "chars", "--out", "chars.json"))
    # A template that opens a part of an answer, as those of models that think do.
    for part in "think", "tool_call":
        write(f"{part}.jinja", "{{ messages[-1]['content'] }}<" + part + ">")
    compared("chat", asked("chat", have_model(LLAMA), "--tokens", "2", data=b"Hi\n"),
             *(asked("chat", have_model(LLAMA), "--tokens", "8", "--template", f"{part}.jinja", data=b"Hi\n")
               for part in ("think", "tool_call")))
    compared("embed", asked("embed", have_model(BERT), "a", "b"),
             asked("embed", have_model(BERT), "a", "b", "--similar"))
    compared("rerank", asked("rerank", RERANKER, "a", "b", "c"))


def keys_of_bench():
    tiny = ("--preset", "tiny", "--batch", "1")
    compared("bench train", asked("bench", "train", *tiny, "--steps", "2", "--warmup", "0"))
    model = ("--preset", "tiny", "--tokens", "8")
    compared("bench decode", asked("bench", "decode", *model))
    compared("bench prefill", asked("bench", "prefill", *model, "--times", "2"))
    compared("bench matmul", asked("bench", "matmul", "--m", "8", "--n", "8", "--k", "8",
                                   "--times", "2"))
    compared("bench levers", asked("bench", "levers", *tiny, "--pairs", "15", "--steps", "1"))
    compared("bench profile", asked("bench", "profile", *tiny, "--steps", "1"),
             asked("bench", "profile", *tiny, "--steps", "1", "--each"))


def keys_of_the_rest():
    compared("doctor", asked("doctor"))
    compared("corpus", asked("corpus", "stories", "--bytes", "2000", "--out", "s.txt"))
    os.mkdir("page")
    write(os.path.join("page", "index.html"), b"<!doctype html>")
    server = start("serve", "--dir", "page", "--port", "0", "--json")
    line = server.stdout.readline()
    server.send_signal(signal.SIGINT)
    server.wait()
    compared("serve", Result(["tinygpt", "serve"], 0, line, b""))
    compared("Errors", asked("info", "none"), code=2)


def every_section_is_run():
    """A section that no test runs would promise what nobody looks at."""
    with open(os.path.abspath(__file__), encoding="utf-8") as f:
        run_here = set(re.findall(r'compared\("([^"]+)"', f.read()))
    equal(set(told()), run_here | NOT_RUN, "sections of docs/json.md")
    equal([s for s, keys in told().items() if not keys], [], "tables without keys")


main(keys_of_runs, keys_of_third_party_models, keys_of_bench, keys_of_the_rest,
     every_section_is_run)
