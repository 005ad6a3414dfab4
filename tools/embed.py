#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py DIST OUT: packs the built page into OUT/page.bin and OUT/page.def.

app/server/page_built.c says what the two files hold and compiles them into the program. Same input,
same output: files are sorted, and gzip writes no time. A compressed body is kept when it saves a
tenth; pictures and what is compressed already stay as they are. Names that begin with '.' or '_' are left out: they
are instructions for a static host, not parts of the page. So are names that would need escaping in
a URL or in C, with an error, since the page could not load them.
"""
import gzip
import hashlib
import os
import re
import sys


def files_below(top):
    for folder, subfolders, names in os.walk(top):
        subfolders[:] = sorted(s for s in subfolders if s[0] not in "._")
        for name in sorted(names):
            if name[0] not in "._":
                yield os.path.join(folder, name)


def main(dist, out):
    blob, lines = bytearray(), []

    def put(data):
        offset = len(blob)
        blob.extend(data)
        blob.extend(bytes(-len(blob) % 16))
        return offset, len(data)

    for path in files_below(dist):
        url = "/" + os.path.relpath(path, dist).replace(os.sep, "/")
        if not re.fullmatch(r"[A-Za-z0-9._~/-]+", url):
            sys.exit(f"embed.py: {url!r}: want letters, digits and . _ ~ - in a name")
        with open(path, "rb") as f:
            data = f.read()
        packed = gzip.compress(data, 9, mtime=0)
        plain = put(data)
        small = put(packed) if len(packed) < 0.9 * len(data) else (0, 0)
        tag = hashlib.sha256(data).hexdigest()[:32]
        numbers = ", ".join(map(str, plain + small))
        lines.append(f'TG_PAGE_FILE("{url}", "{tag}", {numbers})\n')
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "page.bin"), "wb") as f:
        f.write(blob)
    with open(os.path.join(out, "page.def"), "w", encoding="ascii") as f:
        f.writelines(lines)


if len(sys.argv) != 3:
    sys.exit(__doc__.splitlines()[0])
main(*sys.argv[1:])
