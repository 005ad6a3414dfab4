/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sha256.h - SHA-256 (FIPS 180-4), fed in pieces: the footer of a file.
 */
#ifndef TG_BASE_SHA256_H
#define TG_BASE_SHA256_H

#include "base/libc.h"

#define TG_SHA256_BYTES 32

typedef struct tg_sha256 {
    uint32_t state[8];
    uint64_t total_bytes;
    uint8_t block[64]; /* total_bytes % 64 of it wait for more */
} tg_sha256;

void tg_sha256_init(tg_sha256 *sha);
void tg_sha256_update(tg_sha256 *sha, const void *bytes, size_t n_bytes);
/* The digest of all that was fed. sha must be initialised again before its next use. */
void tg_sha256_final(tg_sha256 *sha, uint8_t digest[TG_SHA256_BYTES]);

/* What it is all made of, in portable C: mixes n_blocks of 64 bytes into a state. */
void tg_sha256_mix(uint32_t state[8], const uint8_t *blocks, size_t n_blocks);
extern const uint32_t tg_sha256_constants[64];

/* In one call, and as 64 lower-case hexadecimal digits with a zero behind them. */
void tg_sha256_of(const void *bytes, size_t n_bytes, uint8_t digest[TG_SHA256_BYTES]);
void tg_sha256_hex(const uint8_t digest[TG_SHA256_BYTES], char text[2 * TG_SHA256_BYTES + 1]);

#endif
