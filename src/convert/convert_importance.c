/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_importance.c - what the columns of matrices matter, for the types whose blocks are fitted
 * (dtype/quantize.h): the mean, over the tokens of a text, of the square of what a column is
 * multiplied with, as llama.cpp's imatrix measures it. It is measured here, or read from a file of
 * llama-imatrix.
 *
 *     a text     windows of 512 tokens go through the model, and of each product with weights of
 *                the layers what it reads is kept for as long as a piece takes:
 *
 *                    x [n,K]         -> sums [K] += x^2
 *                    x, ids [n,k]    -> sums [E,K], of each expert by the tokens that go through it
 *
 *     a file     GGUF: in_sum2 [E,K] and counts [E] or [1] of each tensor, by its name
 *
 * Columns are shared out among the workers, and each adds up its own in the order of the tokens:
 * the same bits for any number of threads. An expert that no token went through has all its columns
 * alike. The embedding, and a head which may be the same matrix, are not measured, as llama-imatrix
 * does not.
 */
#include "base/math.h"
#include "base/time.h"
#include "convert/convert.h"
#include "dtype/quantize.h"
#include "engine/all_rows.h"
#include "training/data/windows.h"

enum { WINDOW = 512 };

/* ------------------------------------------------------------------------- what products read */

/* A part of a layer: its matrices read the same, so that one of them stands for all. */
typedef struct part {
    const char *role;
    int layer;
    size_t cols, experts;
    const tg_value *x, *ids; /* ids NULL: no experts */
    double *sums;            /* [experts][cols] */
    uint64_t *counts;        /* [experts] */
    struct part *next;
} part;

typedef struct measuring {
    tg_conversion *c;
    tg_model *model;
    tg_all_rows rows;
    tg_windows windows;
    part *first;
    size_t n; /* rows of the piece */
    tg_status status;
} measuring;

/* The role and the layer of weights, which are states by the names of a file, or views of the one
 * array that a run has. */
static bool is_of_layer(const tg_model *m, const tg_value *w, part *p) {
    for (size_t i = 0; i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        if (strcmp(t->name, w->node->name) != 0) continue;
        p->role = tg_want_role(t->want);
        p->layer = t->layer;
        return t->layer >= 0;
    }
    for (size_t i = 0; i < m->layout.n_params; i++) {
        const tg_param *t = &m->layout.params[i];
        if (strcmp(t->name, w->node->name) != 0) continue;
        p->role = t->role;
        p->layer = t->layer;
        return t->layer >= 0;
    }
    return false;
}

static void keep(tg_graph *g, tg_value *v) {
    char name[32];
    snprintf(name, sizeof name, "read.%u", (unsigned)v->node->id);
    if (!v->is_output) tg_output(g, v, name);
}

static void add_part(measuring *m, tg_graph *g, tg_value *w, tg_value *x, tg_value *ids,
                     size_t experts) {
    part p = { .experts = experts, .x = x, .ids = ids, .next = m->first };
    if (!w || !is_of_layer(m->model, w, &p)) return;
    p.cols = ids ? tg_type_cols(&w->type) : tg_type_cols(&x->type);
    const size_t bytes = experts * (p.cols * sizeof *p.sums + sizeof *p.counts) + sizeof p;
    p.sums = tg_arena_array(&m->c->arena, experts * p.cols, sizeof *p.sums);
    p.counts = tg_arena_array(&m->c->arena, experts, sizeof *p.counts);
    part *kept = tg_arena_array(&m->c->arena, 1, sizeof *kept);
    if (!p.sums || !p.counts || !kept) {
        m->status = tg_fail_memory(&m->c->ctx->err, "importance", bytes);
        return;
    }
    memset(p.sums, 0, experts * p.cols * sizeof *p.sums);
    memset(p.counts, 0, experts * sizeof *p.counts);
    *kept = p;
    m->first = kept;
    keep(g, x);
    if (ids) keep(g, ids);
}

/* The graph as the family wrote it: gates and norms are not fused yet, so that each product reads
 * what it multiplies. */
static void keep_what_is_read(void *user, tg_graph *g) {
    measuring *m = user;
    for (tg_node *n = g->first; n && g->status == TG_OK && m->status == TG_OK; n = n->next) {
        if (n->op == TG_OP_matmul) add_part(m, g, n->in[1], n->in[0], NULL, 1);
        if (n->op != TG_OP_experts) continue;
        add_part(m, g, n->in[2], n->in[0], n->in[1], (size_t)n->attr.i[0]);
        add_part(m, g, n->in[3], n->in[0], n->in[1], (size_t)n->attr.i[0]);
    }
}

/* Where the planner fused what made a value, another one is the output of its name. */
static const tg_value *output_like(const tg_graph *g, const tg_value *v) {
    for (const tg_node *n = g->first; n; n = n->next)
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k].is_output && strcmp(n->out[k].name, v->name) == 0) return &n->out[k];
    return v;
}

static void find_what_is_kept(measuring *m) {
    for (part *p = m->first; p; p = p->next) {
        p->x = output_like(&m->rows.graph, p->x);
        if (p->ids) p->ids = output_like(&m->rows.graph, p->ids);
    }
}

/* ------------------------------------------------------------------------------------ a text */

static void add_columns(const measuring *m, part *p, size_t first, size_t end) {
    const float *x = tg_plan_data(&m->rows.plan, p->x);
    const int32_t *ids = p->ids ? tg_plan_data(&m->rows.plan, p->ids) : NULL;
    const size_t k = ids ? tg_type_cols(&p->ids->type) : 1, width = tg_type_cols(&p->x->type);
    const bool own = width > p->cols; /* each choice of a token has columns of its own */
    for (size_t t = 0; t < m->n; t++)
        for (size_t j = 0; j < k; j++) {
            const float *row = x + t * width + (own ? j * p->cols : 0);
            double *sums = p->sums + (ids ? (size_t)ids[t * k + j] : 0) * p->cols;
            for (size_t i = first; i < end; i++) sums[i] += (double)row[i] * (double)row[i];
        }
}

static void add_worker(void *arg, unsigned worker) {
    measuring *m = arg;
    const unsigned workers = m->c->ctx->threads;
    for (part *p = m->first; p; p = p->next)
        add_columns(m, p, p->cols * worker / workers, p->cols * (worker + 1) / workers);
}

static void count_rows(measuring *m) {
    for (part *p = m->first; p; p = p->next) {
        const int32_t *ids = p->ids ? tg_plan_data(&m->rows.plan, p->ids) : NULL;
        const size_t choices = m->n * (ids ? tg_type_cols(&p->ids->type) : 1);
        for (size_t i = 0; i < choices; i++) p->counts[ids ? ids[i] : 0]++;
    }
}

static tg_status measure_window(measuring *m, const int32_t *window, size_t n) {
    for (size_t pos = 0; pos < n; pos += m->n) {
        if (tg_ctx_cancelled(&m->c->ctx->err)) return TG_STOPPED;
        m->n = n - pos < m->rows.most ? n - pos : m->rows.most;
        memcpy(tg_all_rows_tokens(&m->rows), window + pos, m->n * sizeof *window);
        TG_TRY(tg_all_rows_run(&m->rows, m->n, pos, 0));
        tg_pool_run(m->c->ctx->pool, add_worker, m);
        count_rows(m);
    }
    m->c->report->n_calibration += n;
    return TG_OK;
}

/* Whole windows; a text that has none is one. */
static tg_status measure_windows(measuring *m, const char *name) {
    tg_context *ctx = m->c->ctx;
    const size_t most = (size_t)m->model->layout.config.ctx, T = most < WINDOW ? most : WINDOW;
    tg_status s;
    do {
        if (tg_ctx_cancelled(&ctx->err)) return TG_STOPPED;
        s = tg_windows_go_on(&m->windows, tg_time_ms() + TG_CONVERT_SLICE_MS);
    } while (s == TG_PENDING);
    TG_TRY(s);
    m->windows.rest = tg_windows_count(&m->windows, T, true) == 0;
    const uint64_t n = tg_windows_count(&m->windows, T, true);
    if (n == 0)
        return tg_fail(&ctx->err, TG_E_DATA, "%s: calibration: want two tokens or more, have fewer",
                       name);
    m->rows.look = keep_what_is_read;
    m->rows.look_user = m;
    s = tg_all_rows_open(&m->rows, ctx, m->model, T, TG_ANSWER_HIDDEN_STATES);
    TG_TRY(m->status);
    TG_TRY(s);
    find_what_is_kept(m);
    int32_t inputs[WINDOW], targets[WINDOW];
    for (uint64_t i = 0; i < n; i++) {
        TG_TRY(tg_windows_row(&m->windows, i, true, T, inputs, targets));
        size_t used = 0;
        while (used < T && targets[used] >= 0) used++;
        TG_TRY(measure_window(m, inputs, used));
    }
    m->c->chunks = n;
    return TG_OK;
}

/* ------------------------------------------------------------------------------- into tensors */

static size_t experts_of(const tg_gguf_tensor *t) { return t->n_dims > 2 ? (size_t)t->dim[2] : 1; }

/* What a tensor's columns matter, to be filled, in the order that a GGUF file has them. */
static tg_status new_importance(tg_conversion *c, size_t i, float **out) {
    const tg_gguf_tensor *t = &c->g.tensors[i];
    const size_t n = experts_of(t) * (size_t)t->dim[0];
    *out = tg_arena_array(&c->arena, n, sizeof **out);
    if (!*out) return tg_fail_memory(&c->ctx->err, t->name, n * sizeof **out);
    c->importance[i] = *out;
    c->n_importance++;
    return TG_OK;
}

static tg_status set_mean(const tg_conversion *c, const tg_gguf_tensor *t, double sum, double count,
                          float *out) {
    const double mean = count > 0 ? sum / count : 1;
    *out = (float)mean;
    if (count >= 0 && *out >= 0 && *out < TG_INF) return TG_OK;
    return tg_fail(
        &c->ctx->err, TG_E_DATA,
        "importance of %s: want finite means of squares over counts of 0 or more, have others",
        t->name);
}

static tg_status take_part(tg_conversion *c, size_t number, const tg_tensor *use, const part *p) {
    const tg_gguf_tensor *t = &c->g.tensors[number];
    float *out;
    if (p->cols != t->dim[0] || p->experts != experts_of(t)) return TG_OK;
    TG_TRY(new_importance(c, number, &out));
    for (size_t i = 0; i < p->experts * p->cols; i++)
        TG_TRY(set_mean(c, t, p->sums[i], (double)p->counts[i / p->cols], out + i));
    if (!use->reorder || !c->g.heads_plain || !tg_turns_columns(use->want)) return TG_OK;
    float *room = tg_arena_array(&c->arena, p->cols, sizeof *room);
    if (!room) return tg_fail_memory(&c->ctx->err, t->name, p->cols * sizeof *room);
    tg_head_columns(&c->table.config, use->want, tg_head_in_turns, out, room, p->cols);
    return TG_OK;
}

static tg_status take_parts(const measuring *m) {
    tg_conversion *c = m->c;
    for (size_t i = 0; i < c->g.n_tensors; i++) {
        const tg_tensor *use = tg_convert_use(c, &c->g.tensors[i]);
        for (const part *p = use && use->layer >= 0 ? m->first : NULL; p; p = p->next)
            if (p->layer == use->layer && strcmp(p->role, tg_want_role(use->want)) == 0) {
                TG_TRY(take_part(c, i, use, p));
                break;
            }
    }
    return TG_OK;
}

static tg_status measure_model(measuring *m, tg_text *text) {
    tg_context *ctx = m->c->ctx;
    TG_TRY(tg_all_rows_want_writer(ctx, m->model, "calibration"));
    if (!m->model->tok || (tg_tok_model_of(m->model->tok) == TG_TOK_RAW_BYTES &&
                           m->model->layout.config.vocab != (int32_t)tg_tok_count(m->model->tok)))
        return tg_fail(&ctx->err, TG_E_UNSUPPORTED,
                       "calibration: the model's file has no tokenizer");
    TG_TRY(tg_windows_begin(&m->windows, m->model, text, 0));
    TG_TRY(measure_windows(m, text->name));
    return take_parts(m);
}

/* Without the rounding of activations, as in the check of what was written. */
static tg_status measure(tg_conversion *c, tg_text *text) {
    measuring m = { .c = c, .status = TG_OK };
    const uint32_t levers = c->ctx->levers;
    c->ctx->levers &= ~TG_LEVER_BIT(int8_activations);
    tg_status s = tg_convert_open(c->ctx, c->in, &m.model);
    if (s == TG_OK) s = measure_model(&m, text);
    c->ctx->levers = levers;
    tg_all_rows_deinit(&m.rows);
    tg_windows_deinit(&m.windows);
    tg_weights_free(m.model);
    return s;
}

/* ------------------------------------------------------------------------------------- a file */

/* [n] floats of "TENSOR.WHAT"; NULL: the file has none. */
static tg_status floats_of(tg_conversion *c, const tg_gguf *g, const tg_gguf_tensor *t,
                           const char *what, size_t n, float **out, size_t *have) {
    char name[160];
    *out = NULL;
    snprintf(name, sizeof name, "%s.%s", t->name, what);
    const tg_gguf_tensor *f = tg_gguf_tensor_find(g, name);
    if (!f) return TG_OK;
    if (f->type != TG_F32 || (f->elems != n && f->elems != *have))
        return tg_fail(&c->ctx->err, TG_E_FORMAT,
                       "%s: tensor %s: want %zu numbers in f32, have %" PRIu64 " in %s", g->path,
                       name, n, f->elems, tg_dtype_table[f->type].label);
    *have = (size_t)f->elems;
    *out = tg_arena_array(&c->arena, 2 * *have, sizeof **out);
    if (!*out) return tg_fail_memory(&c->ctx->err, name, 2 * *have * sizeof **out);
    return tg_gguf_read_floats(g, f, (uint8_t *)(*out + *have), *out);
}

static tg_status take_entry(tg_conversion *c, const tg_gguf *g, size_t number) {
    const tg_gguf_tensor *t = &c->g.tensors[number];
    const size_t cols = (size_t)t->dim[0], experts = experts_of(t);
    size_t n = experts * cols, n_counts = 1; /* old files have one count for all */
    float *sums, *counts, *out;
    TG_TRY(floats_of(c, g, t, "in_sum2", n, &sums, &n));
    if (!sums) return TG_OK;
    TG_TRY(floats_of(c, g, t, "counts", experts, &counts, &n_counts));
    if (!counts)
        return tg_fail(&c->ctx->err, TG_E_FORMAT,
                       "%s: tensor %s: want in_sum2 and counts, have "
                       "in_sum2 alone",
                       g->path, t->name);
    TG_TRY(new_importance(c, number, &out));
    for (size_t i = 0; i < n; i++)
        TG_TRY(
            set_mean(c, t, (double)sums[i], (double)counts[n_counts > 1 ? i / cols : 0], out + i));
    return TG_OK;
}

static tg_status take_file(tg_conversion *c, const tg_gguf *g) {
    tg_gguf_string type = { "", 0 };
    int32_t chunks = 0;
    TG_TRY(tg_gguf_get_string(g, "general.type", &type));
    if (type.n_bytes != strlen("imatrix") || memcmp(type.bytes, "imatrix", type.n_bytes) != 0)
        return tg_fail(&c->ctx->err, TG_E_FORMAT,
                       "%s: general.type: want \"imatrix\", as llama-imatrix writes it, have "
                       "\"%.*s\"",
                       g->path, (int)(type.n_bytes < 64 ? type.n_bytes : 64), type.bytes);
    TG_TRY(tg_gguf_get_int(g, "imatrix.chunk_count", 0, INT32_MAX, &chunks));
    c->chunks = (uint64_t)chunks;
    for (size_t i = 0; i < c->g.n_tensors; i++) TG_TRY(take_entry(c, g, i));
    if (c->n_importance) return TG_OK;
    return tg_fail(&c->ctx->err, TG_E_DATA,
                   "%s: want entries of the model's tensors, have none: is it another model's?",
                   g->path);
}

static tg_status read_file(tg_conversion *c, const char *path) {
    tg_gguf g;
    TG_TRY(tg_fail_named(&c->ctx->err, path, tg_gguf_open(&c->ctx->err, path, &g)));
    const tg_status s = take_file(c, &g);
    tg_gguf_close(&g);
    return s;
}

/* ------------------------------------------------------------------------------------ the whole */

tg_status tg_convert_measure(tg_conversion *c, const tg_calibration *from) {
    c->importance = tg_arena_array(&c->arena, c->g.n_tensors, sizeof *c->importance);
    if (!c->importance) return tg_fail_memory(&c->ctx->err, "importance", c->g.n_tensors);
    memset(c->importance, 0, c->g.n_tensors * sizeof *c->importance);
    c->calibration = from;
    return from->text ? measure(c, from->text) : read_file(c, from->imatrix);
}

void tg_convert_count_weighed(const tg_conversion *c) {
    for (size_t i = 0; c->importance && i < c->g.n_tensors; i++)
        c->report->n_weighed += c->importance[i] && tg_block_weighs(c->tensors[i].type);
}
