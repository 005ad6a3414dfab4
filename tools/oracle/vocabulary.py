#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
vocabulary.py - vocabularies that Hugging Face's tokenizers train, for test_learn.c; or a comparison
with those that tinygpt trains.

    python3 tools/oracle/vocabulary.py > test/golden/tok/vocabularies.h
    python3 tools/oracle/vocabulary.py --compare build/tinygpt TEXT..

Needs `pip install tokenizers`. The text of the golden is made here, from a seed, so that the test
can make it, too: words of a few syllables, some of them far more frequent, with marks, digits, line
ends, runs of blanks and characters of two to four bytes.
"""
import json
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

SYLLABLES = ["ba", "re", "th", "in", "ou", "sta", "e", "nd", "er", "\u00e9", "lo", "\u4e2d", "a",
             "\U0001f600", "an", "ll", "qu", "ing"]
JOINTS = [" ", " ", " ", " ", ", ", ". ", "\n", "  ", "\n\n", " 1", "'s ", "\t", "! ", "-", " 207 "]


def text(n_words=3000, seed=1):
    """The same generator as in test_learn.c: x = x * 1664525 + 1013904223 modulo 2^32, high bits."""
    x, out = seed, []

    def draw(n):
        nonlocal x
        x = (x * 1664525 + 1013904223) % (1 << 32)
        return (x >> 16) % n
    for _ in range(n_words):
        for _ in range(1 + draw(4)):
            out.append(SYLLABLES[min(draw(len(SYLLABLES)), draw(len(SYLLABLES)))])
        out.append(JOINTS[draw(len(JOINTS))])
    return "".join(out)


def bpe(texts, n):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=n, min_frequency=0, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tok


def wordpiece(texts, n):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=n, min_frequency=0, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return tok


def merges_of(tok):
    return [tuple(m) for m in json.loads(tok.to_str())["model"]["merges"]]


def vocab_of(tok):
    vocab = tok.get_vocab()
    return sorted(vocab, key=vocab.get)


def compare(program, paths):
    """Merges, tokens and the ids of the text, ours and theirs; ours read by tokenizers."""
    whole = "".join(open(p, encoding="utf-8").read() for p in paths)
    failed = 0
    for kind, train in (("bpe", bpe), ("wordpiece", wordpiece)):
        for n in (512, 4096):
            with tempfile.NamedTemporaryFile(suffix=".json") as f:
                cut = [arg for p in paths for arg in ("--train", p)]
                subprocess.run([program, "tokenize", *cut, "--kind", kind, "--vocab", str(n), "--out",
                                f.name, "--force"], check=True, stdout=subprocess.DEVNULL)
                ours = Tokenizer.from_file(f.name)
            theirs = train([whole], n)
            common = len(set(vocab_of(ours)) & set(vocab_of(theirs)))
            line = f"{kind} {n}: {common} of {n} tokens"
            if kind == "bpe":
                same = merges_of(ours) == merges_of(theirs) and vocab_of(ours) == vocab_of(theirs)
                same = same and ours.encode(whole).ids == theirs.encode(whole).ids
                line += ", merges, ids the same" if same else ", merges or ids DIFFER"
                failed += not same
            else:
                failed += common < n - n // 50  # pairs that occur equally often
            print(line)
    return failed > 0


def quoted(word):
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}"
                         for b in word.encode()) + '"'


def table(name, words):
    print(f"static const char *const {name}[] = {{")
    line = "   "
    for word in words:
        if len(line) + len(quoted(word)) + 2 > 98:
            print(line)
            line = "   "
        line += f" {quoted(word)},"
    print(line + "\n};")


def main():
    if sys.argv[1:2] == ["--compare"]:
        sys.exit(compare(sys.argv[2], sys.argv[3:]))
    print("/* SPDX-License-Identifier: Apache-2.0 */")
    print("/* Made by tools/oracle/vocabulary.py: what tokenizers learns from the text of test_learn.c. */")
    print("/* clang-format off */")
    table("golden_bpe", vocab_of(bpe([text()], 400))[256:])
    print("/* Those of several runs: their order is a hash table's. */")
    runs = [set(vocab_of(wordpiece([text()], 160))) for _ in range(5)]
    table("golden_wordpiece", sorted(set.intersection(*runs)))


if __name__ == "__main__":
    main()
