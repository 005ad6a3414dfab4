#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""licence.py [--fix]: every source file names its licence in its first lines, as SPDX asks.

Prints the files without the line, and fails if there are any; --fix writes it. Data, documents and
files that a package manager writes have none.
"""
import subprocess
import sys

LINE = "SPDX-License-Identifier: Apache-2.0"
COMMENT = {
    "/* %s */": (".c", ".h", ".def", ".css"),
    "// %s": (".ts", ".tsx", ".mjs", ".js", ".wgsl"),
    "# %s": (".py", ".sh", ".awk", "Makefile", ".ci/run"),
    "<!-- %s -->": (".html",),
}
# Beside the golden numbers lie files as other programs write them.
SKIPPED = ("test/golden/", "test/fuzz/corpus/")


def comment_of(name):
    if name.startswith(SKIPPED):
        return None
    return next((form for form, ends in COMMENT.items() if name.endswith(ends)), None)


def insert(text, line):
    """Behind a line that must stay the first: a script's interpreter, a document's type."""
    first, newline, rest = text.partition("\n")
    if first.startswith("#!") or first.lower().startswith("<!doctype"):
        return first + newline + line + "\n" + rest
    return line + "\n" + text


def main():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                           check=True).stdout.split("\n")
    lacking = 0
    for name in names:
        form = comment_of(name)
        if form is None:
            continue
        with open(name, encoding="utf-8") as f:
            text = f.read()
        if LINE in "\n".join(text.split("\n")[:3]):
            continue
        if "--fix" in sys.argv[1:]:
            with open(name, "w", encoding="utf-8") as f:
                f.write(insert(text, form % LINE))
        else:
            print(f"{name}: want \"{LINE}\" in its first lines")
            lacking += 1
    return 1 if lacking else 0


sys.exit(main())
