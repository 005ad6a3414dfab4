# SPDX-License-Identifier: Apache-2.0
"""Compare a training step of PyTorch with ours on one machine, in alternating blocks.

    python train.py [--presets small,medium] [--modes eager,compile,bf16] [--threads 2] [--pairs 15]
                    [--data FILE] [--program build/tinygpt] [--out FILE.json]

For each preset and mode two processes live side by side and take turns: a block of a few steps
here, a block there, with the order swapped from pair to pair. The ratio of a pair is the median
step of the peer's block over the median step of ours; above 1 we are faster. The claim is the
median ratio with a 95 % interval, or INCONCLUSIVE where the interval is wider than +-3 % or
there are fewer than 15 pairs (stats.py).

    eager    PyTorch as it comes, fp32              against ours, fp32
    compile  the loss through torch.compile, fp32   against ours, fp32
    bf16     eager under CPU autocast to bf16       against ours with --levers +bf16

What one step costs:  6 N (12 L C C + V C) + 6 L N T C  floating-point operations, N = batch * T;
the second term is attention with the causal half left out. The rate of OpenBLAS's sgemm, measured
before and after, says how much of the machine a side reached.

--program none measures the peer alone.
"""

import argparse
import datetime
import json
import math
import os
import platform
import shlex
import subprocess
import sys
import time

from stats import median, verdict
from worker import Side, SideFailed

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "../.."))
sys.path.insert(0, os.path.join(ROOT, "tools/oracle"))

from spec import PRESETS, VOCAB  # noqa: E402

# Idle threads of an OpenMP library spin for some milliseconds after their last work.
SETTLE_S = 0.05
MODES = {"eager": "", "compile": "", "bf16": "+bf16"}  # mode of the peer: levers of ours
COLUMNS = ("{:7s} {:8s} {:>9s} {:>9s} {:>8s} {:>8s} {:>7s} {:>15s}  {}".format)


def flops_per_step(config):
    n = config.batch * config.ctx
    dense = 12 * config.layers * config.width**2 + VOCAB * config.width
    return 6 * n * dense + 6 * config.layers * n * config.ctx * config.width


def clean_environment(threads):
    """The environment of both sides: no forced BLAS kernels, the same number of threads."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        env[name] = str(threads)
    return env


def cpu_name():
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def git_commit():
    def git(*args):
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True)

    head = git("rev-parse", "--short=12", "HEAD")
    if head.returncode:
        return "unknown"
    dirty = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    return head.stdout.strip() + ("-dirty" if dirty else "")


def sgemm_rate(args, env):
    done = subprocess.run([sys.executable, os.path.join(HERE, "blas.py"), "--threads",
                           str(args.threads)], env=env, capture_output=True, text=True)
    if done.returncode:
        raise SideFailed("blas.py: " + done.stderr.strip()[-500:])
    return json.loads(done.stdout)


def peer_command(args, preset, mode):
    return [sys.executable, os.path.join(HERE, "peer.py"), "--preset", preset, "--mode", mode,
            "--data", args.data, "--threads", str(args.threads), "--qkv", args.qkv,
            "--optimizer", args.optimizer, "--steps", str(args.steps)]


def our_command(args, preset, levers, steps):
    command = [*shlex.split(args.program), "bench", "train", "--preset", preset, "--threads",
               str(args.threads), "--blocks", "--steps-per-block", str(steps)]
    return command + (["--levers", levers] if levers else [])


def compare(args, env, preset, mode):
    """All pairs of one preset and mode."""
    result = {"preset": preset, "mode": mode, "flops_per_step": flops_per_step(PRESETS[preset]),
              "tokens_per_step": PRESETS[preset].batch * PRESETS[preset].ctx}
    sides = []
    try:
        peer = Side(f"PyTorch {mode} {preset}", peer_command(args, preset, mode), env)
        sides.append(peer)
        result["peer"] = peer.ready(args.timeout)
        if args.program != "none":
            ours = Side(f"tinygpt {preset}",
                        our_command(args, preset, MODES[mode], result["peer"]["steps"]), env)
            sides.append(ours)
            result["ours"] = ours.ready(args.timeout)
        for side in sides:
            side.block(args.timeout)  # the first block warms caches and clocks; it is not counted
        pairs, best = [], [math.inf] * len(sides)
        for i in range(args.pairs):
            blocks = {}
            for side in sides if i % 2 == 0 else reversed(sides):
                time.sleep(SETTLE_S)
                blocks[side] = side.block(args.timeout)
            pairs.append([median(blocks[side]) for side in sides])
            for k, side in enumerate(sides):
                best[k] = min(best[k], *blocks[side])
    finally:
        for side in sides:
            side.quit()
    result["pairs_ms"] = [[round(t, 3) for t in pair] for pair in pairs]  # median step of a block
    for k, name in enumerate(("peer", "ours")[: len(sides)]):
        result[name]["best_ms"] = best[k]
        result[name]["median_ms"] = median([pair[k] for pair in pairs])
    if len(sides) == 2:
        result["ratio"] = verdict([peer_ms / our_ms for peer_ms, our_ms in pairs])
    return result


def row(result, sgemm):
    """A line of the table; rates are those of the median step."""
    peer, ours, ratio = result["peer"], result.get("ours"), result.get("ratio")

    def rate(side):
        return result["flops_per_step"] / side["median_ms"] / 1e6

    return COLUMNS(
        result["preset"], result["mode"], f"{peer['median_ms']:.1f}",
        f"{ours['median_ms']:.1f}" if ours else "-", f"{rate(peer):.0f}",
        f"{rate(ours):.0f}" if ours else "-",
        f"{100 * rate(ours or peer) / sgemm:.0f} %",
        f"{ratio['median']:.3f}" if ratio else "-",
        f"[{ratio['low']:.3f}, {ratio['high']:.3f}] n={ratio['pairs']} {ratio['verdict']}"
        if ratio else f"best {peer['best_ms']:.1f} ms")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", default="small,medium,large,xl,huge")
    parser.add_argument("--modes", default="eager,compile,bf16")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--steps", type=int, default=0, help="steps of a block; 0: about a second")
    parser.add_argument("--data", default=os.path.join(ROOT, "build/test/stories.txt"))
    parser.add_argument("--program", default=os.path.join(ROOT, "build/tinygpt"))
    parser.add_argument("--qkv", default="fused", help="peer: fused or separate projections")
    parser.add_argument("--optimizer", default="default", help="peer: default, foreach or fused")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for any one answer")
    parser.add_argument("--out", help="JSON file; default bench/history/peers-DATE.json")
    args = parser.parse_args()
    args.presets, args.modes = args.presets.split(","), args.modes.split(",")
    for name, given, known in (("presets", args.presets, PRESETS), ("modes", args.modes, MODES)):
        wrong = [x for x in given if x not in known]
        if wrong:
            parser.error(f"--{name}: want some of {','.join(known)}, have {','.join(wrong)}")
    if args.pairs < 6:
        parser.error(f"--pairs: want 6 or more (fewer have no 95 % interval), have {args.pairs}")
    return args


def main():
    args = parse()
    env = clean_environment(args.threads)
    now = datetime.datetime.now(datetime.timezone.utc)
    report = {"when": now.isoformat(timespec="seconds"), "commit": git_commit(),
              "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)), "threads": args.threads,
              "system": platform.platform(), "python": platform.python_version(),
              "command": shlex.join(sys.argv), "load_before": os.getloadavg()[0],
              "sgemm_before": sgemm_rate(args, env), "results": [], "failed": []}
    sgemm = report["sgemm_before"]["gflops"]
    print(f"{report['cpu']}, {report['cores']} cores, {args.threads} threads, "
          f"commit {report['commit']}, load {report['load_before']:.1f}")
    if report["load_before"] > 0.3:
        print("warning: other work is running; intervals will be wide and rates low")
    print(f"OpenBLAS sgemm {report['sgemm_before']['size']}^3: {sgemm:.0f} GFLOP/s "
          f"({report['sgemm_before']['kernel']} kernel)")
    print(COLUMNS("preset", "peer", "peer ms", "our ms", "GFLOP/s", "ours", "of gemm", "peer/ours",
                  "95 % interval, verdict"))
    for preset in args.presets:
        for mode in args.modes:
            try:
                result = compare(args, env, preset, mode)
            except SideFailed as e:
                # One mode that this machine lacks (no compiler, no bf16) must not end the rest.
                report["failed"].append({"preset": preset, "mode": mode, "why": str(e)})
                print(f"{preset:7s} {mode:8s} failed: {e}", flush=True)
                continue
            report["results"].append(result)
            print(row(result, sgemm), flush=True)
    report["sgemm_after"] = sgemm_rate(args, env)
    report["load_after"] = os.getloadavg()[0]
    print(f"OpenBLAS sgemm afterwards: {report['sgemm_after']['gflops']:.0f} GFLOP/s; "
          f"load {report['load_after']:.1f}")
    out = args.out or os.path.join(ROOT, "bench/history", f"peers-{now:%Y%m%d-%H%M%S}.json")
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(out, "w") as f:
        json.dump(report, f, indent=1)
        f.write("\n")
    print(f"written to {out}")
    if report["failed"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
