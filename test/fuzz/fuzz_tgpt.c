/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tgpt.c - everything that reads our own model files and runs, .tinygpt and .safetensors.
 *
 * Each input is used as it is, and again with what would keep the fuzzer out of everything behind
 * it made right: the checksums of a v3 file, the length of a .safetensors header.
 */
#include "fuzz.h"

#include "../unit/io_util.h"
#include "io/safetensors/safetensors.h"

static void read_everything(tg_ctx *ctx, tg_file *f) {
    float piece[257]; /* odd, so that pieces begin anywhere within a block */
    tg_meta meta;
    (void)tg_meta_read(f, &meta);
    PROMISE(f->n_tensors == f->manifest.n * (f->has_raw ? 4 : f->has_moments ? 3 : 1));
    PROMISE(f->step >= 0 && f->manifest.elems > 0);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const tg_file_tensor *t = &f->tensor[i];
        PROMISE(tg_file_find(f, t->name) == t);
        PROMISE(t->offset <= f->total_bytes && t->bytes <= f->total_bytes - t->offset);
        for (uint64_t first = 0; first < t->elems; first += 257) {
            const size_t n = t->elems - first < 257 ? (size_t)(t->elems - first) : 257;
            if (tg_file_read_f32(f, t, piece, first, n) != TG_OK) {
                break;
            }
        }
        PROMISE(tg_file_read_f32(f, t, piece, t->elems, 1) == TG_E_ARG || ctx->code != TG_OK);
    }
    tg_ctx_clear(ctx);
    (void)tg_file_check_all(f);
}

static void try_bytes(const uint8_t *data, size_t n) {
    tg_ctx ctx;
    meter m;
    tg_file *f;
    fuzz_begin(&ctx, &m, n, 150, 1 << 18);
    const tg_status status = tg_file_open_memory(&ctx, "fuzz", data, n, &f);
    PROMISE((status == TG_OK) == (f != NULL));
    if (fuzz_ok(&ctx, status)) {
        read_everything(&ctx, f);
        tg_file_close(f);
    }
    PROMISE(m.live_bytes == 0);
}

/* The header of a .safetensors file ends with its last brace: makes its length say so. */
static void safetensors_repair(uint8_t *data, size_t n) {
    if (n <= 8 || data[8] != '{') {
        return;
    }
    size_t end = n;
    while (end > 8 && data[end - 1] != '}') {
        end--;
    }
    tg_put_u64(data, end - 8);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    try_bytes(data, n);
    uint8_t *copy = fuzz_copy(data, n);
    v3_repair(copy, n);
    safetensors_repair(copy, n);
    if (n && memcmp(copy, data, n) != 0) try_bytes(copy, n);
    free(copy);
}
