/* SPDX-License-Identifier: Apache-2.0 */
/*
 * io_util.h - what the tests of src/io share: files as bytes, small models, and the checksums of a
 * v3 file, computed here from docs/format-tgpt.md and not with the writer's code.
 */
#ifndef TG_TEST_IO_UTIL_H
#define TG_TEST_IO_UTIL_H

#include "text_util.h"

#include "base/codec/crc.h"
#include "base/codec/sha256.h"
#include "base/err.h"
#include "base/math.h"
#include "io/run/file.h"
#include "io/run/meta.h"
#include "io/run/tools.h"
#include "io/tgpt/tgpt.h"

#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------- files as bytes */

typedef struct file_bytes {
    uint8_t *data;
    size_t n;
} file_bytes;

/* Room grows by doubling, so that appending number by number stays cheap. */
static inline size_t bytes_room(size_t n) {
    size_t room = 64;
    while (room < n) {
        room *= 2;
    }
    return room;
}

static inline file_bytes bytes_of(const void *data, size_t n) {
    file_bytes b = { malloc(bytes_room(n)), n };
    if (!b.data) {
        abort();
    }
    if (n) {
        memcpy(b.data, data, n);
    }
    return b;
}

static inline void bytes_free(file_bytes *b) {
    free(b->data);
    *b = (file_bytes) { NULL, 0 };
}

/* data NULL: there is no such file. */
static inline file_bytes bytes_read(const char *path) {
    file_bytes b = { NULL, 0 };
    FILE *f = fopen(path, "rb");
    if (!f) {
        return b;
    }
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    b = (file_bytes) { malloc(bytes_room((size_t)n)), (size_t)n };
    if (!b.data || fread(b.data, 1, b.n, f) != b.n) {
        abort();
    }
    fclose(f);
    return b;
}

static inline void bytes_write(const char *path, file_bytes b) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b.data, 1, b.n, f) != b.n || fclose(f) != 0) {
        abort();
    }
}

static inline void bytes_append(file_bytes *b, const void *data, size_t n) {
    if (!b->data || bytes_room(b->n) < b->n + n) {
        b->data = realloc(b->data, bytes_room(b->n + n));
    }
    if (!b->data) {
        abort();
    }
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

static inline void bytes_pad(file_bytes *b, size_t align) {
    while (b->n % align) {
        bytes_append(b, "", 1);
    }
}

/* --------------------------------------------------------------------------------- small models */

static inline tg_model_config config_of(int32_t layers, int32_t width, int32_t heads, int32_t ctx) {
    return (tg_model_config) { layers, width, heads, ctx, 256, 4 * width };
}

/* Element `index` of the part of a tensor: finite, of both signs (second moments: none), and such
 * that no two tensors or parts are alike. */
static inline float model_value(size_t tensor, tg_part part, uint64_t index) {
    uint64_t x = (tensor + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)part * 77777 + index;
    x = (x ^ x >> 31) * UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 29;
    const float unit = (float)(x & 0xffffff) / 16777216.0f;
    return part == TG_PART_ADAM_V ? unit * 1e-4f : unit - 0.5f;
}

static inline tg_status model_read(void *user, size_t tensor, tg_part part, uint64_t first,
                                   size_t n, float *out) {
    (void)user;
    for (size_t i = 0; i < n; i++) {
        out[i] = model_value(tensor, part, first + i);
    }
    return TG_OK;
}

static const tg_history_point model_history[] = { { 10, 5.5, 5.75 },
                                                  { 20, 4.25, 4.5 },
                                                  { 30, 3.125, 3.5 } };
#define MODEL_STEP 30

static inline tg_meta model_meta(void) {
    tg_meta meta;
    tg_meta_init(&meta);
    meta.history = model_history;
    meta.n_history = 3;
    meta.final = model_history[2];
    meta.best_step = 30;
    meta.best_val_loss = 3.5;
    meta.train = (tg_train_options) { .steps = 30,
                                      .batch = 4,
                                      .accum = 1,
                                      .lr = 3e-4,
                                      .clip = 1,
                                      .schedule = TG_COSINE,
                                      .seed = UINT64_MAX,
                                      .eval_every = 10,
                                      .beta1 = 0.9,
                                      .beta2 = 0.95,
                                      .eps = 1e-8,
                                      .keep_best = true };
    meta.train_known = TG_TRAIN_ALL;
    return meta;
}

static inline tg_status model_save_v3(tg_ctx *ctx, const char *path, const tg_model_config *config,
                                      bool moments, bool keep_prev) {
    const tg_weights weights = { .read = model_read, .has_moments = moments };
    const tg_meta meta = model_meta();
    tg_buf json;
    tg_json_writer w;
    tg_buf_init(&json, &ctx->mem);
    tg_json_writer_init(&w, &json);
    tg_meta_begin_v3(&w, config, MODEL_STEP, &meta);
    tg_meta_end_v3(&w);
    tg_status status = tg_buf_status(ctx, &json, "test");
    if (status == TG_OK) {
        status = tg_tgpt3_save(ctx, path, json.data, json.length, &weights, keep_prev);
    }
    tg_buf_deinit(&json);
    return status;
}

/* ------------------------------------------------------------------------------ checksums of v3 */

/*
 * Makes all checksums of a v3 file right again after somebody changed its bytes: what an attacker
 * does. Leaves alone whatever has no place to be: a file cut short, a table that points outside.
 */
static inline void v3_repair(uint8_t *data, size_t n) {
    if (n < 64) {
        return;
    }
    const uint64_t n_sections = tg_get_u32(data + 40), chunk = tg_get_u32(data + 48);
    if (n_sections > (n - 64) / 32) {
        return;
    }
    const uint8_t *area = NULL; /* DATA */
    uint64_t area_bytes = 0;
    for (uint64_t i = 0; i < n_sections; i++) {
        const uint8_t *entry = data + 64 + 32 * i;
        const uint64_t offset = tg_get_u64(entry + 8), size = tg_get_u64(entry + 16);
        if (offset > n || size > n - offset) {
            continue;
        }
        uint8_t *body = data + offset;
        if (memcmp(entry, "DATA", 4) == 0) {
            area = body;
            area_bytes = size;
        } else if (memcmp(entry, "CHNK", 4) == 0 && area && chunk > 0 && size >= 4) {
            for (uint64_t c = 0; c < (size - 4) / 4 && c * chunk < area_bytes; c++) {
                const uint64_t left = area_bytes - c * chunk;
                tg_put_u32(body + 4 * c,
                           tg_crc32c(0, area + c * chunk, (size_t)(left < chunk ? left : chunk)));
            }
        }
        if (memcmp(entry, "DATA", 4) != 0 && memcmp(entry, "HASH", 4) != 0 && size >= 4) {
            tg_put_u32(body + size - 4, tg_crc32c(0, body, (size_t)size - 4));
        }
    }
    uint32_t crc = tg_crc32c(0, data, 60);
    tg_put_u32(data + 60, tg_crc32c(crc, data + 64, (size_t)(32 * n_sections)));
    const uint8_t *last = data + 64 + 32 * (n_sections ? n_sections - 1 : 0);
    const uint64_t hash = n_sections ? tg_get_u64(last + 8) : 0;
    if (n_sections && memcmp(last, "HASH", 4) == 0 && hash >= 64 + 32 * n_sections &&
        hash <= n - 32) {
        tg_sha256 sha;
        tg_sha256_init(&sha);
        tg_sha256_update(&sha, data, (size_t)hash);
        tg_sha256_final(&sha, data + hash);
    }
}

/* ---------------------------------------------------------------------------------------- checking
 */

/* All that tg_file_check looks at. */
static inline tg_status check_file(tg_ctx *ctx, const char *path) {
    tg_file *f;
    tg_meta meta;
    TG_TRY(tg_file_open(ctx, path, &f));
    tg_status status = tg_meta_read(f, &meta);
    if (status == TG_OK) {
        status = tg_file_check_all(f);
    }
    tg_file_close(f);
    return status;
}

#endif
