/*
 * matmul - y[M,N] = act(a b + bias) + residual, the product behind every linear layer.
 *
 *   trans 0   a [..,K]  b [K,N]     y [..,N]      forward, y = x W
 *   trans 1   a [..,M]  b [..,N]    y [M,N]       dW = x^T dy, summed over all rows
 *   trans 2   a [..,K]  b [N,K]     y [..,N]      dx = dy W^T, and the tied head x E^T
 *
 *   in 2  bias [N]     in 3  residual, shape of y     (both optional)
 *   out 0  y (accumulates)     out 1  z = a b + bias, kept if i[2] is 1, else empty
 *   i[0] trans   i[1] activation   i[2] keep z
 *
 * Sums run over rising k. Backward needs a and b. What follows a product (gelu, a residual) is
 * absorbed by it once the gradient has been taken, so that a fused one needs none.
 */
#include "base/math.h"
#include "ops/build.h"
#include "ops/rules.h"

/* Sizes of the product: rows of y, columns of y, length of the sums. */
typedef struct sizes {
    size_t m, n, k;
} sizes;

static sizes sizes_of(const tg_type *a, const tg_type *b, int trans) {
    if (trans == 1) return (sizes){ tg_type_cols(a), tg_type_cols(b), tg_type_rows(a) };
    return (sizes){ tg_type_rows(a), trans == 0 ? tg_type_cols(b) : tg_type_rows(b),
                    tg_type_cols(a) };
}

static void infer(tg_graph *g, tg_node *n) {
    if (!tg_want_dims(g, n, 0, TG_F32, 2, TG_MAX_DIMS)) return;
    if (!tg_want_dims(g, n, 1, TG_F32, 2, TG_MAX_DIMS)) return;
    const int trans = n->attr.i[0];
    const tg_type *a = &n->in[0]->type, *b = &n->in[1]->type;
    const sizes s = sizes_of(a, b, trans);
    const size_t k = trans == 1 || trans == 0 ? tg_type_rows(b) : tg_type_cols(b);
    if (trans < 0 || trans > 2 || k != s.k) {
        tg_graph_fail(g, n, TG_E_SHAPE, "b: want sums of length %zu (trans %d), have %zu", s.k, trans,
                      k);
        return;
    }
    tg_type y = trans == 1 ? tg_type_2d(TG_F32, s.m, s.n) : *a;
    if (trans != 1) y.dim[y.n_dims - 1] = s.n;
    if (!tg_want_type(g, n, 2, tg_type_1d(TG_F32, s.n)) || !tg_want_type(g, n, 3, y)) return;
    n->out[0].type = y;
    n->out[1].type = n->attr.i[2] ? y : tg_type_1d(TG_F32, 0);
}

static double activate(double z, int act) {
    if (act == TG_ACT_GELU_ERF) return 0.5 * z * tg_erfc(-z * 0.70710678118654752440);
    if (act == TG_ACT_GELU_TANH)
        return 0.5 * z * (1 + tg_tanh(0.79788456080286535588 * (z + 0.044715 * z * z * z)));
    return z;
}

static void ref(const tg_args *args) {
    const int trans = args->attr.i[0];
    const sizes s = sizes_of(&args->in_type[0], &args->in_type[1], trans);
    const TG_REAL *a = args->in[0], *b = args->in[1], *bias = args->in[2], *res = args->in[3];
    TG_REAL *y = args->out[0], *z = args->out[1];
    for (size_t i = 0; i < s.m; i++) {
        for (size_t j = 0; j < s.n; j++) {
            double sum = args->acc & 1 ? (double)y[i * s.n + j] : 0;
            for (size_t k = 0; k < s.k; k++)
                sum += (double)a[trans == 1 ? k * s.m + i : i * s.k + k] *
                       (double)b[trans == 2 ? j * s.k + k : k * s.n + j];
            if (bias) sum += (double)bias[j];
            if (args->attr.i[2]) z[i * s.n + j] = (TG_REAL)sum;
            sum = activate(sum, args->attr.i[1]);
            if (res) sum += (double)res[i * s.n + j];
            y[i * s.n + j] = (TG_REAL)sum;
        }
    }
}

static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    tg_value *a = n->in[0], *b = n->in[1], *d = dy[0];
    if (!tg_want_no_gradient(g, n, dy, 1)) return;
    if (n->attr.i[1] != TG_ACT_NONE) {
        tg_graph_fail(g, n, TG_E_UNSUPPORTED, "gradients are taken before activations are fused");
        return;
    }
    switch (n->attr.i[0]) {
    case 0:
        din[0] = tg_matmul(g, d, b, NULL, 2);
        din[1] = tg_matmul(g, a, d, NULL, 1);
        break;
    case 1:
        din[0] = tg_matmul(g, b, d, NULL, 2);
        din[1] = tg_matmul(g, a, d, NULL, 0);
        break;
    default:
        din[0] = tg_matmul(g, d, b, NULL, 0);
        din[1] = tg_matmul(g, d, a, NULL, 1);
    }
    if (n->in[2]) din[2] = tg_bias_d(g, d);
    din[3] = d;
}

/* The first forward gelu of our sums moves inside; whoever else reads the sums gets z. */
static bool absorb_gelu(tg_graph *g, tg_node *n) {
    tg_node *gelu = n->next;
    while (gelu && !(gelu->op == TG_OP_gelu && gelu->in[0] == &n->out[0])) gelu = gelu->next;
    if (!gelu || gelu->backward != n->backward || n->attr.i[1] != TG_ACT_NONE || n->in[3]) return false;
    n->attr.i[1] = gelu->attr.i[0];
    tg_replace_uses(g, &n->out[0], &n->out[1], gelu);
    n->attr.i[2] = tg_count_uses(g, &n->out[1]) > 0;
    n->out[1].type = n->attr.i[2] ? n->out[0].type : tg_type_1d(TG_F32, 0);
    n->out[1].dynamic_rows = n->attr.i[2] && n->out[0].dynamic_rows;
    tg_replace_uses(g, &gelu->out[0], &n->out[0], NULL);
    tg_node_remove(g, gelu);
    return true;
}

/* An add that alone reads our result, of a value that exists before us: it becomes the residual. */
static bool absorb_residual(tg_graph *g, tg_node *n) {
    tg_node *add = tg_single_user(g, &n->out[0]);
    if (!add || add->op != TG_OP_add || n->in[3] || add->in[0] == add->in[1]) return false;
    tg_value *other = add->in[0] == &n->out[0] ? add->in[1] : add->in[0];
    if (!tg_node_before(other->node, n)) return false;
    n->in[3] = other;
    tg_replace_uses(g, &add->out[0], &n->out[0], NULL);
    tg_node_remove(g, add);
    return true;
}

static bool fuse(tg_graph *g, tg_node *n) {
    if (n->acc_into[0] || n->attr.i[0] == 1) return false;
    return absorb_gelu(g, n) || absorb_residual(g, n);
}

static double flop(const tg_args *args) {
    const sizes s = sizes_of(&args->in_type[0], &args->in_type[1], args->attr.i[0]);
    return 2.0 * (double)s.m * (double)s.n * (double)s.k;
}

/* Sizes around the tiles of all ISAs (2, 6, 12 rows; 16, 32 columns), primes, and one of each kind of
 * training shape. Tolerances grow with the length of the sums. */
#define PLAIN(m, n, k, t)                                                                          \
    { .in = { TG_T2(F32, m, k), TG_T2(F32, k, n) }, .tol = (t) },                                  \
    { .in = { TG_T2(F32, k, m), TG_T2(F32, k, n) }, .attr = { .i = { 1 } }, .tol = (t) },          \
    { .in = { TG_T2(F32, k, m), TG_T2(F32, k, n) }, .attr = { .i = { 1 } }, .acc = 1, .tol = (t) },\
    { .in = { TG_T2(F32, m, k), TG_T2(F32, n, k) }, .attr = { .i = { 2 } }, .tol = (t) },          \
    { .in = { TG_T2(F32, m, k), TG_T2(F32, n, k) }, .attr = { .i = { 2 } }, .acc = 1, .tol = (t) }
#define FUSED(m, n, k, trans, act, keep, t)                                                        \
    { .in = { TG_T2(F32, m, k), TG_T2(F32, (trans) == 2 ? (n) : (k), (trans) == 2 ? (k) : (n)),    \
              TG_T1(F32, n), TG_T2(F32, m, n) },                                                   \
      .attr = { .i = { trans, act, keep } }, .tol = (t) }
#define BIASED(m, n, k, act, keep, t)                                                              \
    { .in = { TG_T2(F32, m, k), TG_T2(F32, k, n), TG_T1(F32, n) },                                 \
      .attr = { .i = { 0, act, keep } }, .tol = (t) }
static const tg_case cases[] = {
    PLAIN(1, 1, 1, 1e-6),       PLAIN(1, 31, 7, 1e-5),      PLAIN(1, 32, 64, 1e-5),
    PLAIN(2, 33, 17, 1e-5),     PLAIN(5, 15, 3, 1e-5),      PLAIN(6, 16, 16, 1e-5),
    PLAIN(7, 17, 19, 1e-5),     PLAIN(11, 31, 13, 1e-5),    PLAIN(12, 32, 48, 1e-5),
    PLAIN(13, 33, 65, 1e-5),    PLAIN(24, 64, 96, 2e-5),    PLAIN(25, 97, 101, 2e-5),
    PLAIN(67, 131, 257, 3e-5),  PLAIN(3, 300, 520, 3e-5),   PLAIN(96, 96, 300, 3e-5),
    PLAIN(30, 40, 1030, 6e-5),
    BIASED(1, 1, 1, TG_ACT_NONE, 0, 1e-6),        BIASED(13, 33, 21, TG_ACT_NONE, 0, 1e-5),
    BIASED(1, 100, 40, TG_ACT_GELU_ERF, 0, 1e-5), BIASED(12, 32, 16, TG_ACT_GELU_ERF, 1, 1e-5),
    BIASED(37, 61, 43, TG_ACT_GELU_ERF, 1, 2e-5), BIASED(37, 61, 43, TG_ACT_GELU_TANH, 1, 2e-5),
    BIASED(5, 384, 96, TG_ACT_GELU_TANH, 0, 2e-5),
    FUSED(1, 17, 5, 0, TG_ACT_NONE, 0, 1e-5),     FUSED(29, 96, 64, 0, TG_ACT_NONE, 0, 2e-5),
    FUSED(13, 31, 270, 2, TG_ACT_NONE, 0, 3e-5),  FUSED(14, 35, 11, 0, TG_ACT_GELU_ERF, 1, 1e-5),
    { .in = { TG_T3(F32, 2, 5, 12), TG_T2(F32, 12, 20), TG_T1(F32, 20) }, .tol = 1e-5 },
};

TG_OP_DESC(matmul) = {
    .name = "matmul",
    .doc = "y = act(a b + bias) + residual, a or b transposed",
    .in_names = { "a", "b", "bias", "residual" },
    .out_names = { "y", "z" },
    .n_in = 4,
    .n_in_optional = 2,
    .n_out = 2,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(matmul, ref),
    .grad = grad,
    .fuse = fuse,
    .flop = flop,
    TG_CASES(cases),
};
