/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os_posix_hash.c - SHA-256 and CRC-32C by the processor's own instructions, where it has them.
 *
 * x86 only: the SHA extensions do four rounds in two instructions, SSE4.2 eight bytes of CRC in
 * one. Whoever has them is asked once a process; the answer is kept, since a virtual machine may
 * take 50 us for each question. It is the same for all threads, so it does not matter who writes
 * it.
 */
#include "base/codec/sha256.h"
#include "base/os/os.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>

enum { ASKED = 1, HAS_SHA = 2, HAS_CRC = 4 };

static int instructions(void) {
    static atomic_int known;
    int have = atomic_load_explicit(&known, memory_order_relaxed);
    if (have) return have;
    unsigned a, b, c, d, b7 = 0;
    have = ASKED;
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        unsigned c7;
        if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) b7 = 0;
        if (c & bit_SSE4_2) have |= HAS_CRC;
        if ((c & bit_SSE4_1) && (c & bit_SSSE3) && (b7 & bit_SHA)) have |= HAS_SHA;
    }
    atomic_store_explicit(&known, have, memory_order_relaxed);
    return have;
}

/*
 * The state is in two registers, and w in four, the newest words replacing the oldest:
 *
 *     lane      3 2 1 0                                  m[0]  w0  w1  w2  w3, then w16 ..
 *     abef      a b e f     what two rounds write        m[1]  w4  w5  w6  w7
 *     cdgh      c d g h     which then is the other      m[2], m[3]
 */
__attribute__((target("sha,sse4.1"))) static void mix(uint32_t state[8], const uint8_t *blocks,
                                                      size_t n_blocks) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    uint32_t *s = state;
    __m128i abef = _mm_set_epi32((int)s[0], (int)s[1], (int)s[4], (int)s[5]);
    __m128i cdgh = _mm_set_epi32((int)s[2], (int)s[3], (int)s[6], (int)s[7]);
    for (; n_blocks > 0; n_blocks--, blocks += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i m[4];
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i *w = &m[i % 4];
            const __m128i next = m[(i + 1) % 4], back2 = m[(i + 2) % 4], back1 = m[(i + 3) % 4];
            if (i < 4) {
                *w = _mm_loadu_si128((const __m128i *)(const void *)(blocks + 16 * i));
                *w = _mm_shuffle_epi8(*w, swap);
            } else {
                const __m128i w7 = _mm_alignr_epi8(back1, back2, 4); /* seven words back */
                *w = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*w, next), w7), back1);
            }
            const __m128i *k = (const __m128i *)(const void *)(tg_sha256_constants + 4 * i);
            const __m128i wk = _mm_add_epi32(*w, _mm_loadu_si128(k));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_unpackhi_epi64(wk, wk));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    uint32_t out[8];
    _mm_storeu_si128((__m128i *)(void *)out, abef);
    _mm_storeu_si128((__m128i *)(void *)(out + 4), cdgh);
    const uint32_t after[8] = { out[3], out[2], out[7], out[6], out[1], out[0], out[5], out[4] };
    memcpy(state, after, sizeof after);
}

bool tg_os_sha256(uint32_t state[8], const uint8_t *blocks, size_t n_blocks) {
    const bool has = instructions() & HAS_SHA;
    if (has) mix(state, blocks, n_blocks);
    return has;
}

__attribute__((target("sse4.2"))) static uint32_t crc(uint32_t so_far, const unsigned char *p,
                                                      size_t n_bytes) {
    uint64_t c = ~so_far;
    for (; n_bytes >= 8; n_bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        c = _mm_crc32_u64(c, word);
    }
    uint32_t last = (uint32_t)c;
    for (; n_bytes > 0; n_bytes--, p++) last = _mm_crc32_u8(last, *p);
    return ~last;
}

bool tg_os_crc32c(uint32_t *so_far, const void *bytes, size_t n_bytes) {
    const bool has = instructions() & HAS_CRC;
    if (has) *so_far = crc(*so_far, bytes, n_bytes);
    return has;
}

#else

bool tg_os_sha256(uint32_t state[8], const uint8_t *blocks, size_t n_blocks) {
    (void)state;
    (void)blocks;
    (void)n_blocks;
    return false;
}

bool tg_os_crc32c(uint32_t *so_far, const void *bytes, size_t n_bytes) {
    (void)so_far;
    (void)bytes;
    (void)n_bytes;
    return false;
}

#endif
