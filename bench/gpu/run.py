# SPDX-License-Identifier: Apache-2.0
"""Training steps and matrix products on one GPU: ours through WebGPU against PyTorch, fp32.

    python run.py [--presets small,medium] [--compile small] [--sizes 1024,4096] [--starts huge]
                  [--out FILE.json]

Both sides run on the same card in the same call, one after the other; ours is the program that
--program names, and finds its WebGPU library as it always does (TG_WEBGPU_LIB). The tables that are
printed are those of README.md.
"""

import argparse
import datetime
import json
import math
import os
import subprocess
import tempfile
import time

import torch

import peer

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = {"behemoth4": ["--preset", "behemoth", "--batch", "4", "--ctx", "1024"]}


def ours(args, *command):
    done = subprocess.run([args.program, "bench", *command, "--device", "webgpu", "--json"],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)["rows"][0]


def train(args, preset):
    steps = "8" if preset.startswith("behemoth") else str(args.steps)
    row = ours(args, "train", *OURS.get(preset, ["--preset", preset]), "--steps", steps,
               "--warmup", "5")
    result = {"preset": preset, "ours_ms": row["median_ms"], "low_ms": row["low_ms"],
              "high_ms": row["high_ms"], "n": len(row["ms"]), "gflops": row["gflops"]}
    for mode in ["eager"] + (["compile"] if preset in args.compile.split(",") else []):
        trainer = peer.Trainer(preset, mode)
        result[mode] = peer.time_steps(trainer, args.seconds)
        del trainer
        torch.cuda.empty_cache()
    result["ratio"] = result["eager"]["median_ms"] / result["ours_ms"]
    return result


def print_train(r):
    compiled = r.get("compile")
    ours_of = f"{r['ours_ms']:.2f} | {r['low_ms']:.2f} .. {r['high_ms']:.2f}, {r['n']}"
    more = f"{compiled['median_ms']:.2f} ({compiled['median_ms'] / r['ours_ms']:.1f})" \
        if compiled else ""
    print(f"| {r['preset']} | {ours_of} | {r['gflops'] / 1e3:.1f} | "
          f"{r['eager']['median_ms']:.2f} | {r['ratio']:.2f} | {more} |", flush=True)


def matmul(args, size):
    mine = {}
    for trans in ("none", "a", "b"):
        row = ours(args, "matmul", "--m", str(size), "--n", str(size), "--k", str(size),
                   "--trans", trans, "--times", "3")
        mine[trans] = 2e-9 * size**3 / row["median_ms"]
    theirs = next(iter(peer.matmul(argparse.Namespace(sizes=str(size)))))["tflops"]
    print(f"| {size} | {mine['none']:.1f} | {mine['a']:.1f} | {mine['b']:.1f} | {theirs:.1f} | "
          f"{100 * max(mine.values()) / theirs:.0f} % |", flush=True)
    return {"size": size, "ours_tflops": mine, "cublas_tflops": theirs}


def first_step(args, preset):
    """Seconds from the start of a process to the line of its first step, when nothing is kept of
    what the library and the driver have compiled before."""
    env = dict(os.environ, TG_GPU_CACHE="off", __GL_SHADER_DISK_CACHE="0")
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text.txt")
        with open(text, "w") as f:
            f.write("The quick brown fox jumps over the lazy dog. " * 10000)
        begin = time.perf_counter()
        with subprocess.Popen([args.program, "train", "--data", text, "--preset", preset,
                               "--steps", "20", "--device", "webgpu", "--json", "--out",
                               os.path.join(folder, "out.tinygpt")],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as run:
            for line in run.stdout:
                row = json.loads(line)
                if "loss" in row and "done" not in row:
                    return time.perf_counter() - begin
    raise SystemExit(f"{preset}: the run printed no step")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default=os.path.join(HERE, "../../build/tinygpt"))
    parser.add_argument("--presets", default=",".join(peer.PRESETS))
    parser.add_argument("--compile", default="small")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--sizes", default="1024,2048,4096")
    parser.add_argument("--starts", default="", help="presets to start with nothing compiled")
    parser.add_argument("--out")
    args = parser.parse_args()
    report = {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "card": torch.cuda.get_device_name(), "torch": torch.__version__,
              "train": [], "matmul": []}
    print(f"{report['card']}, PyTorch {report['torch']}, {report['when']}\n")
    print("| preset | ours ms | 95 % interval, n | TFLOP/s | eager ms | eager / ours | "
          "compile ms (ratio) |\n|---|---|---|---|---|---|---|")
    for preset in filter(None, args.presets.split(",")):
        report["train"].append(train(args, preset))
        print_train(report["train"][-1])
    print("\n| cube | A B | A'B | A B' | cuBLAS fp32 | best of ours |\n|---|---|---|---|---|---|")
    for size in filter(None, args.sizes.split(",")):
        report["matmul"].append(matmul(args, int(size)))
    for preset in filter(None, args.starts.split(",")):
        seconds = [first_step(args, preset) for _ in range(5)]
        report.setdefault("starts", []).append({"preset": preset, "seconds": seconds})
        print(f"start to first step, {preset}: " + ", ".join(f"{s:.2f}" for s in seconds) + " s",
              flush=True)
    ratios = [math.log(r["ratio"]) for r in report["train"]]
    if ratios:
        print(f"\ngeometric mean of the ratios: {math.exp(sum(ratios) / len(ratios)):.2f}")
    if args.out:
        with open(args.out, "w") as f:
            json.dump(report, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
