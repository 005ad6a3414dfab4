# SPDX-License-Identifier: Apache-2.0
"""The interpreter of chat templates against jinja2, in the environment that transformers makes.

    jinja.py                 writes test/golden/chat/jinja.json: our own small templates, one construct each, and
                             what jinja2 makes of them
    jinja.py FOLDER ..       compares on all *.jinja files below these folders, and the templates in modules named
                             chat_templates.py, with every conversation below. Such templates are third-party programs
                             and stay where they are: the sources of PyPI's llama-cpp-python, and the wheels axolotl,
                             trl and unsloth, unpacked, have 190 of them.
    jinja.py --fuzz SECONDS [SEED]   random expressions and templates

Wants jinja2 and transformers. Exit code 1: something differs.
"""

import ast
import collections
import datetime
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import time

from transformers.utils import chat_template_utils

TOP = pathlib.Path(__file__).parents[2]
GOLDEN = TOP / "test/golden/chat/jinja.json"
TODAY = datetime.datetime(2026, 11, 9)


class Today(datetime.datetime):
    @classmethod
    def now(cls):
        return TODAY


chat_template_utils.datetime = Today


def reference(text, variables):
    """What jinja2 renders; None: an error."""
    try:
        return chat_template_utils._compile_jinja_template(text).render(**variables)
    except Exception as e:
        reference.error = f"{type(e).__name__}: {e}"
        return None


class Driver:
    def __init__(self):
        sources = [*TOP.glob("src/chat/jinja_*.c"), TOP / "src/tok/unicode/unicode.c", TOP / "tools/oracle/jinja_driver.c"]
        sources += [p for p in TOP.glob("src/base/*.c") if "wasm" not in p.name]
        self.program = TOP / "build/oracle/jinja_driver"
        self.program.parent.mkdir(parents=True, exist_ok=True)
        newest = max(p.stat().st_mtime for p in [*sources, *TOP.glob("src/chat/*.h")])
        if not self.program.exists() or self.program.stat().st_mtime < newest:
            subprocess.run(["cc", "-std=c11", "-O1", "-g", "-w", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DTG_DEBUG",
                            "-Isrc", "-Iinclude", *map(str, sources), "-lpthread", "-lm", "-o", str(self.program)], check=True, cwd=TOP)
        self.pipe = None

    def run(self, text, variables):
        """(status, text or message); a death is an error of ours."""
        if self.pipe is None:
            self.pipe = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        template, data = text.encode(), json.dumps(variables, ensure_ascii=False).encode()
        self.pipe.stdin.write(b"%d %d\n" % (len(template), len(data)) + template + data)
        self.pipe.stdin.flush()
        head = self.pipe.stdout.readline().split()
        if len(head) != 2:
            pathlib.Path("/tmp/jinja-crash.json").write_text(json.dumps([text, variables]))
            sys.exit(f"the interpreter died of {text!r} (kept in /tmp/jinja-crash.json)")
        return int(head[0]), self.pipe.stdout.read(int(head[1])).decode(errors="replace")


# ----------------------------------------------------------------------------------- conversations

def turn(role, content, **more):
    return {"role": role, "content": content, **more}


TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a place: \"now\" & <here>.",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "A town, such as Zürich"},
        "days": {"type": "integer", "description": "How many", "default": 1, "enum": [1, 2, 7]},
        "units": {"type": ["string", "null"], "enum": ["C", "F"]},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
        "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["place"]}}},
    {"type": "function", "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "call_0001", "type": "function", "function": {"name": "get_weather", "arguments": {
    "place": "Zürich", "days": 2, "deep": {"a": [1, 2.5, None, True, "x\ny"]}}}}
CALL_TEXT = {"id": "call_0002", "type": "function", "function": {"name": "now", "arguments": "{\"zone\": \"UTC\"}"}}
S = turn("system", " Be brief. ")
U = [turn("user", t) for t in ("\n Hi <|im_end|> there \n", "Write <eos> twice.", "And <think>now</think>?", "", "häßlich ÄÖ 漢字 🙂\r\n\tx")]
A = [turn("assistant", t) for t in ("<think>\nA greeting.\n</think>\n\nHello! ", " plain\n", "no\n</think>\n\n\n yes</think> \n", "")]
THINKING = turn("assistant", "It rains.", reasoning_content="So the tool says.\nRain.", thinking="So the tool says.\nRain.")
CALLS = {"role": "assistant", "tool_calls": [CALL]}
CALLS_SAYING = turn("assistant", "Let me look.", tool_calls=[CALL, CALL_TEXT], reasoning_content="I need it.", thinking="I need it.")
RESULT = turn("tool", "{\"rain\": true}", name="get_weather", tool_call_id="call_0001")
RESULT2 = turn("tool", "12:00", name="now", tool_call_id="call_0002")
PARTS = turn("user", [{"type": "text", "text": "What is it?"}, {"type": "text", "text": " Say."}])
IMAGE = turn("user", [{"type": "image"}, {"type": "text", "text": "What is it?"}])
CONVERSATIONS = [
    ([U[0]], {}), ([S, U[0]], {}), ([U[0], A[0], U[1]], {}), ([S, U[0], A[0], U[1]], {}), ([U[0], U[1]], {}),
    ([turn("system", ""), U[0]], {}), ([U[0], A[1], U[1], A[0], U[2]], {}), ([U[0], A[2], U[1]], {}), ([U[3]], {}),
    ([A[1], U[0]], {}), ([S, U[4], A[3], U[4]], {}), ([U[0], A[0]], {"add_generation_prompt": False}), ([], {}),
    ([S, U[1]], {"tools": TOOLS}), ([U[1]], {"tools": TOOLS}), ([S, U[1], CALLS, RESULT], {"tools": TOOLS}),
    ([U[1], CALLS_SAYING, RESULT, RESULT2, THINKING, U[2]], {"tools": TOOLS}),
    ([U[1], CALLS_SAYING, RESULT, RESULT2], {"tools": TOOLS, "enable_thinking": True}),
    ([S, U[0], THINKING, U[1]], {"enable_thinking": False}), ([U[0]], {"enable_thinking": True}),
    ([S, U[0], A[1], U[1]], {"thinking": True}), ([PARTS, A[1], IMAGE], {}), ([U[1], A[1], S, U[2]], {}),
    ([turn("developer", "Obey."), U[0]], {"reasoning_effort": "high"}), ([turn("stranger", "x"), U[0]], {}),
    ([S, U[0], A[1], U[1], A[1], U[2]], {"date_string": "1 Jan 2030", "documents": [{"title": "T", "text": "words"}]}),
]


def variables(messages, more):
    messages = [{k: v for k, v in m.items() if v is not None} for m in messages]
    return {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True,
            "bos_token": "<BOS>", "eos_token": "<EOS>", **more}


# ------------------------------------------------------------------------------------- templates

def strings_of_python(text):
    names = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                value = eval(compile(ast.Expression(node.value), "", "eval"), {"__builtins__": {}}, names)
            except Exception:
                continue
            names[node.targets[0].id] = value
            if isinstance(value, str) and "{%" in value:
                yield node.targets[0].id, value


def collect(folders):
    seen = set()
    for folder in map(pathlib.Path, folders):
        found = [(p.name, p.read_text(encoding="utf-8")) for p in sorted(folder.rglob("*.jinja"))]
        for path in sorted(folder.rglob("chat_templates.py")):
            found += strings_of_python(path.read_text(encoding="utf-8"))
        for name, text in found:
            key = hashlib.sha256(text.encode()).digest()
            if key not in seen:
                seen.add(key)
                yield name, text


def compare(driver, templates):
    rows, refused, wrong = collections.Counter(), collections.Counter(), 0
    for name, text in templates:
        bad = set()
        for i, (messages, more) in enumerate(CONVERSATIONS):
            given = variables(messages, more)
            want, (status, have) = reference(text, given), driver.run(text, given)
            if status == 0 and have == want:
                rows["equal"] += 1
            elif status != 0 and want is None:
                rows["both refuse"] += 1
            elif status != 0 and "not known here" in have:
                rows["refused by name"] += 1
                bad.add(have.split("not known here: ")[1])
            else:
                wrong += 1
                same = next((k for k, (x, y) in enumerate(zip(want or "", have)) if x != y), 0) if status == 0 else 0
                print(f"{name}, conversation {i}, from character {same}:\n    want "
                      f"{reference.error if want is None else repr(want[same:same + 100])}\n    have {status} "
                      f"{have[same:same + 100]!r}", file=sys.stderr)
                bad.add("")
        for why in bad or {"all equal"}:
            refused[why] += 1
    print(f"{sum(1 for _ in templates)} templates x {len(CONVERSATIONS)} conversations:", dict(rows), "wrong", wrong)
    print("templates:", dict(refused))
    return wrong


# ------------------------------------------------------------------------------------------ fuzz

TEXTS = ["''", "'a'", "'Hello wOrld'", "' x\\ny '", "'a,b,,c'", "'ÄÖßé'", "'<b>&'", "'12'", "'1.5'", "'漢🙂'", "'isn\\'t'", "'A.b-c d'"]
NAMES = ["s", "l", "d", "n", "f", "t", "z", "missing", "m", "messages", "none", "ds"]
VALUES = {"s": " Hello <World>\nnew line ", "l": [3, 1, 2, "x", None], "d": {"a": 1, "b": [1, 2], "items": 3, "é": "ü"}, "n": 7,
          "f": 2.5, "t": True, "z": "", "m": {"role": "user", "content": "Hi"}, "messages": CONVERSATIONS[16][0], "ds": {"B": 1, "a": 2, "C": 0}}
FILTERS = ["trim", "upper", "lower", "title", "capitalize", "length", "list", "first", "last", "string", "int", "float", "tojson", "safe",
           "reverse", "unique", "sort", "dictsort", "items", "default('q')", "default('q', true)", "join", "join(', ')", "replace('l', 'L')",
           "replace('', '-')", "indent", "indent(2, true)", "indent(1, true, true)", "map('upper')", "map(attribute='role')", "select",
           "select('string')", "reject('none')", "selectattr('role', 'equalto', 'user')", "rejectattr('tool_calls', 'defined')", "escape",
           "tojson(indent=2)", "tojson(separators=(',', ':'))", "tojson(sort_keys=true)", "tojson(ensure_ascii=true)", "sum", "min", "max", "abs",
           "count", "d('e')", "sort(reverse=true)", "map('tojson')", "map('length')", "trim('x ')", "sort(attribute='role')",
           "dictsort(by='value')", "dictsort(true)", "unique(true)", "selectattr('content')", "map('default', 'y')", "e"]
TESTS = ["defined", "undefined", "none", "true", "false", "boolean", "integer", "float", "number", "string", "mapping", "iterable", "sequence",
         "odd", "even", "lower", "upper", "callable", "divisibleby(3)", "divisibleby 2", "eq(7)", "in([1, 'a', 7])", "gt 2", "sameas none"]
METHODS = [".strip()", ".lstrip()", ".rstrip('\\n ')", ".split()", ".split(' ')", ".split('l', 1)", ".rsplit('l', 1)", ".rsplit(None, 1)",
           ".split(None, 1)", ".splitlines()", ".startswith('H')", ".endswith(('a', ' '))", ".upper()", ".lower()", ".title()", ".capitalize()",
           ".replace('l', '')", ".find('l')", ".rfind('o')", ".count('l')", ".index('a')", ".get('a')", ".get('zz', 4)", ".keys()", ".values()",
           ".items()", ".items", ".a", ".b", ".role", "['a']", "['items']", "[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[1:3]", "[::2]", "[5:1:-2]",
           "['role']", ".isdigit()", ".isalpha()", ".isupper()", ".isspace()", ".join(['x', 'y'])", ".removeprefix('H')", ".partition('l')",
           ".pop()", ".append(1)", ".copy()", ".format(1, a=2)", "[-3:]", "[:2]", "[::-2]", ".rpartition('l')"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


def expression(rng, depth):
    k = rng.random()
    if depth <= 0 or k < 0.15:
        return rng.choice([*TEXTS, *NAMES, *NAMES, "0", "1", "2", "-3", "2.5", "0.1", "1e20", "true", "[]", "{}", "()", "(1,)"])
    e = lambda: expression(rng, depth - 1)
    if k < 0.35:
        return f"{e()} {rng.choice(BINARY)} {e()}"
    if k < 0.5:
        return f"{e()} | {rng.choice(FILTERS)}"
    if k < 0.6:
        return f"{e()} is {rng.choice(['', 'not '])}{rng.choice(TESTS)}"
    if k < 0.75:
        return f"({e()}){rng.choice(METHODS)}"
    if k < 0.8:
        return f"[{e()}, {e()}]"
    if k < 0.84:
        return "{'k': " + e() + ", " + rng.choice(TEXTS) + ": " + e() + "}"
    if k < 0.88:
        return f"({e()} if {e()} else {e()})"
    if k < 0.91:
        return f"range({rng.randint(-2, 6)}, {rng.randint(-2, 6)}, {rng.choice([1, 2, -1, -2])})"
    if k < 0.94:
        return f"not {e()}"
    if k < 0.96:
        return f"-{e()}"
    return f"({e()})"


def block(rng, depth):
    """Statements with the white space that Jinja removes or keeps."""
    o = lambda: rng.choice(["{%", "{%-", "{%+"])
    c = lambda: rng.choice(["%}", "-%}", "+%}", "%}"])
    gap = lambda: rng.choice(["", " ", "\n", "  \n  ", "x", " x\n", "\n\n"])
    e = lambda: expression(rng, 2)
    k = rng.random()
    if depth <= 0 or k < 0.3:
        return gap() + rng.choice(["{{", "{{-"]) + " " + e() + " " + rng.choice(["}}", "-}}"]) + gap()
    b = lambda: block(rng, depth - 1)
    if k < 0.42:
        return f"{gap()}{o()} if {e()} {c()}{b()}{o()} elif {e()} {c()}{b()}{o()} else {c()}{b()}{o()} endif {c()}{gap()}"
    if k < 0.56:
        over = rng.choice(["l", "messages", "range(4)", "d.items()", "s", e()])
        inside = rng.choice(["{{ loop.index }}", "{{ x }}", "{{ loop.last }}{{ loop.previtem }}", "{% if loop.first %}{% continue %}{% endif %}{{ x is string }}",
                             "{% set v = x %}{{ v }}", "{% if loop.index0 == 2 %}{% break %}{% endif %}", "{% set ns.a = loop.revindex %}"])
        return (f"{gap()}{o()} for x in {over}{rng.choice(['', ' if x', ' if x is string'])} {c()}{b()}{inside}{b()}{o()} else {c()}e"
                f"{o()} endfor {c()}{gap()}{{{{ x }}}}{{{{ ns.a }}}}{{{{ v }}}}")
    if k < 0.66:
        return f"{gap()}{o()} set v = {e()} {c()}{b()}{{{{ v | string | length }}}}"
    if k < 0.72:
        return f"{o()} set w {rng.choice(['', '| trim ', '| upper | trim '])}{c()}{b()}{o()} endset {c()}{{{{ w }}}}"
    if k < 0.8:
        return (f"{o()} macro f(a, b={e()}) {c()}{b()}{{{{ a }}}}{{{{ b }}}}{{{{ v }}}}{o()} endmacro {c()}"
                + rng.choice(["{{ f(1) }}", "{{ f('x', b=2) }}", "{{ f() }}", "{{ f(b=1, a=n) ~ 'x' }}", "{{ f(1, 2, 3) }}"]))
    if k < 0.84:
        return gap() + rng.choice(["{#", "{#-"]) + " comment {{ x " + rng.choice(["#}", "-#}"]) + gap()
    if k < 0.88:
        return f"{gap()}{o()} raw {rng.choice(['%}', '-%}'])}{gap()}{{{{ raw }}}}{{% x %}}{gap()}{o()} endraw {c()}{gap()}"
    if k < 0.92:
        return f"{gap()}{o()} generation {c()}{b()}{o()} endgeneration {c()}"
    if k < 0.95:
        return f"{o()} filter {rng.choice(['trim', 'upper', 'indent(2)'])} {c()}{b()}{o()} endfilter {c()}"
    return b() + b()


def fuzz(driver, seconds, seed):
    rng, end, counts = random.Random(seed), time.time() + seconds, collections.Counter()
    unknown, wrong = collections.Counter(), 0
    while time.time() < end and wrong < 40:
        text = "{{ " + expression(rng, 3) + " }}" if rng.random() < 0.6 else "{% set ns = namespace(a=1) %}" + block(rng, 3)
        chat_template_utils._cached_compile_jinja_template.cache_clear() if hasattr(chat_template_utils._cached_compile_jinja_template, "cache_clear") else None
        want, (status, have) = reference(text, VALUES), driver.run(text, VALUES)
        # Generators are not run where nobody looks, and slices of constants that have none are undefined.
        lazy = status != 0 and any(why in have for why in ("want something to go through", "generator", "items: want", "with parts"))
        if (want is not None and lazy) or want is not None and (" object at 0x" in want or "<" in want and ("built-in method" in want or "bound method" in want)):
            counts["addresses"] += 1
        elif status == 0 and have == want:
            counts["equal"] += 1
        elif status != 0 and want is None:
            counts["both refuse"] += 1
        elif status != 0 and "not known here" in have:
            counts["refused by name"] += 1
            unknown[have.split("not known here: ")[1][:40]] += 1
        else:
            wrong += 1
            print(f"{text!r}\n    want {reference.error if want is None else repr(want)}\n    have {status} {have!r}", file=sys.stderr)
    print(dict(counts), "wrong", wrong, dict(unknown))
    return wrong


# ---------------------------------------------------------------------------------------- golden

# One construct a line: what is rendered is stored, or that it is refused.
OWN = r"""
a{{ 1 }}b{{- ' c ' -}} d {%- if true -%} e {% endif +%} f
  {% if true %}\n  x\n  {% endif %}\n  y
  {%+ if true %}\n  x\n  {%- endif %}\n  y\n
{# comment #}\na {#- cut -#} b {# {{ x }} {% if %} #}
{% raw %}\n{{ x }} {% y %}{# z #}\n  {% endraw %}\nend
{{ 'it\'s' "a\"b" }}{{ '\\n\\t\\x41\\u00e9\\U0001f642\\101\\q' }}
{{ 1_000 }} {{ 2.50 }} {{ 1e20 }} {{ 1e15 }} {{ 1.5e-7 }} {{ 0.0001 }} {{ 1e16 }} {{ 123456789.125 }} {{ -0.0 }} {{ 1e-5 }}
{{ none }} {{ None }} {{ true }} {{ False }} {{ missing }}|{{ missing.x }}
{{ [1, 'a', none, [true]] }} {{ (1,) }} {{ () }} {{ {'k': 1, 2: "it's", 'q': '"' } }} {{ ['\\n\\t\\\\\x07é'] }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 1 + 2 * 3 - 4 }}
{{ 'a' ~ 1 ~ none ~ missing ~ 2.0 }} {{ 'ab' * 3 }} {{ [1] * 2 + [3] }} {{ 3 * 'x' }} {{ 'x' * -1 }}
{{ 'x' + 1 }}
{{ 1 / 0 }}
{{ missing + 1 }}
{{ 1 < 2 <= 2 < 3 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 == true }} {{ 'a' != 'A' }} {{ none == none }} {{ missing == missing }}
{{ 1 < 'a' }}
{{ 'el' in s }} {{ 3 in l }} {{ 'a' in d }} {{ 'a' not in d }} {{ 'x' in missing }} {{ not 0 and 'y' or 'z' }} {{ 0 or '' }} {{ 1 and [] }}
{{ 1 in 'abc' }}
{{ 'y' if n > 3 else 'n' }} {{ 'y' if n > 9 }}| {{ 1 if 0 else 2 if 0 else 3 }}
{{ l[0] }} {{ l[-1] }} {{ l[9] }}| {{ l[1:3] }} {{ l[::-1] }} {{ l[-2:] }} {{ s[1:6:2] }} {{ s[::-1][:3] }} {{ l[3:1:-1] }} {{ 'abc'[5:] }}| {{ l[:-9:-1] }}
{{ d.a }} {{ d['b'] }} {{ d.items }}
{{ d['items'] }} {{ d.b.0 }} {{ d.nothing }}| {{ d['é'] }} {{ m.role }} {{ none.x }}| {{ n.x }}| {{ l.role }}| {{ 'abc'.nothing }}|
{{ d.get('a') }} {{ d.get('q') }} {{ d.get('q', 5) }} {{ d.keys() | list }} {{ d.values() | list }} {% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{{ d.pop('a') }}
{{ d.update({'x': 1}) }}
{{ l.append(1) }}
{{ d.pop is defined }} {{ l.append is defined }} {{ d.keys is defined }} {{ l.count(1) }} {{ l.index('x') }}
{{ l.index('nobody') }}
{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyaxy'.lstrip('yx') }}|{{ 'a\\n\\n'.rstrip('\\n') }}|
{{ 'a b  c'.split() }} {{ 'a,b,,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.split(none, 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a\\nb\\r\\nc\\n'.splitlines() }}
{{ 'a'.split('') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.startswith(('x', 'a')) }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.endswith('b', 0, 2) }} {{ ''.startswith('') }}
{{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'abc'.find('x') }} {{ 'aaaa'.count('aa') }} {{ 'abc'.index('b') }} {{ 'abc'.find('', 5) }}
{{ 'abc'.index('x') }}
{{ 'aXbX'.replace('X', '--') }} {{ 'aXbX'.replace('X', '', 1) }} {{ 'ab'.replace('', '.') }} {{ 'hello wORLD'.title() }} {{ 'hello wORLD'.capitalize() }} {{ 'äÖß'.upper() }} {{ 'ÄÖ'.lower() }} {{ "they're bill's".title() }}
{{ ', '.join(['a', 'b']) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('bc') }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ '12'.isdigit() }} {{ 'ab1'.isalpha() }} {{ 'ab1'.isalnum() }} {{ ' \\n'.isspace() }} {{ 'AB'.isupper() }} {{ '1'.islower() }}
{{ 'x'.join([1]) }}
{{ '{} {} {a} {{x}}'.format(1, [2], a='z') }} {{ '{1}{0}'.format('a', 'b') }}
{{ '{} {1}'.format(1, 2) }}
{{ '{}'.format() }}
{% if missing %}a{% elif n == 7 %}b{% else %}c{% endif %}{% if not missing %}{% if l %}d{% endif %}{% else %}{% if d %}e{% endif %}f{% endif %}{% if false %}{% else %}{% if true %}g{% endif %}h{% endif %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}
{% for x in [] %}x{% else %}none{% endfor %}{% for x in missing %}x{% else %}none{% endfor %}{% for c in 'ab' %}{{ c }}.{% endfor %}{% for k in d %}{{ k }}{% endfor %}
{% for x in l if x is number %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}{% for x in l %}{% if x == 2 %}{% break %}{% endif %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% continue %}{% else %}else{% endfor %}{% for x in l %}{% if loop.last %}{% break %}{% endif %}{% else %}else{% endfor %}{% for x in [1] %}{% break %}{% else %}else{% endfor %}
{{ l.copy() }} {{ (1, 2).copy is defined }} {{ range(2).copy is defined }} {{ range(3).index(2) }}
{% for x in none %}{% endfor %}
{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for a, b in [[1]] %}{% endfor %}
{% set x = 1 %}{% for i in range(3) %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}{% if true %}{% set x = 9 %}{% endif %}{{ x }}
{% set ns = namespace(a=1, b=[]) %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% set ns.c = i %}{% endfor %}{{ ns.a }}{{ ns.c }}{{ ns.b }}{{ ns.q }}|{{ ns['a'] }}
{% set m.role = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}{% set x %} block {{ n }} {% endset %}[{{ x }}]{% set x | trim | upper %} block {% endset %}[{{ x }}]
{% macro f(a, b=2, c=a) %}[{{ a }}{{ b }}{{ c }}{{ n }}]{% endmacro %}{{ f(1) }}{{ f(1, c=3) }}{{ f(b=4, a=5) }}{{ f() }}{{ f(1) | length }}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(q=2) }}
{% set x = 1 %}{% macro f() %}{{ x }}{{ y }}{% set x = 7 %}{{ x }}{% endmacro %}{% set x = 2 %}{% for y in [5] %}{{ f() }}{% endfor %}{{ x }}
{% macro tree(t, depth=0) %}{% for k in t %}{{ '-' * depth }}{{ k }}{% if k is sequence and k is not string %}{{ tree(k, depth + 1) }}{% endif %}{% endfor %}{% endmacro %}{{ tree([1, [2, [3]], 4]) }}
{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}
{% macro f(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2], c=3) }}{{ f(0, *'ab') }}
{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}|{% filter upper | trim %} x {{ n }} {% endfilter %}
{{ nobody() }}
{{ n() }}
{{ raise_exception('no: ' ~ n) }}
{{ range(3) | list }} {{ range(2, 8, 3) | list }} {{ range(3, 0, -1) | list }} {{ range(4)[1] }} {{ range(5)[::2] | list }} {{ range(3) | length }}
{{ range(1000000) | length }}
{{ dict(a=1, b='x') }} {{ dict([['a', 1]]) }} {{ dict({'q': 1}, w=2) }} {{ strftime_now('%d %b %Y, %A %-d.%m.%y %B %j %Y-%m-%d %%') }}
{{ m | tojson }} {{ d | tojson }} {{ [1.0, 1e300, none, true, 'é\\n"\\\\'] | tojson }} {{ [] | tojson }} {{ {} | tojson(indent=2) }} {{ '<&>\x7f' | tojson }}
{{ {'a': [1, {'b': 2}], 'c': []} | tojson(indent=4) }} {{ d | tojson(separators=(',', ':')) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ 'é漢🙂' | tojson(ensure_ascii=true) }} {{ {1: 2, none: 3, true: 4} | tojson }} {{ (1, 2) | tojson(indent=1) }}
{{ missing | tojson }}
{{ d.keys() | tojson }}
{{ ' x ' | trim }}|{{ 'xax' | trim('x') }}|{{ 5 | trim }}|{{ missing | trim }}|{{ none | trim }}|{{ 'aB' | upper }}{{ 'aB' | lower }}{{ 'aB c' | title }}{{ 'aB' | capitalize }}{{ 'a-b (c) d.e' | title }}
{{ l | length }} {{ s | count }} {{ d | length }} {{ missing | length }} {{ l | first }} {{ l | last }} {{ [] | first }}| {{ s | first }} {{ d | first }} {{ l | string }} {{ 5 | string | length }}
{{ 5 | length }}
{{ l | map('string') | length }}
{{ l | join }} {{ l | join('-') }} {{ messages | join(',', attribute='role') }} {{ 'abc' | join('.') }} {{ missing | join }}|
{{ messages | map(attribute='role') | list }} {{ messages | map(attribute='x', default='-') | list | unique | list }} {{ ['a', 'b'] | map('upper') | join }} {{ [' a '] | map('trim') | list }} {{ [[1, 2]] | map('join', '+') | list }} {{ messages | map(attribute='content.0') | list | length }}
{{ l | select | list }} {{ l | select('number') | list }} {{ l | reject('none') | list }} {{ messages | selectattr('role', 'equalto', 'tool') | list | length }} {{ messages | rejectattr('tool_calls', 'defined') | map(attribute='role') | list }} {{ messages | selectattr('tool_calls') | list | length }} {{ none | selectattr('x') | list }} {{ [1, 5] | select('gt', 2) | list }} {{ [1, 2] | select('in', [2]) | list }}
{{ l | map('nothing') | list }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }} {{ [1, 2] | sort(reverse=true) }} {{ [{'k': 2}, {'k': 1}] | sort(attribute='k') }} {{ ds | dictsort }} {{ ds | dictsort(true) }} {{ ds | dictsort(by='value', reverse=true) }} {{ ['a', 'A', 'b'] | unique | list }} {{ [1, 2] | reverse | list }} {{ 'abc' | reverse }} {{ ds | items | list }} {{ [1, 2] | sum }} {{ [{'k': 2}] | sum(attribute='k', start=1) }} {{ [2, 1] | min }} {{ ['a', 'B'] | max }} {{ -3 | abs }} {{ (-3) | abs }}
{{ [1, 'a'] | sort }}
{{ missing | default('q') }} {{ '' | default('q') }} {{ '' | default('q', true) }} {{ none | default('q') }} {{ missing | d(5) }} {{ '12' | int }} {{ '1.7' | int }} {{ 'x' | int }} {{ 'x' | int(3) }} {{ 1.9 | int }} {{ '2.5' | float }} {{ 'x' | float }} {{ true | int }} {{ '.5' | float }} {{ ' 3 ' | int }}
{{ 'a\\nb\\n\\nc' | indent }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(1, blank=true) }}|{{ 'a\\nb\\n' | indent('> ') }}|
{{ '<a>' | escape }} {{ '<a>' | safe }} {{ ('<a>' | safe) + '<b>' }} {{ ('<a>' | safe) ~ '<b>' }} {{ 'aXbX' | replace('X', 'y') }} {{ 'aXbX' | replace('X', 'y', 1) }} {{ 5 | replace(5, 6) }} {{ '<a>' | e | e }}
{{ n is defined }} {{ q is defined }} {{ q is undefined }} {{ none is none }} {{ n is number }} {{ true is number }} {{ true is integer }} {{ 1 is integer }} {{ 1.0 is float }} {{ s is string }} {{ d is mapping }} {{ l is iterable }} {{ s is iterable }} {{ 1 is iterable }} {{ l is sequence }} {{ d is sequence }} {{ q is sequence }} {{ 3 is odd }} {{ 3 is even }} {{ 9 is divisibleby 3 }} {{ 'a' is lower }} {{ 'a' is upper }} {{ range is callable }} {{ 1 is eq 1 }} {{ 1 is ne(1) }} {{ 1 is lt 2 }} {{ 1 is in [1] }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ true is boolean }} {{ none is sameas none }} {{ n is not string }} {{ 'upper' is filter }} {{ 'odd' is test }} {{ l | map('string') is iterable }} {{ l | map('string') is sequence }} {{ d.items() is sequence }}
{{ 1 is nothing }}
{{ l | nothing }}
{{ 'x' if true else (l | nothing) }}
{{ (l | map('string')) | list }}{% set g = l | map('string') %}{{ g | join }}{{ g | join }}|{% if [] | map('string') %}true{% endif %}
{{ messages[0].content }}{{ messages[-1]['role'] }}{{ messages[1].tool_calls[0].function.arguments.place }}{{ messages[99] }}|{{ messages[0]['nothing'] is defined }}
{{ messages[99].role }}
{{ q.w }}
{{ 1, 2 }} {{ {} }} {{ [1,] }} {{ ((1)) }} {{ -1 | abs }} {{ not 1 == 2 }} {{ 1 + 1 ~ 2 * 3 }} {{ 'a' 'b' }}
{{ 'ÄÖ漢🙂'[1:3] }}{{ '漢🙂' | length }}{{ '漢🙂'[::-1] }}{{ '\u00a0x\u3000' | trim }}{{ 'ǅ' | lower }}
"""
BROKEN = ["{{", "{% if %}", "{% if x %}", "{% endif %}", "{% for x %}{% endfor %}", "{{ x", "{{ 'x }}", "{% nothing %}", "{{ 1 + }}", "{{ (1 }}", "{{ [1 }}",
          "{{ 1) }}", "{# x", "{% raw %}x", "{% set 1 = 2 %}", "{% set x %}", "{{ x | }}", "{{ x is }}", "{{ x. }}", "{{ a b }}", "{% macro f(a=1, b) %}{% endmacro %}",
          "{{ f(a=1, 2) }}", "{% break %}", "{% else %}", "{{ 1 is odd is even }}", "{{ $ }}", "{{ {1} }}", "{% for x in l %}", "{% macro f( %}{% endmacro %}",
          "{% if x %}{% endfor %}", "{{ 08 }}", "{{ 1x }}", "{%- if x %}a{%- elif %}b{% endif %}", "{% set x.y.z = 1 %}", "{{ x[ }}", "{{ x[] }}"]


def golden():
    texts = [line.replace("\\n", "\n").replace("\\\\", "\\") for line in OWN.strip("\n").split("\n")]
    cases = []
    for text in texts + BROKEN:
        want = reference(text, VALUES)
        if want is not None and " object at 0x" in want or "{{ d.items }}" in text:
            continue
        cases.append({"text": text, "want": want})
    assert all(c["want"] is None for c in cases[-len(BROKEN):]), [c for c in cases[-len(BROKEN):] if c["want"] is not None]
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(c) for c in cases)
    GOLDEN.write_text('{"variables": ' + json.dumps(VALUES) + ',\n"cases": [\n' + lines + "\n]}\n", encoding="ascii")
    wrong = 0
    driver = Driver()
    for c in cases:
        status, have = driver.run(c["text"], VALUES)
        if (status == 0) != (c["want"] is not None) or (status == 0 and have != c["want"]):
            wrong += 1
            print(f"{c['text']!r}\n    want {c['want']!r}\n    have {status} {have!r}", file=sys.stderr)
    print(len(cases), "cases,", wrong, "wrong")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fuzz"]:
        sys.exit(1 if fuzz(Driver(), float(sys.argv[2]), int((sys.argv + ["1"])[3])) else 0)
    sys.exit(1 if (compare(Driver(), list(collect(sys.argv[1:]))) if sys.argv[1:] else golden()) else 0)
