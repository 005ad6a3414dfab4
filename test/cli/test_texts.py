#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_texts.py - what becomes of texts on their way into a model and out of it: prompts that are cut, chat
templates, stops and banned texts, bytes that a vocabulary lacks, zeros in a conversation.

The models are of one layer with random weights; their tokens are bytes and a few special ones.
"""
import json
import os
import shutil
import struct
import zipfile

from gguf_file import Gguf, alphabet
from util import TOP, check, equal, expect, main, read, tinygpt, write

SPECIAL = ["<s>", "<|im_start|>", "<|im_end|>"]
BOS, START, END = 256, 257, 258
TURN = "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
LOOP = "{% for message in messages %}" + TURN + "{% endfor %}"
BEGIN = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"


def model(name, window=16, template=None, add_bos=True, tokens=None):
    g = Gguf((tokens or alphabet()) + SPECIAL)
    n = len(tokens or alphabet())
    g.types([1] * n + [3] * 3)
    g.number("llama.context_length", window)
    g.number("tokenizer.ggml.bos_token_id", n)
    g.bool("tokenizer.ggml.add_bos_token", add_bos)
    if template:
        g.string("tokenizer.chat_template", template)
    write(name, g.bytes())


def best(prompt, *args):
    r = tinygpt("sample", "m.gguf", "--prompt", prompt, "--best", "5", "--json", *args)
    expect(r, 0, "the likeliest tokens")
    return r.json()["best"]


def first_token_of_a_cut_prompt():
    """A prompt that does not fit keeps the token that begins texts, and then its newest ones."""
    model("m.gguf")
    long = "abcdefghij" * 4
    equal(best(long), best(long[-14:]), "what a cut prompt is read as")
    equal(best(long, "--ctx", "8"), best(long[-6:]), "the same in a smaller window")
    cut = tinygpt("sample", "m.gguf", "--prompt", long, "--tokens", "1", "--ctx", "8")
    expect(cut, 0, "a cut prompt", err=["has 41 tokens and the window 8: 34 were left out", "--ctx 16 keeps more"])
    cut = tinygpt("sample", "m.gguf", "--prompt", "abcdefghij", "--tokens", "1", "--ctx", "8")
    expect(cut, 0, "one that the model has room for", err="--ctx 12 keeps them")
    model("m.gguf", add_bos=False)
    equal(best(long), best(long[-15:]), "without such a token the newest ones are all")


def prompt_of(template, *args):
    model("t.gguf", 128, template)
    return tinygpt("chat", "t.gguf", "--tokens", "1", "--json", *args, data=b"Hi\n")


def templates():
    """A template of the file's own is run, whatever it writes; --template decides."""
    plain = prompt_of(LOOP + BEGIN)
    expect(plain, 0, "ChatML")
    n = plain.json()["prompt_tokens"]
    equal(prompt_of("{{ bos_token }}" + LOOP + BEGIN).json()["prompt_tokens"], n + 1, "ChatML with a first token")
    laid_out = "{%- for message in messages %}\n    {{- " + TURN[2:-2] + " -}}\n{% endfor -%}\n" + BEGIN
    equal(prompt_of(laid_out).json()["prompt_tokens"], n, "ChatML, laid out otherwise")
    system = LOOP.replace(TURN, "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nMeow.<|im_end|>\n' }}"
                          "{% endif %}" + TURN)
    equal(prompt_of(system + BEGIN).json()["prompt_tokens"], n + 2 + len("system\nMeow.\n"), "a system turn of its own")
    equal(prompt_of((LOOP + BEGIN).replace(" + '\n'}}", "}}")).json()["prompt_tokens"], n - 1, "no line end behind turns")
    equal(prompt_of(LOOP.replace("{% endfor %}", "{{ eos_token }}{% endfor %}") + BEGIN).json()["prompt_tokens"], n + 1,
          "eos behind turns")
    equal(prompt_of(LOOP.replace("{% endfor %}", "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}"
                                 "{% endfor %}") + BEGIN).json()["prompt_tokens"], n, "eos behind answers, of which there is none")
    for what, other, more in (("answers called model", (LOOP + BEGIN).replace("assistant", "model"),
                               len("model") - len("assistant")),
                              ("eos in front of turns", LOOP.replace("%}{{", "%}{{ eos_token }}{{", 1) + BEGIN, 1)):
        equal(prompt_of(other).json()["prompt_tokens"], n + more, what)
        equal(prompt_of(other, "--template", "chatml").json()["prompt_tokens"], n, f"{what}, but named")
    expect(prompt_of("{{ nothing_of_the_kind() }}"), 2, "a call of what is not there", err="nothing_of_the_kind")
    expect(prompt_of("{% for i in range(10**9) %}a{% endfor %}"), 2, "a template without an end")
    for date in ("2026-02-29", "29 Nov 2026", "2026-13-01", ""):
        expect(prompt_of(LOOP + BEGIN, "--date", date), 2, f"--date {date}", err="YYYY-MM-DD")
    expect(prompt_of("{{ strftime_now('%d') }}" + LOOP + BEGIN, "--date", "2028-02-29"), 0, "--date")
    expect(prompt_of(LOOP + BEGIN, "--date", "2028-02-29"), 2, "--date where no template asks", err="have one that writes none")


def stops_and_bans():
    """One text an option, whatever is in it; one that is a special token is that token."""
    model("m.gguf")
    end = ("sample", "m.gguf", "--prompt", "a", "--tokens", "6", "--json", "--temp", "0")
    j = tinygpt(*end, "--bias", f"{END}:1000", "--stop", "<|im_end|>").json()
    equal((j["ids"], j["text"]), ([END], ""), "a special token ends a text")
    j = tinygpt(*end, "--bias", f"{END}:1000", "--ban", "<|im_end|>").json()
    check(len(j["ids"]) == 6 and END not in j["ids"], "or is never drawn")
    j = tinygpt(*end, "--bias", "124:1000", "--stop", "a|b").json()
    equal(j["text"], "||||||", "a bar parts nothing")
    j = tinygpt(*end, "--bias", "124:1000", "--stop", "x", "--stop", "||").json()
    equal(j["text"], "", "the second stop of two")
    many = [x for i in range(65) for x in ("--ban", chr(33 + i))]
    expect(tinygpt(*end, *many), 2, "65 texts", err="at most 64")
    expect(tinygpt(*end, *many[:-2]), 0, "64 texts")
    model("t.gguf", 128, LOOP + BEGIN)
    talk = ("chat", "t.gguf", "--tokens", "6", "--temp", "0", "--json", "--bias")
    equal(tinygpt(*talk, "97:1000", "--stop", "aaa", data=b"Hi\n").json()["text"], "", "chat --stop")
    equal(tinygpt(*talk, "97:1000", "--stop", "ab", data=b"Hi\n").json()["text"], "aaaaaa", "chat, a beginning of one")
    check("a" not in tinygpt(*talk, "97:1000", "--ban", "a", data=b"Hi\n").json()["text"], "chat --ban")
    equal(tinygpt(*talk, f"{BOS}:1000", "--stop", "<s>", data=b"Hi\n").json()["tokens"], 1, "chat, a special token, which counts as in sample")


def bytes_that_a_vocabulary_lacks():
    tokens = [t for i, t in enumerate(alphabet()) if i not in (4, 6)]
    model("m.gguf", add_bos=False, tokens=tokens)
    j = tinygpt("tokenize", "m.gguf", "a\4\6b", "--json").json()
    equal(j["pieces"], ["a", "b"], "they are left out")


def zeros_in_a_conversation():
    """A zero byte is one of a turn's, and ends no line; a piped turn without an answer is a failure."""
    model("t.gguf", 64, LOOP + BEGIN)
    r = tinygpt("chat", "t.gguf", "--tokens", "1", "--json", data=b"a\0b\nc\n")
    expect(r, 0, "a zero in a line")
    rows = r.json_lines()
    first = tinygpt("chat", "t.gguf", "--tokens", "1", "--json", data=b"axb\n").json()
    equal((len(rows), rows[0]["prompt_tokens"]), (2, first["prompt_tokens"]), "two turns, the first of three bytes")
    expect(tinygpt("chat", "t.gguf", "--json", data=b"/x\0\n"), 0, "a zero in a command", err="zero byte")
    long = tinygpt("chat", "t.gguf", "--tokens", "1", data=b"x" * 100 + b"\nHi\n")
    expect(long, 1, "a piped turn that does not fit", err=["does not fit", "have 64", "sees no more than 64 tokens"])


def added_tokens_that_are_normalised():
    """tokenizer.json: such a token is looked for in the normalised text, as what it becomes there."""
    added = [{"id": 5, "content": "iPhone", "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": True, "special": False}]
    vocab = {"[UNK]": 0, "an": 1, "i": 2, "##phone": 3, "##p": 4}
    write("w.json", json.dumps({
        "version": "1.0", "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocab}}).encode())
    for said in ("an iphone", "an iPhone", "AN IPHONE"):
        r = tinygpt("tokenize", "w.json", said, "--json")
        expect(r, 0, said)
        equal(r.json()["ids"], [1, 5], said)
    pieces = ["<unk>", "\u2581", "a", "b", "<", "t", "o", "l", ">", "\u2581a"]
    added[0].update({"id": len(pieces), "content": "<tool>"})
    write("l.json", json.dumps({
        "version": "1.0", "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {p: i for i, p in enumerate(pieces)}, "merges": ["\u2581 a"]}}).encode())
    r = tinygpt("tokenize", "l.json", "a<tool>b", "--json")
    expect(r, 0, "a prefix makes another text of it")
    equal(r.json()["ids"], [9, 4, 5, 6, 6, 7, 8, 3], "so it is taken apart, as in tokenizers")


def embeddings_as_their_files_say():
    """Ways of pooling and lengths are those of sentence-transformers; what is not known is refused by name."""
    with zipfile.ZipFile(os.path.join(TOP, "test", "golden", "lm", "bert.zip")) as z:
        z.extractall("bert")
    long = "a b c d e f g h i j k l"
    n = len(tinygpt("tokenize", "bert", long, "--json", "--ends").json()["ids"])
    check(n > 8, "a text of more than eight tokens")
    whole = tinygpt("embed", "bert", long, "--json").json()["vectors"]
    write("bert/sentence_bert_config.json", b'{"max_seq_length": 8, "do_lower_case": false}')
    expect(tinygpt("embed", "bert", long), 2, "max_seq_length", err="want at most 8 tokens")
    cut = tinygpt("embed", "bert", long, "--cut", "--json").json()["vectors"]
    check(cut != whole, "of a text that is cut")
    t = json.loads(read("bert/tokenizer.json"))
    t["truncation"] = {"direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 0}
    write("bert/tokenizer.json", json.dumps(t).encode())
    equal(tinygpt("embed", "bert", long, "--cut", "--json").json()["vectors"], cut, "it goes before the tokenizer's")
    os.remove("bert/sentence_bert_config.json")
    expect(tinygpt("embed", "bert", long), 2, "truncation", err="want at most 6 tokens")
    write("bert/sentence_bert_config.json", b'{"max_seq_length": "x"}')
    expect(tinygpt("embed", "bert", long), 2, "no number", err="max_seq_length")
    write("bert/sentence_bert_config.json", b'{"max_seq_length": null}')
    for modes, way in ((("max_tokens",), "max"), (("mean_sqrt_len_tokens",), "mean-sqrt-len"), ((), "mean"),
                       (("weightedmean_tokens",), "weighted-mean"), (("lasttoken",), "last")):
        config = {f"pooling_mode_{m}": True for m in modes}
        write("bert/1_Pooling/config.json", json.dumps(config).encode())
        equal(vectors("bert", "a b"), vectors("bert", "a b", "--pooling", way), f"pooling by {modes}")
    write("bert/1_Pooling/config.json", b'{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true}')
    equal(vectors("bert", "a b", "--raw"), [vectors("bert", "a b", "--raw", "--pooling", "cls")[0] +
                                            vectors("bert", "a b", "--raw", "--pooling", "mean")[0]],
          "two at once, in the library's order")
    write("bert/1_Pooling/config.json", b'{"pooling_mode": "first"}')
    expect(tinygpt("embed", "bert", "a"), 2, "a way that is not known", err=["pooling_mode", "first"])
    write("bert/1_Pooling/config.json", b'{"pooling_mode": ["cls", "max"]}')
    write("bert/modules.json", json.dumps([{"type": f"sentence_transformers.models.{m}", "path": p} for m, p in (
        ("Transformer", ""), ("Pooling", "1_Pooling"), ("Dense", "2_Dense"))]).encode())
    expect(tinygpt("embed", "bert", "a"), 2, "a matrix behind it all", err=["modules.json", "models.Dense"])
    os.remove("bert/modules.json")
    two = vectors("bert", "a b")
    expect(tinygpt("convert", "bert", "bert.gguf", "--dtype", "f32"), 0, "to GGUF")
    equal(vectors("bert.gguf", "a b"), two, "ways of pooling go along")
    expect(tinygpt("convert", "bert.gguf", "again", "--format", "safetensors", "--dtype", "f32"), 0, "and back")
    equal(vectors("again", "a b"), two, "and come back")


def rerankers():
    """Best first; the same in every form of the file; what has no head, one of several labels or of another kind."""
    lm = os.path.join(TOP, "test", "golden", "lm")
    for family in "bert", "modernbert", "modernbert_cls":
        source = os.path.join(lm, f"rank_{family}.zip")
        asked = ("the cat bites a dog?", "a dog.", "the\ncat", "")
        ranked = tinygpt("rerank", source, *asked)
        expect(ranked, 0, "a ranking")
        lines = ranked.text.splitlines()
        scores = [float(line.split()[0]) for line in lines]
        equal(scores, sorted(scores, reverse=True), "the best one is first")
        equal(sorted(line.split()[1] for line in lines), ["1", "2", "3"], "numbers of texts, a line each")
        best = tinygpt("rerank", source, *asked, "--top", "1", "--json").json()
        equal([best["texts"], str(best["ranking"][0]["text"])], [3, lines[0].split()[1]], "the best one alone")
        expect(tinygpt("convert", source, "r.gguf", "--dtype", "f32"), 0, "to GGUF", out="vectors of 5 texts")
        expect(tinygpt("convert", "r.gguf", "again", "--format", "safetensors", "--dtype", "f32"), 0, "to a folder")
        expect(tinygpt("convert", source, "r.tinygpt", "--dtype", "f32"), 0, "to .tinygpt")
        for form in "r.gguf", "again", "r.tinygpt":
            equal(tinygpt("rerank", form, *asked).text.splitlines(), lines, form)
        check(not os.path.exists("again/1_Pooling"), "no folder of pooling, as transformers has none there")
        shutil.rmtree("again")
    # Of the mean one more way of pooling is made, in a header that is 32 bytes longer, so that all else lies as before.
    expect(tinygpt("convert", os.path.join(lm, "rank_modernbert.zip"), "r.gguf", "--dtype", "f32", "--force"), 0, "to GGUF")
    whole = read("r.gguf")
    at = whole.index(b"pooling_modes") + len(b"pooling_modes") + 4
    names = b"lasttoken,lasttoken,cls,cls,cls,mean"
    write("ways.gguf", whole[:at] + struct.pack("<Q", len(names)) + names + whole[at + 8 + len(b"mean"):])
    expect(tinygpt("rerank", "ways.gguf", "a", "b"), 2, "several ways of pooling", err="want one way, have 6")
    equal(json.loads(zipfile.ZipFile(source).read("config.json"))["classifier_pooling"], "cls", "the last one's")
    with zipfile.ZipFile(source) as z:
        z.extractall("r")
    config = json.loads(read("r/config.json"))
    for key, value in ("classifier_activation", "relu"), ("classifier_pooling", "max"), ("id2label", {"0": "a", "1": "b"}):
        write("r/config.json", json.dumps(config | {key: value}).encode())
        expect(tinygpt("rerank", "r", "a", "b"), 2, key, err=[key, "have others" if key == "id2label" else value])
    expect(tinygpt("rerank", os.path.join(lm, "bert.zip"), "a", "b"), 2, "no head", err="cls.output.weight")
    expect(tinygpt("rerank", os.path.join(lm, "tune_qwen3.zip"), "a", "b"), 2, "a decoder", err="cls.output.weight")
    expect(tinygpt("rerank", source, "a"), 2, "no text", err="want TEXT or --file F, have none")
    expect(tinygpt("rerank", source, "a", "b " * 99), 2, "too long", err="at most 64 tokens")
    expect(tinygpt("rerank", source, "a", "b " * 99, "--cut"), 0, "too long, cut")
    expect(tinygpt("embed", source, "a"), 2, "a reranker gives no vector unless it is told how", err="is a reranker: tinygpt rerank")
    expect(tinygpt("embed", source, "a", "--pooling", "cls"), 0, "its vectors")


def encoders():
    """ModernBERT, nomic-embed and EmbeddingGemma: in other forms, with what stands around them, and what is refused."""
    def unpacked(name):
        with zipfile.ZipFile(os.path.join(TOP, "test", "golden", "lm", f"embed_{name}.zip")) as z:
            z.extractall(name)

    def changed(path, **keys):
        c = json.loads(read(path))
        write(path, json.dumps({k: v for k, v in (c | keys).items() if v != "gone"}).encode())

    text = "the dog bites a cat. the cat bites"
    mask = r"want.* a vocabulary with \[MASK\] or <mask>, have one without"
    lacks = {"modernbert": mask, "nomic": mask, "embeddinggemma": r"dense_2\.weight: .*want.* without it, have it"}
    for name, lack in lacks.items():
        unpacked(name)
        want = vectors(name, text)
        expect(tinygpt("convert", name, "e.gguf", "--dtype", "f32"), 0, "to GGUF")
        equal(vectors("e.gguf", text), want, "as GGUF")
        expect(tinygpt("convert", "e.gguf", "again", "--format", "safetensors", "--dtype", "f32"), 0, "to a folder")
        equal(vectors("again", text), want, "as a folder")
        shutil.rmtree("again")
        write("x.txt", b"the cat " * 99)
        expect(tinygpt("train", "--from", name, "--data", "x.txt"), 2, "what training lacks there", err=lack)
    query = vectors("embeddinggemma", text, "--prompt-name", "query")
    check(query == vectors("e.gguf", text, "--prompt-name", "query") != want, "prompts go along")
    expect(tinygpt("embed", "embeddinggemma", "a", "--prompt-name", "x"), 2, "no such prompt",
           err="want one of '' 'document' 'query', have 'x'")
    changed("embeddinggemma/2_Dense/config.json", bias=True)
    expect(tinygpt("embed", "embeddinggemma", "a"), 2, "a bias", err=["2_Dense/config.json", "have bias true"])
    changed("embeddinggemma/2_Dense/config.json", bias=False, activation_function="torch.nn.modules.activation.Tanh")
    expect(tinygpt("embed", "embeddinggemma", "a"), 2, "a function", err="Tanh")
    for key, value in ("in_features", "gone"), ("out_features", "gone"), ("in_features", 0), ("out_features", "x"):
        unpacked("embeddinggemma")
        changed("embeddinggemma/2_Dense/config.json", **{key: value})
        expect(tinygpt("embed", "embeddinggemma", "a"), 2, f"{key} {value}", err=["2_Dense/config.json", key])
    unpacked("embeddinggemma")
    expect(tinygpt("info", "embeddinggemma"), 0, "its files", out="3 files")
    shutil.copytree("embeddinggemma", "narrow")
    for folder, shape, key in ("2_Dense", [24, 16], "out_features"), ("3_Dense", [16, 24], "in_features"):
        changed(f"narrow/{folder}/config.json", **{key: 24})
        head = json.dumps({"linear.weight": {"dtype": "F16", "shape": shape, "data_offsets": [0, 768]}}).encode()
        write(f"narrow/{folder}/model.safetensors", struct.pack("<Q", len(head)) + head + bytes(768))
    for pair in ("embeddinggemma", "narrow"), ("narrow", "embeddinggemma"):
        expect(tinygpt("verify", *pair), 1, "matrices of other sizes", out="shape differs: ")
    whole = read("e.gguf")
    at = whole.index(b"embedding_prompts") + len(b"embedding_prompts") + 4
    n, = struct.unpack_from("<Q", whole, at)
    write("list.gguf", whole[:at + 8] + b"[\"a\"]".ljust(n) + whole[at + 8 + n:])
    for args in ("embed", "list.gguf", "a"), ("convert", "list.gguf", "x", "--format", "safetensors"):
        expect(tinygpt(*args), 2, "prompts without names", err="want an object of prompts")
    want = vectors("nomic", text)  # the words of Nomic's own files
    changed("nomic/config.json", n_embd=16, n_head=2, n_inner=32, n_layer=2, n_positions=8192, max_trained_positions=128,
            activation_function="swiglu", rotary_emb_base=1000, rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
            layer_norm_epsilon=1e-12, prenorm=False, rotary_scaling_factor=None, rotary_emb_scale_base=None,
            fused_bias_fc=True, use_xentropy=True, hidden_size="gone", num_attention_heads="gone",
            intermediate_size="gone", num_hidden_layers="gone", max_position_embeddings="gone", rope_parameters="gone",
            layer_norm_eps="gone", hidden_act="gone", head_dim="gone")
    equal(vectors("nomic", text), want, "under older names")
    for key, value in ("prenorm", True), ("rotary_emb_fraction", 0.5), ("activation_function", "geglu"):
        unpacked("nomic")
        changed("nomic/config.json", n_embd=16, n_head=2, n_inner=32, n_layer=2, n_positions=128, **{key: value})
        expect(tinygpt("embed", "nomic", "a"), 2, key, err=key)
    unpacked("modernbert")
    changed("modernbert/config.json", max_position_embeddings=2048)
    changed("modernbert/tokenizer_config.json", model_max_length=2048)
    long = "the cat a b c " * 180
    both = vectors("modernbert", "a b", long, text)
    check(len(both) == 3, "a text that is longer than a run of short ones")
    equal(both[0:1] + both[2:], vectors("modernbert", "a b", text), "and those beside it")
    equal(both[1:2], vectors("modernbert", long), "each by itself")
    changed("modernbert/config.json", norm_bias=True)
    expect(tinygpt("embed", "modernbert", "a"), 2, "shifts", err="norm_bias")


def vectors(*args):
    r = tinygpt("embed", *args, "--json")
    expect(r, 0, f"embed {' '.join(args)}")
    return r.json()["vectors"]


def cuts_of_embeddings():
    """Which text was cut, and by how many tokens."""
    model("m.gguf", 8)
    r = tinygpt("embed", "m.gguf", "abc", "abcdefghij", "--cut", "--json")
    expect(r, 0, "a text that is cut", err="text 2 of 2: 3 of 11 tokens are cut off its end: at most 8 count")
    equal(r.json()["vectors"][1], vectors("m.gguf", "abcdefg")[0], "what is left counts")
    expect(tinygpt("embed", "m.gguf", "abc", "abcdefghij"), 2, "without --cut",
           err="text 2 of 2: want at most 8 tokens, have 11")


def embeddings_of_decoders():
    """The last token's vector where the file says nothing; what a GGUF file says else, or a refusal by number."""
    model("m.gguf", 1024)
    equal(vectors("m.gguf", "abc"), vectors("m.gguf", "abc", "--pooling", "last"), "a decoder's default")
    long = "".join(chr(97 + i * i % 23) for i in range(900))
    check(vectors("m.gguf", long, long[:600]) == vectors("m.gguf", long) + vectors("m.gguf", long[:600]),
          "texts of several pieces, together and alone")
    for kind, way in ((1, "mean"), (2, "cls"), (3, "last"), (0, None), (4, None)):
        g = Gguf(alphabet())
        g.number("llama.context_length", 16)
        g.number("llama.pooling_type", kind)
        write("p.gguf", g.bytes())
        if way:
            equal(vectors("p.gguf", "abc"), vectors("p.gguf", "abc", "--pooling", way), f"pooling_type {kind}")
        else:
            expect(tinygpt("embed", "p.gguf", "abc"), 2, f"pooling_type {kind}", err=f"have {kind}: name a way")
            vectors("p.gguf", "abc", "--pooling", "mean")


def several_ways_of_pooling():
    """In the order of the list, as sentence-transformers' own numbers (test/golden/lm/embed_modes.txt)."""
    golden = os.path.join(TOP, "test", "golden", "lm")
    with zipfile.ZipFile(os.path.join(golden, "embed_qwen3.zip")) as z:
        z.extractall("qwen")
    lines = read(os.path.join(golden, "embed_modes.txt")).decode().splitlines()
    write("qwen/1_Pooling/config.json", json.dumps({"pooling_mode": [
        "weightedmean", "cls", "max", "lasttoken", "mean_sqrt_len_tokens", "mean"]}).encode())
    have, want = vectors("qwen", lines[0], "--raw")[0], [float(x) for x in lines[-1].split()]
    equal(len(have), len(want), "a vector for each way")
    check(max(abs(a - b) for a, b in zip(have, want)) < 2e-5, "its numbers")


def embeddings_of_a_run():
    """A model that was trained here embeds as what is made of it for others."""
    write("t.txt", b"Once upon a time there was a cat. " * 40)
    expect(tinygpt("train", "--data", "t.txt", "--steps", "1", "--layers", "1", "--width", "32", "--ctx", "16",
                   "--batch", "1", "--out", "run.tinygpt"), 0, "a run")
    expect(tinygpt("convert", "run.tinygpt", "run.gguf", "--dtype", "f32"), 0, "for others")
    for way in ("last", "mean", "weighted-mean"):
        have, want = vectors("run.tinygpt", "a cat", "--pooling", way)[0], vectors("run.gguf", "a cat", "--pooling", way)[0]
        check(max(abs(a - b) for a, b in zip(have, want)) < 1e-4, f"by {way}")
    expect(tinygpt("embed", "run.tinygpt", "more than sixteen"), 2, "a text of 17", err="want at most 16 tokens, have 17")


def a_full_window_of_chat():
    """The note names the option that makes room, or says that there is no more."""
    model("t.gguf", 128, LOOP + BEGIN)
    turn = ("chat", "t.gguf", "--tokens", "1", "--full", "refuse")
    expect(tinygpt(*turn, "--ctx", "24", data=b"a" * 60 + b"\n"), 1, "a window that is too small",
           err=["does not fit", "--ctx 96 makes more room"])
    expect(tinygpt(*turn, "--ctx", "24", data=b"a" * 100 + b"\n"), 1, "up to the model's", err="--ctx 128 makes more room")
    expect(tinygpt(*turn, data=b"a" * 300 + b"\n"), 1, "the model's own", err="the model sees no more than 128 tokens")
    slid = tinygpt("chat", "t.gguf", "--tokens", "1", "--full", "slide", "--ctx", "48", data=b"abcdefgh\nabcdefgh\n")
    expect(slid, 0, "a turn that is forgotten", err="--ctx 96 makes more room: the oldest turn is forgotten")


def empty_texts_of_options():
    """A stop is a text, and no name of a file; the shell offers no files for it."""
    model("m.gguf")
    for option in "--stop", "--ban":
        expect(tinygpt("sample", "m.gguf", option, ""), 2, option, err=f"{option}: want a text")
    expect(tinygpt("train", "--data", ""), 2, "--data", err="--data: want the name of a file")
    fish = tinygpt("completion", "fish").text.splitlines()
    files = {line.split(" -l ")[1].split()[0] for line in fish if " -l " in line and " -F" in line}
    check("data" in files and "file" in files, "names of files are offered")
    check(not {"stop", "ban"} & files, "and not for texts")


def models_that_embed_alone():
    """Nobody gets text out of them, or a loss."""
    bert = os.path.join(TOP, "test", "golden", "lm", "bert.zip")
    write("t.txt", b"the cat " * 40)
    for command in (("eval", bert, "--data", "t.txt"), ("sample", bert, "--prompt", "a")):
        expect(tinygpt(*command), 2, command[0], err="want a model that writes text")


main(first_token_of_a_cut_prompt, templates, stops_and_bans, bytes_that_a_vocabulary_lacks,
     zeros_in_a_conversation, added_tokens_that_are_normalised,
     embeddings_as_their_files_say, embeddings_of_decoders, several_ways_of_pooling,
     embeddings_of_a_run, a_full_window_of_chat, empty_texts_of_options,      cuts_of_embeddings, models_that_embed_alone, encoders,
     rerankers)
