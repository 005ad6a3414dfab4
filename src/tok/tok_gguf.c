/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tok_gguf.c - what the names in a GGUF file's metadata stand for.
 *
 * The arrays of tokens, scores, types and merges are the loader's to hand over; these names say how
 * they are to be read. A name that is not here belongs to a splitter that is not written yet.
 */
#include "tok/tok.h"

enum { NFC = TG_TOK_NFC, WHOLE = 1, BOS = 2 };

/* Names of one rule stand together; the first one is what convert writes. Which of them take a word
 * that is a piece as it is (WHOLE), and begin a text with bos where the file says nothing (BOS), is
 * llama.cpp's; the composition of Qwen's is their tokenizer.json's, and so is what a small letter
 * is: llama.cpp's gpt-4o and tekken tell case of ASCII alone. */
static const struct {
    const char *pre;
    tg_tok_split split;
    unsigned normal, more;
} pres[] = {
    { "gpt-2", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "phi-2", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "mpt", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "olmo", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "jais", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "trillion", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "gigachat", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "mellum", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "a.x-4.0", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "exaone4", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "granite-docling", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "jina-es", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "jina-de", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "jina-v2-es", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "jina-v2-de", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "modern-bert", TG_TOK_SPLIT_GPT2, 0, 0 },
    { "smollm", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "starcoder", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "refact", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "command-r", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "codeshell", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "exaone", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "minerva-7b", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "mellum2", TG_TOK_SPLIT_SMOLLM, 0, 0 },
    { "llama-bpe", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "llama3", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "llama-v3", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "falcon3", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "falcon-h1", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "pixtral", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "midm-2.0", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "lfm2", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "jina-v5-nano", TG_TOK_SPLIT_LLAMA3, 0, WHOLE | BOS },
    { "smaug-bpe", TG_TOK_SPLIT_LLAMA3, 0, 0 },
    { "dbrx", TG_TOK_SPLIT_LLAMA3, 0, 0 },
    { "glm4", TG_TOK_SPLIT_LLAMA3, 0, 0 },
    { "chatglm-bpe", TG_TOK_SPLIT_LLAMA3, 0, 0 },
    { "qwen2", TG_TOK_SPLIT_QWEN2, NFC, 0 },
    { "deepseek-r1-qwen", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "megrez", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "stablelm2", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "hunyuan", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "kormo", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "f2llmv2", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "solar-open", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "grok-2", TG_TOK_SPLIT_QWEN2, 0, 0 },
    { "qwen35", TG_TOK_SPLIT_QWEN35, NFC, 0 },
    { "gpt-4o", TG_TOK_SPLIT_GPT4O, 0, 0 },
    { "llama4", TG_TOK_SPLIT_GPT4O, 0, 0 },
    { "kanana2", TG_TOK_SPLIT_GPT4O, 0, 0 },
    { "talkie", TG_TOK_SPLIT_GPT4O, 0, 0 },
    { "granite-embed-multi-97m", TG_TOK_SPLIT_GPT4O, 0, WHOLE },
    { "tekken", TG_TOK_SPLIT_TEKKEN, 0, WHOLE | BOS },
};
enum { N_PRES = sizeof pres / sizeof pres[0] };

const char *tg_tok_gguf_pre(tg_tok_split split, unsigned normal, bool ignore_merges) {
    const unsigned more = ignore_merges ? WHOLE : 0;
    for (size_t i = 0; i < N_PRES; i++)
        if (pres[i].split == split && pres[i].normal == (normal & NFC) &&
            (pres[i].more & WHOLE) == more)
            return pres[i].pre;
    for (size_t i = 0; i < N_PRES; i++)
        if (pres[i].split == split) return pres[i].pre;
    return pres[0].pre;
}

/* Files of before May 2024 name none, and llama.cpp cuts them by a rule that is no model's own. */
static tg_status byte_level(tg_ctx *ctx, const char *pre, tg_tok_desc *d) {
    d->model = TG_TOK_BYTE_BPE;
    for (size_t i = 0; pre && i < N_PRES; i++) {
        if (strcmp(pre, pres[i].pre) != 0) continue;
        d->split = pres[i].split;
        d->normal |= pres[i].normal;
        d->ignore_merges = pres[i].more & WHOLE;
        d->add_bos = pres[i].more & BOS;
        return TG_OK;
    }
    const bool none = !pre || strcmp(pre, "default") == 0;
    return tg_fail(
        ctx, TG_E_UNSUPPORTED,
        "tokenizer.ggml.pre: want gpt-2, smollm, llama-bpe, qwen2, qwen35, gpt-4o, tekken "
        "or another name of their rules, have %.60s%s",
        pre ? pre : "none",
        none ? ": the file does not say how its tokenizer cuts words; convert the model "
               "again from its folder"
             : "");
}

tg_status tg_tok_desc_gguf(tg_ctx *ctx, const char *model, const char *pre, tg_tok_desc *d) {
    if (strcmp(model, "gpt2") == 0) return byte_level(ctx, pre, d);
    if (strcmp(model, "llama") == 0) {
        d->model = TG_TOK_SCORE_BPE;
        d->normal |= TG_TOK_BLANK_MARK;
        return TG_OK;
    }
    if (strcmp(model, "gemma4") == 0) { /* merges over characters; llama.cpp's SPM-style BPE */
        d->model = TG_TOK_MERGE_BPE;
        d->normal |= TG_TOK_BLANK_MARK;
        return TG_OK;
    }
    if (strcmp(model, "bert") == 0) {
        d->model = TG_TOK_WORDPIECE;
        d->normal |= TG_TOK_CLEAN | TG_TOK_CJK_SPACES | TG_TOK_STRIP_ACCENTS | TG_TOK_LOWER;
        d->word_starts_marked = true;
        return TG_OK;
    }
    return tg_fail(ctx, TG_E_UNSUPPORTED,
                   "tokenizer.ggml.model: want gpt2, llama, gemma4 or bert, have %.60s", model);
}
