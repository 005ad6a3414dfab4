/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc.c - CRC-32C, sixteen bytes a step, from tables that each call works out.
 *
 * The checksum is a remainder of polynomials over GF(2), so it is linear: what a byte contributes
 * is the exclusive or of what its bits contribute. A step takes 16 bytes at once; the byte with s
 * bytes behind it in the step is looked up in slice s, which says what it has become once those s
 * bytes have passed. 8 constants define a slice:
 *
 *     bit[s][i] = remainder of the byte 1 << i followed by s zero bytes
 *
 *     byte     0    1    2   ...  14   15
 *     slice   15   14   13   ...   1    0       crc = exclusive or of all 16 look-ups
 *
 * The 4 bytes of the checksum so far go into bytes 0..3. The tables are made on the stack, 512
 * words in a fraction of a microsecond: so nothing is shared between threads, and a module that is
 * sent over a network carries the constants alone, as tables of exclusive ors do not compress. What
 * is too short for that goes bit by bit. A processor that has an instruction for it does without
 * all this (os_*.c).
 */
#include "base/codec/crc.h"

#include "base/os/os.h"

#define SLICES 16

/* The constants: polynomial 0x1EDC6F41, bit-reversed. One row a slice. */
#define SLICE_LIST(ROW)                                                                            \
    ROW(0, 0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,     \
        0x82f63b78)                                                                                \
    ROW(1, 0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,     \
        0xfbc3faf9)                                                                                \
    ROW(2, 0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,     \
        0x8b277743)                                                                                \
    ROW(3, 0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,     \
        0x52a0c93f)                                                                                \
    ROW(4, 0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,     \
        0x6ea2d55c)                                                                                \
    ROW(5, 0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,     \
        0x1c08b7d6)                                                                                \
    ROW(6, 0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,     \
        0xf56e0ef4)                                                                                \
    ROW(7, 0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,     \
        0x34019664)                                                                                \
    ROW(8, 0xf43ed648, 0xed91da61, 0xdecfc233, 0xb873f297, 0x750b93df, 0xea1727be, 0xd1c2398d,     \
        0xa66805eb)                                                                                \
    ROW(9, 0xcb567ba5, 0x934081bb, 0x236d7587, 0x46daeb0e, 0x8db5d61c, 0x1e87dac9, 0x3d0fb592,     \
        0x7a1f6b24)                                                                                \
    ROW(10, 0x9771f7c1, 0x2b0f9973, 0x561f32e6, 0xac3e65cc, 0x5d90bd69, 0xbb217ad2, 0x73ae8355,    \
        0xe75d06aa)                                                                                \
    ROW(11, 0x3171d430, 0x62e3a860, 0xc5c750c0, 0x8e62d771, 0x1929d813, 0x3253b026, 0x64a7604c,    \
        0xc94ec098)                                                                                \
    ROW(12, 0x30d23865, 0x61a470ca, 0xc348e194, 0x837db5d9, 0x03171d43, 0x062e3a86, 0x0c5c750c,    \
        0x18b8ea18)                                                                                \
    ROW(13, 0x54075546, 0xa80eaa8c, 0x55f123e9, 0xabe247d2, 0x5228f955, 0xa451f2aa, 0x4d4f93a5,    \
        0x9a9f274a)                                                                                \
    ROW(14, 0x678efd01, 0xcf1dfa02, 0x9bd782f5, 0x3243731b, 0x6486e636, 0xc90dcc6c, 0x97f7ee29,    \
        0x2a03aaa3)                                                                                \
    ROW(15, 0xf20c0dfe, 0xe1f46d0d, 0xc604aceb, 0x89e52f27, 0x162628bf, 0x2c4c517e, 0x5898a2fc,    \
        0xb13145f8)

#define SLICE(s, ...) [s] = { __VA_ARGS__ },
static const uint32_t bit[SLICES][8] = { SLICE_LIST(SLICE) };

/* By the lower and by the upper four bits of a byte: 2 KiB in all, where whole bytes would need 16,
 * so that they stay in the first cache beside the data. */
typedef struct tables {
    uint32_t slice[SLICES][2][16];
} tables;

/* The entries that have bit i and no higher one are those before them, with what i contributes. */
static void make_tables(tables *t) {
    for (size_t s = 0; s < SLICES; s++) {
        for (size_t i = 0; i < 8; i++) {
            uint32_t *half = t->slice[s][i / 4];
            const size_t n = (size_t)1 << i % 4;
            half[0] = 0;
            for (size_t k = 0; k < n; k++) half[n + k] = half[k] ^ bit[s][i];
        }
    }
}

static uint32_t one(const tables *t, uint32_t byte, unsigned behind) {
    return t->slice[behind][0][byte & 15] ^ t->slice[behind][1][byte >> 4];
}

/* By bytes: no alignment is needed, and compilers make one load of it where that is right. */
static uint32_t little_endian_32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* What four bytes contribute; the first of them has `behind` + 3 bytes behind it in the step. */
static uint32_t four(const tables *t, uint32_t word, unsigned behind) {
    return one(t, word & 0xff, behind + 3) ^ one(t, word >> 8 & 0xff, behind + 2) ^
           one(t, word >> 16 & 0xff, behind + 1) ^ one(t, word >> 24, behind);
}

/* The byte's bits one by one: a bit that is set contributes its constant. */
static uint32_t by_bits(uint32_t crc, const unsigned char *p, size_t n_bytes) {
    for (; n_bytes > 0; n_bytes--, p++) {
        const uint32_t byte = (crc ^ *p) & 0xff;
        crc >>= 8;
        for (size_t i = 0; i < 8; i++) crc ^= bit[0][i] & (0 - (byte >> i & 1));
    }
    return crc;
}

/* The look-ups of a step do not wait for each other, only for the checksum before it: that, and not
 * the number of look-ups, is what 16 bytes at once gain over one at a time. */
uint32_t tg_crc32c_tables(uint32_t crc, const void *bytes, size_t n_bytes) {
    enum { FEW_BYTES = 64 };
    const unsigned char *p = bytes;
    crc = ~crc;
    if (n_bytes >= FEW_BYTES) {
        tables t;
        make_tables(&t);
        for (; n_bytes >= SLICES; n_bytes -= SLICES, p += SLICES) {
            crc = four(&t, little_endian_32(p) ^ crc, 12) ^ four(&t, little_endian_32(p + 4), 8) ^
                  four(&t, little_endian_32(p + 8), 4) ^ four(&t, little_endian_32(p + 12), 0);
        }
    }
    return ~by_bits(crc, p, n_bytes);
}

uint32_t tg_crc32c(uint32_t crc, const void *bytes, size_t n_bytes) {
    return tg_os_crc32c(&crc, bytes, n_bytes) ? crc : tg_crc32c_tables(crc, bytes, n_bytes);
}
