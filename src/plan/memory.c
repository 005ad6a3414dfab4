/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - gives every value of a plan its place.
 *
 * A value is alive from the step that writes it to the last step that reads it. Two values share
 * bytes when their lives do not meet, or when an op works in place on an input that nobody reads
 * later. Greedy by size: the largest value first, each at the lowest offset that is free during its
 * life.
 *
 *   step     0    1    2    3    4
 *   [0,4K)   aaaaaaaaa      ccccccc       c takes over from a
 *   [4K,8K)       bbbbbbbbbbb
 */
#include "plan/plan.h"

/* A piece of workspace: one value, or several that follow each other in place. */
typedef struct chunk {
    size_t bytes, first, last, offset;
    size_t order; /* by the first value: ties are broken the same way everywhere */
} chunk;

typedef struct memory_planner {
    tg_plan *plan;
    size_t *chunk_of; /* by value slot; SIZE_MAX: not in the workspace */
    chunk *chunks;
    size_t n_chunks;
    size_t *last_use; /* by value slot */
    size_t *step_of;  /* by node id: its position in the list, structural nodes included */
    size_t end;       /* one past the last position */
} memory_planner;

/* The value whose workspace bytes v stands for: itself, or what it is a view of. */
static const tg_value *fresh_root(const tg_value *v) {
    size_t offset;
    return tg_value_root(v, &offset);
}

/* Steps that a value's bytes stay its own for after its last use, where steps are kept apart. */
enum { LINGER = 5 };

/* Bytes of a chunk: its neighbours begin where the backend may bind them. */
static size_t round_chunk(const tg_plan *plan, size_t bytes) {
    return (bytes + plan->align_bytes - 1) / plan->align_bytes * plan->align_bytes;
}

static void find_lives(memory_planner *m) {
    size_t step = 0;
    for (const tg_node *n = m->plan->graph->first; n; n = n->next, step++) {
        m->step_of[n->id] = step;
        for (int k = 0; k < n->n_out; k++) m->last_use[tg_value_slot(&n->out[k])] = step;
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]) m->last_use[tg_value_slot(fresh_root(n->in[i]))] = step;
    }
    m->end = step;
    for (const tg_node *n = m->plan->graph->first; n; n = n->next)
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k].is_output) m->last_use[tg_value_slot(fresh_root(&n->out[k]))] = step;
}

/* The input whose bytes out k may take over, or NULL. */
static const tg_value *taken_over(const memory_planner *m, const tg_node *n, int k) {
    const tg_op_desc *d = tg_op_table[n->op];
    if (!(m->plan->levers & TG_LEVER_BIT(buffer_aliasing)) || m->plan->apart || !d->in_place[k])
        return NULL;
    const tg_value *in = n->in[d->in_place[k] - 1];
    if (!in || in->is_output || m->chunk_of[tg_value_slot(in)] == SIZE_MAX) return NULL;
    if (tg_op_table[in->node->op]->structural) return NULL;
    if (m->last_use[tg_value_slot(in)] != m->step_of[n->id] ||
        tg_type_bytes(&in->type) != tg_type_bytes(&n->out[k].type))
        return NULL;
    /* A view of it, too, is read while it is being overwritten. */
    int times = 0;
    for (int i = 0; i < n->n_in; i++) times += n->in[i] && fresh_root(n->in[i]) == in;
    return times == 1 ? in : NULL;
}

static void make_chunks(memory_planner *m) {
    const bool alias = m->plan->levers & TG_LEVER_BIT(buffer_aliasing);
    for (const tg_node *n = m->plan->graph->first; n; n = n->next) {
        for (int k = 0; k < n->n_out; k++) {
            const tg_value *v = &n->out[k];
            m->chunk_of[tg_value_slot(v)] = SIZE_MAX;
            if (tg_op_table[n->op]->is_state || fresh_root(v) != v) continue;
            m->plan->unaliased_bytes += tg_plan_round(tg_type_bytes(&v->type));
            const tg_value *in = taken_over(m, n, k);
            const size_t last = alias ? m->last_use[tg_value_slot(v)] : m->end;
            if (in) {
                chunk *c = &m->chunks[m->chunk_of[tg_value_slot(in)]];
                m->chunk_of[tg_value_slot(v)] = m->chunk_of[tg_value_slot(in)];
                if (last > c->last) c->last = last;
                continue;
            }
            /* What the caller fills (inputs) and constants stay for the whole plan. */
            const bool kept = tg_op_table[n->op]->structural;
            m->chunk_of[tg_value_slot(v)] = m->n_chunks;
            m->chunks[m->n_chunks] =
                (chunk) { .bytes = round_chunk(m->plan, tg_type_bytes(&v->type)),
                          .first = kept || !alias ? 0 : m->step_of[n->id],
                          .last = kept ? m->end : last + (m->plan->apart ? LINGER : 0),
                          .order = m->n_chunks };
            m->n_chunks++;
        }
    }
}

static bool placed_before(const chunk *a, const chunk *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->order < b->order;
}

/* Insertion sort of pointers: a few hundred chunks, and a stable order without recursion. */
static void sort_chunks(chunk **list, size_t n) {
    for (size_t i = 1; i < n; i++) {
        chunk *c = list[i];
        size_t j = i;
        for (; j > 0 && placed_before(c, list[j - 1]); j--) list[j] = list[j - 1];
        list[j] = c;
    }
}

/* The next offset from here on at which a value of so many bytes lies in one segment. */
static size_t in_segment(const tg_plan *plan, size_t offset, size_t bytes) {
    const size_t segment = plan->segment_bytes;
    if (segment == 0 || bytes == 0 || offset / segment == (offset + bytes - 1) / segment)
        return offset;
    return (offset / segment + 1) * segment;
}

/* The lowest offset at which c meets none of the n placed chunks that are alive with it. */
static size_t lowest_offset(const tg_plan *plan, chunk *const *placed, size_t n, const chunk *c) {
    size_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < n; i++) {
            const chunk *p = placed[i];
            const bool together = p->first <= c->last && c->first <= p->last;
            if (together && p->offset < offset + c->bytes && offset < p->offset + p->bytes) {
                offset = in_segment(plan, p->offset + p->bytes, c->bytes);
                moved = true;
            }
        }
    }
    return offset;
}

static tg_status assign_offsets(memory_planner *m) {
    chunk **list = tg_arena_array(&m->plan->graph->arena, m->n_chunks + 1, sizeof *list);
    if (!list) return tg_fail_memory(m->plan->ctx, "list of buffers", m->n_chunks * sizeof *list);
    for (size_t i = 0; i < m->n_chunks; i++) list[i] = &m->chunks[i];
    sort_chunks(list, m->n_chunks);
    for (size_t i = 0; i < m->n_chunks; i++) {
        list[i]->offset = lowest_offset(m->plan, list, i, list[i]);
        const size_t end = list[i]->offset + list[i]->bytes;
        if (end > m->plan->workspace_bytes) m->plan->workspace_bytes = end;
    }
    return TG_OK;
}

static size_t state_index(const tg_plan *plan, const tg_value *root) {
    for (size_t i = 0; i < plan->n_states; i++)
        if (plan->states[i].value == root) return i;
    return SIZE_MAX;
}

static void fill_places(memory_planner *m) {
    tg_plan *plan = m->plan;
    for (const tg_node *n = plan->graph->first; n; n = n->next) {
        for (int k = 0; k < n->n_out; k++) {
            const tg_value *v = &n->out[k];
            size_t offset;
            const tg_value *root = tg_value_root(v, &offset);
            tg_place *p = &plan->places[tg_value_slot(v)];
            p->bytes = tg_type_bytes(&v->type);
            p->first = m->step_of[n->id];
            p->last = m->last_use[tg_value_slot(v)];
            p->offset_bytes = offset * tg_dtype_bytes(v->type.dtype);
            if (tg_op_table[root->node->op]->is_state) {
                p->kind = TG_PLACE_STATE;
                p->state = state_index(plan, root);
            } else {
                p->kind = TG_PLACE_WORKSPACE;
                p->offset_bytes += m->chunks[m->chunk_of[tg_value_slot(root)]].offset;
            }
        }
    }
}

tg_status tg_plan_memory(tg_plan *plan) {
    tg_arena *arena = &plan->graph->arena;
    const size_t slots = (size_t)plan->graph->n_nodes * TG_MAX_OUT;
    memory_planner m = { .plan = plan,
                         .chunk_of = tg_arena_array(arena, slots, sizeof(size_t)),
                         .chunks = tg_arena_array(arena, slots, sizeof(chunk)),
                         .last_use = tg_arena_array(arena, slots, sizeof(size_t)),
                         .step_of = tg_arena_array(arena, plan->graph->n_nodes, sizeof(size_t)) };
    plan->places = tg_arena_array(arena, slots, sizeof(tg_place));
    if (!m.chunk_of || !m.chunks || !m.last_use || !m.step_of || !plan->places)
        return tg_fail_memory(plan->ctx, "memory plan", slots * sizeof(chunk));
    find_lives(&m);
    make_chunks(&m);
    TG_TRY(assign_offsets(&m));
    fill_places(&m);
    return TG_OK;
}
