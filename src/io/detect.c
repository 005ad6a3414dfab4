/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.c - metadata or a run? Asked of everything that is opened.
 */
#include "io/detect.h"

#include "base/codec/json.h"
#include "base/os/os.h"
#include "io/hf/hf.h"
#include "io/tgpt/tgpt_v3_gguf.h"

/* A GPT-2 of bytes with the exact gelu, as we write it; or something that says no type. */
static bool is_of_bytes(const tg_json *root) {
    const tg_json *type = tg_json_get(root, "model_type");
    const tg_json *vocab = tg_json_get(root, "vocab_size");
    const tg_json *act = tg_json_get(root, "activation_function");
    return !type || (tg_json_is(type, "gpt2") && vocab && tg_json_kind(vocab) == TG_JSON_NUMBER &&
                     strcmp(vocab->u.text, "256") == 0 && act && tg_json_is(act, "gelu"));
}

/* Is the model of a folder of our own family, which io/safetensors/safetensors.h reads? Without a
 * config.json only our own files can be opened. */
static tg_status is_ours(tg_ctx *ctx, const char *folder, bool *ours) {
    tg_arena arena;
    tg_buf text;
    const tg_json *root = NULL;
    char path[TG_GGUF_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/config.json", folder);
    *ours = true;
    if (tg_os_kind_of(path) != TG_OS_FILE) return TG_OK;
    tg_arena_init(&arena, &ctx->mem);
    tg_buf_init(&text, &ctx->mem);
    tg_status s = tg_os_read_all(ctx, path, 1 << 24, &text);
    if (s == TG_OK)
        s = tg_json_parse(ctx, &arena, path, tg_buf_text(&text), text.length, NULL, &root);
    if (s == TG_OK) *ours = is_of_bytes(root);
    tg_buf_deinit(&text);
    tg_arena_deinit(&arena);
    return s;
}

tg_status tg_gguf_takes(tg_ctx *ctx, const char *path, char folder[TG_GGUF_PATH_BYTES],
                        bool *takes) {
    static const char name[] = "model.safetensors";
    const size_t n = strlen(path), k = sizeof name - 1;
    uint8_t first[4];
    size_t n_first;
    *takes = false;
    if (n >= TG_GGUF_PATH_BYTES) return TG_OK;
    memcpy(folder, path, n + 1);
    if (n >= k && strcmp(path + n - k, name) == 0 && (n == k || path[n - k - 1] == '/')) {
        folder[n == k ? 0 : n - k - 1] = '\0';
        if (n == k) memcpy(folder, ".", 2);
        TG_TRY(is_ours(ctx, folder, takes));
        *takes = !*takes;
        return TG_OK;
    }
    TG_TRY(tg_hf_probe(ctx, path, takes));
    if (!*takes) TG_TRY(tg_tgpt3_is_gguf(ctx, path, takes));
    if (*takes) return TG_OK;
    TG_TRY(tg_reader_first(ctx, path, first, sizeof first, &n_first));
    *takes = tg_gguf_probe(first, n_first);
    return TG_OK;
}
