/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.c - a plan as text, one line a step: what a refactor must leave unchanged.
 *
 *   #12  matmul/blocked  blocks.0.mlp.fc_in  <- ln2 [16,64,96] w+0x1800, weights+... [96,384]  ->
 * [..] w+0x0
 *
 * w+ is an offset in the workspace, NAME+ one in a state; "+=" marks an output that adds. Types
 * but f32 stand before the dimensions, layouts behind them: q4_1[576,1536] m4.
 */
#include "plan/plan.h"

#define LINE_BYTES 1024

typedef struct line {
    char text[LINE_BYTES];
    size_t used;
} line;

static void put(line *l, const char *fmt, ...) TG_PRINTF(2, 3);
static void put(line *l, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(l->text + l->used, LINE_BYTES - l->used, fmt, args);
    va_end(args);
    if (n > 0) l->used += (size_t)n;
    if (l->used >= LINE_BYTES) l->used = LINE_BYTES - 1;
}

static void put_type(line *l, const tg_value *v) {
    put(l, "%s[", v->type.dtype == TG_F32 ? "" : tg_dtype_name(v->type.dtype));
    for (int i = 0; i < v->type.n_dims; i++)
        put(l, "%s%s%zu", i ? "," : "", i == 0 && v->dynamic_rows ? "<=" : "", v->type.dim[i]);
    put(l, "]%s%s", v->type.layout ? " " : "", tg_packing_table[v->type.layout].text);
}

static void put_place(line *l, const tg_plan *plan, const tg_value *v) {
    const tg_place *p = tg_plan_place_of(plan, v);
    put_type(l, v);
    if (p->kind == TG_PLACE_STATE)
        put(l, "@%s+%zu", plan->states[p->state].value->name, p->offset_bytes);
    else
        put(l, "@w+%zu", p->offset_bytes);
}

static void put_attributes(line *l, const tg_attr *a) {
    bool any = false;
    for (int i = 0; i < 6; i++) any = any || a->i[i] != 0;
    if (any) put(l, " i=%d,%d,%d,%d", (int)a->i[0], (int)a->i[1], (int)a->i[2], (int)a->i[3]);
    for (int i = 0; i < 4; i++)
        if (a->f[i] < 0 || a->f[i] > 0) put(l, " f%d=%g", i, (double)a->f[i]);
}

static void dump_step(const tg_plan *plan, size_t i, line *l) {
    const tg_step *s = &plan->steps[i];
    const tg_node *n = s->node;
    put(l, "#%-3zu %s/%s %s", i, tg_op_table[n->op]->name, s->variant->name, n->name);
    put_attributes(l, &n->attr);
    put(l, " <-");
    for (int k = 0; k < n->n_in; k++) {
        put(l, "%s", k ? ", " : " ");
        if (n->in[k])
            put_place(l, plan, n->in[k]);
        else
            put(l, "-");
    }
    put(l, " ->");
    for (int k = 0; k < n->n_out; k++) {
        put(l, "%s%s", k ? ", " : " ", s->acc_mask >> k & 1 ? "+=" : "");
        put_place(l, plan, &n->out[k]);
    }
    if (s->alone) put(l, " alone");
}

void tg_plan_dump(const tg_plan *plan, tg_line_fn write, void *user) {
    line l = { .used = 0 };
    put(&l, "plan %s: %zu steps, workspace %zu bytes (%zu unshared), scratch %zu, local %zu",
        plan->name, plan->n_steps, plan->workspace_bytes, plan->unaliased_bytes,
        plan->scratch_bytes, plan->local_bytes);
    write(user, l.text);
    for (size_t i = 0; i < plan->n_states; i++) {
        l.used = 0;
        put(&l, "state %s ", plan->states[i].value->name);
        put_type(&l, plan->states[i].value);
        put(&l, " %zu bytes", plan->states[i].bytes);
        write(user, l.text);
    }
    for (size_t i = 0; i < plan->n_steps; i++) {
        l.used = 0;
        dump_step(plan, i, &l);
        write(user, l.text);
    }
}
