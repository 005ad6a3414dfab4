/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_layer.c - see gpu_layer.h.
 *
 *     forward   z [M,N] = x [M,K] w [K,N]
 *     back      dx [M,K] = dy w^T   dw [K,N] = x^T dy   db [N] = columns of dy   dz = gelu'(v) dx
 *
 * A merge of four computes dw, db and dz, and leaves dx unwritten; one of three dx, dw and db.
 */
#include "backend/webgpu/device/gpu_layer.h"

#include "backend/cpu/check.h"
#include "base/math.h"
#include "ops/build.h"

/* Beyond a tile of 64 rows, fours everywhere, and a sum over rows that is cut in parts. */
enum { M = 260, N = 20, K = 36 };
/* What float sums of that length keep to. */
#define TOLERANCE 2e-5

typedef struct layer {
    float x[M * K], w[K * N], dy[M * N], v[M * K];                         /* inputs */
    float z[2][M * N], dx[2][M * K], dw[2][K * N], db[2][N], dz[2][M * K]; /* wanted, found */
    tg_scalars rt;
    tg_args args[TG_MAX_MEMBERS];
} layer;

static tg_args step(const layer *l, const float *a, tg_type a_type, const float *b, tg_type b_type,
                    float *out, tg_type type) {
    tg_args s = { .in = { a }, .out = { out }, .in_type = { a_type }, .out_type = { type } };
    s.rt = &l->rt;
    s.workers = 1;
    if (!b) return s;
    s.in[1] = b;
    s.in_type[1] = b_type;
    return s;
}

/* side 0: what the references write; 1: the GPU. */
static void set_forward(layer *l, int side) {
    l->args[0] = step(l, l->x, tg_type_2d(TG_F32, M, K), l->w, tg_type_2d(TG_F32, K, N), l->z[side],
                      tg_type_2d(TG_F32, M, N));
}

static void set_back(layer *l, int side) {
    const tg_type mn = tg_type_2d(TG_F32, M, N), kn = tg_type_2d(TG_F32, K, N),
                  mk = tg_type_2d(TG_F32, M, K), n = tg_type_1d(TG_F32, N);
    l->args[0] = step(l, l->dy, mn, l->w, kn, l->dx[side], mk);
    l->args[1] = step(l, l->x, mk, l->dy, mn, l->dw[side], kn);
    l->args[2] = step(l, l->dy, mn, NULL, mn, l->db[side], n);
    l->args[3] = step(l, l->v, mk, l->dx[0], mk, l->dz[side], mk);
    l->args[0].attr.i[0] = 2;
    l->args[1].attr.i[0] = 1;
    l->args[3].attr.i[0] = TG_ACT_GELU_ERF;
}

static bool compare(const tg_shader *s, const char *what, const float *want, const float *have,
                    size_t n, char *found, size_t room) {
    for (size_t i = 0; i < n; i++) {
        const double error = tg_fabs((double)have[i] - (double)want[i]);
        if (error <= TOLERANCE * (1 + tg_fabs((double)want[i]))) continue;
        snprintf(found, room, "%s, %s: want an error up to %.0e, found %.1e", s->name, what,
                 TOLERANCE, error);
        return false;
    }
    return true;
}

/* What a plan would take at this shape, by the rule. */
static bool is_chosen(const tg_shader *s, const tg_args *a) {
    return (!s->fits || s->fits(a)) && (!s->prefers || s->prefers(a));
}

/* The op that leads merges. */
static const tg_op_desc *leader(void) {
    int op = 0;
    while (op + 1 < TG_OP_COUNT && tg_op_table[op]->n_merges == 0) op++;
    return tg_op_table[op];
}

static const tg_shader *chosen_shader(const tg_args *a) {
    const tg_op_desc *d = leader();
    size_t i = 0;
    while (i + 1 < d->n_shaders && !is_chosen(&d->shaders[i], a)) i++;
    return &d->shaders[i];
}

/* Of each number of members the first that is chosen. */
static void choose_merges(const tg_args *a, const tg_merge *chosen[TG_MAX_MEMBERS + 1]) {
    const tg_op_desc *d = leader();
    for (size_t i = 0; i < d->n_merges; i++) {
        const tg_merge *m = &d->merges[i];
        if (!chosen[m->n_members] && is_chosen(&m->shader, a)) chosen[m->n_members] = m;
    }
}

static tg_status compile(layer *l, tg_gpu_bench *bench) {
    const tg_merge *chosen[TG_MAX_MEMBERS + 1] = { NULL };
    set_forward(l, 1);
    TG_TRY(tg_gpu_bench_compile(bench, chosen_shader(l->args)));
    set_back(l, 1);
    choose_merges(l->args, chosen);
    for (unsigned n = 0; n <= TG_MAX_MEMBERS; n++)
        if (chosen[n]) TG_TRY(tg_gpu_bench_compile(bench, &chosen[n]->shader));
    return TG_OK;
}

static tg_status try_forward(layer *l, tg_gpu_bench *bench, char *found, size_t room) {
    set_forward(l, 0);
    leader()->ref(l->args);
    set_forward(l, 1);
    const tg_shader *s = chosen_shader(l->args);
    TG_TRY(tg_gpu_bench_run(bench, leader(), s, l->args, 0));
    compare(s, "z", l->z[0], l->z[1], M * N, found, room);
    return TG_OK;
}

static tg_status try_merge(layer *l, tg_gpu_bench *bench, const tg_merge *m, char *found,
                           size_t room) {
    TG_TRY(tg_gpu_bench_run_merge(bench, leader(), &m->shader, l->args, m->n_members, 0));
    if (!compare(&m->shader, "dw", l->dw[0], l->dw[1], K * N, found, room)) return TG_OK;
    if (!compare(&m->shader, "db", l->db[0], l->db[1], N, found, room)) return TG_OK;
    if (m->n_members == 4)
        compare(&m->shader, "dz", l->dz[0], l->dz[1], M * K, found, room);
    else
        compare(&m->shader, "dx", l->dx[0], l->dx[1], M * K, found, room);
    return TG_OK;
}

static tg_status try_back(layer *l, tg_gpu_bench *bench, char *found, size_t room) {
    const tg_op_desc *d = leader();
    const tg_merge *chosen[TG_MAX_MEMBERS + 1] = { NULL };
    set_back(l, 0);
    for (int m = 0; m < TG_MAX_MEMBERS; m++) tg_op_table[d->merges[0].ops[m]]->ref(&l->args[m]);
    set_back(l, 1);
    choose_merges(l->args, chosen);
    for (unsigned n = 0; n <= TG_MAX_MEMBERS && !found[0]; n++)
        if (chosen[n]) TG_TRY(try_merge(l, bench, chosen[n], found, room));
    return TG_OK;
}

tg_status tg_gpu_layer_try(tg_ctx *ctx, tg_gpu_bench *bench, bool merged, char *found,
                           size_t room) {
    layer *l = tg_alloc(&ctx->mem, sizeof *l);
    found[0] = '\0';
    if (!l) return tg_fail_memory(ctx, "a layer for the self-test", sizeof *l);
    tg_check_fill_f32(l->x, M * K, 1, 0, 1);
    tg_check_fill_f32(l->w, K * N, 1, 1, 1);
    tg_check_fill_f32(l->dy, M * N, 1, 2, 1);
    tg_check_fill_f32(l->v, M * K, 1, 3, 1);
    const tg_status s =
        merged ? try_back(l, bench, found, room) : try_forward(l, bench, found, room);
    tg_free(&ctx->mem, l, sizeof *l);
    return s;
}

tg_status tg_gpu_layer_compile(tg_ctx *ctx, tg_gpu_bench *bench) {
    layer *l = tg_alloc(&ctx->mem, sizeof *l);
    if (!l) return tg_fail_memory(ctx, "a layer for the self-test", sizeof *l);
    const tg_status s = compile(l, bench);
    tg_free(&ctx->mem, l, sizeof *l);
    return s;
}
