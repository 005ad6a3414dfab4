#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py - the package in a real browser on a real card, in one go: training and a model file.

    make web-lib && python3 bench/browser/run.py --model MODEL.gguf --out result.json

Needs Python and a Chromium, no Node and no network: a page is served that does all the work and
posts what it measured. Blocks of both devices come in turns (bench.js), so that a ratio is of
neighbours in time. Before anything is timed every device's shaders are held against the references,
and a GPU's greedy tokens against the CPU's. An adapter that is software is refused, unless
--software says that this is a test of the script.
"""
import argparse
import json
import mimetypes
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

HERE = os.path.dirname(os.path.abspath(__file__))
WEB = os.path.join(HERE, "..", "..", "web")
# What Chromium wants to offer a card that it has no window on; the last one is for f16 on NVIDIA.
CARD = ("--enable-unsafe-webgpu", "--use-angle=vulkan", "--enable-features=Vulkan",
        "--ignore-gpu-blocklist", "--disable-vulkan-surface", "--disable-gpu-sandbox",
        "--enable-dawn-features=vulkan_enable_f16_on_nvidia")
SOFTWARE = ("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
            "--enable-features=Vulkan", "--enable-dawn-features=disable_workgroup_init")


class Site(SimpleHTTPRequestHandler):
    """The page, the package's bundle and modules, and one model; what is posted goes to `take`."""

    model = ""
    take = None

    def translate_path(self, path):
        path = path.split("?")[0].lstrip("/")
        if path == "model":
            return self.model
        folder = WEB if path.split("/")[0] in ("bundle", "wasm") else HERE
        return os.path.join(folder, os.path.normpath(path or "index.html"))

    def guess_type(self, path):
        return "application/wasm" if path.endswith(".wasm") else mimetypes.guess_type(path)[0] or \
            "application/octet-stream"

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        type(self).take(json.loads(body))

    def log_message(self, *args):
        pass


def show(row):
    """A line for each thing that the page has posted."""
    kind = row.pop("kind")
    numbers = {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}
    print(f"{kind:8}", json.dumps(numbers), flush=True)


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--chromium", default=shutil.which("chromium") or "chromium")
    p.add_argument("--presets", default="small,medium,large,xl,huge", help="'' for none")
    p.add_argument("--steps", type=int, default=40, help="of a block")
    p.add_argument("--rounds", type=int, default=5, help="blocks of each device")
    p.add_argument("--model", default="", help="a .gguf")
    p.add_argument("--prompt", type=int, default=512, help="tokens that are read")
    p.add_argument("--tokens", type=int, default=128, help="tokens that are written")
    p.add_argument("--threads", type=int, default=0, help="of the CPU's build; 0: as the page takes")
    p.add_argument("--ops", default="", help="part of the names of the ops that are checked before")
    p.add_argument("--levers", default="", help="as --levers of the program, for the GPU")
    p.add_argument("--software", action="store_true", help="SwiftShader, to try this script")
    p.add_argument("--limit", type=int, default=1800, help="seconds")
    p.add_argument("--out", default="", help="all rows as JSON")
    p.add_argument("flags", nargs="*", help="of Chromium, behind --")
    return p.parse_args()


def main():
    o = options()
    rows, done = [], threading.Event()

    def take(row):
        rows.append(dict(row))
        if row["kind"] in ("end", "error"):
            done.set()
        show(row)

    Site.model, Site.take = os.path.abspath(o.model) if o.model else "", staticmethod(take)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    query = {k: getattr(o, k) for k in ("presets", "steps", "rounds", "prompt", "tokens", "threads",
                                        "ops", "levers")}
    query |= {"model": 1 if o.model else "", "software": 1 if o.software else ""}
    url = f"http://127.0.0.1:{server.server_port}/index.html?{urlencode(query)}"
    profile = tempfile.mkdtemp(prefix="tinygpt-browser-")
    command = [o.chromium, "--headless=new", "--no-sandbox", "--no-first-run",
               f"--user-data-dir={profile}", *(SOFTWARE if o.software else CARD), *o.flags, url]
    with open(os.path.join(profile, "stderr.txt"), "wb") as log:
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)
    in_time = done.wait(o.limit)
    browser.terminate()
    browser.wait()
    server.shutdown()
    if not in_time:
        with open(os.path.join(profile, "stderr.txt"), encoding="utf8", errors="replace") as log:
            print("want an end, have none; Chromium says:", log.read()[-2000:], file=sys.stderr)
    shutil.rmtree(profile, ignore_errors=True)
    if o.out:
        with open(o.out, "w", encoding="utf8") as out:
            json.dump(rows, out, indent=1)
    return 0 if in_time and rows[-1]["kind"] == "end" else 1


if __name__ == "__main__":
    sys.exit(main())
