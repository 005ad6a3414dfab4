/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt_v3.h - the layout of a v3 file in numbers, for its reader and its writer alone.
 *
 * docs/format-tgpt.md explains; this is what the two sides must agree on.
 *
 *     OFFSET  SIZE  MEANING (header, 64 bytes, all numbers little-endian)
 *     0       8     magic "TGPT3\r\n\x1a"
 *     8       4     u32 version of the container: 3
 *     12      4     u32 H, bytes of header and section table: 64 + 32 * sections
 *     16      8     u64 required features: a reader refuses bits that it does not know
 *     24      8     u64 optional features: a reader ignores bits that it does not know
 *     32      8     u64 bytes of the whole file
 *     40      4     u32 sections
 *     44      4     u32 oldest tinygpt that can read this: major << 16 | minor << 8 | patch
 *     48      4     u32 bytes of a chunk: a power of two, 4 KiB .. 16 MiB
 *     52      8     zero
 *     60      4     u32 CRC-32C of bytes 0..59 and 64..H-1
 *     64      ...   section table: 32 bytes each
 *
 *     OFFSET  SIZE  MEANING (entry of the section table)
 *     0       4     id, four letters
 *     4       4     u32 flags: bit 0 = a reader that does not know this id refuses the file
 *     8       8     u64 offset, a multiple of 64
 *     16      8     u64 bytes
 *     24      8     zero
 *
 * Sections lie in the order of the table and tile the file: each begins at the first multiple of 64
 * behind the one before, the gap is zero, and the last one, HASH, ends the file. Every section but
 * DATA and HASH ends with the CRC-32C of its other bytes.
 */
#ifndef TG_IO_TGPT_V3_H
#define TG_IO_TGPT_V3_H

#include "io/run/file.h"

#define TGPT3_MAGIC        "TGPT3\r\n\x1a"
#define TGPT3_MAGIC_BYTES  8u
#define TGPT3_VERSION      3u
#define TGPT3_HEAD_BYTES   64u
#define TGPT3_HEAD_CRC     60u /* offset of the CRC in the header */
#define TGPT3_ENTRY_BYTES  32u
#define TGPT3_SECTIONS_MAX 64u
#define TGPT3_ALIGN        64u
#define TGPT3_CRC_BYTES    4u
#define TGPT3_CHUNK_BYTES  (UINT32_C(1) << 20)
#define TGPT3_CHUNK_MIN    (UINT32_C(4) << 10)
#define TGPT3_CHUNK_MAX    (UINT32_C(16) << 20)
#define TGPT3_NEEDS        (UINT32_C(0) << 16 | UINT32_C(1) << 8 | UINT32_C(0))
#define TGPT3_NEEDS_KEYS   (UINT32_C(0) << 16 | UINT32_C(2) << 8 | UINT32_C(0))
#define TGPT3_MUST_KNOW    UINT32_C(1) /* flag of a section */
#define TGPT3_TENSORS_MAX  UINT32_C(65536)
#define TGPT3_NAME_MAX     127u /* bytes of a tensor's name */
#define TGPT3_TENSOR_BYTES 20u  /* of a table entry, without its name and dimensions */

/* Ids as the little-endian number that their four letters are. */
#define TGPT3_ID(a, b, c, d)                                                                       \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define TGPT3_META TGPT3_ID('M', 'E', 'T', 'A') /* JSON */
#define TGPT3_KVAL TGPT3_ID('K', 'V', 'A', 'L') /* metadata of a model of another family */
#define TGPT3_KEYS TGPT3_ID('K', 'E', 'Y', 'S') /* metadata that a run keeps of its model */
#define TGPT3_TNSR TGPT3_ID('T', 'N', 'S', 'R') /* table of tensors */
#define TGPT3_DATA TGPT3_ID('D', 'A', 'T', 'A') /* tensors */
#define TGPT3_CHNK TGPT3_ID('C', 'H', 'N', 'K') /* u32 CRC-32C of each chunk of DATA */
#define TGPT3_HASH TGPT3_ID('H', 'A', 'S', 'H') /* SHA-256 of all bytes before it */

/*
 *     OFFSET  SIZE     MEANING (entry of TNSR, behind a u32 number of tensors)
 *     0       2        u16 bytes of the name, 1..127
 *     2       1        u8 element type: 1 f32, 2 f16, 3 bf16, 4 int4; of other families 128 + the
 *                      number that GGUF gives a type (dtype/blocks.h)
 *     3       1        u8 number of dimensions, 0..4
 *     4       8        u64 offset in DATA, a multiple of 64
 *     12      8        u64 bytes
 *     20      8 * n    u64 dimensions, slowest first: the shape of the bytes
 *     ...     ...      name, UTF-8, no control characters
 */

#define TGPT3_BLOCKS 128u

/* ------------------------------------------------------------------ for tgpt_v3*.c, and its kin */

typedef struct tgpt3_section {
    uint64_t offset, bytes; /* offset 0: the file has none */
} tgpt3_section;

/* What the head of a file said. */
typedef struct tgpt3_head {
    uint32_t header_bytes, n_sections, chunk_bytes;
    tgpt3_section meta, kval, keys, tnsr, data, chnk, hash;
} tgpt3_head;

/* Bytes of a tensor of an element type of a file, by its elements and dimensions; false: there is
 * no such type, or its blocks do not divide a row. */
typedef bool (*tgpt3_bytes_fn)(uint32_t code, const tg_file_tensor *t, uint64_t *bytes);

/* The steps of opening, in the order of the list in tgpt_v3.c; ctx, path, reader and arena of the
 * file are set. */
tg_status tg_tgpt3_head(tg_file *file, tgpt3_head *h);
tg_status tg_tgpt3_section(tg_file *file, const char *name, tgpt3_section s, tg_reader *out);
tg_status tg_tgpt3_table(tg_file *file, const tgpt3_head *h, tgpt3_bytes_fn bytes_of,
                         tg_file_tensor **table, uint32_t *n);
tg_status tg_tgpt3_chunks(tg_file *file, const tgpt3_head *h);

/* The first multiple of 64 that is not below x; x is at most the size of a file. */
static inline uint64_t tgpt3_align(uint64_t x) {
    return (x + (TGPT3_ALIGN - 1)) & ~(uint64_t)(TGPT3_ALIGN - 1);
}

#endif
