/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_inflate.c - deflate streams: zlib's, and those made here, bit by bit, that break one
 * rule of RFC 1951 each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/codec/inflate.h"

static tg_status inflate(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out) {
    tg_ctx ctx;
    const tg_mem mem = tg_mem_default();
    tg_ctx_init(&ctx, &mem, NULL, NULL);
    /* Of just that size, so that a sanitizer sees what is read or written beyond. */
    uint8_t *copy = malloc(n_in ? n_in : 1), *room = malloc(n_out ? n_out : 1);
    memcpy(copy, in, n_in);
    const tg_status status = tg_inflate(&ctx, "member", copy, n_in, room, n_out);
    if (status == TG_OK) memcpy(out, room, n_out);
    if (status != TG_OK) assert_non_null(strstr(ctx.message, "member: byte "));
    free(copy);
    free(room);
    return status;
}

/* ---------------------------------------------------------------------------------------- zlib's
 */

/* 500 of four letters, 300 times "e", 30 times "abcd": a block of its own codes, at level 9. */
enum { DYNAMIC_BYTES = 920 };
static const uint8_t dynamic[] = {
    0xed, 0x51, 0x41, 0x02, 0xc3, 0x20, 0x08, 0x7b, 0x6b, 0x12, 0xf6, 0xff, 0x2f, 0x8c, 0x04, 0x65,
    0x3d, 0xee, 0xb6, 0xcb, 0xb0, 0x5a, 0x95, 0x10, 0x02, 0x42, 0x20, 0x09, 0x02, 0xaa, 0xfe, 0x03,
    0x05, 0x79, 0xb1, 0x31, 0xc3, 0x5f, 0x16, 0x7b, 0x02, 0xf1, 0xad, 0x1a, 0x52, 0x15, 0xb0, 0x44,
    0x85, 0xa0, 0x6f, 0x95, 0x48, 0x4e, 0xbc, 0x61, 0x09, 0x68, 0x1f, 0x6a, 0x36, 0x08, 0xee, 0x90,
    0x26, 0x8f, 0x6e, 0x82, 0x1e, 0xc2, 0x12, 0x98, 0xd8, 0xd4, 0x3d, 0x55, 0xc2, 0x86, 0x60, 0x34,
    0x1c, 0x89, 0x6b, 0x25, 0xf3, 0x38, 0x4c, 0xd7, 0x1f, 0xe9, 0x53, 0xdb, 0xd3, 0x6e, 0x45, 0x59,
    0x03, 0x4e, 0x92, 0xa3, 0x42, 0xe0, 0x16, 0x6c, 0xc2, 0x51, 0x38, 0xe7, 0xe8, 0x60, 0xf4, 0x4f,
    0x0e, 0x3d, 0x05, 0x4c, 0x25, 0xa7, 0x73, 0x75, 0x09, 0x56, 0xb7, 0x7b, 0x77, 0xf0, 0xc5, 0xdb,
    0x59, 0x7d, 0x04, 0x99, 0x55, 0xe3, 0xbd, 0xda, 0xf4, 0xa4, 0x76, 0x89, 0x53, 0xbc, 0x6a, 0x76,
    0xe9, 0x29, 0xb7, 0xdb, 0x0d, 0x57, 0xd2, 0x73, 0xdf, 0x6c, 0xde, 0x4b, 0xe4, 0xe1, 0xe6, 0x64,
    0x7c, 0xfd, 0xed, 0x6b, 0xeb, 0x8e, 0xd5, 0x2f, 0xe6, 0x1b,
};
static void dynamic_text(uint8_t out[DYNAMIC_BYTES]) {
    uint32_t x = 1;
    for (size_t i = 0; i < DYNAMIC_BYTES; i++) {
        x = x * 1103515245 + 12345;
        out[i] = (uint8_t)(i < 500   ? "aaaaaaaaaabbbccd"[x >> 16 & 15]
                           : i < 800 ? 'e'
                                     : "abcd"[i % 4]);
    }
}
static const uint8_t fixed[] = { 0x4b, 0x4c, 0x4a, 0x4e, 0x44, 0x42, 0x11, 0x91, 0x51, 0x00 };
static const uint8_t stored[] = { 0x01, 0x0c, 0x00, 0xf3, 0xff, 's', 't', 'o', 'r',
                                  'e',  'd',  ' ',  'b',  'y',  't', 'e', 's' };

static void as_zlib_packed_them(void **state) {
    (void)state;
    uint8_t out[DYNAMIC_BYTES], want[DYNAMIC_BYTES];
    dynamic_text(want);
    assert_int_equal(inflate(dynamic, sizeof dynamic, out, DYNAMIC_BYTES), TG_OK);
    assert_memory_equal(out, want, DYNAMIC_BYTES);
    assert_int_equal(inflate(fixed, sizeof fixed, out, 18), TG_OK);
    assert_memory_equal(out, "abcabcabcabcabcXYZ", 18);
    assert_int_equal(inflate(stored, sizeof stored, out, 12), TG_OK);
    assert_memory_equal(out, "stored bytes", 12);
}

/* Every shorter stream, and every other size. */
static void not_a_byte_more_or_less(void **state) {
    (void)state;
    uint8_t out[DYNAMIC_BYTES + 1];
    for (size_t n = 0; n < sizeof dynamic; n++)
        assert_int_equal(inflate(dynamic, n, out, DYNAMIC_BYTES), TG_E_FORMAT);
    for (size_t n = 0; n < sizeof fixed - 1; n++)
        assert_int_equal(inflate(fixed, n, out, 18), TG_E_FORMAT);
    for (size_t n = 0; n < sizeof stored; n++)
        assert_int_equal(inflate(stored, n, out, 12), TG_E_FORMAT);
    for (size_t n = 0; n <= DYNAMIC_BYTES + 1; n++)
        if (n != DYNAMIC_BYTES)
            assert_int_equal(inflate(dynamic, sizeof dynamic, out, n), TG_E_FORMAT);
    for (size_t n = 0; n < 30; n++) {
        if (n != 18) assert_int_equal(inflate(fixed, sizeof fixed, out, n), TG_E_FORMAT);
        if (n != 12) assert_int_equal(inflate(stored, sizeof stored, out, n), TG_E_FORMAT);
    }
}

/* ------------------------------------------------------------------------------------- bit by bit
 */

typedef struct bits {
    uint8_t bytes[512];
    size_t n;
} bits;

/* Numbers lie with their lowest bit first, codes with their highest. */
static void number(bits *b, unsigned value, unsigned n) {
    for (unsigned i = 0; i < n; i++, b->n++)
        b->bytes[b->n / 8] |= (uint8_t)((value >> i & 1) << b->n % 8);
}
static void code_of(bits *b, unsigned value, unsigned n) {
    for (unsigned i = n; i-- > 0;) number(b, value >> i, 1);
}
static void block(bits *b, unsigned kind, bool last) {
    number(b, last, 1);
    number(b, kind, 2);
}
static tg_status unpack(const bits *b, const char *want) {
    uint8_t out[600];
    const size_t n = strlen(want);
    const tg_status status = inflate(b->bytes, (b->n + 7) / 8, out, n);
    if (status == TG_OK) assert_memory_equal(out, want, n);
    return status;
}

/* The fixed codes: 3.2.6 of the RFC. */
static void symbol(bits *b, unsigned s) {
    if (s < 144)
        code_of(b, 0x30 + s, 8);
    else if (s < 256)
        code_of(b, 0x190 + s - 144, 9);
    else if (s < 280)
        code_of(b, s - 256, 7);
    else
        code_of(b, 0xc0 + s - 280, 8);
}

static void kinds_of_blocks(void **state) {
    (void)state;
    bits b = { .n = 0 };
    block(&b, 3, true);
    for (int i = 0; i < 4; i++) number(&b, 0, 16);
    assert_int_equal(unpack(&b, ""), TG_E_FORMAT);
    /* Three of them, the first two not the last; a stored one begins with a byte. */
    b = (bits) { .n = 0 };
    block(&b, 1, false);
    symbol(&b, 'x');
    symbol(&b, 256);
    block(&b, 0, false);
    b.n = (b.n + 7) / 8 * 8;
    number(&b, 2, 16);
    number(&b, 0xfffd, 16);
    number(&b, 'y' | 'z' << 8, 16);
    block(&b, 1, true);
    symbol(&b, 200);
    symbol(&b, 256);
    assert_int_equal(unpack(&b, "xyz\xc8"), TG_OK);
    b = (bits) { .n = 0 };
    block(&b, 0, true);
    b.n = 8;
    number(&b, 2, 16);
    number(&b, 0xfffc, 16);
    number(&b, 'y' | 'z' << 8, 16);
    assert_int_equal(unpack(&b, "yz"), TG_E_FORMAT);
}

/* "a", then what was there: from one byte back it is repeated, from two back there is nothing. */
static void repetitions(void **state) {
    (void)state;
    for (unsigned back = 0; back < 3; back++) {
        bits b = { .n = 0 };
        block(&b, 1, true);
        symbol(&b, 'a');
        symbol(&b, 258); /* four bytes */
        code_of(&b, back, 5);
        symbol(&b, 256);
        assert_int_equal(unpack(&b, "aaaaa"), back == 0 ? TG_OK : TG_E_FORMAT);
    }
    /* The longest, from two back, after extra bits: 258 bytes of "ab". */
    char want[261] = "";
    bits b = { .n = 0 };
    block(&b, 1, true);
    symbol(&b, 'a');
    symbol(&b, 'b');
    symbol(&b, 285);
    code_of(&b, 1, 5);
    symbol(&b, 256);
    for (size_t i = 0; i < 260; i++) want[i] = "ab"[i % 2];
    assert_int_equal(unpack(&b, want), TG_OK);
    /* Length 11 + 1 by an extra bit; distance 5 + 1, likewise. */
    b = (bits) { .n = 0 };
    block(&b, 1, true);
    for (unsigned i = 0; i < 6; i++) symbol(&b, 'a' + i);
    symbol(&b, 265);
    number(&b, 1, 1);
    code_of(&b, 4, 5);
    number(&b, 1, 1);
    symbol(&b, 256);
    assert_int_equal(unpack(&b, "abcdefabcdefabcdef"), TG_OK);
    /* Numbers that no length and no distance have. */
    for (unsigned s = 286; s < 288; s++) {
        b = (bits) { .n = 0 };
        block(&b, 1, true);
        symbol(&b, 'a');
        symbol(&b, s);
        code_of(&b, 0, 5);
        symbol(&b, 256);
        assert_int_equal(unpack(&b, "aaaa"), TG_E_FORMAT);
    }
    for (unsigned d = 30; d < 32; d++) {
        b = (bits) { .n = 0 };
        block(&b, 1, true);
        symbol(&b, 'a');
        symbol(&b, 257);
        code_of(&b, d, 5);
        number(&b, 0, 16);
        symbol(&b, 256);
        assert_int_equal(unpack(&b, "aaaa"), TG_E_FORMAT);
    }
}

/* A block of its own codes. Lengths come in a code of their own that is the same here always:
 * 0 is 00, 1 is 01, 18 is 10, 2 is 110, 16 is 111. */
static void begin_codes(bits *b, unsigned n_literals, unsigned n_distances) {
    static const uint8_t lengths[19] = { 3, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 2, 0 };
    block(b, 2, true);
    number(b, n_literals - 257, 5);
    number(b, n_distances - 1, 5);
    number(b, 15, 4);
    for (int i = 0; i < 19; i++) number(b, lengths[i], 3);
}
static void length_of(bits *b, unsigned length) {
    code_of(b, length == 2 ? 6 : length, length == 2 ? 3 : 2);
}
static void zeros(bits *b, unsigned n) {
    for (unsigned more; n > 0; n -= more) {
        more = n < 138 ? n : 138;
        code_of(b, 2, 2);
        number(b, more - 11, 7);
    }
}

/* Lengths of "a", "b", the end of the block, and two distances; then the stream of "a". */
static tg_status with_lengths(unsigned a, unsigned c, unsigned end, unsigned near, unsigned far) {
    bits b = { .n = 0 };
    begin_codes(&b, 257, 2);
    zeros(&b, 97);
    length_of(&b, a);
    length_of(&b, c);
    zeros(&b, 157);
    length_of(&b, end);
    length_of(&b, near);
    length_of(&b, far);
    code_of(&b, 0, a); /* "a" has the first code of its length */
    code_of(&b, end == 2 ? (a == 2 ? 2 : 3) : 1, end);
    return unpack(&b, "a");
}

static void codes_that_are_none(void **state) {
    (void)state;
    assert_int_equal(with_lengths(1, 0, 1, 1, 0), TG_OK);
    assert_int_equal(with_lengths(1, 2, 2, 1, 1), TG_OK);
    assert_int_equal(with_lengths(1, 0, 1, 0, 0), TG_OK);       /* no distance at all */
    assert_int_equal(with_lengths(2, 0, 2, 1, 0), TG_E_FORMAT); /* half is unused */
    assert_int_equal(with_lengths(1, 0, 2, 1, 0), TG_E_FORMAT); /* a quarter is */
    assert_int_equal(with_lengths(1, 1, 1, 1, 0), TG_E_FORMAT); /* three halves */
    assert_int_equal(with_lengths(1, 1, 0, 1, 0), TG_E_FORMAT); /* no end */
    assert_int_equal(with_lengths(1, 0, 1, 2, 2), TG_E_FORMAT); /* distances, half unused */
}

static void lengths_that_are_none(void **state) {
    (void)state;
    /* A repetition before there is a length. */
    bits b = { .n = 0 };
    begin_codes(&b, 257, 1);
    code_of(&b, 7, 3);
    number(&b, 0, 2);
    for (int i = 0; i < 4; i++) number(&b, 0, 16);
    assert_int_equal(unpack(&b, "a"), TG_E_FORMAT);
    /* One length more than there are symbols. */
    for (unsigned more = 0; more < 2; more++) {
        b = (bits) { .n = 0 };
        begin_codes(&b, 257, 12);
        zeros(&b, 97);
        length_of(&b, 1);
        zeros(&b, 158);
        length_of(&b, 1);
        length_of(&b, 1);
        zeros(&b, 11 + more);
        code_of(&b, 0, 1);
        code_of(&b, 1, 1);
        assert_int_equal(unpack(&b, "a"), more ? TG_E_FORMAT : TG_OK);
    }
    /* 287 symbols. */
    b = (bits) { .n = 0 };
    begin_codes(&b, 287, 1);
    zeros(&b, 97);
    length_of(&b, 1);
    zeros(&b, 158);
    length_of(&b, 1);
    zeros(&b, 30);
    length_of(&b, 1);
    code_of(&b, 0, 1);
    code_of(&b, 1, 1);
    assert_int_equal(unpack(&b, "a"), TG_E_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_zlib_packed_them), cmocka_unit_test(not_a_byte_more_or_less),
        cmocka_unit_test(kinds_of_blocks),     cmocka_unit_test(repetitions),
        cmocka_unit_test(codes_that_are_none), cmocka_unit_test(lengths_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
