/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.h - the pieces of JSON that the headers of v1, v2 and v3 share: written and read here alone.
 *
 * The keys are the original's, so one reader serves all versions:
 *
 *     "config":      {"layers":L,"dModel":C,"ctx":T,"heads":H,"dMlp":M,"vocabSize":V}
 *     "lossHistory": [{"step":50,"train":3.1,"val":null}, ...]
 *     "finalLoss":   {"step":200,"train":2.4,"val":2.5}
 *     "bestVal":     {"loss":2.5,"step":200}          or null
 *     "train":       {"steps":...,"batch":...,...}    v3: every field of tg_train_options
 *
 * A v2 file keeps six of the training options inside "config" (batchSize, learningRate, gradClip,
 * maxSteps, evalEvery, seed); they are read from there when there is no "train".
 *
 * tg_file_open has checked "config" and "step" of what it opened. The rest is looked at only by
 * whoever asks here, so a model can be used though its history makes no sense.
 */
#ifndef TG_IO_META_H
#define TG_IO_META_H

#include "base/codec/json.h"
#include "base/libc.h"
#include "base/mem.h"
#include "base/str.h"
#include "io/run/file.h"

/* What a file says about how its weights came about. */
typedef struct tg_meta {
    tg_train_options train;          /* only fields in train_known mean anything, others are 0 */
    uint32_t train_known;            /* bit k: field k of the table in meta.c */
    const tg_history_point *history; /* [n_history]; unknown losses are NaN */
    size_t n_history;
    tg_history_point final; /* step -1: unknown */
    int64_t best_step;      /* -1: unknown */
    double best_val_loss;   /* NaN: unknown */
    bool vocabulary;        /* for writers: tokens are those of the section KEYS, not bytes */
} tg_meta;

#define TG_TRAIN_ALL UINT32_MAX

/* Nothing known. */
void tg_meta_init(tg_meta *meta);

/*
 * Reads it from the header of an open file; arrays lie in the file's arena. In v1 and v2, whose
 * headers come from many writers, what cannot be understood counts as absent; in v3 it is
 * TG_E_FORMAT.
 */
tg_status tg_meta_read(tg_file *file, tg_meta *out);

/* ---------------------------------------------------------------------------------- for writers */

/* The family whose tensors io/run/manifest.h lists; of others the file itself does. */
#define TG_META_OWN "tinygpt"
bool tg_meta_is_own(const tg_model_config *config);

/* The members one by one; each of these begins with its key. */
void tg_meta_put_config(tg_json_writer *w, const tg_model_config *config); /* "config": {...} */
/* "train": {...}, with the fields whose bits are set. */
void tg_meta_put_train(tg_json_writer *w, const tg_train_options *train, uint32_t known);
/* Of "lossHistory", "finalLoss" and "bestVal" those that are known. At most max_points points:
 * every k-th, counted back from the last one. 0: all. */
void tg_meta_put_history(tg_json_writer *w, const tg_meta *meta, size_t max_points);

/* The JSON of a v3 file: an object with family, config, tokenizer, step, train and history, then
 * what the caller has to add (training/ puts "text" and "run" there), then tool and the object's
 * end. docs/format-tgpt.md lists the keys. */
void tg_meta_begin_v3(tg_json_writer *w, const tg_model_config *config, int64_t step,
                      const tg_meta *meta);
void tg_meta_end_v3(tg_json_writer *w);

/* Of the six options that "config" of v1 and v2 has a place for, those that are known. */
void tg_meta_put_v2_options(tg_json_writer *w, const tg_meta *meta);

/* ---------------------------------------------------------------------------------- for readers */

/* "config" of a v1, v2 or v3 header; checked as in manifest.h. where begins the messages. */
tg_status tg_meta_get_config(tg_ctx *ctx, const char *where, const tg_json *header,
                             tg_model_config *out);
/* What every v3 header has: "family", "config", "step". The configuration of another family than
 * TG_META_OWN has its name, which lives as long as the header, and is not checked. */
tg_status tg_meta_get_v3(tg_ctx *ctx, const char *where, const tg_json *header,
                         tg_model_config *config, int64_t *step);
/* A "train" object. Missing keys leave *out as it is, unknown ones are ignored; values are not
 * compared with the ranges that training has. known (may be NULL): which fields were there. */
tg_status tg_meta_get_train(tg_ctx *ctx, const tg_json *train, tg_train_options *out,
                            uint32_t *known);

/* The key of the first size that differs, NULL if none does, with its two values; families are not
 * looked at. */
const char *tg_meta_config_difference(const tg_model_config *a, const tg_model_config *b,
                                      char value_a[TG_NUMBER_BYTES], char value_b[TG_NUMBER_BYTES]);

/* "0.25", or "unknown" for NaN. Returns out. */
const char *tg_meta_loss_text(double loss, char out[TG_NUMBER_BYTES]);

/* Copies the options that the file knows over those in *out. */
void tg_meta_take_train(const tg_meta *meta, tg_train_options *out);

/* The key of the first field of `known` that differs, NULL if none does; its two values go to the
 * buffers as JSON. */
const char *tg_meta_train_difference(const tg_train_options *a, const tg_train_options *b,
                                     uint32_t known, tg_buf *value_a, tg_buf *value_b);

#endif
