#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_sample.py - what changes a text: each option of sample does what it says, and no more."""
import json
import math

from util import check, equal, expect, main, tinygpt, train

PROMPT = ("--prompt", "The ", "--tokens", "60")


def sample(*options, code=0, err=()):
    """Standard output."""
    result = tinygpt("sample", "a.tinygpt", *options)
    expect(result, code, " ".join(options), err=err)
    return result.out


def text(*options):
    """What follows the prompt."""
    return json.loads(sample(*PROMPT, "--json", *options))["text"]


def best():
    rows = json.loads(sample(*PROMPT, "--best", "256", "--json"))["best"]
    equal(len(rows), 256, "one row a byte")
    equal(sorted(row["id"] for row in rows), list(range(256)), "each once")
    logs = [row["logprob"] for row in rows]
    equal(logs, sorted(logs, reverse=True), "the likeliest first")
    check(abs(sum(map(math.exp, logs)) - 1) < 1e-6, "probabilities add up to one")
    e = next(row for row in rows if row["id"] == ord("e"))
    equal(e["piece"], "e", "the piece of a byte")
    equal(len(sample(*PROMPT, "--best", "3").splitlines()), 3, "a line each")
    return chr(rows[0]["id"])


def changed(likeliest):
    greedy = text("--temp", "0")
    equal(greedy[0], likeliest, "greedy takes the first of the best")
    equal(text("--temp", "0", "--seed", "7"), greedy, "greedy needs no seed")
    equal(text("--top-k", "1"), greedy, "the one likeliest")
    equal(text("--temp", "1", "--top-p", "1e-9"), greedy, "the least part of P")
    equal(text("--temp", "1", "--min-p", "1"), greedy, "as likely as the likeliest")
    check(text("--seed", "1") != text("--seed", "2"), "seeds differ")
    equal(text("--bias", f"{ord('q')}:100"), "q" * 60, "a bias that decides")
    check(" " not in text("--bias", "32:-inf"), "never a blank")
    check("e" not in text("--ban", "e"), "a banned text is not written")
    end = greedy[5:8]
    equal(text("--temp", "0", "--stop", end), greedy[:greedy.index(end)], "ends before the stop")
    penalised = text("--temp", "0", "--presence-penalty", "100", "--repeat-last", "8")
    check(all(penalised[i] not in penalised[max(0, i - 8):i] for i in range(1, 60)),
          "nothing recent comes again")
    for kv in "f16", "int8":
        equal(text("--temp", "0", "--kv", kv)[:8], greedy[:8], f"a cache of {kv} begins alike")


def full():
    window = ("--prompt", "The ", "--tokens", "40", "--json", "--full")
    equal(len(json.loads(sample(*window, "slide"))["text"]), 40, "slides on")
    check(0 < len(json.loads(sample(*window, "stop"))["text"]) < 16, "ends with the window of 16")
    sample(*window, "refuse", code=2, err="--full")


def several():
    """The texts of --n are those of as many runs, also where the window slides."""
    texts = json.loads(sample(*PROMPT, "--json", "--n", "3", "--seed", "5"))["texts"]
    for i, one in enumerate(texts):
        alone = json.loads(sample(*PROMPT, "--json", "--seed", str(5 + i)))
        equal(one["seed"], 5 + i, "seed of a text")
        for key in "ids", "text", "end", "slides", "slid_tokens":
            equal(one[key], alone[key], f"{key} of text {i}")
    check(texts[0]["text"] != texts[1]["text"], "seeds differ")
    lines = sample(*PROMPT, "--n", "2", "--seed", "5").decode()
    check("[seed 5]" in lines and texts[1]["text"] in lines, "all of them as text")
    e = json.loads(sample(*PROMPT, "--json", "--n", "2", "--ban", "e"))["texts"]
    check(not any("e" in one["text"] for one in e), "what is banned is so in all of them")
    sample(*PROMPT, "--n", "2", "--draft", "3", code=2, err="--n")


def refused():
    for option, value in (("--best", "-1"), ("--bias", "x"), ("--bias", "300:1"), ("--bias", "5:nan"),
                          ("--n", "0"), ("--n", "65"), ("--kv", "f8"), ("--full", "perhaps"), ("--typical-p", "nan")):
        sample(*PROMPT, option, value, code=2, err=option[2:])


def options():
    expect(train("--steps", "60", "--lr", "1e-2", "--out", "a.tinygpt"), 0, "a run")
    changed(best())
    full()
    several()
    refused()


main(options)
