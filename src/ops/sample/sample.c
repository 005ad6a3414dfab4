/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample - draws the next token from the last row of the logits.
 *
 *   in 0  logits [T,V] or [V]     in 1  recent [R] i32, the newest tokens, optional: without them
 *                                       the largest logit is taken, whatever the scalars say
 *   out 0  token, a scalar i32    out 1  key [V] and out 2  order [V] i32, work space
 *
 * In this order, all of it by run-time scalars:
 *   repeat_penalty  > 0: logits of the first n_recent recent tokens are divided by it where they
 *                   are positive and multiplied by it elsewhere, once however often the token came
 *   temperature     logits are divided by it; 0 or less, or NaN: the largest logit is taken
 *   top_k           1..V: only the k largest stay; else off.   softmax over what stays
 *   top_p           in [0,1): the shortest prefix, likeliest first, whose probabilities reach it;
 *                   at least one token
 *   min_p           > 0: only tokens at least min_p times as likely as the likeliest
 *   draw            what stays is scaled to 1; u of (seed, draw, SAMPLE) falls into one token's
 * part
 *
 * Equal logits go by rising id. A NaN logit is never drawn, as if it were -inf; if all are, the
 * token is 0. Sums are doubles over a fixed order, so the token depends on logits and scalars
 * alone.
 *
 * The largest logit alone is a matter of one look. Tokens are wanted likeliest first otherwise, but
 * mostly only a few of them: so those NEAR the largest are made a heap, which is sorted from its
 * end as far as somebody asks; the others become a second one if somebody asks for more:
 *
 *     order   [ heap, the likeliest at 0 ......... | #2 | #1 | #0 ][ no use yet ]
 *                                                   ^ heap_n      ^ end
 *     order   [ #m-1 ............................. | #2 | #1 | #0 ][ heap .. | #m+1 | #m ]
 *                                                                  ^ begin                ^ end
 */
#include "base/math.h"
#include "base/rng.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/sample/candidate.h"
#include "ops/shader.h"

#define NEAR 10 /* weights below e^-10 are rarely asked for, at the usual temperatures */

typedef struct candidates {
    const TG_REAL *key; /* [n] logits after the penalty, -inf for NaN, by id */
    int32_t *order;     /* [n] ids: see above */
    size_t n, begin, end, heap_n;
    double max, temperature;
} candidates;

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 1, 2)) return;
    if (n->in[1] && !tg_want_dims(g, n, 1, TG_I32, 1, 1)) return;
    const size_t vocab = tg_type_cols(&n->in[0]->type);
    if (vocab > INT32_MAX) {
        tg_graph_fail(g, n, TG_E_SHAPE, "want at most %d logits, have %zu", INT32_MAX, vocab);
        return;
    }
    n->out[0].type = tg_type_scalar(TG_I32);
    n->out[1].type = tg_type_1d(TG_F32, vocab);
    n->out[2].type = tg_type_1d(TG_I32, vocab);
}

/* Keys are finite or -inf from here on: differences of two of them below the largest are numbers.
 */
static void fill_keys(const tg_args *a, const TG_REAL *logits, size_t n, TG_REAL *key) {
    const double penalty = (double)a->rt->repeat_penalty;
    const int32_t *recent = a->in[1];
    for (size_t i = 0; i < n; i++) key[i] = tg_candidate(logits[i]);
    for (size_t i = 0; i < a->in_type[1].dim[0] && (int32_t)i < a->rt->n_recent; i++) {
        const int32_t id = recent[i];
        if (id < 0 || (size_t)id >= n) continue;
        key[id] = tg_candidate_penalized(logits[id], penalty, 0);
    }
}

/* A NaN is never it. In lanes, which compilers turn into vectors. */
static TG_REAL largest(const TG_REAL *x, size_t n) {
    enum { LANES = 16 };
    TG_REAL lane[LANES];
    size_t i = 0;
    for (size_t k = 0; k < LANES; k++) lane[k] = (TG_REAL)-TG_INF;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    TG_REAL max = (TG_REAL)-TG_INF;
    for (; i < n; i++) max = x[i] > max ? x[i] : max;
    for (size_t k = 0; k < LANES; k++) max = lane[k] > max ? lane[k] : max;
    return max;
}

static bool likelier(const candidates *s, int32_t a, int32_t b) {
    return s->key[a] > s->key[b] || (s->key[a] == s->key[b] && a < b);
}

static void sift_down(candidates *s, size_t at) {
    int32_t *const heap = s->order + s->begin;
    const int32_t id = heap[at];
    for (size_t child; (child = 2 * at + 1) < s->heap_n; at = child) {
        if (child + 1 < s->heap_n && likelier(s, heap[child + 1], heap[child])) child++;
        if (likelier(s, id, heap[child])) break;
        heap[at] = heap[child];
    }
    heap[at] = id;
}

/* Of those near the largest, or of all others, behind what order has already. */
static void make_heap(candidates *s, bool near) {
    const TG_REAL low = (TG_REAL)(s->max - NEAR);
    s->begin = s->end;
    for (size_t i = 0; i < s->n; i++) {
        if ((s->key[i] >= low) == near) s->order[s->end++] = (int32_t)i;
    }
    s->heap_n = s->end - s->begin;
    for (size_t i = s->heap_n / 2; i-- > 0;) sift_down(s, i);
}

/* Until so many are left in the heap. */
static void sort_down_to(candidates *s, size_t left) {
    int32_t *const heap = s->order + s->begin;
    while (s->heap_n > left) {
        const int32_t top = heap[0];
        s->heap_n--;
        heap[0] = heap[s->heap_n];
        sift_down(s, 0);
        heap[s->heap_n] = top;
    }
}

/* The id of rank j < n, 0 the likeliest. */
static int32_t ranked(candidates *s, size_t j) {
    while (j >= s->end) {
        sort_down_to(s, 0);
        make_heap(s, s->end == 0);
    }
    if (j < s->begin) return s->order[s->begin - 1 - j];
    sort_down_to(s, s->end - 1 - j);
    return s->order[s->begin + s->end - 1 - j];
}

/* Probability relative to the likeliest token, in [0,1]. A tiny temperature makes it 0, a huge one
 * 1; only a key of -inf is 0 at any temperature. */
static double weight(const candidates *s, int32_t id) {
    const double key = (double)s->key[id];
    return tg_isfinite(key) ? tg_exp((key - s->max) / s->temperature) : 0;
}

/* The sum of the weights of ranks [0, k); of all by id, which needs no order. */
static double weigh(candidates *s, size_t k) {
    double total = 0;
    for (size_t i = 0; i < s->n && k == s->n; i++) total += weight(s, (int32_t)i);
    for (size_t j = 0; j < k && k < s->n; j++) total += weight(s, ranked(s, j));
    return total;
}

/* How many of the ranks [0, k) top_p and min_p leave; *mass gets the sum of their weights. */
static size_t shorten(candidates *s, const tg_scalars *rt, size_t k, double *mass) {
    const double top_p = (double)rt->top_p, min_p = (double)rt->min_p;
    const bool by_mass = top_p < 1, by_weight = min_p > 0;
    *mass = by_mass || !by_weight ? weigh(s, k) : TG_INF;
    if (!by_mass && !by_weight) return k;
    const double enough = by_mass ? top_p * *mass : TG_INF;
    double sum = 1; /* the weight of rank 0 */
    size_t n = 1;
    for (; n < k && sum < enough; n++) {
        const double next = weight(s, ranked(s, n));
        if (next <= 0 || (by_weight && next < min_p)) break;
        sum += next;
    }
    *mass = sum;
    return n;
}

static int32_t draw(candidates *s, const tg_scalars *rt, size_t n, double mass) {
    uint32_t x[4];
    const uint64_t seed = (uint64_t)rt->seed_hi << 32 | rt->seed_lo;
    tg_philox(seed, (uint64_t)rt->draw_hi << 32 | rt->draw_lo, TG_RNG_SAMPLE, 0, x);
    const double target = tg_rng_uniform(x[0]) * mass;
    double sum = 0;
    int32_t last = ranked(s, 0);
    for (size_t j = 0; j < n; j++) {
        const int32_t id = ranked(s, j);
        const double w = weight(s, id);
        if (w <= 0) break; /* rounding left the target beyond the last one that can be drawn */
        sum += w;
        last = id;
        if (sum > target) break;
    }
    return last;
}

/* Do penalties change any logit? */
static bool penalizes(const tg_scalars *rt) {
    const double penalty = (double)rt->repeat_penalty;
    return penalty > 0 && tg_isfinite(penalty) && (penalty < 1 || penalty > 1) && rt->n_recent > 0;
}

/* The first of the largest. x: keys, or logits, whose infinities count as FLT_MAX. */
static int32_t first_of_largest(const TG_REAL *x, size_t n) {
    const TG_REAL max = largest(x, n), least = max > (TG_REAL)FLT_MAX ? (TG_REAL)FLT_MAX : max;
    int32_t id = 0;
    if (max > (TG_REAL)-TG_INF)
        while (!(x[id] >= least)) id++;
    return id;
}

static void ref(const tg_args *a) {
    const tg_scalars *rt = a->rt;
    const size_t rows = tg_type_rows(&a->in_type[0]), n = tg_type_cols(&a->in_type[0]);
    const TG_REAL *logits = (const TG_REAL *)a->in[0] + (rows - 1) * n;
    TG_REAL *key = a->out[1];
    int32_t *token = a->out[0];
    candidates s = { .key = key, .order = a->out[2], .n = n };
    s.temperature = (double)rt->temperature;
    const bool greedy = !a->in[1] || !(s.temperature > 0);
    if (!a->in[1] || (greedy && !penalizes(rt))) {
        *token = first_of_largest(logits, n);
        return;
    }
    fill_keys(a, logits, n, key);
    s.max = (double)largest(key, n);
    if (greedy || !tg_isfinite(s.max)) {
        *token = first_of_largest(key, n);
        return;
    }
    const size_t k = rt->top_k > 0 && (size_t)rt->top_k < n ? (size_t)rt->top_k : n;
    double mass;
    const size_t kept = shorten(&s, rt, k, &mass);
    *token = draw(&s, rt, kept, mass);
}

#define CASE(rows, v, recents, ...)                                                                \
    {                                                                                              \
        .in = { TG_T2(F32, rows, v), TG_T1(I32, recents) }, .i32_below = (v), .rt = {              \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
TG_CASE_TABLE cases[] = {
    CASE(1, 1, 1, .temperature = 1, .top_p = 1, .repeat_penalty = 1),
    CASE(3, 15, 4, .temperature = 0, .top_p = 1, .repeat_penalty = 1.3f, .n_recent = 3),
    CASE(1, 16, 4, .temperature = 0.8f, .top_k = 5, .top_p = 0.9f, .repeat_penalty = 1),
    CASE(2, 17, 4, .temperature = 1e-30f, .top_p = 1, .min_p = 0.1f, .repeat_penalty = 1),
    CASE(1, 257, 64, .temperature = 1.5f, .top_p = 1, .repeat_penalty = 1.1f, .n_recent = 64),
    CASE(1, 4099, 64, .temperature = 1, .top_k = 40, .top_p = 0.95f, .repeat_penalty = 1),
    CASE(1, 4099, 64, .temperature = 0, .top_p = 1, .repeat_penalty = 1),
    CASE(1, 6200, 64, .temperature = 0, .top_p = 1, .repeat_penalty = 0.25f, .n_recent = 64),
    { .in = { TG_T2(F32, 2, 4097), TG_ABSENT }, .rt = { .temperature = 2, .top_p = 1 } },
};

static const char *const wgsl[] = {
#include "ops/sample/sample.wgsl.h"
};
enum { TILE = 2048 };
static size_t tiles(const tg_args *a) {
    return tg_shader_parts(tg_type_cols(&a->in_type[0]), TILE);
}
static size_t tops_bytes(const tg_args *a) { return tiles(a) * 2 * sizeof(uint32_t); }
static size_t one_group(const tg_args *a) {
    (void)a;
    return 1;
}

#define PASS(entry_, groups_)                                                                      \
    { .entry = (entry_),                                                                           \
      .wgsl = { wgsl },                                                                            \
      .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_OUT(0), TG_BIND_OUT(1), TG_BIND_OUT(2),      \
                TG_BIND_SCRATCH },                                                                 \
      .groups = (groups_) }
static const tg_shader shaders[] = {
    { .name = "tiles, then one group",
      .pass = { PASS("keys", tiles), PASS("main", one_group) },
      .scratch_bytes = tops_bytes },
};

TG_OP_DESC(sample) = {
    .name = "sample",
    TG_DOC "draws a token from the last row of logits: penalty, temperature, top-k, top-p, min-p",
    .in_names = { "logits", "recent" },
    .out_names = { "token", "key", "order" },
    .n_in = 2,
    .n_in_optional = 1,
    .n_out = 3,
    .work_out = 2 | 4,
    .ends_rows = true,
    .scalar_only = true,
    .infer = infer,
    TG_REFS(sample, ref),
    TG_SHADERS(shaders),
    TG_CASES(cases),
};
