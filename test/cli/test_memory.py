#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_memory.py - a model's peak resident memory: 1.12 times its weights, the KV cache, and 60 MB.

The model files are those that tools/setup.sh fetches.
"""
import os
import tempfile

from util import PROGRAM, check, environment, equal, expect, have_model, main, note, tinygpt

SMOLLM2, GEMMA3 = "SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m-q4_k_m.gguf"
FIXED = 60_000_000
CONTEXT = 1024
BYTES = {"f32": "bytes", "int8": "bytes_int8"}


def peak(argv, said):
    """Bytes of the process alone: wait4 tells them of it, RUSAGE_CHILDREN of all there were."""
    with tempfile.TemporaryFile() as data, tempfile.TemporaryFile() as out:
        data.write(said.encode())
        data.seek(0)
        files = [(os.POSIX_SPAWN_DUP2, data.fileno(), 0), (os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        argv = [PROGRAM, *argv]
        pid = os.posix_spawn(PROGRAM, argv, environment(), file_actions=files)
        _, status, usage = os.wait4(pid, 0)
        equal(os.waitstatus_to_exitcode(status), 0, "it runs", command=argv)
        out.seek(0)
        check(len(out.read()) > 0, "and answers", command=argv)
    return usage.ru_maxrss * 1024


def within(name, kv, *argv, said=""):
    path = have_model(name)
    result = tinygpt("info", path, "--json")
    expect(result, 0, "info")
    about = result.json()
    cache = next(c[BYTES[kv]] for c in about["caches"] if c["tokens"] == CONTEXT)
    most = 1.12 * about["weight_bytes"] + cache + FIXED
    argv = [argv[0], path, *argv[1:], "--ctx", str(CONTEXT), "--kv", kv]
    have = peak(argv, said)
    note(f"{name} {argv[0]} --kv {kv}: {have / 1e6:.0f} MB of {most / 1e6:.0f}")
    return check(have <= most, f"{name}: memory", f"want {most:.0f} bytes, have {have}", argv)


def prompts():
    """All of the context, so that all of the cache is in use."""
    text = "The quick brown fox jumps over the lazy dog. " * 95
    for name in SMOLLM2, GEMMA3:
        for kv in BYTES:
            within(name, kv, "sample", "--prompt", text, "--tokens", "16", "--temp", "0")


def conversations():
    within(SMOLLM2, "f32", "chat", "--tokens", "24", said="Hello.\nAnd then?\n")


main(prompts, conversations)
