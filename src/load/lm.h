/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lm.h - a model out of third-party files (GGUF, safetensors): its weights packed into one block,
 * its tokenizer, its plans' states. A tg_model has one of these in the place of a layout and flat
 * weights of its own.
 */
#ifndef TG_LOAD_LM_H
#define TG_LOAD_LM_H

#include "base/os.h"
#include "model/net.h"
#include "runtime/runtime.h"
#include "tok/tok.h"

/* A vector that no tensor of the file is: frequencies, biases side by side. */
typedef struct tg_lm_extra {
    char name[96];
    float *data;
    size_t bytes;
} tg_lm_extra;

/* A file of which tensors are used or packed where they lie. */
typedef struct tg_file_map {
    tg_os_map map;
    const tg_os_file *file;
    bool stays; /* some tensors are not packed */
} tg_file_map;

typedef struct tg_lm_model {
    tg_gguf file;
    tg_arena arena;
    tg_tensors lm;
    tg_block block;      /* the weights, or */
    tg_os_map map;       /* the file that they were kept in (pack_cache.h) */
    const char *weights; /* [lm.bytes] of either */
    tg_file_map *maps;   /* [n_maps] (file_maps.c) */
    size_t n_maps;
    const uint8_t **in_file; /* [n_tensors] where the maps have them; NULL: they do not */
    tg_lm_extra *extras;
    size_t n_extras;
    tg_tok *tok;
    double open_ms, tok_ms, pack_ms; /* what the head took; the tokenizer, of one worker; reading
                                        and packing, or mapping and checking, of all but for that */
    struct tg_lm_packer *packer;     /* how far the packing is, NULL: not begun */
} tg_lm_model;

/* Is path a third-party model: a GGUF file, a folder of safetensors or a zip file of one? False
 * where there is no file; an error where there is one that cannot be read. folder: what is to be
 * opened, which is path, but for a model.safetensors the folder that it is in. */
#define TG_LM_PATH_BYTES 4096
tg_status tg_lm_takes(tg_ctx *ctx, const char *path, char folder[TG_LM_PATH_BYTES], bool *takes);

/* In slices: *out is NULL for the first of them, and the caller's to unload whatever comes back.
 * TG_PENDING: there is more to do; never, if deadline_ms (on tg_time_ms's clock) is 0. */
tg_status tg_lm_load(tg_context *ctx, const char *path, double deadline_ms, tg_lm_model **out);
void tg_lm_unload(tg_context *ctx, tg_lm_model *m);

/* The type that most bytes of the weights have, by its name. */
const char *tg_lm_types(const tg_lm_model *m);

/* tg_file_check of such a model: that its head can be used, all checksums of a .tinygpt or a zip
 * file, and that every weight is a finite number. */
tg_status tg_lm_check(tg_context *ctx, const char *path);

/* Not in WebAssembly. */
tg_status tg_lm_has_checksums(tg_context *ctx, const char *path, bool *has);

/* tg_file_info of such a model. */
tg_status tg_lm_info(tg_context *ctx, const char *path, bool json, tg_text_fn write, void *user);

/* TG_E_IO if the file that the weights are mapped from has shrunk: what was computed is worthless.
 */
tg_status tg_lm_whole(tg_context *ctx, const tg_lm_model *m);

/* file_maps.c: can tensors stay in the file? Not in WebAssembly. */
bool tg_file_maps_wanted(void);
/* Maps the files of tensors that stay. What it took goes with tg_file_maps_end in any case. */
tg_status tg_file_maps_begin(tg_context *ctx, tg_lm_model *m);
void tg_file_maps_end(tg_context *ctx, tg_lm_model *m);
/* Maps, where that can be done, the files of all tensors that are to be packed; drops what has come
 * into memory; and lets them go. */
void tg_file_maps_begin_packing(tg_context *ctx, tg_lm_model *m);
void tg_file_maps_drop(const tg_lm_model *m);
void tg_file_maps_end_packing(tg_lm_model *m);
/* Has one of the files shrunk? */
bool tg_file_maps_broken(const tg_lm_model *m);

/* Gives every weight of a plan its memory. */
tg_status tg_lm_bind(const tg_lm_model *m, tg_plan *plan);

#endif
