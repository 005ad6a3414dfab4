/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.c - a text into tokens, and windows of them. See windows.h.
 */
#include "training/data/windows.h"

#include "base/rng.h"
#include "base/time.h"

/* A piece of a text that becomes ids at once; longer ones where no border is found in it. */
enum { PIECE_BYTES = 256 << 10 };

/* Written so that modules, which lack masked.c, ask for nothing of it. */
static bool is_masked(const tg_windows *w) { return TG_TRAIN_MASKS && w->masked; }

tg_status tg_windows_want_rows(tg_ctx *err, const tg_text *text, const tg_tok *tok, size_t V) {
    if (tg_tok_count(tok) <= V) return TG_OK;
    return tg_fail(err, TG_E_DATA,
                   "%s: want a model with a row for each of the %zu tokens that its texts become, "
                   "have %zu",
                   text->name, tg_tok_count(tok), V);
}

/* What a part holds, once it is known where it ends. */
static void split_part(tg_windows *w, size_t k, uint64_t end) {
    tg_stretch *p = &w->part[k];
    tg_split s = tg_split_of(end - p->first, w->val_fraction);
    if (k >= w->n_train_parts)
        s = (tg_split) { 0, end - p->first };
    else if (w->n_train_parts < w->n_parts)
        s = (tg_split) { end - p->first, 0 };
    p->train = s.train;
    p->val = s.val;
    w->split.train += s.train;
    w->split.val += s.val;
    if (k + 1 < w->n_parts) p[1].first = end;
}

/* Ends and weights are kept, as a text may be mixed later that has a trainer already. */
static tg_status make_parts(tg_windows *w) {
    const tg_text *t = w->text;
    const size_t n_train = tg_text_train_parts(t), n = n_train + (t->held_from > 0);
    w->part = tg_alloc(&t->ctx->err.mem, n * sizeof *w->part);
    if (!w->part) return tg_fail_memory(&t->ctx->err, "parts of a text", n * sizeof *w->part);
    w->n_parts = n;
    w->n_train_parts = n_train;
    w->mixed = t->n_mix > 0;
    for (size_t k = 0; k < n; k++)
        w->part[k] = (tg_stretch) { .end = tg_text_part_end(t, k),
                                    .weight = k < t->n_mix ? t->mix[k].weight : 0 };
    return TG_OK;
}

tg_status tg_windows_begin(tg_windows *w, const tg_model *model, tg_text *text,
                           double val_fraction) {
    const tg_tok *tok = model->tok;
    const size_t V = (size_t)model->layout.config.vocab;
    const bool bytes = tg_tok_model_of(tok) == TG_TOK_RAW_BYTES;
    *w = (tg_windows) {
        .text = text, .begins = -1, .vocab = V, .val_fraction = val_fraction, .begun = true
    };
    tg_buf_init(&w->piece, &text->ctx->err.mem);
    tg_ids_init(&w->of_piece, &text->ctx->err.mem);
    w->n_val_rows = text->n_val_rows;
    if (text->rows_split)
        w->rows_train = text->rows_split(text->rows_user, val_fraction, &w->n_val_rows);
    w->masked = TG_TRAIN_MASKS && tg_family_of(&model->layout.config)->encode;
    if (is_masked(w) && text->rows_split)
        return tg_fail(&text->ctx->err, TG_E_UNSUPPORTED,
                       "%s: conversations want a model that writes text, have a \"%s\"", text->name,
                       model->layout.config.family);
    if (text->train_row) return TG_OK;
    TG_TRY(tg_windows_want_rows(&text->ctx->err, text, tok, V));
    TG_TRY(make_parts(w));
    if (is_masked(w)) TG_TRY(tg_masking_of(&text->ctx->err, text->name, tok, V, &w->masking));
    if (bytes) {
        for (size_t k = 0; k < w->n_parts; k++) split_part(w, k, w->part[k].end);
        w->n = (size_t)text->n_bytes;
        return TG_OK;
    }
    w->tok = tok;
    w->wide = V > UINT16_MAX + 1;
    if (tg_tok_adds_bos(tok) && !is_masked(w)) w->begins = tg_tok_bos(tok);
    return TG_OK;
}

void tg_windows_deinit(tg_windows *w) {
    if (!w->begun) return;
    const tg_mem mem = w->text->ctx->err.mem;
    tg_free(&mem, w->ids, w->room * (w->wide ? 4 : 2));
    tg_free(&mem, w->part, w->n_parts * sizeof *w->part);
    tg_buf_deinit(&w->piece);
    tg_ids_deinit(&w->of_piece);
    *w = (tg_windows) { .n = 0 };
}

/* ------------------------------------------------------------------------------- becoming tokens
 */

static tg_status keep(tg_windows *w) {
    const size_t each = w->wide ? 4 : 2, more = w->of_piece.n;
    if (w->n + more > w->room) {
        const size_t room = w->n + more + w->room / 2;
        void *grown = tg_realloc(&w->text->ctx->err.mem, w->ids, w->room * each, room * each);
        if (!grown) return tg_fail_memory(&w->text->ctx->err, "tokens of a text", room * each);
        w->ids = grown;
        w->room = room;
    }
    for (size_t i = 0; i < more; i++) {
        if (w->wide)
            ((uint32_t *)w->ids)[w->n++] = (uint32_t)w->of_piece.id[i];
        else
            ((uint16_t *)w->ids)[w->n++] = (uint16_t)w->of_piece.id[i];
    }
    return TG_OK;
}

/* The next piece, up to a border, or to `end`, where a part of the text ends: the next one begins
 * anew there. */
static tg_status read_piece(tg_windows *w, uint64_t end, size_t *n) {
    const uint64_t left = end - w->done;
    const bool cuts = tg_tok_has_borders(w->tok);
    for (uint64_t want = cuts ? PIECE_BYTES : left;; want *= 2) {
        const size_t now = (size_t)(want < left ? want : left);
        tg_buf_clear(&w->piece);
        char *to = tg_buf_reserve(&w->piece, now);
        if (!to) return tg_fail_memory(&w->text->ctx->err, "piece of a text", now);
        TG_TRY(tg_text_read(w->text, w->done, to, now));
        w->piece.length = now;
        *n = now == left ? now : tg_tok_border(w->tok, to, now);
        if (*n > 0) return TG_OK;
    }
}

static tg_status encode_piece(tg_windows *w) {
    const tg_text *t = w->text;
    const uint64_t end = w->part[w->at_part].end;
    size_t n;
    TG_TRY(read_piece(w, end, &n));
    w->of_piece.n = 0;
    TG_TRY(tg_fail_named(&t->ctx->err, t->name,
                         tg_tok_encode(&t->ctx->err, w->tok, w->piece.data, n, 0, &w->of_piece)));
    TG_TRY(keep(w));
    w->done += n;
    return TG_OK;
}

tg_status tg_windows_go_on(tg_windows *w, double deadline_ms) {
    if (!w->tok) return TG_OK;
    for (; w->at_part < w->n_parts; w->at_part++) {
        while (w->done < w->part[w->at_part].end) {
            TG_TRY(encode_piece(w));
            if (tg_time_over(deadline_ms)) return TG_PENDING;
        }
        split_part(w, w->at_part, w->n);
    }
    tg_buf_deinit(&w->piece);
    tg_ids_deinit(&w->of_piece);
    return TG_OK;
}

/* -------------------------------------------------------------------------------------- windows */

static int32_t id_at(const tg_windows *w, uint64_t at) {
    return w->wide ? (int32_t)((const uint32_t *)w->ids)[at] : ((const uint16_t *)w->ids)[at];
}

/* Of ids the range is the callers' duty, as it is of a text's bytes (text.c). */
static tg_status ask(const tg_windows *w, tg_row_fn row, uint64_t n, size_t T, int32_t *inputs,
                     int32_t *targets) {
    const int32_t V = (int32_t)w->vocab;
    w->text->rows_train = w->rows_train;
    if (row(w->text->rows_user, n, T, inputs, targets) != 0)
        return tg_fail(&w->text->ctx->err, TG_E_DATA, "%s: row %" PRIu64 " could not be had",
                       w->text->name, n);
    for (size_t i = 0; i < T; i++)
        if (inputs[i] < 0 || inputs[i] >= V || targets[i] < TG_NO_TARGET || targets[i] >= V)
            return tg_fail(
                &w->text->ctx->err, TG_E_RANGE,
                "%s: row %" PRIu64 ": token %zu: want an id in [0,%d), and such a target "
                "or %d, have %d and %d",
                w->text->name, n, i, (int)V, TG_NO_TARGET, (int)inputs[i], (int)targets[i]);
    return TG_OK;
}

/* Windows that tile n tokens. */
static uint64_t tiles(const tg_windows *w, uint64_t n, size_t T) {
    const uint64_t whole = n > 0 ? (n - 1) / T : 0, ahead = w->begins >= 0;
    return whole + (w->rest && n - whole * T + ahead > 1);
}

tg_status tg_windows_want(const tg_windows *w, size_t T) {
    const tg_text *t = w->text;
    char which[48] = "";
    if (is_masked(w) && tg_masking_room(&w->masking, T) == 0)
        return tg_fail(&t->ctx->err, TG_E_RANGE,
                       "%s: row_tokens: want room for a token between those around a text, have "
                       "%zu",
                       t->name, T);
    for (size_t k = 0; k < w->n_parts; k++) {
        const tg_stretch *p = &w->part[k];
        const bool trains = k < w->n_train_parts;
        const uint64_t has = trains ? p->train : p->val;
        if (has > T) continue;
        if (w->mixed && trains) snprintf(which, sizeof which, " of part %zu of the mix", k + 1);
        return tg_fail(&t->ctx->err, TG_E_DATA,
                       "%s: the %s part%s has %" PRIu64 " of %zu %s; a context of %zu tokens needs "
                       "at least %zu",
                       w->mixed ? tg_text_name_at(t, k ? p[-1].end : 0) : t->name,
                       trains ? "training" : "validation", which, has, w->n, tg_windows_unit(w), T,
                       T + 1);
    }
    return TG_OK;
}

/* The part that a row of a mix is of: the first whose share of the draws reaches beyond u. */
static const tg_stretch *draw_part(const tg_windows *w, uint64_t seed, uint64_t sample) {
    const size_t n = w->n_train_parts;
    double sum = 0, upto = 0;
    size_t k = 0;
    if (n > 1) {
        uint32_t x[4];
        tg_philox(seed, sample, TG_RNG_BATCH, 2, x);
        for (size_t i = 0; i < n; i++) sum += w->part[i].weight;
        const double u = tg_rng_uniform(x[0]) * sum;
        while (k + 1 < n && (upto += w->part[k].weight) <= u) k++;
    }
    return &w->part[k];
}

/* The window at a token, of T that are predicted. */
static tg_status read_window(const tg_windows *w, uint64_t start, size_t T, int32_t *inputs,
                             int32_t *targets) {
    if (!w->tok) return tg_text_window(w->text, start, T, inputs, targets);
    const size_t ahead = w->begins >= 0;
    if (start > w->n || T + 1 - ahead > w->n - start)
        return tg_fail(&w->text->ctx->err, TG_E_INTERNAL,
                       "text: want %zu tokens at %" PRIu64 ", have %zu in all", T + 1 - ahead,
                       start, w->n);
    if (ahead) inputs[0] = w->begins;
    for (size_t i = 0; i < T; i++) {
        if (i + ahead < T) inputs[i + ahead] = id_at(w, start + i);
        targets[i] = id_at(w, start + i + 1 - ahead);
    }
    return TG_OK;
}

/* The row of an encoder at a token. */
static void read_masked(const tg_windows *w, uint64_t start, uint64_t seed, uint64_t index,
                        size_t T, int32_t *inputs, int32_t *targets) {
    const size_t n = tg_masking_room(&w->masking, T);
    TG_ASSERT(start <= w->n && n <= w->n - start);
    for (size_t i = 0; i < n; i++) inputs[i] = id_at(w, start + i);
    tg_masking_row(&w->masking, seed, index, T, inputs, targets);
}

/* Window i of the n tokens at `first`; if they end before it does, no token is the target of what
 * is behind them. */
static tg_status read_rest(const tg_windows *w, uint64_t i, uint64_t n, uint64_t first, size_t T,
                           int32_t *inputs, int32_t *targets) {
    const uint64_t left = n - i * T - (w->begins < 0);
    const size_t m = left < T ? (size_t)left : T;
    for (size_t k = m; k < T; k++) {
        inputs[k] = 0;
        targets[k] = TG_NO_TARGET;
    }
    return read_window(w, first + i * T, m, inputs, targets);
}

tg_status tg_windows_train_row(tg_windows *w, uint64_t seed, uint64_t sample, size_t T,
                               int32_t *inputs, int32_t *targets) {
    w->text->rows_seed = seed;
    if (w->text->train_row) return ask(w, w->text->train_row, sample, T, inputs, targets);
    const tg_stretch *p = draw_part(w, seed, sample);
    const uint64_t start = p->first + tg_batch_start(seed, sample, p->train, T);
    if (!is_masked(w)) return read_window(w, start, T, inputs, targets);
    read_masked(w, start, seed, sample, T, inputs, targets);
    return TG_OK;
}

uint64_t tg_windows_count(const tg_windows *w, size_t T, bool whole) {
    if (w->text->train_row) return w->n_val_rows;
    if (whole) return tiles(w, w->n, T);
    uint64_t n = 0;
    for (size_t k = 0; k < w->n_parts; k++) n += tiles(w, w->part[k].val, T);
    return n;
}

tg_status tg_windows_row(tg_windows *w, uint64_t i, bool whole, size_t T, int32_t *inputs,
                         int32_t *targets) {
    if (w->text->train_row) return ask(w, w->text->val_row, i, T, inputs, targets);
    if (is_masked(w) && whole) {
        read_masked(w, i * T, 0, i, T, inputs, targets);
        return TG_OK;
    }
    if (whole) return read_rest(w, i, w->n, 0, T, inputs, targets);
    const tg_stretch *p = w->part;
    const uint64_t index = i;
    for (uint64_t n; i >= (n = tiles(w, p->val, T)) && p + 1 < w->part + w->n_parts; p++) i -= n;
    if (is_masked(w)) {
        read_masked(w, p->first + p->train + i * T, 0, index, T, inputs, targets);
        return TG_OK;
    }
    return read_rest(w, i, p->val, p->first + p->train, T, inputs, targets);
}

double tg_windows_token_bytes(const tg_windows *w, bool val) {
    const uint64_t n = val ? w->split.val : w->split.train;
    uint64_t bytes = w->tok ? 0 : n;
    for (size_t k = 0; w->tok && k < w->n_parts; k++) {
        const tg_stretch *p = &w->part[k];
        const uint64_t first = p->first + (val ? p->train : 0);
        for (uint64_t i = first; i < first + (val ? p->val : p->train); i++) {
            size_t length;
            tg_tok_bytes(w->tok, id_at(w, i), &length);
            bytes += length;
        }
    }
    return n ? (double)bytes / (double)n : 0;
}

const char *tg_windows_unit(const tg_windows *w) { return w->tok ? "tokens" : "bytes"; }
