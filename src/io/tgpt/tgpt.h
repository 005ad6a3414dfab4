/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgpt.h - writing .tinygpt files: v1 and v2 as the original lays them out, v3 as our own.
 *
 * v1, v2 (tgpt_v2.c). Little-endian, nothing aligned, no checksum:
 *
 *     OFFSET  SIZE  MEANING
 *     0       4     "TGPT"
 *     4       4     u32 version: 1 or 2
 *     8       4     u32 H, bytes of the header
 *     12      H     header: JSON, UTF-8
 *     12+H    4     i32 training step
 *     16+H    ...   body:  fp32   per tensor: weights f32, first moment f32, second moment f32
 *                          fp16   weights f16
 *                          int4   f16 scales of all tensors, then nibbles of all tensors
 *
 * v3 (tgpt_v3.c reads, tgpt_v3_writer.c writes). Sections on 64-byte boundaries that tile the file:
 *
 *     | header 64 | section table | META | TNSR | DATA ............ | CHNK | HASH 32 |
 *                                  JSON   table  tensors, 64-byte    CRC of  SHA-256 of
 *                                                aligned             chunks  all before
 *
 * docs/format-tgpt.md specifies all of it, field by field.
 *
 * Every writer goes through tg_save of base/os/os.h: path is the old whole file or the new whole
 * file at every instant, whatever fails.
 */
#ifndef TG_IO_TGPT_H
#define TG_IO_TGPT_H

#include "base/libc.h"
#include "io/run/file.h"
#include "io/run/meta.h"

/* -------------------------------------------------------------------------- where weights come
 * from */

typedef enum tg_part { TG_PART_WEIGHT, TG_PART_ADAM_M, TG_PART_ADAM_V, TG_PART_RAW } tg_part;

/*
 * Weights as the writers ask for them: n_elems elements of tensor number `tensor` (its place in the
 * manifest) from first_elem on, in the file's [in, out] order, to out [n_elems]. Asked in pieces of
 * up to 16384 elements, in file order; for int4 every weight is asked for twice.
 */
typedef struct tg_weights {
    tg_status (*read)(void *user, size_t tensor, tg_part part, uint64_t first_elem, size_t n_elems,
                      float *out);
    void *user;
    bool has_moments; /* false: only TG_PART_WEIGHT is ever asked for */
    bool has_raw;     /* with moments, in v3 alone: TG_PART_RAW is asked for */
    /* Of another family than TG_META_OWN, v3 alone: what tensors there are. Borrowed. */
    const tg_manifest *manifest;
    /* v3 alone: the section KEYS (load/keys.h) [keys_bytes], borrowed; NULL: none. */
    const void *keys;
    size_t keys_bytes;
} tg_weights;

/* A file that is being written, in slices: see io/run/saving.h. The _saving calls below take what
 * their _save calls take; weights->user and path's folder must stay until tg_saving_free. */
typedef struct tg_saving tg_saving;

/* Writes on until the deadline (of tg_time_ms; 0: none). TG_PENDING: call again. TG_OK: the file is
 * there. After an error, or if it is freed before, path is untouched. */
tg_status tg_saving_go_on(tg_saving *s, double deadline_ms);
void tg_saving_free(tg_saving *s); /* NULL is fine */
/* All the rest at once, and free. */
tg_status tg_saving_finish(tg_saving *s);

/* ------------------------------------------------------------------------------------------- v1,
 * v2 */

/*
 * Writes one of the four v1 and v2 kinds: config (checked), step (0..2^31-1), and what the header
 * has a place for of meta (history of at most 512 points, six training options). Without moments
 * the fp32 kinds hold zeros in their place. The same input gives the same bytes: no date is
 * written. Errors: TG_E_RANGE (step; a weight that is not finite or too large for f16: names tensor
 * and element), TG_E_IO, TG_E_MEMORY, what read returned. path is untouched then.
 */
tg_status tg_tgpt2_save(tg_ctx *ctx, const char *path, tg_file_kind kind,
                        const tg_model_config *config, int64_t step, const tg_meta *meta,
                        const tg_weights *weights, bool keep_prev);
tg_status tg_tgpt2_saving(tg_ctx *ctx, const char *path, tg_file_kind kind,
                          const tg_model_config *config, int64_t step, const tg_meta *meta,
                          const tg_weights *weights, bool keep_prev, tg_saving **out);

/* -----------------------------------------------------------------------------------------------
 * v3 */

/*
 * A whole v3 file in one call: all weights as f32, then, if weights->has_moments, all first and all
 * second moments, and if has_raw, all of what is trained. meta_json is an object with at least
 * "family", "config" and "step", such as tg_meta_begin_v3 begins; it is checked as a reader would,
 * before anything is written.
 */
tg_status tg_tgpt3_save(tg_ctx *ctx, const char *path, const char *meta_json, size_t meta_bytes,
                        const tg_weights *weights, bool keep_prev);
tg_status tg_tgpt3_saving(tg_ctx *ctx, const char *path, const char *meta_json, size_t meta_bytes,
                          const tg_weights *weights, bool keep_prev, tg_saving **out);

/*
 * The same by hand, for other types or orders of tensors:
 *
 *     tg_tgpt3_begin(ctx, path, json, n, &w);
 *     for each tensor: tg_tgpt3_declare(w, name, TG_FILE_F32, 2, dims);
 *     for each tensor, in the same order: tg_tgpt3_write(w, bytes, n_bytes);   in any pieces
 *     tg_tgpt3_commit(w, keep_prev, NULL);
 *
 * The first error sticks: later calls return it, and commit then leaves path as it was, so calls
 * may be made in a row and commit's answer alone be looked at. Tensors that the configuration in
 * the JSON does not ask for, or not in that shape, are refused with the message that a reader would
 * give; too few or too many bytes are TG_E_INTERNAL.
 */
typedef struct tg_tgpt3_writer tg_tgpt3_writer;

/* path is touched only by commit; the temporary file appears with the first write. */
tg_status tg_tgpt3_begin(tg_ctx *ctx, const char *path, const char *meta_json, size_t meta_bytes,
                         tg_tgpt3_writer **out);
tg_status tg_tgpt3_declare(tg_tgpt3_writer *w, const char *name, tg_file_dtype dtype,
                           uint32_t n_dims, const uint64_t *dims);
/* A model of another family (tgpt_v3_gguf.c): the values are borrowed until the file is written,
 * and nothing is held against them; code is the element type's, bytes those of the tensor. */
tg_status tg_tgpt3_begin_model(tg_ctx *ctx, const char *path, const char *meta_json,
                               size_t meta_bytes, const tg_buf *values, tg_tgpt3_writer **out);
tg_status tg_tgpt3_declare_model(tg_tgpt3_writer *w, const char *name, uint32_t code,
                                 uint32_t n_dims, const uint64_t *dims, uint64_t bytes);
/* Bytes as the type stores them; int4: all f16 scales of the tensor, then all nibbles. */
tg_status tg_tgpt3_write(tg_tgpt3_writer *w, const void *bytes, size_t n_bytes);
/* Both free w. keep_prev: the file that path was becomes path.prev. n_bytes: out, how long the new
 * one is; may be NULL. */
tg_status tg_tgpt3_commit(tg_tgpt3_writer *w, bool keep_prev, uint64_t *n_bytes);
void tg_tgpt3_abort(tg_tgpt3_writer *w); /* NULL is fine */

#endif
