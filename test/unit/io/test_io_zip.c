/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_io_zip.c - a zip file of a model made here, one field of it changed in each row; every
 * allocation that fails; and what is read of the good one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fail_alloc.h"
#include "io/hf/hf.h"

enum { LOCAL = 30, ENTRY = 46, END = 22, TENSORS = 100000 };
enum { CONFIG, WEIGHTS, NOTE, N_MEMBERS };

static const char *const names[N_MEMBERS] = { "m/config.json", "m/model.safetensors", "note.txt" };
static uint8_t *datas[N_MEMBERS];
static size_t sizes[N_MEMBERS];
static uint8_t zip[TENSORS + 4096];
static size_t n_zip, local_at[N_MEMBERS], entry_at[N_MEMBERS], end_at;

static uint32_t crc_of(const uint8_t *bytes, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void put(const void *bytes, size_t n) {
    memcpy(zip + n_zip, bytes, n);
    n_zip += n;
}

/* The tensors take more than one piece of what is checked at once. */
static int make(void **state) {
    (void)state;
    static const char config[] =
        "{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":32,"
        "\"intermediate_size\":64,\"max_position_embeddings\":64,"
        "\"num_attention_heads\":4,\"tie_word_embeddings\":true}";
    static const char head[] =
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[0,100000]}}";
    static uint8_t weights[8 + sizeof head - 1 + TENSORS], note[] = "nothing";
    static const uint8_t zeros[ENTRY];
    tg_put_u64(weights, sizeof head - 1);
    memcpy(weights + 8, head, sizeof head - 1);
    datas[CONFIG] = (uint8_t *)(uintptr_t)config, sizes[CONFIG] = sizeof config - 1;
    datas[WEIGHTS] = weights, sizes[WEIGHTS] = sizeof weights;
    datas[NOTE] = note, sizes[NOTE] = sizeof note - 1;
    for (int i = 0; i < N_MEMBERS; i++) {
        local_at[i] = n_zip;
        put(zeros, LOCAL);
        memcpy(zip + local_at[i], "PK\3\4", 4);
        zip[local_at[i] + 26] = (uint8_t)strlen(names[i]);
        put(names[i], strlen(names[i]));
        put(datas[i], sizes[i]);
    }
    const size_t directory = n_zip;
    for (int i = 0; i < N_MEMBERS; i++) {
        uint8_t *e = zip + n_zip;
        entry_at[i] = n_zip;
        put(zeros, ENTRY);
        memcpy(e, "PK\1\2", 4);
        tg_put_u32(e + 16, crc_of(datas[i], sizes[i]));
        tg_put_u32(e + 20, (uint32_t)sizes[i]);
        tg_put_u32(e + 24, (uint32_t)sizes[i]);
        e[28] = (uint8_t)strlen(names[i]);
        tg_put_u32(e + 42, (uint32_t)local_at[i]);
        put(names[i], strlen(names[i]));
    }
    end_at = n_zip;
    put(zeros, END);
    memcpy(zip + end_at, "PK\5\6", 4);
    zip[end_at + 10] = N_MEMBERS;
    tg_put_u32(zip + end_at + 12, (uint32_t)(end_at - directory));
    tg_put_u32(zip + end_at + 16, (uint32_t)directory);
    return 0;
}

/* What a model is opened by, and a check of all that is in the file. */
static tg_status open_and_check(tg_ctx *ctx, const uint8_t *bytes, size_t n) {
    tg_folder f;
    tg_reader r, again;
    TG_TRY(tg_folder_open_memory(ctx, "made.zip", bytes, n, &f));
    tg_status s = tg_folder_file(&f, "config.json", &r);
    if (s == TG_OK) s = tg_folder_file(&f, "config.json", &again);
    if (s == TG_OK) assert_ptr_equal(r.memory, again.memory);
    if (s == TG_OK) s = tg_folder_file(&f, "model.safetensors", &r);
    if (s == TG_OK) assert_int_equal(tg_reader_left(&r), sizes[WEIGHTS]);
    tg_folder_checking checking = { .member = 0 };
    if (s == TG_OK) s = tg_folder_check(&f, &checking, 0);
    tg_folder_close(&f);
    return s;
}

#define BAD TG_E_FORMAT
#define ODD TG_E_UNSUPPORTED
static const struct {
    int member; /* of the directory; -1: the end; -2 - k: the head in front of member k */
    size_t at;
    unsigned n_bytes;
    uint32_t value;
    tg_status status;
    const char *says;
} rows[] = {
    { -1, 10, 2, 3, TG_OK, "" },
    { -1, 10, 2, 99, BAD, "directory: want 99 members in" },
    { -1, 10, 2, 2, TG_OK, "" },
    { -1, 10, 2, 4, BAD, "directory: want 4 members in" },
    { -1, 12, 4, 150, BAD, "entry of a zip file" },
    { -1, 10, 2, 1, BAD, "want a member model.safetensors, have none" },
    { -1, 12, 4, 0x7fffffff, BAD, "directory: want 3 members in 2147483647 bytes" },
    { -1, 16, 4, 0x7fffffff, BAD, "directory: want 3 members" },
    { -1, 20, 2, 1, BAD, "want the directory of a zip file at its end" },
    { -1, 0, 4, 0, BAD, "want the directory of a zip file at its end" },
    { CONFIG, 0, 4, 0, BAD, "directory: want an entry" },
    { CONFIG, 8, 2, 1, ODD, "want no encryption" },
    { CONFIG, 8, 2, 2, TG_OK, "" },
    { CONFIG, 20, 4, UINT32_MAX, ODD, "have Zip64" },
    { CONFIG, 24, 4, UINT32_MAX, ODD, "have Zip64" },
    { CONFIG, 42, 4, UINT32_MAX, ODD, "have Zip64" },
    { CONFIG, 30, 2, 60000, BAD, "entry of a zip file" },
    { CONFIG, ENTRY, 1, 0, BAD, "want one without a zero byte" },
    { CONFIG, ENTRY, 1, 'n', BAD, "want a member model.safetensors, have none" },
    { NOTE, 28, 2, 60000, BAD, "name of a member" },
    { CONFIG, 10, 2, 9, ODD, "want a member that is stored or deflated, have method 9" },
    { CONFIG, 10, 2, 8, BAD, "config.json" },
    { CONFIG, 24, 4, 7, BAD, "want a size that its" },
    { CONFIG, 16, 4, 7, TG_E_CHECKSUM, "config.json: want the CRC 00000007" },
    { WEIGHTS, 16, 4, 7, TG_E_CHECKSUM, "model.safetensors: want the CRC 00000007" },
    { WEIGHTS, 24, 4, 7, BAD, "want a size that its" },
    { WEIGHTS, 42, 4, 5, BAD, "want a member of" },
    { WEIGHTS, 42, 4, 0x7fffffff, BAD, "model.safetensors" },
    { NOTE, 10, 2, 9, ODD, "note.txt: want a member that is stored" },
    { NOTE, 10, 2, 8, BAD, "note.txt" },
    { NOTE, 42, 4, 5, BAD, "note.txt: want a member of" },
    { -2, 0, 4, 0, BAD, "config.json: want a member of" },
    { -2, 26, 2, 65535, TG_E_CHECKSUM, "config.json: want the CRC" },
    { -2, 28, 2, 65535, TG_E_CHECKSUM, "config.json: want the CRC" },
    { -3, 28, 2, 65535, BAD, "model.safetensors: want a member of 100" },
};

static void fields(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int m = rows[i].member;
        const size_t at = (m == -1 ? end_at : m < 0 ? local_at[-2 - m] : entry_at[m]) + rows[i].at;
        uint8_t *changed = malloc(n_zip); /* of just this size, so that sanitizers see its end */
        memcpy(changed, zip, n_zip);
        for (unsigned k = 0; k < rows[i].n_bytes; k++)
            changed[at + k] = (uint8_t)(rows[i].value >> 8 * k);
        tg_ctx ctx;
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        const tg_status s = open_and_check(&ctx, changed, n_zip);
        if (s != rows[i].status || (s != TG_OK && !strstr(ctx.message, rows[i].says)))
            fail_msg("row %zu: want %d \"%s\", have %d \"%s\"", i, (int)rows[i].status,
                     rows[i].says, (int)s, ctx.message);
        free(changed);
    }
}

/* A text whose packed bytes could make more than any text has. */
static void a_text_of_many_bytes(void **state) {
    (void)state;
    static uint8_t changed[sizeof zip];
    tg_ctx ctx;
    memcpy(changed, zip, n_zip);
    uint8_t *e = changed + entry_at[CONFIG];
    e[10] = 8;
    tg_put_u32(e + 20, 1 << 20);
    tg_put_u32(e + 24, (256u << 20) + 1);
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(open_and_check(&ctx, changed, n_zip), BAD);
    assert_non_null(strstr(ctx.message, "and a text of at most 256 MiB, have 268435457"));
}

static void cut_anywhere(void **state) {
    (void)state;
    for (size_t n = 0; n < n_zip; n += n < end_at - 300 && n > 500 ? 997 : 1) {
        tg_ctx ctx;
        uint8_t *cut = malloc(n ? n : 1);
        memcpy(cut, zip, n);
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        assert_int_equal(open_and_check(&ctx, cut, n), BAD);
        free(cut);
    }
}

static void names_out_of_it(void **state) {
    (void)state;
    static const char *const bad[] = { "../x", "/etc/passwd", "" };
    tg_ctx ctx;
    tg_folder f;
    tg_reader r;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_folder_open_memory(&ctx, "made.zip", zip, n_zip, &f), TG_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tg_ctx_clear(&ctx);
        assert_int_equal(tg_folder_file(&f, bad[i], &r), BAD);
        assert_non_null(strstr(ctx.message, "want the name of a file in it"));
    }
    assert_true(tg_folder_has(&f, "config.json"));
    assert_true(tg_folder_has(&f, "note.txt"));
    assert_false(tg_folder_has(&f, "m/config.json"));
    tg_folder_close(&f);
    tg_folder_close(&f);
}

static void failing_memory(void **state) {
    (void)state;
    size_t all = 1;
    for (size_t n = 0; n <= all; n++) {
        test_alloc a = { .fail_at = n };
        const tg_mem mem = test_alloc_mem(&a);
        tg_ctx ctx;
        tg_ctx_init(&ctx, &mem, NULL, NULL);
        assert_int_equal(open_and_check(&ctx, zip, n_zip), n ? TG_E_MEMORY : TG_OK);
        if (n == 0) all = a.requests;
        assert_int_equal(a.live_pieces, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),         cmocka_unit_test(a_text_of_many_bytes),
        cmocka_unit_test(cut_anywhere),   cmocka_unit_test(names_out_of_it),
        cmocka_unit_test(failing_memory),
    };
    return cmocka_run_group_tests(tests, make, NULL);
}
