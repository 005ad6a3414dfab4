# SPDX-License-Identifier: Apache-2.0
"""The 2,000 strings that the tokenizers are tested on; test/unit/tok/test_tok_golden.c makes the same.

String i is fragment i of test/golden/tok/strings.json; beyond those it is a few parts drawn by
splitmix64 from state i: fragments, repeated fragments, characters of many scripts, ASCII.
"""

import json
import pathlib

COUNT = 2000
MASK = (1 << 64) - 1
SOURCE = pathlib.Path(__file__).parents[2] / "test/golden/tok/strings.json"


class Draws:
    def __init__(self, state):
        self.state = state

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        return (z ^ z >> 31) % n


def strings():
    source = json.loads(SOURCE.read_text(encoding="ascii"))
    fragments, ranges = source["fragments"], source["ranges"]
    out = list(fragments)
    for i in range(len(fragments), COUNT):
        r = Draws(i)
        text = ""
        for _ in range(1 + r.below(8)):
            kind = r.below(8)
            if kind < 5:
                text += fragments[r.below(len(fragments))]
            elif kind == 5:
                times = 1 + r.below(8)
                text += fragments[r.below(len(fragments))] * times
            elif kind == 6:
                for _ in range(1 + r.below(6)):
                    low, high = ranges[r.below(len(ranges))]
                    text += chr(low + r.below(high - low + 1))
            else:
                for _ in range(1 + r.below(12)):
                    text += chr(32 + r.below(95))
        out.append(text)
    return out


def hash_ids(ids):
    """FNV-1a of 32 bits over the ids' bytes, lowest first."""
    h = 0x811C9DC5
    for i in ids:
        for byte in int(i).to_bytes(4, "little"):
            h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return h
