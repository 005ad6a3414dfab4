/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_self_test.c - see gpu_self_test.h. The pipelines of all cases are asked for before the first
 * one runs, so that they are compiled side by side.
 */
#include "backend/webgpu/device/self_test/gpu_self_test.h"

#include "backend/cpu/check.h"
#include "backend/webgpu/device/gpu_layer.h"
#include "base/str.h"

/* A case larger than that costs more than it shows. */
enum { CASE_ELEMS = 16384 };

const uint32_t tg_gpu_left_to_cpu = 0;

static const char *const right[] = {
    "const SLOTS = 64u;\n",
#include "ops/reduce_subgroups.wgsl.h"
};
#ifdef TG_TEST_HOOKS
#include <stdlib.h>
/* In objects of the tests alone, TG_GPU_WRONG names faults: subgroups, sums that leave out half of
 * the threads; vec4_loads and merges, two of four in each other's place; too_large, a pipeline that
 * no GPU can have. */
static const char *const wrong[] = {
    "const SLOTS = 32u;\n",
#include "ops/reduce_subgroups.wgsl.h"
};
static const char swapped[] =
    "alias Four = vec4<f32>; fn as_vec4(v: Four) -> vec4<f32> { return v.yxzw; }\n";
static const char too_large[] =
    "alias Four = vec4<f32>; var<workgroup> much: array<Four, 65536>;\n"
    "fn as_vec4(v: Four) -> vec4<f32> { much[0] = v; return much[0]; }\n";

const char *const *tg_gpu_reduce_subgroups(void) {
    const char *names = getenv("TG_GPU_WRONG");
    return names && strstr(names, "subgroups") ? wrong : right;
}

const char *tg_gpu_fours(bool vec4, bool merged) {
    const char *names = getenv("TG_GPU_WRONG");
    if (names && vec4 && strstr(names, "too_large")) return too_large;
    if (names && ((vec4 && strstr(names, "vec4_loads")) || (merged && strstr(names, "merges"))))
        return swapped;
    return vec4 ? TG_GPU_FOURS : TG_GPU_ONES;
}

/* TG_GPU_TRUSTED: the test has seen the self-test of this adapter, which a software one compiles
 * for several seconds, at a context before. */
static bool is_trusted(void) { return getenv("TG_GPU_TRUSTED") != NULL; }
#else
const char *const *tg_gpu_reduce_subgroups(void) { return right; }
const char *tg_gpu_fours(bool vec4, bool merged) {
    (void)merged;
    return vec4 ? TG_GPU_FOURS : TG_GPU_ONES;
}
static bool is_trusted(void) { return false; }
#endif

/* What the trials share, and what the last one found. */
typedef struct self_test {
    tg_shader_cache *shaders;
    tg_gpu_bench *bench;
    const tg_shader *only; /* of those that need levers; NULL: the others */
    char found[300];
    char *why;
    size_t room;
} self_test;

typedef tg_status (*trial)(self_test *g);

/* The first case that was not within its tolerance stays. */
static void note(void *user, const tg_check *c) {
    self_test *g = user;
    if (c->passed || g->found[0]) return;
    snprintf(g->found, sizeof g->found, "%s %s: want an error up to %.0e, found %.1e", c->op,
             c->what, c->tolerance, c->error);
}

/* The ops that a lever changes: what sums by subgroups, and what can be cut in tiles. */
typedef bool (*changes_fn)(const tg_op_desc *d);

static bool reduces(const tg_op_desc *d) {
    for (size_t i = 0; i < d->n_shaders; i++)
        for (int k = 0; k < TG_MAX_PASSES; k++)
            if (d->shaders[i].pass[k].reduces) return true;
    return false;
}

static bool has_tiles(const tg_op_desc *d) { return d->n_merges > 0; }

static tg_status run_shader(void *user, const tg_op_desc *d, const tg_shader *s, const tg_args *a,
                            size_t guard_bytes) {
    return tg_gpu_bench_run(((const self_test *)user)->bench, d, s, a, guard_bytes);
}

static bool wants_shader(void *user, const tg_shader *s) {
    const self_test *g = user;
    return g->only ? s == g->only : !s->needs;
}

static bool fits(const tg_shader *s, const tg_case *c) {
    tg_args a = { .attr = c->attr, .rows_alone = c->rows_alone };
    for (int i = 0; i < TG_MAX_IN; i++)
        if (c->in[i].dtype != TG_DTYPE_COUNT) a.in_type[i] = c->in[i];
    return !s->fits || s->fits(&a);
}

/* Of the small cases the one that most shaders fit, or `only` one, then the largest; one whose
 * inputs are made for it, infinities say, if it must. */
static size_t case_of(const tg_op_desc *d, const tg_shader *only) {
    size_t best = 0, best_score = 0;
    for (size_t i = 0; i < d->n_cases; i++) {
        const tg_case *c = &d->cases[i];
        const size_t n = tg_type_elems(&c->in[0]);
        size_t n_fit = 0;
        for (size_t k = 0; k < d->n_shaders; k++)
            n_fit += only ? only == &d->shaders[k] && fits(only, c)
                          : !d->shaders[k].needs && fits(&d->shaders[k], c);
        if (only && n_fit == 0) continue;
        const size_t score = n > CASE_ELEMS ? 1 : (2 * n_fit + !c->prepare) * (CASE_ELEMS + 1) + n;
        if (score <= best_score) continue;
        best = i;
        best_score = score;
    }
    return best;
}

static tg_status compile(tg_gpu_bench *bench, const tg_op_desc *d) {
    const tg_case *c = &d->cases[case_of(d, NULL)];
    for (size_t i = 0; i < d->n_shaders; i++)
        if (!d->shaders[i].needs && fits(&d->shaders[i], c))
            TG_TRY(tg_gpu_bench_compile(bench, &d->shaders[i]));
    return TG_OK;
}

static tg_status compile_cases(self_test *g, changes_fn changes) {
    tg_status s = TG_OK;
    for (int op = 0; op < TG_OP_COUNT && s == TG_OK; op++)
        if (changes(tg_op_table[op])) s = compile(g->bench, tg_op_table[op]);
    return s;
}

static tg_status run_case(self_test *g, int op) {
    size_t n_run = 0, n_failed = 0;
    const tg_check_executor executor = { run_shader, g, wants_shader };
    const tg_check_options o = {
        .levers = g->shaders->levers, .report = note, .user = g, .executor = &executor
    };
    tg_check_place at = { .op = op, .number = case_of(tg_op_table[op], g->only) };
    const tg_status s = tg_check_ops_go_on(g->shaders->ctx, &o, &at, 1, &n_run, &n_failed);
    return s == TG_PENDING ? TG_OK : s; /* the other cases are the op test's */
}

static tg_status run_cases(self_test *g, changes_fn changes) {
    tg_status s = compile_cases(g, changes);
    for (int op = 0; op < TG_OP_COUNT && s == TG_OK; op++)
        if (changes(tg_op_table[op])) s = run_case(g, op);
    return s;
}

/* The next shader of an op from *i on that needs the lever and is tried: of those that multiply by
 * matrices each, of those that round rows the first, as the others are the same text with other
 * constants. NULL: none is left. */
static const tg_shader *next_new(const self_test *g, const tg_op_desc *d, tg_lever_id lever,
                                 size_t *i) {
    for (; *i < d->n_shaders; ++*i) {
        const tg_shader *s = &d->shaders[*i];
        if (!(s->needs >> lever & 1) || s->needs & ~g->shaders->levers) continue;
        *i = lever == TG_LEVER_int8_activations ? d->n_shaders : *i + 1;
        return s;
    }
    return NULL;
}

/* Each of them on a case of its own. */
static tg_status try_new(self_test *g, tg_lever_id lever) {
    tg_status s = TG_OK;
    for (int op = 0; op < TG_OP_COUNT && s == TG_OK; op++)
        for (size_t i = 0; s == TG_OK && (g->only = next_new(g, tg_op_table[op], lever, &i));)
            s = run_case(g, op);
    g->only = NULL;
    return s;
}

static tg_status compile_new(self_test *g, tg_lever_id lever) {
    tg_status s = TG_OK;
    const tg_shader *shader;
    for (int op = 0; op < TG_OP_COUNT; op++)
        for (size_t i = 0; s == TG_OK && (shader = next_new(g, tg_op_table[op], lever, &i));)
            s = tg_gpu_bench_compile(g->bench, shader);
    return s;
}

static tg_status try_matrices(self_test *g) { return try_new(g, TG_LEVER_subgroup_matrices); }
static tg_status try_rounding(self_test *g) { return try_new(g, TG_LEVER_int8_activations); }

static tg_status try_sums(self_test *g) { return run_cases(g, reduces); }
static tg_status try_tiles(self_test *g) { return run_cases(g, has_tiles); }
static tg_status try_product(self_test *g) {
    return tg_gpu_layer_try(g->shaders->ctx, g->bench, false, g->found, sizeof g->found);
}
static tg_status try_merges(self_test *g) {
    return tg_gpu_layer_try(g->shaders->ctx, g->bench, true, g->found, sizeof g->found);
}

/* What is wrong is found; TG_OK then as well. A pipeline that could not be made is nobody's. */
static tg_status attempt(self_test *g, trial t) {
    tg_ctx *ctx = g->shaders->ctx;
    g->found[0] = '\0';
    const tg_status s = t(g);
    if (tg_gpu_lost(g->shaders->gpu) || s == TG_E_MEMORY) return s;
    if (s != TG_OK) {
        snprintf(g->found, sizeof g->found, "%.299s", ctx->message);
        tg_shader_cache_deinit(g->shaders);
    }
    tg_ctx_clear(ctx);
    return TG_OK;
}

static void turn_off(self_test *g, tg_lever_id lever, const char *how) {
    g->shaders->levers &= ~(1u << lever);
    tg_str_append(g->why, g->room, "lever %s off: %s, ", tg_lever_table[lever].name, how);
}

static tg_status try_lever(self_test *g, tg_lever_id lever, trial t) {
    char how[320];
    if (!(g->shaders->levers >> lever & 1)) return TG_OK;
    TG_TRY(attempt(g, t));
    snprintf(how, sizeof how, "self-test: %s", g->found);
    if (g->found[0]) turn_off(g, lever, how);
    return TG_OK;
}

/* Merged shaders read in fours, too: without, are they right? */
static tg_status test_merges(self_test *g, bool *merges) {
    char how[320];
    TG_TRY(attempt(g, try_merges));
    *merges = !g->found[0];
    if (*merges) return TG_OK;
    snprintf(how, sizeof how, "self-test: %s", g->found);
    const uint32_t levers = g->shaders->levers;
    if (levers & TG_LEVER_BIT(vec4_loads)) {
        g->shaders->levers &= ~TG_LEVER_BIT(vec4_loads);
        TG_TRY(attempt(g, try_merges));
        *merges = !g->found[0];
    }
    if (*merges) {
        turn_off(g, TG_LEVER_vec4_loads, how);
    } else {
        g->shaders->levers = levers;
        tg_str_append(g->why, g->room, "merges off: %s, ", how);
    }
    return TG_OK;
}

/* All that is tried is compiled side by side. Where something cannot be made, the trials tell what:
 * they begin anew, one after the other. */
static tg_status compile_all(self_test *g) {
    tg_gpu *gpu = g->shaders->gpu;
    tg_ctx *ctx = g->shaders->ctx;
    tg_status s = tg_gpu_layer_compile(ctx, g->bench);
    if (s == TG_OK && g->shaders->levers & TG_LEVER_BIT(subgroups)) s = compile_cases(g, reduces);
    if (s == TG_OK) s = compile_new(g, TG_LEVER_subgroup_matrices);
    if (s == TG_OK) s = compile_new(g, TG_LEVER_int8_activations);
    if (s == TG_E_MEMORY) return s;
    bool all_made = s == TG_OK;
    while ((s = tg_gpu_settle(gpu)) != TG_OK) { /* which tells of one fault a time */
        if (tg_gpu_lost(gpu)) return s;
        all_made = false;
    }
    if (!all_made) tg_shader_cache_deinit(g->shaders);
    tg_ctx_clear(ctx);
    return TG_OK;
}

/* What tiles and sums of matmul_matrices.wgsl take. */
enum { MATRICES_GROUP_BYTES = 24576 };

/* Mixed precision without matrices would be f32 under another name. */
static void turn_off_rounding(self_test *g) {
    const uint32_t levers = g->shaders->levers;
    if (!(levers & TG_LEVER_BIT(subgroup_matrices)) && levers & TG_LEVER_BIT(f16_storage))
        turn_off(g, TG_LEVER_f16_storage, "for subgroup_matrices alone");
}

/* What the adapter lacks. */
static void turn_off_absent(self_test *g) {
    const tg_gpu_info *info = tg_gpu_get_info(g->shaders->gpu);
    const uint32_t levers = g->shaders->levers;
    if (!info->subgroups && levers & TG_LEVER_BIT(subgroups))
        turn_off(g, TG_LEVER_subgroups, "not offered");
    if (!info->has_matrices && levers & TG_LEVER_BIT(subgroup_matrices))
        turn_off(g, TG_LEVER_subgroup_matrices, info->matrices);
    else if (info->max_group_bytes < MATRICES_GROUP_BYTES &&
             levers & TG_LEVER_BIT(subgroup_matrices))
        turn_off(g, TG_LEVER_subgroup_matrices, "want 24576 bytes of workgroup memory");
    turn_off_rounding(g);
}

static tg_status try_all(self_test *g, bool tuned, bool *merges) {
    turn_off_absent(g);
    *merges = true;
    if (is_trusted()) return TG_OK;
    TG_TRY(compile_all(g));
    TG_TRY(try_lever(g, TG_LEVER_vec4_loads, try_product));
    TG_TRY(test_merges(g, merges));
    TG_TRY(try_lever(g, TG_LEVER_subgroups, try_sums));
    TG_TRY(try_lever(g, TG_LEVER_subgroup_matrices, try_matrices));
    turn_off_rounding(g);
    TG_TRY(try_lever(g, TG_LEVER_int8_activations, try_rounding));
    return tuned ? try_lever(g, TG_LEVER_tuned_tiles, try_tiles) : TG_OK;
}

tg_status tg_gpu_self_test(tg_shader_cache *shaders, bool tuned, bool *merges, char *why,
                           size_t room) {
    self_test g = { .shaders = shaders, .why = why, .room = room };
    tg_status s = tg_gpu_bench_new(shaders->ctx, shaders->gpu, 0, &g.bench);
    if (s == TG_OK) {
        tg_gpu_bench_share(g.bench, shaders);
        s = try_all(&g, tuned, merges);
    }
    tg_gpu_bench_free(g.bench);
    return s;
}
