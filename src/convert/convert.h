/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - a model of any kind as a GGUF file or a folder of safetensors, in another type, and
 * what that cost.
 */
#ifndef TG_CONVERT_CONVERT_H
#define TG_CONVERT_CONVERT_H

#include "base/parts.h"
#include "convert/own_gguf.h"
#include "model/net.h"
#include "runtime/runtime.h"
#include "tok/tok.h"

/* tg_model_convert_calibrated of tinygpt.h; arguments are checked. calibration may be NULL. */
tg_status tg_convert(tg_context *ctx, const char *in, const char *out, tg_file_kind kind,
                     tg_weight_type type, const tg_calibration *calibration,
                     tg_convert_report *report);

/* convert_compare.c: are two files of any kinds the same model? Sizes, then tensors by their names
 * in GGUF, by the bits of their f32 values in the order of layout.h; of a run its weights alone,
 * and neither types nor metadata. write, which may be NULL, gets one line, with its end, that names
 * the first difference or says that all is equal. */
tg_status tg_convert_compare(tg_ctx *ctx, const char *path_a, const char *path_b, bool *equal,
                             tg_text_fn write, void *user);

/* ------------------------------------------------------------- for the files of this folder alone
 */

/* Of opening and of reading texts, between looks at whether the command was cancelled. */
#define TG_CONVERT_SLICE_MS 50.0

typedef struct tg_conversion {
    tg_context *ctx;
    const char *in, *out; /* out: as it was given, but for a folder without /model.safetensors */
    const char *temp;     /* the folder that files are written into */
    tg_file_kind kind;
    bool keep; /* what a file replaces stays as .prev */
    tg_dtype type;
    bool mixed; /* some matrices are of a finer type */
    uint32_t file_type;
    tg_convert_report *report;
    tg_gguf g;      /* the source */
    tg_own_run run; /* that is converted */
    tg_tensors table;
    tg_arena arena;
    tg_tok *tok;           /* of tokenizer.json; else NULL */
    tg_gguf_value *values; /* as they are written */
    size_t n_values;
    tg_gguf_tensor *tensors;           /* [g.n_tensors] as they are written */
    bool *finer;                       /* [g.n_tensors] whose rows wanted a finer type */
    const tg_calibration *calibration; /* NULL: all columns matter alike, and what follows is 0 */
    const float **importance; /* [g.n_tensors] of [experts][columns], as GGUF has these; or NULL */
    size_t n_importance;      /* tensors that have one */
    uint64_t chunks;          /* windows of text that it was measured on */
} tg_conversion;

/* gguf_out.c: the file as `out` names it, whole when it returns. */
tg_status tg_convert_write_gguf(tg_conversion *c);
tg_status tg_convert_write_v3(tg_conversion *c);

/* NULL: a tensor that is no matrix of the model's, such as the factors of frequencies. */
const tg_tensor *tg_convert_use(const tg_conversion *c, const tg_gguf_tensor *t);

/* convert_hf.c: model.safetensors, config.json, and the tokenizer as transformers wants it, of a
 * third-party model, and of our own family. Whole, checked, and under its name when it returns. */
tg_status tg_convert_write_hf(tg_conversion *c);
tg_status tg_convert_write_own_hf(tg_conversion *c);

/* convert_importance.c: fills c->importance, once the source is open; and the report's number of
 * tensors whose blocks it was used for, once they are written. */
tg_status tg_convert_measure(tg_conversion *c, const tg_calibration *from);
void tg_convert_count_weighed(const tg_conversion *c);

/* convert_check.c: a model of any kind, opened whole; TG_STOPPED where the command is cancelled. */
tg_status tg_convert_open(tg_context *ctx, const char *path, tg_model **out);

/* convert_check.c: opens both files as models and asks them the same; the report says how their
 * answers differ. */
tg_status tg_convert_check(tg_context *ctx, const char *in, const char *out, tg_file_kind kind,
                           tg_convert_report *report);

/* --------------------------------------------------------------------- a trained model, in slices
 */

/* A .tinygpt file as GGUF, its weights as floats, as they are. A zero-initialised struct holds the
 * place; in and out are borrowed until deinit, which may come at any time. TG_PENDING until the
 * file has its name. E_ARG, and nothing is written: out is what was read, or a file of another
 * kind. */
typedef struct tg_exporting {
    tg_conversion conversion;
    tg_convert_report report;
    tg_save *save;   /* NULL: it is not begun, or committed */
    tg_block buffer; /* of a piece of a tensor */
    size_t next;     /* the tensor that is written next */
    bool begun;
} tg_exporting;
tg_status tg_exporting_go_on(tg_exporting *e, tg_context *ctx, const char *in, const char *out,
                             double deadline_ms);
void tg_exporting_deinit(tg_exporting *e);

#endif
