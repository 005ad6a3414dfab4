/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc.h - CRC-32C (Castagnoli, RFC 3720 appendix B): the checksum of a chunk of a file.
 *
 * Polynomial 0x1EDC6F41, reflected, start and final value all ones. It finds every error of one
 * burst up to 32 bits. It is no defence against intent; base/codec/sha256.h is.
 */
#ifndef TG_BASE_CRC_H
#define TG_BASE_CRC_H

#include "base/libc.h"

/* Begin with crc 0 and feed the pieces in order: crc(crc(0, a), b) is the checksum of a then b.
 * The checksum of "123456789" is 0xE3069283. */
uint32_t tg_crc32c(uint32_t crc, const void *bytes, size_t n_bytes);
/* The same in portable C, whatever the processor has. */
uint32_t tg_crc32c_tables(uint32_t crc, const void *bytes, size_t n_bytes);

#endif
