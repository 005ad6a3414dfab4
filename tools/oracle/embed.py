#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/lm/embed_*: tiny random decoders and encoders as folders of sentence-transformers, and texts with their vectors.

    build/oracle-venv/bin/pip install torch==2.14.1 transformers==5.24.0 sentence-transformers==6.2.0
    build/oracle-venv/bin/python tools/oracle/embed.py [FAMILY..]

embed_FAMILY.zip is what the library saves, and embed_FAMILY.txt what its encode() gives: lines of a text and of its
vector. The families differ in how they pool, and in what goes around a text: Qwen 3 has an end behind it, no head,
the last token's vector, and an instruction in front of queries, as Qwen3-Embedding; Llama a beginning, and two ways at once; Gemma a prompt, and older
keys; GPT-2 names nothing. ModernBERT and EmbeddingGemma have windows that their texts are longer than, the latter two
matrices behind the mean and a prompt for each task. The texts end in a long one, which is cut at the 64 tokens of tokenizer_config.json.
embed_modes.txt has every way of pooling of the first text but one of Qwen 3, and several at once.
"""
import json
import os
import shutil
import sys

import tokenizers as tk
import torch
import transformers as tf
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as st

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from zip_folder import pack

OUT = os.path.join(os.path.dirname(__file__), "../../test/golden/lm")
C, M = 16, 32
PIECES = ["<pad>", "<bos>", "<eos>", "Ġ", "."] + list("abcdefghijklmnopqrst") + ["at", "Ġc", "Ġcat", "th", "the"]
MERGES = [("a", "t"), ("Ġ", "c"), ("Ġc", "at"), ("t", "h"), ("th", "e")]
TEXTS = ["the cat", "a", "the dog bites a cat. the cat bites", "abc def " * 7, "the long tea " * 12]
MODES = ["mean", "cls", "lasttoken", "max", "mean_sqrt_len_tokens", "weightedmean",
         ["weightedmean", "cls", "max", "lasttoken", "mean_sqrt_len_tokens", "mean"]]
INSTRUCT = "find the cat. "
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", ":", "the", "cat", *"abcdefghijklmnopqrst"] + [
    "##" + c for c in "abcdefghijklmnopqrst"]
SIZES = dict(vocab_size=len(PIECES), hidden_size=C, intermediate_size=M, num_attention_heads=2, num_key_value_heads=1,
             head_dim=8, num_hidden_layers=2, max_position_embeddings=128, bos_token_id=None, eos_token_id=None,
             pad_token_id=None)


def families():
    yield "qwen3", tf.Qwen3Model(tf.Qwen3Config(tie_word_embeddings=False, **SIZES)), "$A <eos>", "lasttoken"
    yield "llama", tf.LlamaModel(tf.LlamaConfig(tie_word_embeddings=True, **SIZES)), "<bos> $A", ["mean", "cls"]
    yield "gemma3", tf.Gemma3TextModel(tf.Gemma3TextConfig(
        sliding_window=4, query_pre_attn_scalar=8, **(SIZES | {"num_hidden_layers": 6}))), "<bos> $A <eos>", "max"
    yield "gpt2", tf.GPT2Model(tf.GPT2Config(
        vocab_size=len(PIECES), n_embd=C, n_layer=2, n_head=2, n_positions=128, bos_token_id=None,
        eos_token_id=None)), None, "lasttoken"
    own = SIZES | {"vocab_size": len(WORDS)}
    alike = {k: v for k, v in own.items() if k not in ("num_key_value_heads", "head_dim")}
    yield "modernbert", tf.ModernBertModel(tf.ModernBertConfig(
        local_attention=8, global_rope_theta=5000.0, local_rope_theta=300.0,
        **(alike | {"num_hidden_layers": 4, "cls_token_id": None, "sep_token_id": None}))), "words", "cls"
    yield "nomic", tf.NomicBertModel(tf.NomicBertConfig(**(alike | {"pad_token_id": 0})), add_pooling_layer=False), "words", "mean"
    yield "embeddinggemma", tf.Gemma3TextModel(tf.Gemma3TextConfig(
        sliding_window=8, query_pre_attn_scalar=8, use_bidirectional_attention=True,
        **(own | {"num_hidden_layers": 6}))), "words", "mean"


def fill(model, gains_at):
    for key, p in model.named_parameters():
        p.normal_(0, 0.3 if p.ndim == 2 else 0.2)
        if any(s in key for s in ("norm", "ln_")) and key.endswith("weight"):
            p.add_(gains_at)
        p.copy_(p.half().float())


def words():
    """BERT's kind, as nomic-embed has it. It has a token for any text, which converting asks for."""
    t = tk.Tokenizer(tk.models.WordPiece({p: i for i, p in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer = tk.normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = tk.pre_tokenizers.BertPreTokenizer()
    t.post_processor = tk.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.add_special_tokens(WORDS[:4])
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                      sep_token="[SEP]", model_max_length=64)


def tokenizer(around):
    if around == "words":
        return words()
    t = tk.Tokenizer(tk.models.BPE({p: i for i, p in enumerate(PIECES)}, MERGES))
    t.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tk.decoders.ByteLevel()
    t.add_special_tokens(PIECES[:3])
    if around:
        t.post_processor = tk.processors.TemplateProcessing(
            single=around, special_tokens=[(p, PIECES.index(p)) for p in ("<bos>", "<eos>") if p in around])
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="<pad>", model_max_length=64)


def line(v):
    return " ".join(f"{x:.7g}" for x in v.tolist()) + "\n"


def library_of(name, model, around, mode):
    """Through a folder, since that is how the library wants a model; then in full precision again."""
    folder = os.path.join(OUT, "embed_" + name)
    model.save_pretrained(folder)
    tokenizer(around).save_pretrained(folder)
    prompts = {"prompts": {"query": "the dog. "}, "default_prompt_name": "query"} if name == "gemma3" else {}
    if name == "qwen3":
        prompts = {"prompts": {"query": INSTRUCT, "document": ""}}
    behind = []
    if name == "embeddinggemma":
        prompts = {"prompts": {"query": "the dog. ", "document": "a cat: ", "": ""}}
        behind = [st.Dense(C, 3 * C, bias=False, activation_function=torch.nn.Identity()),
                  st.Dense(3 * C, C, bias=False, activation_function=torch.nn.Identity())]
        for layer in behind:
            layer.linear.weight.normal_(0, 0.3)
            layer.linear.weight.copy_(layer.linear.weight.half().float())
    return folder, SentenceTransformer(modules=[st.Transformer(folder), st.Pooling(C, mode), *behind, st.Normalize()],
                                       device="cpu", **prompts)


def older_keys(folder):
    """As the library wrote them before 2026."""
    path = os.path.join(folder, "1_Pooling/config.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"word_embedding_dimension": C, "pooling_mode_cls_token": False, "pooling_mode_max_tokens": True,
                   "pooling_mode_mean_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False}, f)


def write_modes(library):
    inputs = library.preprocess([TEXTS[2]])
    with open(os.path.join(OUT, "embed_modes.txt"), "w", encoding="utf-8") as f:
        f.write(TEXTS[2] + "\n")
        for mode in MODES:
            rows = library[0](dict(inputs))
            v = st.Pooling(C, mode)(rows)["sentence_embedding"][0]
            f.write(line(v))


def main():
    only = sys.argv[1:]
    for number, (name, model, around, mode) in enumerate(families()):
        if only and name not in only:
            continue
        torch.manual_seed(number + 1)
        with torch.no_grad():
            fill(model.eval().float(), 0 if "gemma" in name else 1)
            folder, library = library_of(name, model, around, mode)
            vectors = library.encode(TEXTS, batch_size=1, convert_to_tensor=True)
            if name == "qwen3":
                write_modes(library)
        with open(os.path.join(OUT, f"embed_{name}.txt"), "w", encoding="utf-8") as f:
            for text, v in zip(TEXTS, vectors):
                f.write(text + "\n" + line(v))
            if name in ("embeddinggemma", "qwen3"):  # the first text once more, with each prompt
                for prompt in "query", "document":
                    f.write(line(library.encode(TEXTS[:1], prompt_name=prompt, convert_to_tensor=True)[0]))
        shutil.rmtree(folder)
        library.half().save(folder, create_model_card=False)
        if name == "gemma3":
            older_keys(folder)
        if name == "gpt2":
            shutil.rmtree(os.path.join(folder, "1_Pooling"))
            os.remove(os.path.join(folder, "modules.json"))
        pack(folder)


main()
