/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_grad - the gradient of attention with respect to queries, keys and values.
 *
 *   in 0  qkv [B,T,(H+2K)*D]   in 1  o [B,T,H*D]   in 2  lse [B,H,T]   in 3  do [B,T,H*D]
 *   out 0  dqkv as qkv         attributes as attention
 *
 *   p[t,j]  = exp(s[t,j] - lse[t])                  for j that t sees, else 0; s as in attention
 *   dp[t,j] = mask[t,j] do[t] . v[j]                the mask of dropout, else 1
 *   ds[t,j] = p[t,j] * (dp[t,j] - do[t].o[t])       do.o is sum_j p dp, the softmax's own term;
 *             with a cap c times 1 - (s[t,j] / c)^2
 *   dq[t]   = scale * sum_j ds[t,j] k[j]
 *   dk[j]   = scale * sum_t ds[t,j] q[t]            t rising, head by head of the group
 *   dv[j]   = sum_t p[t,j] mask[t,j] do[t]
 *
 * (Dao et al. 2022, algorithm 4.) o and lse have to be what attention gave for this qkv; as a
 * function of its four inputs it is defined for any.
 */
#define TG_FLASH_CAPS_APART
#include "ops/attention/flash/flash_shader.h"
#include "ops/attention/heads_rules.h"
#include "ops/attention/reference.h"
#include "ops/build.h"

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_heads_want_scale(g, n) || !tg_heads_want_window(g, n) || !tg_heads_want_qkv(g, n, 0, 3))
        return;
    const tg_type *qkv = &n->in[0]->type;
    const tg_heads s = tg_heads_of(&n->attr);
    const tg_type o = { TG_F32, 3, { qkv->dim[0], qkv->dim[1], s.q_row, 1 } };
    const tg_type lse = { TG_F32, 3, { qkv->dim[0], s.n_q, qkv->dim[1], 1 } };
    if (!tg_want_type(g, n, 1, o) || !tg_want_type(g, n, 2, lse) || !tg_want_type(g, n, 3, o))
        return;
    n->out[0].type = *qkv;
}

/* One sequence. The pointers are to its first row. */
typedef struct sequence {
    tg_heads s;
    size_t tokens;
    const tg_attr *attr;
    double scale;
    const tg_args *args;
    size_t b;
    const TG_REAL *qkv, *o, *lse, *dout;
} sequence;

/* p[t,j] of head h times its mask, and ds[t,j]. */
static double pair(const sequence *x, size_t h, size_t t, size_t j, double *ds) {
    const tg_heads *s = &x->s;
    const TG_REAL *q = x->qkv + t * s->row + tg_heads_q(s, h), *row = x->qkv + j * s->row;
    const TG_REAL *k = row + tg_heads_k(s, h / s->group), *v = row + tg_heads_v(s, h / s->group);
    const size_t at = t * s->q_row + h * s->size;
    const double cap = (double)x->attr->f[2], score = soft_cap(x->scale * dot(q, k, s->size), cap);
    const double p = tg_exp(score - (double)x->lse[h * x->tokens + t]);
    double kept = 1;
    if (x->attr->f[1] > 0) {
        const tg_mask m = tg_mask_of(x->args, x->attr->f[1], x->b, tg_mask_head(x->attr, h));
        kept = tg_mask_at(&m, tg_mask_block(x->tokens, t, j), j % 4);
    }
    *ds = p * (kept * dot(x->dout + at, v, s->size) - dot(x->dout + at, x->o + at, s->size));
    if (cap > 0) *ds *= 1 - score / cap * (score / cap);
    return p * kept;
}

/* Columns [begin, begin + n) of dq of head h, row t. */
static void ref_dq(const sequence *x, size_t h, size_t t, size_t begin, size_t n, TG_REAL *dqkv) {
    const tg_heads *s = &x->s;
    double acc[CHUNK] = { 0 };
    for (size_t j = (size_t)tg_heads_low(x->attr, t, 0); j <= t; j++) {
        double ds;
        pair(x, h, t, j, &ds);
        const TG_REAL *k = x->qkv + j * s->row + tg_heads_k(s, h / s->group) + begin;
        for (size_t c = 0; c < n; c++) acc[c] += ds * (double)k[c];
    }
    TG_REAL *dq = dqkv + t * s->row + tg_heads_q(s, h) + begin;
    for (size_t c = 0; c < n; c++) dq[c] = (TG_REAL)(x->scale * acc[c]);
}

/* Columns [begin, begin + n) of dk and dv of key head kv, row j. */
static void ref_dkv(const sequence *x, size_t kv, size_t j, size_t begin, size_t n, TG_REAL *dqkv) {
    const tg_heads *s = &x->s;
    double dk[CHUNK] = { 0 }, dv[CHUNK] = { 0 };
    for (size_t h = kv * s->group; h < (kv + 1) * s->group; h++) {
        for (size_t t = j; t < x->tokens && tg_heads_low(x->attr, t, 0) <= (ptrdiff_t)j; t++) {
            double ds;
            const double p = pair(x, h, t, j, &ds);
            const TG_REAL *q = x->qkv + t * s->row + tg_heads_q(s, h) + begin;
            const TG_REAL *dout = x->dout + t * s->q_row + h * s->size + begin;
            for (size_t c = 0; c < n; c++) {
                dk[c] += ds * (double)q[c];
                dv[c] += p * (double)dout[c];
            }
        }
    }
    TG_REAL *row = dqkv + j * s->row + begin;
    for (size_t c = 0; c < n; c++) {
        row[tg_heads_k(s, kv) + c] = (TG_REAL)(x->scale * dk[c]);
        row[tg_heads_v(s, kv) + c] = (TG_REAL)dv[c];
    }
}

static void ref(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    const size_t batch = a->in_type[0].dim[0], tokens = a->in_type[0].dim[1];
    for (size_t b = 0; b < batch; b++) {
        const sequence x = {
            .s = s,
            .tokens = tokens,
            .attr = &a->attr,
            .scale = (double)a->attr.f[0],
            .args = a,
            .b = b,
            .qkv = (const TG_REAL *)a->in[0] + b * tokens * s.row,
            .o = (const TG_REAL *)a->in[1] + b * tokens * s.q_row,
            .lse = (const TG_REAL *)a->in[2] + b * s.n_q * tokens,
            .dout = (const TG_REAL *)a->in[3] + b * tokens * s.q_row,
        };
        TG_REAL *dqkv = (TG_REAL *)a->out[0] + b * tokens * s.row;
        for (size_t begin = 0; begin < s.size; begin += CHUNK) {
            const size_t n = s.size - begin < CHUNK ? s.size - begin : CHUNK;
            for (size_t t = 0; t < tokens; t++) {
                for (size_t h = 0; h < s.n_q; h++) ref_dq(&x, h, t, begin, n, dqkv);
                for (size_t kv = 0; kv < s.n_kv; kv++) ref_dkv(&x, kv, t, begin, n, dqkv);
            }
        }
    }
}

/* Five products of 2*D for each pair: scores, dp, dq, dk, dv. */
static double flop(const tg_args *a) {
    const tg_heads s = tg_heads_of(&a->attr);
    return 10 * (double)s.size * (double)(a->in_type[0].dim[0] * s.n_q) *
           tg_heads_window_pairs((double)a->in_type[0].dim[1], a->attr.i[3]);
}

/* The inputs are independent normals here, so that lse is not the rows' own: p is no softmax then,
 * its rows add up to about T, and the sums are as much larger, for which the tolerance allows. A
 * scale of 1 would make them larger than that. */
#define CASE(b, t, h, k, d, scale_) WINDOW(b, t, h, k, d, scale_, 0)
#define WINDOW(b, t, h, k, d, scale_, w)                                                           \
    { .in = { TG_T3(F32, b, t, ((h) + 2 * (k)) * (d)), TG_T3(F32, b, t, (h) * (d)),                \
              TG_T3(F32, b, h, t), TG_T3(F32, b, t, (h) * (d)) },                                  \
      .attr = { .i = { h, k, d, w }, .f = { scale_ } },                                            \
      .scale = 0.5f,                                                                               \
      .tol = 1e-5 }
#define DROPPING(b, t, h, k, d, scale_, w, rate) CAPPED(b, t, h, k, d, scale_, w, rate, 0)
#define CAPPED(b, t, h, k, d, scale_, w, rate, cap)                                                \
    { .in = { TG_T3(F32, b, t, ((h) + 2 * (k)) * (d)), TG_T3(F32, b, t, (h) * (d)),                \
              TG_T3(F32, b, h, t), TG_T3(F32, b, t, (h) * (d)) },                                  \
      .attr = { .i = { h, k, d, w, 3 }, .f = { scale_, rate, cap } },                              \
      .rt = { .seed_lo = 9, .draw_lo = 70 },                                                       \
      .scale = 0.5f,                                                                               \
      .tol = 1e-5 }
TG_CASE_TABLE cases[] = {
#include "ops/attention/attention_cases.def"
    CASE(1, 129, 4, 2, 16, 0.25f),
};

static const char *const flash[] = {
#include "ops/attention/flash/flash.wgsl.h"
};
static const char *const ops_mask[] = {
#include "ops/dropout/mask.wgsl.h"
};
static const char *const drop[] = {
#include "ops/attention/drop.wgsl.h"
};
static const char *const wgsl[] = {
#include "ops/attention/attention_grad.wgsl.h"
};

static size_t delta_groups(const tg_args *a) {
    return tg_shader_parts(tg_type_elems(&a->in_type[2]), 256);
}
static size_t delta_bytes(const tg_args *a) { return tg_type_bytes(&a->in_type[2]); }
static size_t key_groups(const tg_args *a) {
    return a->in_type[0].dim[0] * (size_t)a->attr.i[1] * tg_shader_parts(a->in_type[0].dim[1], 32);
}
static size_t both_groups(const tg_args *a) {
    return key_groups(a) +
           a->in_type[0].dim[0] * (size_t)a->attr.i[0] * tg_shader_parts(a->in_type[0].dim[1], 32);
}

#define PASS(name, count, in_fours, text, ...)                                                     \
    { .entry = name,                                                                               \
      .wgsl = { flash, wgsl, __VA_ARGS__ },                                                        \
      .constants = text,                                                                           \
      .fours = in_fours,                                                                           \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0),        \
                TG_BIND_SCRATCH },                                                                 \
      .groups = count }
#define PASSES(in_fours, text, ...) PASSES_OF(in_fours, "const CAPS = false; " text, __VA_ARGS__)
#define PASSES_OF(in_fours, text, ...)                                                             \
    .pass = { PASS("deltas", delta_groups, in_fours, text, __VA_ARGS__),                           \
              PASS("both", both_groups, in_fours, text, __VA_ARGS__) },                            \
    .scratch_bytes = delta_bytes
/* With a cap, which few models have: one for heads of all sizes, and one that drops. */
#define CAPS TG_FLASH_ONES "const CAPS = true; " TG_FLASH_256
static bool takes_cap(const tg_args *a, bool drops) {
    return a->attr.f[2] > 0 && a->attr.i[2] <= 256 && (a->attr.f[1] > 0) == drops;
}
static bool capped(const tg_args *a) { return takes_cap(a, false); }
static bool capped_drops(const tg_args *a) { return takes_cap(a, true); }
static const tg_shader shaders[] = {
    { .name = "flash, by ones, capped",
      .fits = capped,
      PASSES_OF(false, TG_FLASH_KEEPS CAPS, TG_FLASH_NONE) },
    { .name = "flash, by ones, capped, dropout",
      .fits = capped_drops,
      PASSES_OF(false, CAPS, TG_FLASH_MASKS) },
    TG_FLASH_SHADERS_DROPPING(PASSES),
    TG_FLASH_SHADERS(PASSES),
};

TG_OP_DESC(attention_grad) = {
    .name = "attention_grad",
    TG_DOC "gradient of attention with respect to queries, keys and values",
    .in_names = { "qkv", "o", "lse", "do" },
    .out_names = { "dqkv" },
    .n_in = 4,
    .n_out = 1,
    .infer = infer,
    TG_REFS(attention_grad, ref),
    TG_SHADERS(shaders),
    .flop = flop,
    TG_CASES(cases),
};
