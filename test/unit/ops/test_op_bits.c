/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_op_bits.c - kernels whose bits have to be those of others: every op on every ISA of a class,
 * gates times values wherever they are taken, and attention of whole sequences and of a cache.
 *
 * Knows no op by name but these. Inputs are those of the op test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/check.h"
#include "backend/cpu/cpu.h"
#include "base/math.h"
#include "dtype/packed.h"
#include "ir/graph.h"
#include "ops/build.h"
#include "ops/kernels.h"
#include "simd/cpu.h"

#define LEVERS (TG_LEVER_BIT(simd) | TG_LEVER_BIT(flash_attention))

static void *zeros(size_t bytes) {
    void *p = aligned_alloc(64, (bytes / 64 + 1) * 64);
    assert_non_null(p);
    memset(p, 0, (bytes / 64 + 1) * 64);
    return p;
}

/* The case's own kernel on this ISA; scratch begins as something that is not 0. */
static void run(size_t isa, tg_op_id op, tg_args *a) {
    const tg_variant *v = tg_kernels_choose(isa, op, LEVERS, a);
    const size_t scratch = v->scratch_bytes ? v->scratch_bytes(a) : 0;
    const size_t local = v->local_bytes ? v->local_bytes(a) : 0;
    a->scratch = zeros(scratch);
    a->local = zeros(local);
    memset(a->scratch, 0x5a, scratch);
    tg_cpu_run_step_alone(v, a, 0);
    free(a->scratch);
    free(a->local);
}

typedef struct bench {
    tg_ctx ctx;
    tg_graph g;
    tg_args args;
    void *in[TG_MAX_IN], *out[TG_MAX_OUT];
    size_t n_out;
} bench;

/* Shapes by the op's own rule, inputs as in the op test. */
static void setup(bench *b, tg_op_id op, const tg_case *c, size_t number) {
    const tg_op_desc *d = tg_op_table[op];
    const tg_mem mem = tg_mem_default();
    tg_ctx_init(&b->ctx, &mem, NULL, NULL);
    assert_int_equal(tg_graph_init(&b->g, &b->ctx, LEVERS), TG_OK);
    tg_value *in[TG_MAX_IN] = { NULL };
    b->args = (tg_args) { .attr = c->attr, .rt = &c->rt, .acc = c->acc, .workers = 2 };
    for (int i = 0; i < d->n_in; i++) {
        const tg_type t = c->in[i];
        if (t.dtype == TG_DTYPE_COUNT || t.dim[0] == 0) continue;
        in[i] = tg_state(&b->g, "in", t);
        const size_t n = tg_type_elems(&t);
        const bool plain = tg_type_is_plain(&t);
        float *const x = b->in[i] = zeros(plain ? 4 * n : tg_type_bytes(&t));
        if (plain && t.dtype == TG_F32)
            tg_check_fill_f32(x, n, number, (uint32_t)i, c->scale > 0 ? c->scale : 1);
        else if (plain)
            tg_check_fill_ints(c, i, b->in[i], n, number);
        for (size_t e = 0; e < n && (c->positive >> i & 1); e++)
            x[e] = (float)tg_fabs((double)x[e]);
        b->args.in[i] = x;
        b->args.in_type[i] = t;
    }
    if (c->prepare) c->prepare(&b->args);
    const tg_value *v = tg_apply(&b->g, op, &c->attr, in, d->n_in);
    if (b->g.status != TG_OK) fail_msg("%s: %s", d->name, b->ctx.message);
    b->n_out = v->node->n_out;
    for (size_t k = 0; k < b->n_out; k++) {
        b->args.out_type[k] = v->node->out[k].type;
        b->out[k] = b->args.out[k] = zeros(4 * tg_type_elems(&v->node->out[k].type));
    }
}

static void begin_outputs(bench *b, const tg_op_desc *d) {
    for (size_t k = 0; k < b->n_out; k++) {
        const size_t bytes = 4 * tg_type_elems(&b->args.out_type[k]);
        const int state = d->state_in[k];
        if (!state || b->in[state - 1] == NULL) {
            memset(b->out[k], 0, bytes);
            continue;
        }
        memcpy(b->out[k], b->in[state - 1], bytes);
        b->args.in[state - 1] = b->out[k];
    }
}

static void teardown(bench *b) {
    for (int i = 0; i < TG_MAX_IN; i++) free(b->in[i]);
    for (int k = 0; k < TG_MAX_OUT; k++) free(b->out[k]);
    tg_graph_deinit(&b->g);
}

/* FNV-1a over words; NaNs are alike, since sign and payload are the CPU's own. */
static uint64_t hash_of(const bench *b) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t k = 0; k < b->n_out; k++) {
        const uint32_t *p = b->out[k];
        for (size_t i = 0; i < tg_type_elems(&b->args.out_type[k]); i++) {
            const bool nan = (p[i] & 0x7fffffff) > 0x7f800000;
            hash = (hash ^ (nan ? 0x7fc00000 : p[i])) * UINT64_C(1099511628211);
        }
    }
    return hash;
}

static void every_isa_of_a_class_gives_the_same_bits(void **state) {
    (void)state;
    size_t n_isas;
    const tg_isa_desc *isas = tg_isa_list(&n_isas);
    for (int op = 0; op < TG_OP_COUNT; op++) {
        const tg_op_desc *d = tg_op_table[op];
        for (size_t number = 0; !d->structural && number < d->n_cases; number++) {
            bench b = { .n_out = 0 };
            setup(&b, (tg_op_id)op, &d->cases[number], number);
            uint64_t hash[2] = { 0 };
            bool seen[2] = { false };
            for (size_t i = 0; i < n_isas; i++) {
                if (!tg_isa_usable(&isas[i])) continue;
                begin_outputs(&b, d);
                run(i, (tg_op_id)op, &b.args);
                const uint64_t have = hash_of(&b);
                const int fused = isas[i].fused;
                if (seen[fused] && have != hash[fused])
                    fail_msg("%s case %zu: %s: other bits than an ISA of its class", d->name,
                             number, isas[i].name);
                hash[fused] = have;
                seen[fused] = true;
            }
            teardown(&b);
        }
    }
}

/* y = W (act(gates) * values): by glu and a plain product, and by a product that reads gates. */
static void gates_have_the_same_bits_everywhere(void **state) {
    (void)state;
    enum { ROWS = 5, DEPTH = 37, COLS = TG_PACK_ROWS };
    static float x[ROWS * 2 * DEPTH], h[ROWS * DEPTH], y[2][ROWS * COLS];
    float *w = zeros(sizeof *w * DEPTH * COLS);
    tg_check_fill_f32(x, ROWS * 2 * DEPTH, 1, 0, 3);
    tg_check_fill_f32(w, DEPTH * COLS, 1, 1, 1);
    const tg_scalars rt = { .rows = ROWS };
    size_t n_isas;
    const tg_isa_desc *isas = tg_isa_list(&n_isas);
    for (size_t i = 0; i < n_isas; i++) {
        if (!tg_isa_usable(&isas[i])) continue;
        for (int read = TG_READ_SILU; read <= TG_READ_GELU_TANH; read++) {
            const tg_type wide = tg_type_2d(TG_F32, ROWS, 2 * DEPTH);
            const tg_type narrow = tg_type_2d(TG_F32, ROWS, DEPTH);
            tg_args glu = { .in = { x },
                            .out = { h },
                            .in_type = { wide },
                            .out_type = { narrow },
                            .attr = { .i = { read } },
                            .rt = &rt,
                            .workers = 1 };
            run(i, TG_OP_glu, &glu);
            for (int gated = 0; gated < 2; gated++) {
                tg_args product = {
                    .in = { gated ? x : h, w },
                    .out = { y[gated] },
                    .in_type = { gated ? wide : narrow, tg_type_packed(TG_F32, COLS, DEPTH) },
                    .out_type = { tg_type_2d(TG_F32, ROWS, COLS) },
                    .attr = { .i = { 2, 0, 0, gated ? read : TG_READ_PLAIN } },
                    .rt = &rt,
                    .workers = 1,
                };
                run(i, TG_OP_matmul, &product);
            }
            assert_memory_equal(y[0], y[1], sizeof y[0]);
        }
    }
    free(w);
}

/* o of whole sequences against that of a cache with the same rows, in chunks: what is trained is
 * what is decoded. */
static void windows_have_the_same_bits_in_training(void **state) {
    (void)state;
    enum { T = 150, H = 2, K = 1, D = 20, ROW = (H + 2 * K) * D, T_MAX = 192 };
    static const int32_t windows[] = { 0, 1, 15, 64, 65, 101, 149 };
    static const size_t chunks[] = { 1, 3, 50, T };
    static float qkv[T * ROW], o[T * H * D], lse[H * T], part[T * H * D];
    float *cache = zeros(sizeof *cache * 2 * K * T_MAX * D);
    tg_check_fill_f32(qkv, T * ROW, 5, 0, 1);
    for (size_t t = 0; t < T; t++) {
        for (size_t c = 0; c < D; c++) {
            /* pages of 64 in reverse, of keys and then values of the one head */
            float *page = cache + (T_MAX / 64 - 1 - t / 64) * 2 * 64 * D;
            page[t % 64 * D + c] = qkv[t * ROW + H * D + c];
            page[(64 + t % 64) * D + c] = qkv[t * ROW + (H + K) * D + c];
        }
    }
    size_t n_isas;
    const tg_isa_desc *isas = tg_isa_list(&n_isas);
    for (size_t i = 0; i < n_isas; i++) {
        for (size_t w = 0; tg_isa_usable(&isas[i]) && w < sizeof windows / sizeof *windows; w++) {
            const tg_attr attr = { .i = { H, K, D, windows[w] }, .f = { 0.2236068f } };
            tg_scalars rt = { .rows = T };
            tg_args whole = { .in = { qkv },
                              .out = { o, lse },
                              .in_type = { { TG_F32, 3, { 1, T, ROW, 1 } } },
                              .out_type = { { TG_F32, 3, { 1, T, H * D, 1 } },
                                            { TG_F32, 3, { 1, H, T, 1 } } },
                              .attr = attr,
                              .rt = &rt,
                              .workers = 1 };
            run(i, TG_OP_attention, &whole);
            const size_t chunk = chunks[w % (sizeof chunks / sizeof *chunks)];
            for (size_t t = 0; t < T; t += chunk) {
                static const int32_t pages[T_MAX / 64] = { 2, 1, 0 };
                int32_t at[2 * T] = { 0 };
                for (size_t k = 0; k < chunk; k++) at[2 * k + 1] = (int32_t)(t + k);
                rt = (tg_scalars) { .rows = (int32_t)chunk };
                tg_args cached = { .in = { qkv + t * ROW, cache, at, pages },
                                   .out = { part + t * H * D },
                                   .in_type = { tg_type_2d(TG_F32, chunk, ROW),
                                                { TG_F32, 4, { T_MAX / 64, 2 * K, 64, D } },
                                                tg_type_2d(TG_I32, chunk, 2),
                                                tg_type_2d(TG_I32, 1, T_MAX / 64) },
                                   .out_type = { tg_type_2d(TG_F32, chunk, H * D) },
                                   .attr = attr,
                                   .rt = &rt,
                                   .workers = 1 };
                run(i, TG_OP_attention_cached, &cached);
            }
            if (memcmp(o, part, sizeof o) != 0)
                fail_msg("%s: a window of %d has other bits in chunks of %zu", isas[i].name,
                         (int)windows[w], chunk);
        }
    }
    free(cache);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_isa_of_a_class_gives_the_same_bits),
        cmocka_unit_test(gates_have_the_same_bits_everywhere),
        cmocka_unit_test(windows_have_the_same_bits_in_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
