/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webgpu.c - runs plans on a GPU: the list of steps becomes a list of dispatches, once.
 *
 * Plans are made for pointers of the host; the GPU has a mirror of every block that they point to,
 * of the same layout:
 *
 *     host   weights [P]     grads [P]      loss       memory of the plan
 *              |               |             |            |
 *     GPU    mirror          mirror        mirror       work  | values of the plan | scratch |
 *
 * States (weights, gradients, caches) have a mirror each, made when a plan that is bound to them
 * first runs; those made together share a few buffers. From then on the GPU's copy is the right
 * one, until somebody asks for it (fetch) or writes on the host (touched). Workspaces are shared by
 * all plans, as large as the largest needs: between two runs a plan keeps nothing there. They lie
 * in segments, a buffer each, as a large model needs more than a buffer may have; no value crosses
 * from one into the next. A run is
 *
 *     inputs up, small     scalars, 64 bytes     one submit of all steps     outputs down
 *
 * and makes no object of the GPU; with a deadline it is as many submits as gpu_slices.h says. Where
 * C cannot wait, a run is PENDING while its outputs are on their way down: the number of the
 * reading then is the run's `unit`. A plan with a step that has no shader, or one that a binding
 * cannot serve, runs on the CPU as a whole: states are brought down before it and up after.
 *
 * Invariant: every storage binding of a dispatch is a range at a multiple of 256 bytes, and no two
 * of them meet. Plans made with this backend's rules (plan/plan.h) keep to it.
 *
 * Steps near each other may become one dispatch (tg_merge): a dispatch costs some microseconds,
 * and small ones leave most of a card idle. A step that joins another one has none of its own. Of a
 * plan of one row all steps may become one (single.h): then it counts as the first step's.
 */
#include "backend/webgpu/webgpu.h"

#include "backend/webgpu/carry.h"
#include "backend/webgpu/device/gpu_slices.h"
#include "backend/webgpu/device/self_test/gpu_self_test.h"
#include "backend/webgpu/device/self_test/submit_check.h"
#include "backend/webgpu/device/submit_often.h"
#include "backend/webgpu/merge.h"
#include "backend/webgpu/mirrors.h"
#include "backend/webgpu/single/single.h"
#include "base/str.h"

/* Dummies are bound for what is absent; each binding has its own, as ranges must not meet. */
enum { DUMMY_BYTES = TG_GPU_ALIGN };
typedef struct transfer {
    char *host;
    size_t offset, bytes; /* in work */
} transfer;

/* What a step became: its passes, the first of which may be several dispatches, where what it binds
 * is beyond what a binding may reach. */
typedef struct unit {
    const tg_shader *shader; /* NULL: the step has joined an earlier one */
    uint8_t n_members;
    size_t members[TG_MAX_MEMBERS]; /* the step itself, and those that have joined it */
    size_t n_pieces, piece_elems;   /* of input 0; the last one is shorter */
} unit;

enum { MAX_SEGMENTS = 64 };

/* A plan as the GPU runs it. */
typedef struct compiled {
    const tg_step *steps; /* whose plan; NULL: a free entry */
    const char *memory;
    unsigned version;
    unsigned work_version; /* of the buffer that the groups are bound to */
    bool on_cpu;
    bool settled;                /* all that was made for it is known to be good */
    uint32_t words;              /* uniform buffer, 256 bytes a dispatch */
    tg_gpu_dispatch *dispatches; /* [n_dispatches + 1] the first of a plan that carries: carry */
    unit *units;                 /* [n_steps] */
    size_t *first;               /* [n_steps + 1] of each step, in dispatches */
    size_t n_steps, n_dispatches;
    transfer *in, *out;
    tg_gpu_piece *down;  /* the outputs, where they are now, one for who came through a single
                            dispatch, and one for the count of submits */
    reading readings[2]; /* on their way: of a run, and of the one that carries on from it */
    bool *written;       /* [n_states] */
    size_t n_in, n_out, n_states;
    size_t scratch_bytes;
    tg_gpu_slices slices;
    tg_single single;
} compiled;

typedef struct webgpu {
    tg_backend base;
    tg_ctx *ctx;
    tg_backend *cpu;
    tg_gpu *gpu;
    tg_shader_cache shaders;
    tg_submit_check submits;
    uint32_t call, dummies, scratch;
    uint32_t work[MAX_SEGMENTS];
    size_t work_bytes, scratch_bytes;
    unsigned work_version;
    bool work_fresh;
    tg_descent work_down;
    tg_mirrors mirrors;
    compiled *plans;
    size_t n_plans;
    const compiled *last; /* whose values are in work */
    unsigned runs;        /* so far: which values of it */
    size_t last_bytes;
    uint32_t levers;
    bool merges; /* steps may be merged */
    tg_single_rules single;
    tg_gpu_tiles *tiles; /* NULL: all tiles by rule */
    char note[600];      /* see tg_backend.note */
} webgpu;

static size_t round_up(size_t bytes) {
    return (bytes + TG_GPU_ALIGN - 1) / TG_GPU_ALIGN * TG_GPU_ALIGN;
}

/* -------------------------------------------------------------------------------------- mirrors */

/* Bytes of one value, which lies in one segment. */
static tg_gpu_range in_work(const webgpu *w, size_t offset, size_t bytes) {
    const size_t segment = w->base.segment_bytes;
    return (tg_gpu_range) { w->work[offset / segment], offset % segment, bytes };
}

/* Values of a workspace are there until another plan runs. */
static tg_status fetch(tg_backend *b, void *p, size_t bytes) {
    webgpu *w = (webgpu *)b;
    if (w->last && tg_bytes_meet(w->last->memory, w->last_bytes, p, bytes)) {
        const tg_gpu_range r = in_work(w, (size_t)((char *)p - w->last->memory), bytes);
        return tg_bring_down(&w->mirrors, &w->work_down, w->runs, r.buffer, (size_t)r.offset, p,
                             bytes);
    }
    return tg_mirrors_fetch(&w->mirrors, p, bytes);
}

static tg_status touched(tg_backend *b, const void *p, size_t bytes) {
    return tg_mirrors_touched(&((webgpu *)b)->mirrors, p, bytes);
}

/* -------------------------------------------------------------------------------------- compiling
 *
 * Two stages. make_tables fixes what shapes alone decide: shaders, the words, the transfers. bind
 * makes the groups, and is done again when the work buffer had to grow.
 */

static void free_groups(webgpu *w, compiled *c) {
    for (size_t i = 0; i < c->n_dispatches; i++) {
        tg_gpu_group_free(w->gpu, c->dispatches[i].group);
        c->dispatches[i].group = 0;
    }
}

static void free_compiled(webgpu *w, compiled *c) {
    const tg_mem *mem = &w->ctx->mem;
    if (c->dispatches) free_groups(w, c);
    tg_single_free(&c->single, w->gpu);
    tg_gpu_buffer_free(w->gpu, c->words);
    tg_free(mem, c->dispatches, (c->n_dispatches + 1) * sizeof *c->dispatches);
    tg_free(mem, c->units, c->n_steps * sizeof *c->units);
    tg_free(mem, c->first, (c->n_steps + 1) * sizeof *c->first);
    tg_free(mem, c->in, c->n_in * sizeof *c->in);
    tg_free(mem, c->out, c->n_out * sizeof *c->out);
    tg_free(mem, c->down, (c->n_out + 2) * sizeof *c->down);
    tg_free(mem, c->written, c->n_states * sizeof *c->written);
    if (w->last == c) w->last = NULL;
    *c = (compiled) { .steps = NULL };
}

/* Where a value of the plan is; false: nowhere, as it is absent. */
static bool locate(webgpu *w, const tg_plan *plan, const tg_value *v, tg_gpu_range *out) {
    const tg_place *p = v ? tg_plan_place_of(plan, v) : NULL;
    if (!p || p->kind == TG_PLACE_NONE || p->bytes == 0) return false;
    if (p->kind == TG_PLACE_STATE) {
        const tg_mirror *m = tg_mirrors_find(&w->mirrors, plan->states[p->state].data);
        *out = (tg_gpu_range) { m->buffer, m->at + p->offset_bytes, p->bytes };
    } else {
        *out = in_work(w, p->offset_bytes, p->bytes);
    }
    return true;
}

/* The value of a slot of one of the members; NULL: there is none. */
static const tg_value *value_of(const tg_plan *plan, const unit *u, unsigned slot) {
    if (slot / 16 >= u->n_members) return NULL;
    const tg_node *n = plan->steps[u->members[slot / 16]].node;
    slot %= 16;
    if (slot < TG_BIND_OUT(0)) return n->in[slot - TG_BIND_IN(0)];
    if (slot < TG_BIND_SCRATCH && slot - TG_BIND_OUT(0) < n->n_out)
        return &n->out[slot - TG_BIND_OUT(0)];
    return NULL;
}

/* The arguments of all members, which lie in a row for the shader's functions. */
static void members_args(const tg_plan *plan, const unit *u, tg_args a[TG_MAX_MEMBERS]) {
    for (unsigned m = 0; m < u->n_members; m++) a[m] = plan->steps[u->members[m]].args;
}

/* The dispatches of a step, in their order: the pieces of its first pass, and the others. */
static size_t dispatches_of(const unit *u) {
    return u->shader ? tg_shader_passes(u->shader) - 1 + u->n_pieces : 0;
}
static const tg_shader_pass *pass_of(const unit *u, size_t dispatch) {
    return &u->shader->pass[dispatch < u->n_pieces ? 0 : dispatch - u->n_pieces + 1];
}

/* A multiple of this is a multiple of 256 bytes, of partial sums in scratch as well. */
enum { PIECE_ELEMS = 64 * 1024 };

/* Pieces as large as a binding allows. */
static void find_pieces(const webgpu *w, const tg_args *a, unit *u) {
    const uint64_t most = tg_gpu_get_info(w->gpu)->max_binding_bytes / sizeof(float);
    const size_t n = tg_type_elems(&a->in_type[0]);
    u->n_pieces = 1;
    u->piece_elems = n;
    if (!u->shader->splits || n <= most || most < PIECE_ELEMS) return;
    u->piece_elems = (size_t)(most / PIECE_ELEMS * PIECE_ELEMS);
    u->n_pieces = (n + u->piece_elems - 1) / u->piece_elems;
}

/* The arguments of one piece: see tg_shader.splits. */
static void cut_args(const unit *u, size_t piece, tg_args *a) {
    const size_t n = tg_type_elems(&a->in_type[0]), begin = piece * u->piece_elems;
    if (u->n_pieces == 1) return;
    const size_t some = n - begin < u->piece_elems ? n - begin : u->piece_elems;
    for (int k = 0; k < TG_MAX_IN; k++)
        if (tg_type_elems(&a->in_type[k]) == n)
            a->in_type[k] = tg_type_1d(a->in_type[k].dtype, some);
    for (int k = 0; k < TG_MAX_OUT; k++)
        if (tg_type_elems(&a->out_type[k]) == n)
            a->out_type[k] = tg_type_1d(a->out_type[k].dtype, some);
    const size_t front = a->attr.i[0] > 0 ? (size_t)a->attr.i[0] : 0;
    a->attr.i[0] = (int32_t)(front > begin ? front - begin : 0);
}

/* The range of a piece, of values that are cut and of scratch. */
static void cut_range(const tg_plan *plan, const unit *u, size_t piece, bool scratch,
                      tg_gpu_range *r) {
    tg_args a[TG_MAX_MEMBERS];
    if (u->n_pieces == 1 || piece >= u->n_pieces) return;
    members_args(plan, u, a);
    const uint64_t whole = tg_type_bytes(&a->in_type[0]);
    uint64_t each = u->piece_elems * sizeof(float);
    if (scratch) {
        cut_args(u, 0, a);
        each = u->shader->scratch_bytes(a);
    } else if (r->bytes != whole) {
        return;
    }
    const uint64_t rest = r->bytes - piece * each;
    r->offset += piece * each;
    r->bytes = rest < each ? rest : each;
}

/* The ranges of a dispatch of a step. False: one of them is not aligned or too large, or two of
 * them meet. */
static bool ranges_of(webgpu *w, const tg_plan *plan, size_t step, size_t dispatch,
                      const compiled *c, tg_gpu_range *ranges) {
    const unit *u = &c->units[step];
    const tg_shader_pass *pass = pass_of(u, dispatch);
    const size_t number = c->first[step] + dispatch;
    ranges[0] = (tg_gpu_range) { c->words, number * TG_GPU_ALIGN, TG_STEP_WORDS * 4 };
    ranges[1] = (tg_gpu_range) { w->call, 0, TG_CALL_BYTES };
    const unsigned bindings = tg_shader_bindings(pass);
    for (unsigned i = 0; i < bindings; i++) {
        tg_gpu_range *r = &ranges[2 + i];
        *r = (tg_gpu_range) { w->dummies, i * DUMMY_BYTES, DUMMY_BYTES };
        const bool scratch = pass->bind[i] == TG_BIND_SCRATCH && u->shader->scratch_bytes;
        if (scratch) *r = (tg_gpu_range) { w->scratch, 0, c->scratch_bytes };
        if (scratch || locate(w, plan, value_of(plan, u, pass->bind[i]), r))
            cut_range(plan, u, dispatch, scratch, r);
        if (r->offset % TG_GPU_ALIGN) return false;
        if (r->bytes > tg_gpu_get_info(w->gpu)->max_binding_bytes) return false;
        for (unsigned j = 2; j < 2 + i; j++)
            if (ranges[j].buffer == r->buffer && ranges[j].offset < r->offset + r->bytes &&
                r->offset < ranges[j].offset + ranges[j].bytes)
                return false;
    }
    return true;
}

/* One buffer, made anew if it is too small. */
static tg_status grow(webgpu *w, const char *label, size_t have, size_t want, uint32_t *buffer) {
    if (want <= have) return TG_OK;
    tg_gpu_buffer_free(w->gpu, *buffer);
    *buffer = 0;
    w->work_version++;
    w->work_fresh = true;
    w->last = NULL;
    const tg_status s = tg_gpu_buffer_new(w->gpu, label, want, false, buffer);
    if (s != TG_OK) w->work_bytes = w->scratch_bytes = 0; /* all is made anew next time */
    return s;
}

/* Room for the plan's values and scratch. Of segments only the last one may be short. */
static tg_status reserve_work(webgpu *w, size_t bytes, size_t scratch_bytes) {
    const size_t segment = w->base.segment_bytes;
    const uint64_t most = (uint64_t)MAX_SEGMENTS * segment; /* 4 GiB would be 0 in 32 bits */
    if (bytes > most)
        return tg_fail(w->ctx, TG_E_MEMORY,
                       "GPU: workspace: want %zu bytes, have at most %" PRIu64
                       ": lower the batch or the context",
                       bytes, most);
    for (size_t i = 0, at = 0; at < bytes; i++, at += segment) {
        const size_t had = w->work_bytes > at ? w->work_bytes - at : 0;
        const size_t want = bytes - at < segment ? bytes - at : segment;
        TG_TRY(grow(w, "workspace", had < segment ? had : segment, want, &w->work[i]));
    }
    if (bytes > w->work_bytes) w->work_bytes = bytes;
    TG_TRY(grow(w, "scratch", w->scratch_bytes, scratch_bytes, &w->scratch));
    if (scratch_bytes > w->scratch_bytes) w->scratch_bytes = scratch_bytes;
    return TG_OK;
}

typedef struct place_of_plan {
    webgpu *w;
    const tg_plan *plan;
} place_of_plan;

static bool locate_single(void *user, const tg_value *v, tg_gpu_range *out) {
    const place_of_plan *p = user;
    return locate(p->w, p->plan, v, out);
}

/* Of a plan that is one dispatch. */
static tg_gpu_dispatch *single_of(compiled *c) { return c->dispatches + c->first[0]; }

static tg_status bind_single(webgpu *w, const tg_plan *plan, compiled *c) {
    place_of_plan p = { w, plan };
    const tg_single_buffers b = { .call = w->call,
                                  .work = w->work[0],
                                  .dummies = w->dummies,
                                  .work_bytes = round_up(plan->workspace_bytes),
                                  .locate = locate_single,
                                  .user = &p };
    TG_TRY(tg_single_bind(&c->single, &w->single, w->ctx, w->gpu, plan, &b, single_of(c)));
    c->work_version = w->work_version;
    return TG_OK;
}

static tg_status bind(webgpu *w, const tg_plan *plan, compiled *c) {
    TG_TRY(reserve_work(w, round_up(plan->workspace_bytes), c->scratch_bytes));
    if (c->work_version == w->work_version) return TG_OK;
    free_groups(w, c);
    for (size_t i = 0; i < c->n_out; i++) {
        const tg_gpu_range r = in_work(w, c->out[i].offset, c->out[i].bytes);
        c->down[i] = (tg_gpu_piece) { r.buffer, r.offset, r.bytes, c->out[i].host };
    }
    c->settled = false;
    if (c->first[0] > 0) {
        tg_gpu_range ranges[] = {
            { w->call, 0, TG_CALL_BYTES }, { w->call, 0, TG_CALL_BYTES }, { 0 }, { 0 }
        };
        locate(w, plan, plan->carry_in, &ranges[2]);
        locate(w, plan, plan->carry_out, &ranges[3]);
        TG_TRY(tg_gpu_group_new(w->gpu, c->dispatches->pipeline, ranges, &c->dispatches->group));
    }
    if (c->single.on) TG_TRY(bind_single(w, plan, c));
    for (size_t s = c->single.n_steps; s < plan->n_steps; s++)
        for (size_t i = c->first[s]; i < c->first[s + 1]; i++) {
            tg_gpu_range ranges[2 + TG_MAX_BIND];
            if (!ranges_of(w, plan, s, i - c->first[s], c, ranges)) {
                c->on_cpu = true;
                tg_say(w->ctx, TG_LOG_WARNING, "plan %s runs on the CPU: %s cannot be bound",
                       plan->name, plan->steps[s].node->name);
                return TG_OK;
            }
            TG_TRY(tg_gpu_group_new(w->gpu, c->dispatches[i].pipeline, ranges,
                                    &c->dispatches[i].group));
        }
    c->work_version = w->work_version;
    return TG_OK;
}

static void *list(webgpu *w, tg_status *s, size_t n, size_t bytes) {
    void *p = *s == TG_OK ? tg_alloc(&w->ctx->mem, n * bytes) : NULL;
    if (*s == TG_OK && !p) *s = tg_fail_memory(w->ctx, "dispatches of a plan", n * bytes);
    return p;
}

/* Are its levers on, and can what it keeps in between be bound? */
static bool is_offered(const webgpu *w, const tg_args *a, const tg_shader *s) {
    return !(s->needs & ~w->levers) &&
           (!s->needs || !s->scratch_bytes ||
            s->scratch_bytes(a) <= tg_gpu_get_info(w->gpu)->max_binding_bytes);
}

/* Is it what a measurement has found best, or what the rule prefers? Rows that are to be as if
 * alone go by the rule, as those that are alone do: single rows are not measured. */
static bool is_chosen(const webgpu *w, const tg_op_desc *d, const tg_args *a, unsigned n_members,
                      const tg_shader *s, bool by_rule) {
    if ((s->fits && !s->fits(a)) || !is_offered(w, a, s)) return false;
    if (by_rule) return !s->prefers || s->prefers(a);
    const char *name = a->rows_alone ? NULL : tg_gpu_tiles_find(w->tiles, d, a, n_members);
    return name && strcmp(name, s->name) == 0;
}

/* How far behind its leader a member may be. */
enum { REACH = 5 };

static bool find_members(const tg_plan *plan, const compiled *c, size_t s, const tg_merge *merge,
                         unit *u) {
    *u = (unit) { .shader = &merge->shader, .n_members = 1, .members = { s } };
    const tg_node *leader = plan->steps[s].node;
    for (unsigned m = 1; m < merge->n_members; m++) {
        size_t t = s + 1;
        const size_t end = s + 1 + REACH < plan->n_steps ? s + 1 + REACH : plan->n_steps;
        while (t < end && (c->units[t].n_members ||
                           !merge->joins(plan->graph, leader, plan->steps[t].node, m) ||
                           !tg_merge_may_join(plan, s, t)))
            t++;
        if (t == end) return false;
        u->members[u->n_members++] = t;
    }
    return true;
}

/* The step with others, if it can. */
static bool choose_merge(const webgpu *w, const tg_plan *plan, compiled *c, size_t s,
                         bool by_rule) {
    const tg_op_desc *d = tg_op_table[plan->steps[s].node->op];
    for (size_t i = 0; w->merges && i < d->n_merges; i++) {
        unit u;
        tg_args a[TG_MAX_MEMBERS];
        if (!find_members(plan, c, s, &d->merges[i], &u)) continue;
        members_args(plan, &u, a);
        if (!is_chosen(w, d, a, u.n_members, u.shader, by_rule)) continue;
        c->units[s] = u;
        for (unsigned m = 1; m < u.n_members; m++) c->units[u.members[m]].n_members = 1;
        return true;
    }
    return false;
}

/* by_levers: of the shaders that need some, else of the others. */
static bool choose_alone(const webgpu *w, const tg_plan *plan, compiled *c, size_t s, bool by_rule,
                         bool by_levers) {
    const tg_op_desc *d = tg_op_table[plan->steps[s].node->op];
    for (size_t i = 0; i < d->n_shaders; i++) {
        const tg_shader *shader = &d->shaders[i];
        if ((shader->needs != 0) != by_levers) continue;
        if (!is_chosen(w, d, &plan->steps[s].args, 1, shader, by_rule)) continue;
        c->units[s] = (unit) { .shader = shader, .n_members = 1, .members = { s } };
        return true;
    }
    return false;
}

/* False: the step has no shader. */
static bool choose_unit(const webgpu *w, const tg_plan *plan, compiled *c, size_t s) {
    return c->units[s].n_members || choose_alone(w, plan, c, s, true, true) ||
           choose_merge(w, plan, c, s, false) || choose_merge(w, plan, c, s, true) ||
           choose_alone(w, plan, c, s, false, false) || choose_alone(w, plan, c, s, true, false);
}

/* One dispatch for all steps but, maybe, the last. That of sampling is one by itself. */
static void choose_single(webgpu *w, const tg_plan *plan, compiled *c) {
    if (!w->single.groups || plan->n_steps < 2 || !plan->dynamic ||
        plan->workspace_bytes > w->base.segment_bytes ||
        !tg_single_fits(&c->single, &w->single, w->ctx, tg_gpu_get_info(w->gpu), plan))
        return;
    for (size_t s = 0; s < c->single.n_steps; s++) c->first[s + 1] = c->first[0] + 1;
}

/* Shaders of all steps, and how many dispatches they are; on_cpu where there is none for a step. */
static void choose_shaders(webgpu *w, const tg_plan *plan, compiled *c) {
    choose_single(w, plan, c);
    for (size_t s = c->single.n_steps; s < plan->n_steps; s++) {
        if (!choose_unit(w, plan, c, s)) {
            const tg_node *n = plan->steps[s].node;
            c->on_cpu = true;
            tg_say(w->ctx, TG_LOG_WARNING, "plan %s runs on the CPU: no shader of %s fits %s",
                   plan->name, tg_op_table[n->op]->name, n->name);
            return;
        }
        unit *u = &c->units[s];
        tg_args a[TG_MAX_MEMBERS];
        members_args(plan, u, a);
        if (u->shader) find_pieces(w, a, u);
        c->first[s + 1] = c->first[s] + dispatches_of(u);
        if (!u->shader || !u->shader->scratch_bytes) continue;
        cut_args(u, 0, a);
        const size_t scratch = round_up(u->shader->scratch_bytes(a) * u->n_pieces);
        if (scratch > c->scratch_bytes) c->scratch_bytes = scratch;
    }
}

/* What goes up before a run, the inputs and constants, and what comes down after it. */
static bool goes_up(const tg_node *n) {
    const tg_op_desc *d = tg_op_table[n->op];
    return d->structural && !d->is_state && n->n_in == 0;
}

/* Counts where the lists are NULL, else fills them. */
static void list_transfers(const tg_plan *plan, compiled *c) {
    c->n_in = c->n_out = 0;
    for (const tg_node *n = plan->graph->first; n; n = n->next)
        for (int k = 0; k < n->n_out; k++) {
            const tg_place *p = tg_plan_place_of(plan, &n->out[k]);
            if (p->kind != TG_PLACE_WORKSPACE) continue;
            const transfer t = { tg_plan_data(plan, &n->out[k]), p->offset_bytes, p->bytes };
            if (goes_up(n)) {
                if (c->in) c->in[c->n_in] = t;
                c->n_in++;
            } else if (n->out[k].is_output) {
                if (c->out) c->out[c->n_out] = t;
                c->n_out++;
            }
        }
}

/* The states that a run changes: of the others the host's copy stays right. */
static void mark_written(const tg_plan *plan, compiled *c) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        const tg_node *n = plan->steps[s].node;
        for (int k = 0; k < n->n_out; k++) {
            const tg_place *p = tg_plan_place_of(plan, &n->out[k]);
            if (p->kind == TG_PLACE_STATE) c->written[p->state] = true;
        }
    }
}

/* The words of a dispatch, its pipeline and its workgroups. A pass behind pieces is told how many
 * workgroups they have together. */
static tg_status make_dispatch(webgpu *w, const tg_plan *plan, compiled *c, size_t s, size_t k) {
    const tg_step *step = &plan->steps[s];
    const unit *u = &c->units[s];
    const tg_shader_pass *pass = pass_of(u, k);
    tg_gpu_dispatch *d = &c->dispatches[c->first[s] + k];
    uint32_t words[TG_STEP_WORDS], groups = 0;
    tg_args a[TG_MAX_MEMBERS];
    for (size_t piece = 0; piece < u->n_pieces; piece++) {
        members_args(plan, u, a);
        cut_args(u, piece, a);
        groups += (uint32_t)u->shader->pass[0].groups(a);
    }
    members_args(plan, u, a);
    if (k < u->n_pieces) cut_args(u, k, a);
    tg_shader_words(u->shader, a, step->acc_mask, step->dynamic_in, step->dynamic_out, words);
    for (unsigned m = 1; m < u->n_members; m++)
        words[61] |= (uint32_t)plan->steps[u->members[m]].acc_mask << 8 * (m - 1);
    words[63] = groups;
    TG_TRY(tg_gpu_write(w->gpu, c->words, (c->first[s] + k) * TG_GPU_ALIGN, words, sizeof words));
    TG_TRY(tg_shader_pipeline(&w->shaders, u->shader, pass, &d->pipeline));
    tg_shader_fold(pass->groups(a), d);
    return TG_OK;
}

static tg_status make_dispatches(webgpu *w, const tg_plan *plan, compiled *c) {
    tg_status status = TG_OK;
    c->n_dispatches = c->first[plan->n_steps];
    c->dispatches = list(w, &status, c->n_dispatches + 1, sizeof *c->dispatches);
    TG_TRY(status);
    if (c->first[0] > 0) {
        *c->dispatches = (tg_gpu_dispatch) { .x = 1, .y = 1, .z = 1 };
        TG_TRY(tg_shader_pipeline(&w->shaders, &carry, &carry.pass[0], &c->dispatches->pipeline));
    }
    TG_TRY(tg_gpu_buffer_new(w->gpu, plan->name, c->n_dispatches * TG_GPU_ALIGN, true, &c->words));
    /* The kernel of a single dispatch depends on where the states are: bind has it. */
    for (size_t i = c->single.n_steps; i < plan->n_steps; i++)
        for (size_t k = 0; k < dispatches_of(&c->units[i]); k++)
            TG_TRY(make_dispatch(w, plan, c, i, k));
    return TG_OK;
}

static tg_status make_tables(webgpu *w, const tg_plan *plan, compiled *c) {
    tg_status status = TG_OK;
    *c = (compiled) { .steps = plan->steps,
                      .memory = plan->memory,
                      .version = plan->version,
                      .n_steps = plan->n_steps,
                      .n_states = plan->n_states };
    c->units = list(w, &status, c->n_steps, sizeof *c->units);
    c->first = list(w, &status, c->n_steps + 1, sizeof *c->first);
    TG_TRY(status);
    c->first[0] = has_carry(plan);
    choose_shaders(w, plan, c);
    if (c->on_cpu) return TG_OK;
    list_transfers(plan, c);
    c->in = list(w, &status, c->n_in, sizeof *c->in);
    c->out = list(w, &status, c->n_out, sizeof *c->out);
    c->down = list(w, &status, c->n_out + 2, sizeof *c->down);
    c->written = list(w, &status, c->n_states, sizeof *c->written);
    TG_TRY(status);
    list_transfers(plan, c);
    mark_written(plan, c);
    TG_TRY(tg_mirrors_reserve(&w->mirrors, plan, c->written));
    return make_dispatches(w, plan, c);
}

static tg_status new_compiled(webgpu *w, compiled **out) {
    for (size_t i = 0; i < w->n_plans; i++) {
        *out = &w->plans[i];
        if (!(*out)->steps) return TG_OK;
    }
    const size_t bytes = w->n_plans * sizeof(compiled);
    compiled *c = tg_realloc(&w->ctx->mem, w->plans, bytes, bytes + sizeof(compiled));
    if (!c) return tg_fail_memory(w->ctx, "list of plans", bytes + sizeof(compiled));
    w->plans = c;
    w->last = NULL; /* it may have moved */
    *out = &c[w->n_plans++];
    return TG_OK;
}

static void free_work(webgpu *w) {
    for (size_t i = 0; i < MAX_SEGMENTS; i++) tg_gpu_buffer_free(w->gpu, w->work[i]);
    tg_gpu_buffer_free(w->gpu, w->scratch);
    memset(w->work, 0, sizeof w->work);
    w->scratch = 0;
    w->work_bytes = w->scratch_bytes = 0;
    w->work_version++;
    w->last = NULL;
}

/* Where a page learns too late that there was no memory, what was made goes, so that a smaller plan
 * may do. */
static void drop_fresh(webgpu *w, compiled *c) {
    for (size_t i = 0; i < w->mirrors.n; i++) {
        if (!w->mirrors.list[i].fresh) continue;
        tg_mirrors_free_one(&w->mirrors, &w->mirrors.list[i]);
        for (size_t k = 0; k < w->n_plans; k++) w->plans[k].version = 0;
    }
    if (w->work_fresh) free_work(w);
    free_compiled(w, c);
}

static tg_status settle(webgpu *w, compiled *c) {
    const tg_status s = tg_gpu_settle(w->gpu);
    if (s == TG_PENDING) return s;
    if (s == TG_OK)
        c->settled = true;
    else
        drop_fresh(w, c);
    for (size_t i = 0; i < w->mirrors.n; i++) w->mirrors.list[i].fresh = false;
    w->work_fresh = false;
    return s;
}

static tg_status compile(webgpu *w, const tg_plan *plan, bool begun, bool reads, compiled **out);

/* Whether workgroups meet in the kernel is tried before it is used. */
static tg_status try_single(webgpu *w, const tg_plan *plan, compiled **c) {
    TG_TRY(tg_single_try(&(*c)->single, &w->single, w->gpu, single_of(*c)));
    if (!tg_single_came(&(*c)->single)) {
        tg_single_give_up(&(*c)->single, &w->single, w->ctx, plan);
        free_compiled(w, *c);
        return compile(w, plan, false, false, c);
    }
    (*c)->single.tried = true;
    (*c)->work_version = 0; /* the list of the trial goes */
    TG_TRY(bind(w, plan, *c));
    return settle(w, *c);
}

/* The plan, compiled at its first run and when it was bound anew; without static bindings for each
 * run, but for its pipelines. */
static tg_status compile(webgpu *w, const tg_plan *plan, bool begun, bool reads, compiled **out) {
    compiled *c = NULL;
    for (size_t i = 0; i < w->n_plans && !c; i++)
        if (w->plans[i].steps == plan->steps) c = &w->plans[i];
    *out = c;
    if (c && reads) return TG_OK; /* who waits for a reading has what it needs */
    const bool again = c && c->settled && !begun && !(w->levers & TG_LEVER_BIT(static_bindings));
    const bool others = c && !begun && c->single.of_rules != w->single.groups && c->single.on;
    if (c && (again || others || c->version != plan->version || c->memory != plan->memory))
        free_compiled(w, c);
    if (!c) TG_TRY(new_compiled(w, &c));
    if (!c->steps) {
        const tg_status s = make_tables(w, plan, c);
        if (s != TG_OK) {
            free_compiled(w, c);
            return s;
        }
    }
    const tg_status bound = c->on_cpu ? TG_OK : bind(w, plan, c);
    if (bound == TG_E_UNSUPPORTED && c->single.on) {
        tg_single_give_up(&c->single, &w->single, w->ctx, plan);
        free_compiled(w, c);
        return compile(w, plan, begun, false, out);
    }
    TG_TRY(bound);
    *out = c;
    if (!c->on_cpu && !c->settled) TG_TRY(settle(w, c));
    return c->single.on && !c->single.tried ? try_single(w, plan, out) : TG_OK;
}

/* ---------------------------------------------------------------------------------------- running
 */

/* The workgroups that the call's rows need. */
static void set_rows(tg_plan *plan, compiled *c, size_t rows) {
    for (size_t s = c->single.n_steps; s < plan->n_steps; s++) {
        tg_args a = plan->steps[s].args;
        if (!plan->steps[s].dynamic_in && !plan->steps[s].dynamic_out) continue;
        for (int k = 0; k < TG_MAX_IN; k++)
            if (plan->steps[s].dynamic_in >> k & 1) a.in_type[k].dim[0] = rows;
        for (int k = 0; k < TG_MAX_OUT; k++)
            if (plan->steps[s].dynamic_out >> k & 1) a.out_type[k].dim[0] = rows;
        for (size_t i = c->first[s]; i < c->first[s + 1]; i++)
            tg_shader_fold(c->units[s].shader->pass[i - c->first[s]].groups(&a), &c->dispatches[i]);
    }
}

/* What the GPU has is brought down, and what the CPU made of it up again. */
static tg_status run_on_cpu(webgpu *w, tg_plan *plan, const tg_scalars *rt, tg_run *run) {
    w->last = NULL;
    for (size_t i = 0; i < plan->n_states && !tg_run_begun(run); i++)
        TG_TRY(fetch(&w->base, plan->states[i].data, plan->states[i].bytes));
    const tg_status status = tg_backend_run(w->cpu, plan, rt, run);
    for (size_t i = 0; i < plan->n_states; i++)
        TG_TRY(touched(&w->base, plan->states[i].data, plan->states[i].bytes));
    return status;
}

static tg_status upload_work(webgpu *w, const transfer *t) {
    const tg_gpu_range r = in_work(w, t->offset, t->bytes);
    return tg_bring_up(&w->mirrors, r.buffer, (size_t)r.offset, t->host, t->bytes);
}

/* Each step once, in its turn, by the GPU's clock, where it has one. */
static tg_status run_timed(webgpu *w, const compiled *c, const tg_run *r, size_t end) {
    const tg_status s = r->often ? TG_E_UNSUPPORTED
                                 : tg_gpu_submit_timed(w->gpu, c->dispatches, c->first + r->next,
                                                       end - r->next, r->step_ms + r->next);
    return s == TG_E_UNSUPPORTED
               ? tg_submit_often(w->ctx, w->gpu, c->dispatches, c->first, r->next, end, r->step_ms)
               : s;
}

static const compiled *find_compiled(const tg_backend *b, const tg_plan *plan) {
    const webgpu *w = (const webgpu *)b;
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].steps && w->plans[i].steps == plan->steps) return &w->plans[i];
    return NULL;
}

static const char *kernel_name(const tg_backend *b, const tg_plan *plan, size_t step,
                               size_t *leader) {
    const compiled *c = find_compiled(b, plan);
    if (!c || c->on_cpu) return NULL;
    *leader = 0;
    if (step < c->single.n_steps) return "single";
    bool found = c->units[step].shader != NULL;
    for (*leader = step; !found;) {
        const unit *u = &c->units[--*leader];
        for (unsigned m = 1; u->shader && m < u->n_members; m++)
            found = found || u->members[m] == step;
    }
    return c->units[*leader].shader->name;
}

unsigned tg_webgpu_unit(const tg_backend *b, const tg_plan *plan, size_t step,
                        tg_args args[TG_MAX_MEMBERS], const tg_shader **shader) {
    const compiled *c = find_compiled(b, plan);
    if (!c || c->on_cpu || !c->units[step].shader) return 0;
    members_args(plan, &c->units[step], args);
    *shader = c->units[step].shader;
    return c->units[step].n_members;
}

const tg_single *tg_webgpu_single_of(const tg_backend *b, const tg_plan *plan) {
    const compiled *c = find_compiled(b, plan);
    return c && c->single.on ? &c->single : NULL;
}

size_t tg_webgpu_dispatches(const tg_backend *b, const tg_plan *plan) {
    const compiled *c = find_compiled(b, plan);
    return c && !c->on_cpu ? c->n_dispatches - c->first[0] : 0;
}

static tg_status submit(webgpu *w, tg_plan *plan, compiled *c, const tg_scalars *rt,
                        const tg_run *r, size_t end) {
    const char *const carried = r->carries ? tg_plan_data(plan, plan->carry_in) : NULL;
    for (size_t i = 0; i < c->n_in && r->next == 0; i++)
        if (c->in[i].host != carried) TG_TRY(upload_work(w, &c->in[i]));
    if (plan->dynamic) set_rows(plan, c, (size_t)rt->rows);
    w->last = c;
    w->last_bytes = plan->workspace_bytes;
    w->runs++;
    for (size_t i = 0; i < plan->n_states; i++)
        if (c->written[i]) tg_mirrors_find(&w->mirrors, plan->states[i].data)->version++;
    TG_TRY(tg_gpu_write(w->gpu, w->call, 0, rt, sizeof *rt));
    if (c->single.on && r->next == 0)
        TG_TRY(tg_single_begin(&c->single, &w->single, w->gpu, single_of(c)));
    if (r->step_ms) return run_timed(w, c, r, end);
    const size_t begin = r->next == 0 && r->carries ? 0 : c->first[r->next];
    return tg_submit_check_submit(&w->submits, c->dispatches + begin, c->first[end] - begin);
}

/* Phases of a run: its submit is awaited, which is all but the last where there is a deadline; or
 * all are on their way, and nobody waited in between. */
enum { AWAITED = 1, UNBROKEN = 2 };

/* Submits that nobody waits for in between. */
static tg_status submit_unbroken(webgpu *w, tg_plan *plan, compiled *c, const tg_scalars *rt,
                                 tg_run *r, size_t all) {
    const double begun_ms = tg_time_ms();
    if (r->cancel && r->cancel(r->cancel_user)) return TG_STOPPED;
    for (size_t end = 0; end < all; r->next = end) {
        end = tg_gpu_slice_begin(&c->slices, r->next, all, false);
        TG_TRY(submit(w, plan, c, rt, r, end));
    }
    c->slices.begun_ms = begun_ms;
    r->phase = UNBROKEN;
    return TG_OK;
}

/* All steps that are left, in slices; who cancels is asked before each. */
static tg_status submit_slices(webgpu *w, tg_plan *plan, compiled *c, const tg_scalars *rt,
                               tg_run *r, size_t all) {
    for (;;) {
        if (r->phase == AWAITED) {
            TG_TRY(tg_gpu_wait(w->gpu));
            r->next = tg_gpu_slice_end(&c->slices, r->next);
            r->phase = 0;
            if (tg_time_over(r->deadline_ms)) return TG_PENDING;
        }
        if (r->cancel && r->cancel(r->cancel_user)) return TG_STOPPED;
        TG_TRY(submit(w, plan, c, rt, r, tg_gpu_slice_begin(&c->slices, r->next, all, true)));
        if (c->slices.end == all) return TG_OK;
        r->later = false;
        r->phase = AWAITED;
    }
}

/* What the last run left is there, and a run is one submit, as far as is known: who waits for
 * slices of the run before must not find a long one behind it. */
static bool may_carry(const webgpu *w, const compiled *c) {
    return !c->on_cpu && w->last == c && (c->slices.steps == 0 || c->slices.steps >= c->n_steps);
}

/* A run whose outputs are awaited has the number of their reading in its unit. */
static tg_status run(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *r) {
    webgpu *w = (webgpu *)b;
    compiled *c;
    uint32_t number = (uint32_t)r->unit;
    if (tg_gpu_lost(w->gpu)) return tg_gpu_settle(w->gpu);
    TG_TRY(compile(w, plan, tg_run_begun(r), number != 0, &c));
    if (number && !find_reading(c->readings, number)) {
        tg_run_restart(r);
        number = 0;
        r->carries = false;
    }
    if (r->carries && !number && !may_carry(w, c)) return TG_PENDING;
    r->later = r->later && !c->on_cpu;
    if (c->on_cpu) return run_on_cpu(w, plan, rt, r);
    const size_t end = r->end ? r->end : plan->n_steps;
    const size_t n_out = end == plan->n_steps ? c->n_out : 0;
    const size_t n_read = n_out + c->single.on;
    if (c->single.on) c->down[n_out] = tg_single_piece(&c->single);
    /* Another plan has had the workspace since: what lay there is gone. */
    const bool broken = !number && tg_run_begun(r) && w->last != c;
    if (broken) tg_run_restart(r);
    const bool in_slices = r->deadline_ms > 0 && !r->step_ms && !r->unbroken && !broken;
    if (!number) {
        TG_TRY(in_slices ? submit_slices(w, plan, c, rt, r, end)
                         : submit_unbroken(w, plan, c, rt, r, end));
        if (n_read) TG_TRY(begin_reading(c->readings, &w->submits, c->down, n_read, &number));
        r->unit = number;
        if (number && r->later) return TG_PENDING;
    }
    if (n_read) {
        reading *const here = find_reading(c->readings, number);
        TG_TRY(tg_submit_check_read_end(&w->submits, number, c->down, n_read, &here->mark));
        here->number = 0;
        if (r->phase != UNBROKEN)
            tg_gpu_slice_end(&c->slices, r->next);
        else if (r->deadline_ms > 0 && !r->step_ms && !r->end)
            tg_gpu_slices_unbroken(&c->slices, end);
    }
    if (c->single.on && !tg_single_came(&c->single)) {
        tg_single_give_up(&c->single, &w->single, w->ctx, plan);
        free_compiled(w, c);
        tg_run_restart(r);
        r->carries = false;
        return run(b, plan, rt, r);
    }
    r->next = end;
    r->phase = 0;
    r->unit = 0;
    /* One word may be an id of 0; losses, norms and logits are not all 0. */
    const bool is_id = n_out == 1 && c->out->bytes == sizeof(int32_t);
    return n_out && !is_id ? tg_gpu_want_something(w->ctx, w->gpu, c->down, n_out) : TG_OK;
}

/* Plans that lie in the block or use a state in it, and the mirrors of such states. */
static void forget(tg_backend *b, const void *p, size_t bytes) {
    webgpu *w = (webgpu *)b;
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].steps && w->plans[i].memory &&
            tg_bytes_meet(w->plans[i].memory, 1, p, bytes))
            free_compiled(w, &w->plans[i]);
    for (size_t i = 0; i < w->mirrors.n; i++) {
        tg_mirror *m = &w->mirrors.list[i];
        if (!m->buffer || !tg_bytes_meet(m->host, m->bytes, p, bytes)) continue;
        tg_mirrors_free_one(&w->mirrors, m);
        /* Groups of other plans may name the buffer: they are compiled anew if they run again. */
        for (size_t k = 0; k < w->n_plans; k++) w->plans[k].version = 0;
    }
}

/* ------------------------------------------------------------------------------------ the backend
 */

static void free_webgpu(tg_backend *b) {
    webgpu *w = (webgpu *)b;
    const tg_mem mem = w->ctx->mem;
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].steps) free_compiled(w, &w->plans[i]);
    tg_shader_cache_deinit(&w->shaders);
    tg_gpu_tiles_close(w->tiles);
    tg_gpu_close(w->gpu);
    tg_free(&mem, w->plans, w->n_plans * sizeof *w->plans);
    tg_free(&mem, w->mirrors.list, w->mirrors.n * sizeof *w->mirrors.list);
    tg_free(&mem, w, sizeof *w);
}

/* Pipelines stay, which cost time and hardly any memory. Whatever runs next is compiled anew. */
static tg_status rest(tg_backend *b) {
    webgpu *w = (webgpu *)b;
    for (size_t i = 0; i < w->mirrors.n; i++) {
        const tg_mirror *m = &w->mirrors.list[i];
        if (m->buffer) TG_TRY(fetch(b, m->host, m->bytes));
    }
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].steps) free_compiled(w, &w->plans[i]);
    for (size_t i = 0; i < w->mirrors.n; i++)
        if (w->mirrors.list[i].buffer) tg_mirrors_free_one(&w->mirrors, &w->mirrors.list[i]);
    free_work(w);
    return TG_OK;
}

/* What a buffer may have and a binding may reach. */
static size_t segment_of(const tg_gpu_info *i) {
    uint64_t most = (uint64_t)1 << 30;
    if (i->max_buffer_bytes < most) most = i->max_buffer_bytes;
    if (i->max_binding_bytes < most) most = i->max_binding_bytes;
    return (size_t)(most / TG_GPU_ALIGN * TG_GPU_ALIGN);
}

static bool is_lost(const tg_backend *b) { return tg_gpu_lost(((const webgpu *)b)->gpu); }

tg_gpu *tg_webgpu_gpu(tg_backend *b) { return ((webgpu *)b)->gpu; }
tg_single_rules *tg_webgpu_single(tg_backend *b) { return &((webgpu *)b)->single; }
tg_gpu_tiles *tg_webgpu_tiles(tg_backend *b) { return ((webgpu *)b)->tiles; }

tg_status tg_webgpu_new(tg_ctx *ctx, tg_backend *cpu, uint32_t levers, tg_backend **out) {
    webgpu *w = tg_alloc(&ctx->mem, sizeof *w);
    *out = NULL;
    if (!w) return tg_fail_memory(ctx, "WebGPU backend", sizeof *w);
    *w = (webgpu) { .base = { .run = run,
                              .fetch = fetch,
                              .touched = touched,
                              .forget = forget,
                              .rest = rest,
                              .lost = is_lost,
                              .free = free_webgpu,
                              .kernel_name = kernel_name,
                              .align_bytes = TG_GPU_ALIGN,
                              .apart = true,
                              .unwanted_levers = TG_LEVER_BIT(recompute) },
                    .ctx = ctx,
                    .cpu = cpu,
                    .work_version = 1 };
    tg_status s = tg_gpu_open(ctx, &w->gpu);
    w->shaders = (tg_shader_cache) { .gpu = w->gpu, .ctx = ctx, .levers = levers };
    if (s == TG_OK && levers & TG_LEVER_BIT(tuned_tiles))
        w->tiles = tg_gpu_tiles_open(tg_gpu_get_info(w->gpu));
    if (s == TG_OK)
        s = tg_gpu_self_test(&w->shaders, tg_gpu_tiles_tuned(w->tiles), &w->merges, w->note,
                             sizeof w->note);
    if (s == TG_OK)
        w->single =
            tg_single_rules_of(tg_gpu_get_info(w->gpu), levers & TG_LEVER_BIT(single_dispatch),
                               w->shaders.levers & TG_LEVER_BIT(subgroups),
                               w->shaders.levers & TG_LEVER_BIT(int8_activations));
    if (!w->single.groups) w->shaders.levers &= ~TG_LEVER_BIT(single_dispatch);
    w->levers = w->shaders.levers;
    w->base.levers_off = levers & ~w->levers & ~tg_gpu_left_to_cpu;
    if (w->base.levers_off & TG_LEVER_BIT(tuned_tiles)) {
        tg_gpu_tiles_close(w->tiles);
        w->tiles = NULL;
    }
    tg_str_append(w->note, sizeof w->note, "tiles %s, ",
                  tg_gpu_tiles_tuned(w->tiles) ? "tuned" : "by rule");
    w->base.note = w->note;
    if (s == TG_OK) w->base.segment_bytes = segment_of(tg_gpu_get_info(w->gpu));
    w->mirrors = (tg_mirrors) {
        .ctx = ctx, .gpu = w->gpu, .submits = &w->submits, .most_bytes = w->base.segment_bytes
    };
    if (s == TG_OK) s = tg_gpu_buffer_new(w->gpu, "scalars", TG_CALL_BYTES, true, &w->call);
    if (s == TG_OK)
        s = tg_gpu_buffer_new(w->gpu, "dummies", TG_MAX_BIND * DUMMY_BYTES, false, &w->dummies);
    if (s == TG_OK) s = tg_submit_check_init(&w->submits, &w->shaders, w->call);
    if (s == TG_OK)
        *out = &w->base;
    else
        free_webgpu(&w->base);
    return s;
}
