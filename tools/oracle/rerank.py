#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/rank_*: tiny random rerankers as transformers saves them, and pairs with their scores.

    build/oracle-venv/bin/pip install torch==2.14.1 transformers==5.24.0
    build/oracle-venv/bin/python tools/oracle/rerank.py

rank_FAMILY.zip is the folder, and rank_FAMILY.txt the scores that the class gives: a line of the query, then lines of a
text and of its score. BERT has kinds of tokens, which tell the query from the text, and a pooler behind the first row;
ModernBERT a head behind the mean of the rows (rank_modernbert) or behind the first one (rank_modernbert_cls).
"""
import os
import sys

import tokenizers as tk
import torch
import transformers as tf

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from zip_folder import pack

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "?", "the", "cat", *"abcdefghijklmnopqrst"] + [
    "##" + c for c in "abcdefghijklmnopqrst"]
QUERY = "the cat bites a dog?"
TEXTS = ["a dog.", "the cat", "", "abc def the cat bites " * 3, "t"]
SIZES = dict(vocab_size=len(WORDS), hidden_size=16, intermediate_size=32, num_attention_heads=2, num_hidden_layers=2,
             max_position_embeddings=64, num_labels=1, pad_token_id=0)


def families():
    yield "bert", tf.BertForSequenceClassification(tf.BertConfig(**SIZES))
    for name, pooling in ("modernbert", "mean"), ("modernbert_cls", "cls"):
        yield name, tf.ModernBertForSequenceClassification(tf.ModernBertConfig(
            local_attention=8, classifier_pooling=pooling, cls_token_id=2, sep_token_id=3, bos_token_id=None,
            eos_token_id=None, **SIZES))


def tokenizer():
    t = tk.Tokenizer(tk.models.WordPiece({p: i for i, p in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer = tk.normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    t.post_processor = tk.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.add_special_tokens(WORDS[:4])
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                      sep_token="[SEP]")


def main():
    tok = tokenizer()
    for number, (name, model) in enumerate(families()):
        torch.manual_seed(number + 1)
        with torch.no_grad():
            for key, p in model.eval().float().named_parameters():
                p.normal_(0, 0.3 if p.ndim == 2 else 0.2)
                if "norm" in key.lower() and key.endswith("weight"):
                    p.add_(1)
                p.copy_(p.half().float())
            with open(os.path.join(OUT, f"rank_{name}.txt"), "w", encoding="utf-8") as f:
                f.write(QUERY + "\n")
                for text in TEXTS:
                    pair = tok([[QUERY, text]], return_tensors="pt", return_token_type_ids="bert" == name)
                    f.write(f"{text}\n{model(**pair).logits[0, 0]:.7g}\n")
        folder = os.path.join(OUT, "rank_" + name)
        model.half().save_pretrained(folder)
        tok.save_pretrained(folder)
        pack(folder)


main()
