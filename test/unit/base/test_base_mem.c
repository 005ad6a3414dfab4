/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_mem.c - memory, errors and buffers: contents, alignment, limits, and every allocation
 * failing once.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/os/os.h"
#include "fail_alloc.h"

#include <setjmp.h>

#include <cmocka.h>

static bool all_zero(const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

/* ---------------------------------------------------------------------------------------- sizes */

static void checked_sizes(void **state) {
    (void)state;
    size_t out;
    assert_true(tg_mul_size(0, SIZE_MAX, &out) && out == 0);
    assert_true(tg_mul_size(SIZE_MAX, 1, &out) && out == SIZE_MAX);
    assert_true(tg_mul_size(SIZE_MAX / 3, 3, &out) && out == SIZE_MAX / 3 * 3);
    assert_false(tg_mul_size(SIZE_MAX / 3 + 1, 3, &out));
    assert_true(out == SIZE_MAX);
    assert_false(
        tg_mul_size((size_t)1 << (sizeof(size_t) * 4), (size_t)1 << (sizeof(size_t) * 4), &out));
    assert_true(tg_add_size(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
    assert_false(tg_add_size(SIZE_MAX, 1, &out));
    uint64_t wide;
    /* A product that wraps to a small number: 3 * 12297829382473034411 = 2^65 + 1. */
    assert_false(tg_mul_u64(3, UINT64_C(12297829382473034411), &wide));
    assert_true(tg_mul_u64(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &wide));
    assert_false(tg_add_u64(UINT64_MAX, 1, &wide));
    assert_true(tg_add_u64(UINT64_MAX - 1, 1, &wide) && wide == UINT64_MAX);
}

/* --------------------------------------------------------------------------------------- pieces */

static void pieces_are_zeroed(void **state) {
    (void)state;
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    char *p = tg_alloc(&mem, 100);
    assert_non_null(p);
    assert_true(all_zero(p, 100));
    memset(p, 'x', 100);
    p = tg_realloc(&mem, p, 100, 1000);
    assert_non_null(p);
    assert_true(p[0] == 'x' && p[99] == 'x' && all_zero(p + 100, 900));
    p = tg_realloc(&mem, p, 1000, 10);
    p = tg_realloc(&mem, p, 10, 0);
    assert_non_null(p); /* 0 bytes are a piece, not a free */
    assert_int_equal(a.live_pieces, 1);
    tg_free(&mem, p, 0);
    assert_int_equal(a.live_pieces, 0);
    tg_free(&mem, NULL, 0);

    a.fail_at = a.requests + 2;
    p = tg_alloc(&mem, 8);
    memset(p, 'y', 8);
    assert_null(tg_realloc(&mem, p, 8, 16));
    assert_memory_equal(p, "yyyyyyyy", 8); /* still valid */
    tg_free(&mem, p, 8);
    assert_int_equal(a.live_pieces, 0);
}

/* --------------------------------------------------------------------------------------- blocks */

static void check_block(tg_ctx *ctx, size_t bytes) {
    tg_block block;
    assert_int_equal(tg_block_new(ctx, bytes, &block), TG_OK);
    assert_non_null(block.data);
    assert_int_equal(block.bytes, bytes);
    assert_int_equal((uintptr_t)block.data % TG_BLOCK_ALIGN, 0);
    assert_true(all_zero(block.data, bytes));
    memset(block.data, 0xff, bytes);
    tg_block_free(&block);
    assert_null(block.data);
    tg_block_free(&block);
}

static void blocks(void **state) {
    (void)state;
    static const size_t sizes[] = {
        0, 1, 63, 64, 65, 4096, (2u << 20) - 1, 2u << 20, (2u << 20) + 1, 5000011
    };
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_block(&ctx, sizes[i]);

    /* From 2 MiB on the system's heap is left for pages on a huge page's boundary. */
    tg_block block;
    assert_int_equal(tg_block_new(&ctx, 3u << 20, &block), TG_OK);
    assert_true(block.pages);
    assert_int_equal((uintptr_t)block.data % (2u << 20), 0);
    tg_block_free(&block);

    /* A custom allocator is always asked, for large blocks too. */
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) check_block(&ctx, sizes[i]);
    assert_int_equal(a.requests, sizeof sizes / sizeof sizes[0]);
    assert_int_equal(a.live_pieces, 0);

    a.fail_at = a.requests + 1;
    assert_int_equal(tg_block_new(&ctx, 3u << 20, &block), TG_E_MEMORY);
    assert_null(block.data);
    assert_non_null(strstr(ctx.message, "3145728 bytes"));
    tg_block_free(&block);
}

static void impossible_blocks(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_block block;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    for (size_t less = 0; less < 200; less += 7) {
        tg_ctx_clear(&ctx);
        assert_int_equal(tg_block_new(&ctx, SIZE_MAX - less, &block), TG_E_MEMORY);
    }
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    assert_int_equal(tg_block_new(&ctx, SIZE_MAX, &block), TG_E_MEMORY);
    assert_int_equal(a.live_pieces, 0);
}

static int no_pages(const char *operation, const char *path) {
    (void)path;
    return strcmp(operation, "pages") == 0 ? 12 : 0;
}

static void pages_can_fail(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_block block;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_os_fault = no_pages;
    const tg_status status = tg_block_new(&ctx, 4u << 20, &block);
    tg_os_fault = NULL;
    assert_int_equal(status, TG_E_MEMORY);
    assert_null(block.base);
}

/* --------------------------------------------------------------------------------------- arenas */

static void arenas(void **state) {
    (void)state;
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_arena arena;
    tg_arena_init(&arena, &mem);
    assert_int_equal(a.requests, 0);
    unsigned char *pieces[3000];
    for (size_t i = 0; i < 3000; i++) {
        const size_t bytes = i % 97;
        pieces[i] = tg_arena_alloc(&arena, bytes);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        assert_true(all_zero(pieces[i], bytes));
        memset(pieces[i], (int)(i & 0xff), bytes);
    }
    for (size_t i = 0; i < 3000; i++) /* no piece overlaps another */
        for (size_t k = 0; k < i % 97; k++) assert_int_equal(pieces[i][k], i & 0xff);
    assert_true(a.requests < 10);
    char *large = tg_arena_alloc(&arena, 5u << 20);
    assert_true(large && all_zero(large, 5u << 20));
    assert_non_null(tg_arena_alloc(&arena, 1));
    assert_null(tg_arena_alloc(&arena, SIZE_MAX));
    assert_null(tg_arena_alloc(&arena, SIZE_MAX - 40));
    assert_null(tg_arena_array(&arena, SIZE_MAX / 2, 3));
    assert_non_null(tg_arena_array(&arena, 0, 8));
    assert_string_equal(tg_arena_strdup(&arena, "héllo"), "héllo");
    assert_string_equal(tg_arena_strndup(&arena, "hello", 2), "he");
    assert_string_equal(tg_arena_sprintf(&arena, "blocks.%d.%s", 12, "mlp"), "blocks.12.mlp");
    assert_int_equal(arena.total_bytes, a.live_bytes);
    tg_arena_deinit(&arena);
    assert_int_equal(a.live_pieces, 0);
    assert_non_null(tg_arena_alloc(&arena, 8)); /* usable again */
    tg_arena_deinit(&arena);

    a.fail_at = a.requests + 1;
    a.sticky = true;
    assert_null(tg_arena_alloc(&arena, 8));
    assert_null(tg_arena_sprintf(&arena, "%d", 1));
    assert_null(tg_arena_strdup(&arena, "x"));
    tg_arena_deinit(&arena);
    assert_int_equal(a.live_pieces, 0);
}

/* --------------------------------------------------------------------------------------- errors */

static tg_status forwards(tg_ctx *ctx, tg_status status) {
    TG_TRY(status);
    return tg_fail(ctx, TG_E_INTERNAL, "was not forwarded");
}

static void first_failure_stays(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    assert_int_equal(tg_fail(&ctx, TG_E_RANGE, "first %d", 1), TG_E_RANGE);
    assert_int_equal(tg_fail(&ctx, TG_E_IO, "second"), TG_E_IO);
    assert_int_equal(ctx.code, TG_E_RANGE);
    assert_string_equal(ctx.message, "first 1");
    tg_ctx_clear(&ctx);
    assert_string_equal(ctx.message, "");
    assert_int_equal(tg_fail(NULL, TG_E_IO, "nowhere"), TG_E_IO);
    assert_int_equal(forwards(&ctx, TG_E_SHAPE), TG_E_SHAPE);
    assert_int_equal(forwards(&ctx, TG_PENDING), TG_PENDING);
    assert_int_equal(forwards(&ctx, TG_OK), TG_E_INTERNAL);
    tg_ctx_clear(&ctx);
    assert_int_equal(tg_fail_memory(&ctx, "cache", 1610612736), TG_E_MEMORY);
    assert_string_equal(ctx.message,
                        "cache: want 1610612736 bytes of memory (1535.9 MiB), have no more");
}

static void long_messages_are_cut_between_characters(void **state) {
    (void)state;
    tg_ctx ctx;
    char text[3000];
    for (size_t shift = 0; shift < 4; shift++) { /* every place within the character */
        memset(text, 'a', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
        tg_ctx_init(&ctx, NULL, NULL, NULL);
        tg_fail(&ctx, TG_E_IO, "%s", text);
        const size_t length = strlen(ctx.message);
        assert_true(length > TG_MESSAGE_BYTES - 4 && length < TG_MESSAGE_BYTES);
        assert_int_equal((length - shift) % 3, 0);
    }
}

static void names_cannot_drive_the_terminal(void **state) {
    (void)state;
    tg_ctx ctx;
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_fail(&ctx, TG_E_FORMAT, "a\nb%s", "\x1b[2J\r\t\x7f\xc3\xa9");
    assert_string_equal(ctx.message, "a\nb?[2J???\xc3\xa9");
}

static void status_texts(void **state) {
    (void)state;
#define CHECK(name, value, sentence)                                                               \
    assert_int_equal(TG_##name, value);                                                            \
    assert_string_equal(tg_status_text(TG_##name), sentence);
    TG_STATUS_LIST(CHECK)
#undef CHECK
    assert_non_null(tg_status_text((tg_status)-999));
}

typedef struct log_lines {
    int count, level;
    char last[64];
} log_lines;

static void take_line(void *user, int level, const char *text) {
    log_lines *lines = user;
    lines->count++;
    lines->level = level;
    snprintf(lines->last, sizeof lines->last, "%s", text);
}

static void log_reaches_its_function(void **state) {
    (void)state;
    tg_ctx ctx;
    log_lines lines = { 0 };
    tg_ctx_init(&ctx, NULL, take_line, &lines);
    tg_say(&ctx, TG_LOG_WARNING, "%s %d", "threads", 3);
    assert_int_equal(lines.count, 1);
    assert_int_equal(lines.level, TG_LOG_WARNING);
    assert_string_equal(lines.last, "threads 3");
    tg_ctx_init(&ctx, NULL, NULL, NULL);
    tg_say(&ctx, TG_LOG_INFO, "silent");
    tg_say(NULL, TG_LOG_INFO, "silent");
}

/* -------------------------------------------------------------------------------------- buffers */

static void fill_buffer(tg_buf *buf) {
    for (int i = 0; i < 200; i++) {
        tg_buf_puts(buf, "line ");
        tg_buf_printf(buf, "%d of %s", i, "many words that make it grow");
        tg_buf_putc(buf, '\n');
        tg_buf_append(buf, "\0x", 2);
        tg_buf_append(buf, NULL, 0);
    }
}

static void buffers(void **state) {
    (void)state;
    test_alloc a = { 0 };
    const tg_mem mem = test_alloc_mem(&a);
    tg_ctx ctx;
    tg_buf buf;
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    tg_buf_init(&buf, &mem);
    assert_string_equal(tg_buf_text(&buf), "");
    fill_buffer(&buf);
    assert_int_equal(tg_buf_status(&ctx, &buf, "text"), TG_OK);
    assert_memory_equal(buf.data, "line 0 of many words that make it grow\n\0xline 1", 47);
    assert_int_equal(buf.data[buf.length], 0);
    const size_t length = buf.length, needed = a.requests;
    tg_buf_clear(&buf);
    assert_string_equal(tg_buf_text(&buf), "");
    tg_buf_deinit(&buf);
    assert_int_equal(a.live_pieces, 0);

    for (size_t n = 1; n <= needed; n++) { /* each allocation fails once */
        a = (test_alloc) { .fail_at = n };
        fill_buffer(&buf);
        assert_true(buf.failed && buf.length < length);
        assert_int_equal(tg_buf_status(&ctx, &buf, "text"), TG_E_MEMORY);
        tg_buf_deinit(&buf);
        assert_int_equal(a.live_pieces, 0);
    }
    assert_null(tg_buf_reserve(&buf, SIZE_MAX));
    assert_true(buf.failed);
    tg_buf_deinit(&buf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_sizes),
        cmocka_unit_test(pieces_are_zeroed),
        cmocka_unit_test(blocks),
        cmocka_unit_test(impossible_blocks),
        cmocka_unit_test(pages_can_fail),
        cmocka_unit_test(arenas),
        cmocka_unit_test(first_failure_stays),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(names_cannot_drive_the_terminal),
        cmocka_unit_test(status_texts),
        cmocka_unit_test(log_reaches_its_function),
        cmocka_unit_test(buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
