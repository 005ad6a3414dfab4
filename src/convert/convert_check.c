/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_check.c - what became of a model that was converted: old and new are asked the same.
 *
 *     tokens    some texts of many kinds, as both cut them
 *     logits    at every token of a page of English, of both: how far apart, and their divergence
 *     vectors   of an encoder, for the texts
 *
 * Weights are those of the files; what goes into products is not rounded to 8 bits, which would add
 * its own noise to theirs.
 */
#include "base/math.h"
#include "base/time.h"
#include "convert/convert.h"
#include "engine/all_rows.h"
#include "engine/embed.h"

enum { TOKENS = 256 };

/* The largest so far; one that is no number stays. */
static void note(double *most, double x) {
    if (x > *most || x != x) *most = x;
}

/* --------------------------------------------------------------------------------------- logits */

static const char page[] =
    "The harbour town had two bridges, and only one of them was of any use. The old one, built of "
    "stone in 1847, was so narrow that carts had to wait for each other; the new one, of iron, was "
    "wide enough for both, but it led to a field where nobody lived. \"Give it time,\" said the "
    "mayor, who had paid for it. \"People will come when they see that there is a road.\"\n\n"
    "For eleven years they did not. Children learned to ride their bicycles there, and in the "
    "spring, when the river rose, fishermen stood along the railing because the water was deeper on "
    "that side. Then a railway company asked for land. It needed about 30 acres, flat and cheap, "
    "close to the sea but not too close, and within a week its engineers had found the field, the "
    "bridge and the mayor, in that order. By the end of the next summer there were a station, three "
    "warehouses and a row of houses with small gardens.\n\n"
    "What the mayor told the newspaper afterwards is still quoted at the school: that a bridge is a "
    "question, and that one should not be surprised if the answer takes longer than the work. His "
    "successor, who was less patient, asked how much the question had cost. The figure was 12,400 "
    "pounds, most of it borrowed, and it was paid back in full before the first war.\n";

/* Of a file without a tokenizer: any ids, so that what is compared is arithmetic, not language. */
static tg_status any_ids(const tg_model *m, tg_ids *out) {
    const uint64_t vocab = (uint64_t)m->layout.config.vocab;
    for (uint32_t i = 1; i <= TOKENS; i++)
        TG_TRY(tg_ids_push(&m->ctx->err, out, (int32_t)((i * 2654435761u) * vocab >> 32)));
    return TG_OK;
}

static tg_status ids_of(const tg_model *m, tg_ids *out) {
    tg_ctx *err = &m->ctx->err;
    if (tg_tok_model_of(m->tok) == TG_TOK_RAW_BYTES &&
        m->layout.config.vocab != (int32_t)tg_tok_count(m->tok))
        return any_ids(m, out);
    if (tg_tok_adds_bos(m->tok) && tg_tok_bos(m->tok) >= 0)
        TG_TRY(tg_ids_push(err, out, tg_tok_bos(m->tok)));
    TG_TRY(tg_tok_encode(err, m->tok, page, sizeof page - 1, 0, out));
    if (out->n > TOKENS) out->n = TOKENS;
    return TG_OK;
}

/* The logits of n tokens of a window; pieces come in their order. */
static tg_status ask(tg_all_rows *r, const int32_t *window, size_t pos, size_t n,
                     const float **logits) {
    memcpy(tg_all_rows_tokens(r), window + pos, n * sizeof *window);
    memset(tg_all_rows_targets(r), 0, n * sizeof *window);
    TG_TRY(tg_all_rows_run(r, n, pos, 0));
    *logits = tg_all_rows_logits(r);
    return TG_OK;
}

typedef struct difference {
    double error, kl;
    bool same; /* the likeliest */
} difference;

typedef struct comparing {
    const float *old, *new; /* [n][vocab] */
    size_t n, vocab;
    unsigned workers;
    difference row[TG_ALL_ROWS_PIECE];
} comparing;

/* sum p (log p - log q) = sum p (x - y) - lse(x) + lse(y), of logits x and y. */
static difference compare_row(const float *x, const float *y, size_t n) {
    difference d = { .error = 0 };
    size_t a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        if (x[i] > x[a]) a = i;
        if (y[i] > y[b]) b = i;
        note(&d.error, tg_fabs((double)x[i] - (double)y[i]));
    }
    double sum_x = 0, sum_y = 0, apart = 0;
    for (size_t i = 0; i < n; i++) {
        const double p = tg_exp((double)x[i] - (double)x[a]);
        sum_x += p;
        sum_y += tg_exp((double)y[i] - (double)y[b]);
        apart += p * ((double)x[i] - (double)y[i]);
    }
    const double kl =
        apart / sum_x - ((double)x[a] + tg_log(sum_x)) + ((double)y[b] + tg_log(sum_y));
    d.kl = kl < 0 ? 0 : kl; /* by rounding alone */
    d.same = a == b;
    return d;
}

static void compare_worker(void *arg, unsigned worker) {
    comparing *c = arg;
    for (size_t i = worker; i < c->n; i += c->workers)
        c->row[i] = compare_row(c->old + i * c->vocab, c->new + i * c->vocab, c->vocab);
}

static tg_status compare_piece(tg_all_rows *old, tg_all_rows *new, const int32_t *window,
                               size_t pos, size_t n, tg_convert_report *r) {
    tg_context *ctx = old->ctx;
    comparing c = { .n = n,
                    .vocab = (size_t)old->model->layout.config.vocab,
                    .workers = ctx->threads };
    TG_TRY(ask(old, window, pos, n, &c.old));
    TG_TRY(ask(new, window, pos, n, &c.new));
    tg_pool_run(ctx->pool, compare_worker, &c);
    for (size_t i = 0; i < n; i++) {
        note(&r->max_error, c.row[i].error);
        note(&r->max_kl, c.row[i].kl);
        r->mean_kl += c.row[i].kl;
        r->same_best += c.row[i].same;
    }
    r->n_positions += n;
    return TG_OK;
}

/* In windows as long as the context, where that is shorter than the page. */
static tg_status compare_windows(tg_all_rows *old, tg_all_rows *new, const tg_ids *ids,
                                 size_t window, tg_convert_report *r) {
    for (size_t first = 0; first + window <= ids->n; first += window)
        for (size_t pos = 0; pos < window; pos += TG_ALL_ROWS_PIECE) {
            if (tg_ctx_cancelled(&old->ctx->err)) return TG_STOPPED;
            const size_t left = window - pos;
            const size_t n = left < TG_ALL_ROWS_PIECE ? left : TG_ALL_ROWS_PIECE;
            TG_TRY(compare_piece(old, new, ids->id + first, pos, n, r));
        }
    r->mean_kl /= (double)r->n_positions;
    r->same_best /= (double)r->n_positions;
    return TG_OK;
}

static tg_status compare_logits(tg_model *a, tg_model *b, tg_convert_report *r) {
    const size_t T = (size_t)a->layout.config.ctx;
    tg_all_rows old = { .built = false }, new = { .built = false };
    tg_ids ids;
    tg_ids_init(&ids, &a->ctx->err.mem);
    tg_status s = ids_of(a, &ids);
    const size_t window = ids.n < T ? ids.n : T;
    if (s == TG_OK) s = tg_all_rows_open(&old, a->ctx, a, window, TG_ANSWER_ROWS);
    if (s == TG_OK) s = tg_all_rows_open(&new, b->ctx, b, window, TG_ANSWER_ROWS);
    if (s == TG_OK) s = compare_windows(&old, &new, &ids, window, r);
    tg_all_rows_deinit(&old);
    tg_all_rows_deinit(&new);
    tg_ids_deinit(&ids);
    return s;
}

/* --------------------------------------------------------------------------- tokens and vectors */

static const char *const texts[] = {
    "The quick brown fox jumps over the lazy dog.",
    "don't  stop\n\n\tnow 12345 -- 3.14",
    "na\xc3\xafve caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80",
    "for (int i = 0; i < n; i++) { x[i] += 1; }",
    "\r\n  \xff\xfe trailing   ",
    "",
};
enum { N_TEXTS = sizeof texts / sizeof texts[0] };

static tg_status compare_tokens(const tg_model *a, const tg_model *b, tg_convert_report *r) {
    tg_ctx *err = &a->ctx->err;
    tg_ids x, y;
    tg_ids_init(&x, &err->mem);
    tg_ids_init(&y, &err->mem);
    tg_status s = TG_OK;
    for (size_t i = 0; s == TG_OK && i < N_TEXTS; i++) {
        x.n = y.n = 0;
        s = tg_tok_encode(err, a->tok, texts[i], strlen(texts[i]), TG_TOK_ENDS, &x);
        if (s == TG_OK) s = tg_tok_encode(err, b->tok, texts[i], strlen(texts[i]), TG_TOK_ENDS, &y);
        r->n_texts++;
        r->n_texts_same += x.n == y.n && (x.n == 0 || memcmp(x.id, y.id, x.n * sizeof *x.id) == 0);
    }
    tg_ids_deinit(&x);
    tg_ids_deinit(&y);
    return s;
}

static tg_status embed_texts(tg_context *ctx, tg_model *m, size_t n, float *out) {
    tg_embedder *e = NULL;
    tg_embed_text in[N_TEXTS];
    for (size_t i = 0; i < n; i++) in[i] = (tg_embed_text) { texts[i], strlen(texts[i]) };
    const tg_embed_options o = { .cut = true,
                                 .pooling = tg_rank_there(m) ? TG_POOLING_RANK : TG_POOLING_MODEL };
    TG_TRY(tg_embedder_open(ctx, m, &o, &e));
    tg_status s = tg_rank_there(m) ? tg_embedder_ask(e, texts[0]) : TG_OK;
    if (s == TG_OK) s = tg_embedder_embed(e, in, n, out);
    tg_embedder_close(e);
    return s;
}

/* A number that is none would be in every answer of either model, and compare with nothing. */
static tg_status want_finite(tg_ctx *ctx, const char *in, const tg_convert_report *r) {
    if (r->max_error < TG_INF && r->max_kl < TG_INF) return TG_OK;
    return tg_fail(ctx, TG_E_DATA,
                   "%s: comparison: want finite numbers, have others: some weights are NaN or "
                   "infinite, or too large for the new type",
                   in);
}

/* The answers of a model that embeds alone: vectors of all texts but the empty one, which may have
 * no token; of a reranker their scores, as one vector. */
static tg_status compare_vectors(tg_context *ctx, tg_model *a, tg_model *b, tg_convert_report *r) {
    const tg_pooling_ways *ways = &a->table.embed.ways;
    const size_t each = ways->n ? (size_t)ways->n : 1; /* a vector for each way of pooling */
    const size_t n = N_TEXTS - 1;
    const bool scores = tg_rank_there(a);
    const size_t rows = scores ? 1 : n, width = scores ? n : (size_t)a->layout.config.width * each;
    if (!b->table.embed.only || memcmp(ways, &b->table.embed.ways, sizeof *ways) != 0 ||
        tg_rank_there(a) != tg_rank_there(b))
        return tg_fail(&ctx->err, TG_E_FORMAT, "comparison: want the same way of pooling");
    float *v = tg_alloc(&ctx->err.mem, 2 * rows * width * sizeof *v);
    if (!v) return tg_fail_memory(&ctx->err, "comparison", 2 * rows * width * sizeof *v);
    const float *x = v, *y = v + rows * width;
    tg_status s = embed_texts(ctx, a, n, v);
    if (s == TG_OK) s = embed_texts(ctx, b, n, v + rows * width);
    r->min_cosine = 1;
    for (; s == TG_OK && r->n_vectors < rows; r->n_vectors++, x += width, y += width) {
        double cosine = 0, squares[2] = { 0, 0 };
        for (size_t i = 0; i < width; i++) {
            note(&r->max_error, tg_fabs((double)x[i] - (double)y[i]));
            cosine += (double)x[i] * (double)y[i];
            squares[0] += (double)x[i] * (double)x[i];
            squares[1] += (double)y[i] * (double)y[i];
        }
        if (scores && squares[0] * squares[1] > 0) cosine /= tg_sqrt(squares[0] * squares[1]);
        if (!(cosine >= r->min_cosine)) r->min_cosine = cosine;
    }
    if (s == TG_OK) r->n_vectors = n;
    tg_free(&ctx->err.mem, v, 2 * rows * width * sizeof *v);
    return s;
}

/* ------------------------------------------------------------------------------------ the whole */

static tg_status compare_models(tg_context *ctx, tg_model *a, tg_model *b, tg_convert_report *r) {
    TG_TRY(compare_tokens(a, b, r));
    if (a->table.embed.only) return compare_vectors(ctx, a, b, r);
    return compare_logits(a, b, r);
}

tg_status tg_convert_open(tg_context *ctx, const char *path, tg_model **out) {
    tg_model_opening o = { .file = NULL };
    tg_status s = TG_PENDING;
    while (s == TG_PENDING)
        s = tg_ctx_cancelled(&ctx->err)
                ? TG_STOPPED
                : tg_model_opening_go_on(&o, ctx, path, tg_time_ms() + TG_CONVERT_SLICE_MS, out);
    tg_model_opening_deinit(&o);
    return s;
}

/* llama.cpp's GPT-2 has the gelu by tanh, and no key that says otherwise. */
static tg_status compare_by_tanh(tg_context *ctx, tg_model *a, tg_model *b, tg_convert_report *r) {
    tg_convert_report other = { .n_tensors = 0 };
    b->layout.config.gelu_erf = 0;
    const tg_status s = compare_models(ctx, a, b, &other);
    r->tanh_error = other.max_error;
    return s;
}

/* Both are opened apart from the command's wishes: what is packed of a temporary file is not kept,
 * and no save belongs to the check. */
tg_status tg_convert_check(tg_context *ctx, const char *in, const char *out, tg_file_kind kind,
                           tg_convert_report *r) {
    tg_model *a = NULL, *b = NULL;
    const uint32_t levers = ctx->levers;
    const tg_ctx_files files = ctx->err.files;
    char *const cache = ctx->pack_cache, first = *cache;
    ctx->levers &= ~TG_LEVER_BIT(int8_activations);
    ctx->err.files = (tg_ctx_files) { .cancel = files.cancel, .cancel_user = files.cancel_user };
    tg_status s = tg_convert_open(ctx, in, &a);
    *cache = '\0';
    if (s == TG_OK) s = tg_convert_open(ctx, out, &b);
    *cache = first;
    if (s == TG_OK) s = compare_models(ctx, a, b, r);
    if (s == TG_OK) s = want_finite(&ctx->err, in, r);
    if (s == TG_OK && kind == TG_FILE_GGUF && b->layout.config.gelu_erf)
        s = compare_by_tanh(ctx, a, b, r);
    ctx->levers = levers;
    ctx->err.files = files;
    tg_weights_free(a);
    tg_weights_free(b);
    return s;
}
