/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_pack.c - caches of packed weights, that lie where a model's own should.
 *
 * Each input is tried as it is, and with its key and checksums made right. Whether the library
 * takes the file is asked of its reader alone, which is what most of the time goes into; every
 * WHOLE_EVERY-th input, and all of the corpus, goes the whole way: the model is opened and
 * computes. It always opens. A cache that is damaged, stale or no cache at all changes nothing; one
 * that is taken must not break more than the numbers.
 */
#include "fuzz_api.h"

#include "base/codec/crc.h"
#include "io/reader.h"
#include "load/pack_cache.h"
#include "load/weights.h"

enum { HEAD_BYTES = 56, DATA_AT = 4096, V = 12 };
#ifdef TG_REPLAY
enum { WHOLE_EVERY = 1 };
#else
enum { WHOLE_EVERY = 256 };
#endif

static char model_path[FUZZ_PATH_BYTES], cache_folder[FUZZ_PATH_BYTES];
static tg_pack_cache own; /* that of the model, which is opened anew or not: no map */
static uint8_t *good;     /* the cache that the library wrote */
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
    remove(own.path);
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
    tg_model *model;
    PROMISE(tg_model_open(api_context, model_path, &model) == TG_OK);
    PROMISE(tg_pack_cache_find(api_context, model, &own));
    tg_model_free(model);
    atexit(remove_cache);
    good = read_file(own.path, &n_good);
}

static bool is_taken(const uint8_t *file) {
    tg_pack_cache c = own;
    tg_pack_cache_open(api_context, &c);
    bool taken = c.map.data != NULL;
    for (size_t i = 0; taken && i < c.n_chunks; i++) taken = tg_pack_cache_check(&c, i);
    if (taken) PROMISE(memcmp(c.weights, file + DATA_AT, c.bytes) == 0);
    tg_os_map_free(&c.map);
    return taken;
}

/* want: whether it must be taken. */
static void try_cache(const uint8_t *bytes, size_t n, bool want, bool whole) {
    float have[V];
    fuzz_file(own.path, bytes, n);
    PROMISE(is_taken(bytes) == want);
    if (!whole) return;
    const bool finite = run(have);
    if (!want) PROMISE(finite && memcmp(have, logits, sizeof have) == 0);
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
    const bool whole = tg_crc32c(0, data, n) % WHOLE_EVERY == 0;
    const size_t n_file = data[n - 1] ? n_good : at + length;
    /* Nobody reads what is between the head and the weights. */
    const bool same = n_file == n_good && memcmp(file, good, HEAD_BYTES) == 0 &&
                      memcmp(file + DATA_AT, good + DATA_AT, n_good - DATA_AT) == 0;
    try_cache(file, n_file, same, whole);
    repair(file);
    const bool ours = memcmp(file, good, 16) == 0 && memcmp(file + 48, good + 48, 4) == 0;
    try_cache(file, n_good, ours, whole);
    free(file);
}
