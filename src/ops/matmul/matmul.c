/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul - y = act(f(a) b + bias) + residual: all dense products, of training and of model files.
 *
 *   i[0] trans   0  a [..,K]  b [K,N]       forward, y = x W
 *                1  a [..,M]  b [..,N]      dW = x^T dy; K is all leading dimensions together
 *                2  a [..,K]  b [N,K]       y = x W^T; dx = dy W^T, and a tied head, y = x E^T
 *   i[1] act     TG_ACT_NONE, TG_ACT_GELU_ERF, TG_ACT_GELU_TANH
 *   i[2] keep z  out 1 z, what goes into the activation
 *   i[3] read    f: TG_READ_PLAIN, or a is [.., 2K], gates and values: f(a)[k] = act(a[k]) a[K + k]
 *   in 2 bias [N], in 3 residual [..,N]: may be absent
 *   in 6 scaling [4] of op loss_scale: of products of gradients, which only shaders in f16 read
 *   out 0 y [..,N] with a's leading dimensions; trans 1: [M,N]. When it accumulates, the sums start
 *   from what is there.
 *
 * What b is decides about the kernel:
 *
 *   f32, plain        floats of training; every sum is one chain over rising k. read is PLAIN.
 *   weights of files  packed (dtype/packed.h), or f16 or bf16 row after row; trans 0 or 2, no act
 *
 * In 4 and in 5 are two more weights of files, of as many columns: b is the rows of all, so that
 * q|k|v are one step even where each has a type of its own, as mixed files have. They are not
 * trained, so trans 0 is dx alone: neither bias nor residual. Kernels of trans 2 may round f(a) to
 * 8 bits, blocks of 32 columns sharing a scale (lever int8_activations).
 *
 * Backward needs a and b, and z where there is an activation.
 */
#include "ops/activation.h"
#include "ops/build.h"
#include "ops/matmul/matmul_grid.h"
#include "ops/matmul/matmul_reference.h"
#include "ops/matmul/matmul_rules.h"
#include "ops/matmul/matmul_split.h"
#include "ops/matmul/packed/matmul_one_row.h"
#include "ops/packed_case.h"
#include "ops/rules.h"

/* ------------------------------------------------------------------------------------ shape rule
 */

/* Rows and columns of y, and k. */
typedef struct sizes {
    size_t m, n, k;
} sizes;

static sizes sizes_of(const tg_type in[MATMUL_N_IN], const tg_attr *attr) {
    const int trans = attr->i[MATMUL_TRANS];
    const size_t rows = tg_type_rows(&in[MATMUL_A]), cols = tg_type_cols(&in[MATMUL_A]);
    return (sizes) { .m = trans == 1 ? cols : rows,
                     .n = trans == 2 ? matmul_rows_of_b(in) : tg_type_cols(&in[MATMUL_B]),
                     .k = trans == 1 ? rows : cols / (attr->i[MATMUL_READ] ? 2 : 1) };
}

static bool is_floats(const tg_value *b) {
    return b->type.dtype == TG_F32 && tg_type_is_plain(&b->type);
}

static bool want_attributes(tg_graph *g, const tg_node *n) {
    const int32_t trans = n->attr.i[MATMUL_TRANS], act = n->attr.i[MATMUL_ACT];
    const int32_t read = n->attr.i[MATMUL_READ];
    if (trans < 0 || trans > 2 || act < TG_ACT_NONE || act > TG_ACT_GELU_TANH ||
        read < TG_READ_PLAIN || read > TG_READ_GELU_TANH) {
        tg_graph_fail(g, n, TG_E_ARG,
                      "want trans 0..2, activation 0..2 and read 0..2, have %" PRId32 ", %" PRId32
                      " and %" PRId32,
                      trans, act, read);
        return false;
    }
    const bool floats = is_floats(n->in[MATMUL_B]), more = n->in[MATMUL_B1] || n->in[MATMUL_B2];
    const bool dx = trans == 0 && !read && !n->in[MATMUL_BIAS] && !n->in[MATMUL_RESIDUAL];
    if (floats ? !read && !more
               : act == TG_ACT_NONE && !n->attr.i[MATMUL_KEEP_Z] && (trans == 2 || dx))
        return true;
    char text[TG_TYPE_TEXT_BYTES];
    tg_graph_fail(g, n, TG_E_ARG, "b: want %s, have %s",
                  floats ? "weights of files where gates are read or matrices lie side by side"
                         : "plain f32 for this trans, activation, bias or residual",
                  tg_type_text(&n->in[MATMUL_B]->type, text));
    return false;
}

/* b must meet f(a)'s k: as its rows, or, for trans 2, as its columns. */
static bool want_b(tg_graph *g, const tg_node *n, const tg_type in[MATMUL_N_IN]) {
    const int trans = n->attr.i[MATMUL_TRANS], max_dims = trans == 1 ? TG_MAX_DIMS : 2;
    if (!(is_floats(n->in[MATMUL_B])
              ? tg_want_dims(g, n, MATMUL_B, TG_F32, trans == 1 ? 1 : 2, max_dims)
              : matmul_want_weights(g, n)))
        return false;
    const size_t want = sizes_of(in, &n->attr).k;
    const size_t have = trans == 2 ? tg_type_cols(&in[MATMUL_B]) : matmul_rows_of_b(in);
    if (want == have && (!n->attr.i[MATMUL_READ] || tg_type_cols(&in[MATMUL_A]) % 2 == 0))
        return true;
    char text[TG_TYPE_TEXT_BYTES];
    tg_graph_fail(g, n, TG_E_SHAPE, "b: want %zu %s, have %s", want,
                  trans == 2 ? "columns" : "rows", tg_type_text(&in[MATMUL_B], text));
    return false;
}

static void infer(tg_graph *g, tg_node *n) {
    tg_type in[MATMUL_N_IN] = { 0 };
    for (int j = 0; j < MATMUL_N_IN; j++)
        if (n->in[j]) in[j] = n->in[j]->type;
    if (!want_attributes(g, n) || !tg_want_dims(g, n, MATMUL_A, TG_F32, 1, TG_MAX_DIMS) ||
        !want_b(g, n, in))
        return;
    const sizes s = sizes_of(in, &n->attr);
    tg_type y = tg_type_2d(TG_F32, s.m, s.n);
    if (n->attr.i[MATMUL_TRANS] != 1) {
        y = in[MATMUL_A];
        y.dim[y.n_dims - 1] = s.n;
    }
    if (!tg_want_type(g, n, MATMUL_BIAS, tg_type_1d(TG_F32, s.n)) ||
        !tg_want_type(g, n, MATMUL_RESIDUAL, y) ||
        !tg_want_type(g, n, MATMUL_SCALING, tg_type_1d(TG_F32, 4)))
        return;
    n->n_out = n->attr.i[MATMUL_KEEP_Z] ? 2 : 1;
    for (int k = 0; k < n->n_out; k++) n->out[k].type = y;
}

/* ------------------------------------------------------------------------------------- reference
 */

static double activated(double x, int act) {
    return act == TG_ACT_GELU_ERF    ? act_gelu_erf(x)
           : act == TG_ACT_GELU_TANH ? act_gelu_tanh(x)
                                     : x;
}

/* f(a)[k] of a row. */
static double a_at(const tg_args *args, const TG_REAL *row, size_t k, size_t depth) {
    const double v = (double)row[k];
    const int read = args->attr.i[MATMUL_READ];
    if (read == TG_READ_PLAIN) return v;
    return (read == TG_READ_SILU ? act_silu(v) : act_gelu_tanh(v)) * (double)row[depth + k];
}

static void ref(const tg_args *args) {
    const int trans = args->attr.i[MATMUL_TRANS], act = args->attr.i[MATMUL_ACT];
    const sizes s = sizes_of(args->in_type, &args->attr);
    const matmul_operand b = matmul_operand_of(args);
    const TG_REAL *a = args->in[MATMUL_A], *bias = args->in[MATMUL_BIAS];
    const TG_REAL *res = args->in[MATMUL_RESIDUAL];
    TG_REAL *y = args->out[0], *z = args->attr.i[MATMUL_KEEP_Z] ? args->out[1] : NULL;
    const size_t a_row = tg_type_cols(&args->in_type[MATMUL_A]);
    for (size_t i = 0; i < s.m; i++) {
        for (size_t j = 0; j < s.n; j++) {
            const size_t at = i * s.n + j;
            double sum = args->acc & 1 ? (double)y[at] : 0;
            for (size_t k = 0; k < s.k; k++)
                sum += (trans == 1 ? (double)a[k * a_row + i] : a_at(args, a + i * a_row, k, s.k)) *
                       (trans == 2 ? matmul_b_at(&b, j, k) : matmul_b_at(&b, k, j));
            if (bias) sum += (double)bias[j];
            if (z) z[at] = (TG_REAL)sum;
            sum = activated(sum, act);
            if (res) sum += (double)res[at];
            y[at] = (TG_REAL)sum;
        }
    }
}

/* -------------------------------------------------------------------------------------- gradient
 */

/* Of a product with dz, by what shaders in f16 scale it: matmul_halves.h. */
static void scale_gradient(const tg_graph *g, tg_value *product, const tg_value *dz) {
    float scale = 64;
    product->node->in[MATMUL_SCALING] = g->scaling;
    for (size_t rows = 1; rows < tg_type_rows(&dz->type); rows *= 2) scale *= 2;
    for (int i = 0; i < 2; i++)
        if (product->node->in[i] == dz) product->node->attr.f[i] = scale;
}

/*
 * With dz, the gradient of the sums:   da              db
 *   trans 0   y = a b                  dz b^T          a^T dz
 *   trans 1   y = a^T b                b dz^T          a dz
 *   trans 2   y = a b^T                dz b            dz^T a
 * each of which is a matmul again (trans 1: da[k,m] = sum over n of b[k,n] dz[m,n]). Weights of
 * files have no gradient, and give that of a as floats do. Where gates are read, da is that of
 * f(a).
 */
static void grad(tg_graph *g, tg_node *n, tg_value *const *dy, tg_value **din) {
    tg_value *const b[MATMUL_PARTS] = { n->in[MATMUL_B], n->in[MATMUL_B1], n->in[MATMUL_B2] };
    tg_value *a = n->in[MATMUL_A], *dz = dy[0];
    const int trans = n->attr.i[MATMUL_TRANS], act = n->attr.i[MATMUL_ACT];
    const int read = n->attr.i[MATMUL_READ];
    const bool floats = is_floats(b[0]);
    if (dz && act != TG_ACT_NONE) {
        tg_value *z = n->attr.i[MATMUL_KEEP_Z] ? &n->out[1]
                                               : tg_matmul(g, a, b[0], n->in[MATMUL_BIAS], trans);
        dz = tg_gelu_grad(g, z, dz, &(tg_attr) { .i = { act } });
    }
    if (n->n_out > 1 && dy[1]) dz = dz ? tg_add(g, dz, dy[1]) : dy[1];
    if (!dz) return;
    switch (trans) {
    case 0: din[MATMUL_A] = tg_matmul_rows(g, dz, b, NULL, 2); break;
    case 1: din[MATMUL_A] = tg_matmul(g, b[0], dz, NULL, 2); break;
    default: din[MATMUL_A] = tg_matmul_rows(g, dz, b, NULL, 0); break;
    }
    scale_gradient(g, din[MATMUL_A], dz);
    if (read != TG_READ_PLAIN) din[MATMUL_A] = tg_glu_grad(g, a, din[MATMUL_A], read);
    if (floats)
        din[MATMUL_B] = trans == 2 ? tg_matmul(g, dz, a, NULL, 1)
                                   : tg_matmul(g, a, dz, NULL, trans == 0 ? 1 : 0);
    if (floats) scale_gradient(g, din[MATMUL_B], dz);
    if (n->in[MATMUL_BIAS]) din[MATMUL_BIAS] = tg_bias_grad(g, dz);
    if (n->in[MATMUL_RESIDUAL]) din[MATMUL_RESIDUAL] = dy[0];
}

/* ---------------------------------------------------------------------------------------- fusion
 */

/* The first node of n's own pass that is op and reads v first; NULL if there is none. */
static tg_node *reader(const tg_node *n, const tg_value *v, tg_op_id op) {
    for (tg_node *u = n->next; u; u = u->next)
        if (u->op == op && u->backward == n->backward && u->in[0] == v) return u;
    return NULL;
}

/*
 * y = gelu(z): the activation moves in here. Other readers of z, gelu's gradient above all, read
 * it from out 1, which is kept only if there are any.
 */
static bool absorb_gelu(tg_graph *g, tg_node *n) {
    tg_value *y = &n->out[0], *z = &n->out[1];
    if (n->attr.i[1] != TG_ACT_NONE || n->in[3] || n->acc_into[0] || y->is_output) return false;
    if (!is_floats(n->in[MATMUL_B])) return false;
    tg_node *gelu = reader(n, y, TG_OP_gelu);
    if (!gelu || gelu->attr.i[0] > TG_ACT_GELU_TANH) return false;
    n->attr.i[1] = gelu->attr.i[0];
    n->attr.i[2] = tg_count_uses(g, y) > 1;
    n->n_out = n->attr.i[2] ? 2 : 1;
    if (n->attr.i[2]) {
        z->type = y->type;
        z->name = y->name;
        z->dynamic_rows = y->dynamic_rows;
        tg_replace_uses(g, y, z, gelu);
    }
    y->name = gelu->out[0].name;
    tg_replace_uses(g, &gelu->out[0], y, NULL);
    tg_node_remove(g, gelu);
    return true;
}

/* y = sum + x, where the sum has no other reader and x is there before it is computed. */
static bool absorb_add(tg_graph *g, tg_node *n) {
    tg_value *y = &n->out[0];
    if (n->in[3] || n->acc_into[0]) return false;
    if (!is_floats(n->in[MATMUL_B]) && n->attr.i[MATMUL_TRANS] != 2) return false;
    tg_node *add = tg_single_user(g, y);
    if (!add || add->op != TG_OP_add || add->backward != n->backward) return false;
    tg_value *x = add->in[add->in[0] == y ? 1 : 0];
    if (!tg_node_before(x->node, n) || !tg_type_same_shape(&x->type, &y->type)) return false;
    n->in[3] = x;
    y->name = add->out[0].name;
    tg_replace_uses(g, &add->out[0], y, NULL);
    tg_node_remove(g, add);
    return true;
}

/* a = gates times values that nobody else reads: packed weights are multiplied with them as they
 * are read. */
static bool absorb_gates(tg_graph *g, tg_node *n) {
    tg_value *a = n->in[MATMUL_A];
    tg_node *glu = a->node;
    if (glu->op != TG_OP_glu || n->attr.i[MATMUL_TRANS] != 2 || n->attr.i[MATMUL_READ] ||
        glu->attr.i[0] == TG_READ_GELU_ERF)
        return false;
    if (is_floats(n->in[MATMUL_B]) || tg_single_user(g, a) != n) return false;
    n->attr.i[MATMUL_READ] = glu->attr.i[0];
    n->in[MATMUL_A] = glu->in[0];
    tg_node_remove(g, glu);
    return true;
}

/*
 * a = an RMS norm that nobody else reads, of one row, or of rows that are to be as if alone: the
 * product finds the scale itself as it reads the row. Products of many rows would find it anew for
 * each of their tiles.
 */
static bool absorb_norm(tg_graph *g, tg_node *n) {
    tg_value *a = n->in[MATMUL_A];
    const tg_node *norm = a->node;
    if (!(g->levers & TG_LEVER_BIT(fused_decode)) || norm->op != TG_OP_rms_norm || norm->in[2] ||
        norm->attr.i[0] > 1)
        return false;
    if (n->attr.i[MATMUL_TRANS] != 2 || n->attr.i[MATMUL_READ] || n->in[MATMUL_RESIDUAL] ||
        n->acc_into[0] || is_floats(n->in[MATMUL_B]) || tg_single_user(g, a) != n)
        return false;
    if ((tg_type_rows(&a->type) > 1 && !g->rows_alone) || tg_type_cols(&a->type) % 4 != 0)
        return false;
    n->op = TG_OP_norm_matmul;
    n->n_in = NORM_MATMUL_N_IN;
    n->attr = (tg_attr) { .f = { norm->attr.f[0] } };
    n->in[MATMUL_A] = norm->in[0];
    n->in[NORM_MATMUL_GAIN] = norm->in[1];
    tg_node_remove(g, a->node);
    return true;
}

static bool fuse(tg_graph *g, tg_node *n) {
    return absorb_norm(g, n) || absorb_gates(g, n) || absorb_gelu(g, n) || absorb_add(g, n);
}

/* ----------------------------------------------------------------------------------- descriptor */

static double flop(const tg_args *args) {
    const sizes s = sizes_of(args->in_type, &args->attr);
    return 2.0 * (double)s.m * (double)s.n * (double)s.k;
}

#define NN(m, n, k)     { TG_T2(F32, m, k), TG_T2(F32, k, n), TG_ABSENT, TG_ABSENT }
#define TN(m, n, k)     { TG_T2(F32, k, m), TG_T2(F32, k, n), TG_ABSENT, TG_ABSENT }
#define NT(m, n, k)     { TG_T2(F32, m, k), TG_T2(F32, n, k), TG_ABSENT, TG_ABSENT }
#define NN_ALL(m, n, k) { TG_T2(F32, m, k), TG_T2(F32, k, n), TG_T1(F32, n), TG_T2(F32, m, n) }
#define TN_ALL(m, n, k) { TG_T2(F32, k, m), TG_T2(F32, k, n), TG_T1(F32, n), TG_T2(F32, m, n) }
#define NT_ALL(m, n, k) { TG_T2(F32, m, k), TG_T2(F32, n, k), TG_T1(F32, n), TG_T2(F32, m, n) }
/* What float sums of k products of unit normals keep to: k up to 300, and up to 1100. */
#define TOL                         2e-5
#define TOL_LONG                    8e-5
#define CASE(types, tr)             { .in = types, .attr = { .i = { tr } }, .tol = TOL }
#define CASE_LONG(types, tr)        { .in = types, .attr = { .i = { tr } }, .tol = TOL_LONG }
#define CASE_ACC(types, tr)         { .in = types, .attr = { .i = { tr } }, .tol = TOL, .acc = 1 }
#define CASE_ACT(types, tr, act, z) { .in = types, .attr = { .i = { tr, act, z } }, .tol = TOL }

/*
 * Of cases with packed weights: a is what 8 bits can say without loss, whole numbers with a 127 in
 * each block, so that kernels that round it are held to the tolerance of the others. Gates are then
 * so large that they let all or nothing through; floats have normals for gates.
 */
static void prepare(const tg_args *a) {
    TG_REAL *x = (TG_REAL *)(uintptr_t)a->in[MATMUL_A];
    for (int i = 0; i < MATMUL_PARTS && a->in[matmul_b[i]]; i++)
        tg_case_fill_packed(a, matmul_b[i], (uint32_t)i);
    const tg_packing p = a->in_type[MATMUL_B].layout;
    const int read = a->attr.i[MATMUL_READ];
    if (!tg_packing_is_integer(p) || a->attr.i[MATMUL_TRANS] != 2) return;
    const size_t n = tg_type_elems(&a->in_type[MATMUL_A]), depth = matmul_depth(a);
    const bool large = !read && tg_packing_small_bytes(p) > 0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)x[i] * 40;
        x[i] = (TG_REAL)tg_floor(v > 127 ? 127 : v < -127 ? -127 : v);
        if (i % 32 == 5 || (large && i % depth < 32)) x[i] = 127;
        if (read && i % (2 * depth) < depth) x[i] = i % 8 == 3 ? -90 : 64;
    }
}

static void prepare_scaling(const tg_args *a) {
    ((TG_REAL *)(uintptr_t)a->in[MATMUL_SCALING])[0] = (TG_REAL)0.25;
}

#define PACKED_CASE(b_, trans, m, cols, tol_)                                                      \
    { .in = { TG_T2(F32, m, cols), b_ },                                                           \
      .attr = { .i = { trans } },                                                                  \
      .prepare = prepare,                                                                          \
      .tol = (tol_) }
/* y = a b^T by packed weights [n,k], and by rows of floats; y = a b by both. */
#define PACKED(p, m, n, k, tol_)    PACKED_CASE(TG_CASE_MATRIX(p, n, k), 2, m, k, tol_)
#define ROWS(p, m, n, k, tol_)      PACKED_CASE(TG_T2(p, n, k), 2, m, k, tol_)
#define PACKED_DX(p, m, n, k, tol_) PACKED_CASE(TG_CASE_MATRIX(p, n, k), 0, m, n, tol_)
#define ROWS_DX(p, m, n, k, tol_)   PACKED_CASE(TG_T2(p, n, k), 0, m, n, tol_)
#define GATED(p, m, n, k, read, tol_)                                                              \
    { .in = { TG_T2(F32, m, 2 * (k)), TG_CASE_MATRIX(p, n, k) },                                   \
      .attr = { .i = { 2, 0, 0, TG_READ_##read } },                                                \
      .prepare = prepare,                                                                          \
      .tol = (tol_) }

TG_CASE_TABLE cases[] = {
    /* weights of files */
    PACKED(F32, 1, 1, 1, 1e-5),
    PACKED(F32, 3, 17, 13, 1e-5),
    PACKED(F32, 14, 33, 67, 2e-5),
    PACKED(F16, 2, 16, 31, 1e-5),
    PACKED(F16, 13, 40, 64, 1e-5),
    PACKED(BF16, 1, 31, 48, 1e-5),
    PACKED(Q4X16, 1, 16, 32, 1e-5),
    PACKED(Q4X16, 5, 35, 96, 1e-5),
    PACKED(Q4MX16, 1, 48, 64, 1e-5),
    PACKED(Q4MX16, 1, 576, 576, 2e-5),
    PACKED(Q4MX16, 29, 31, 160, 1e-5),
    PACKED(Q5X16, 1, 16, 64, 1e-5),
    PACKED(Q5X16, 12, 33, 32, 1e-5),
    PACKED(Q5MX16, 1, 17, 64, 1e-5),
    PACKED(Q5MX16, 7, 16, 96, 1e-5),
    PACKED(Q8X16, 1, 1, 32, 2e-5),
    PACKED(Q8X16, 1, 100, 96, 2e-5),
    PACKED(Q8X16, 131, 18, 64, 5e-5),
    PACKED(Q4KX16, 1, 16, 256, 2e-5),
    PACKED(Q4KX16, 13, 33, 512, 5e-5),
    PACKED(Q8MX16, 1, 32, 64, 2e-5),
    /* Sums of products of up to 127 x 13 that may end near 0: in float the worst of such a matrix
     * is off by 3e-5 in the median of random ones, by more than 5e-5 in a third of them and by more
     * than 3e-4 in a hundredth, in any order; whole numbers are added up exactly. */
    PACKED(Q8MX16, 25, 19, 96, 3e-4),
    { .in = { TG_T3(F32, 2, 2, 64), TG_CASE_MATRIX(Q4MX16, 33, 64), TG_T1(F32, 54),
              TG_T3(F32, 2, 2, 54), TG_CASE_MATRIX(Q8X16, 16, 64), TG_CASE_MATRIX(F32, 5, 64) },
      .attr = { .i = { 2 } },
      .prepare = prepare,
      .tol = 2e-5 },
    { .in = { TG_T2(F32, 37, 96), TG_CASE_MATRIX(Q5X16, 16, 96), TG_ABSENT, TG_T2(F32, 37, 33),
              TG_CASE_MATRIX(Q8MX16, 17, 96) },
      .attr = { .i = { 2 } },
      .prepare = prepare,
      .tol = 1e-4 },
    GATED(F32, 3, 17, 20, SILU, 1e-5),
    GATED(F32, 15, 16, 32, GELU_TANH, 1e-5),
    GATED(Q4MX16, 1, 33, 64, SILU, 2e-5),
    GATED(Q8X16, 17, 20, 96, GELU_TANH, 5e-5),
    ROWS(F16, 1, 40, 64, 1e-5),
    ROWS(F16, 3, 17, 31, 1e-5),
    ROWS(F16, 13, 35, 39, 1e-5),
    ROWS(BF16, 4, 31, 48, 1e-5),
    ROWS(BF16, 14, 18, 7, 1e-5),
    /* their gradient: rows around the register tile of 4, those of b around a group of 16, columns
     * around a unit of 64 */
    PACKED_DX(F32, 1, 1, 1, 1e-5),
    PACKED_DX(F32, 3, 15, 63, 1e-5),
    PACKED_DX(F32, 4, 17, 64, 1e-5),
    PACKED_DX(F16, 5, 16, 65, 1e-5),
    PACKED_DX(BF16, 7, 31, 131, 1e-5),
    PACKED_DX(Q4X16, 1, 16, 32, 1e-5),
    PACKED_DX(Q4MX16, 9, 35, 96, 2e-5),
    PACKED_DX(Q5X16, 12, 33, 32, 1e-5),
    PACKED_DX(Q5MX16, 3, 17, 64, 1e-5),
    PACKED_DX(Q8X16, 13, 18, 160, 5e-5),
    PACKED_DX(Q4KX16, 2, 33, 256, 2e-5),
    PACKED_DX(Q8MX16, 5, 19, 96, 5e-5),
    { .in = { TG_T3(F32, 2, 2, 54), TG_CASE_MATRIX(Q4MX16, 33, 64), TG_ABSENT, TG_ABSENT,
              TG_CASE_MATRIX(Q8X16, 16, 64), TG_CASE_MATRIX(F32, 5, 64) },
      .prepare = prepare,
      .tol = 2e-5 },
    ROWS_DX(F16, 3, 17, 31, 1e-5),
    ROWS_DX(BF16, 4, 31, 48, 1e-5),
    /* sums that start from what is there */
    { .in = { TG_T2(F32, 3, 64), TG_CASE_MATRIX(Q4MX16, 33, 64) },
      .attr = { .i = { 2 } },
      .prepare = prepare,
      .tol = 2e-5,
      .acc = 1 },
    { .in = { TG_T2(F32, 3, 33), TG_CASE_MATRIX(Q8X16, 33, 96) },
      .prepare = prepare,
      .tol = 2e-5,
      .acc = 1 },
    /* floats: tiles are 12 x 32, 6 x 16 and 2 x 16; blocks of k 384, with bf16 768 */
    CASE(NN(1, 1, 1), 0),
    CASE(TN(1, 1, 1), 1),
    CASE(NT(1, 1, 1), 2),
    CASE(NN(11, 31, 17), 0),
    CASE(NN(12, 32, 16), 0),
    CASE(NN(13, 33, 15), 0),
    CASE(TN(11, 31, 17), 1),
    CASE(TN(12, 32, 16), 1),
    CASE(TN(13, 33, 15), 1),
    CASE(NT(11, 31, 17), 2),
    CASE(NT(12, 32, 16), 2),
    CASE(NT(13, 33, 15), 2),
    CASE(NN(37, 101, 53), 0),
    CASE(TN(37, 101, 53), 1),
    CASE(NT(37, 101, 53), 2),
    /* few rows, wide and narrow */
    CASE(NN(1, 337, 29), 0),
    CASE(NN(2, 160, 64), 0),
    CASE(NN(3, 96, 31), 0),
    CASE(NN(4, 79, 17), 0),
    CASE(NT(1, 67, 130), 2),
    CASE(NT(4, 33, 47), 2),
    /* several blocks of k, several units, edges on all sides */
    CASE_LONG(NN(29, 70, 600), 0),
    CASE_LONG(NT(29, 70, 600), 2),
    CASE_LONG(TN(61, 300, 600), 1),
    CASE_LONG(TN(29, 70, 800), 1),
    CASE(NN(200, 420, 19), 0),
    /* on a GPU tiles of 32 and 64, in fours, and k in parts of 128 or more */
    CASE(NN(70, 132, 36), 0),
    CASE(NT(70, 132, 36), 2),
    CASE(TN(132, 68, 35), 1),
    CASE(NN(130, 64, 20), 0),
    CASE_LONG(TN(40, 72, 391), 1),
    /* rows 4 KiB apart */
    CASE(TN(1024, 40, 37), 1),
    CASE(TN(20, 1024, 37), 1),
    CASE(NN(14, 1024, 21), 0),
    CASE_LONG(NN(14, 34, 1024), 0),
    /* more dimensions: rows are all but the last */
    { .in = { TG_T3(F32, 2, 9, 20), TG_T2(F32, 20, 35), TG_T1(F32, 35), TG_T3(F32, 2, 9, 35) },
      .tol = TOL },
    { .in = { TG_T3(F32, 2, 9, 20), TG_T3(F32, 2, 9, 35), TG_ABSENT, TG_ABSENT },
      .attr = { .i = { 1 } },
      .tol = TOL },
    { .in = { TG_T1(F32, 20), TG_T2(F32, 20, 35), TG_T1(F32, 35), TG_ABSENT }, .tol = TOL },
    /* what follows the sum */
    CASE_ACT(NN_ALL(13, 45, 24), 0, TG_ACT_NONE, 0),
    CASE_ACT(NN_ALL(13, 45, 24), 0, TG_ACT_NONE, 1),
    CASE_ACT(NN_ALL(13, 45, 24), 0, TG_ACT_GELU_ERF, 1),
    CASE_ACT(NT_ALL(25, 64, 270), 2, TG_ACT_GELU_ERF, 0),
    CASE_ACT(TN_ALL(25, 64, 270), 1, TG_ACT_GELU_TANH, 1),
    CASE_ACT(NN_ALL(3, 45, 24), 0, TG_ACT_GELU_TANH, 0),
    CASE_ACT(NT_ALL(2, 45, 24), 2, TG_ACT_GELU_ERF, 1),
    { .in = { TG_T2(F32, 14, 30), TG_T2(F32, 30, 64), TG_T1(F32, 64), TG_ABSENT }, .tol = TOL },
    { .in = { TG_T2(F32, 14, 30), TG_T2(F32, 30, 64), TG_ABSENT, TG_T2(F32, 14, 64) }, .tol = TOL },
    /* rows that a GPU takes one by one */
    { .in = NN_ALL(13, 45, 24), .tol = TOL, .rows_alone = true },
    { .in = NT_ALL(17, 64, 270), .attr = { .i = { 2 } }, .tol = TOL, .rows_alone = true },
    /* sums that start from what is there */
    CASE_ACC(NN(13, 45, 24), 0),
    CASE_ACC(NN(2, 45, 24), 0),
    { .in = NT(13, 64, 600), .attr = { .i = { 2 } }, .tol = TOL_LONG, .acc = 1 },
    CASE_ACC(TN(13, 45, 24), 1),
    { .in = TN(61, 100, 530), .attr = { .i = { 1 } }, .tol = TOL_LONG, .acc = 1 },
    { .in = NN_ALL(13, 45, 24), .attr = { .i = { 0, TG_ACT_GELU_ERF, 1 } }, .tol = TOL, .acc = 1 },
    /* one row on a GPU: eight rows a workgroup, 32 blocks at a time, 96 in its memory, 128 in 8
       bits */
    PACKED(Q4X16, 1, 9, 1056, 5e-5),
    PACKED(Q4MX16, 1, 7, 3104, 5e-5),
    PACKED(Q5X16, 1, 17, 2080, 5e-5),
    PACKED(Q5MX16, 1, 8, 1120, 5e-5),
    PACKED(Q8X16, 1, 23, 6176, 1e-4),
    PACKED(Q4KX16, 1, 9, 3328, 1e-4),
    PACKED(Q8MX16, 1, 15, 1056, 1e-4),
    ROWS(F16, 1, 9, 3109, 5e-5),
    /* many rows on a GPU, by tiles of 32 and 64 */
    PACKED(F32, 17, 66, 36, 2e-5),
    PACKED(F16, 35, 37, 100, 2e-5),
    PACKED(Q4X16, 70, 100, 96, 2e-5),
    PACKED(Q5X16, 33, 67, 64, 2e-5),
    PACKED(Q5MX16, 64, 64, 128, 2e-5),
    PACKED(Q4KX16, 19, 37, 256, 5e-5),
    GATED(Q4MX16, 65, 40, 64, SILU, 5e-5),
    ROWS(F16, 40, 33, 68, 2e-5),
    ROWS(BF16, 66, 70, 20, 2e-5),
    { .in = { TG_T2(F32, 17, 1056), TG_CASE_MATRIX(Q4MX16, 21, 1056) },
      .attr = { .i = { 2 } },
      .prepare = prepare,
      .tol = 5e-5,
      .rows_alone = true },
    /* gradients that a shader in f16 scales by 64 times a quarter */
    { .in = { TG_T2(F32, 9, 20), TG_T2(F32, 20, 36), TG_ABSENT, TG_ABSENT, TG_ABSENT, TG_ABSENT,
              TG_T1(F32, 4) },
      .attr = { .f = { 64 } },
      .prepare = prepare_scaling,
      .tol = TOL },
    { .in = { TG_T2(F32, 20, 12), TG_T2(F32, 20, 36), TG_ABSENT, TG_ABSENT, TG_ABSENT, TG_ABSENT,
              TG_T1(F32, 4) },
      .attr = { .i = { 1 }, .f = { 0, 64 } },
      .prepare = prepare_scaling,
      .tol = TOL },
    /* one row on a GPU in 8 bits: the second and the third time that its memory is filled */
    PACKED(Q4X16, 1, 9, 4128, 1e-4),
    PACKED(Q4MX16, 1, 7, 8224, 2e-4),
};

static const char *const common[] = {
#include "ops/matmul/shaders/matmul_common.wgsl.h"
};
static const char *const tile[] = {
#include "ops/matmul/shaders/matmul_tile.wgsl.h"
};
static const char *const few[] = {
#include "ops/matmul/shaders/matmul_few.wgsl.h"
};
static const char *const packed_text[] = {
#include "ops/packed.wgsl.h"
};
static const char *const weights[] = {
#include "ops/matmul/shaders/packed/matmul_weights.wgsl.h"
};
static const char *const words[] = {
#include "ops/matmul/shaders/packed/matmul_words.wgsl.h"
};
static const char *const values_fours[] = {
#include "ops/matmul/shaders/packed/matmul_values_fours.wgsl.h"
};
static const char *const values[] = {
#include "ops/matmul/shaders/packed/matmul_values.wgsl.h"
};
static const char *const added[] = {
#include "ops/matmul/shaders/matmul_added.wgsl.h"
};
static const char *const packed_rows[] = {
#include "ops/packed_rows.wgsl.h"
};
static const char *const packed[] = {
#include "ops/matmul/shaders/packed/matmul_packed.wgsl.h"
};
static const char *const packed_one[] = {
#include "ops/matmul/shaders/packed/matmul_packed_one.wgsl.h"
};
static const char *const packed_tile[] = {
#include "ops/matmul/shaders/packed/matmul_packed_tile.wgsl.h"
};
static const char *const packed_dx[] = {
#include "ops/matmul/shaders/packed/matmul_packed_dx.wgsl.h"
};
static const char *const right[] = {
#include "ops/matmul/shaders/matmul_right.wgsl.h"
};
static const char *const core[] = {
#include "ops/matmul/shaders/matmul_core.wgsl.h"
};
static const char *const operands[] = {
#include "ops/matmul/shaders/matmul_ops.wgsl.h"
};
static const char *const finish[] = {
#include "ops/matmul/shaders/matmul_finish.wgsl.h"
};
static const char *const whole[] = {
#include "ops/matmul/shaders/matmul_whole.wgsl.h"
};
static const char *const parts[] = {
#include "ops/matmul/shaders/matmul_parts.wgsl.h"
};
static const char *const gather[] = {
#include "ops/matmul/shaders/matmul_gather.wgsl.h"
};
static sizes args_sizes(const tg_args *a) { return sizes_of(a->in_type, &a->attr); }

/* A tile of 64 rows would be nearly empty. */
static bool fits_few(const tg_args *a) {
    return matmul_b_is_floats(a) && (args_sizes(a).m <= 8 || a->rows_alone);
}
static size_t few_groups(const tg_args *a) {
    const sizes s = args_sizes(a);
    return s.m * tg_shader_parts(s.n, 16);
}

/* Weights of files: sixteen rows of one matrix and four of a are a workgroup, or eight and one. */
static bool fits_packed(const tg_args *a) {
    return !matmul_b_is_floats(a) && a->attr.i[MATMUL_TRANS] == 2;
}
static bool fits_one_row(const tg_args *a) {
    return fits_packed(a) && (args_sizes(a).m == 1 || a->rows_alone);
}
static size_t one_row_groups(const tg_args *a) {
    return tg_packed_across(a, TG_PACKED_ONE_ROWS) * args_sizes(a).m;
}
static bool fits_nibbles(const tg_args *a) { return fits_one_row(a) && tg_packed_is_nibbles(a); }
static size_t packed_groups(const tg_args *a) {
    return tg_packed_across(a, TG_PACK_ROWS) * tg_shader_parts(args_sizes(a).m, 4);
}

/* Many rows are made by tiles, of which this many columns of y are one. */
static bool fits_packed_tiles(const tg_args *a) {
    return fits_packed(a) && args_sizes(a).m >= 16 && args_sizes(a).k % 4 == 0;
}
static size_t packed_tiles(const tg_args *a, size_t size) {
    return tg_packed_across(a, size) * tg_shader_parts(args_sizes(a).m, size);
}
static size_t packed_groups_32(const tg_args *a) { return packed_tiles(a, 32); }
static size_t packed_groups_64(const tg_args *a) { return packed_tiles(a, 64); }
/* Two workgroups for each core of a large card: the k of weights is not cut in parts. */
static bool packed_prefers_64(const tg_args *a) { return packed_tiles(a, 64) >= 264; }
static bool packed_prefers_32(const tg_args *a) { return packed_tiles(a, 32) >= 264; }

/* 32 columns and four rows of the gradient are a workgroup. */
static bool fits_packed_dx(const tg_args *a) {
    return !matmul_b_is_floats(a) && a->attr.i[MATMUL_TRANS] == 0;
}
static size_t packed_dx_groups(const tg_args *a) {
    return tg_shader_parts(args_sizes(a).n, TG_PACK_COLS) * tg_shader_parts(args_sizes(a).m, 4);
}

/* The others read and write fours along what is contiguous in memory. */
static bool in_fours(const tg_args *a, int trans) {
    const sizes s = args_sizes(a);
    return matmul_b_is_floats(a) && a->attr.i[0] == trans && s.n % 4 == 0 &&
           (trans == 1 ? s.m : s.k) % 4 == 0;
}
static bool fits_0(const tg_args *a) { return in_fours(a, 0); }
static bool fits_1(const tg_args *a) { return in_fours(a, 1); }
static bool fits_2(const tg_args *a) { return in_fours(a, 2); }

static size_t tiles(const tg_args *a, size_t size) {
    const sizes s = args_sizes(a);
    return tg_matmul_tiles(s.m, s.n, size);
}
static size_t groups_32(const tg_args *a) { return tiles(a, 32); }
static size_t groups_64(const tg_args *a) { return tiles(a, 64); }

/* How long the parts of k are, and how many. */
static size_t part_of(const tg_args *a, size_t size) {
    return tg_matmul_part(tiles(a, size) * args_sizes(a).k);
}
static size_t parts_of(const tg_args *a, size_t size) {
    return tg_shader_parts(args_sizes(a).k, part_of(a, size));
}
static uint32_t word_32(const tg_args *a) { return (uint32_t)part_of(a, 32); }
static uint32_t word_64(const tg_args *a) { return (uint32_t)part_of(a, 64); }
static size_t parts_groups_32(const tg_args *a) { return tiles(a, 32) * parts_of(a, 32); }
static size_t parts_groups_64(const tg_args *a) { return tiles(a, 64) * parts_of(a, 64); }
static size_t parts_bytes_32(const tg_args *a) {
    return parts_of(a, 32) * args_sizes(a).m * args_sizes(a).n * sizeof(float);
}
static size_t parts_bytes_64(const tg_args *a) {
    return parts_of(a, 64) * args_sizes(a).m * args_sizes(a).n * sizeof(float);
}
static size_t gather_groups(const tg_args *a) {
    return tg_shader_parts(args_sizes(a).m * args_sizes(a).n / 4, 64);
}

/* In the order in which they are asked. */
static bool prefers_32(const tg_args *a) {
    return !tg_matmul_fills(tiles(a, 64) * args_sizes(a).k);
}
static bool prefers_32_parts(const tg_args *a) { return prefers_32(a) && parts_of(a, 32) > 1; }
static bool prefers_64_parts(const tg_args *a) { return parts_of(a, 64) > 1; }

#define BIND                                                                                       \
    { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0), TG_BIND_OUT(1) }
#define OF(trans, size) "const TRANS = " #trans "; const TILE = " #size "u;\n"

#define WHOLE(trans, size)                                                                         \
    .pass = { { .entry = "main",                                                                   \
                .constants = OF(trans, size),                                                      \
                .wgsl = { core, right, operands, finish, whole },                                  \
                .fours = true,                                                                     \
                .bind = BIND,                                                                      \
                .groups = groups_##size } }
#define TILED(trans, size, preferred)                                                              \
    { .name = #size "x" #size, .fits = fits_##trans, .prefers = preferred, WHOLE(trans, size) }
#define PARTS(trans, size)                                                                         \
    { .name = #size "x" #size ", k in parts",                                                      \
      .fits = fits_##trans,                                                                        \
      .prefers = prefers_##size##_parts,                                                           \
      .word = word_##size,                                                                         \
      .pass = { { .entry = "parts",                                                                \
                  .constants = OF(trans, size),                                                    \
                  .wgsl = { core, right, operands, parts },                                        \
                  .fours = true,                                                                   \
                  .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_SCRATCH },                       \
                  .groups = parts_groups_##size },                                                 \
                { .entry = "gather",                                                               \
                  .wgsl = { finish, gather },                                                      \
                  .bind = { TG_BIND_SCRATCH, TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_OUT(0),         \
                            TG_BIND_OUT(1) },                                                      \
                  .groups = gather_groups } },                                                     \
      .scratch_bytes = parts_bytes_##size }
#define ALL(trans)                                                                                 \
    PARTS(trans, 32), TILED(trans, 32, prefers_32), PARTS(trans, 64), TILED(trans, 64, NULL)

#define OF_WEIGHTS(text, count)                                                                    \
    .word = tg_packed_word,                                                                        \
    .pass = { { .entry = "main",                                                                   \
                .wgsl = { values, words, weights, added, packed_text, packed_rows, text },         \
                .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3),              \
                          TG_BIND_IN(4), TG_BIND_IN(5), TG_BIND_OUT(0) },                          \
                .groups = count } }

/* matmul_one_row.h */
#define ONE_ROW_TEXTS values_fours, four_words, weights, added, packed_text

#define PACKED_TILES(size, preferred)                                                              \
    {                                                                                              \
        .name = "packed, " #size "x" #size, .fits = fits_packed_tiles, .prefers = preferred,       \
        .word = tg_packed_word, .pass = {                                                          \
            { .entry = "main",                                                                     \
              .constants = "const TILE = " #size "u;\n",                                           \
              .wgsl = { core, words, weights, added, packed_text, packed_tile },                   \
              .fours = true,                                                                       \
              .bind = { TG_BIND_IN(0), TG_BIND_IN(1), TG_BIND_IN(2), TG_BIND_IN(3), TG_BIND_IN(4), \
                        TG_BIND_IN(5), TG_BIND_OUT(0) },                                           \
              .groups = packed_groups_##size }                                                     \
        }                                                                                          \
    }

#include "ops/matmul/matmul_halves.h"

static const tg_shader shaders[] = {
    { .name = "few rows",
      .fits = fits_few,
      .pass = { { .entry = "main",
                  .wgsl = { common, few },
                  .bind = BIND,
                  .groups = few_groups } } },
    NIBBLES_FLOATS,
    { .name = "packed, one row", .fits = fits_one_row, OF_WEIGHTS(packed_one, one_row_groups) },
    PACKED_TILES(64, packed_prefers_64),
    PACKED_TILES(32, packed_prefers_32),
    { .name = "packed", .fits = fits_packed, OF_WEIGHTS(packed, packed_groups) },
    { .name = "packed, gradient", .fits = fits_packed_dx, OF_WEIGHTS(packed_dx, packed_dx_groups) },
    ALL(0),
    ALL(1),
    ALL(2),
    { .name = "64x64, one by one",
      .fits = matmul_b_is_floats,
      .pass = { { .entry = "main",
                  .wgsl = { common, tile },
                  .bind = BIND,
                  .groups = groups_64 } } },
    HALVES(0, 1, 0),
    HALVES(1, 0, 0),
    HALVES(2, 1, 1),
    PACKED_HALVES,
    NIBBLES_ROUNDED,
};

/* ------------------------------------------------------------------------- back through a layer
 *
 * dx = dy w^T leads; dw = x^T dy and db, the column sums of dy, join it, and gelu_grad if it reads
 * nothing but dx. See matmul_back.wgsl.
 */

static const char *const back[] = {
#include "ops/matmul/shaders/matmul_back.wgsl.h"
};
static const char *const back_finish[] = {
#include "ops/matmul/shaders/matmul_back_finish.wgsl.h"
};
static const char *const back_gather[] = {
#include "ops/matmul/shaders/matmul_back_gather.wgsl.h"
};

static bool joins(const tg_graph *g, const tg_node *dx, const tg_node *n, unsigned member) {
    if (dx->attr.i[0] != 2 || dx->attr.i[1] != TG_ACT_NONE || dx->in[2] || dx->in[3] ||
        dx->n_out > 1 || dx->acc_into[0])
        return false;
    if (member == 1)
        return n->op == TG_OP_matmul && n->attr.i[0] == 1 && n->attr.i[1] == TG_ACT_NONE &&
               n->in[1] == dx->in[0] && !n->in[2] && !n->in[3] && n->n_out == 1 &&
               n->in[0] != dx->in[0];
    if (member == 2) return n->op == TG_OP_bias_grad && n->in[0] == dx->in[0];
    return n->op == TG_OP_gelu_grad && n->in[1] == &dx->out[0] && n->in[0] != n->in[1] &&
           !n->acc_into[0] && tg_count_uses(g, &dx->out[0]) == 1;
}

/* Member 1 is [in, out] of w's shape; a gelu, if there is one, is the erf. */
static bool fits_back(const tg_args *a) {
    const tg_type *dy = &a[0].in_type[0], *w = &a[0].in_type[1], *x = &a[1].in_type[0];
    return tg_type_cols(dy) % 4 == 0 && tg_type_rows(w) % 4 == 0 &&
           tg_type_cols(x) == tg_type_rows(w) && tg_type_rows(x) == tg_type_rows(dy);
}
static bool fits_back_gelu(const tg_args *a) {
    return fits_back(a) && a[3].attr.i[0] == TG_ACT_GELU_ERF;
}

static sizes dx_sizes(const tg_args *a) { return args_sizes(&a[0]); }
static sizes dw_sizes(const tg_args *a) { return args_sizes(&a[1]); }
static size_t back_tiles(const tg_args *a, size_t size) {
    const sizes x = dx_sizes(a), w = dw_sizes(a);
    return tg_matmul_tiles(x.m, x.n, size) + tg_matmul_tiles(w.m, w.n, size);
}
static size_t back_work(const tg_args *a, size_t size) {
    const sizes x = dx_sizes(a), w = dw_sizes(a);
    return tg_matmul_tiles(x.m, x.n, size) * x.k + tg_matmul_tiles(w.m, w.n, size) * w.k;
}
static size_t back_groups_32(const tg_args *a) { return back_tiles(a, 32); }
static size_t back_groups_64(const tg_args *a) { return back_tiles(a, 64); }

static uint32_t back_word_32(const tg_args *a) {
    return (uint32_t)tg_matmul_part(back_work(a, 32));
}
static uint32_t back_word_64(const tg_args *a) {
    return (uint32_t)tg_matmul_part(back_work(a, 64));
}
static size_t parts_groups(const tg_args *a, size_t size, size_t part) {
    const sizes x = dx_sizes(a), w = dw_sizes(a);
    return tg_matmul_tiles(x.m, x.n, size) * tg_shader_parts(x.k, part) +
           tg_matmul_tiles(w.m, w.n, size) * tg_shader_parts(w.k, part);
}
static size_t back_parts_groups_32(const tg_args *a) {
    return parts_groups(a, 32, back_word_32(a));
}
static size_t back_parts_groups_64(const tg_args *a) {
    return parts_groups(a, 64, back_word_64(a));
}
/* What is cut, in elements: its parts, or once. */
static size_t cut_elems(const tg_args *a, size_t part, bool all_parts) {
    const sizes x = dx_sizes(a), w = dw_sizes(a);
    const size_t of_x = tg_shader_parts(x.k, part), of_w = tg_shader_parts(w.k, part);
    return (of_x > 1 ? (all_parts ? of_x : 1) * x.m * x.n : 0) +
           (of_w > 1 ? (all_parts ? of_w : 1) * (w.m + 1) * w.n : 0);
}
static size_t back_bytes_32(const tg_args *a) {
    return cut_elems(a, back_word_32(a), true) * sizeof(float);
}
static size_t back_bytes_64(const tg_args *a) {
    return cut_elems(a, back_word_64(a), true) * sizeof(float);
}
static size_t back_gather_32(const tg_args *a) {
    return tg_shader_parts(cut_elems(a, back_word_32(a), false) / 4, 64);
}
static size_t back_gather_64(const tg_args *a) {
    return tg_shader_parts(cut_elems(a, back_word_64(a), false) / 4, 64);
}

static bool prefers_back_32(const tg_args *a) { return !tg_matmul_fills(back_work(a, 64)); }
static bool prefers_back_32_parts(const tg_args *a) {
    return prefers_back_32(a) && cut_elems(a, back_word_32(a), false) > 0;
}
static bool prefers_back_64_parts(const tg_args *a) {
    return cut_elems(a, back_word_64(a), false) > 0;
}

#define BACK_OPS { TG_OP_matmul, TG_OP_matmul, TG_OP_bias_grad, TG_OP_gelu_grad }
#define BACK_OF(size, gelu, in_parts)                                                              \
    "const TILE = " #size "u; const GELU = " #gelu "; const PARTS = " #in_parts ";\n"
#define BACK_PASS(size, gelu, in_parts, out, count)                                                \
    { .entry = "back",                                                                             \
      .constants = BACK_OF(size, gelu, in_parts),                                                  \
      .wgsl = { core, right, back_finish, back },                                                  \
      .fours = true,                                                                               \
      .bind = { TG_BIND_OF(0, TG_BIND_IN(0)), TG_BIND_OF(0, TG_BIND_IN(1)), out,                   \
                TG_BIND_OF(3, TG_BIND_IN(0)), TG_BIND_OF(1, TG_BIND_IN(0)),                        \
                TG_BIND_OF(1, TG_BIND_OUT(0)), TG_BIND_OF(2, TG_BIND_OUT(0)), TG_BIND_SCRATCH },   \
      .groups = count }
#define BACK_WHOLE(n, fit, size, gelu, out, preferred)                                             \
    {                                                                                              \
        .n_members = n, .ops = BACK_OPS, .joins = joins, .shader = {                               \
            .name = "layer back, " #size "x" #size,                                                \
            .fits = fit,                                                                           \
            .prefers = preferred,                                                                  \
            .pass = { BACK_PASS(size, gelu, 0, out, back_groups_##size) }                          \
        }                                                                                          \
    }
#define BACK_PARTS(n, fit, size, gelu, out)                                                        \
    {                                                                                              \
        .n_members = n, .ops = BACK_OPS, .joins = joins, .shader = {                               \
            .name = "layer back, " #size "x" #size ", k in parts",                                 \
            .fits = fit,                                                                           \
            .prefers = prefers_back_##size##_parts,                                                \
            .word = back_word_##size,                                                              \
            .pass = { BACK_PASS(size, gelu, 1, out, back_parts_groups_##size),                     \
                      { .entry = "gather",                                                         \
                        .constants = "const GELU = " #gelu ";\n",                                  \
                        .wgsl = { back_finish, back_gather },                                      \
                        .bind = { TG_BIND_SCRATCH, out, TG_BIND_OF(3, TG_BIND_IN(0)),              \
                                  TG_BIND_OF(1, TG_BIND_OUT(0)), TG_BIND_OF(2, TG_BIND_OUT(0)) },  \
                        .groups = back_gather_##size } },                                          \
            .scratch_bytes = back_bytes_##size                                                     \
        }                                                                                          \
    }
#define BACK(n, fit, gelu, out)                                                                    \
    BACK_PARTS(n, fit, 32, gelu, out), BACK_WHOLE(n, fit, 32, gelu, out, prefers_back_32),         \
        BACK_PARTS(n, fit, 64, gelu, out), BACK_WHOLE(n, fit, 64, gelu, out, NULL)

static const tg_merge merges[] = {
    BACK(4, fits_back_gelu, 1, TG_BIND_OF(3, TG_BIND_OUT(0))),
    BACK(3, fits_back, 0, TG_BIND_OF(0, TG_BIND_OUT(0))),
};

/* In one dispatch with all other steps. */
static bool fits_grid(const tg_args *a) {
    return fits_packed(a) && a->attr.i[MATMUL_ACT] == TG_ACT_NONE && args_sizes(a).m == 1 &&
           args_sizes(a).k % 4 == 0;
}
static const tg_grid grid = {
    .fits = fits_grid,
    .word = tg_packed_word,
    .share = matmul_grid_share,
    .phase = { MATMUL_GRID_PHASE(1 << 1 | 1 << 2 | 1 << 4 | 1 << 5) },
};

TG_OP_DESC(matmul) = {
    .name = "matmul",
    TG_DOC "y = act(f(a) b + bias) + residual, with a or b read as its transpose; b floats, or "
           "up to three packed matrices, whose rows it has",
    .in_names = { "a", "b", "bias", "residual", "b1", "b2", "scaling" },
    .out_names = { "y", "z" },
    .n_in = MATMUL_N_IN,
    .n_in_optional = 5,
    .reads_packed = 1 << MATMUL_B | 1 << MATMUL_B1 | 1 << MATMUL_B2,
    .n_out = 2,
    .accumulates = 1,
    .infer = infer,
    TG_REFS(matmul, ref),
    TG_SHADERS(shaders),
    TG_GRID(grid),
    TG_MERGES(merges),
    .grad = grad,
    .fuse = fuse,
    .flop = flop,
    TG_CASES(cases),
};
