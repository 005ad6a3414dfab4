#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gallery.py [NAME ..] - trains the models that the page shows, from the recipes in data/gallery.

A recipe, data/gallery/NAME.json, has what the page tells of the model (title, read, licence, prompts) and

    text    where its text comes from, one of
              {"stories": SEED, "bytes": N}             tinygpt corpus stories
              {"made": WHAT, "seed": S, "bytes": N}     web/src/ui/text/made.ts
              {"debian": [PACKAGE ..], "files": GLOB}   files of packages, joined in order of their names
              {"debian": [PACKAGE ..], "bible": true}   the verses, as the packages' own program prints them
    train   options of tinygpt train

Each text goes to build/gallery/NAME.txt and is trained on, but for its last tenth. The model is written as int4, and
kept if its loss on that tenth is at most 0.5 % above that of the float weights; else as f16, for which the same holds.
data/gallery/NAME.tinygpt is that file, and data/gallery/gallery.json what the page reads of all models: losses, sizes
and sums included. Without names all recipes are trained whose model is not there. The same text gives the same bits
on every CPU of one class (docs/testing.md); a package that has changed since shows by the sum of its text.
"""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

FOLDER, WORK = "data/gallery", "build/gallery"
PROGRAM = os.environ.get("TG_PROGRAM", "build/tinygpt")
NODE = os.environ.get("NODE", "node")
MOST_LOSS = 1.005
MOST_BYTES, MOST_BYTES_ALL = 1_000_000, 6_000_000
HELD_BACK = "0.1"


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout


def packages(names, into):
    """The packages' files, below the folder `into`; nothing is installed."""
    for name in names:
        subprocess.run(["apt-get", "download", name], cwd=into, check=True, stdout=subprocess.DEVNULL)
    for path in sorted(glob.glob(os.path.join(into, "*.deb"))):
        subprocess.run(["dpkg-deb", "-x", path, into], check=True)


def bible(folder):
    """Verses without their numbers, a line each; an empty line and the name before a chapter."""
    text = output(os.path.abspath(f"{folder}/usr/bin/bible"), "-d", "bible.data", "-l100000", "gen1:1-rev22:21",
                  cwd=f"{folder}/usr/lib").decode("ascii")
    return re.sub(r"(?m)^ +\d+ ", "", text).lstrip("\n").encode("ascii")


def text_of(source):
    if "stories" in source:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "text")
            output(PROGRAM, "corpus", "stories", "--seed", str(source["stories"]), "--bytes",
                   str(source["bytes"]), "--out", path)
            with open(path, "rb") as f:
                return f.read()
    if "made" in source:
        script = (f'import("{os.path.abspath("web/src/ui/text/made.ts")}").then((m) => process.stdout.write('
                  f'm.madeText("{source["made"]}", {source["seed"]}, {source["bytes"]})))')
        return output(NODE, "-e", script)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        packages(source["debian"], folder)
        if "bible" in source:
            return bible(folder)
        paths = sorted(glob.glob(os.path.join(folder, source["files"])))
        parts = []
        for path in paths:
            with open(path, "rb") as f:
                parts.append(f.read())
        return b"\n\n".join(parts)


def loss_of(model, text):
    return json.loads(output(PROGRAM, "eval", model, "--data", text, "--val", HELD_BACK, "--json"))["loss"]


def numerics_gate(run, text, out):
    """Writes `out` in the smallest type that the gate lets pass: its name, and both losses."""
    floats = loss_of(run, text)
    for dtype in ("int4", "f16"):
        output(PROGRAM, "convert", run, out, "--dtype", dtype, "--force")
        loss = loss_of(out, text)
        print(f"  {dtype}: loss {loss:.4f}, of the float weights {floats:.4f}")
        if loss <= floats * MOST_LOSS:
            return dtype, loss, floats
    sys.exit(f"gallery.py: {out}: want a loss of at most {floats * MOST_LOSS:.4f}, have {loss:.4f}")


def is_done(run, steps):
    """A run of an earlier call that has come to its end is not trained again."""
    return os.path.exists(run) and json.loads(output(PROGRAM, "info", run, "--json"))["step"] == steps


def train(name, recipe):
    print(f"{name}: {recipe['title']}", flush=True)
    text, run, out = f"{WORK}/{name}.txt", f"{WORK}/{name}.run.tinygpt", f"{FOLDER}/{name}.tinygpt"
    content = text_of(recipe["text"])
    with open(text, "wb") as f:
        f.write(content)
    steps = int(recipe["train"][recipe["train"].index("--steps") + 1])
    if not is_done(run, steps):
        subprocess.run([PROGRAM, "train", "--data", text, "--val", HELD_BACK, "--out", run, "--force", "--sample-every",
                        "0", "--quiet", *recipe["train"]], check=True, stdout=subprocess.DEVNULL)
    dtype, loss, floats = numerics_gate(run, text, out)
    written = json.loads(output(PROGRAM, "sample", out, "--prompt", recipe["prompts"][0], "--tokens", "160",
                                "--temp", "0.6", "--json"))["text"]
    with open(out, "rb") as f:
        data = f.read()
    info = json.loads(output(PROGRAM, "info", out, "--json"))
    for prev in glob.glob(f"{out}.prev"):
        os.remove(prev)
    return {
        "name": name, "title": recipe["title"], "read": recipe["read"], "licence": recipe["licence"],
        "prompts": recipe["prompts"], "dtype": dtype, "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(), "parameters": info["params"],
        "steps": steps,
        "loss": round(loss, 4), "floatLoss": round(floats, 4),
        "textBytes": len(content), "textSha256": hashlib.sha256(content).hexdigest(),
        "excerpt": content[:20_000].decode("latin-1")[recipe.get("excerptAt", 0):][:240], "written": written,
    }


def main(wanted):
    os.makedirs(WORK, exist_ok=True)
    index = f"{FOLDER}/gallery.json"
    cards = {}
    if os.path.exists(index):
        with open(index, encoding="utf-8") as f:
            cards = {card["name"]: card for card in json.load(f)}
    with open(f"{FOLDER}/order.json", encoding="utf-8") as f:
        order = json.load(f)
    unknown = [name for name in wanted if name not in order]
    if unknown:
        sys.exit(f"gallery.py: want one of {', '.join(order)}, have {unknown[0]}")
    for name in order:
        if name in wanted or (not wanted and not (name in cards and os.path.exists(f"{FOLDER}/{name}.tinygpt"))):
            with open(f"{FOLDER}/{name}.json", encoding="utf-8") as f:
                cards[name] = train(name, json.load(f))
            with open(index, "w", encoding="utf-8") as f:
                json.dump([cards[n] for n in order if n in cards], f, indent=1, ensure_ascii=False)
                f.write("\n")
    sizes = [card["bytes"] for card in cards.values()]
    if max(sizes) > MOST_BYTES or sum(sizes) > MOST_BYTES_ALL:
        sys.exit(f"gallery.py: want files of at most {MOST_BYTES} bytes, {MOST_BYTES_ALL} in all; have "
                 f"{max(sizes)} and {sum(sizes)}")
    print(f"{len(sizes)} models, {sum(sizes)} bytes")


main(sys.argv[1:])
