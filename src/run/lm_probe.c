/*
 * lm_probe.c - is a file or a folder one that lm.h is for? Asked of everything that is opened.
 */
#include "run/lm.h"

#include "base/json.h"
#include "base/os.h"
#include "io/hf.h"
#include "io/tgpt_v3_lm.h"

/* Is the model of a folder of our own family, which io/safetensors.h reads? Without a config.json
 * only our own files can be opened. */
static bool is_ours(const char *folder) {
    tg_ctx quiet;
    tg_arena arena;
    tg_buf text;
    const tg_json *root = NULL;
    char path[4096];
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    tg_arena_init(&arena, &quiet.mem);
    tg_buf_init(&text, &quiet.mem);
    const int n = snprintf(path, sizeof path, "%s/config.json", folder);
    bool ours = true;
    if (n > 0 && (size_t)n < sizeof path && tg_os_kind_of(path) == TG_OS_FILE &&
        tg_os_read_all(&quiet, path, 1 << 24, &text) == TG_OK &&
        tg_json_parse(&quiet, &arena, path, tg_buf_text(&text), text.length, NULL, &root) ==
            TG_OK) {
        const tg_json *type = tg_json_get(root, "model_type");
        const tg_json *vocab = tg_json_get(root, "vocab_size");
        const tg_json *act = tg_json_get(root, "activation_function");
        ours =
            !type || (tg_json_is(type, "gpt2") && vocab && tg_json_kind(vocab) == TG_JSON_NUMBER &&
                      strcmp(vocab->u.text, "256") == 0 && act && tg_json_is(act, "gelu"));
    }
    tg_buf_deinit(&text);
    tg_arena_deinit(&arena);
    return ours;
}

static bool begins_as_gguf(const char *path) {
    tg_ctx quiet;
    uint8_t first[4] = { 0 };
    tg_reader r;
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    if (tg_reader_open(&quiet, path, &r) != TG_OK) return false;
    const tg_status s = tg_read_bytes(&r, "magic", first, sizeof first);
    tg_reader_close(&r);
    return s == TG_OK && tg_gguf_probe(first, sizeof first);
}

bool tg_lm_takes(const char *path, char folder[TG_LM_PATH_BYTES]) {
    static const char name[] = "model.safetensors";
    const size_t n = strlen(path), k = sizeof name - 1;
    if (n >= TG_LM_PATH_BYTES) return false;
    memcpy(folder, path, n + 1);
    if (n >= k && strcmp(path + n - k, name) == 0 && (n == k || path[n - k - 1] == '/')) {
        folder[n == k ? 0 : n - k - 1] = '\0';
        if (n == k) memcpy(folder, ".", 2);
        return !is_ours(folder);
    }
    return tg_hf_probe(path) || begins_as_gguf(path) || tg_tgpt3_is_lm(path);
}
