/*
 * gpu_gate.c - see gpu_gate.h. The pipelines of all cases are asked for before the first one runs,
 * so that they are compiled side by side.
 */
#include "backend/webgpu/gpu_gate.h"

#include <stdlib.h>

#include "backend/cpu/check.h"
#include "backend/webgpu/check_gpu.h"
#include "base/str.h"

/* A case larger than that costs more than it shows. */
enum { CASE_ELEMS = 16384 };

static const char *const right[] = {
    "const SLOTS = 64u;\n",
#include "ops/reduce_subgroups.wgsl.h"
};
static const char *const wrong[] = {
    "const SLOTS = 32u;\n",
#include "ops/reduce_subgroups.wgsl.h"
};

/* For tests: TG_GPU_WRONG=subgroups makes sums that leave out half of the threads. */
const char *const *tg_gpu_reduce_subgroups(void) {
    const char *names = getenv("TG_GPU_WRONG");
    return names && strstr(names, "subgroups") ? wrong : right;
}

/* The first case that was not within its tolerance. */
typedef struct finding {
    bool found;
    char text[256];
} finding;

static void note(void *user, const tg_check *c) {
    finding *f = user;
    if (c->passed || f->found) return;
    f->found = true;
    snprintf(f->text, sizeof f->text, "%s %s: want an error up to %.0e, found %.1e", c->op, c->what,
             c->tolerance, c->error);
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

static bool fits(const tg_shader *s, const tg_case *c) {
    tg_args a = { .attr = c->attr };
    for (int i = 0; i < TG_MAX_IN; i++)
        if (c->in[i].dtype != TG_DTYPE_COUNT) a.in_type[i] = c->in[i];
    return !s->fits || s->fits(&a);
}

/* Of the small cases the one that most shaders fit, then the largest; one whose inputs are made for
 * it, infinities say, if it must. */
static size_t case_of(const tg_op_desc *d) {
    size_t best = 0, best_score = 0;
    for (size_t i = 0; i < d->n_cases; i++) {
        const tg_case *c = &d->cases[i];
        const size_t n = tg_type_elems(&c->in[0]);
        size_t n_fit = 0;
        for (size_t k = 0; k < d->n_shaders; k++) n_fit += fits(&d->shaders[k], c);
        const size_t score = n > CASE_ELEMS ? 1 : (2 * n_fit + !c->prepare) * (CASE_ELEMS + 1) + n;
        if (score <= best_score) continue;
        best = i;
        best_score = score;
    }
    return best;
}

static tg_status compile(tg_gpu_bench *bench, const tg_op_desc *d) {
    const tg_case *c = &d->cases[case_of(d)];
    for (size_t i = 0; i < d->n_shaders; i++)
        if (fits(&d->shaders[i], c)) TG_TRY(tg_gpu_bench_compile(bench, &d->shaders[i]));
    return TG_OK;
}

/* What is wrong is a finding; TG_OK then as well. */
static tg_status run_cases(tg_ctx *ctx, tg_gpu *gpu, uint32_t levers, changes_fn changes,
                           finding *f) {
    tg_gpu_bench *bench = NULL;
    size_t n_run = 0, n_failed = 0;
    tg_status s = tg_gpu_bench_new(ctx, gpu, levers, &bench);
    const tg_check_executor executor = { tg_gpu_bench_run, bench };
    const tg_check_options o = {
        .levers = levers, .report = note, .user = f, .executor = &executor
    };
    for (int op = 0; op < TG_OP_COUNT && s == TG_OK; op++)
        if (changes(tg_op_table[op])) s = compile(bench, tg_op_table[op]);
    for (int op = 0; op < TG_OP_COUNT && s == TG_OK; op++) {
        if (!changes(tg_op_table[op])) continue;
        tg_check_place at = { .op = op, .number = case_of(tg_op_table[op]) };
        s = tg_check_ops_go_on(ctx, &o, &at, 1, &n_run, &n_failed);
        if (s == TG_PENDING) s = TG_OK; /* the other cases are the op test's */
    }
    tg_gpu_bench_free(bench);
    return s;
}

static void turn_off(uint32_t *levers, tg_lever_id lever, const char *how, char *why, size_t room) {
    *levers &= ~(1u << lever);
    tg_str_append(why, room, "lever %s off: %s, ", tg_lever_table[lever].name, how);
}

static tg_status try_lever(tg_ctx *ctx, tg_gpu *gpu, tg_lever_id lever, changes_fn changes,
                           uint32_t *levers, char *why, size_t room) {
    finding f = { .found = false };
    if (!(*levers >> lever & 1)) return TG_OK;
    const tg_status s = run_cases(ctx, gpu, *levers, changes, &f);
    if (tg_gpu_lost(gpu) || s == TG_E_MEMORY) return s;
    if (s != TG_OK) snprintf(f.text, sizeof f.text, "%.255s", ctx->message);
    tg_ctx_clear(ctx);
    if (s == TG_OK && !f.found) return TG_OK;
    char how[300];
    snprintf(how, sizeof how, "gate: %s", f.text);
    turn_off(levers, lever, how, why, room);
    return TG_OK;
}

tg_status tg_gpu_gate(tg_ctx *ctx, tg_gpu *gpu, bool tuned, uint32_t *levers, char *why,
                      size_t room) {
    if (!tg_gpu_get_info(gpu)->subgroups && *levers & TG_LEVER_BIT(subgroups))
        turn_off(levers, TG_LEVER_subgroups, "not offered", why, room);
    TG_TRY(try_lever(ctx, gpu, TG_LEVER_subgroups, reduces, levers, why, room));
    return tuned ? try_lever(ctx, gpu, TG_LEVER_tuned_tiles, has_tiles, levers, why, room) : TG_OK;
}
