# SPDX-License-Identifier: Apache-2.0
"""Writes test/golden/tok/: small vocabularies as tokenizer.json, and what Hugging Face's tokenizers
make of the 2,000 strings (tok_strings.py) with them and with the vocabularies of real models.

    tok_golden.py --text stories.txt [--models .cache/models]

The small vocabularies are trained here; the test puts each splitter into the one of byte-level BPE.
A line of <name>.txt is the hash of the ids of one string. SentencePiece itself is the reference of
Gemma, whose vocabulary in GGUF is turned back into the model that it came from.
"""

import argparse
import json
import pathlib
import zipfile

from tok_strings import hash_ids, strings
from tokenizers import AddedToken, Regex, Tokenizer, models, trainers
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre

OUT = pathlib.Path(__file__).parents[2] / "test/golden/tok"
SHORT = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
LINES = r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "llama3": SHORT + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+" + LINES,
    "qwen2": SHORT + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+" + LINES,
    "qwen35": SHORT + r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+" + LINES,
}
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD, SYMBOLS = r"[^\r\n\p{L}\p{N}]?", r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
for name, end, digits in ("gpt4o", SHORT[:-1] + "?", r"\p{N}{1,3}"), ("tekken", "", r"\p{N}"):
    PATTERNS[name] = (f"{LEAD}{CAPITALS}*{SMALL}+{end}|{LEAD}{CAPITALS}+{SMALL}*{end}|"
                      + digits + SYMBOLS)
SPECIAL = [AddedToken(t, special=True, normalized=False)
           for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]


def splitters():
    yield "gpt2", pre.ByteLevel(add_prefix_space=False, use_regex=True)
    yield "smollm", pre.Sequence([pre.Digits(individual_digits=True),
                                  pre.ByteLevel(add_prefix_space=False, use_regex=True)])
    for name, pattern in PATTERNS.items():
        yield name, pre.Sequence([pre.Split(Regex(pattern), "isolated"),
                                  pre.ByteLevel(add_prefix_space=False, use_regex=False)])


def write_hashes(name, encode, texts):
    lines = "".join(f"{hash_ids(encode(t)):08x}\n" for t in texts)
    (OUT / f"{name}.txt").write_text(lines)
    print(name, len(texts))


def write_text(name, tok, texts):
    """User text, where special tokens are letters."""
    tok.no_truncation()
    tok.no_padding()
    tok.encode_special_tokens = True
    write_hashes(name, lambda t: tok.encode(t, add_special_tokens=False).ids, texts)


def write_special(name, tok, texts):
    """A template's text, where they are tokens, with what belongs at the ends."""
    tok.no_truncation()
    tok.no_padding()
    tok.encode_special_tokens = False
    write_hashes(name + "_special", lambda t: tok.encode(t, add_special_tokens=True).ids, texts)


def save(tok, name):
    (OUT / f"{name}.json").write_text(tok.to_str(), encoding="utf-8")


def small_vocabularies(corpus, texts):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=1200, initial_alphabet=pre.ByteLevel.alphabet(), special_tokens=SPECIAL,
        show_progress=False))
    save(tok, "byte_bpe")
    for name, splitter in splitters():
        tok.pre_tokenizer = splitter
        tok.normalizer = norm.NFC() if name.startswith("qwen") else None
        write_text(name, tok, texts)
    write_special("qwen35", tok, texts)

    # Characters with byte fallback, as Gemma's and Llama 2's tokenizer.json are.
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = norm.Replace(" ", "\u2581")
    fallback = [f"<0x{b:02X}>" for b in range(256)]
    tok.train_from_iterator(corpus[:1500], trainers.BpeTrainer(
        vocab_size=1400, limit_alphabet=300, special_tokens=["<unk>", "<s>"] + fallback,
        show_progress=False))
    description = json.loads(tok.to_str())
    description["added_tokens"] = description["added_tokens"][:2]
    tok = Tokenizer.from_str(json.dumps(description))
    save(tok, "char_bpe")
    write_text("char_bpe", tok, texts)

    tok = Tokenizer(models.Unigram())
    tok.normalizer = norm.NFKC()
    tok.pre_tokenizer = pre.Metaspace(replacement="\u2581", prepend_scheme="always")
    tok.train_from_iterator(corpus[95:120] + corpus[2000:], trainers.UnigramTrainer(
        vocab_size=900, special_tokens=["<unk>", "<s>"], unk_token="<unk>", show_progress=False))
    # Few digits, so that both sides read the same numbers.
    description = json.loads(tok.to_str())
    description["model"]["vocab"] = [[p, round(s, 4)] for p, s in description["model"]["vocab"]]
    tok = Tokenizer.from_str(json.dumps(description))
    save(tok, "unigram")
    write_text("unigram", tok, texts)

    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = norm.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre.BertPreTokenizer()
    tok.train_from_iterator(corpus, trainers.WordPieceTrainer(
        vocab_size=1200, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        show_progress=False))
    save(tok, "wordpiece")
    write_text("wordpiece", tok, texts)


def gguf_arrays(path):
    import gguf

    fields = gguf.GGUFReader(path).fields
    return {k: fields["tokenizer.ggml." + k].contents()
            for k in ("tokens", "token_type", "scores", "merges") if "tokenizer.ggml." + k in fields}


def real_vocabularies(folder, texts):
    a = gguf_arrays(folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(a["tokens"])},
                               merges=[tuple(m.split(" ", 1)) for m in a["merges"]]))
    tok.pre_tokenizer = dict(splitters())["smollm"]
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False)
                            for t, k in zip(a["tokens"], a["token_type"]) if k == 3])
    write_text("smollm2", tok, texts)
    write_special("smollm2", tok, texts)

    with zipfile.ZipFile(folder / "minilm.zip") as z:
        tok = Tokenizer.from_str(z.read("tokenizer.json").decode())
    write_text("minilm", tok, texts)
    write_special("minilm", tok, texts)

    from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

    a = gguf_arrays(folder / "gemma-3-270m-q4_k_m.gguf")
    m = sentencepiece_model_pb2.ModelProto()
    for text, kind, score in zip(a["tokens"], a["token_type"], a["scores"]):
        piece = m.pieces.add()
        piece.piece = text.replace(" ", "\u2581") if kind == 4 else text
        piece.score = score
        piece.type = 2 if text == "<unk>" else kind
    m.trainer_spec.model_type = 2
    m.trainer_spec.byte_fallback = True
    m.trainer_spec.pad_id, m.trainer_spec.eos_id = 0, 1
    m.trainer_spec.bos_id, m.trainer_spec.unk_id = 2, 3
    m.normalizer_spec.name = "identity"
    m.normalizer_spec.add_dummy_prefix = False
    m.normalizer_spec.remove_extra_whitespaces = False
    write_hashes("gemma3", SentencePieceProcessor(model_proto=m.SerializeToString()).encode, texts)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--text", required=True)
    args.add_argument("--models")
    args = args.parse_args()
    texts = strings()
    lines = pathlib.Path(args.text).read_text(encoding="utf-8")[:200000].splitlines(keepends=True)
    small_vocabularies(texts + lines, texts)
    if args.models:
        real_vocabularies(pathlib.Path(args.models), texts)


main()
