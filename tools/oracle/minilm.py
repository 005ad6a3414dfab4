#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/minilm.txt: twenty pairs of texts and their cosines by all-MiniLM-L6-v2.

    build/oracle-venv/bin/python tools/oracle/minilm.py minilm.zip

Each pair is three lines: both texts, and the cosine of their vectors: means over the tokens of what
transformers' BertModel gives in f32.
"""
import os
import sys
import tempfile
import zipfile

import torch
import transformers as tf

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm/minilm.txt")
PAIRS = [
    ("A man is playing a guitar.", "Someone plays an instrument."),
    ("The cat sits on the mat.", "A kitten rests on a rug."),
    ("The cat sits on the mat.", "The stock market fell sharply today."),
    ("How do I boil an egg?", "What is the way to cook eggs in water?"),
    ("How do I boil an egg?", "The orbit of Mars takes 687 days."),
    ("I love this film.", "I hate this film."),
    ("Paris is the capital of France.", "Berlin is the capital of Germany."),
    ("Der Hund schläft.", "The dog is sleeping."),
    ("東京は日本の首都です。", "Tokyo is the capital of Japan."),
    ("int main(void) { return 0; }", "def main(): return 0"),
    ("", "An empty text and this one."),
    ("a", "b"),
    ("Naïve café owners", "naive cafe owners"),
    ("Photosynthesis turns light into chemical energy.", "Plants make sugar from sunlight."),
    ("Please turn off the lights.", "Switch the lamps off, please."),
    ("2 + 2 = 4", "two plus two equals four"),
    ("The quick brown fox jumps over the lazy dog. " * 8, "A fox and a dog."),
    ("A train left the station at 5 pm.", "At 17:00 a train departed."),
    ("Antidisestablishmentarianism!", "a very long English word"),
    ("   spaces   and\ttabs ", "spaces and tabs"),
]


def main():
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(sys.argv[1]).extractall(folder)
        tok = tf.AutoTokenizer.from_pretrained(folder)
        model = tf.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()

        def vector(text):
            with torch.no_grad():
                v = model(**tok(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            return v.double() / v.double().norm()

        with open(OUT, "w", encoding="utf-8") as f:
            for a, b in PAIRS:
                f.write(f"{a}\n{b}\n{float(vector(a) @ vector(b)):.7f}\n")


main()
