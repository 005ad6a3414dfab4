/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_base_crc.c - CRC-32C and SHA-256: published answers, a bit-by-bit reference, and every way
 * of cutting the input into pieces.
 */
#include "base/codec/crc.h"
#include "base/codec/sha256.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static void fill(unsigned char *bytes, size_t n) {
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(x >> 24);
    }
}

/* ------------------------------------------------------------------------------------- CRC-32C */

/* RFC 3720, appendix B.4. */
static void crc_known_answers(void **state) {
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(tg_crc32c(0, "", 0), 0);
    assert_int_equal(tg_crc32c(0, "123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(tg_crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(tg_crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
    assert_int_equal(tg_crc32c(0, bytes, 32), 0x46dd794e);
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)(31 - i);
    assert_int_equal(tg_crc32c(0, bytes, 32), 0x113fdb5c);
}

static uint32_t crc_by_bits(const unsigned char *bytes, size_t n) {
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static void crc_of_any_length_and_cut(void **state) {
    (void)state;
    unsigned char bytes[300];
    fill(bytes, sizeof bytes);
    for (size_t start = 0; start < 17; start++) {
        for (size_t n = 0; start + n <= 150; n++) {
            const uint32_t want = crc_by_bits(bytes + start, n);
            assert_int_equal(tg_crc32c(0, bytes + start, n), want);
            assert_int_equal(tg_crc32c_tables(0, bytes + start, n), want);
            const size_t cut = n * 5 / 7;
            const uint32_t first = tg_crc32c(0, bytes + start, cut);
            assert_int_equal(tg_crc32c(first, bytes + start + cut, n - cut), want);
        }
    }
    /* Every bit of every place reaches the checksum: all table entries of all slices. */
    const uint32_t whole = tg_crc32c(0, bytes, 64);
    for (size_t i = 0; i < 64; i++) {
        for (int value = 0; value < 256; value++) {
            const unsigned char kept = bytes[i];
            bytes[i] = (unsigned char)value;
            const uint32_t crc = tg_crc32c_tables(0, bytes, 64);
            assert_int_equal(crc, crc_by_bits(bytes, 64));
            assert_int_equal(crc == whole, value == kept);
            bytes[i] = kept;
        }
    }
}

/* ------------------------------------------------------------------------------------- SHA-256 */

static void check_sha(const char *bytes, size_t n, const char *want) {
    uint8_t digest[TG_SHA256_BYTES];
    char text[2 * TG_SHA256_BYTES + 1];
    tg_sha256_of(bytes, n, digest);
    tg_sha256_hex(digest, text);
    assert_string_equal(text, want);
}

/* The examples of FIPS 180-2, and the empty message. */
static void sha_known_answers(void **state) {
    (void)state;
    check_sha("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    check_sha(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* Lengths around the block and the padding; want comes from Python's hashlib over fill()'s bytes:
 * the digest of the concatenated digests of all prefixes of 0..259 bytes. */
static void sha_of_any_length_and_cut(void **state) {
    (void)state;
    unsigned char bytes[260];
    uint8_t digest[TG_SHA256_BYTES], pieces[TG_SHA256_BYTES];
    char text[2 * TG_SHA256_BYTES + 1];
    tg_sha256 all, sha;
    fill(bytes, sizeof bytes);
    tg_sha256_init(&all);
    for (size_t n = 0; n < sizeof bytes; n++) {
        tg_sha256_of(bytes, n, digest);
        tg_sha256_update(&all, digest, sizeof digest);
        for (size_t step = 1; step < 130; step += 21) {
            tg_sha256_init(&sha);
            for (size_t i = 0; i < n; i += step)
                tg_sha256_update(&sha, bytes + i, n - i < step ? n - i : step);
            tg_sha256_update(&sha, NULL, 0);
            tg_sha256_final(&sha, pieces);
            assert_memory_equal(pieces, digest, sizeof digest);
        }
    }
    tg_sha256_final(&all, digest);
    tg_sha256_hex(digest, text);
    assert_string_equal(text, "105ff1e07209647ba872d87fc64f704cf59ed0f62b9a805eeadc4b9327e2ab9c");
}

/* The other tests see what the processor has; this one holds the portable code against it. */
static void sha_in_portable_c(void **state) {
    (void)state;
    unsigned char bytes[64 * 9];
    fill(bytes, sizeof bytes);
    for (size_t n = 0; n <= 9; n++) {
        tg_sha256 sha;
        uint32_t plain[8];
        tg_sha256_init(&sha);
        memcpy(plain, sha.state, sizeof plain);
        tg_sha256_update(&sha, bytes, 64 * n);
        tg_sha256_mix(plain, bytes, n);
        assert_memory_equal(plain, sha.state, sizeof plain);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_known_answers), cmocka_unit_test(crc_of_any_length_and_cut),
        cmocka_unit_test(sha_known_answers), cmocka_unit_test(sha_of_any_length_and_cut),
        cmocka_unit_test(sha_in_portable_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
