#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.py BUILD: llama.cpp beside tinygpt on model files, block by block.

    bench/peers/llama.sh FOLDER            builds llama.cpp into FOLDER and calls this

A block is one process of either side: it loads the model, warms up, and times a prompt of 512
tokens or 128 tokens written one after the other. The two take turns, first one, then the other
first; each pair of blocks gives a ratio, and what is said is the median of those with its interval
(stats.py). llama-bench runs as it comes, with the same number of threads.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import stats  # noqa: E402

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def ours(options, model, what):
    command = [options.program, "bench", what, "--model", model, "--threads", str(options.threads), "--json"]
    command += ["--tokens", "128"] if what == "decode" else ["--tokens", "512", "--times", "3"]
    return run(command)["rows"][0]["tok_per_s"]


def theirs(options, model, what):
    sizes = ["-p", "0", "-n", "128"] if what == "decode" else ["-p", "512", "-n", "0"]
    command = [options.llama_bench, "-m", model, "-t", str(options.threads), "-r", "2", "-o", "json"]
    return run(command + sizes)[0]["avg_ts"]


def compare(options, model, what):
    pairs = []
    for i in range(options.pairs):
        sides = [ours, theirs] if i % 2 == 0 else [theirs, ours]
        speed = {side: side(options, model, what) for side in sides}
        pairs.append((speed[ours], speed[theirs]))
    row = stats.verdict([a / b for a, b in pairs])
    row["model"] = os.path.basename(model)
    row["what"] = what
    row["tok_per_s"] = stats.median([a for a, _ in pairs])
    row["peer_tok_per_s"] = stats.median([b for _, b in pairs])
    print(f"{row['model']:36} {what:8} {row['tok_per_s']:8.1f} {row['peer_tok_per_s']:8.1f} "
          f"{row['median']:6.2f}  [{row['low']:.2f}, {row['high']:.2f}]", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("llama_bench", help="the program llama-bench")
    parser.add_argument("--program", default="build/tinygpt")
    parser.add_argument("--models", default=".cache/models")
    parser.add_argument("--only", default="", help="models whose name has this in it")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--what", default="decode,prefill")
    parser.add_argument("--out", default="", help="JSON of all rows (default: bench/history/llama-DATE.json)")
    options = parser.parse_args()
    if options.pairs < 6:
        parser.error(f"--pairs: want 6 or more (fewer have no 95 % interval), have {options.pairs}")
    folder = os.path.join(ROOT, options.models)
    models = sorted(f for f in os.listdir(folder) if f.endswith(".gguf") and options.only in f)
    if not models:
        sys.exit(f"{folder}: want model files (tools/setup.sh models), have none")
    print(f"{'model':36} {'':8} {'tok/s':>8} {'peer':>8} {'ratio':>6}  95 %")
    rows = [compare(options, os.path.join(folder, m), what) for m in models for what in options.what.split(",")]
    out = options.out or os.path.join(ROOT, f"bench/history/llama-{datetime.date.today()}.json")
    with open(out, "w", encoding="utf-8") as f:
        json.dump({"pairs": options.pairs, "threads": options.threads, "rows": rows}, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
