# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/tok/chat.json and src/tok/chat_known.def: which chat templates are known, and
conversations as they render them.

    chat.py FOLDER ..      folders with *.jinja files, searched whole: the sources of PyPI's llama-cpp-python,
                           and the wheels axolotl, trl and unsloth, unpacked

The templates are third-party programs and stay where they are. A row of src/tok/chat.c has one of them, or
one of those below, as its own; any other one that renders all conversations as it does gets a line in
chat_known.def, which is a hash (src/tok/chat_key.c says of what). What is stored besides is what they make
of our conversations, run by Jinja2 as transformers runs it.
"""

import ast
import datetime
import hashlib
import json
import pathlib
import re
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

TOP = pathlib.Path(__file__).parents[2]
GOLDEN = TOP / "test/golden/tok/chat.json"
KNOWN = TOP / "src/tok/chat_known.def"
FILES = {  # the row and the file whose rendering is its own
    "qwen2.5": "Qwen-Qwen2.5-7B-Instruct.jinja",
    "qwen3": "Qwen-Qwen3-0.6B.jinja",
    "qwen3.5": "Qwen3.5-4B.jinja",
    "llama3.1": "meta-llama-Llama-3.1-8B-Instruct.jinja",
    "llama3.2": "meta-llama-Llama-3.2-3B-Instruct.jinja",
    "gemma2": "google-gemma-2-2b-it.jinja",
    "gemma": "gemma3.jinja",
}
TURN = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
LOOP = "{% for message in messages %}" + TURN + "{% endfor %}"
BEGIN = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"


def says(text):
    return ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>"
            "system\n" + text + "<|im_end|>\n' }}{% endif %}" + TURN + "{% endfor %}" + BEGIN)


LLAMA3 = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
          "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + "
          "'<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
          "{{ content }}{% endfor %}")
# Templates that are a line or two, in the forms that models' files have. The last of a row is its own.
INLINE = [
    ("smollm2", says("You are a helpful AI assistant named SmolLM, trained by Hugging Face")),
    ("qwen2", says("You are a helpful assistant.")),
    ("qwen2", says("You are a helpful assistant").replace("assistant<|im_end|>", "assistant.<|im_end|>")),
    ("llama3", LLAMA3 + "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"),
    ("llama3", LLAMA3 + "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
     "{% endif %}"),
    ("llama3-no-bos", LLAMA3.replace("bos_token + ", "")
     + "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"),
    ("llama3-no-bos", "{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + "
     "message['content'] | trim + '<|eot_id|>' }}{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"),
    ("chatml-bos", "{{ bos_token }}" + LOOP + BEGIN),
    ("chatml-eos", LOOP.replace("{% endfor %}", "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
                                "{% endfor %}") + BEGIN),
    ("chatml-eos-turns", LOOP.replace("{% endfor %}", "{{ eos_token }}{% endfor %}") + BEGIN),
    ("chatml-no-line", "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
     "'<|im_end|>'}}{% endfor %}" + BEGIN),
    ("chatml-no-line", (LOOP + BEGIN).replace(" + '\n'}}", "}}")),
    ("chatml", "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']}}"
     "{% if (loop.last and add_generation_prompt) or not loop.last %}{{ '<|im_end|>' + '\n'}}{% endif %}{% endfor %}"
     "{% if add_generation_prompt and messages[-1]['role'] != 'assistant' %}{{ '<|im_start|>assistant\n' }}{% endif %}"),
    ("chatml", "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
     + LOOP + BEGIN),
    ("chatml", "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
     "'<|im_end|>\n'}}{% endfor %}" + BEGIN),
    ("chatml", LOOP + BEGIN),
]
# Ones like them that are not: each must be refused.
OTHERS = {
    "answers called model": (LOOP + BEGIN).replace("assistant", "model"),
    "eos in front of a turn": LOOP.replace("%}{{", "%}{{ eos_token }}{{", 1) + BEGIN,
    "eos behind the user alone": LOOP.replace("{% endfor %}", "{% if message['role'] == 'user' %}{{ eos_token }}{% endif %}"
                                              "{% endfor %}") + BEGIN,
    "Llama 3 without its first token or a prompt": LLAMA3.replace("bos_token + ", ""),
    "text behind": LOOP + BEGIN + "!",
    "no prompt for the answer": LOOP,
    "two system turns": says("A") .replace(TURN, TURN + "{{ '<|im_start|>system\nB<|im_end|>\n' }}"),
    "Llama 2": "{% for m in messages %}[INST] {{ m['content'] }} [/INST]{% endfor %}",
    "raw": "{% raw %}" + LOOP + BEGIN + "{% endraw %}",
    "open": LOOP + "{{ '<|im_start|>",
    "nothing": "",
}
# The same program laid out otherwise: each has the key of ChatML's own.
LAYOUTS = [
    "{%- for message in messages -%}\n  {{- '<|im_start|>'+message.role + \"\\n\" + message.content+'<|im_end|>' + "
    "'\\n' -}}\n{%- endfor -%}\n{# done #}{% if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n",
    "   {% for  message  in messages %}\n" + TURN + "{% endfor %}\n\t{% if add_generation_prompt -%}\n"
    "{{ \"<|im_start|>assistant\n\" }}{% endif %}",
]


def turn(role, content):
    return {"role": role, "content": content}


SYSTEM, EMPTY = turn("system", " Be brief. "), turn("system", "")
USER = [turn("user", t) for t in ("\n Hi <|im_end|> there \n", "Write <eos> twice.", "And <think>now</think>?", "")]
MODEL = [turn("assistant", t) for t in ("<think>\nA greeting.\n</think>\n\nHello! ", " plain\n",
                                        "no\n</think>\n\n\n yes</think> \n", "<think>\n\n</think>\n\nempty", "")]
CONVERSATIONS = [
    USER[:1], [SYSTEM, USER[0]], [USER[0], MODEL[0], USER[1]], [SYSTEM, USER[0], MODEL[0], USER[1]], USER[:2],
    [EMPTY, USER[0]], [USER[0], MODEL[1], USER[1], MODEL[0], USER[2]], [USER[0], MODEL[1], MODEL[0], USER[1]],
    [USER[0], MODEL[2], USER[1]], [USER[3]], [MODEL[1], USER[0]], [SYSTEM, MODEL[1], USER[0]],
    [SYSTEM, USER[0], MODEL[3], USER[1], MODEL[4], USER[2]],
]
TODAY = datetime.date(2026, 11, 9)


def render(text, messages, **more):
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=["jinja2.ext.loopcontrols"])

    def refuse(message):
        raise jinja2.TemplateError(message)

    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = TODAY.strftime
    try:
        return env.from_string(text).render(messages=messages, add_generation_prompt=True, **more)
    except Exception:  # its own refusal, or a feature that no conversation of ours has
        return None


def renderings(text):
    """Of all conversations, without a word about thinking and with a word against it."""
    return [render(text, c, bos_token="<BOS>", eos_token="<EOS>", **more)
            for c in CONVERSATIONS for more in ({}, {"enable_thinking": False})]


BLANK = " \t\n\r\f\v"


def word(c):
    return c == "_" or (c.isascii() and c.isalnum())


def canonical(text):
    """The form that src/tok/chat_key.c hashes, and the system's turn in it; None: it cannot be read."""
    text = text[:-1] if text.endswith("\n") else text
    if any(c in text for c in "\0\1\2\3\4\r"):
        return None, None
    out, at, line_start, system = [], 0, True, set()
    while at < len(text):
        m = re.compile(r"\{[{%#]").search(text, at)
        if not m:
            out.append(text[at:])
            break
        data, kind, at = text[at:m.start()], m.group()[1], m.end()
        sign = text[at:at + 1] if text[at:at + 1] in ("-",) + (("+",) if kind != "{" else ()) else ""
        at += len(sign)
        line = data.rfind("\n") + 1
        if sign == "-":
            data = data.rstrip(BLANK)
        elif kind != "{" and sign != "+" and (line > 0 or line_start) and not data[line:].strip(BLANK):
            data = data[:line]
        out.append(data)
        if kind == "#":
            at = text.find("#}", at)
            if at < 0:
                return None, None
            sign = "-" if text[at - 1] == "-" else ""
        else:
            body, end = inside(text, at, "}}" if kind == "{" else "%}", system)
            if end is None or (kind == "%" and text[at:].lstrip(BLANK).startswith("raw")):
                return None, None
            out.append("\3" + kind + body + "\4")
            at = end
            sign = text[at] if text[at] in "-+" else ""
            at += len(sign)
        at += 2
        begin = at
        if sign == "-":
            while at < len(text) and text[at] in BLANK:
                at += 1
        elif kind != "{" and sign != "+" and text[at:at + 1] == "\n":
            at += 1
        line_start = at > begin and text[at - 1] == "\n"
    return (None, None) if len(system) > 1 else ("".join(out), system.pop() if system else "")


def inside(text, at, close, system):
    body, last, gap, depth = [], "", False, 0
    while at < len(text):
        c = text[at]
        if depth == 0 and (text.startswith(close, at) or (c in "-+" and text.startswith(close, at + 1))):
            return "".join(body), at
        member = re.compile(r"\.(role|content)(?![A-Za-z0-9_])").match(text, at) if last and (
            word(last) or last in "])") else None
        if c in "'\"":
            m = re.compile(r"(?s)((?:\\.|[^\\" + c + "])*)" + c).match(text, at + 1)
            if not m:
                return None, None
            s = re.sub(r"(?s)\\(.)", lambda e: {"n": "\n", "\\": "\\", "'": "'", '"': '"'}.get(
                e[1], "\2" + e[1]), m[1])
            own = re.fullmatch(r"(?s)(<\|im_start\|>system\n)(.+)(<\|im_end\|>\n)", s)
            if own and len(own[2].encode()) <= 1024:
                if "<|" in own[2] or "\2" in own[2]:
                    return None, None
                system.add(own[2])
                s = own[1] + own[3]
            body.append("\1" + s + "\1")
            last, gap, at = "\1", False, m.end()
        elif c in BLANK:
            gap = True
            at += 1
        elif member:
            body.append("[\1" + member[1] + "\1]")
            last, at = "]", member.end()
        else:
            depth += (c in "([{") - (c in ")]}")
            if gap and last and word(c) and word(last):
                body.append(" ")
            body.append(c)
            last, gap = c, False
            at += 1
    return None, None


def key(text):
    form, _ = canonical(text)
    return hashlib.sha256(form.encode()).digest()[:8].hex() if form is not None else None


def strings_of_python(text):
    """Templates in a module's assignments."""
    names = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                value = eval(compile(ast.Expression(node.value), "", "eval"), {"__builtins__": {}}, names)
            except Exception:
                continue
            names[node.targets[0].id] = value
    return [(n, v) for n, v in names.items() if isinstance(v, str) and "{%" in v]


def collect(folders):
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.rglob("*.jinja")):
            yield path.name, path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("chat_templates.py")):
            yield from strings_of_python(path.read_text(encoding="utf-8"))


def main():
    sources = list(collect(sys.argv[1:])) or sys.exit(__doc__)
    own = dict(INLINE)
    for row, name in FILES.items():
        own[row] = next(text for n, text in sources if n == name)
    thinking = next(text for n, text in sources if n == "qwen3_thinking_template")
    own["qwen3-thinking"] = thinking
    rows = {row: renderings(text) for row, text in own.items()}
    known = {}
    for name, text in INLINE + [(n, t) for n, t in own.items()] + sources:
        have, form = renderings(text), key(text)
        fits = [row for row, want in rows.items() if want == have]
        if fits and form and not (name in rows and name != fits[0]):
            # What a ChatML template says by itself comes out of its text, so one row serves them all.
            known.setdefault(form, "chatml" if canonical(text)[1] else fits[0])
    lines = "".join(f'KNOWN(0x{k}, "{row}")\n' for k, row in sorted(known.items(), key=lambda x: x[::-1]))
    KNOWN.write_text("/* SPDX-License-Identifier: Apache-2.0 */\n/* chat_known.def - keys of the templates that a row of chat.c renders. Made by "
                     "tools/oracle/chat.py. */\n" + lines, encoding="ascii")
    bos = {"llama3": "<|begin_of_text|>", "llama3.1": "<|begin_of_text|>", "llama3.2": "<|begin_of_text|>",
           "gemma": "<bos>", "gemma2": "<bos>"}
    out = {"rows": [], "texts": [], "keys": {}}
    for row, have in rows.items():
        out["keys"][row] = key(own[row])
        for k, text in enumerate(have):
            text = text and text.replace("<BOS>", bos.get(row, "")).replace("<EOS>", "")
            out["rows"].append({"template": row, "conversation": k // 2, "thinking": k % 2 == 0, "text": text})
    for row, text in INLINE + [("chatml", t) for t in LAYOUTS] + [("chatml", says("Speak like a cat.\nMeow."))]:
        out["texts"].append({"name": row, "text": text, "key": key(text)})
        assert key(text)[:16] in known or row == "chatml", row
    assert all(key(t) == key(own["chatml"]) for t in LAYOUTS) and all(
        renderings(t) == rows["chatml"] for t in LAYOUTS)
    for what, text in OTHERS.items():
        out["texts"].append({"name": None, "what": what, "text": text, "key": key(text)})
        assert renderings(text) not in rows.values(), what
    parts = [json.dumps(k) + ": " + ("[\n" + ",\n".join(map(json.dumps, v)) + "\n]" if isinstance(v, list) else
                                     json.dumps(v)) for k, v in out.items()]
    GOLDEN.write_text("{" + ",\n".join(parts) + "}\n", encoding="ascii")
    print(len(known), "templates,", len(out["rows"]), "conversations;", ", ".join(
        f"{r} {sum(1 for x in known.values() if x == r)}" for r in rows))


main()
