# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/tok/chat.json: conversations as the models' own chat templates render them, for the templates
that are built in (src/chat/chat_builtin.def).

    chat.py FOLDER ..      folders with *.jinja files, searched whole: the sources of PyPI's llama-cpp-python, and the
                           wheels axolotl, trl and unsloth, unpacked

The templates are third-party programs and stay where they are. Each that is built in has one of them, or one of those
below, as its model. What is stored is what they make of our conversations, run by Jinja2 as transformers runs it.
"""

import ast
import datetime
import json
import pathlib
import sys

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

TOP = pathlib.Path(__file__).parents[2]
GOLDEN = TOP / "test/golden/tok/chat.json"
FILES = {  # the name and the file that it renders as
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
    bos = {"llama3": "<|begin_of_text|>", "llama3.1": "<|begin_of_text|>", "llama3.2": "<|begin_of_text|>",
           "gemma": "<bos>", "gemma2": "<bos>"}
    out = {"rows": [], "texts": []}
    for row, have in rows.items():
        for k, text in enumerate(have):
            text = text and text.replace("<BOS>", bos.get(row, "")).replace("<EOS>", "")
            out["rows"].append({"template": row, "conversation": k // 2, "thinking": k % 2 == 0, "text": text})
    for row, text in INLINE:
        if renderings(text) == rows[row]:
            out["texts"].append({"name": row, "text": text})
    parts = [json.dumps(k) + ": [\n" + ",\n".join(map(json.dumps, v)) + "\n]" for k, v in out.items()]
    GOLDEN.write_text("{" + ",\n".join(parts) + "}\n", encoding="ascii")
    print(len(out["rows"]), "conversations,", len(out["texts"]), "texts")


main()
