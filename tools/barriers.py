#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Demands a barrier between two accesses of workgroup memory by different threads, in all WGSL.

An adapter that computes on the CPU may run a workgroup in lock-step, and then a missing barrier
changes no result. So the text is walked: every entry point, calls followed, branches joined, loops
gone through twice and at least once. What was accessed since the last barrier is remembered; a read
and a write of different statements that meet are a fault, unless both name the same element by the
same words, which then is the thread's own: no constant. What stands under a condition on the
thread's number, as in a sum by halves, is one statement.

The texts are checked, and so are those without one of their barriers, each in its turn: all of
these must fail. Texts of phases (tg_grid of ir/op.h) have no entry point and are left out: single.c
writes the kernel that calls them, with the memory that they share.
"""
import functools
import glob
import itertools
import os
import re
import sys

TOKEN = re.compile(r"\w+|[-+*/%&|^]=|[=!<>]=|&&|\|\||->|\S")
ASSIGN = re.compile(r"([-+*/%&|^]?=)$")
SHARED = re.compile(r"var<workgroup>\s*(\w+)")
OWN = re.compile(r"(lane|tid)( % \d+u)? (<|==) \w+$")
BARRIER = "workgroupBarrier"
REDUCE = ("src/ops/reduce.wgsl", "src/ops/reduce_subgroups.wgsl")
# x_floats.wgsl and x_int8.wgsl define the same functions: x.wgsl is walked with each.
FORMS = ("_floats", "_int8")


def close(t, i):
    """The place of the bracket that closes the one at i."""
    pairs, depth = {"(": ")", "[": "]", "{": "}"}, 0
    for k in range(i, len(t)):
        depth += (t[k] == t[i]) - (t[k] == pairs[t[i]])
        if depth == 0:
            return k
    raise ValueError("unbalanced text")


def split(t, at=","):
    """Pieces between commas outside of all brackets."""
    out, depth = [[]], 0
    for token in t:
        depth += (token in "([{") - (token in ")]}")
        if token == at and depth == 0:
            out.append([])
        else:
            out[-1].append(token)
    return out


@functools.cache
def functions(text):
    """name: (its parameters, its body's tokens, is it an entry point)."""
    t = TOKEN.findall(re.sub(r"//[^\n]*", "", text))
    out = {}
    for i, token in enumerate(t):
        if token != "fn":
            continue
        end = close(t, i + 2)
        params = [p[p.index(":") - 1] for p in split(t[i + 3:end]) if ":" in p]
        body = t.index("{", end)
        out[t[i + 1]] = params, t[body:close(t, body) + 1], "compute" in t[max(0, i - 8):i]
    return out


def joined(*states):
    alive = [s for s in states if s is not None]
    return frozenset().union(*alive) if alive else None


class Walk:
    """One entry point; faults are (variable, first access, second access)."""

    def __init__(self, known, shared):
        self.known, self.shared, self.faults = known, shared, set()
        self.count, self.one = 0, False
        # Functions that name no workgroup memory and no barrier, nor call one that does.
        words = shared | {BARRIER, "workgroupUniformLoad"}
        self.quiet = {name for name, (_, body, _) in known.items() if words.isdisjoint(body)}
        while loud := {n for n in self.quiet if (known.keys() - self.quiet) & set(known[n][1])}:
            self.quiet -= loud

    def access(self, state, var, writes, index, inst):
        for other in state:
            same = other[2] == index and re.search(r"[a-z_]", re.sub(r"\b\d+u?\b", "", index))
            if other[0] == var and writes != other[1] and other[3] != inst and not same:
                self.faults.add((var, other[2], index))
        return state | {(var, writes, index, inst)}

    def expression(self, t, state, names):
        """Accesses and calls, what is assigned to last."""
        self.count += not self.one
        inst, target = self.count, None
        i = 0
        while i < len(t):
            if t[i] in self.known and t[i + 1:i + 2] == ["("]:
                end = close(t, i + 1)
                args = [[names.get(x, x) for x in a] for a in split(t[i + 2:end])]
                state = self.expression(t[i + 2:end], state, names)
                params, body, _ = self.known[t[i]]
                if t[i] in self.quiet and not any(x in self.shared for a in args for x in a):
                    i = end + 1
                    continue
                state, exits = self.block(body, state, dict(zip(params, map(" ".join, args))), [])
                state = joined(state, *exits) or frozenset()
                i = end
            elif t[i] in (BARRIER, "workgroupUniformLoad"):
                i = close(t, i + 1)
                state = frozenset()
            elif names.get(t[i], t[i]) in self.shared:
                var, end = names.get(t[i], t[i]), i
                if t[i + 1:i + 2] == ["["]:
                    end = close(t, i + 1)
                index = " ".join(names.get(x, x) for x in t[i + 2:end])
                if i == 0 and end + 1 < len(t) and ASSIGN.match(t[end + 1]):
                    target = var, index
                else:
                    state = self.access(state, var, False, index, inst)
            i += 1
        return self.access(state, target[0], True, target[1], inst) if target else state

    def block(self, t, state, names, breaks):
        """Of the tokens { .. }: the state behind them, None where none comes there, and those of
        the returns."""
        i, exits = 1, []
        while i < len(t) - 1 and state is not None:
            if t[i] == "if":
                state, out, end = self.branch(t, i, state, names, breaks)
                exits += out
            elif t[i] == "switch":
                state, out, end = self.cases(t, i, state, names)
                exits += out
            elif t[i] in ("for", "while", "loop"):
                body = t.index("{", close(t, i + 1) if t[i + 1] == "(" else i)
                end, head = close(t, body), t[i + 2:body - 1]
                for turn in range(2):
                    leaves = []
                    state = self.expression(head, state, names)
                    state, out = self.block(t[body:end + 1], state, names, leaves)
                    exits += out
                    state = joined(state, *(leaves * turn)) or frozenset()
            else:
                end = t.index(";", i)
                state = self.expression(t[i:end], state, names)
                if t[i] == "return":
                    exits.append(state)
                elif t[i] in ("break", "continue"):
                    breaks.append(state)
                if t[i] in ("return", "break", "continue"):
                    state = None
            i = end + 1
        return state, exits

    def cases(self, t, i, state, names):
        """One of them, since WGSL has a default in every switch; a break leaves it."""
        at = t.index("{", i)
        end, before = close(t, at), self.expression(t[i + 1:at], state, names)
        ways, exits = [], []
        while "{" in t[at + 1:end]:
            at = t.index("{", at + 1)
            after, out = self.block(t[at:close(t, at) + 1], before, names, ways)
            ways.append(after)
            exits += out
            at = close(t, at)
        return joined(*ways), exits, end

    def branch(self, t, i, state, names, breaks):
        end = close(t, i + 1)
        before = self.expression(t[i + 2:end], state, names)
        then, one = close(t, end + 1), self.one
        self.count += not one
        self.one = one or bool(OWN.match(" ".join(names.get(x, x) for x in t[i + 2:end])))
        after, exits = self.block(t[end + 1:then + 1], before, names, breaks)
        self.one = one
        other, out = before, []
        if t[then + 1:then + 3] == ["else", "if"]:
            other, out, then = self.branch(t, then + 2, before, names, breaks)
        elif t[then + 1] == "else":
            end, then = then + 2, close(t, then + 2)
            other, out = self.block(t[end:then + 1], before, names, breaks)
        return joined(after, other), exits + out, then


def room(path):
    """The folder of the op that a text belongs to; src/ops for what is every op's."""
    return "/".join(os.path.dirname(path).split("/")[:3])


def check(texts, changed="src/ops/reduce.wgsl"):
    """texts: path: WGSL. Yields faults as (path, entry point, variable, accesses), of what the
    changed text is a part of."""
    for path, text in texts.items():
        if room(changed) not in ("src/ops", room(path)):
            continue
        near = [p for p in texts if p != path and "reduce" not in p and
                room(p) in ("src/ops", room(path))]
        forms = [p for p in near if p in [path.replace(".wgsl", f"{form}.wgsl") for form in FORMS]]
        for reduce, own in itertools.product(REDUCE, forms or [None]):
            known, shared = {}, set()
            for p in (reduce, *(p for p in near if p not in forms or p == own), path):
                if p == path or room(path) != "src/ops":
                    known.update(functions(texts[p]))
                    shared.update(SHARED.findall(texts[p]))
            for name, (params, body, is_entry) in known.items():
                if is_entry and name in functions(text):
                    walk = Walk(known, shared)
                    walk.block(body, frozenset(), {p: p for p in params}, [])
                    yield from ((path, name, *f) for f in walk.faults)


def main():
    texts = {}
    for path in sorted(glob.glob("src/ops/**/*.wgsl", recursive=True)):
        if path.endswith(("_phase.wgsl", "_phase_once.wgsl")):
            continue
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
    faults = [f"{p}, {name}: no barrier between {var}[{a}] and {var}[{b}]"
              for p, name, var, a, b in sorted(set(check(texts)))]
    n = 0
    for path, text in texts.items():
        for m in re.finditer(BARRIER + r"\(\);", text):
            n += 1
            if not any(check({**texts, path: text[:m.start()] + text[m.end():]}, path)):
                line = text[:m.start()].count("\n") + 1
                faults.append(f"{path}:{line}: nothing is wrong without this barrier")
    print("\n".join(faults) if faults else f"{n} barriers, each needed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
