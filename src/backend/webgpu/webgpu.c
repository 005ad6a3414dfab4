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
 * first runs. From then on the GPU's copy is the right one, until somebody asks for it (fetch) or
 * writes on the host (touched). Workspaces are one buffer for all plans, as large as the largest
 * needs: between two runs a plan keeps nothing there. So a run is
 *
 *     inputs up, small     scalars, 64 bytes     one submit of all steps     outputs down
 *
 * and makes no object of the GPU. Where C cannot wait, a run is PENDING while its outputs are on
 * their way down: the number of the reading then is the run's `unit`. A plan with a step that has
 * no shader, or one that a binding cannot serve, runs on the CPU as a whole: states are brought
 * down before it and up after.
 *
 * Invariant: every storage binding of a dispatch is a range at a multiple of 256 bytes, and no two
 * of them meet. Plans made with this backend's rules (plan/plan.h) keep to it.
 */
#include "backend/webgpu/webgpu.h"

#include "backend/webgpu/shaders.h"
#include "base/time.h"

/* Dummies are bound for what is absent; each binding has its own, as ranges must not meet. */
enum { DUMMY_BYTES = TG_GPU_ALIGN };
/* Copied at once; a queue keeps what it was given in memory of its own. */
#define PIECE_BYTES ((size_t)32 << 20)

/* What somebody fetches, piece by piece, so that a copy of a large model does not need the model's
 * size again. It begins anew when the GPU's copy has changed meanwhile. */
typedef struct descent {
    char *host;
    size_t bytes, done;
    unsigned version;
    uint32_t reading; /* of the piece; 0: not begun */
} descent;

typedef struct mirror {
    char *host;
    size_t bytes;
    uint32_t buffer;  /* 0: a free entry */
    bool fresh;       /* whether there was memory for it is not known yet */
    unsigned version; /* of the GPU's copy */
    unsigned held;    /* the one that the host has as well */
    descent down;
} mirror;

typedef struct transfer {
    char *host;
    size_t offset, bytes; /* in work */
} transfer;

/* A plan as the GPU runs it. */
typedef struct compiled {
    const tg_step *steps; /* whose plan; NULL: a free entry */
    const char *memory;
    unsigned version;
    unsigned work_version; /* of the buffer that the groups are bound to */
    bool on_cpu;
    bool settled;   /* all that was made for it is known to be good */
    uint32_t words; /* uniform buffer, 256 bytes a step */
    tg_gpu_dispatch *dispatches;
    const tg_shader **shaders; /* [n_steps] */
    size_t *first;             /* [n_steps + 1] of each step, in dispatches */
    size_t n_steps, n_dispatches;
    transfer *in;
    tg_gpu_piece *down; /* the outputs */
    bool *written;      /* [n_states] */
    size_t n_in, n_out, n_states;
    size_t scratch_bytes;
} compiled;

typedef struct webgpu {
    tg_backend base;
    tg_ctx *ctx;
    tg_backend *cpu;
    tg_gpu *gpu;
    tg_shader_cache shaders;
    uint32_t call, dummies, work;
    size_t work_bytes;
    unsigned work_version;
    bool work_fresh;
    descent work_down;
    mirror *mirrors;
    compiled *plans;
    size_t n_mirrors, n_plans;
    const compiled *last; /* whose values are in work */
    unsigned runs;        /* so far: which values of it */
    size_t last_bytes;
} webgpu;

static size_t round_up(size_t bytes) {
    return (bytes + TG_GPU_ALIGN - 1) / TG_GPU_ALIGN * TG_GPU_ALIGN;
}

static bool meet(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
    return (uintptr_t)a < (uintptr_t)b + b_bytes && (uintptr_t)b < (uintptr_t)a + a_bytes;
}

/* -------------------------------------------------------------------------------------- mirrors */

static tg_status upload(webgpu *w, uint32_t buffer, size_t offset, const char *host, size_t bytes) {
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        const size_t n = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        TG_TRY(tg_gpu_write(w->gpu, buffer, offset + done, host + done, n));
    }
    return TG_OK;
}

static mirror *find_mirror(webgpu *w, const void *host) {
    for (size_t i = 0; i < w->n_mirrors; i++)
        if (w->mirrors[i].buffer && w->mirrors[i].host == host) return &w->mirrors[i];
    return NULL;
}

/* A free entry of an array, which grows by one where there is none. */
static tg_status new_mirror(webgpu *w, mirror **out) {
    for (size_t i = 0; i < w->n_mirrors; i++) {
        *out = &w->mirrors[i];
        if (!(*out)->buffer) return TG_OK;
    }
    const size_t bytes = w->n_mirrors * sizeof(mirror);
    mirror *m = tg_realloc(&w->ctx->mem, w->mirrors, bytes, bytes + sizeof(mirror));
    if (!m) return tg_fail_memory(w->ctx, "list of mirrors", bytes + sizeof(mirror));
    w->mirrors = m;
    *out = &m[w->n_mirrors++];
    return TG_OK;
}

static tg_status reserve_mirror(webgpu *w, const tg_bound_state *s) {
    mirror *m = find_mirror(w, s->data);
    if (m && m->bytes >= s->bytes) return TG_OK;
    TG_ASSERT(!m);
    TG_TRY(new_mirror(w, &m));
    uint32_t buffer;
    TG_TRY(tg_gpu_buffer_new(w->gpu, s->value->name, s->bytes, false, &buffer));
    *m = (mirror) { .host = s->data, .bytes = s->bytes, .buffer = buffer, .fresh = true };
    return upload(w, buffer, 0, s->data, s->bytes);
}

/* The part of a mirror that [p, p + bytes) meets, as offsets in it. */
static bool part_of(const mirror *m, const void *p, size_t bytes, size_t *begin, size_t *end) {
    if (!m->buffer || !meet(m->host, m->bytes, p, bytes)) return false;
    const uintptr_t host = (uintptr_t)m->host, from = (uintptr_t)p;
    *begin = from > host ? from - host : 0;
    *end = from + bytes < host + m->bytes ? from + bytes - host : m->bytes;
    return true;
}

/* TG_PENDING: the place is kept for the next call with the same arguments. */
static tg_status bring_down(webgpu *w, descent *d, unsigned version, uint32_t buffer, size_t offset,
                            char *host, size_t bytes) {
    if (d->host != host || d->bytes != bytes || d->version != version)
        *d = (descent) { .host = host, .bytes = bytes, .version = version };
    while (d->done < bytes) {
        const size_t n = bytes - d->done < PIECE_BYTES ? bytes - d->done : PIECE_BYTES;
        const tg_gpu_piece piece = { buffer, offset + d->done, n, host + d->done };
        if (!d->reading) TG_TRY(tg_gpu_read_begin(w->gpu, &piece, 1, &d->reading));
        const tg_status s = tg_gpu_read_end(w->gpu, d->reading, &piece, 1);
        if (s == TG_PENDING) return s;
        d->reading = 0;
        TG_TRY(s);
        d->done += n;
    }
    *d = (descent) { .host = NULL };
    return TG_OK;
}

/* Values of a workspace are there until another plan runs. */
static tg_status fetch(tg_backend *b, void *p, size_t bytes) {
    webgpu *w = (webgpu *)b;
    size_t begin, end;
    if (w->last && meet(w->last->memory, w->last_bytes, p, bytes))
        return bring_down(w, &w->work_down, w->runs, w->work, (size_t)((char *)p - w->last->memory),
                          p, bytes);
    for (size_t i = 0; i < w->n_mirrors; i++) {
        mirror *m = &w->mirrors[i];
        if (!part_of(m, p, bytes, &begin, &end) || m->held == m->version) continue;
        TG_TRY(bring_down(w, &m->down, m->version, m->buffer, begin, m->host + begin, end - begin));
        if (end - begin == m->bytes) m->held = m->version;
    }
    return TG_OK;
}

static tg_status touched(tg_backend *b, const void *p, size_t bytes) {
    webgpu *w = (webgpu *)b;
    size_t begin, end;
    for (size_t i = 0; i < w->n_mirrors; i++) {
        mirror *m = &w->mirrors[i];
        if (!part_of(m, p, bytes, &begin, &end)) continue;
        const bool held = m->held == m->version;
        m->version++;
        if (held) m->held = m->version;
        TG_TRY(upload(w, m->buffer, begin, m->host + begin, end - begin));
    }
    return TG_OK;
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
    tg_gpu_buffer_free(w->gpu, c->words);
    tg_free(mem, c->dispatches, c->n_dispatches * sizeof *c->dispatches);
    tg_free(mem, c->shaders, c->n_steps * sizeof *c->shaders);
    tg_free(mem, c->first, (c->n_steps + 1) * sizeof *c->first);
    tg_free(mem, c->in, c->n_in * sizeof *c->in);
    tg_free(mem, c->down, c->n_out * sizeof *c->down);
    tg_free(mem, c->written, c->n_states * sizeof *c->written);
    if (w->last == c) w->last = NULL;
    *c = (compiled) { .steps = NULL };
}

/* Where a value of the plan is; false: nowhere, as it is absent. */
static bool locate(webgpu *w, const tg_plan *plan, const tg_value *v, tg_gpu_range *out) {
    const tg_place *p = v ? tg_plan_place_of(plan, v) : NULL;
    if (!p || p->kind == TG_PLACE_NONE || p->bytes == 0) return false;
    *out = (tg_gpu_range) { w->work, p->offset_bytes, p->bytes };
    if (p->kind == TG_PLACE_STATE)
        out->buffer = find_mirror(w, plan->states[p->state].data)->buffer;
    return true;
}

/* The ranges of a pass. False: one of them is not aligned, or two of them meet. */
static bool ranges_of(webgpu *w, const tg_plan *plan, size_t step, const compiled *c,
                      const tg_shader_pass *pass, tg_gpu_range *ranges) {
    const tg_node *n = plan->steps[step].node;
    ranges[0] = (tg_gpu_range) { c->words, step * TG_GPU_ALIGN, TG_STEP_WORDS * 4 };
    ranges[1] = (tg_gpu_range) { w->call, 0, TG_CALL_BYTES };
    const unsigned bindings = tg_shader_bindings(pass);
    for (unsigned i = 0; i < bindings; i++) {
        const unsigned slot = pass->bind[i];
        tg_gpu_range *r = &ranges[2 + i];
        const tg_value *v = NULL;
        if (slot < TG_BIND_OUT(0))
            v = n->in[slot - TG_BIND_IN(0)];
        else if (slot < TG_BIND_SCRATCH && slot - TG_BIND_OUT(0) < n->n_out)
            v = &n->out[slot - TG_BIND_OUT(0)];
        *r = (tg_gpu_range) { w->dummies, i * DUMMY_BYTES, DUMMY_BYTES };
        if (slot == TG_BIND_SCRATCH && c->shaders[step]->scratch_bytes)
            *r = (tg_gpu_range) { w->work, round_up(plan->workspace_bytes), c->scratch_bytes };
        else
            locate(w, plan, v, r);
        if (r->offset % TG_GPU_ALIGN) return false;
        for (unsigned j = 2; j < 2 + i; j++)
            if (ranges[j].buffer == r->buffer && ranges[j].offset < r->offset + r->bytes &&
                r->offset < ranges[j].offset + ranges[j].bytes)
                return false;
    }
    return true;
}

static tg_status bind(webgpu *w, const tg_plan *plan, compiled *c) {
    const size_t bytes = round_up(plan->workspace_bytes) + c->scratch_bytes;
    if (bytes > w->work_bytes) {
        tg_gpu_buffer_free(w->gpu, w->work);
        w->work = 0;
        w->work_bytes = 0;
        w->work_version++;
        w->last = NULL;
        TG_TRY(tg_gpu_buffer_new(w->gpu, "workspace", bytes, false, &w->work));
        w->work_bytes = bytes;
        w->work_fresh = true;
    }
    if (c->work_version == w->work_version) return TG_OK;
    free_groups(w, c);
    c->settled = false;
    for (size_t s = 0; s < plan->n_steps; s++)
        for (size_t i = c->first[s]; i < c->first[s + 1]; i++) {
            const tg_shader_pass *pass = &c->shaders[s]->pass[i - c->first[s]];
            tg_gpu_range ranges[2 + TG_MAX_BIND];
            if (!ranges_of(w, plan, s, c, pass, ranges)) {
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

/* Shaders of all steps, and how many dispatches they are; on_cpu where there is none for a step. */
static void choose_shaders(webgpu *w, const tg_plan *plan, compiled *c) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        const tg_step *step = &plan->steps[s];
        const tg_op_desc *d = tg_op_table[step->node->op];
        const tg_shader *shader = c->shaders[s] = tg_shader_choose(d, &step->args);
        if (!shader) {
            c->on_cpu = true;
            tg_say(w->ctx, TG_LOG_WARNING, "plan %s runs on the CPU: no shader of %s fits %s",
                   plan->name, d->name, step->node->name);
            return;
        }
        const size_t scratch = shader->scratch_bytes ? shader->scratch_bytes(&step->args) : 0;
        if (round_up(scratch) > c->scratch_bytes) c->scratch_bytes = round_up(scratch);
        c->first[s + 1] = c->first[s] + tg_shader_passes(shader);
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
                if (c->down) c->down[c->n_out] = (tg_gpu_piece) { 0, t.offset, t.bytes, t.host };
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

static tg_status make_dispatches(webgpu *w, const tg_plan *plan, compiled *c) {
    tg_status status = TG_OK;
    c->n_dispatches = c->first[plan->n_steps];
    c->dispatches = list(w, &status, c->n_dispatches, sizeof *c->dispatches);
    TG_TRY(status);
    TG_TRY(tg_gpu_buffer_new(w->gpu, plan->name, plan->n_steps * TG_GPU_ALIGN, true, &c->words));
    for (size_t s = 0; s < plan->n_steps; s++) {
        const tg_step *step = &plan->steps[s];
        uint32_t words[TG_STEP_WORDS];
        tg_shader_words(&step->args, step->acc_mask, step->dynamic_in, step->dynamic_out, words);
        TG_TRY(tg_gpu_write(w->gpu, c->words, s * TG_GPU_ALIGN, words, sizeof words));
        for (size_t i = c->first[s]; i < c->first[s + 1]; i++) {
            const tg_shader_pass *pass = &c->shaders[s]->pass[i - c->first[s]];
            TG_TRY(
                tg_shader_pipeline(&w->shaders, c->shaders[s], pass, &c->dispatches[i].pipeline));
            tg_shader_fold(pass->groups(&step->args), &c->dispatches[i]);
        }
    }
    return TG_OK;
}

static tg_status make_tables(webgpu *w, const tg_plan *plan, compiled *c) {
    tg_status status = TG_OK;
    *c = (compiled) { .steps = plan->steps,
                      .memory = plan->memory,
                      .version = plan->version,
                      .n_steps = plan->n_steps,
                      .n_states = plan->n_states };
    c->shaders = list(w, &status, c->n_steps, sizeof *c->shaders);
    c->first = list(w, &status, c->n_steps + 1, sizeof *c->first);
    TG_TRY(status);
    choose_shaders(w, plan, c);
    if (c->on_cpu) return TG_OK;
    list_transfers(plan, c);
    c->in = list(w, &status, c->n_in, sizeof *c->in);
    c->down = list(w, &status, c->n_out, sizeof *c->down);
    c->written = list(w, &status, c->n_states, sizeof *c->written);
    TG_TRY(status);
    list_transfers(plan, c);
    mark_written(plan, c);
    for (size_t i = 0; i < plan->n_states; i++) TG_TRY(reserve_mirror(w, &plan->states[i]));
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

/* Where a page learns too late that there was no memory, what was made goes, so that a smaller plan
 * may do. */
static void drop_fresh(webgpu *w, compiled *c) {
    for (size_t i = 0; i < w->n_mirrors; i++) {
        if (!w->mirrors[i].fresh) continue;
        tg_gpu_buffer_free(w->gpu, w->mirrors[i].buffer);
        w->mirrors[i] = (mirror) { .buffer = 0 };
        for (size_t k = 0; k < w->n_plans; k++) w->plans[k].version = 0;
    }
    if (w->work_fresh) {
        tg_gpu_buffer_free(w->gpu, w->work);
        w->work = 0;
        w->work_bytes = 0;
        w->work_version++;
        w->last = NULL;
    }
    free_compiled(w, c);
}

static tg_status settle(webgpu *w, compiled *c) {
    const tg_status s = tg_gpu_settle(w->gpu);
    if (s == TG_PENDING) return s;
    if (s == TG_OK)
        c->settled = true;
    else
        drop_fresh(w, c);
    for (size_t i = 0; i < w->n_mirrors; i++) w->mirrors[i].fresh = false;
    w->work_fresh = false;
    return s;
}

/* The plan, compiled at its first run and when it was bound anew. */
static tg_status compile(webgpu *w, const tg_plan *plan, compiled **out) {
    compiled *c = NULL;
    for (size_t i = 0; i < w->n_plans && !c; i++)
        if (w->plans[i].steps == plan->steps) c = &w->plans[i];
    if (c && (c->version != plan->version || c->memory != plan->memory)) free_compiled(w, c);
    if (!c) TG_TRY(new_compiled(w, &c));
    if (!c->steps) {
        const tg_status s = make_tables(w, plan, c);
        if (s != TG_OK) {
            free_compiled(w, c);
            return s;
        }
    }
    if (!c->on_cpu) TG_TRY(bind(w, plan, c));
    *out = c;
    return c->on_cpu || c->settled ? TG_OK : settle(w, c);
}

/* ---------------------------------------------------------------------------------------- running
 */

/* The workgroups that the call's rows need. */
static void set_rows(tg_plan *plan, compiled *c, size_t rows) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        tg_args a = plan->steps[s].args;
        if (!plan->steps[s].dynamic_in && !plan->steps[s].dynamic_out) continue;
        for (int k = 0; k < TG_MAX_IN; k++)
            if (plan->steps[s].dynamic_in >> k & 1) a.in_type[k].dim[0] = rows;
        for (int k = 0; k < TG_MAX_OUT; k++)
            if (plan->steps[s].dynamic_out >> k & 1) a.out_type[k].dim[0] = rows;
        for (size_t i = c->first[s]; i < c->first[s + 1]; i++)
            tg_shader_fold(c->shaders[s]->pass[i - c->first[s]].groups(&a), &c->dispatches[i]);
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

/* For profiles: a submit for each step, which costs, but tells them apart. */
static tg_status run_timed(webgpu *w, const compiled *c, size_t begin, size_t end,
                           double *step_ms) {
    TG_TRY(tg_gpu_wait(w->gpu));
    for (size_t s = begin; s < end; s++) {
        const double start = tg_time_ms();
        TG_TRY(tg_gpu_submit(w->gpu, c->dispatches + c->first[s], c->first[s + 1] - c->first[s]));
        TG_TRY(tg_gpu_wait(w->gpu));
        step_ms[s] += tg_time_ms() - start;
    }
    return TG_OK;
}

static tg_status submit(webgpu *w, tg_plan *plan, compiled *c, const tg_scalars *rt,
                        const tg_run *r, size_t end) {
    if (r->next == 0)
        for (size_t i = 0; i < c->n_in; i++)
            TG_TRY(upload(w, w->work, c->in[i].offset, c->in[i].host, c->in[i].bytes));
    if (plan->dynamic) set_rows(plan, c, (size_t)rt->rows);
    w->last = c;
    w->last_bytes = plan->workspace_bytes;
    w->runs++;
    for (size_t i = 0; i < plan->n_states; i++)
        if (c->written[i]) find_mirror(w, plan->states[i].data)->version++;
    TG_TRY(tg_gpu_write(w->gpu, w->call, 0, rt, sizeof *rt));
    if (r->step_ms) return run_timed(w, c, r->next, end, r->step_ms);
    return tg_gpu_submit(w->gpu, c->dispatches + c->first[r->next],
                         c->first[end] - c->first[r->next]);
}

/* A deadline ends no submit: it is over when it is over. Who cancels is asked before it begins. A
 * run whose outputs are awaited has the number of their reading in its unit. */
static tg_status run(tg_backend *b, tg_plan *plan, const tg_scalars *rt, tg_run *r) {
    webgpu *w = (webgpu *)b;
    compiled *c;
    uint32_t reading = (uint32_t)r->unit;
    if (tg_gpu_lost(w->gpu)) return tg_gpu_settle(w->gpu);
    TG_TRY(compile(w, plan, &c));
    if (c->on_cpu) return run_on_cpu(w, plan, rt, r);
    const size_t end = r->end ? r->end : plan->n_steps;
    const size_t n_out = end == plan->n_steps ? c->n_out : 0;
    if (!reading) {
        if (r->cancel && r->cancel(r->cancel_user)) return TG_STOPPED;
        TG_TRY(submit(w, plan, c, rt, r, end));
        for (size_t i = 0; i < n_out; i++) c->down[i].buffer = w->work;
        if (n_out) TG_TRY(tg_gpu_read_begin(w->gpu, c->down, n_out, &reading));
        r->unit = reading;
    }
    if (n_out) TG_TRY(tg_gpu_read_end(w->gpu, reading, c->down, n_out));
    r->next = end;
    r->phase = 0;
    r->unit = 0;
    return TG_OK;
}

/* Plans that lie in the block or use a state in it, and the mirrors of such states. */
static void forget(tg_backend *b, const void *p, size_t bytes) {
    webgpu *w = (webgpu *)b;
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].steps && w->plans[i].memory && meet(w->plans[i].memory, 1, p, bytes))
            free_compiled(w, &w->plans[i]);
    for (size_t i = 0; i < w->n_mirrors; i++) {
        mirror *m = &w->mirrors[i];
        if (!m->buffer || !meet(m->host, m->bytes, p, bytes)) continue;
        tg_gpu_buffer_free(w->gpu, m->buffer);
        *m = (mirror) { .buffer = 0 };
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
    tg_gpu_close(w->gpu);
    tg_free(&mem, w->plans, w->n_plans * sizeof *w->plans);
    tg_free(&mem, w->mirrors, w->n_mirrors * sizeof *w->mirrors);
    tg_free(&mem, w, sizeof *w);
}

/* Pipelines stay, which cost time and hardly any memory. Whatever runs next is compiled anew. */
static tg_status rest(tg_backend *b) {
    webgpu *w = (webgpu *)b;
    for (size_t i = 0; i < w->n_mirrors; i++)
        if (w->mirrors[i].buffer) TG_TRY(fetch(b, w->mirrors[i].host, w->mirrors[i].bytes));
    for (size_t i = 0; i < w->n_plans; i++)
        if (w->plans[i].steps) free_compiled(w, &w->plans[i]);
    for (size_t i = 0; i < w->n_mirrors; i++) {
        tg_gpu_buffer_free(w->gpu, w->mirrors[i].buffer);
        w->mirrors[i] = (mirror) { .buffer = 0 };
    }
    tg_gpu_buffer_free(w->gpu, w->work);
    w->work = 0;
    w->work_bytes = 0;
    w->work_version++;
    return TG_OK;
}

static bool is_lost(const tg_backend *b) { return tg_gpu_lost(((const webgpu *)b)->gpu); }

tg_gpu *tg_webgpu_gpu(tg_backend *b) { return ((webgpu *)b)->gpu; }

tg_status tg_webgpu_new(tg_ctx *ctx, tg_backend *cpu, tg_backend **out) {
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
                              .align_bytes = TG_GPU_ALIGN,
                              .apart = true },
                    .ctx = ctx,
                    .cpu = cpu,
                    .work_version = 1 };
    tg_status s = tg_gpu_open(ctx, &w->gpu);
    w->shaders = (tg_shader_cache) { .gpu = w->gpu, .ctx = ctx };
    if (s == TG_OK) s = tg_gpu_buffer_new(w->gpu, "scalars", TG_CALL_BYTES, true, &w->call);
    if (s == TG_OK)
        s = tg_gpu_buffer_new(w->gpu, "dummies", TG_MAX_BIND * DUMMY_BYTES, false, &w->dummies);
    if (s == TG_OK)
        *out = &w->base;
    else
        free_webgpu(&w->base);
    return s;
}
