/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_model.c - a model opened whole, through tinygpt.h, and a few tokens of it computed.
 *
 * An input is a file: .tinygpt, .safetensors, GGUF, a zip file. One with two bytes 0xff in it that
 * begins as JSON does is a folder (fuzz_part): config.json, model.safetensors, tokenizer.json.
 *
 * Memory: a model takes up to MODEL_FACTOR bytes for each byte of its files, since weights of a few
 * bits may be unpacked to 32 and deflate gives up to 1032 bytes of one, and MODEL_MORE for what any
 * model takes. What was opened and closed leaves nothing behind but the counters of the context,
 * which are as many as the longest plan so far has wanted.
 */
#include "fuzz_api.h"

enum { MODEL_FACTOR = 1100, CTX = 8, MODEL_MORE = 8 << 20, KEPT_BYTES = 1 << 20 };

static int drop_text(void *user, const char *bytes, size_t n) {
    *(size_t *)user += n + (bytes == NULL);
    return 0;
}

static void use_tokenizer(tg_context *ctx, const tg_model *model, int32_t ids[CTX], size_t *n) {
    const tg_tokenizer *t = tg_model_tokenizer(model);
    const tg_turn turn = { TG_USER, "ab", 2 };
    int32_t ends[TG_ENDS_MAX];
    size_t n_ends;
    *n = 0;
    if (!t) return;
    if (api_ok(tg_tokenizer_ends(ctx, t, NULL, ends, &n_ends))) PROMISE(n_ends <= TG_ENDS_MAX);
    (void)tg_tokenizer_chat(ctx, t, NULL, &turn, 1, 0, ids, CTX, n);
    if (tg_tokenizer_encode(ctx, t, "ab a", 4, TG_ENCODE_ENDS, ids, CTX, n) != TG_OK) *n = 0;
    for (size_t i = 0; i < *n; i++)
        PROMISE(ids[i] >= 0 && (size_t)ids[i] < tg_tokenizer_count(t) &&
                tg_tokenizer_piece(t, ids[i], NULL));
}

static void run(tg_context *ctx, tg_model *model, const int32_t *ids, size_t n) {
    tg_session *s = NULL;
    int32_t best[3];
    double logprobs[3];
    size_t have, written = 0;
    const int32_t first = 0;
    if (api_ok(tg_session_new(ctx, model, CTX, &s))) {
        if (n == 0) ids = &first;
        if (api_ok(tg_session_eval(s, ids, n ? n : 1, NULL))) {
            PROMISE(tg_session_tokens(s) == (n ? n : 1));
            if (api_ok(tg_session_best(s, 3, best, logprobs, &have)) && have > 0)
                api_ok(tg_session_eval(s, best, 1, NULL));
        }
        tg_generation what = tg_generation_default();
        what.prompt = "b";
        what.prompt_bytes = 1;
        what.n_tokens = 2;
        what.write = drop_text;
        what.user = &written;
        api_ok(tg_session_continue(s, &what, NULL));
    }
    tg_session_free(s);
}

static void embed(tg_context *ctx, tg_model *model, int32_t width) {
    tg_embedder *e = NULL;
    const tg_embed_text text = { "ab", 2 };
    float *out = malloc((size_t)width * sizeof *out);
    PROMISE(out);
    if (api_ok(tg_embedder_new(ctx, model, NULL, &e))) api_ok(tg_embedder_run(e, &text, 1, out));
    tg_embedder_free(e);
    free(out);
}

static void use(tg_context *ctx, const char *path) {
    tg_model *model = NULL;
    tg_model_info info;
    int32_t ids[CTX];
    size_t n;
    if (!api_ok(tg_model_open(ctx, path, &model))) return;
    PROMISE(tg_model_get_info(model, &info) == TG_OK && info.family && info.format && info.dtype);
    PROMISE(info.config.vocab > 0 && info.config.layers > 0 && info.config.width > 0);
    tg_sample_options sampling = tg_sample_options_default();
    char said[200];
    PROMISE(tg_model_sampling(model, &sampling, said, sizeof said) == TG_OK);
    use_tokenizer(ctx, model, ids, &n);
    run(ctx, model, ids, n);
    embed(ctx, model, info.config.width);
    tg_model_free(model);
}

static void write_folder(const uint8_t *data, size_t n) {
    static const char *const names[] = { "config.json", "model.safetensors", "tokenizer.json" };
    char path[FUZZ_PATH_BYTES];
    for (size_t i = 0; i < 3; i++) {
        size_t n_part;
        const uint8_t *part = fuzz_part(&data, &n, &n_part);
        fuzz_path(path, names[i]);
        if (n_part > 0 || i == 0)
            fuzz_file(path, part, n_part);
        else
            remove(path);
    }
}

static void fuzz_one(const uint8_t *data, size_t n) {
    static size_t first_bytes;
    tg_context *ctx = fuzz_context();
    char path[FUZZ_PATH_BYTES];
    size_t whole = n, n_first = n;
    const uint8_t *at = data;
    api_meter.peak_bytes = api_meter.live_bytes;
    if (first_bytes == 0) first_bytes = api_meter.live_bytes;
    api_meter.limit_bytes = api_meter.live_bytes + MODEL_FACTOR * n + MODEL_MORE;
    if (n > 0 && data[0] == '{') (void)fuzz_part(&at, &whole, &n_first);
    if (n_first < n) {
        write_folder(data, n);
        fuzz_path(path, "");
        path[strlen(path) - 1] = '\0';
    } else {
        fuzz_file(fuzz_path(path, "m"), data, n);
    }
    use(ctx, path);
    PROMISE(api_meter.live_bytes <= first_bytes + KEPT_BYTES);
}
