/*
 * tok_gguf.c - what the names in a GGUF file's metadata stand for.
 *
 * The arrays of tokens, scores, types and merges are the loader's to hand over; these names say how
 * they are to be read. A name that is not here belongs to a splitter that is not written yet.
 */
#include "tok/tok.h"

static const struct {
    const char *pre;
    tg_tok_split split;
    unsigned normal;
    bool ignore_merges;
} pres[] = {
    { "gpt-2", TG_TOK_SPLIT_GPT2, 0, false },
    { "smollm", TG_TOK_SPLIT_SMOLLM, 0, false },
    { "llama-bpe", TG_TOK_SPLIT_LLAMA3, 0, true },
    { "llama3", TG_TOK_SPLIT_LLAMA3, 0, true },
    { "qwen2", TG_TOK_SPLIT_QWEN2, TG_TOK_NFC, false },
    { "qwen35", TG_TOK_SPLIT_QWEN35, TG_TOK_NFC, false },
};

static tg_status byte_level(tg_ctx *ctx, const char *pre, tg_tok_desc *d) {
    d->model = TG_TOK_BYTE_BPE;
    for (size_t i = 0; pre && i < sizeof pres / sizeof pres[0]; i++) {
        if (strcmp(pre, pres[i].pre) != 0) continue;
        d->split = pres[i].split;
        d->normal |= pres[i].normal;
        d->ignore_merges = pres[i].ignore_merges;
        return TG_OK;
    }
    return tg_fail(ctx, TG_E_UNSUPPORTED,
                   "tokenizer.ggml.pre: want gpt-2, smollm, llama-bpe, qwen2 or qwen35, have %.60s",
                   pre ? pre : "none");
}

tg_status tg_tok_desc_gguf(tg_ctx *ctx, const char *model, const char *pre, tg_tok_desc *d) {
    if (strcmp(model, "gpt2") == 0) return byte_level(ctx, pre, d);
    if (strcmp(model, "llama") == 0) {
        d->model = TG_TOK_SCORE_BPE;
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
                   "tokenizer.ggml.model: want gpt2, llama or bert, have %.60s", model);
}
