/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.c - heads of rerankers, as transformers' classes for one label have them:
 *
 *     BERT          tanh(D x + d)            BertPooler, and the classifier behind it
 *     ModernBERT    norm(gelu(D x + d))      ModernBertPredictionHead; a layer norm without a shift
 *
 * GGUF has them as cls (D), cls.norm and cls.output (o). Sums are in double: no order of the
 * machine's shows in a score.
 */
#include "engine/rank.h"

#include "ops/activation.h"

bool tg_rank_there(const tg_model *m) {
    const tg_model_config *c = &m->layout.config;
    const tg_vector *out = tg_weights_vector(m, "cls.output.weight");
    return tg_family_of(c)->rank != TG_RANK_NONE && out &&
           out->bytes == (size_t)c->width * sizeof(float) && tg_weights_vector(m, "cls.weight");
}

/* llama.cpp pools ModernBERT's rows by their mean, and all others' by the first, without a word in
 * the file. */
tg_pooling_ways tg_rank_ways(const tg_model *m) {
    const bool mean = tg_family_of(&m->layout.config)->rank == TG_RANK_GELU_NORM;
    return (tg_pooling_ways) { 1, { mean ? TG_POOLING_BY_MEAN : TG_POOLING_BY_CLS } };
}

/* A vector of n floats; NULL where the file has none. */
static tg_status take(const tg_model *m, const char *name, size_t n, const float **out) {
    const tg_vector *v = tg_weights_vector(m, name);
    *out = v ? v->data : NULL;
    if (!v || v->bytes == n * sizeof(float)) return TG_OK;
    return tg_fail(&m->ctx->err, TG_E_SHAPE, "reranking: tensor %s: want %zu elements, have %zu",
                   name, n, v->bytes / sizeof(float));
}

tg_status tg_rank_open(const tg_model *m, tg_rank_head *h) {
    const size_t C = (size_t)m->layout.config.width;
    const tg_vector *labels = tg_weights_vector(m, "cls.output.weight");
    const size_t n_labels = labels ? labels->bytes / sizeof(float) / C : 0;
    if (!tg_rank_there(m))
        return tg_fail(&m->ctx->err, TG_E_UNSUPPORTED,
                       "reranking: want a model with a head of one score for a text beside a query "
                       "(cls.weight, cls.output.weight), have %s with %zu",
                       m->layout.config.family, n_labels);
    *h = (tg_rank_head) { .model = m, .width = C };
    TG_TRY(take(m, "cls.weight", C * C, &h->dense));
    TG_TRY(take(m, "cls.bias", C, &h->dense_bias));
    TG_TRY(take(m, "cls.norm.weight", C, &h->norm));
    TG_TRY(take(m, "cls.output.weight", C, &h->out));
    TG_TRY(take(m, "cls.output.bias", 1, &h->out_bias));
    if (!h->norm && tg_family_of(&m->layout.config)->rank == TG_RANK_GELU_NORM)
        return tg_fail(&m->ctx->err, TG_E_UNSUPPORTED,
                       "reranking: want cls.norm.weight in front of cls.output, have none");
    h->pooled = tg_alloc(&m->ctx->err.mem, 2 * C * sizeof *h->x);
    if (!h->pooled) return tg_fail_memory(&m->ctx->err, "reranking", 2 * C * sizeof *h->x);
    h->x = h->pooled + C;
    return TG_OK;
}

void tg_rank_close(tg_rank_head *h) {
    if (h->pooled) tg_free(&h->model->ctx->err.mem, h->pooled, 2 * h->width * sizeof *h->x);
    *h = (tg_rank_head) { .model = NULL };
}

static double dot(const float *a, const float *b, size_t n, const float *bias) {
    double sum = bias ? (double)*bias : 0;
    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* A layer norm without a shift, in place. */
static void normalise(const float *gain, double eps, float *x, size_t n) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
    const double scale = 1 / tg_sqrt(square / (double)n + eps);
    for (size_t i = 0; i < n; i++) x[i] = (float)(((double)x[i] - mean) * scale * (double)gain[i]);
}

float tg_rank_score(const tg_rank_head *h, const float *x) {
    const tg_model_config *c = &h->model->layout.config;
    const bool bends = tg_family_of(c)->rank == TG_RANK_GELU_NORM;
    const size_t C = h->width;
    for (size_t r = 0; r < C; r++) {
        const double y = dot(h->dense + r * C, x, C, h->dense_bias ? h->dense_bias + r : NULL);
        h->x[r] = (float)(bends ? act_gelu_erf(y) : tg_tanh(y));
    }
    if (bends) normalise(h->norm, (double)c->eps, h->x, C);
    return (float)dot(h->out, h->x, C, h->out_bias);
}
