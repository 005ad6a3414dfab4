#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/tok/unicode_*.def from the Unicode database.

The database is the one of PyPI's unicodedata2, pinned to Unicode 16, which the reference
tokenizers' \\p{L} and \\p{N} follow; lower case is Python's own. Run it with the folder to write to:

    pip install unicodedata2==16.0.0 && tools/unicode.py src/tok
"""
import sys

import unicodedata2 as ucd

ALL = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
SPACE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
         0x205F, 0x3000}
OTHER, LETTER, NONSPACING, MARK, NUMBER, PUNCTUATION, BLANK, CONTROL = range(8)


def char_class(c):
    category = ucd.category(chr(c))
    if c in SPACE:
        return BLANK
    if category in ("Cc", "Cf", "Co"):
        return CONTROL
    if category == "Mn":
        return NONSPACING
    return {"L": LETTER, "M": MARK, "N": NUMBER, "P": PUNCTUATION}.get(category[0], OTHER)


def runs(value, codes=range(0x110000)):
    """[(first, last, value)] of neighbours with the same value; surrogates have none."""
    out = []
    for c in codes:
        v = value(c)
        if out and out[-1][1] == c - 1 and out[-1][2] == v:
            out[-1][1] = c
        else:
            out.append([c, c, v])
    return out


def lower_rows():
    """[first, last, step, delta]: every step-th code from first to last goes to itself + delta."""
    pairs = [(c, ord(chr(c).lower()) - c) for c in ALL if len(chr(c).lower()) == 1 and chr(c).lower() != chr(c)]
    rows = []
    for c, delta in pairs:
        last = rows[-1] if rows else None
        if last and last[3] == delta and last[1] == last[0] and c - last[0] <= 2:
            last[1], last[2] = c, c - last[0]
        elif last and last[3] == delta and last[1] != last[0] and c - last[1] == last[2]:
            last[1] = c
        else:
            rows.append([c, c, 1, delta])
    return rows


def case_rows(codes):
    """Every code, or every second one, from a first to a last, packed; they are in order."""
    rows = []
    for c in codes:
        last = rows[-1] if rows else None
        if last and last[0] == last[1] and c - last[0] <= 2:
            last[1], last[2] = c, c - last[0]
        elif last and last[0] != last[1] and c - last[1] == last[2]:
            last[1] = c
        else:
            rows.append([c, c, 1])
    assert all(b - a < 1 << 10 for a, b, _ in rows)
    return [a << 11 | (b - a) << 1 | (step - 1) for a, b, step in rows]


def by_second(composed):
    """Composites by (second, first), without both: where those of each second begin."""
    seconds, results = [], []
    for first, second, result in sorted(composed, key=lambda t: (t[1], ucd.normalize("NFD", chr(t[0])))):
        if not seconds or seconds[-1][0] != second:
            seconds.append((second, len(results)))
        results.append(result)
    return [*seconds, (0x110000, len(results))], results


def write(path, head, body):
    with open(path, "w", encoding="ascii") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n")
        f.write(f"/* {head}\n * Made by tools/unicode.py of Unicode {ucd.unidata_version}. */\n")
        for line in body:
            f.write(line + "\n")


def packed(numbers, form):
    """Numbers as lines of up to 100 columns."""
    line = ""
    for n in numbers:
        word = form.format(n) + ","
        if len(line) + len(word) > 100:
            yield line
            line = ""
        line += word
    if line:
        yield line


def units(text):
    raw = text.encode("utf-16-be")
    return [raw[i] << 8 | raw[i + 1] for i in range(0, len(raw), 2)]


def main():
    folder = sys.argv[1]
    classes = runs(lambda c: OTHER if 0xD800 <= c <= 0xDFFF else char_class(c))
    write(f"{folder}/unicode_class.def", "first code of each run << 3 | class",
          packed([first << 3 | v for first, _, v in classes], "{:#x}"))
    write(f"{folder}/unicode_lower.def", "ROW(first, last, step, delta)",
          [f"ROW({a:#x}, {b:#x}, {s}, {d})" for a, b, s, d in lower_rows()])
    # Capitals are those that go to lower case, and some that do not.
    small = [c for c in ALL if ucd.category(chr(c)) == "Ll"]
    capital = [c for c in ALL if ucd.category(chr(c)) in ("Lu", "Lt")]
    lowered = {c for a, b, s, _ in lower_rows() for c in range(a, b + 1, s)}
    assert all(ucd.category(chr(c)) in ("Lu", "Lt", "Nl", "So") for c in lowered)
    write(f"{folder}/unicode_small.def", "Ll: first << 11 | (last - first) << 1 | (step - 1)",
          packed(case_rows(small), "{:#x}"))
    write(f"{folder}/unicode_capital.def", "Lu and Lt that unicode_lower.def has not, likewise",
          packed(case_rows([c for c in capital if c not in lowered]), "{:#x}"))
    order = [r for r in runs(lambda c: ucd.combining(chr(c)), ALL) if r[2]]
    write(f"{folder}/unicode_order.def", "first << 15 | (last - first) << 8 | combining class",
          packed([a << 15 | (b - a) << 8 | v for a, b, v in order], "{:#x}"))

    # Hangul is computed. The full decomposition of a code, canonical first: NFD, then NFKD's where
    # it differs (bit 31 of the key). Neighbours whose decompositions are as long are a run.
    found, composed = [], []
    for c in ALL:
        if 0xAC00 <= c <= 0xD7A3:
            continue
        for form, bit in (("NFD", 0), ("NFKD", 1)):
            full = ucd.normalize(form, chr(c))
            if full == chr(c) or (bit and full == ucd.normalize("NFD", chr(c))):
                continue
            assert len(units(full)) < 32
            found.append((bit, c, units(full)))
        one = ucd.decomposition(chr(c)).split()
        if len(one) == 2 and not one[0].startswith("<") and ucd.normalize("NFC", chr(c)) == chr(c):
            composed.append((int(one[0], 16), int(one[1], 16), c))
    keys, counts, at, pool = [], [], [], []
    before = None
    for bit, c, u in sorted(found):
        if before != (bit, c - 1, len(u)) or counts[-1] == 255:
            if len(keys) % 16 == 0:
                at.append(len(pool))
            keys.append(bit << 31 | len(u) << 21 | c)
            counts.append(0)
        counts[-1] += 1
        pool.extend(u)
        before = (bit, c, len(u))
    assert len(pool) < 1 << 16
    write(f"{folder}/unicode_key.def", "compatibility << 31 | length << 21 | first code of a run, in "
          "this order of (compatibility, code)", packed(keys, "{:#x}"))
    write(f"{folder}/unicode_count.def", "how many codes each run of unicode_key.def has",
          packed(counts, "{}"))
    write(f"{folder}/unicode_at.def", "where in the pool each 16th of these runs begins", packed(at, "{}"))
    # Bytes that are alike lie side by side, which a compressed module of the web is smaller for.
    write(f"{folder}/unicode_pool.def", "decompositions in UTF-16: all high bytes, then all low ones",
          packed([u >> 8 for u in pool] + [u & 0xff for u in pool], "{}"))
    seconds, results = by_second(composed)
    write(f"{folder}/unicode_second.def", "ROW(second, at): where what ends with it begins, and the end",
          [f"ROW({second:#x}, {at})" for second, at in seconds])
    write(f"{folder}/unicode_compose.def", "what ends with each second, by what it "
          "begins with", packed(results, "{:#x}"))


main()
