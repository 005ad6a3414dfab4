#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes or imports whom.

C: a file may include its own top folder and folders of a smaller number, which are those of LEVEL:
rooms of the same number never include each other, and headers never include each other in a circle. app/ sees include/tinygpt.h alone (its own files,
too, and the generated page.def).

TypeScript, web/src:
  lib      never imports ui; a worker's script is started by its address and never imported (its
           messages' types may be)
  ui       imports of lib only what the package gives to anybody: PUBLIC
  ui/*     the files of ui itself import no room; parts imports only those; shell is imported by
           main.tsx alone; logic (.ts) never imports drawing (.tsx), whose types it may use
  all      no circle of files, types counted, too
"""
import os
import re
import sys

LEVEL = {"base": 0, "dtype": 0, "simd": 0, "ir": 1, "io": 1, "tok": 1, "ops": 2, "chat": 2, "model": 3,
         "plan": 3, "backend": 4, "runtime": 5, "load": 6, "engine": 7, "training": 8,
         "inspect": 9, "convert": 10, "api": 11}
# What a folder of the same number may use all the same: simd and io are built on base.
ALSO = {("dtype", "base"), ("simd", "base"), ("simd", "dtype"), ("io", "base"), ("tok", "base")}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

WEB = "web/src"
PUBLIC = {f"lib/{name}.ts" for name in ("index", "types", "errors", "software", "models/index",
                                        "store/index")}
# import ... from './x', export ... from './x', import './x', import('./x'); 1 is "type" if it is one.
IMPORT = re.compile(r"""^\s*(?:import|export)\s+(type\s+)?[^;'"]*?from\s*['"](\.[^'"]+)['"]"""
                    r"""|^\s*import\s*['"](\.[^'"]+)['"]|\bimport\(\s*['"](\.[^'"]+)['"]""", re.M)


def included(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = INCLUDE.match(line)
            if found:
                yield number, found.group(1)


def c_faults():
    for root, _, files in os.walk("src"):
        for name in sorted(files):
            if not name.endswith((".c", ".h", ".def")):
                continue
            path = os.path.join(root, name)
            own = path.split(os.sep)[1]
            for number, target in included(path):
                if target in ("tinygpt.h", "simd_ops.h"):
                    continue
                other = target.split("/")[0]
                if other == own or (own, other) in ALSO:
                    continue
                if other not in LEVEL or LEVEL[other] >= LEVEL[own]:
                    yield f"{path}:{number}: {own}/ may not include {target}"
    for root, _, files in os.walk("app"):
        for name in sorted(files):
            if not name.endswith((".c", ".h")):
                continue
            path = os.path.join(root, name)
            for number, target in included(path):
                own = os.path.exists(os.path.join("app", target))
                if not own and target not in ("tinygpt.h", "page.def"):
                    yield f"{path}:{number}: app/ may only include tinygpt.h, has {target}"


def imports(path):
    """Of a file of web/src: line, the file that is meant (relative to web/src), whether it is types
    alone. Packages and files that are no scripts (CSS) are left out."""
    with open(os.path.join(WEB, path), encoding="utf-8") as f:
        text = f.read()
    for found in IMPORT.finditer(text):
        target = next(t for t in found.groups()[1:] if t)
        base = os.path.normpath(os.path.join(os.path.dirname(path), target))
        stem = base[:-3] if base.endswith(".js") else base
        for name in (base, f"{stem}.ts", f"{stem}.tsx", f"{base}/index.ts"):
            if name.endswith((".ts", ".tsx")) and os.path.isfile(os.path.join(WEB, name)):
                line = text.count("\n", 0, found.end()) + 1
                yield line, name, bool(found.group(1))
                break


def room(path):
    """lib, ui (its own files), ui/parts ..."""
    folders = path.split("/")[:-1]
    return "/".join(folders[:2]) if folders[:1] == ["ui"] else folders[0] if folders else ""


def refused(path, target, types):
    """Why this import may not be; '' if it may."""
    own, other = room(path), room(target)
    if own == "lib" and other.startswith("ui"):
        return "the package may not import the page"
    if re.search(r"\.worker\.ts$", target) and not types:
        return "a worker is started by its address, not imported"
    if own.startswith("ui") and other == "lib" and target not in PUBLIC:
        return "the page may import of the package only what everybody gets"
    if path == "ui/main.tsx" or own == other:
        return ""
    if other == "ui/shell":
        return "only main.tsx may import the shell"
    if own in ("ui", "ui/parts") and other not in ("ui", "lib"):
        return f"{own}/ is beneath all rooms and may not import {other}/"
    return ""


def circles(edges):
    """The circles of a graph, each once: strongly connected parts (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in edges[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            part = stack[at:]
            del stack[at:]
            if len(part) > 1:
                found.append(sorted(part))

    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def header_faults():
    """Headers of src, and lists that they include, never include each other in a circle."""
    edges = {}
    for root, _, files in os.walk("src"):
        for name in files:
            if name.endswith((".h", ".def")):
                path = os.path.join(root, name)
                edges[path] = [os.path.join("src", target) for _, target in included(path)]
    edges = {path: [t for t in targets if t in edges] for path, targets in edges.items()}
    for circle in circles(edges):
        yield f"src: these headers include each other in a circle: {', '.join(circle)}"


def web_faults():
    edges = {}
    for root, _, files in os.walk(WEB):
        for name in sorted(files):
            if not name.endswith((".ts", ".tsx")):
                continue
            path = os.path.relpath(os.path.join(root, name), WEB).replace(os.sep, "/")
            edges[path] = []
            for number, target, types in imports(path):
                edges[path].append(target)
                # A test may look behind every door.
                if ".test." in name or "/testing/" in path:
                    continue
                why = refused(path, target, types)
                if not why and path.endswith(".ts") and target.endswith(".tsx") and not types:
                    why = "logic (.ts) may not import drawing (.tsx)"
                if why:
                    yield f"{WEB}/{path}:{number}: {why}: {target}"
    for circle in circles(edges):
        yield f"{WEB}: these files import each other in a circle: {', '.join(circle)}"


def main():
    faults = [*c_faults(), *header_faults(), *web_faults()]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
