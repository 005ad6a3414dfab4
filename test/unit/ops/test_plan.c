/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan.c - the planner on graphs made by hand, and its law of memory on those of all models.
 *
 * What is small enough is found by trying everything: which steps to share, above all.
 */
#include "engine_util.h"
#include "plan_check.h"

#include "engine/embed.h"
#include "engine/session.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "training/train.h"

enum { ROWS = 4, COLS = 64 };
#define NO_LEVERS 0u
#define ALIASING  TG_LEVER_BIT(buffer_aliasing)

/* A graph and its plan. */
typedef struct bench {
    tg_ctx ctx;
    tg_graph g;
    tg_plan plan;
} bench;

static void setup(bench *b, uint32_t levers) {
    const tg_mem mem = tg_mem_default();
    tg_ctx_init(&b->ctx, &mem, NULL, NULL);
    assert_int_equal(tg_graph_init(&b->g, &b->ctx, levers), TG_OK);
}

static void plan_with(bench *b, const tg_plan_options *o) {
    if (tg_plan_build(&b->plan, &b->g, o) != TG_OK) fail_msg("%s", b->ctx.message);
}

static void plan_it(bench *b) {
    const tg_plan_options o = { .name = "by hand", .levers = b->g.levers, .workers = 2 };
    plan_with(b, &o);
}

static void teardown(bench *b) { tg_graph_deinit(&b->g); }

static tg_value *input(bench *b, const char *name) {
    return tg_input(&b->g, name, tg_type_2d(TG_F32, ROWS, COLS));
}
static tg_value *gelu(bench *b, tg_value *x) { return tg_gelu(&b->g, x, TG_ACT_GELU_ERF); }

static size_t offset_of(const bench *b, const tg_value *v) {
    return tg_plan_place_of(&b->plan, v)->offset_bytes;
}

static size_t count_nodes(const bench *b, tg_op_id op) {
    size_t n = 0;
    for (const tg_node *node = b->g.first; node; node = node->next) n += node->op == op;
    return n;
}

static bool in_list(const bench *b, const tg_value *v) {
    for (const tg_node *node = b->g.first; node; node = node->next)
        if (node == v->node) return true;
    return false;
}

/* ------------------------------------------------------------------------------------------ memory
 */

static void in_place_where_nobody_reads_later(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *x = input(&b, "x"), *a = gelu(&b, x), *c = gelu(&b, a);
    tg_output(&b.g, c, "c");
    plan_it(&b);
    assert_int_equal(offset_of(&b, a), offset_of(&b, c));
    assert_int_not_equal(offset_of(&b, x), offset_of(&b, a));
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* add works in place on its first input; here its second is the same value. */
static void no_place_of_an_input_that_is_read_twice(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *a = gelu(&b, input(&b, "x")), *sum = tg_add(&b.g, a, a);
    tg_output(&b.g, sum, "sum");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, a), offset_of(&b, sum));
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* Nor where it is read a second time through a view, other elements of it at each place. */
static void no_place_of_an_input_that_is_viewed_as_well(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *a = gelu(&b, tg_input(&b.g, "x", tg_type_1d(TG_F32, COLS)));
    tg_value *same = tg_view(&b.g, a, 0, tg_type_1d(TG_F32, COLS), "same");
    tg_value *sum = tg_add(&b.g, a, same);
    tg_output(&b.g, sum, "sum");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, a), offset_of(&b, sum));
    check_plan_memory(&b.plan);
    teardown(&b);
}

static void no_place_of_a_value_that_is_read_later(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *a = gelu(&b, input(&b, "x")), *c = gelu(&b, a), *sum = tg_add(&b.g, c, a);
    tg_output(&b.g, sum, "sum");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, a), offset_of(&b, c));
    assert_int_equal(offset_of(&b, c), offset_of(&b, sum));
    check_plan_memory(&b.plan);
    teardown(&b);
}

static void outputs_are_not_taken_over(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *a = gelu(&b, input(&b, "x")), *c = gelu(&b, a), *d = gelu(&b, c);
    tg_output(&b.g, a, "a");
    tg_output(&b.g, d, "d");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, a), offset_of(&b, c));
    assert_int_equal(offset_of(&b, c), offset_of(&b, d));
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* The caller may run the plan again with one input filled anew. */
static void inputs_and_constants_are_kept(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *x = input(&b, "x"), *y = input(&b, "y"), *one = tg_constant(&b.g, 1);
    tg_value *a = gelu(&b, x), *c = tg_add(&b.g, y, a), *d = gelu(&b, c);
    tg_value *small = tg_view(&b.g, d, 0, tg_type_scalar(TG_F32), "small");
    tg_output(&b.g, tg_add(&b.g, small, one), "out");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, y), offset_of(&b, c));
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* Nor may what is computed before an input's place in the list lie in its bytes: it is filled
 * before the first step. */
static void inputs_are_there_from_the_start(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *w = tg_state(&b.g, "w", tg_type_2d(TG_F32, COLS, COLS)), *v = input(&b, "x");
    for (int i = 0; i < 4; i++) v = tg_matmul(&b.g, v, w, NULL, 0);
    tg_value *late = input(&b, "late"), *sum = tg_add(&b.g, v, late);
    tg_output(&b.g, sum, "sum");
    plan_it(&b);
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* a itself is read for the last time by the second op. What comes then would fit into its place,
 * were not the view of it read at the end. */
static void a_view_keeps_what_it_looks_at(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *x = input(&b, "x"), *a = gelu(&b, x);
    tg_value *part = tg_view(&b.g, a, COLS, tg_type_2d(TG_F32, 1, COLS), "part");
    tg_value *c = tg_add(&b.g, x, a), *d = tg_add(&b.g, x, c);
    tg_value *row = tg_view(&b.g, d, 0, tg_type_2d(TG_F32, 1, COLS), "row");
    tg_value *end = tg_add(&b.g, row, part);
    tg_output(&b.g, end, "end");
    plan_it(&b);
    assert_int_equal(tg_plan_place_of(&b.plan, part)->offset_bytes,
                     offset_of(&b, a) + COLS * sizeof(float));
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* The same where the view is what the caller reads. */
static void a_view_that_is_an_output_keeps_it(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    tg_value *a = gelu(&b, input(&b, "x"));
    tg_value *part = tg_view(&b.g, a, COLS, tg_type_2d(TG_F32, 1, COLS), "part");
    tg_value *c = gelu(&b, a), *d = gelu(&b, c);
    tg_output(&b.g, part, "part");
    tg_output(&b.g, d, "d");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, a), offset_of(&b, c));
    check_plan_memory(&b.plan);
    teardown(&b);
}

/* x -> m1 -> m2 -> m3: products do not work in place, so two places are enough, and one is not. */
static tg_value *chain(bench *b, int n) {
    tg_value *v = input(b, "x");
    tg_value *w = tg_state(&b->g, "w", tg_type_2d(TG_F32, COLS, COLS));
    for (int i = 0; i < n; i++) v = tg_matmul(&b->g, v, w, NULL, 0);
    tg_output(&b->g, v, "y");
    return v;
}

static void places_are_used_again(void **state) {
    (void)state;
    const size_t each = ROWS * COLS * sizeof(float);
    bench b;
    setup(&b, ALIASING);
    chain(&b, 6);
    plan_it(&b);
    check_plan_memory(&b.plan);
    assert_int_equal(b.plan.workspace_bytes, 3 * each);
    assert_int_equal(b.plan.unaliased_bytes, 7 * each);
    teardown(&b);
    setup(&b, NO_LEVERS);
    chain(&b, 6);
    plan_it(&b);
    check_plan_memory(&b.plan);
    assert_int_equal(b.plan.workspace_bytes, 7 * each);
    teardown(&b);
}

/* Without the lever no two values share bytes at all, not even one after the other. */
static void without_aliasing_nothing_is_shared(void **state) {
    (void)state;
    bench b;
    setup(&b, NO_LEVERS);
    tg_value *a = gelu(&b, input(&b, "x")), *c = gelu(&b, a);
    tg_output(&b.g, c, "c");
    plan_it(&b);
    assert_int_not_equal(offset_of(&b, a), offset_of(&b, c));
    teardown(&b);
}

/* A step's output lies apart from its inputs, and from what was read in the few steps before. */
static void apart_is_apart(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING);
    chain(&b, 12);
    const tg_plan_options o = { .name = "apart", .levers = ALIASING, .workers = 2, .apart = true };
    plan_with(&b, &o);
    check_plan_memory(&b.plan);
    for (size_t i = 0; i < b.plan.n_steps; i++) {
        const tg_value *out = &b.plan.steps[i].node->out[0];
        for (size_t j = i < 5 ? 0 : i - 5; j <= i; j++)
            assert_int_not_equal(offset_of(&b, out), offset_of(&b, b.plan.steps[j].node->in[0]));
    }
    /* Not so far apart that nothing is used again. */
    assert_true(b.plan.workspace_bytes < b.plan.unaliased_bytes);
    teardown(&b);
}

static void segments_and_alignment(void **state) {
    (void)state;
    enum { SEGMENT = 1536, ALIGN = 256 };
    bench b;
    setup(&b, NO_LEVERS);
    tg_value *sum = NULL;
    for (size_t i = 0; i < 9; i++) {
        tg_value *x = tg_input(&b.g, "x", tg_type_1d(TG_F32, 40 + 41 * i));
        tg_value *head = tg_view(&b.g, gelu(&b, x), 0, tg_type_1d(TG_F32, 7), "head");
        sum = sum ? tg_add(&b.g, sum, head) : head;
    }
    tg_output(&b.g, sum, "sum");
    const tg_plan_options o = {
        .name = "segments", .workers = 1, .align_bytes = ALIGN, .segment_bytes = SEGMENT
    };
    plan_with(&b, &o);
    check_plan_memory(&b.plan);
    size_t n;
    needed *list = all_needed(&b.plan, &n);
    assert_true(n > 20);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].begin / SEGMENT, (list[i].end - 1) / SEGMENT);
    free(list);
    teardown(&b);
}

static uint32_t random_state = 2463534242u;
static uint32_t random_below(uint32_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % n;
}

/* Values of many sizes and lives: what is computed of parts of what was computed before. */
static void the_law_on_random_graphs(void **state) {
    (void)state;
    enum { INPUTS = 12, NODES = 40 };
    size_t saved = 0;
    for (int turn = 0; turn < 300; turn++) {
        bench b;
        tg_value *values[INPUTS + NODES];
        size_t n = 0;
        setup(&b, ALIASING);
        for (; n < INPUTS; n++) {
            const tg_type type = tg_type_1d(TG_F32, 1 + random_below(700));
            values[n] = gelu(&b, tg_input(&b.g, "input", type));
        }
        for (; n < INPUTS + NODES; n++) {
            tg_value *x = values[n - 1 - random_below(INPUTS)],
                     *y = values[random_below((uint32_t)n)];
            if (random_below(3) == 0) {
                values[n] = gelu(&b, x);
                continue;
            }
            const size_t most = tg_type_elems(&x->type) < tg_type_elems(&y->type)
                                    ? tg_type_elems(&x->type)
                                    : tg_type_elems(&y->type);
            const tg_type type = tg_type_1d(TG_F32, random_below(4) ? most : 1 + most / 2);
            const size_t left = tg_type_elems(&y->type) - tg_type_elems(&type);
            tg_value *part = tg_view(&b.g, y, left, type, "part");
            if (tg_type_elems(&x->type) != tg_type_elems(&type))
                x = tg_view(&b.g, x, 0, type, "front");
            values[n] = tg_add(&b.g, x, part);
        }
        for (size_t i = n - 10; i < n; i++)
            if (i + 1 == n || random_below(3) == 0) tg_output(&b.g, values[i], "out");
        const tg_plan_options o = { .name = "random",
                                    .levers = ALIASING,
                                    .workers = 1,
                                    .align_bytes = turn % 3 ? 64 : 256,
                                    .apart = turn % 5 == 0,
                                    .segment_bytes = turn % 7 ? 0 : 4096 };
        plan_with(&b, &o);
        check_plan_memory(&b.plan);
        saved += b.plan.workspace_bytes < b.plan.unaliased_bytes;
        teardown(&b);
    }
    assert_true(saved > 200);
}

/* Views of states, and what ops write into them, are the state's own bytes. */
static void states_lie_elsewhere(void **state) {
    (void)state;
    bench b;
    setup(&b, ALIASING | TG_LEVER_BIT(epilogue_fusion));
    tg_value *grads = tg_state(&b.g, "grads", tg_type_1d(TG_F32, 3 * COLS));
    tg_value *view = tg_view(&b.g, grads, COLS, tg_type_1d(TG_F32, COLS), "bias");
    tg_value *version = tg_accumulate(&b.g, view, tg_bias_grad(&b.g, input(&b, "dy")));
    (void)version;
    plan_it(&b);
    assert_int_equal(b.plan.n_steps, 1);
    assert_int_equal(b.plan.steps[0].acc_mask, 1);
    assert_int_equal(b.plan.n_states, 1);
    float memory[3 * COLS];
    assert_int_equal(tg_plan_bind(&b.plan, "grads", memory, sizeof memory - 4), TG_E_INTERNAL);
    assert_int_equal(tg_plan_bind(&b.plan, "grads", memory, sizeof memory), TG_OK);
    assert_int_equal(tg_plan_bind(&b.plan, "nobody", memory, 1), TG_OK);
    assert_ptr_equal(tg_plan_data(&b.plan, &b.plan.steps[0].node->out[0]), memory + COLS);
    teardown(&b);
}

/* All steps have the same scratch memory: it is as large as the one that needs most. */
static void scratch_is_that_of_the_hungriest_step(void **state) {
    (void)state;
    bench b;
    setup(&b, TG_LEVER_BIT(simd));
    const size_t elems[] = { 5000, 100000, 300 };
    for (size_t i = 0; i < 3; i++) {
        tg_value *x = tg_input(&b.g, "grads", tg_type_1d(TG_F32, elems[i]));
        tg_output(&b.g, tg_grad_norm(&b.g, x, tg_constant(&b.g, 1), 1), "stats");
    }
    plan_it(&b);
    for (size_t i = 0; i < 3; i++) {
        const tg_step *s = &b.plan.steps[i];
        assert_true(s->variant->scratch_bytes(&s->args) <= b.plan.scratch_bytes);
    }
    assert_true(tg_plan_memory_bytes(&b.plan) >= b.plan.workspace_bytes + b.plan.scratch_bytes);
    teardown(&b);
}

/* -------------------------------------------------------------------------------------- rewriting
 */

/* What was read of a state before it is overwritten must not be read through behind that. */
static void old_versions_are_not_read(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        bench b;
        setup(&b, NO_LEVERS);
        tg_value *store = tg_state(&b.g, "store", tg_type_2d(TG_F32, ROWS, COLS));
        tg_value *x = input(&b, "x"), *early = late ? x : gelu(&b, store);
        tg_value *version = tg_accumulate(&b.g, store, x);
        tg_output(&b.g, late ? gelu(&b, store) : tg_add(&b.g, early, version), "y");
        assert_int_equal(tg_graph_finish(&b.g), late ? TG_E_INTERNAL : TG_OK);
        if (late) assert_non_null(strstr(b.ctx.message, "old version"));
        teardown(&b);
    }
}

/* What is packed, or in blocks, is refused by name wherever an op has not said that it reads it: as
 * the graph is built, and in verify, should a rewrite have put it there. */
static void packed_weights_are_not_floats(void **state) {
    (void)state;
    bench b;
    setup(&b, 0);
    tg_value *w = tg_state(&b.g, "w", tg_type_packed(TG_Q4_1, ROWS, 64));
    assert_int_equal(tg_type_bytes(&w->type), (ROWS + 15) / 16 * 2 * 320);
    assert_true(tg_is_poison(&b.g, gelu(&b, w)));
    assert_int_equal(b.g.status, TG_E_SHAPE);
    assert_non_null(strstr(b.ctx.message, "want elements row after row, have q4_1 ["));
    assert_non_null(strstr(b.ctx.message, "] q4mx16"));
    teardown(&b);

    static const struct {
        tg_dtype dtype;
        const char *have;
    } put[] = { { TG_Q8_0, "elements row after row, have q8_0 [" },
                { TG_F32, "elements row after row, have f32 [" } };
    for (size_t i = 0; i < sizeof put / sizeof put[0]; i++) {
        setup(&b, 0);
        w = tg_state(&b.g, "w", tg_type_packed(put[i].dtype, ROWS, COLS));
        tg_value *y = gelu(&b, input(&b, "x"));
        tg_output(&b.g, y, "y");
        y->node->in[0] = w;
        assert_int_equal(tg_graph_finish(&b.g), TG_E_SHAPE);
        assert_non_null(strstr(b.ctx.message, put[i].have));
        teardown(&b);
    }

    setup(&b, 0);
    w = tg_state(&b.g, "w", tg_type_packed(TG_F32, ROWS, COLS));
    assert_true(tg_is_poison(&b.g, tg_view(&b.g, w, 0, tg_type_1d(TG_F32, COLS), "part")));
    assert_non_null(strstr(b.ctx.message, "have f32 ["));
    assert_non_null(strstr(b.ctx.message, "] f32x16"));
    teardown(&b);
}

/* A gradient is of plain floats: that of packed weights has no place to go. */
static void packed_weights_have_no_gradient(void **state) {
    (void)state;
    bench b;
    setup(&b, 0);
    tg_value *w = tg_state(&b.g, "w", tg_type_packed(TG_Q4_0, COLS, 64)), *dw;
    tg_value *x = tg_input(&b.g, "x", tg_type_2d(TG_F32, ROWS, 64));
    tg_value *y = tg_matmul(&b.g, x, w, NULL, 2);
    tg_grad(&b.g, y, 1, &w, 1, &dw);
    assert_int_equal(b.g.status, TG_E_UNSUPPORTED);
    assert_non_null(strstr(b.ctx.message, "want plain f32 to have a gradient of, have q4_0 ["));
    teardown(&b);
}

static void dead_nodes_go(void **state) {
    (void)state;
    bench b;
    setup(&b, NO_LEVERS);
    tg_value *x = input(&b, "x"), *a = gelu(&b, x), *c = gelu(&b, a);
    tg_value *dead = gelu(&b, gelu(&b, c));
    tg_value *store = tg_state(&b.g, "store", tg_type_2d(TG_F32, ROWS, COLS));
    tg_value *kept = gelu(&b, a), *written = tg_accumulate(&b.g, store, kept);
    tg_output(&b.g, c, "c");
    assert_int_equal(tg_rewrite(&b.g), TG_OK);
    assert_true(in_list(&b, a) && in_list(&b, c));
    assert_false(in_list(&b, dead) || in_list(&b, dead->node->in[0]));
    /* What writes a state is not dead, nor is what it reads. */
    assert_true(in_list(&b, written) && in_list(&b, kept) && in_list(&b, store));
    teardown(&b);
}

/* y = gelu(x w) + r: one step, or three. */
static void neighbours_are_absorbed(void **state) {
    (void)state;
    for (int on = 0; on < 2; on++) {
        bench b;
        setup(&b, on ? TG_LEVER_BIT(epilogue_fusion) : NO_LEVERS);
        tg_value *r = input(&b, "r"), *x = input(&b, "x");
        tg_value *w = tg_state(&b.g, "w", tg_type_2d(TG_F32, COLS, COLS));
        tg_value *y = tg_add(&b.g, gelu(&b, tg_matmul(&b.g, x, w, NULL, 0)), r);
        tg_output(&b.g, y, "y");
        plan_it(&b);
        assert_int_equal(b.plan.n_steps, on ? 1 : 3);
        assert_int_equal(count_nodes(&b, TG_OP_gelu), on ? 0 : 1);
        assert_int_equal(count_nodes(&b, TG_OP_add), on ? 0 : 1);
        const tg_node *last = b.plan.steps[b.plan.n_steps - 1].node;
        assert_true(last->out[0].is_output);
        assert_string_equal(last->out[0].name, "y");
        teardown(&b);
    }
}

/* y = W (gates times values) + r by packed weights: one step, or three; but what somebody else
 * reads is computed on its own, and an activation behind packed weights always is. */
static void neighbours_of_packed_weights(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        for (int on = 0; on < 2; on++) {
            bench b;
            setup(&b, on ? TG_LEVER_BIT(epilogue_fusion) : NO_LEVERS);
            tg_value *r = input(&b, "r");
            tg_value *h = tg_input(&b.g, "h", tg_type_2d(TG_F32, ROWS, 128));
            tg_value *w = tg_state(&b.g, "w", tg_type_packed(TG_Q4_1, COLS, 64));
            tg_value *gates = tg_glu(&b.g, h, TG_READ_SILU);
            tg_value *y = tg_add(&b.g, r, tg_matmul(&b.g, gates, w, NULL, 2));
            tg_output(&b.g, gelu(&b, y), "y");
            if (shared) tg_output(&b.g, gates, "gates");
            plan_it(&b);
            assert_int_equal(b.plan.n_steps, on ? 2 + shared : 4);
            assert_int_equal(count_nodes(&b, TG_OP_glu), on && !shared ? 0 : 1);
            assert_int_equal(count_nodes(&b, TG_OP_add), on ? 0 : 1);
            assert_int_equal(count_nodes(&b, TG_OP_gelu), 1);
            teardown(&b);
        }
    }
    bench b;
    setup(&b, TG_LEVER_BIT(epilogue_fusion));
    tg_value *w = tg_state(&b.g, "w", tg_type_packed(TG_Q8_0, COLS, COLS));
    tg_output(&b.g, gelu(&b, tg_matmul(&b.g, input(&b, "x"), w, NULL, 2)), "y");
    plan_it(&b);
    assert_int_equal(b.plan.n_steps, 2);
    teardown(&b);
}

/* A norm goes into the product behind it where a row is read alone: one row, or all of rows_alone.
 * Nobody else may read it, and without its lever it stays. */
static void norms_of_lone_rows(void **state) {
    (void)state;
    enum { FUSED = TG_LEVER_BIT(epilogue_fusion) | TG_LEVER_BIT(fused_decode) };
    static const struct {
        uint32_t levers;
        size_t rows;
        bool alone, shared;
        size_t norms;
    } cases[] = { { FUSED, 1, false, false, 0 },
                  { FUSED, 3, true, false, 0 },
                  { FUSED, 3, false, false, 1 },
                  { FUSED, 1, false, true, 1 },
                  { TG_LEVER_BIT(epilogue_fusion), 1, false, false, 1 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b;
        setup(&b, cases[i].levers);
        tg_value *x = tg_input(&b.g, "x", tg_type_2d(TG_F32, cases[i].rows, 64));
        tg_value *gain = tg_state(&b.g, "gain", tg_type_1d(TG_F32, 64));
        tg_value *w = tg_state(&b.g, "w", tg_type_packed(TG_Q4_1, COLS, 64));
        tg_value *norm = tg_rms_norm(&b.g, x, gain, NULL, 1e-5f);
        tg_output(&b.g, tg_matmul(&b.g, norm, w, NULL, 2), "y");
        if (cases[i].shared) tg_output(&b.g, gelu(&b, norm), "norm");
        const tg_plan_options o = {
            .name = "by hand", .levers = b.g.levers, .workers = 2, .rows_alone = cases[i].alone
        };
        plan_with(&b, &o);
        assert_int_equal(count_nodes(&b, TG_OP_rms_norm), cases[i].norms);
        assert_int_equal(count_nodes(&b, TG_OP_norm_matmul), 1 - cases[i].norms);
        teardown(&b);
    }
}

/* Heads are turned, kept and attended to in one step where there is one row; a caller that reads
 * them turned has them turned before. */
static void heads_of_a_lone_row(void **state) {
    (void)state;
    enum { FUSED = TG_LEVER_BIT(epilogue_fusion) | TG_LEVER_BIT(fused_decode) };
    static const struct {
        uint32_t levers;
        size_t rows;
        bool read;
        size_t ropes, steps;
    } cases[] = { { FUSED, 1, false, 0, 1 },
                  { FUSED, 1, true, 1, 1 },
                  { FUSED, 2, false, 1, 0 },
                  { TG_LEVER_BIT(epilogue_fusion), 1, false, 1, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tg_attr heads = { .i = { 2, 1, 8 }, .f = { 0.35f } };
        const size_t rows = cases[i].rows;
        bench b;
        setup(&b, cases[i].levers);
        tg_value *qkv = tg_input(&b.g, "qkv", tg_type_2d(TG_F32, rows, 32));
        tg_value *table = tg_input(&b.g, "table", tg_type_2d(TG_F32, rows, 8));
        tg_value *cache = tg_state(&b.g, "cache", (tg_type)TG_T4(F32, 1, 2, 64, 8));
        const tg_rows_value where = { tg_input(&b.g, "at", tg_type_2d(TG_I32, rows, 2)),
                                      tg_input(&b.g, "pages", tg_type_2d(TG_I32, 1, 1)) };
        tg_value *turned = tg_rope(&b.g, qkv, table, NULL, NULL, &heads);
        tg_value *kept = tg_kv_append(&b.g, cache, turned, &where, &heads);
        tg_output(&b.g, tg_attention_cached(&b.g, turned, kept, &where, &heads), "o");
        if (cases[i].read) tg_output(&b.g, gelu(&b, turned), "turned");
        plan_it(&b);
        assert_int_equal(count_nodes(&b, TG_OP_rope), cases[i].ropes);
        assert_int_equal(count_nodes(&b, TG_OP_attention_step), cases[i].steps);
        assert_int_equal(count_nodes(&b, TG_OP_kv_append), 1 - cases[i].steps);
        teardown(&b);
    }
}

/* A value that has a second reader, or is the caller's, is not absorbed. */
static void what_others_read_is_not_absorbed(void **state) {
    (void)state;
    for (int output = 0; output < 2; output++) {
        bench b;
        setup(&b, TG_LEVER_BIT(epilogue_fusion));
        tg_value *r = input(&b, "r"), *x = input(&b, "x");
        tg_value *w = tg_state(&b.g, "w", tg_type_2d(TG_F32, COLS, COLS));
        tg_value *product = tg_matmul(&b.g, x, w, NULL, 0), *y = tg_add(&b.g, product, r);
        if (output)
            tg_output(&b.g, product, "product");
        else
            tg_output(&b.g, tg_add(&b.g, product, x), "second");
        tg_output(&b.g, y, "y");
        plan_it(&b);
        assert_int_equal(count_nodes(&b, TG_OP_add), output ? 1 : 2);
        teardown(&b);
    }
}

/* In the backward pass gelu is computed again, in front of its first reader there; readers of the
 * forward pass keep the first one. */
static void cheap_values_are_computed_again(void **state) {
    (void)state;
    for (int on = 0; on < 2; on++) {
        bench b;
        setup(&b, on ? TG_LEVER_BIT(recompute) : NO_LEVERS);
        tg_value *x = input(&b, "x"), *r = input(&b, "r"), *a = gelu(&b, x);
        tg_value *forward = tg_add(&b.g, a, r);
        b.g.in_backward = true;
        tg_value *between = tg_add(&b.g, r, forward);
        tg_value *first = tg_add(&b.g, between, a), *second = tg_add(&b.g, first, a);
        b.g.in_backward = false;
        tg_output(&b.g, second, "second");
        assert_int_equal(tg_rewrite(&b.g), TG_OK);
        assert_int_equal(count_nodes(&b, TG_OP_gelu), on ? 2 : 1);
        assert_ptr_equal(forward->node->in[0], a);
        if (on) {
            const tg_value *again = first->node->in[1];
            assert_ptr_not_equal(again, a);
            assert_ptr_equal(second->node->in[1], again);
            assert_ptr_equal(again->node->next, first->node);
            assert_ptr_equal(again->node->in[0], x);
            assert_true(again->node->backward);
        } else {
            assert_ptr_equal(first->node->in[1], a);
        }
        teardown(&b);
    }
}

/* Not what the caller reads: that lives on anyway. */
static void outputs_are_not_computed_again(void **state) {
    (void)state;
    bench b;
    setup(&b, TG_LEVER_BIT(recompute));
    tg_value *x = input(&b, "x"), *a = gelu(&b, x);
    tg_output(&b.g, a, "a");
    b.g.in_backward = true;
    tg_output(&b.g, tg_add(&b.g, x, a), "sum");
    assert_int_equal(tg_rewrite(&b.g), TG_OK);
    assert_int_equal(count_nodes(&b, TG_OP_gelu), 1);
    teardown(&b);
}

/* ---------------------------------------------------------------------------------------- sharing
 */

/* share.c's head: what a byte and a barrier cost, in operations, for two workers. */
static double work_of(const tg_step *s) {
    const tg_op_desc *d = tg_op_table[s->node->op];
    double bytes = 0;
    for (int k = 0; k < s->node->n_in; k++)
        if (s->node->in[k]) bytes += (double)tg_type_bytes(&s->node->in[k]->type);
    for (int k = 0; k < s->node->n_out; k++) bytes += (double)tg_type_bytes(&s->node->out[k].type);
    return (d->flop ? d->flop(&s->args) : 0) + 2.5 * bytes;
}

static int phases_of(const tg_step *s, size_t *most_units) {
    tg_args a = s->args;
    a.workers = 2;
    int n = 0;
    for (*most_units = 0; n < TG_MAX_PHASES && s->variant->phase[n].run; n++) {
        const size_t units = s->variant->phase[n].units(&a);
        if (units > *most_units) *most_units = units;
    }
    return n;
}

/* Of a choice, bit i: step i is shared. Infinite if a step of one unit is. */
static double cost_of(const tg_plan *plan, unsigned choice) {
    double cost = 0;
    bool before = false;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const tg_step *s = &plan->steps[i];
        const bool shared = choice >> i & 1;
        size_t units;
        const int phases = phases_of(s, &units);
        if (shared && units <= 1) return 1e300;
        cost += shared ? work_of(s) / 2 + 1e5 * phases : work_of(s) + (before ? 1e5 : 0);
        before = shared;
    }
    return choice ? cost + 2e5 : cost;
}

static unsigned choice_of(const tg_plan *plan) {
    unsigned choice = 0;
    for (size_t i = 0; i < plan->n_steps; i++) choice |= (plan->steps[i].alone ? 0u : 1u) << i;
    return choice;
}

/* Rows by step: some are worth a barrier, some are not. Products and what lies between them. */
static void the_cheapest_way_to_share(void **state) {
    (void)state;
    static const size_t rows[][8] = {
        { 4, 4, 4, 4, 4, 4, 4, 4 },         { 512, 512, 512, 512, 512, 512, 512, 512 },
        { 512, 4, 512, 4, 512, 4, 512, 4 }, { 4, 512, 4, 4, 4, 4, 512, 4 },
        { 512, 4, 4, 4, 4, 4, 4, 512 },     { 64, 96, 128, 160, 192, 224, 256, 288 },
        { 4, 4, 4, 4, 4, 4, 4, 512 },       { 90, 4, 90, 4, 90, 90, 4, 90 },
        { 40, 400, 40, 400, 4, 4, 400, 4 }, { 24, 24, 24, 24, 24, 24, 24, 200 },
        { 4, 4, 4, 4, 4, 4, 4, 50 },        { 50, 4, 4, 4, 4, 4, 4, 4 },
    };
    size_t shared = 0, alone = 0, mixed = 0;
    for (size_t c = 0; c < sizeof rows / sizeof *rows; c++) {
        bench b;
        setup(&b, TG_LEVER_BIT(alone) | TG_LEVER_BIT(simd));
        tg_value *w = tg_state(&b.g, "w", tg_type_2d(TG_F32, COLS, COLS));
        tg_value *ones = tg_state(&b.g, "ones", tg_type_1d(TG_F32, COLS));
        for (size_t i = 0; i < 8; i++) {
            tg_value *x = tg_input(&b.g, "x", tg_type_2d(TG_F32, rows[c][i], COLS));
            tg_output(&b.g,
                      i % 3 == 2 ? tg_layer_norm(&b.g, x, ones, ones, 0)
                                 : tg_matmul(&b.g, x, w, NULL, 0),
                      "y");
        }
        plan_it(&b);
        assert_int_equal(b.plan.n_steps, 8);
        double least = 1e300;
        for (unsigned choice = 0; choice < 256; choice++) {
            const double cost = cost_of(&b.plan, choice);
            least = cost < least ? cost : least;
        }
        const unsigned taken = choice_of(&b.plan);
        if (cost_of(&b.plan, taken) > least * (1 + 1e-12))
            fail_msg("case %zu: choice %#x costs %g, the cheapest one %g", c, taken,
                     cost_of(&b.plan, taken), least);
        assert_true(b.plan.alone == (taken == 0));
        shared += taken == 255;
        alone += taken == 0;
        mixed += taken != 0 && taken != 255;
        teardown(&b);
    }
    assert_true(shared > 0 && alone > 0 && mixed > 2);
}

static void without_its_lever_all_is_shared(void **state) {
    (void)state;
    bench b;
    setup(&b, NO_LEVERS);
    tg_output(&b.g, gelu(&b, input(&b, "x")), "y");
    plan_it(&b);
    assert_false(b.plan.alone);
    assert_false(b.plan.steps[0].alone);
    teardown(&b);
}

/* ------------------------------------------------------------------------------------- all models
 */

static void check_train_plans(const tg_model_config *config, const char *levers, int32_t batch) {
    tg_context *ctx = open_context(1, NULL, levers);
    tg_train_options o = tg_train_options_default();
    o.batch = batch;
    tg_arena arena;
    tg_arena_init(&arena, &ctx->err.mem);
    tg_layout layout;
    tg_train_plans plans;
    o = tg_train_options_of(&o, config);
    tg_model_config whole = *config;
    OK(ctx, tg_config_complete(&ctx->err, "test", &whole));
    OK(ctx, tg_layout_make(&ctx->err, &arena, &whole, &layout));
    OK(ctx, tg_train_plans_build(ctx, &layout, &o, 0, &plans));
    check_plan_memory(&plans.grad);
    check_plan_memory(&plans.update);
    check_plan_memory(&plans.eval);
    tg_train_plans_free(&plans);
    tg_arena_deinit(&arena);
    tg_context_free(ctx);
}

static void no_two_live_values_share_bytes_in_training(void **state) {
    (void)state;
    static const tg_model_config configs[] = { { 1, 16, 1, 8, 256, 64 },
                                               { 2, 12, 3, 7, 256, 48 },
                                               { 4, 64, 4, 64, 256, 256 },
                                               { .layers = 1,
                                                 .width = 16,
                                                 .heads = 2,
                                                 .ctx = 8,
                                                 .vocab = 256,
                                                 .mlp = 24,
                                                 .family = "qwen3moe",
                                                 .experts = 3,
                                                 .experts_used = 2 } };
    static const char *const levers[] = { NULL, "-buffer_aliasing", "-recompute",
                                          "-epilogue_fusion", "-flash_attention" };
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++)
        for (size_t l = 0; l < sizeof levers / sizeof *levers; l++)
            check_train_plans(&configs[c], levers[l], c == 1 ? 3 : 1);
}

static void check_session(tg_context *ctx, tg_model *model) {
    tg_session *s;
    OK(ctx, tg_session_new(ctx, model, 16, &s));
    for (int k = 0; k < TG_SESSION_CLASSES; k++)
        if (s->d->by_rows[k].built) check_plan_memory(&s->d->by_rows[k].plan);
    check_plan_memory(&s->sample);
    tg_session_free(s);
}

static void no_two_live_values_share_bytes_in_sessions(void **state) {
    (void)state;
    static const char *const paths[] = { "gpt2",   "llama",    "llama3", "qwen2",
                                         "qwen3",  "gemma3",   "lfm2",   "granite",
                                         "qwen35", "qwen3moe", "falcon", "nemotron" };
    tg_context *ctx = open_context(1, NULL, NULL);
    tg_model *model;
    static const tg_model_config config = { 2, 32, 2, 16, 256, 128 };
    OK(ctx, tg_model_new(ctx, &config, 1, &model));
    check_session(ctx, model);
    tg_model_free(model);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char path[256];
        snprintf(path, sizeof path, "test/golden/lm/%s.gguf", paths[i]);
        OK(ctx, tg_model_open(ctx, path, &model));
        check_session(ctx, model);
        tg_model_free(model);
    }
    tg_context_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_place_where_nobody_reads_later),
        cmocka_unit_test(no_place_of_an_input_that_is_read_twice),
        cmocka_unit_test(no_place_of_an_input_that_is_viewed_as_well),
        cmocka_unit_test(no_place_of_a_value_that_is_read_later),
        cmocka_unit_test(outputs_are_not_taken_over),
        cmocka_unit_test(inputs_and_constants_are_kept),
        cmocka_unit_test(inputs_are_there_from_the_start),
        cmocka_unit_test(a_view_keeps_what_it_looks_at),
        cmocka_unit_test(a_view_that_is_an_output_keeps_it),
        cmocka_unit_test(places_are_used_again),
        cmocka_unit_test(without_aliasing_nothing_is_shared),
        cmocka_unit_test(apart_is_apart),
        cmocka_unit_test(segments_and_alignment),
        cmocka_unit_test(the_law_on_random_graphs),
        cmocka_unit_test(states_lie_elsewhere),
        cmocka_unit_test(scratch_is_that_of_the_hungriest_step),
        cmocka_unit_test(old_versions_are_not_read),
        cmocka_unit_test(packed_weights_are_not_floats),
        cmocka_unit_test(packed_weights_have_no_gradient),
        cmocka_unit_test(dead_nodes_go),
        cmocka_unit_test(neighbours_are_absorbed),
        cmocka_unit_test(neighbours_of_packed_weights),
        cmocka_unit_test(norms_of_lone_rows),
        cmocka_unit_test(heads_of_a_lone_row),
        cmocka_unit_test(what_others_read_is_not_absorbed),
        cmocka_unit_test(cheap_values_are_computed_again),
        cmocka_unit_test(outputs_are_not_computed_again),
        cmocka_unit_test(the_cheapest_way_to_share),
        cmocka_unit_test(without_its_lever_all_is_shared),
        cmocka_unit_test(no_two_live_values_share_bytes_in_training),
        cmocka_unit_test(no_two_live_values_share_bytes_in_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
