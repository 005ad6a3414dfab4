/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_head.h - the table of tensors of a .safetensors file (safetensors.h draws the file).
 */
#ifndef TG_IO_SAFETENSORS_HEAD_H
#define TG_IO_SAFETENSORS_HEAD_H

#include "base/codec/json.h"
#include "io/reader.h"

#define TG_SAFETENSORS_HEADER_MAX 100000000u

enum { TG_ST_DTYPES = 15, TG_ST_MAX_DIMS = 4 };

typedef struct tg_st_dtype {
    const char *name;
    uint32_t bytes;
} tg_st_dtype;
extern const tg_st_dtype tg_st_dtypes[TG_ST_DTYPES];

/* A tensor as the header has it: row by row, the last dimension the fastest. */
typedef struct tg_st_tensor {
    const char *name;
    size_t dtype; /* row of tg_st_dtypes */
    uint32_t n_dims;
    uint64_t dim[TG_ST_MAX_DIMS]; /* of tensors with more dimensions, the first ones; else 1 */
    uint64_t begin, end;          /* in the data */
} tg_st_tensor;

typedef struct tg_st_head {
    tg_ctx *ctx;
    const char *path;
    tg_arena *arena;
    const tg_json *root;
    uint64_t data_offset, data_bytes; /* in the file */
    tg_st_tensor *list;               /* [n], in the order of the header, without __metadata__ */
    size_t n;
} tg_st_head;

/* Reads from r's position on, and leaves it at the data. Everything lies in the arena.
 * TG_E_FORMAT; TG_E_UNSUPPORTED: a dtype that is not known. */
tg_status tg_st_read(tg_reader *r, tg_arena *arena, tg_st_head *out);

/* Records "path: header: name: field: want .., have ..". */
tg_status tg_st_fail(const tg_st_head *head, tg_status code, const char *name, const char *field,
                     const char *want, const tg_json *have);

#endif
