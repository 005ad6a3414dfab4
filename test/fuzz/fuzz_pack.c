/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack.c - caches of packed weights, that lie where a model's own should.
 *
 * The model always opens. A cache that is damaged, stale or no cache at all changes nothing; one
 * whose checksums were made right (each input's second turn) is believed, and must not break more
 * than the numbers.
 */
#include "fuzz_api.h"

#include "base/crc.h"
#include "io/reader.h"

enum { HEAD_BYTES = 56, DATA_AT = 4096, V = 12 };

static char model_path[FUZZ_PATH_BYTES], cache_folder[FUZZ_PATH_BYTES], cache_path[512];
static uint8_t *good; /* the cache that the library wrote */
static size_t n_good;
static float logits[V];

static uint8_t *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    PROMISE(f && fseek(f, 0, SEEK_END) == 0);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *bytes = malloc(*n + 1);
    PROMISE(bytes && fread(bytes, 1, *n, f) == *n);
    fclose(f);
    return bytes;
}

static void find_cache(void) {
    DIR *d = opendir(cache_folder);
    PROMISE(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (strstr(e->d_name, ".tgpack"))
            snprintf(cache_path, sizeof cache_path, "%s/%s", cache_folder, e->d_name);
    closedir(d);
    PROMISE(cache_path[0]);
}

/* False: numbers that are not finite. */
static bool run(float out[V]) {
    static const int32_t ids[] = { 3, 1 };
    tg_model *model;
    tg_session *s;
    const float *have;
    PROMISE(tg_model_open(api_context, model_path, &model) == TG_OK);
    PROMISE(tg_session_new(api_context, model, 4, &s) == TG_OK);
    const tg_status status = tg_session_eval(s, ids, 2, &have);
    PROMISE(status == TG_OK || status == TG_E_NUMBER);
    if (status == TG_OK) memcpy(out, have, V * sizeof *out);
    tg_session_free(s);
    tg_model_free(model);
    return status == TG_OK;
}

static void remove_cache(void) {
    remove(cache_path);
    rmdir(cache_folder);
}

static void prepare(void) {
    size_t n;
    if (good) return;
    uint8_t *bytes = read_file("test/fuzz/corpus/model/llama.gguf", &n);
    fuzz_context();
    fuzz_file(fuzz_path(model_path, "m.gguf"), bytes, n);
    free(bytes);
    fuzz_path(cache_folder, "cache");
    PROMISE(tg_context_pack_cache(api_context, cache_folder) == TG_OK);
    PROMISE(run(logits));
    find_cache();
    atexit(remove_cache);
    good = read_file(cache_path, &n_good);
}

static void try_cache(const uint8_t *bytes, size_t n, bool believed) {
    float have[V];
    fuzz_file(cache_path, bytes, n);
    const bool finite = run(have);
    if (!believed) PROMISE(finite && memcmp(have, logits, sizeof have) == 0);
}

/* The key of the model, and checksums: of the chunk (there is but one), then of the head. */
static void repair(uint8_t *file) {
    const size_t n_weights = n_good - DATA_AT - 4;
    memcpy(file + 16, good + 16, 32);
    tg_put_u32(file + n_good - 4, tg_crc32c(0, file + DATA_AT, n_weights));
    const uint32_t crc = tg_crc32c(0, file, HEAD_BYTES - 4);
    tg_put_u32(file + HEAD_BYTES - 4, tg_crc32c(crc, file + n_good - 4, 4));
}

/* Inputs are laid over the good file, so that most of them are nearly right: the first byte is
 * where (the head, or the weights), the rest what. A last byte of 0 cuts the file off there. */
static void fuzz_one(const uint8_t *data, size_t n) {
    prepare();
    if (n < 2) return;
    uint8_t *file = fuzz_copy(good, n_good);
    size_t at = data[0] < 64 ? data[0] : DATA_AT - 64 + 16u * (data[0] - 64u);
    at = at < n_good ? at : n_good;
    const size_t length = n - 1 < n_good - at ? n - 1 : n_good - at;
    memcpy(file + at, data + 1, length);
    const bool same = memcmp(file, good, n_good) == 0;
    try_cache(file, data[n - 1] ? n_good : at + length, same);
    repair(file);
    try_cache(file, n_good, true);
    free(file);
}
