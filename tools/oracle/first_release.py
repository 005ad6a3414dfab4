#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""first_release.py - files that tinygpt 0.1.0 wrote, and what it computed from them.

    git worktree add ../first 9980dcd && make -C ../first build lib
    tools/oracle/first_release.py ../first/build test/golden/first_release

9980dcd is the last commit of 0.1.0. What it wrote must open, go on and sample as it did there, for as
long as there is a tinygpt: test_first_release.py and test_session.c look. expected.json has

    sample      file -> ids of 16 tokens at temperature 0.9, seed 7
    resume      class of kernels -> losses when half.tinygpt has gone on to STEPS steps
    presets     preset -> class -> losses after its first steps
"""
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile

TEXT = ("corpus", "stories", "--bytes", "20000", "--seed", "3")
STEPS, HALF = 12, 6
TINY = ("--layers", "2", "--width", "8", "--heads", "2", "--ctx", "16", "--batch", "4")
QUIET = ("--eval-every", "0", "--sample-every", "0", "--json")
PRESETS = {"tiny": 10, "small": 10, "medium": 3, "large": 2}
CLASSES = {"fma": "avx2", "plain": "scalar"}
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def run(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True).stdout


def last_losses(out):
    """The hash of all losses, which are floats, and the last validation loss, whose bits tell more."""
    step = [json.loads(line) for line in out.splitlines() if b'"hash"' in line][-1]
    return [step["hash"], step["val"]]


def save_sessions(library, golden, out):
    """Sessions behind IDS, of a model file in each type of cache, and of a run."""
    lib = ctypes.CDLL(library)
    pointer = ctypes.c_void_p
    for name, model, kv in (("llama_f32", golden, 0), ("llama_f16", golden, 1), ("llama_int8", golden, 2),
                            ("run", os.path.join(out, "half.tinygpt"), 0)):
        ctx, opened, session = pointer(), pointer(), pointer()
        ids = (ctypes.c_int32 * len(IDS))(*IDS)
        lib.tg_session_save.argtypes = [pointer, ctypes.c_char_p, pointer, ctypes.c_size_t]
        lib.tg_session_eval.argtypes = [pointer, pointer, ctypes.c_size_t, pointer]
        done = [lib.tg_context_new(None, ctypes.byref(ctx)),
                lib.tg_model_open(ctx, model.encode(), ctypes.byref(opened)),
                lib.tg_session_new_kv(ctx, opened, 0, kv, ctypes.byref(session)),
                lib.tg_session_eval(session, ids, len(IDS), None),
                lib.tg_session_save(session, os.path.join(out, f"{name}.session").encode(), None, 0)]
        if any(done):
            sys.exit(f"{name}: {done}")


def main(build, out):
    program = os.path.join(build, "tinygpt")
    golden = os.path.join(os.path.dirname(os.path.abspath(out)), "lm", "tune_llama.zip")
    os.makedirs(out, exist_ok=True)
    expected = {"sample": {}, "resume": {}, "presets": {}}
    with tempfile.TemporaryDirectory() as folder:
        def at(name):
            return os.path.join(folder, name)

        with open(at("text"), "wb") as f:
            f.write(run(program, *TEXT))
        for name, isa in CLASSES.items():
            for preset, steps in PRESETS.items():
                said = run(program, "train", "--data", at("text"), "--preset", preset, "--steps", str(steps),
                           "--isa", isa, "--out", at(preset + name), *QUIET)
                expected["presets"].setdefault(preset, {})[name] = last_losses(said)
        run(program, "train", "--data", at("text"), *TINY, "--steps", str(HALF), "--out", at("half.tinygpt"), *QUIET)
        shutil.copy(at("half.tinygpt"), out)
        for name, isa in CLASSES.items():
            shutil.copy(at("half.tinygpt"), at("on.tinygpt"))
            expected["resume"][name] = last_losses(run(program, "train", "--data", at("text"), "--resume", at("on.tinygpt"),
                                                     "--steps", str(STEPS), "--isa", isa, "--json"))
        for source, name, *how in (("half.tinygpt", "v1.tinygpt", "--format", "v1"),
                                   ("half.tinygpt", "v2_f16.tinygpt", "--dtype", "f16"),
                                   ("half.tinygpt", "v2_int4.tinygpt", "--dtype", "int4"),
                                   ("half.tinygpt", "model.safetensors", "--format", "safetensors"),
                                   ("half.tinygpt", "run.gguf", "--format", "gguf"),
                                   (golden, "llama_q8_0.tinygpt", "--dtype", "q8_0")):
            run(program, "convert", os.path.join(folder, source), os.path.join(out, name), *how)
    for name in sorted(os.listdir(out)):
        if not name.endswith((".session", ".json")):
            said = run(program, "sample", os.path.join(out, name), "--prompt", "The", "--tokens", "16", "--temp", "0.9",
                       "--seed", "7", "--json")
            expected["sample"][name] = json.loads(said)["ids"]
    save_sessions(os.path.join(build, "libtinygpt.so"), golden, out)
    with open(os.path.join(out, "expected.json"), "w", encoding="utf-8") as f:
        json.dump(expected, f, indent=1, sort_keys=True)
        f.write("\n")


main(*sys.argv[1:])
