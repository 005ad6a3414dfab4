"""Writes test/golden/tok/chat.json: conversations as the models' own templates render them.

    chat.py --templates vendor/llama.cpp/models/templates   (out of PyPI's llama-cpp-python sdist)

The templates are other people's and stay where they are; what is stored is what they make of our
conversations, run by Jinja2.
"""

import argparse
import json
import pathlib

import jinja2

OUT = pathlib.Path(__file__).parents[2] / "test/golden/tok"
FILES = {
    "qwen2.5": ("Qwen-Qwen2.5-7B-Instruct", ""),
    "qwen3": ("Qwen-Qwen3-0.6B", ""),
    "qwen3.5": ("Qwen3.5-4B", ""),
    "llama3.1": ("meta-llama-Llama-3.2-3B-Instruct", "<|begin_of_text|>"),
}
# Templates that no file of the folder holds, in the form that their models' files have.
INLINE = {
    "smollm2": (
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
        "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
        "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}"),
    "chatml": (
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
        " + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}"),
    "gemma": (
        "{{ bos_token }}{% set prefix = messages[0]['content'] + '\n\n' if messages[0]['role'] == "
        "'system' else '' %}{% for message in messages if message['role'] != 'system' %}"
        "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else message['role']) + "
        "'\n' + (prefix if loop.first else '') + message['content'] | trim + '<end_of_turn>\n' }}"
        "{% endfor %}{{ '<start_of_turn>model\n' }}"),
    "llama3": (
        "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
        "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim"
        " + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
        "{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"),
}
SYSTEM = {"role": "system", "content": " Be brief. "}
TURNS = [
    {"role": "user", "content": "\n Hi <|im_end|> there \n"},
    {"role": "assistant", "content": "<think>\nA greeting.\n</think>\n\nHello! "},
    {"role": "user", "content": "Write <eos> twice."},
]
CONVERSATIONS = [TURNS[:1], [SYSTEM] + TURNS[:1], TURNS, [SYSTEM] + TURNS]


def render(text, messages, **more):
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True,
                             extensions=["jinja2.ext.loopcontrols"])
    env.globals["raise_exception"] = lambda message: (_ for _ in ()).throw(ValueError(message))
    return env.from_string(text).render(messages=messages, add_generation_prompt=True, **more)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--templates", required=True)
    folder = pathlib.Path(args.parse_args().templates)
    sources = {name: ((folder / (file + ".jinja")).read_text(encoding="utf-8"), bos)
               for name, (file, bos) in FILES.items()}
    bos_of = {"llama3": "<|begin_of_text|>", "gemma": "<bos>"}
    sources |= {name: (text, bos_of.get(name, "")) for name, text in INLINE.items()}
    rows = []
    for name, (text, bos) in sources.items():
        for k, messages in enumerate(CONVERSATIONS):
            for thinking in (True, False):
                more = {} if thinking else {"enable_thinking": False}
                out = render(text, messages, bos_token=bos, **more)
                rows.append({"template": name, "conversation": k, "thinking": thinking, "text": out})
    body = ",\n".join(json.dumps(r) for r in rows)
    (OUT / "chat.json").write_text("[\n" + body + "\n]\n", encoding="ascii")
    print(len(rows), "conversations")


main()
