/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - from a rewritten graph to a flat list of steps. Read rewrite.c and memory.c beside it;
 * backend/cpu/cpu.c walks the list.
 *
 *     graph -> rewrite -> states, steps -> memory: an offset for each value -> share
 *
 * Nothing here is an address until the caller has said where the workspace lies (tg_plan_place) and
 * where each state does (tg_plan_bind), in any order and as often as either changes: every change
 * raises `version`, by which a backend knows that what it has prepared is old.
 */
#include "plan/plan.h"

/* What outlives a run, in the order of the graph. */
static tg_status list_states(tg_plan *plan) {
    size_t n = 0;
    for (const tg_node *node = plan->graph->first; node; node = node->next)
        n += tg_op_table[node->op]->is_state;
    plan->states = tg_arena_array(&plan->graph->arena, n + 1, sizeof *plan->states);
    if (!plan->states)
        return tg_fail_memory(plan->ctx, "table of states", n * sizeof *plan->states);
    for (const tg_node *node = plan->graph->first; node; node = node->next) {
        if (!tg_op_table[node->op]->is_state) continue;
        const tg_value *v = &node->out[0];
        plan->states[plan->n_states++] = (tg_bound_state) { v, NULL, tg_type_bytes(&v->type) };
    }
    return TG_OK;
}

/* Shapes and choice of variant: all that does not need addresses. */
static void describe_step(tg_plan *plan, tg_step *s, const tg_node *n) {
    s->node = n;
    s->args.attr = n->attr;
    s->args.workers = plan->workers;
    s->args.rows_alone = plan->rows_alone;
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        s->args.in_type[i] = n->in[i]->type;
        if (n->in[i]->dynamic_rows) s->dynamic_in |= (uint8_t)(1u << i);
    }
    for (int k = 0; k < n->n_out; k++) {
        s->args.out_type[k] = n->out[k].type;
        if (n->out[k].dynamic_rows) s->dynamic_out |= (uint8_t)(1u << k);
        if (n->acc_into[k]) s->acc_mask |= (uint8_t)(1u << k);
    }
    plan->dynamic = plan->dynamic || s->dynamic_in || s->dynamic_out;
    s->variant = tg_kernels_choose(plan->isa, n->op, plan->levers, &s->args);
    const size_t scratch = s->variant->scratch_bytes ? s->variant->scratch_bytes(&s->args) : 0;
    const size_t local = s->variant->local_bytes ? s->variant->local_bytes(&s->args) : 0;
    if (tg_plan_round(scratch) > plan->scratch_bytes) plan->scratch_bytes = tg_plan_round(scratch);
    if (tg_plan_round(local) > plan->local_bytes) plan->local_bytes = tg_plan_round(local);
}

/* Nodes that only rename memory (reshape, slices, states) are no steps. */
static tg_status list_steps(tg_plan *plan) {
    size_t n = 0;
    for (const tg_node *node = plan->graph->first; node; node = node->next)
        n += !tg_op_table[node->op]->structural;
    plan->steps = tg_arena_array(&plan->graph->arena, n + 1, sizeof *plan->steps);
    if (!plan->steps) return tg_fail_memory(plan->ctx, "list of steps", n * sizeof *plan->steps);
    for (const tg_node *node = plan->graph->first; node; node = node->next)
        if (!tg_op_table[node->op]->structural)
            describe_step(plan, &plan->steps[plan->n_steps++], node);
    return TG_OK;
}

/* Levers and the promise about rows are the graph's, too: rewrites ask it before there is a plan.
 */
tg_status tg_plan_build(tg_plan *plan, tg_graph *g, const tg_plan_options *o) {
    *plan = (tg_plan) { .ctx = g->ctx,
                        .graph = g,
                        .name = o->name,
                        .isa = o->isa,
                        .levers = o->levers,
                        .workers = o->workers,
                        .align_bytes = o->align_bytes ? o->align_bytes : 64,
                        .apart = o->apart,
                        .segment_bytes = o->segment_bytes,
                        .rows_alone = o->rows_alone };
    g->levers = o->levers;
    g->rows_alone = o->rows_alone;
    TG_TRY(tg_rewrite(g));
    TG_TRY(list_states(plan));
    TG_TRY(list_steps(plan));
    TG_TRY(tg_plan_memory(plan));
    tg_plan_share(plan, NULL);
    return TG_OK;
}

size_t tg_plan_memory_bytes(const tg_plan *plan) {
    return plan->workspace_bytes + plan->scratch_bytes + plan->workers * plan->local_bytes + 64;
}

const tg_place *tg_plan_place_of(const tg_plan *plan, const tg_value *v) {
    return &plan->places[tg_value_slot(v)];
}

void *tg_plan_data(const tg_plan *plan, const tg_value *v) {
    const tg_place *p = tg_plan_place_of(plan, v);
    char *base = NULL;
    if (p->kind == TG_PLACE_WORKSPACE) base = plan->memory;
    if (p->kind == TG_PLACE_STATE) base = plan->states[p->state].data;
    return base ? base + p->offset_bytes : NULL;
}

/* Offsets become addresses, once for all runs: a run looks up nothing. States that nobody has bound
 * yet are NULL until then. */
static void resolve(tg_plan *plan) {
    for (size_t i = 0; i < plan->n_steps; i++) {
        tg_step *s = &plan->steps[i];
        const tg_node *n = s->node;
        for (int k = 0; k < n->n_in; k++)
            s->args.in[k] = n->in[k] ? tg_plan_data(plan, n->in[k]) : NULL;
        for (int k = 0; k < n->n_out; k++) s->args.out[k] = tg_plan_data(plan, &n->out[k]);
        s->args.scratch = plan->memory + plan->workspace_bytes;
    }
}

/* Constants are written here, as nothing computes them. */
void tg_plan_place(tg_plan *plan, void *memory) {
    plan->memory = memory;
    plan->version++;
    for (const tg_node *n = plan->graph->first; n; n = n->next)
        if (tg_op_table[n->op]->is_constant)
            memcpy(tg_plan_data(plan, &n->out[0]), &n->attr.f[0], sizeof(float));
    resolve(plan);
}

/* A plan may have several states of a name, which are one memory, or none: whoever binds a model's
 * weights need not know which of them this plan reads. */
tg_status tg_plan_bind(tg_plan *plan, const char *name, void *data, size_t bytes) {
    for (size_t i = 0; i < plan->n_states; i++) {
        tg_bound_state *s = &plan->states[i];
        if (strcmp(s->value->name, name) != 0) continue;
        if (s->bytes != bytes)
            return tg_fail(plan->ctx, TG_E_INTERNAL,
                           "plan %s: state %s has %zu bytes, was given %zu", plan->name, name,
                           s->bytes, bytes);
        plan->version += s->data != data;
        s->data = data;
        if (plan->memory) resolve(plan);
    }
    return TG_OK;
}
