#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_chat.py - tokenize and chat with vocabularies and models that other programs have made.

The conversations need the model files that tools/setup.sh fetches.
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import termios

from util import HANG_S, TOP, check, equal, expect, finish, have_model, main, read, start, tinygpt, write

GOLDEN = os.path.join(TOP, "test", "golden", "tok")
MODEL = have_model("SmolLM2-135M-Instruct.Q4_1.gguf")
BASE = have_model("gemma-3-270m-q4_k_m.gguf")


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
    expect(tinygpt("info", MODEL), 0, "info", out=["Q8_0 +1 tensor, 30.1 MB", "template +[0-9]+ bytes of Jinja\n", "47.2 MB for 1024"])
    j = tinygpt("info", MODEL, "--json").json()
    equal((j["tokenizer"], j["checksummed"], "<|im_start|>" in j["template"]), ("gpt2", False, True), "in JSON")
    first = talk("Hello!\nWho are you?\n/save talk.chat\n", "--json")
    expect(first, 0, "chat --json")
    rows = first.json_lines()
    equal(len(rows), 2, "one object an answer")
    check(rows[1]["context"] > rows[0]["context"] > 12, "the context grows")
    kept = read("talk.chat").decode()
    check(kept.startswith("tinygpt chat 2\nseed 42 2\nsampling 40 64 0 "), "the file's settings")
    check("\nuser 6\nHello!\nassistant " in kept, "the file of a conversation")
    again = talk("/load talk.chat\n/regen\n", "--json").json_lines()
    equal(again[0]["text"], rows[1]["text"], "the last answer, made anew from the file")
    block = talk('"""\nHello\nthere\n"""\nTwo \\\nlines\n/save b.chat\n')
    expect(block, 0, "turns of several lines")
    check("user 11\nHello\nthere\n" in read("b.chat").decode(), "a quoted turn")
    check("user 10\nTwo \nlines\n" in read("b.chat").decode(), "a turn that goes on")
    expect(talk("/help\n/what\n/load none\n/seed x\n/regen\n"), 0, "commands",
           err=["/system", "unknown", "none", "whole number", "no turn"])


def sampled(lines, *args):
    return tinygpt("chat", MODEL, "--tokens", "12", "--json", *args, data=lines.encode())


def what_is_kept():
    """A conversation that goes on from a file is the one that was never left, to the token; and of
    one that changes, what did not change is kept."""
    whole = sampled("Hello!\nName a colour.\nWhy?\n/regen\n", "--seed", "9").json_lines()
    check(whole[2]["kept_tokens"] == whole[1]["context"], "the cache is kept from turn to turn")
    check(whole[3]["kept_tokens"] == whole[3]["prompt_tokens"] - 1, "/regen reads one token")
    check(whole[3]["text"] != whole[2]["text"], "another seed, another answer")
    first = sampled("Hello!\nName a colour.\n/save t.chat\n/save\n", "--seed", "9", "--session",
                    "s.session", "--temp", "0.8")
    expect(first, 0, "--session, which is not there yet", err="save to s.session")
    state = read("s.session")
    for how, lines, args in (("--session", "Why?\n/regen\n", ("--session", "s.session")),
                             ("/load FILE", "/load t.chat\nWhy?\n/regen\n", ()),
                             ("/load", "No.\n/load\nWhy?\n/regen\n", ("--session", "s.session"))):
        write("s.session", state)
        go_on = sampled(lines, *args)
        expect(go_on, 0, how)
        rows = go_on.json_lines()[-2:]
        equal([r["text"] for r in rows], [r["text"] for r in whole[2:]], f"the answers after {how}")
        equal(rows[0]["kept_tokens"], 0 if how == "/load FILE" else whole[1]["context"],
              f"tokens that need not be read after {how}")
    # What the command line asks for goes before what the file has.
    write("s.session", state)
    other = sampled("/save o.chat\n", "--session", "s.session", "--seed", "10", "--temp", "0")
    expect(other, 0, "options over those of the file")
    check(b"\nseed 10 0\nsampling 40 64 0 " in read("o.chat"), "they are what counts")
    changed = sampled("Hello!\nName a colour.\n/system You are a cat.\n/regen\n", "--seed", "9")
    rows = changed.json_lines()
    check(0 < rows[2]["kept_tokens"] < 10, "another system turn: little is kept")


def sessions_that_are_refused():
    expect(sampled("Hi\n", "--session", "r.session"), 0, "a session to damage")
    state = read("r.session")
    expect(sampled("Hi\n", "--session", "r.session", "--kv", "int8"), 2, "another cache", err="want a cache of int8")
    for what, data, word in (("a cut file", state[:-100], "damaged"),
                             ("a changed byte", state[:999] + b"?" + state[1000:], "damaged"),
                             ("a conversation", b"tinygpt chat 1\n", "not the file of a session"),
                             ("an empty file", b"", "not the file of a session")):
        write("r.session", data)
        expect(sampled("Hi\n", "--session", "r.session"), 2, what, err=word)
        equal(read("r.session"), data, f"{what} is left as it was")
    for what, data in (("no turn", b"user 9\nHi\n"), ("no number", b"seed x\n"),
                       ("no sampling", b"sampling 1 2 nan 1 0 0 1 0 0\n"), ("a role", b"cat 2\nHi\n")):
        write("r.chat", b"tinygpt chat 2\n" + data)
        expect(talk("/load r.chat\n"), 0, f"/load of {what}", err="r.chat: it is damaged")
    write("r.chat", b"tinygpt chat 1\nuser 2\nHi\n")
    expect(talk("/load r.chat\n/regen\n", "--json"), 0, "version 1", out="text")
    expect(talk("Hi\n/save no/such/x\n/save\n/load\n"), 1, "names that are wrong",
           err=["No such file", "want /save FILE", "want /load FILE"])
    for where in ("packed", "mapped"):
        expect(sampled("Hi\n", "--session", "m.session", "--pack-cache", "packed"), 0, f"weights that are {where}")
    write("r.session", state)
    expect(tinygpt("chat", BASE, "--template", "gemma", "--session", "r.session", data=b"Hi\n"), 2,
           "another model's", err="another model")


def a_full_context():
    lines = "One?\nTwo?\nThree?\n"
    slid = talk(lines, "--ctx", "64", "--full", "slide", "--json")
    expect(slid, 0, "--full slide", err="forgotten")
    equal(len(slid.json_lines()), 3, "every turn is answered")
    refused = talk("x " * 200 + "\nHi\n", "--ctx", "64", "--json")
    expect(refused, 1, "--full refuse", err="does not fit")
    equal([("text" in r, "error" in r) for r in refused.json_lines()], [(True, False), (False, True)],
          "the fault is told, and a turn that fits is answered")
    expect(talk("x " * 200 + "\nHi\n", "--ctx", "64", "--full", "stop"), 1, "--full stop")
    # In the middle of an answer: the oldest turns go, and it goes on; or it ends there.
    story = ("Hi\nTell me a very long story about a cat.\n", "--ctx", "100", "--repeat-penalty", "1.3")
    slid = tinygpt("chat", MODEL, "--temp", "0", "--tokens", "44", *story[1:], "--full", "slide",
                   "--json", data=story[0].encode())
    expect(slid, 0, "an answer that slides", err="forgotten")
    equal(slid.json_lines()[1]["tokens"], 44, "it goes on")
    ends = tinygpt("chat", MODEL, "--temp", "0", "--tokens", "44", *story[1:], "--json",
                   data=story[0].encode())
    expect(ends, 0, "an answer that ends", err="the answer ends here")
    check(ends.json_lines()[1]["tokens"] < 44, "it ends")
    short = ends.json_lines()[1]["text"]
    equal(slid.json_lines()[1]["text"][:len(short)], short, "the same up to there")


def guesses_change_no_text():
    """With --draft a text is the same, greedy and drawn: what was guessed wrong is drawn anew."""
    prompt = ("sample", MODEL, "--prompt", "List: apple pear plum. Again the list: apple pear",
              "--tokens", "40", "--json")
    for how in (("--temp", "0"), ("--seed", "3", "--top-k", "40")):
        plain = tinygpt(*prompt, *how).json()
        drafted = tinygpt(*prompt, *how, "--draft", "5").json()
        equal(drafted["ids"], plain["ids"], f"the ids with --draft, {' '.join(how)}")
        check(0 < drafted["accepted"] <= drafted["drafted"], "some guesses are right")
        equal(plain["drafted"], 0, "none without it")
    told = tinygpt(*prompt[:-1], "--temp", "0", "--draft", "5", "--stats")
    expect(told, 0, "--draft --stats", err="guessed")
    by_itself = tinygpt(*prompt, "--temp", "0", "--draft-model", MODEL).json()
    equal(by_itself["accepted"], by_itself["drafted"], "the model agrees with itself")
    lines = "Say a, b, c, a, b, c.\nAgain.\n"
    rows = [talk(lines, "--json", *more).json_lines() for more in ((), ("--draft", "6"))]
    equal([r["text"] for r in rows[1]], [r["text"] for r in rows[0]], "answers with --draft")


def an_interrupt_ends_the_answer():
    """Ctrl-C stops what is being written; the conversation goes on."""
    p = start("chat", MODEL, "--temp", "0", "--tokens", "3000", "--repeat-penalty", "1.5",
              stdin=subprocess.PIPE)
    p.stdin.write(b"Tell me a long story.\n")
    p.stdin.flush()
    check(len(p.stdout.read(1)) == 1, "the answer begins")
    p.send_signal(signal.SIGINT)
    p.stdin.write(b"/save c.chat\n/quit\n")
    p.stdin.flush()
    expect(finish(p), 0, "/quit after an interrupt")
    check(b"assistant" in read("c.chat"), "the answer is kept as far as it came")


class Terminal:
    """The program at a terminal, as a person sees it: what is typed, and what came since."""

    def __init__(self, *args):
        self.master, slave = pty.openpty()
        self.process = start(*args, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.text = ""

    def wait(self, pattern, what):
        """Until the pattern comes; what came before it is forgotten."""
        while not (found := re.search(pattern, self.text)):
            ready = select.select([self.master], [], [], HANG_S)[0]
            try:
                more = os.read(self.master, 65536) if ready else b""
            except OSError:  # what a terminal says when the other side has gone
                more = b""
            if not more:
                return check(False, what, f"want /{pattern}/, have {self.text[-300:]!r}")
            self.text += more.decode(errors="replace").replace("\r\n", "\n")
        self.text = self.text[found.end():]
        return check(True, what)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def close(self, code, what):
        equal(self.process.wait(HANG_S), code, what)
        os.close(self.master)


SPEED = r"\d+ tokens?, [\d.]+k? a second; context \d+ of 512, \d+ of \d+ kept\)\S*\n"


def at_a_terminal():
    """Every command, typed; Ctrl-C ends an answer, and at the prompt, twice, the program."""
    for path, template in ((MODEL, ()), (BASE, ("--template", "gemma"))):
        t = Terminal("chat", path, "--ctx", "512", "--tokens", "16", *template)
        t.wait("/help lists", "what can be typed is told")
        t.wait("> ", "a prompt")
        t.type("/help\n")
        for command in ("/system", "/reset", "/regen", "/seed", "/save", "/load", "/quit", "Ctrl-C"):
            t.wait(command, f"/help tells of {command}")
        t.wait("> ", "the prompt after /help")
        t.type("Hello\n")
        t.wait(SPEED, "an answer, its speed, and how much of the context is used")
        t.type("\"\"\"\nTwo\n")
        t.wait(r"\.\.\. ", "a turn of several lines goes on")
        t.type("lines\n\"\"\"\n")
        t.wait(SPEED, "their answer")
        for keys, told in (("/seed 5\n", r"\(seed 5\)"), ("/seed x\n", "whole number"),
                           ("/system Be brief.\n", "system's turn is set"),
                           ("/save a.chat\n", "save to a.chat"), ("/reset\n", "forgotten"),
                           ("/regen\n", "no turn"), ("/load a.chat\n", "load from a.chat"),
                           ("/what\n", "unknown")):
            t.type(keys)
            t.wait(told, f"{keys.strip()} at a terminal")
        t.type("/regen\n")
        t.wait(SPEED, "/regen of what was loaded")
        kept = read("a.chat").decode()
        check("system 9\nBe brief.\n" in kept and "user 9\nTwo\nlines\n" in kept, "what was kept")
        t.wait("> ", "the prompt")
        t.type("\x03")
        t.wait("once more", "Ctrl-C at the prompt")
        t.type("/quit\n")
        t.close(0, "/quit")
        # A long answer is interrupted, and the next turn answered.
        t = Terminal("chat", path, "--ctx", "512", "--tokens", "480", "--temp", "2",
                     *template)
        t.wait("> ", "a prompt")
        t.type("Tell me a long story.\n")
        t.wait("story.\n[^\n]*\\w", "the answer begins")
        t.type("\x03")
        t.wait(SPEED, "Ctrl-C ends the answer")
        t.wait("> ", "and not the program")
        t.type("\x03")
        t.wait("once more.*\n.*> ", "how to leave, and a prompt")
        t.type("\x03")
        t.close(130, "Ctrl-C twice at the prompt")


def without_a_template():
    expect(tinygpt("chat", BASE, data=b"Hi\n"), 2, "a file without a template",
           err=["template", "chatml"])
    expect(tinygpt("chat", BASE, "--template", "nobody", data=b"Hi\n"), 2, "an unknown name",
           err="nobody")
    expect(tinygpt("chat", BASE, "--template", "chatml", data=b"Hi\n"), 2,
           "a template whose tokens are missing", err="<|im_start|>")


main(tokenize_json_files, bad_tokenizers, a_conversation, what_is_kept, sessions_that_are_refused,
     a_full_context, guesses_change_no_text, an_interrupt_ends_the_answer, at_a_terminal, without_a_template)
