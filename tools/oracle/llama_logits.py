#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares logits of a GGUF file by llama.cpp with those of tinygpt, of the same file or of another.

    build/oracle-venv/bin/pip install llama-cpp-python
    build/oracle-venv/bin/python tools/oracle/llama_logits.py FILE.gguf [MODEL] [--lib build/libtinygpt.so]

The ids that llama.cpp makes of a text go through both, one text of up to 64 tokens; what is printed is
the largest difference of a logit, the largest logit, and the mean KL divergence.
"""
import argparse
import ctypes as c

import numpy as np

TEXT = b"To be, or not to be, that is the question: whether 'tis nobler in the mind"


class Tiny:
    """A model file, or none of it but its tokenizer, by way of the library."""

    class Options(c.Structure):
        _fields_ = [("struct_bytes", c.c_size_t), ("threads", c.c_uint), ("isa", c.c_char_p), ("device", c.c_char_p),
                    ("levers", c.c_char_p), ("alloc", c.c_void_p), ("alloc_user", c.c_void_p),
                    ("log", c.c_void_p), ("log_user", c.c_void_p)]

    def __init__(self, lib, path, levers="", threads=0):
        self.tg = c.CDLL(lib)
        self.tg.tg_context_error.restype = c.c_char_p
        self.ctx, self.model, self.tok = c.c_void_p(), c.c_void_p(), c.c_void_p()
        options = self.Options(c.sizeof(self.Options), threads=threads, levers=levers.encode())
        self.must(self.tg.tg_context_new(c.byref(options), c.byref(self.ctx)))
        self.path = path.encode()

    def must(self, status):
        if status:
            raise SystemExit(self.tg.tg_context_error(self.ctx).decode())

    def encode(self, text, flags):
        """flags: 1 with the tokens at the ends, 2 special tokens that the text spells."""
        if not self.tok:
            self.must(self.tg.tg_tokenizer_open(self.ctx, self.path, c.byref(self.tok)))
        data = text.encode()
        ids, n = (c.c_int32 * (len(data) + 8))(), c.c_size_t()
        self.must(self.tg.tg_tokenizer_encode(self.ctx, self.tok, data, c.c_size_t(len(data)), flags, ids,
                                              c.c_size_t(len(ids)), c.byref(n)))
        return list(ids[: n.value])

    def logits(self, ids, vocab, last=0):
        """[last][vocab]: at the last positions; 0: at all."""
        session, logits, rows = c.c_void_p(), c.POINTER(c.c_float)(), []
        if not self.model:
            self.must(self.tg.tg_model_open(self.ctx, self.path, c.byref(self.model)))
        self.must(self.tg.tg_session_new(self.ctx, self.model, 0, c.byref(session)))
        first = len(ids) - last + 1 if last else 1
        for piece in [ids[:first], *([i] for i in ids[first:])]:
            self.must(self.tg.tg_session_eval(session, (c.c_int32 * len(piece))(*piece),
                                              c.c_size_t(len(piece)), c.byref(logits)))
            rows.append(np.ctypeslib.as_array(logits, (vocab,)).copy())
        self.tg.tg_session_free(session)
        return np.stack(rows)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("gguf")
    a.add_argument("model", nargs="?")
    a.add_argument("--lib", default="build/libtinygpt.so")
    a.add_argument("--levers", default="")
    o = a.parse_args()
    import llama_cpp
    llm = llama_cpp.Llama(o.gguf, n_ctx=128, logits_all=True, verbose=False, n_threads=2)
    ids = llm.tokenize(TEXT, add_bos=False)[: min(64, llm._model.n_ctx_train())]
    print("tokens", len(ids), ids[:12])
    llm.eval(ids)
    theirs = np.array(llm.scores[:len(ids)], dtype=np.float32)
    ours = Tiny(o.lib, o.model or o.gguf, o.levers).logits(ids, theirs.shape[1])
    p, q = softmax(ours), softmax(theirs)
    kl = (p * (np.log(p + 1e-30) - np.log(q + 1e-30))).sum(-1)
    print(f"largest difference {np.abs(ours - theirs).max():.4g} of logits up to "
          f"{np.abs(theirs).max():.4g}, mean KL {kl.mean():.3g}, same likeliest "
          f"{(ours.argmax(-1) == theirs.argmax(-1)).mean():.3f}")


if __name__ == "__main__":
    main()
