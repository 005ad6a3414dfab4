/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_ops.c - kernels against references. See check.h.
 *
 * Memory of a tested output:   | NaN guard | elements | NaN guard |
 * A kernel that writes outside is seen in the guards; one that reads stale scratch finds NaN there;
 * one that forgets a tail leaves the NaN with which the elements were filled.
 *
 * Kernels are run by hand here, without a plan: a plan would choose the variant, the chunks and who
 * shares memory with whom, and it is just these that are to be varied. The reference is run as a
 * variant too, so that its own accumulation and in-place rules are held to the same guards.
 */
#include "backend/cpu/check.h"
#include "backend/cpu/cpu.h"
#include "base/math.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/time.h"
#include "ir/graph.h"
#include "ops/kernels.h"

enum { GUARD = 64 }; /* elements of 4 bytes on either side: keeps 64-byte alignment */
/* A quiet NaN with a payload that no arithmetic makes, so that a guard which was overwritten by
 * another NaN shows too; as an index it is far out of every range. */
#define GUARD_BITS 0x7fc0dead

/* Counter-based, so that a case has the same numbers whatever ran before it: a failure is repeated
 * by its name alone. */
void tg_check_fill_f32(float *out, size_t n, uint64_t seed, uint32_t stream, float scale) {
    for (size_t i = 0; i < n; i += 4) {
        uint32_t x[4];
        double z[4];
        tg_philox(seed, i / 4, TG_RNG_INIT, stream, x);
        tg_rng_normal4(x, z);
        for (size_t j = 0; j < 4 && i + j < n; j++) out[i + j] = (float)(z[j] * (double)scale);
    }
}

/* Another purpose than the floats, lest an index be correlated with what it picks. */
void tg_check_fill_i32(int32_t *out, size_t n, uint64_t seed, uint32_t stream, int32_t below) {
    for (size_t i = 0; i < n; i++) {
        uint32_t x[4];
        tg_philox(seed, i, TG_RNG_BATCH, stream, x);
        out[i] = (int32_t)tg_rng_below(tg_rng_draw64(x), (uint64_t)(below > 0 ? below : 1));
    }
}

static void fill_at(const tg_case *c, int32_t *out, size_t n) {
    const tg_case_rows *r = c->at;
    for (size_t t = 0, k = 0; t < n / 2; t++, k++) {
        if (k == (size_t)r->rows) {
            r++;
            k = 0;
        }
        out[2 * t] = r->sequence;
        out[2 * t + 1] = r->position + (int32_t)k;
    }
}

void tg_check_fill_ints(const tg_case *c, int i, int32_t *out, size_t n, uint64_t seed) {
    if (c->at_in == i + 1) {
        fill_at(c, out, n);
        return;
    }
    tg_check_fill_i32(out, n, seed, (uint32_t)i, c->i32_below);
    if (!(c->distinct >> i & 1)) return;
    for (size_t k = 0; k < n; k++) { /* Fisher and Yates, from the front */
        uint32_t x[4];
        tg_philox(seed, k, TG_RNG_BATCH, (uint32_t)i, x);
        const size_t j = (size_t)tg_rng_below(tg_rng_draw64(x), k + 1);
        out[k] = out[j];
        out[j] = (int32_t)k;
    }
}

/* One case set up: inputs, and room for the outputs of the reference and of the kernel. */
typedef struct bench {
    tg_ctx *ctx;
    const tg_check_options *o;
    const tg_op_desc *d;
    tg_graph graph;
    tg_node *node;
    const tg_case *c;
    size_t case_number;
    tg_args args;               /* types and pointers of inputs */
    void *in[TG_MAX_IN];        /* as filled: kept to refill what in-place runs overwrite */
    uint32_t *want[TG_MAX_OUT]; /* the reference's outputs */
    uint32_t *have[TG_MAX_OUT]; /* guards included */
    uint32_t *old[TG_MAX_OUT];  /* what is there before, where an output adds */
    size_t elems[TG_MAX_OUT];
    void *in_place_with[TG_MAX_OUT];
    size_t n_run, n_failed;
} bench;

/* From the graph's arena, which ends with the case; elements have up to 4 bytes.
 * Plans promise 64-byte alignment, so kernels may count on it here. */
static void *room(bench *b, size_t elems) {
    char *p = tg_arena_alloc(&b->graph.arena, elems * 4 + 64);
    if (!p) {
        b->graph.status = tg_fail_memory(b->ctx, "op test", elems * 4);
        return NULL;
    }
    return p + (64 - (uintptr_t)p % 64) % 64;
}

static void fill(uint32_t *p, size_t n, uint32_t bits) {
    for (size_t i = 0; i < n; i++) p[i] = bits;
}

/* Builds a graph of inputs and the op, so that its own shape rule gives the output types. Inputs of
 * which an output is a new version have to be states: the graph refuses to write anything else. */
static bool build(bench *b, tg_op_id op) {
    tg_value *in[TG_MAX_IN] = { NULL };
    for (int i = 0; i < b->d->n_in; i++) {
        if (b->c->in[i].dtype == TG_DTYPE_COUNT || b->c->in[i].dim[0] == 0) continue;
        char name[16];
        snprintf(name, sizeof name, "in%d", i);
        bool is_state = false;
        for (int k = 0; k < b->d->n_out; k++) is_state = is_state || b->d->state_in[k] == i + 1;
        in[i] = is_state ? tg_state(&b->graph, name, b->c->in[i])
                         : tg_input(&b->graph, name, b->c->in[i]);
    }
    tg_value *v = tg_apply(&b->graph, op, &b->c->attr, in, b->d->n_in);
    b->node = v->node;
    return b->graph.status == TG_OK;
}

/* Old contents of an output are NaN unless the case adds to it, or the op writes a state in place:
 * a kernel that reads what it should only write shows at once. workers is 2 for the choice of unit
 * sizes alone; everything runs on this thread. */
static bool set_up(bench *b) {
    const float scale = b->c->scale > 0 ? b->c->scale : 1;
    b->args = (tg_args) {
        .attr = b->c->attr, .rt = &b->c->rt, .workers = 2, .rows_alone = b->c->rows_alone
    };
    for (int i = 0; i < b->node->n_in; i++) {
        if (!b->node->in[i]) continue;
        const tg_type *t = &b->node->in[i]->type;
        const size_t n = tg_type_elems(t);
        const bool plain = tg_type_is_plain(t); /* what packed weights are is for the case to say */
        if (!(b->in[i] = room(b, plain ? n : tg_type_bytes(t) / 4 + 1))) return false;
        if (plain && t->dtype == TG_F32)
            tg_check_fill_f32(b->in[i], n, b->case_number, (uint32_t)i, scale);
        else if (plain)
            tg_check_fill_ints(b->c, i, b->in[i], n, b->case_number);
        if (b->c->positive >> i & 1)
            for (size_t e = 0; e < n; e++)
                ((float *)b->in[i])[e] = (float)tg_fabs((double)((float *)b->in[i])[e]);
        b->args.in[i] = b->in[i];
        b->args.in_type[i] = *t;
    }
    if (b->c->prepare) b->c->prepare(&b->args);
    for (int k = 0; k < b->d->n_out; k++) {
        const tg_type *t = &b->node->out[k].type;
        const size_t n = b->elems[k] = tg_type_elems(t);
        b->args.out_type[k] = *t;
        if (!(b->want[k] = room(b, n)) || !(b->old[k] = room(b, n)) ||
            !(b->have[k] = room(b, n + 2 * GUARD)))
            return false;
        fill(b->old[k], n, GUARD_BITS);
        if (b->c->acc >> k & 1)
            tg_check_fill_f32((float *)b->old[k], n, b->case_number, 100 + (uint32_t)k, scale);
        if (b->d->state_in[k]) memcpy(b->old[k], b->in[b->d->state_in[k] - 1], n * 4);
    }
    return true;
}

/* On a copy of what the kernel will find. A state is read and written at one place, as in a plan.
 */
static void run_reference(bench *b) {
    tg_args a = b->args;
    a.acc = b->c->acc;
    for (int k = 0; k < b->d->n_out; k++) {
        memcpy(b->want[k], b->old[k], b->elems[k] * 4);
        a.out[k] = b->want[k];
        if (b->d->state_in[k]) a.in[b->d->state_in[k] - 1] = b->want[k];
    }
    b->d->ref(&a);
}

static bool is_float(const bench *b, int k) { return b->node->out[k].type.dtype == TG_F32; }

/* |have - want| over 1 + |want|; infinite where one is NaN and the other is not. Equal bits come
 * first, as infinity minus itself is NaN. Integers (ids) are right or wrong. */
static double difference(const bench *b, int k, size_t i) {
    const uint32_t have = b->have[k][GUARD + i], want = b->want[k][i];
    if (have == want) return 0;
    if (!is_float(b, k)) return TG_INF;
    const double h = (double)tg_float_from_bits(have), w = (double)tg_float_from_bits(want);
    if (tg_isnan(h) && tg_isnan(w)) return 0;
    const double d = tg_fabs(h - w) / (1 + tg_fabs(w));
    return tg_isnan(d) ? TG_INF : d;
}

/* The worst element and where it is: one number per run keeps thousands of runs readable. */
static double compare(const bench *b, char *where, size_t where_bytes) {
    double worst = 0;
    for (int k = 0; k < b->d->n_out; k++) {
        for (size_t i = 0; i < GUARD; i++) {
            if (b->have[k][i] != GUARD_BITS || b->have[k][GUARD + b->elems[k] + i] != GUARD_BITS) {
                snprintf(where, where_bytes, "out %d: written outside", k);
                return TG_INF;
            }
        }
        if (b->o->executor && (b->d->work_out >> k & 1)) continue;
        for (size_t i = 0; i < b->elems[k]; i++) {
            const double d = difference(b, k, i);
            if (d <= worst) continue;
            worst = d;
            snprintf(where, where_bytes, "out %d element %zu", k, i);
        }
    }
    return worst;
}

/* Sets guards, old contents and garbage; in_place makes an output share memory with its input. */
static tg_args prepare(bench *b, bool in_place) {
    tg_args a = b->args;
    a.acc = b->c->acc;
    for (int k = 0; k < b->d->n_out; k++) {
        fill(b->have[k], b->elems[k] + 2 * GUARD, GUARD_BITS);
        memcpy(b->have[k] + GUARD, b->old[k], b->elems[k] * 4);
        a.out[k] = b->have[k] + GUARD;
        const int shared = b->d->state_in[k] ? b->d->state_in[k] : in_place ? b->d->in_place[k] : 0;
        if (!shared || !b->in[shared - 1]) continue;
        if (tg_type_elems(&b->args.in_type[shared - 1]) != b->elems[k]) continue;
        memcpy(b->have[k] + GUARD, b->in[shared - 1], b->elems[k] * 4);
        a.in[shared - 1] = a.out[k];
    }
    return a;
}

/* The shapes go along, as the number of a case tells nobody what was special about it. */
static void report(bench *b, const char *variant, const char *how, double error, const char *where,
                   double tol) {
    char what[256];
    snprintf(what, sizeof what, "case %zu %s %s [", b->case_number, variant, how);
    for (int i = 0; i < b->node->n_in; i++) {
        if (!b->node->in[i]) continue;
        const tg_type *t = &b->node->in[i]->type;
        tg_str_append(what, sizeof what, "%s%zu", i ? " " : "", t->dim[0]);
        for (int d = 1; d < t->n_dims; d++) tg_str_append(what, sizeof what, "x%zu", t->dim[d]);
    }
    tg_str_append(what, sizeof what, "] %s", where);
    const bool passed = error <= tol;
    b->n_run++;
    b->n_failed += !passed;
    const tg_check check = { b->d->name, what, error, tol, passed };
    if (b->o->report) b->o->report(b->o->user, &check);
}

/* All units at once, one by one, and three by three: a sum that crosses units and is not kept apart
 * gives other bits, or misses a part, in one of them. Memory of workers is filled anew each time,
 * since the second pass would find what the first one left. */
static bool run_variant(bench *b, const tg_variant *v) {
    static const size_t chunks[] = { 0, 1, 3 };
    const size_t scratch = v->scratch_bytes ? v->scratch_bytes(&b->args) : 0;
    const size_t local = v->local_bytes ? v->local_bytes(&b->args) : 0;
    uint32_t *s = room(b, scratch / 4 + 16), *l = room(b, local / 4 + 16);
    if (!s || !l) return false;
    bool in_place = false;
    for (int k = 0; k < b->d->n_out; k++) in_place = in_place || b->d->in_place[k];
    const size_t copy = v->copy_bytes ? v->copy_bytes(&b->args) : 0;
    uint32_t *c = copy ? room(b, copy / 4) : NULL;
    if (copy && !c) return false;
    for (int pass = 0; pass < 5; pass++) {
        if ((pass == 3 && !in_place) || (pass == 4 && !copy)) continue;
        fill(s, scratch / 4 + 16, GUARD_BITS);
        fill(l, local / 4 + 16, GUARD_BITS);
        tg_args a = prepare(b, pass == 3);
        a.scratch = s;
        a.local = l;
        if (pass == 4) v->copy(&a, c);
        a.copy = pass == 4 ? c : NULL;
        tg_cpu_run_step_alone(v, &a, pass < 3 ? chunks[pass] : pass == 4);
        char where[64] = "";
        const double error = compare(b, where, sizeof where);
        static const char *const how[] = { "whole", "by 1", "by 3", "in place", "of a copy" };
        report(b, v->name, how[pass], error, where, b->c->tol);
    }
    return true;
}

/* Rounds every f32 input to 16 bits, so that a variant that does so itself loses nothing more: its
 * own tolerance is then that of f32. */
static void round_inputs(bench *b, bool to_f16) {
    for (int i = 0; i < b->node->n_in; i++) {
        if (!b->in[i] || b->args.in_type[i].dtype != TG_F32 ||
            !tg_type_is_plain(&b->args.in_type[i]))
            continue;
        float *x = b->in[i];
        for (size_t e = 0; e < tg_type_elems(&b->args.in_type[i]); e++)
            x[e] = to_f16 ? tg_f16_to_f32(tg_f16_from_f32(x[e]))
                          : tg_bf16_to_f32(tg_bf16_from_f32(x[e]));
    }
    run_reference(b);
}

/* Every shader that fits, also those that an earlier one hides, from *at on, which stays where it
 * is PENDING: the case is then set up again. A case without any fails, unless it says so: it would
 * keep whole plans off the GPU. */
static tg_status run_shaders(bench *b, size_t *at) {
    const tg_check_executor *e = b->o->executor;
    bool any = false, rounded = false;
    for (size_t i = 0; i < b->d->n_shaders; i++) {
        const tg_shader *s = &b->d->shaders[i];
        if (s->fits && !s->fits(&b->args)) continue;
        any = true;
        if (i < *at || (e->wants && !e->wants(e->user, s))) continue;
        /* Those that do not round, which stand before, have seen the inputs as they were. */
        if (s->f16_inputs && !rounded) round_inputs(b, true);
        rounded = rounded || s->f16_inputs;
        const tg_args a = prepare(b, false);
        TG_TRY(e->run(e->user, b->d, s, &a, GUARD * 4));
        char where[64] = "";
        const double error = compare(b, where, sizeof where);
        report(b, s->name, "shader", error, where, s->tol > 0 ? s->tol : b->c->tol);
        *at = i + 1;
    }
    const bool none = b->c->no_shader;
    if (!any && !none) report(b, "no", "shader", TG_INF, "", b->c->tol);
    if (any && none) report(b, "an unexpected", "shader", TG_INF, "", b->c->tol);
    return TG_OK;
}

/* every_variant also tries those that the levers have off or that a better one hides: each must be
 * right, as a lever or another shape can bring it up. */
static bool may_run(const bench *b, const tg_variant *v) {
    if (v->fits && !v->fits(&b->args)) return false;
    return b->o->every_variant || (v->needs & ~b->o->levers) == 0;
}

/*
 * Two rounds where a variant rounds its inputs to bf16: it is only tried on inputs that are bf16
 * already, the others only on inputs as they were filled, so that neither needs a tolerance for
 * what the other one does. Errors of set-up (memory, a case that the shape rule refuses) are the
 * status; a kernel that is wrong is a count.
 */
static tg_status check_case(tg_ctx *ctx, const tg_check_options *o, tg_check_place *at,
                            size_t *n_run, size_t *n_failed) {
    const tg_op_id op = (tg_op_id)at->op;
    const size_t number = at->number;
    bench b = { .ctx = ctx,
                .o = o,
                .d = tg_op_table[op],
                .c = &tg_op_table[op]->cases[number],
                .case_number = number };
    TG_TRY(tg_graph_init(&b.graph, ctx, o->levers));
    bool fine = build(&b, op) && set_up(&b);
    if (fine && o->executor) {
        run_reference(&b);
        b.graph.status = run_shaders(&b, &at->shader);
        fine = b.graph.status == TG_OK;
    } else if (fine) {
        run_reference(&b);
        const tg_variant *v;
        fine = run_variant(&b, tg_reference_variant(op));
        for (int rounded = 0; rounded < 2; rounded++) {
            bool any = rounded == 0;
            for (size_t i = 0; (v = tg_kernels_at(o->isa, op, i)); i++) any = any || v->bf16_inputs;
            if (!any) break;
            if (rounded) round_inputs(&b, false);
            for (size_t i = 0; fine && (v = tg_kernels_at(o->isa, op, i)); i++)
                if (v->bf16_inputs == (rounded == 1) && may_run(&b, v)) fine = run_variant(&b, v);
        }
    }
    const tg_status status = b.graph.status;
    tg_graph_deinit(&b.graph);
    *n_run += b.n_run;
    *n_failed += b.n_failed;
    return fine ? TG_OK : status;
}

static bool is_wanted(const tg_check_options *o, const tg_op_desc *d) {
    return !d->structural && (!o->filter || strstr(d->name, o->filter));
}

/* What the cases of a module are until they come (ops/cases_wasm.c). */
static const tg_case not_loaded;

/* An op without cases would pass by not being looked at, so it is an error. */
tg_status tg_check_ops_go_on(tg_ctx *ctx, const tg_check_options *o, tg_check_place *at,
                             double deadline_ms, size_t *n_run, size_t *n_failed) {
    for (; at->op < TG_OP_COUNT; at->op++, at->number = 0) {
        const tg_op_desc *d = tg_op_table[at->op];
        if (!is_wanted(o, d)) continue;
        if (d->n_cases == 0) return tg_fail(ctx, TG_E_INTERNAL, "op %s has no test case", d->name);
        if (memcmp(&d->cases[0], &not_loaded, sizeof not_loaded) == 0)
            return tg_fail(ctx, TG_E_UNSUPPORTED, "op %s: its test cases are not loaded", d->name);
        while (at->number < d->n_cases) {
            TG_TRY(check_case(ctx, o, at, n_run, n_failed));
            at->number++;
            at->shader = 0;
            if (tg_time_over(deadline_ms)) return TG_PENDING;
        }
    }
    return TG_OK;
}

tg_status tg_check_ops(tg_ctx *ctx, const tg_check_options *o, size_t *n_run, size_t *n_failed) {
    tg_check_place at = { .op = 0 };
    *n_run = *n_failed = 0;
    return tg_check_ops_go_on(ctx, o, &at, 0, n_run, n_failed);
}
