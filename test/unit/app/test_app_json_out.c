/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_json_out.c - what the program prints as JSON, read back by the library's strict reader.
 */
#include "print/json_out.h"

#include "base/codec/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static char text[65536];

static size_t take(FILE *file) {
    rewind(file);
    const size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return n;
}

static void shape(void **state) {
    (void)state;
    FILE *file = tmpfile();
    tg_jout j = tg_jout_to(file);
    tg_jout_open(&j, NULL, '{');
    tg_jout_int(&j, "step", -7);
    tg_jout_open(&j, "ms", '[');
    tg_jout_rounded(&j, NULL, 1.23456, 3);
    tg_jout_open(&j, NULL, '[');
    tg_jout_close(&j);
    tg_jout_bool(&j, NULL, false);
    tg_jout_close(&j);
    tg_jout_uint(&j, "big", UINT64_MAX);
    tg_jout_double(&j, "nan", NAN);
    tg_jout_rounded(&j, "inf", INFINITY, 2);
    tg_jout_text(&j, "none", NULL);
    tg_jout_close(&j);
    tg_jout_line(&j);
    take(file);
    assert_string_equal(text, "{\"step\":-7,\"ms\":[1.235,[],false],\"big\":18446744073709551615,"
                              "\"nan\":null,\"inf\":null,\"none\":null}\n");
}

/* Any bytes give a valid string, and valid UTF-8 comes back as it was. */
static void strings(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_mem mem = tg_mem_default();
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    for (int first = 0; first < 256; first++) {
        for (int second = 0; second < 256; second += 5) {
            const char bytes[] = { 'a', (char)first, (char)second, 'z' };
            FILE *file = tmpfile();
            tg_jout j = tg_jout_to(file);
            tg_jout_open(&j, NULL, '[');
            tg_jout_text_n(&j, NULL, bytes, sizeof bytes);
            tg_jout_close(&j);
            const size_t n = take(file);
            tg_arena arena;
            tg_arena_init(&arena, &mem);
            const tg_json *root;
            assert_int_equal(tg_json_parse(&ctx, &arena, "test", text, n, NULL, &root), TG_OK);
            const tg_json *string = tg_json_first(root);
            if (first < 0x80 && second < 0x80) {
                assert_int_equal(string->length, sizeof bytes);
                assert_memory_equal(string->u.text, bytes, sizeof bytes);
            }
            tg_arena_deinit(&arena);
        }
    }
}

static void doubles_come_back(void **state) {
    (void)state;
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        double value;
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        FILE *file = fmemopen(text, sizeof text, "w");
        tg_jout j = tg_jout_to(file);
        tg_jout_double(&j, NULL, value);
        fclose(file);
        assert_true(strtod(text, NULL) == value);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape),
        cmocka_unit_test(strings),
        cmocka_unit_test(doubles_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
