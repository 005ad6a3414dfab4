/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint.c - a whole run as one file, and the very same run out of it.
 *
 * Weights and both moments are tensors of a v3 file, and with an average, which the weights are
 * then, what is trained (raw); everything else that decides what the next step computes is in its
 * JSON:
 *
 *   "step" "train" "lossHistory" "finalLoss" "bestVal"     as every file has them (io/run/meta.h)
 *   "text": {"bytes", "mark", "crc", "trainBytes"}
 *                                  the text's identity: a resumed run must read the same one. crc
 *                                  is that of all bytes, of texts of up to 64 MB; trainBytes is
 *                                  where a validation part of its own begins; "mix" has the end
 *                                  and weight of each part that rows are drawn from; "date" is
 *                                  the day, "2026-02-03", that a template wrote
 *   "run":  {"updates", "lossHash", "stale", "evalPending", "historyStride", "lastLoss", "lastVal",
 *            "lastValStep", "device", "class", "levers"}, and "gradNorm" while a validation is due,
 *            whose report is that of the step; "ownRates" if a program gave rates of its own,
 *            and "rates" if they are a table: [step, rate, step, rate, ..];
 *            "pairs" of a run on pairs: {"beta", "reference"}, log-probabilities of all rows by the
 *            model before step 1, and none where they are not known yet;
 *            "scaling", three numbers of op loss_scale, if gradients are rounded to f16
 *
 * What is drawn next depends on (seed, step) alone, so no random state has to be kept. "device",
 * "class" and "levers" are what computed the last step (bits.h).
 */
#include "base/math.h"
#include "base/str.h"
#include "chat/chat.h"
#include "runtime/bits.h"
#include "training/schedule.h"
#include "training/train.h"

/* Borrows the trainer's history: valid as long as no step is taken. All options are known here,
 * while a file of the original knows six. */
static tg_meta meta_of(const tg_trainer *t) {
    tg_meta m;
    tg_meta_init(&m);
    m.train = t->o;
    m.train_known = TG_TRAIN_ALL;
    m.history = t->history;
    m.n_history = t->n_history;
    m.final = (tg_history_point) { t->step, t->last_loss, t->last_val };
    m.best_step = t->best_step;
    m.best_val_loss = t->best_step >= 0 ? t->best_val : TG_NAN;
    m.vocabulary = t->model->keys != NULL;
    return m;
}

enum { TG_DATE_BYTES = 48 };

static const char *date_text(const int date[3], char out[TG_DATE_BYTES]) {
    out[0] = 0;
    if (date[2]) tg_str_append(out, TG_DATE_BYTES, "%04d-%02d-%02d", date[0], date[1], date[2]);
    return out;
}

/* The mark goes out as a plain number, 32 bits, so it survives readers with doubles. */
static void put_text(const tg_trainer *t, tg_json_writer *w) {
    tg_json_key(w, "text");
    tg_json_begin_object(w);
    tg_json_key(w, "bytes");
    tg_json_put_uint(w, t->text->n_bytes);
    tg_json_key(w, "mark");
    tg_json_put_uint(w, t->text_mark);
    if (t->text->n_bytes <= TG_TEXT_CRC_MAX) {
        tg_json_key(w, "crc");
        tg_json_put_uint(w, t->text_crc.crc);
    }
    if (t->text->held_from) {
        tg_json_key(w, "trainBytes");
        tg_json_put_uint(w, t->text->held_from);
    }
    if (t->text->date[2]) {
        char day[TG_DATE_BYTES];
        tg_json_key(w, "date");
        tg_json_put_string(w, date_text(t->text->date, day));
    }
    if (t->windows.mixed) {
        tg_json_key(w, "mix");
        tg_json_begin_array(w);
        for (size_t k = 0; k < t->windows.n_train_parts; k++) {
            tg_json_put_uint(w, t->windows.part[k].end);
            tg_json_put_double(w, t->windows.part[k].weight);
        }
        tg_json_end_array(w);
    }
    tg_json_end_object(w);
}

/* There is no product with whole-number weights in training; and a sum over one micro-step is the
 * same in an epilogue. */
static uint32_t no_part_in(const tg_trainer *t) {
    return TG_LEVER_BIT(int8_activations) | (t->o.accum == 1 ? TG_LEVER_BIT(epilogue_fusion) : 0);
}

/* Counters that no other member has. lossHash is a 64-bit whole number: programs that read JSON
 * numbers as doubles lose its low bits, but tinygpt reads it exactly (tg_json_uint64). Losses are
 * written with as many digits as they need to come back to the bit; NaN becomes null. */
static void put_run(const tg_trainer *t, tg_json_writer *w) {
    const tg_bits bits = tg_bits_of(t->ctx, no_part_in(t));
    tg_json_key(w, "run");
    tg_json_begin_object(w);
    tg_json_key(w, "updates");
    tg_json_put_int(w, t->updates);
    tg_json_key(w, "lossHash");
    tg_json_put_uint(w, t->loss_hash);
    tg_json_key(w, "stale");
    tg_json_put_int(w, t->stale);
    tg_json_key(w, "evalPending");
    tg_json_put_bool(w, t->eval_pending);
    tg_json_key(w, "historyStride");
    tg_json_put_int(w, t->history_stride);
    tg_json_key(w, "lastLoss");
    tg_json_put_double(w, t->last_loss);
    tg_json_key(w, "lastVal");
    tg_json_put_double(w, t->last_val);
    tg_json_key(w, "lastValStep");
    tg_json_put_int(w, t->last_val_step);
    if (t->eval_pending) {
        tg_json_key(w, "gradNorm");
        tg_json_put_double(w, t->report.grad_norm);
    }
    if (t->had_rate) {
        tg_json_key(w, "ownRates");
        tg_json_put_bool(w, true);
    }
    if (t->rates.n) {
        tg_json_key(w, "rates");
        tg_json_begin_array(w);
        for (size_t i = 0; i < t->rates.n; i++) {
            tg_json_put_int(w, t->rates.step[i]);
            tg_json_put_double(w, t->rates.rate[i]);
        }
        tg_json_end_array(w);
    }
    if (tg_train_pairs(t->text)) tg_pairs_put(t, w);
    if (TG_TRAIN_SCALES && t->plans.scaling) {
        tg_json_key(w, "scaling");
        tg_json_begin_array(w);
        for (int i = 0; i < 3; i++) tg_json_put_double(w, (double)t->scaling[i]);
        tg_json_end_array(w);
    }
    tg_json_key(w, "device");
    tg_json_put_string(w, bits.device);
    tg_json_key(w, "class");
    tg_json_put_string(w, bits.class);
    tg_json_key(w, "levers");
    tg_json_put_string(w, bits.levers);
    tg_json_end_object(w);
}

/* The whole header is built in memory before the file is begun: its length stands in front of it.
 * Step and history can be those of the best validation. The source decides what is saved, so
 * weights without moments also lose "run": a file that cannot be resumed should not look as if it
 * could. */
static tg_status begin_file(tg_train_saving *s, tg_trainer *t, const char *path,
                            const tg_meta *meta, int64_t step) {
    const bool whole_run = !s->best;
    tg_buf text;
    tg_buf_init(&text, &t->ctx->err.mem);
    tg_json_writer w;
    tg_json_writer_init(&w, &text);
    tg_meta_begin_v3(&w, &t->model->layout.config, step, meta);
    put_text(t, &w);
    if (whole_run) put_run(t, &w);
    tg_meta_end_v3(&w);
    tg_status status = tg_buf_status(&t->ctx->err, &text, "header of a save");
    const tg_weights weights = tg_flat_weights(&s->source);
    if (status == TG_OK)
        status = tg_tgpt3_saving(&t->ctx->err, path, text.data, text.length, &weights,
                                 s->best || !t->path_damaged, &s->saving);
    tg_buf_deinit(&text);
    return status;
}

/* The old file is renamed to PATH.prev, except after a resume from PATH.prev: there PATH is the
 * damaged one, and keeping it would overwrite the only good save. */
static tg_status begin_run(tg_train_saving *s, tg_trainer *t, const char *path) {
    const tg_meta meta = meta_of(t);
    TG_TRY(tg_weights_fetch(t->model));
    TG_TRY(tg_backend_fetch(t->ctx->backend, t->adam_m.data, t->adam_m.bytes));
    TG_TRY(tg_backend_fetch(t->ctx->backend, t->adam_v.data, t->adam_v.bytes));
    if (t->raw.data) TG_TRY(tg_backend_fetch(t->ctx->backend, t->raw.data, t->raw.bytes));
    s->source =
        (tg_flat_source) { &t->model->layout,
                           { t->model->weights, t->adam_m.data, t->adam_v.data, t->raw.data },
                           t->model->keys };
    return begin_file(s, t, path, &meta, t->step);
}

/* The history is cut at the best step, so the file tells the story of its own weights. What stood
 * there becomes .prev, since the first best of a run may replace that of another. */
static tg_status begin_best(tg_train_saving *s, tg_trainer *t, const char *path) {
    if (!t->best_held)
        return tg_fail(&t->ctx->err, TG_E_ARG,
                       "best: there is no copy of the best weights: no validation has run yet, or "
                       "keep_best is off");
    tg_meta meta = meta_of(t);
    size_t n = 0;
    while (n < t->n_history && t->history[n].step <= t->best_step) n++;
    meta.n_history = n;
    meta.final = (tg_history_point) {
        t->best_step, n && t->history[n - 1].step == t->best_step ? t->history[n - 1].loss : TG_NAN,
        t->best_val
    };
    s->source = (tg_flat_source) { &t->model->layout, { t->best.data }, t->model->keys };
    return begin_file(s, t, path, &meta, t->best_step);
}

/* May come at any moment, also in the middle of a step: what a step has not finished is in none of
 * the arrays that are written. An update that is under way is finished first. */
static tg_status go_on_saving(tg_train_saving *s, tg_trainer *t, const char *path,
                              double deadline_ms) {
    if (!s->saving) {
        TG_TRY(tg_train_settle(t, deadline_ms));
        TG_TRY(s->best ? begin_best(s, t, path) : begin_run(s, t, path));
    }
    TG_TRY(tg_saving_go_on(s->saving, deadline_ms));
    if (!s->best) t->path_damaged = false;
    return TG_OK;
}

/* Where the device is lost while the states come down, it is the copy that is saved. */
tg_status tg_train_saving_go_on(tg_train_saving *s, tg_trainer *t, const char *path,
                                double deadline_ms) {
    tg_status status;
    do status = go_on_saving(s, t, path, deadline_ms);
    while (tg_train_recovered(t, &status));
    return status;
}

void tg_train_saving_deinit(tg_train_saving *s) {
    tg_saving_free(s->saving);
    s->saving = NULL;
}

/* ---------------------------------------------------------------------------------------- resuming
 */

/* A number or null in "run": null and what is missing are NaN. */
static tg_status get_double(tg_ctx *err, const tg_json *run, const char *key, double *out) {
    const tg_json *v = tg_json_get(run, key);
    *out = TG_NAN;
    return v && tg_json_kind(v) != TG_JSON_NULL ? tg_json_double(err, v, out) : TG_OK;
}

static tg_status get_int(tg_ctx *err, const tg_json *run, const char *key, int64_t low,
                         int64_t *out) {
    const tg_json *v;
    TG_TRY(tg_json_want(err, run, key, TG_JSON_NUMBER, &v));
    TG_TRY(tg_json_int64(err, v, out));
    if (*out < low)
        return tg_fail(err, TG_E_RANGE, "run.%s: want at least %" PRId64 ", have %" PRId64, key,
                       low, *out);
    return TG_OK;
}

static const char *text_of(const tg_json *run, const char *key) {
    const tg_json *v = tg_json_get(run, key);
    return v && tg_json_kind(v) == TG_JSON_STRING ? v->u.text : NULL;
}

static void compare_bits(const tg_trainer *t, const tg_json *run) {
    tg_bits_compare(t->ctx, "the run", text_of(run, "device"), text_of(run, "class"),
                    text_of(run, "levers"), no_part_in(t));
}

/* Scale, good updates and skipped ones: see loss_scale.c. */
static tg_status read_scaling(tg_trainer *t, const tg_json *run) {
    tg_ctx *err = &t->ctx->err;
    const tg_json *list;
    TG_TRY(tg_json_want(err, run, "scaling", TG_JSON_ARRAY, &list));
    double x[3] = { 0 };
    const tg_json *v = tg_json_first(list);
    for (int i = 0; i < 3 && v; i++, v = tg_json_next(v)) TG_TRY(tg_json_double(err, v, &x[i]));
    if (!(x[0] > 0 && x[0] <= 1 && x[1] >= 0 && x[2] >= 0))
        return tg_fail(err, TG_E_RANGE,
                       "run.scaling: want a scale in (0, 1] and two counts, have %g, %g, %g", x[0],
                       x[1], x[2]);
    for (int i = 0; i < 3; i++) t->scaling[i] = (float)x[i];
    return TG_OK;
}

/* The table that the run goes by, which is checked as a caller's is. */
static tg_status read_rates(tg_trainer *t, const tg_json *run) {
    tg_ctx *err = &t->ctx->err;
    const tg_json *list;
    tg_rates table = { .n = 0 };
    TG_TRY(tg_json_want(err, run, "rates", TG_JSON_ARRAY, &list));
    for (const tg_json *v = tg_json_first(list); v; v = tg_json_next(v)) {
        const tg_json *rate = tg_json_next(v);
        if (table.n == TG_RATES_MAX || !rate)
            return tg_fail(err, TG_E_FORMAT, "run.rates: want up to %d steps, each with its rate",
                           TG_RATES_MAX);
        TG_TRY(tg_json_int64(err, v, &table.step[table.n]));
        TG_TRY(tg_json_double(err, rate, &table.rate[table.n++]));
        v = rate;
    }
    if (tg_rates_check(err, "run.rates", &table) != TG_OK) return TG_E_FORMAT;
    t->rates = table;
    return TG_OK;
}

/* Files of this program only: so counters are required, and one that is missing is damage. Losses
 * may be unknown; the last three members only decide about a warning. The counters are not held
 * against the history: they are trusted, as the checksums agreed. */
static tg_status read_run(tg_trainer *t, const tg_json *run) {
    tg_ctx *err = &t->ctx->err;
    const tg_json *v;
    int64_t stale;
    TG_TRY(get_int(err, run, "updates", 0, &t->updates));
    TG_TRY(get_int(err, run, "stale", 0, &stale));
    t->stale = stale > INT32_MAX ? INT32_MAX : (int32_t)stale;
    TG_TRY(get_int(err, run, "historyStride", 1, &t->history_stride));
    TG_TRY(get_int(err, run, "lastValStep", -1, &t->last_val_step));
    TG_TRY(get_double(err, run, "lastLoss", &t->last_loss));
    TG_TRY(get_double(err, run, "lastVal", &t->last_val));
    TG_TRY(tg_json_want(err, run, "lossHash", TG_JSON_NUMBER, &v));
    TG_TRY(tg_json_uint64(err, v, &t->loss_hash));
    TG_TRY(tg_json_want(err, run, "evalPending", TG_JSON_TRUE, &v));
    TG_TRY(tg_json_bool(err, v, &t->eval_pending));
    if (tg_json_get(run, "gradNorm"))
        TG_TRY(get_double(err, run, "gradNorm", &t->report.grad_norm));
    if (tg_json_get(run, "ownRates")) {
        TG_TRY(tg_json_want(err, run, "ownRates", TG_JSON_TRUE, &v));
        TG_TRY(tg_json_bool(err, v, &t->had_rate));
    }
    if (TG_TRAIN_SCALES && tg_json_get(run, "scaling")) TG_TRY(read_scaling(t, run));
    if (tg_json_get(run, "rates")) TG_TRY(read_rates(t, run));
    if (tg_train_pairs(t->text)) TG_TRY(tg_pairs_read(t, run));
    if (t->had_rate && !t->rates.n)
        tg_say(err, 1,
               "the run had learning rates of its program's own, which its file has not: unless "
               "they are given again it goes on by its schedule, from %g",
               tg_schedule_lr(&t->o, t->step));
    compare_bits(t, run);
    return TG_OK;
}

/* A whole number that may be missing: then *out stays. */
static tg_status get_uint(tg_ctx *err, const tg_json *from, const char *key, uint64_t *out) {
    const tg_json *v = tg_json_get(from, key);
    return v ? tg_json_uint64(err, v, out) : TG_OK;
}

/* The mix that the run drew from: its weights, as --mix takes them, go to `want`. */
static tg_status same_mix(tg_ctx *err, const tg_json *text, const tg_text *t, char want[256],
                          bool *same) {
    const tg_json *mix = tg_json_get(text, "mix");
    size_t k = 0;
    *want = 0;
    *same = true;
    if (mix) TG_TRY(tg_json_want(err, text, "mix", TG_JSON_ARRAY, &mix));
    for (const tg_json *v = mix ? tg_json_first(mix) : NULL; v; v = tg_json_next(v), k++) {
        char digits[TG_NUMBER_BYTES];
        uint64_t end;
        double weight = 0;
        TG_TRY(tg_json_uint64(err, v, &end));
        if ((v = tg_json_next(v)) == NULL) break;
        TG_TRY(tg_json_double(err, v, &weight));
        tg_format_double(weight, digits);
        tg_str_append(want, 256, "%s%s", k ? "," : "", digits);
        *same = *same && k < t->n_mix && end == tg_text_part_end(t, k) &&
                tg_bits_from_double(weight) == tg_bits_from_double(t->mix[k].weight);
    }
    *same = *same && k == t->n_mix;
    return TG_OK;
}

tg_status tg_train_read_date(tg_ctx *err, const tg_json *header, int date[3]) {
    const tg_json *text = tg_json_get(header, "text");
    const tg_json *day =
        text && tg_json_kind(text) == TG_JSON_OBJECT ? tg_json_get(text, "date") : NULL;
    date[0] = date[1] = date[2] = 0;
    if (!day) return TG_OK;
    TG_TRY(tg_json_want(err, text, "date", TG_JSON_STRING, &day));
    if (tg_chat_date(day->u.text, date)) return TG_OK;
    return tg_fail(err, TG_E_FORMAT, "text.date: want YYYY-MM-DD, have %.40s", day->u.text);
}

/* Templates that write the day make other tokens of the same conversations. */
static tg_status same_date(tg_trainer *t, const tg_file *f) {
    char have[TG_DATE_BYTES], want[TG_DATE_BYTES];
    int day[3];
    TG_TRY(tg_train_read_date(&t->ctx->err, f->header, day));
    if (memcmp(day, t->text->date, sizeof day) == 0) return TG_OK;
    date_text(day, want);
    date_text(t->text->date, have);
    return tg_fail(&t->ctx->err, TG_E_DATA,
                   "%s: the run's conversations were written with another date: want %s, have %s",
                   f->path, *want ? want : "none", *have ? have : "none");
}

/* Another text would not fail later, it would silently be another run. Files of before this have
 * the mark alone, which is of samples. */
static tg_status check_same_text(tg_trainer *t, const tg_file *f) {
    tg_ctx *err = &t->ctx->err;
    const tg_json *text = tg_json_get(f->header, "text"), *v;
    if (!text || tg_json_kind(text) != TG_JSON_OBJECT) return TG_OK; /* files of the original */
    uint64_t bytes, mark;
    TG_TRY(tg_json_want(err, text, "bytes", TG_JSON_NUMBER, &v));
    TG_TRY(tg_json_uint64(err, v, &bytes));
    TG_TRY(tg_json_want(err, text, "mark", TG_JSON_NUMBER, &v));
    TG_TRY(tg_json_uint64(err, v, &mark));
    if (tg_json_get(text, "date")) TG_TRY(same_date(t, f));
    if (t->text->train_row && bytes == 0 && mark != t->text_mark)
        return tg_fail(err, TG_E_DATA,
                       "%s: the run was trained on other rows: want the mark %08" PRIx64
                       ", have %08x: conversations or pairs, and what writes them, their template, "
                       "vocabulary and date, have to be the same (to train on, use the file as a "
                       "model: --from)",
                       f->path, mark, t->text_mark);
    if (bytes != t->text->n_bytes || mark != t->text_mark)
        return tg_fail(err, TG_E_DATA,
                       "%s: the run was trained on another text: want %" PRIu64
                       " bytes with mark %08" PRIx64 ", have %" PRIu64
                       " with %08x (to train on, use the file as a model: "
                       "--from)",
                       f->path, bytes, mark, t->text->n_bytes, t->text_mark);
    uint64_t crc = t->text_crc.crc, train = 0;
    TG_TRY(get_uint(err, text, "crc", &crc));
    TG_TRY(get_uint(err, text, "trainBytes", &train));
    if (t->text_crc.done == bytes && crc != t->text_crc.crc)
        return tg_fail(err, TG_E_DATA,
                       "%s: the run was trained on another text of the same length: want checksum "
                       "%08" PRIx64 ", have %08x (to train on, use the file as a model: --from)",
                       f->path, crc, t->text_crc.crc);
    if (train != t->text->held_from)
        return tg_fail(err, TG_E_DATA,
                       "%s: the run had another validation part: want its own to begin at byte "
                       "%" PRIu64 " (0: a fraction of the text), have %" PRIu64,
                       f->path, train, t->text->held_from);
    char want[256];
    bool same;
    TG_TRY(same_mix(err, text, t->text, want, &same));
    if (same) return TG_OK;
    return tg_fail(err, TG_E_DATA,
                   "%s: the run drew from its texts in another way: want %s%s, and each --data as "
                   "it was",
                   f->path, *want ? "--mix " : "no --mix", want);
}

/* A longer history than we keep can come from another program; its newest part is taken. */
static void restore_history(tg_trainer *t, const tg_meta *meta) {
    const size_t skip = meta->n_history > TG_HISTORY_MAX ? meta->n_history - TG_HISTORY_MAX : 0;
    t->n_history = meta->n_history - skip;
    if (t->n_history) memcpy(t->history, meta->history + skip, t->n_history * sizeof *t->history);
    if (meta->best_step >= 0 && !tg_isnan(meta->best_val_loss)) {
        t->best_step = meta->best_step;
        t->best_val = meta->best_val_loss;
    }
}

/* updates equals step unless steps were refused, which only "run" knows. best_held stays false: the
 * best weights are in a file of their own, and are not read back. */
static tg_status restore(tg_trainer *t, tg_file *f, const tg_meta *meta) {
    t->step = t->updates = f->step;
    TG_TRY(check_same_text(t, f));
    restore_history(t, meta);
    const tg_json *run = tg_json_get(f->header, "run");
    return run ? read_run(t, run) : TG_OK;
}

/* Fewer than are done cannot be meant: the file would say that it is at step 60 of 30. */
static tg_status take_steps(tg_train_opening *o, int64_t steps) {
    const tg_file *f = o->file;
    if (steps < f->step)
        return tg_fail(f->ctx, TG_E_ARG,
                       "training: steps: want at least the %" PRId64
                       " that are done in %s, have %" PRId64,
                       f->step, f->path, steps);
    o->options.steps = steps;
    return TG_OK;
}

/* What the run was made with, but for a new number of steps. */
static tg_status read_options(tg_train_opening *o, int64_t steps) {
    TG_TRY(tg_meta_read(o->file, &o->meta));
    o->options = tg_train_options_default();
    tg_meta_take_train(&o->meta, &o->options);
    if (steps > 0) TG_TRY(take_steps(o, steps));
    o->meta_read = true;
    return TG_OK;
}

/* The model belongs to the trainer that was made around it. */
static void hand_over(tg_train_opening *o) {
    const tg_file *f = o->file;
    o->trainer->owns_model = true;
    o->model->step = f->step;
    o->model->format = f->format;
    o->model->has_moments = true;
    o->trainer->path_damaged = o->model->used_prev = o->used_prev;
    o->model = NULL;
}

static tg_status make_run(tg_train_opening *o, tg_context *ctx, tg_text *text, int64_t steps,
                          double deadline_ms) {
    if (!o->meta_read) TG_TRY(read_options(o, steps));
    if (o->file->has_raw != (o->options.ema > 0))
        return tg_fail(&ctx->err, TG_E_FORMAT,
                       "%s: want raw.* tensors if the run has an average (train.ema), and else "
                       "none, have the contrary",
                       o->file->path);
    if (tg_train_pairs(text))
        TG_TRY(tg_pairs_read_beta(&ctx->err, o->file->header, &o->making.beta));
    TG_TRY(tg_train_making_go_on(&o->making, ctx, o->model, text, &o->options, deadline_ms,
                                 &o->trainer));
    hand_over(o);
    return restore(o->trainer, o->file, &o->meta);
}

static tg_status make_model(tg_train_opening *o, tg_context *ctx) {
    if (!o->file->has_moments)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "%s holds weights alone, no optimizer state: it cannot be resumed, but "
                       "--from trains it further",
                       o->file->path);
    return tg_weights_take_file(ctx, o->file, &o->model);
}

/* A model, then a trainer around it, then the optimizer's state; whatever there is of them when
 * something fails is freed by deinit. */
tg_status tg_train_opening_go_on(tg_train_opening *o, tg_context *ctx, const char *path,
                                 tg_text *text, int64_t steps, double deadline_ms,
                                 tg_trainer **out) {
    if (!o->opening) TG_TRY(tg_opening_new(&ctx->err, path, &o->opening));
    if (!o->file) TG_TRY(tg_opening_go_on(o->opening, deadline_ms, &o->file, &o->used_prev));
    if (!o->model && !o->trainer) TG_TRY(make_model(o, ctx));
    if (o->model) {
        TG_TRY(tg_block_clear(&o->model->block, deadline_ms));
        TG_TRY(tg_loading_go_on(&o->weights, o->file, &o->model->layout, "", o->model->weights,
                                deadline_ms));
        TG_TRY(make_run(o, ctx, text, steps, deadline_ms));
    }
    tg_trainer *t = o->trainer;
    const tg_layout *l = &t->model->layout;
    TG_TRY(tg_loading_go_on(&o->adam_m, o->file, l, TG_ADAM_M, t->adam_m.data, deadline_ms));
    TG_TRY(tg_loading_go_on(&o->adam_v, o->file, l, TG_ADAM_V, t->adam_v.data, deadline_ms));
    if (t->raw.data)
        TG_TRY(tg_loading_go_on(&o->raw, o->file, l, TG_RAW, t->raw.data, deadline_ms));
    *out = t;
    o->trainer = NULL;
    return TG_OK;
}

void tg_train_opening_deinit(tg_train_opening *o) {
    tg_train_making_deinit(&o->making);
    tg_train_free(o->trainer);
    tg_weights_free(o->model);
    tg_file_close(o->file);
    tg_opening_free(o->opening);
    *o = (tg_train_opening) { .file = NULL };
}
