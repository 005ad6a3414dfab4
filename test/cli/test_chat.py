#!/usr/bin/env python3
"""test_chat.py - tokenize and chat with vocabularies and models that other programs have made.

The conversations need the model file that tools/setup.sh fetches; without it they are skipped.
"""
import json
import os
import signal
import subprocess
import time

from util import TOP, check, equal, expect, finish, main, read, skip, start, tinygpt, write

GOLDEN = os.path.join(TOP, "test", "golden", "tok")
MODEL = os.path.join(TOP, ".cache", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
BASE = os.path.join(TOP, ".cache", "models", "gemma-3-270m-q4_k_m.gguf")


def have(path):
    if not os.path.exists(path):
        skip(f"{os.path.basename(path)} is not here: tools/setup.sh fetches it")
        return False
    return True


def tokenize_json_files():
    path = os.path.join(GOLDEN, "byte_bpe.json")
    text = "né <|im_end|>\n"
    plain = tinygpt("tokenize", path, text, "--json")
    expect(plain, 0, "tokenize with tokenizer.json")
    ids = json.loads(plain.text)["ids"]
    check(2 not in ids, "special tokens are text unless --special asks")
    special = json.loads(tinygpt("tokenize", path, text, "--json", "--special").text)
    equal([i for i in special["ids"] if i < 3], [2], "tokenize --special")
    equal(special["pieces"][special["ids"].index(2)], "<|im_end|>", "its piece")
    expect(tinygpt("tokenize", path, text), 0, "tokenize as a table", out=["|<|", "tokens"])


def bad_tokenizers():
    write("a.json", b'{"model": {"type": "RNN", "vocab": {}}}')
    expect(tinygpt("tokenize", "a.json", "x"), 2, "an unknown model", err="RNN")
    write("b.json", b'{"model": ')
    expect(tinygpt("tokenize", "b.json", "x"), 2, "half a file", err="b.json")
    write("c.gguf", b"GGUF\x03\x00\x00\x00" + b"\xff" * 16)
    expect(tinygpt("tokenize", "c.gguf", "x"), 2, "hostile counts", err="c.gguf")


def talk(lines, *args):
    return tinygpt("chat", MODEL, "--temp", "0", "--tokens", "12", *args, data=lines.encode())


def a_conversation():
    """Answers repeat with the seed, are kept in a file, and go on from it."""
    if not have(MODEL):
        return
    first = talk("Hello!\nWho are you?\n/save talk.chat\n", "--json")
    expect(first, 0, "chat --json")
    rows = first.json_lines()
    equal(len(rows), 2, "one object an answer")
    check(rows[1]["context"] > rows[0]["context"] > 12, "the context grows")
    kept = read("talk.chat").decode()
    check(kept.startswith("tinygpt chat 1\nuser 6\nHello!\nassistant "), "the file of a conversation")
    again = talk("/load talk.chat\n/regen\n", "--json").json_lines()
    equal(again[0]["text"], rows[1]["text"], "the last answer, made anew from the file")
    block = talk('"""\nHello\nthere\n"""\nTwo \\\nlines\n/save b.chat\n')
    expect(block, 0, "turns of several lines")
    check("user 11\nHello\nthere\n" in read("b.chat").decode(), "a quoted turn")
    check("user 10\nTwo \nlines\n" in read("b.chat").decode(), "a turn that goes on")
    expect(talk("/help\n/what\n/load none\n/seed x\n/regen\n"), 0, "commands",
           err=["/system", "unknown", "none", "whole number", "no turn"])


def a_full_context():
    if not have(MODEL):
        return
    lines = "One?\nTwo?\nThree?\n"
    slid = talk(lines, "--ctx", "64", "--full", "slide", "--json")
    expect(slid, 0, "--full slide", err="forgotten")
    equal(len(slid.json_lines()), 3, "every turn is answered")
    refused = talk("x " * 200 + "\nHi\n", "--ctx", "64", "--json")
    expect(refused, 0, "--full refuse", err="full")
    equal(len(refused.json_lines()), 1, "a turn that fits is answered")
    expect(talk("x " * 200 + "\nHi\n", "--ctx", "64", "--full", "stop"), 1, "--full stop")


def an_interrupt_ends_the_answer():
    """Ctrl-C stops what is being written; the conversation goes on."""
    if not have(MODEL):
        return
    p = start("chat", MODEL, "--temp", "0", "--tokens", "3000", "--repeat-penalty", "1.5",
              stdin=subprocess.PIPE)
    p.stdin.write(b"Tell me a long story.\n")
    p.stdin.flush()
    check(len(p.stdout.read(1)) == 1, "the answer begins")
    p.send_signal(signal.SIGINT)
    time.sleep(1)
    check(p.poll() is None, "the program goes on")
    p.stdin.write(b"/save c.chat\n/quit\n")
    p.stdin.flush()
    expect(finish(p), 0, "/quit after an interrupt")
    check(b"assistant" in read("c.chat"), "the answer is kept as far as it came")


def without_a_template():
    if not have(BASE):
        return
    expect(tinygpt("chat", BASE, data=b"Hi\n"), 2, "a file without a template",
           err=["template", "chatml"])
    expect(tinygpt("chat", BASE, "--template", "nobody", data=b"Hi\n"), 2, "an unknown name",
           err="nobody")
    expect(tinygpt("chat", BASE, "--template", "chatml", data=b"Hi\n"), 2,
           "a template whose tokens are missing", err="<|im_start|>")


main(tokenize_json_files, bad_tokenizers, a_conversation, a_full_context,
     an_interrupt_ends_the_answer, without_a_template)
