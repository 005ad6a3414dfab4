/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.c - SHA-256 as FIPS 180-4 writes it, section by section.
 *
 * The message is padded with a 1 bit, zeros, and its length in bits as 64 bits, big-endian, to a
 * multiple of 64 bytes; each block is mixed into eight words of state. Where the processor has
 * instructions for that, os_*.c does it, some five times as fast.
 */
#include "base/codec/sha256.h"

#include "base/os/os.h"

/* 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const uint32_t tg_sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* 3.2; compilers make one instruction of it, for every n used here. Bits go out at the top. */
TG_WRAPS static uint32_t rotate_right(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

/* 3.1: the standard reads bytes into words with the highest first, whatever the machine does. */
static uint32_t big_endian_32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_big_endian_32(uint8_t *p, uint32_t x) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> (24 - 8 * i));
}

/* 6.2.2, steps 1 and 3. The standard moves all eight variables one place on after every round; here
 * the names move instead, so that eight rounds come back to the first naming. k and w are those of
 * sixteen rounds. */
#define ROUND(a, b, c, d, e, f, g, h, t)                                                           \
    do {                                                                                           \
        const uint32_t sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);      \
        const uint32_t sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);      \
        const uint32_t choose = g ^ (e & (f ^ g));                                                 \
        const uint32_t majority = (a & b) ^ (c & (a ^ b));                                         \
        h += sum1 + choose + k[t] + w[t];                                                          \
        d += h;                                                                                    \
        h += sum0 + majority;                                                                      \
    } while (0)

/* Sixteen rounds, with every word made just before it is used. */
#define ROUNDS(WORD)                                                                               \
    do {                                                                                           \
        EIGHT_ROUNDS(WORD, 0);                                                                     \
        EIGHT_ROUNDS(WORD, 8);                                                                     \
    } while (0)
#define EIGHT_ROUNDS(WORD, t)                                                                      \
    do {                                                                                           \
        WORD(t), WORD(t + 1), WORD(t + 2), WORD(t + 3);                                            \
        ROUND(a, b, c, d, e, f, g, h, t);                                                          \
        ROUND(h, a, b, c, d, e, f, g, t + 1);                                                      \
        ROUND(g, h, a, b, c, d, e, f, t + 2);                                                      \
        ROUND(f, g, h, a, b, c, d, e, t + 3);                                                      \
        WORD(t + 4), WORD(t + 5), WORD(t + 6), WORD(t + 7);                                        \
        ROUND(e, f, g, h, a, b, c, d, t + 4);                                                      \
        ROUND(d, e, f, g, h, a, b, c, t + 5);                                                      \
        ROUND(c, d, e, f, g, h, a, b, t + 6);                                                      \
        ROUND(b, c, d, e, f, g, h, a, t + 7);                                                      \
    } while (0)

/* 6.2.2, step 1: the 16 words of a block are stretched to 64, one for each round. A word needs none
 * that is more than 16 back, so 16 are kept, and a new one takes the place of the oldest: the
 * working set stays in registers, or nearly. */
#define FIRST_WORD(t) w[t] = big_endian_32(block + 4 * (t))
#define NEXT_WORD(t)                                                                               \
    w[t] += stretch(w[((t) + 1) & 15], 7, 18, 3) + w[((t) + 9) & 15] +                             \
            stretch(w[((t) + 14) & 15], 17, 19, 10)

static uint32_t stretch(uint32_t x, unsigned r1, unsigned r2, unsigned shift) {
    return rotate_right(x, r1) ^ rotate_right(x, r2) ^ x >> shift;
}

/* Sums are modulo 2^32, by the standard. */
TG_WRAPS static void mix_block(uint32_t state[8], const uint8_t block[64]) {
    uint32_t w[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    const uint32_t *k = tg_sha256_constants;
    ROUNDS(FIRST_WORD);
    for (int i = 1; i < 4; i++) {
        k += 16;
        ROUNDS(NEXT_WORD);
    }
    const uint32_t mixed[8] = { a, b, c, d, e, f, g, h };
    for (int i = 0; i < 8; i++) state[i] += mixed[i];
}

void tg_sha256_mix(uint32_t state[8], const uint8_t *blocks, size_t n_blocks) {
    for (size_t i = 0; i < n_blocks; i++) mix_block(state, blocks + 64 * i);
}

static void mix(uint32_t state[8], const uint8_t *blocks, size_t n_blocks) {
    if (!tg_os_sha256(state, blocks, n_blocks)) tg_sha256_mix(state, blocks, n_blocks);
}

/* 5.3.3: the first 32 bits of the fractional parts of the square roots of the first 8 primes. */
void tg_sha256_init(tg_sha256 *sha) {
    *sha = (tg_sha256) { .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                    0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

/* Whole blocks are mixed from where they lie; only a beginning or an end is copied. */
void tg_sha256_update(tg_sha256 *sha, const void *bytes, size_t n_bytes) {
    const uint8_t *p = bytes;
    const size_t waiting = (size_t)(sha->total_bytes % 64);
    if (n_bytes == 0) return;
    sha->total_bytes += n_bytes;
    if (waiting) {
        const size_t n = n_bytes < 64 - waiting ? n_bytes : 64 - waiting;
        memcpy(sha->block + waiting, p, n);
        p += n;
        n_bytes -= n;
        if (waiting + n < 64) return;
        mix(sha->state, sha->block, 1);
    }
    mix(sha->state, p, n_bytes / 64);
    memcpy(sha->block, p + n_bytes / 64 * 64, n_bytes % 64);
}

/* 5.1.1. The length comes last, so that no two messages pad to the same blocks. */
void tg_sha256_final(tg_sha256 *sha, uint8_t digest[TG_SHA256_BYTES]) {
    const uint64_t bits = sha->total_bytes * 8;
    size_t n = (size_t)(sha->total_bytes % 64);
    sha->block[n++] = 0x80;
    if (n > 56) { /* no room for the length: one block more */
        memset(sha->block + n, 0, 64 - n);
        mix(sha->state, sha->block, 1);
        n = 0;
    }
    memset(sha->block + n, 0, 56 - n);
    put_big_endian_32(sha->block + 56, (uint32_t)(bits >> 32));
    put_big_endian_32(sha->block + 60, (uint32_t)bits);
    mix(sha->state, sha->block, 1);
    for (int i = 0; i < 8; i++) put_big_endian_32(digest + 4 * i, sha->state[i]);
}

void tg_sha256_of(const void *bytes, size_t n_bytes, uint8_t digest[TG_SHA256_BYTES]) {
    tg_sha256 sha;
    tg_sha256_init(&sha);
    tg_sha256_update(&sha, bytes, n_bytes);
    tg_sha256_final(&sha, digest);
}

void tg_sha256_hex(const uint8_t digest[TG_SHA256_BYTES], char text[2 * TG_SHA256_BYTES + 1]) {
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < TG_SHA256_BYTES; i++) {
        text[2 * i] = hex[digest[i] >> 4];
        text[2 * i + 1] = hex[digest[i] & 15];
    }
    text[2 * TG_SHA256_BYTES] = 0;
}
