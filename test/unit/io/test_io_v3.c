/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_v3.c - the v3 container: layout, round trips, damage, hostile values, failing machines.
 *
 * The layout is built a second time here (build_v3) from docs/format-tgpt.md, and has to agree with
 * the writer byte for byte; the same builder makes the files that no writer would.
 */
#include "io_folder.h"

#include "dtype/dtype.h"
#include "fail_alloc.h"
#include "io/run/quant.h"

/* 64 * 4096 parameters, so that the weights fill one chunk to the last byte. */
static tg_model_config round_mebibyte(void) { return config_of(1, 64, 1, 3057); }

/* Opens and checks everything that can be checked, as "verify" does. */
static tg_status check_bytes(const uint8_t *data, size_t n, char message[TG_MESSAGE_BYTES]) {
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx ctx;
    tg_file *f;
    tg_meta meta;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    uint8_t *exact =
        malloc(n ? n : 1); /* no room behind it, so that a sanitizer sees a step too far */
    memcpy(exact, data, n);
    tg_status status = tg_file_open_memory(&ctx, "bad.tinygpt", exact, n, &f);
    assert_true((status == TG_OK) == (f != NULL));
    if (f) {
        status = tg_meta_read(f, &meta);
        if (status == TG_OK) {
            status = tg_file_check_all(f);
        }
        tg_file_close(f);
    }
    free(exact);
    assert_int_equal(a.live_pieces, 0);
    assert_true(a.peak_bytes < 2 * n + (64u << 20));
    assert_true(status == TG_OK || strstr(ctx.message, "bad.tinygpt") ||
                strstr(ctx.message, "header"));
    if (message) {
        memcpy(message, ctx.message, TG_MESSAGE_BYTES);
    }
    return status;
}

/* ---------------------------------------------------------------------------------- round trips */

static void holds_what_was_saved(void **state) {
    (void)state;
    const tg_model_config configs[] = { tiny(), large(), round_mebibyte() };
    for (size_t k = 0; k < 6; k++) {
        const tg_model_config *config = &configs[k / 2];
        const bool moments = k % 2;
        tg_ctx ctx;
        tg_file *f;
        tg_meta meta, want = model_meta();
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        assert_int_equal(model_save_v3(&ctx, path, config, moments, false), TG_OK);
        assert_int_equal(tg_file_open(&ctx, path, &f), TG_OK);
        assert_memory_equal(&f->config, config, sizeof *config);
        assert_int_equal(f->step, MODEL_STEP);
        assert_string_equal(f->format, "tinygpt v3");
        assert_true(f->checksummed && f->has_moments == moments && f->dtype == TG_FILE_F32);
        assert_int_equal(f->n_tensors, f->manifest.n * (moments ? 3 : 1));
        for (size_t i = 0; i < f->n_tensors; i++) {
            const tg_file_tensor *t = &f->tensor[i];
            float *all = malloc(t->elems * sizeof *all);
            assert_int_equal(tg_file_read_f32(f, t, all, 0, (size_t)t->elems), TG_OK);
            assert_int_equal(t->offset % 64, 0);
            for (uint64_t e = 0; e < t->elems; e++) {
                assert_true(all[e] ==
                            model_value(i % f->manifest.n, (tg_part)(i / f->manifest.n), e));
            }
            free(all);
        }
        assert_int_equal(tg_meta_read(f, &meta), TG_OK);
        assert_int_equal(meta.n_history, 3);
        assert_memory_equal(meta.history, model_history, sizeof model_history);
        assert_memory_equal(&meta.final, &want.final, sizeof want.final);
        assert_true(meta.best_step == 30 && meta.best_val_loss == 3.5);
        assert_memory_equal(&meta.train, &want.train, sizeof want.train);
        assert_int_equal(tg_file_check_all(f), TG_OK);
        tg_file_close(f);
    }
}

/* -------------------------------------------------------------------------------- second writer */

typedef struct part {
    const char *id;
    uint32_t flags;
    file_bytes body; /* with room for a CRC, if it has one */
    bool is_raw;     /* DATA and HASH have none */
    size_t hole;     /* zero bytes in front of it, beyond alignment */
} part;

/* Header, table and sections as the document draws them; all checksums by v3_repair. */
static file_bytes build_v3(const part *parts, size_t n_parts) {
    file_bytes b = { NULL, 0 };
    uint64_t end = 64 + 32 * n_parts;
    uint8_t head[64] = "TGPT3\r\n\x1a", entry[32];
    for (size_t pass = 0; pass < 2; pass++) { /* first for the total length */
        if (pass) {
            tg_put_u32(head + 8, 3);
            tg_put_u32(head + 12, (uint32_t)(64 + 32 * n_parts));
            tg_put_u64(head + 32, end);
            tg_put_u32(head + 40, (uint32_t)n_parts);
            tg_put_u32(head + 44, 0x000100);
            tg_put_u32(head + 48, 1 << 20);
            bytes_append(&b, head, sizeof head);
            end = 64 + 32 * n_parts;
        }
        for (size_t i = 0; i < n_parts; i++) {
            const uint64_t offset = (end + 63) / 64 * 64 + parts[i].hole;
            const uint64_t size = parts[i].body.n;
            if (pass) {
                memset(entry, 0, sizeof entry);
                memcpy(entry, parts[i].id, 4);
                tg_put_u32(entry + 4, parts[i].flags);
                tg_put_u64(entry + 8, offset);
                tg_put_u64(entry + 16, size);
                bytes_append(&b, entry, sizeof entry);
            }
            end = offset + size;
        }
    }
    for (size_t i = 0; i < n_parts; i++) {
        bytes_pad(&b, 64);
        for (size_t k = 0; k < parts[i].hole; k++) {
            bytes_append(&b, "", 1);
        }
        bytes_append(&b, parts[i].body.data, parts[i].body.n);
    }
    v3_repair(b.data, b.n);
    return b;
}

static void put64(file_bytes *b, uint64_t x) {
    uint8_t number[8];
    tg_put_u64(number, x);
    bytes_append(b, number, 8);
}

/* TNSR (with room for its CRC) and DATA of the model that model_save_v3 saves. */
static void model_parts(const tg_model_config *config, bool moments, file_bytes *tnsr,
                        file_bytes *data) {
    static const char *const prefixes[] = { "", "adam_m.", "adam_v." };
    tg_ctx ctx;
    tg_arena arena;
    tg_manifest m;
    uint8_t number[4];
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_arena_init(&arena, &ctx.mem);
    assert_int_equal(tg_manifest_new(&ctx, &arena, config, &m), TG_OK);
    const size_t n = m.n * (moments ? 3 : 1);
    tg_put_u32(number, (uint32_t)n);
    *tnsr = bytes_of(number, 4);
    *data = bytes_of("", 0);
    for (size_t i = 0; i < n; i++) {
        const tg_manifest_entry *e = &m.entry[i % m.n];
        char name[128];
        const int length = snprintf(name, sizeof name, "%s%s", prefixes[i / m.n], e->name);
        bytes_pad(data, 64);
        const uint8_t head[4] = { (uint8_t)length, 0, 1, (uint8_t)e->n_dims };
        bytes_append(tnsr, head, 4);
        put64(tnsr, data->n);
        put64(tnsr, 4 * e->elems);
        for (int d = 0; d < e->n_dims; d++) {
            put64(tnsr, e->dim[d]);
        }
        bytes_append(tnsr, name, (size_t)length);
        for (uint64_t k = 0; k < e->elems; k++) {
            const float x = model_value(i % m.n, (tg_part)(i / m.n), k);
            bytes_append(data, &x, 4);
        }
    }
    bytes_append(tnsr, "crc?", 4);
    tg_arena_deinit(&arena);
}

static file_bytes meta_part(const tg_model_config *config) {
    tg_ctx ctx;
    tg_buf json;
    tg_json_writer w;
    const tg_meta meta = model_meta();
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_buf_init(&json, &ctx.mem);
    tg_json_writer_init(&w, &json);
    tg_meta_begin_v3(&w, config, MODEL_STEP, &meta);
    tg_meta_end_v3(&w);
    file_bytes b = bytes_of(json.data, json.length);
    bytes_append(&b, "crc?", 4);
    tg_buf_deinit(&json);
    return b;
}

static file_bytes zero_part(size_t n) {
    uint8_t *zeros = calloc(1, n + 1);
    file_bytes b = bytes_of(zeros, n);
    free(zeros);
    return b;
}

/* Builds the model's file with other bytes in one section, or with sections around the usual ones.
 */
static file_bytes build_model(const tg_model_config *config, bool moments, const char *replaced,
                              file_bytes replacement, const part *extra, size_t n_extra,
                              size_t extra_at) {
    part parts[16] = { { "META", 1, meta_part(config), false, 0 },
                       { "TNSR", 1, { NULL, 0 }, false, 0 },
                       { "DATA", 1, { NULL, 0 }, true, 0 },
                       { "CHNK", 1, { NULL, 0 }, false, 0 },
                       { "HASH", 1, zero_part(32), true, 0 } };
    model_parts(config, moments, &parts[1].body, &parts[2].body);
    for (size_t i = 0; i < 5; i++) {
        if (replaced && strcmp(parts[i].id, replaced) == 0) {
            bytes_free(&parts[i].body);
            parts[i].body = bytes_of(replacement.data, replacement.n);
        }
    }
    if (!parts[3].body.data) {
        parts[3].body = zero_part(4 * ((parts[2].body.n + (1 << 20) - 1) >> 20) + 4);
    }
    memmove(parts + extra_at + n_extra, parts + extra_at, (5 - extra_at) * sizeof *parts);
    for (size_t i = 0; i < n_extra; i++) {
        parts[extra_at + i] = extra[i];
    }
    file_bytes b = build_v3(parts, 5 + n_extra);
    for (size_t i = 0; i < 5 + n_extra; i++) {
        if (i < extra_at || i >= extra_at + n_extra) {
            bytes_free(&parts[i].body);
        }
    }
    return b;
}

static const file_bytes nothing = { NULL, 0 };

static void is_laid_out_as_documented(void **state) {
    (void)state;
    const tg_model_config configs[] = { tiny(), large(), config_of(3, 6, 2, 5), round_mebibyte() };
    for (size_t k = 0; k < 8; k++) {
        file_bytes a = saved(&configs[k / 2], k % 2);
        file_bytes b = build_model(&configs[k / 2], k % 2, NULL, nothing, NULL, 0, 0);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.data, b.data, a.n);
        bytes_free(&a);
        bytes_free(&b);
    }
}

/* ------------------------------------------------------------------------------------- sections */

static void skips_optional_sections(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    char message[TG_MESSAGE_BYTES];
    file_bytes body = bytes_of("a later version's bytes and their CRC", 37);
    for (size_t at = 0; at <= 5; at++) {
        const part stranger = { "LATE", 0, body, false, 0 }, needed = { "LATE", 1, body, false, 0 };
        file_bytes b = build_model(&config, true, NULL, nothing, &stranger, 1, at);
        /* Behind HASH nothing may stand. */
        assert_int_equal(check_bytes(b.data, b.n, message), at < 5 ? TG_OK : TG_E_FORMAT);
        bytes_free(&b);
        b = build_model(&config, true, NULL, nothing, &needed, 1, at);
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_UNSUPPORTED);
        assert_non_null(strstr(message, "needs tinygpt >= 0.1.0"));
        bytes_free(&b);
    }
    /* A hole of zeros is one, too, even where everything is aligned. */
    for (size_t at = 0; at < 5; at++) {
        const part late = { "LATE", 0, body, false, 64 };
        file_bytes b = build_model(&config, true, NULL, nothing, &late, 1, at);
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        assert_non_null(strstr(message, "section offset"));
        bytes_free(&b);
    }
    /* Twice the same, and none of one kind. */
    static const char *const ids[] = { "META", "TNSR", "DATA", "CHNK", "HASH" };
    for (size_t i = 0; i < 5; i++) {
        const part twice = { ids[i], 1, body, false, 0 };
        file_bytes b = build_model(&config, true, NULL, nothing, &twice, 1, 0);
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        assert_non_null(strstr(message, "have two"));
        bytes_free(&b);
        b = build_model(&config, true, NULL, nothing, NULL, 0, 0);
        memcpy(b.data + 64 + 32 * i, "lost\0\0\0\0", 8); /* optional and unknown now */
        v3_repair(b.data, b.n);
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        bytes_free(&b);
    }
    bytes_free(&body);
}

/* --------------------------------------------------------------------------------------- damage */

static void refuses_every_flipped_bit(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    file_bytes b = saved(&config, true);
    assert_int_equal(check_bytes(b.data, b.n, NULL), TG_OK);
    for (size_t i = 0; i < b.n; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            b.data[i] ^= (uint8_t)(1u << bit);
            if (check_bytes(b.data, b.n, NULL) == TG_OK) {
                fail_msg("byte %zu bit %u: not noticed", i, bit);
            }
            b.data[i] ^= (uint8_t)(1u << bit);
        }
    }
    assert_int_equal(check_bytes(b.data, b.n, NULL), TG_OK);
    bytes_free(&b);
}

/* Without the SHA-256 too: whatever a reader looks at is covered by what a reader checks. */
static void opening_and_reading_notices_damage(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    file_bytes b = saved(&config, true);
    const size_t hash_offset = b.n - 32;
    for (size_t i = 0; i < hash_offset; i++) {
        tg_ctx ctx;
        tg_file *f;
        float x[1024];
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        b.data[i] ^= (uint8_t)(1u << i % 8);
        tg_status status = tg_file_open_memory(&ctx, "flipped", b.data, b.n, &f);
        for (size_t k = 0; status == TG_OK && k < f->n_tensors; k++) {
            status = tg_file_read_f32(f, &f->tensor[k], x, 0, (size_t)f->tensor[k].elems);
        }
        assert_int_not_equal(status, TG_OK);
        tg_file_close(f);
        b.data[i] ^= (uint8_t)(1u << i % 8);
    }
    bytes_free(&b);
}

static void refuses_every_other_length(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    file_bytes b = saved(&config, true);
    const size_t n = b.n;
    for (size_t cut = 0; cut < n; cut++) {
        assert_int_not_equal(check_bytes(b.data, cut, NULL), TG_OK);
    }
    for (size_t more = 1; more < 200; more++) {
        bytes_append(&b, more % 2 ? "\0" : "P", 1);
        char message[TG_MESSAGE_BYTES];
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        assert_non_null(strstr(message, "file length"));
        v3_repair(b.data, b.n); /* the checksums do not help it */
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        tg_put_u64(b.data + 32, b.n); /* nor does the length alone */
        v3_repair(b.data, b.n);
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        tg_put_u64(b.data + 32, n);
        v3_repair(b.data, b.n);
    }
    bytes_free(&b);
}

/* A damaged chunk is named, with a tensor in it; the others can still be read. */
static void names_the_damaged_chunk(void **state) {
    (void)state;
    const tg_model_config config = large();
    file_bytes b = saved(&config, true);
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_file_open_memory(&ctx, "two chunks", b.data, b.n, &f), TG_OK);
    assert_true(f->data_bytes > f->chunk_bytes && f->data_bytes < 2 * f->chunk_bytes);
    const tg_file_tensor *first = &f->tensor[0], *last = &f->tensor[f->n_tensors - 1];
    float x[8];
    b.data[last->offset + 9] ^= 4;
    assert_int_equal(tg_file_read_f32(f, first, x, 0, 8), TG_OK);
    assert_int_equal(tg_file_read_f32(f, last, x, 0, 8), TG_E_CHECKSUM);
    assert_non_null(strstr(ctx.message, "chunk 1"));
    assert_non_null(strstr(ctx.message, "adam_v.blocks.1.mlp.fc_out.bias"));
    /* Not trusted the second time either, nor is a window that was good before. */
    assert_int_equal(tg_file_read_f32(f, last, x, 0, 8), TG_E_CHECKSUM);
    assert_int_equal(tg_file_read_f32(f, first, x, 0, 8), TG_OK);
    assert_true(x[0] == model_value(0, TG_PART_WEIGHT, 0));
    assert_int_equal(tg_file_check_chunks(f), TG_E_CHECKSUM);
    /* A chunk of CRCs that agree, but another file's HASH. */
    b.data[last->offset + 9] ^= 4;
    b.data[b.n - 1] ^= 1;
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_file_check_chunks(f), TG_OK);
    assert_int_equal(tg_file_check_all(f), TG_E_CHECKSUM);
    assert_non_null(strstr(ctx.message, "SHA-256"));
    tg_file_close(f);
    bytes_free(&b);
}

/* ------------------------------------------------------------------------------- hostile values */

/* One field of a file with right checksums is set to a value of 1, 2, 4 or 8 bytes. */
typedef struct hostile {
    const char *what;
    size_t in_entry; /* 0: in the header; 1..5: in this entry of the section table; 6: in TNSR */
    size_t place;
    unsigned size;
    uint64_t value;
    tg_status want;
} hostile;

static const hostile hostiles[] = {
    { "version", 0, 8, 4, 4, TG_E_UNSUPPORTED },
    { "version", 0, 8, 4, 0, TG_E_UNSUPPORTED },
    { "header length", 0, 12, 4, 0, TG_E_FORMAT },
    { "header length", 0, 12, 4, UINT32_MAX, TG_E_FORMAT },
    { "header length", 0, 12, 4, 256, TG_E_FORMAT },
    { "required features", 0, 16, 8, 1, TG_E_UNSUPPORTED },
    { "required features", 0, 16, 8, UINT64_C(1) << 63, TG_E_UNSUPPORTED },
    { "optional features", 0, 24, 8, UINT64_MAX, TG_OK },
    { "file length", 0, 32, 8, 0, TG_E_FORMAT },
    { "file length", 0, 32, 8, UINT64_MAX, TG_E_FORMAT },
    { "sections", 0, 40, 4, 0, TG_E_FORMAT },
    { "sections", 0, 40, 4, 65, TG_E_FORMAT },
    { "sections", 0, 40, 4, UINT32_MAX, TG_E_FORMAT },
    { "chunk length", 0, 48, 4, 0, TG_E_FORMAT },
    { "chunk length", 0, 48, 4, 2048, TG_E_FORMAT },
    { "chunk length", 0, 48, 4, 5000, TG_E_FORMAT },
    { "chunk length", 0, 48, 4, 3 << 12, TG_E_FORMAT }, /* one chunk, but no power of two */
    { "chunk length", 0, 48, 4, 4096, TG_E_FORMAT },    /* more chunks than the table has */
    { "chunk length", 0, 48, 4, UINT32_C(1) << 31, TG_E_FORMAT },
    { "chunk length", 0, 48, 4, 2 << 20, TG_OK },
    { "reserved", 0, 52, 4, 1, TG_E_FORMAT },
    { "reserved", 0, 56, 4, 1, TG_E_FORMAT },
    { "META offset", 1, 8, 8, 0, TG_E_FORMAT },
    { "META offset", 1, 8, 8, UINT64_MAX - 63, TG_E_FORMAT },
    { "META length", 1, 16, 8, 0, TG_E_FORMAT },
    { "META length", 1, 16, 8, 3, TG_E_FORMAT },
    { "META length", 1, 16, 8, UINT64_MAX, TG_E_FORMAT },
    { "META reserved", 1, 24, 8, 1, TG_E_FORMAT },
    { "TNSR offset", 2, 8, 8, 64, TG_E_FORMAT },
    { "DATA length", 3, 16, 8, UINT64_MAX - 100, TG_E_FORMAT },
    { "DATA length", 3, 16, 8, 0, TG_E_FORMAT },
    { "CHNK length", 4, 16, 8, 4, TG_E_FORMAT },
    { "HASH length", 5, 16, 8, 31, TG_E_FORMAT },
    { "HASH length", 5, 16, 8, 33, TG_E_FORMAT },
    { "HASH offset", 5, 8, 8, 64, TG_E_FORMAT },
    /* The first entry of TNSR, token_embedding.weight [256,1], stands behind the number of tensors.
     */
    { "tensors", 6, 0, 4, 0, TG_E_FORMAT },
    { "tensors", 6, 0, 4, 19, TG_E_FORMAT },
    { "tensors", 6, 0, 4, 59, TG_E_FORMAT },
    { "tensors", 6, 0, 4, 61, TG_E_FORMAT },
    { "tensors", 6, 0, 4, UINT32_MAX, TG_E_FORMAT },
    { "name length", 6, 4, 2, 0, TG_E_FORMAT },
    { "name length", 6, 4, 2, 128, TG_E_FORMAT },
    { "name length", 6, 4, 2, UINT16_MAX, TG_E_FORMAT },
    { "element type", 6, 6, 1, 0, TG_E_UNSUPPORTED },
    { "element type", 6, 6, 1, 5, TG_E_UNSUPPORTED },
    { "element type", 6, 6, 1, 255, TG_E_UNSUPPORTED },
    { "element type", 6, 6, 1, 2, TG_E_FORMAT }, /* f16 has another length */
    { "dimensions", 6, 7, 1, 5, TG_E_FORMAT },
    { "dimensions", 6, 7, 1, 255, TG_E_FORMAT },
    { "dimensions", 6, 7, 1, 1, TG_E_FORMAT },
    { "tensor offset", 6, 8, 8, 64, TG_E_FORMAT },
    { "tensor offset", 6, 8, 8, 1, TG_E_FORMAT },
    { "tensor offset", 6, 8, 8, UINT64_MAX - 63, TG_E_FORMAT },
    { "tensor length", 6, 16, 8, 0, TG_E_FORMAT },
    { "tensor length", 6, 16, 8, UINT64_MAX, TG_E_FORMAT },
    { "dimension", 6, 24, 8, 0, TG_E_FORMAT },
    { "dimension", 6, 24, 8, 255, TG_E_FORMAT },
    { "dimension", 6, 24, 8, UINT64_C(1) << 62, TG_E_FORMAT },
    { "dimension", 6, 32, 8, UINT64_C(1) << 56, TG_E_FORMAT },
    { "dimension", 6, 32, 8, UINT64_MAX, TG_E_FORMAT },
    { "name", 6, 40, 1, 0, TG_E_FORMAT },
    { "name", 6, 40, 1, '\n', TG_E_FORMAT },
    { "name", 6, 40, 1, 0xff, TG_E_FORMAT },
    { "name", 6, 40, 1, 'T', TG_E_FORMAT }, /* a good name, but not the right one */
};

static void refuses_hostile_values(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    const file_bytes good = build_model(&config, true, NULL, nothing, NULL, 0, 0);
    const size_t tnsr = (size_t)tg_get_u64(good.data + 64 + 32 + 8);
    for (size_t i = 0; i < sizeof hostiles / sizeof hostiles[0]; i++) {
        const hostile *h = &hostiles[i];
        char message[TG_MESSAGE_BYTES];
        file_bytes b = bytes_of(good.data, good.n);
        const size_t base = h->in_entry == 6 ? tnsr : h->in_entry ? 32 + 32 * h->in_entry : 0;
        for (unsigned k = 0; k < h->size; k++) {
            b.data[base + h->place + k] = (uint8_t)(h->value >> 8 * k);
        }
        v3_repair(b.data, b.n);
        const tg_status have = check_bytes(b.data, b.n, message);
        if (have != h->want) {
            fail_msg("case %zu %s = %llu: status %d, %s", i, h->what, (unsigned long long)h->value,
                     have, message);
        }
        bytes_free(&b);
    }
    bytes_free((file_bytes *)&good);
}

#define CONFIG "\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1}"

static void refuses_hostile_headers(void **state) {
    (void)state;
    static const struct {
        const char *json;
        tg_status want;
        const char *says;
    } cases[] = {
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0}", TG_OK, "" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":9007199254740993,\"new\":[1]}", TG_OK, "" },
        { "", TG_E_FORMAT, "" },
        { "7", TG_E_FORMAT, "object" },
        { "{}", TG_E_FORMAT, "family" },
        { "{\"family\":7," CONFIG ",\"step\":0}", TG_E_FORMAT, "family" },
        { "{\"family\":\"llama\"," CONFIG ",\"step\":0}", TG_OK, "" }, /* its own list */
        { "{\"family\":\"llama\",\"config\":{\"layers\":1},\"step\":0}", TG_E_FORMAT, "dModel" },
        { "{\"family\":\"llama\",\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1,"
          "\"eps\":\"x\"},\"step\":0}",
          TG_E_RANGE, "eps" },
        { "{\"family\":\"llama\",\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":1,\"heads\":1,"
          "\"ropeBase\":1e40},\"step\":0}",
          TG_E_RANGE, "ropeBase" },
        { "{\"family\":\"tinygpt\"," CONFIG "}", TG_E_FORMAT, "step" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":-1}", TG_E_FORMAT, "step" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":1.5}", TG_E_FORMAT, "step" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":9223372036854775808}", TG_E_FORMAT, "step" },
        { "{\"family\":\"tinygpt\",\"step\":0}", TG_E_FORMAT, "config" },
        { "{\"family\":\"tinygpt\",\"step\":0,\"config\":{\"layers\":2,\"dModel\":1,\"ctx\":1,"
          "\"heads\":1}}",
          TG_E_FORMAT, "blocks.1.ln1.weight is missing" },
        { "{\"family\":\"tinygpt\",\"step\":0,\"config\":{\"layers\":1,\"dModel\":1,\"ctx\":2,"
          "\"heads\":1}}",
          TG_E_FORMAT, "position_embedding.weight: want [2,1], have [1,1]" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"lossHistory\":{}}", TG_E_FORMAT,
          "lossHistory" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"lossHistory\":[{\"train\":1}]}",
          TG_E_FORMAT, "step" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"lossHistory\":[3]}", TG_E_FORMAT, "" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"finalLoss\":{\"step\":\"x\"}}",
          TG_E_FORMAT, "" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"bestVal\":7}", TG_E_FORMAT, "" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"train\":[]}", TG_E_FORMAT, "train" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"train\":{\"lr\":\"fast\"}}", TG_E_FORMAT,
          "" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"train\":{\"batch\":4294967296}}",
          TG_E_RANGE, "batch" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"train\":{\"schedule\":\"linear\"}}",
          TG_E_FORMAT, "schedule" },
        { "{\"family\":\"tinygpt\"," CONFIG ",\"step\":0,\"train\":{\"later\":1}}", TG_OK, "" },
    };
    const tg_model_config config = tiny();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[TG_MESSAGE_BYTES];
        file_bytes json = bytes_of(cases[i].json, strlen(cases[i].json));
        bytes_append(&json, "crc?", 4);
        file_bytes b = build_model(&config, true, "META", json, NULL, 0, 0);
        const tg_status have = check_bytes(b.data, b.n, message);
        if (have != cases[i].want || !strstr(message, cases[i].says)) {
            fail_msg("case %zu %s: status %d, %s", i, cases[i].json, have, message);
        }
        bytes_free(&json);
        bytes_free(&b);
    }
}

/* Moments without their weights, names that occur twice, and all of it said in one message. */
static void lists_all_that_is_wrong_with_the_tensors(void **state) {
    (void)state;
    static const struct {
        const char *from, *to; /* in TNSR, the same length */
        const char *says[3];
    } cases[] = {
        { "blocks.0.ln1.bias",
          "blocks.0.ln9.bias",
          { "blocks.0.ln1.bias is missing", "blocks.0.ln9.bias is not wanted", NULL } },
        { "blocks.0.ln1.bias",
          "blocks.0.ln2.bias",
          { "blocks.0.ln2.bias is there twice", "blocks.0.ln1.bias is missing", NULL } },
        { "adam_m.blocks.0.ln1.bias",
          "adam_x.blocks.0.ln1.bias",
          { "adam_m.blocks.0.ln1.bias is missing", "adam_x.blocks.0.ln1.bias is not wanted",
            NULL } },
    };
    const tg_model_config config = tiny();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[TG_MESSAGE_BYTES];
        file_bytes b = build_model(&config, true, NULL, nothing, NULL, 0, 0);
        const size_t n = strlen(cases[i].from);
        size_t at = 0;
        while (memcmp(b.data + at, cases[i].from, n) != 0) {
            at++;
            assert_true(at + n < b.n);
        }
        memcpy(b.data + at, cases[i].to, n);
        v3_repair(b.data, b.n);
        assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
        for (size_t k = 0; cases[i].says[k]; k++) {
            if (!strstr(message, cases[i].says[k])) {
                fail_msg("want \"%s\" in: %s", cases[i].says[k], message);
            }
        }
        bytes_free(&b);
    }
}

/* Data that belongs to no tensor, and moments of a type that cannot hold them. */
static void refuses_data_beyond_the_tensors(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    char message[TG_MESSAGE_BYTES];
    file_bytes tnsr, data;
    model_parts(&config, true, &tnsr, &data);
    bytes_append(&data, "stowaway", 8);
    file_bytes b = build_model(&config, true, "DATA", data, NULL, 0, 0);
    assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
    assert_non_null(strstr(message, ": data: want"));
    bytes_free(&b);
    /* The same in the table itself, in front of its CRC. */
    file_bytes longer = bytes_of(tnsr.data, tnsr.n);
    bytes_append(&longer, "stow", 4);
    b = build_model(&config, true, "TNSR", longer, NULL, 0, 0);
    assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
    assert_non_null(strstr(message, "have 4 more bytes"));
    bytes_free(&longer);
    bytes_free(&b);
    /* The last entry of the table becomes f16, and what it loses goes from the data, too. */
    const size_t entry = tnsr.n - 4 - strlen("adam_v.blocks.0.mlp.fc_out.bias") - 8 - 20;
    tnsr.data[entry + 2] = 2;
    tg_put_u64(tnsr.data + entry + 12, 2);
    data.n -= 8 + 2;
    b = build_model(&config, true, "DATA", data, NULL, 0, 0);
    const size_t at = (size_t)tg_get_u64(b.data + 64 + 32 + 8);
    memcpy(b.data + at, tnsr.data, tnsr.n);
    v3_repair(b.data, b.n);
    assert_int_equal(check_bytes(b.data, b.n, message), TG_E_FORMAT);
    assert_non_null(strstr(message, "fc_out.bias: want f32, have f16"));
    bytes_free(&b);
    bytes_free(&tnsr);
    bytes_free(&data);
}

static void refuses_numbers_out_of_range(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    const float bad[] = { (float)TG_NAN, (float)TG_INF, -(float)TG_INF };
    tg_ctx ctx;
    tg_file *f;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    file_bytes b = saved(&config, true);
    assert_int_equal(tg_file_open_memory(&ctx, "x", b.data, b.n, &f), TG_OK);
    const uint64_t weight = tg_file_find(f, "token_embedding.weight")->offset + 4 * 200;
    const uint64_t moment = tg_file_find(f, "adam_v.ln_final.bias")->offset;
    tg_file_close(f);
    for (size_t i = 0; i < 3; i++) {
        char message[TG_MESSAGE_BYTES];
        file_bytes c = bytes_of(b.data, b.n);
        memcpy(c.data + weight, &bad[i], 4);
        v3_repair(c.data, c.n);
        assert_int_equal(check_bytes(c.data, c.n, message), TG_E_NUMBER);
        assert_non_null(strstr(message, "token_embedding.weight: element 200"));
        bytes_free(&c);
    }
    char message[TG_MESSAGE_BYTES];
    memcpy(b.data + moment, &(float) { -1e-9f }, 4);
    v3_repair(b.data, b.n);
    assert_int_equal(check_bytes(b.data, b.n, message), TG_E_NUMBER);
    assert_non_null(strstr(message, "adam_v.ln_final.bias"));
    bytes_free(&b);
}

/* -------------------------------------------------------------------------------- other writers */

/* All element types, declared back to front, written in odd pieces. */
static void holds_other_types_in_any_order(void **state) {
    (void)state;
    static const tg_file_dtype types[] = { TG_FILE_F16, TG_FILE_BF16, TG_FILE_INT4, TG_FILE_F32 };
    const tg_model_config config = config_of(1, 10, 2, 7);
    tg_ctx ctx;
    tg_arena arena;
    tg_manifest m;
    tg_tgpt3_writer *w;
    file_bytes json = meta_part(&config);
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_arena_init(&arena, &ctx.mem);
    assert_int_equal(tg_manifest_new(&ctx, &arena, &config, &m), TG_OK);
    assert_int_equal(tg_tgpt3_begin(&ctx, path, (char *)json.data, json.n - 4, &w), TG_OK);
    for (size_t i = m.n; i-- > 0;) {
        assert_int_equal(tg_tgpt3_declare(w, m.entry[i].name, types[i % 4],
                                          (uint32_t)m.entry[i].n_dims, m.entry[i].dim),
                         TG_OK);
    }
    float *want = malloc(m.elems * sizeof *want);
    for (size_t i = m.n; i-- > 0;) {
        const size_t n = (size_t)m.entry[i].elems;
        float *x = want + m.entry[i].first_elem;
        file_bytes b = zero_part((size_t)tg_file_dtype_bytes(types[i % 4], n));
        for (size_t k = 0; k < n; k++) {
            x[k] = (float)((int)(k % 13) - 6) / 8; /* every type holds it */
        }
        switch (types[i % 4]) {
        case TG_FILE_F16: tg_f16_from_f32_n((uint16_t *)(void *)b.data, x, n); break;
        case TG_FILE_BF16: tg_bf16_from_f32_n((uint16_t *)(void *)b.data, x, n); break;
        case TG_FILE_F32: memcpy(b.data, x, b.n); break;
        case TG_FILE_INT4:
            for (size_t k = 0; k < n; k += 64) {
                uint16_t scale;
                const size_t left = n - k < 64 ? n - k : 64, blocks = (n + 63) / 64;
                uint8_t *nibbles = b.data + 2 * blocks + k / 64 * 32;
                tg_int4_encode(x + k, left, &scale, nibbles);
                tg_put_u16(b.data + k / 64 * 2, scale);
                tg_int4_decode(scale, nibbles, 0, left, x + k);
            }
            break;
        }
        for (size_t k = 0; k < b.n; k += 101) {
            assert_int_equal(tg_tgpt3_write(w, b.data + k, b.n - k < 101 ? b.n - k : 101), TG_OK);
        }
        bytes_free(&b);
    }
    assert_int_equal(tg_tgpt3_commit(w, false, NULL), TG_OK);

    tg_file *f;
    assert_int_equal(tg_file_open(&ctx, path, &f), TG_OK);
    assert_int_equal(tg_file_check_all(f), TG_OK);
    float piece[10];
    for (size_t i = 0; i < m.n; i++) { /* the table is in manifest order again */
        assert_string_equal(f->tensor[i].name, m.entry[i].name);
        assert_int_equal(f->tensor[i].dtype, types[i % 4]);
        for (uint64_t first = 0; first < f->tensor[i].elems; first += 10) {
            const uint64_t left = f->tensor[i].elems - first;
            const size_t n = left < 10 ? (size_t)left : 10;
            assert_int_equal(tg_file_read_f32(f, &f->tensor[i], piece, first, n), TG_OK);
            assert_memory_equal(piece, want + m.entry[i].first_elem + first, n * sizeof *piece);
        }
    }
    tg_file_close(f);
    tg_arena_deinit(&arena);
    bytes_free(&json);
    free(want);
}

static void writer_refuses_what_no_reader_takes(void **state) {
    (void)state;
    const tg_model_config config = tiny();
    const uint64_t two[] = { 256, 1 }, three[] = { 3 };
    file_bytes json = meta_part(&config);
    const float x[256] = { 0 };
    tg_tgpt3_writer *w;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    /* JSON that is none, or says nothing. */
    assert_int_equal(tg_tgpt3_begin(&ctx, path, "{", 1, &w), TG_E_FORMAT);
    assert_null(w);
    assert_int_equal(tg_tgpt3_begin(&ctx, path, "{}", 2, &w), TG_E_FORMAT);
    /* Tensors missing; the error sticks and nothing is left behind. */
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_tgpt3_begin(&ctx, path, (char *)json.data, json.n - 4, &w), TG_OK);
    assert_int_equal(tg_tgpt3_declare(w, "token_embedding.weight", TG_FILE_F32, 2, two), TG_OK);
    assert_int_equal(tg_tgpt3_write(w, x, sizeof x), TG_E_FORMAT);
    assert_int_equal(tg_tgpt3_write(w, x, sizeof x), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "position_embedding.weight is missing"));
    assert_int_equal(tg_tgpt3_commit(w, false, NULL), TG_E_FORMAT);
    assert_int_equal(access(path, F_OK), -1);
    /* A wrong shape. */
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_tgpt3_begin(&ctx, path, (char *)json.data, json.n - 4, &w), TG_OK);
    assert_int_equal(tg_tgpt3_declare(w, "ln_final.bias", TG_FILE_F32, 1, three), TG_OK);
    assert_int_equal(tg_tgpt3_write(w, x, 12), TG_E_FORMAT);
    assert_non_null(strstr(ctx.message, "ln_final.bias: want [1], have [3]"));
    tg_tgpt3_abort(w);
    /* Too few and too many bytes. */
    for (size_t k = 0; k < 2; k++) {
        tg_arena arena;
        tg_manifest m;
        tg_arena_init(&arena, &ctx.mem);
        tg_ctx_clear(&ctx);
        assert_int_equal(tg_manifest_new(&ctx, &arena, &config, &m), TG_OK);
        assert_int_equal(tg_tgpt3_begin(&ctx, path, (char *)json.data, json.n - 4, &w), TG_OK);
        for (size_t i = 0; i < m.n; i++) {
            tg_tgpt3_declare(w, m.entry[i].name, TG_FILE_F32, (uint32_t)m.entry[i].n_dims,
                             m.entry[i].dim);
        }
        for (size_t i = 0; i < m.n; i++) {
            tg_tgpt3_write(w, x, (size_t)m.entry[i].elems * 4 - (k == 0 && i == m.n - 1));
        }
        assert_int_equal(k ? tg_tgpt3_write(w, x, 1) : TG_E_INTERNAL, TG_E_INTERNAL);
        assert_int_equal(tg_tgpt3_commit(w, false, NULL), TG_E_INTERNAL);
        tg_arena_deinit(&arena);
    }
    tg_tgpt3_abort(NULL);
    assert_int_equal(access(path, F_OK), -1);
    bytes_free(&json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(holds_what_was_saved, clear_folder),
        cmocka_unit_test_teardown(is_laid_out_as_documented, clear_folder),
        cmocka_unit_test_teardown(skips_optional_sections, clear_folder),
        cmocka_unit_test_teardown(refuses_every_flipped_bit, clear_folder),
        cmocka_unit_test_teardown(opening_and_reading_notices_damage, clear_folder),
        cmocka_unit_test_teardown(refuses_every_other_length, clear_folder),
        cmocka_unit_test_teardown(names_the_damaged_chunk, clear_folder),
        cmocka_unit_test_teardown(refuses_hostile_values, clear_folder),
        cmocka_unit_test_teardown(refuses_hostile_headers, clear_folder),
        cmocka_unit_test_teardown(lists_all_that_is_wrong_with_the_tensors, clear_folder),
        cmocka_unit_test_teardown(refuses_data_beyond_the_tensors, clear_folder),
        cmocka_unit_test_teardown(refuses_numbers_out_of_range, clear_folder),
        cmocka_unit_test_teardown(holds_other_types_in_any_order, clear_folder),
        cmocka_unit_test_teardown(writer_refuses_what_no_reader_takes, clear_folder),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
