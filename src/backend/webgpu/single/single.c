/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single.c - see single.h. The list's layout is in single.wgsl.
 *
 * A plan goes through here in this order, and each stage looks at what the one before has found:
 *
 *     tg_single_fits     when the plan is compiled: has each step a phase, is there room?
 *       list_items       the phases of all steps, one behind the other
 *       find_rows        which outputs each workgroup computes for itself, in its own memory
 *       find_flow        the others, and what phases of a step hand on: a place for each
 *     tg_single_bind     when the buffers are known, and again when they are others
 *       find_meets       where workgroups must wait for each other
 *       write_list       homes and places of operands, attributes: what single.wgsl reads
 *       find_kinds       which phases are the same function, whose number goes into the list
 *       find_pipeline    the kernel's text, compiled unless it is one of the last four
 *     tg_single_try      once a plan: barriers alone, of fewer workgroups until all come through
 *     tg_single_begin    before each submit; behind it webgpu.c asks tg_single_came
 *
 * Nothing here keeps an answer of an earlier stage that buffers could change: items are made anew
 * in bind, out of the plan alone, so that they are the same as in fits. A page has none of this
 * (gpu_untested.c), since nothing may be tried there.
 */
#include "backend/webgpu/single/single.h"

#include "backend/webgpu/device/self_test/gpu_self_test.h"

#include <stdarg.h>
#include <stdlib.h>

enum {
    ITEM_FOURS = 11,   /* of a phase in the list */
    LIST_FOURS = 4096, /* 64 KiB, the uniform binding that every adapter has; as in single.wgsl */
    MAX_ITEMS = (LIST_FOURS - 1) / ITEM_FOURS, /* 372: fits() refuses plans of more */
    MAX_KINDS = 24,    /* functions of a kernel; ops bring fewer texts than that in all */
    MAX_ACCESSES = 64, /* since the last barrier; whoever would be one more meets */
    STATE_BUFFERS = 5, /* four that are read alone, and the one that is written */
    WRITTEN = 4,       /* and what else single.wgsl has as the home of an operand */
    IN_ROW,
    IN_WORK,
    IN_FLOW,
    ABSENT,
    HOME_BIT = 28,
    OWN_BYTES = 9216, /* of a workgroup's memory, besides row and what each thread has: above all
                         attention_phase_once.wgsl */
    SYNC_WORDS = 4,
    TRIAL_MEETS = 64
};
/* In the order of the kernel: text_single, one of the next two, all phases, text_main. */
static const char *const text_single[] = {
#include "backend/webgpu/single/single.wgsl.h"
};
static const char *const text_sums[] = {
#include "backend/webgpu/single/single_sums.wgsl.h"
};
static const char *const text_subgroups[] = {
#include "backend/webgpu/single/single_subgroups.wgsl.h"
};
static const char *const text_main[] = {
#include "backend/webgpu/single/single_main.wgsl.h"
};

/* A phase of a step. */
typedef struct item {
    const tg_step *step;
    const tg_grid_phase *phase;
    bool gives_row; /* its output 0 lies in row */
    bool meets;
    uint32_t flow[TG_MAX_OUT]; /* where outputs of its step are, in words; NO_FLOW: elsewhere */
    uint32_t scratch;          /* likewise, what its step's phases hand on */
} item;
#define NO_FLOW UINT32_MAX

typedef struct items {
    item item[MAX_ITEMS];
    size_t n;
} items;

/* A card has some hundred multiprocessors, and one workgroup on each is all that it takes. What
 * computes on the CPU has each barrier for the price of a step, and looks for it much faster.
 *
 * looks bounds how long a thread looks whether all have come, since WGSL promises no progress: a
 * kernel that looked without end would hang until the driver's watchdog takes the device. groups 0
 * is the one way to say never, by the lever, by the adapter and, later, by tg_single_give_up. On
 * software the kernel is for tests, so 0 unless TG_SINGLE_GROUPS asks. */
tg_single_rules tg_single_rules_of(const tg_gpu_info *info, bool lever, bool subgroups, bool int8) {
    const char *groups = getenv("TG_SINGLE_GROUPS"), *threads = getenv("TG_SINGLE_THREADS");
    tg_single_rules r = { .groups = info->software ? 0 : 132,
                          .threads = info->max_group_threads >= 512 ? 512 : 256,
                          .looks = info->software ? 1u << 26 : 1u << 17,
                          .of_shapes = !info->software,
                          .given = groups != NULL,
                          .subgroups = subgroups && info->has_matrices,
                          .int8 = int8,
                          .software = info->software };
    if (info->software) r.threads = 64;
    if (groups) r.groups = (uint32_t)atoi(groups);
    if (threads) r.threads = (uint32_t)atoi(threads);
    if (!lever) r.groups = 0;
    return r;
}

/* ------------------------------------------------------------------------------- which plans can
 */

static const tg_grid *grid_of(const tg_step *s) { return tg_op_table[s->node->op]->grid; }

/* Views share the memory of their root: whether a phase reads a value is asked of roots. */
static const tg_value *root_of(const tg_value *v) {
    size_t offset;
    return v ? tg_value_root(v, &offset) : NULL;
}

/* Of an operand; NULL: scratch, or absent. */
static const tg_value *operand(const item *it, unsigned k) {
    const tg_node *n = it->step->node;
    const unsigned slot = it->phase->bind[k];
    if (slot == 0 || slot >= TG_BIND_SCRATCH) return NULL;
    if (slot < TG_BIND_OUT(0)) return n->in[slot - TG_BIND_IN(0)];
    return slot - TG_BIND_OUT(0) < n->n_out ? &n->out[slot - TG_BIND_OUT(0)] : NULL;
}

static bool writes(const item *it, unsigned k) {
    return it->phase->bind[k] >= TG_BIND_OUT(0) && it->phase->bind[k] < TG_BIND_SCRATCH;
}

static bool is_state(const tg_plan *plan, const tg_value *v) {
    return tg_plan_place_of(plan, v)->kind == TG_PLACE_STATE;
}

static bool refuse(char *why, size_t room, const tg_step *s, const char *what) {
    snprintf(why, room, "%s, %s: %s", tg_op_table[s->node->op]->name, s->node->name, what);
    return false;
}

/* Operands are states where the text takes them for such: it reads a state in fours through another
 * binding, so one that is taken for a value would be read from the workspace. */
static bool has_right_kinds(const tg_plan *plan, const item *it) {
    for (unsigned k = 0; k < TG_MAX_BIND; k++) {
        const tg_value *v = operand(it, k);
        if (v && is_state(plan, v) != (it->phase->states >> k & 1)) return false;
    }
    return true;
}

/* Refused are steps that a kernel of one row cannot do: those that add to an output (a backward
 * pass), and dynamic inputs of other than one row. why is for the log, with the step's name. */
static bool step_fits(const tg_plan *plan, const tg_step *s, char *why, size_t room) {
    const tg_grid *g = grid_of(s);
    if (!g) return refuse(why, room, s, "has no phase");
    if (s->acc_mask) return refuse(why, room, s, "adds to what is there");
    for (int k = 0; k < TG_MAX_IN; k++)
        if (s->dynamic_in >> k & 1 && s->args.in_type[k].dim[0] != 1) return false;
    if (g->fits && !g->fits(&s->args))
        return refuse(why, room, s, "has none of this shape and type");
    for (int i = 0; i < TG_MAX_GRID_PHASES && g->phase[i].call; i++) {
        const item it = { .step = s, .phase = &g->phase[i] };
        if (!has_right_kinds(plan, &it)) return refuse(why, room, s, "wants a state, or a value");
    }
    return true;
}

/* The caller has seen that there are no more than MAX_ITEMS: fits() counts them first. */
static void list_items(const tg_plan *plan, size_t n_steps, items *all) {
    all->n = 0;
    for (size_t s = 0; s < n_steps; s++) {
        const tg_grid *g = grid_of(&plan->steps[s]);
        for (int i = 0; i < TG_MAX_GRID_PHASES && g->phase[i].call; i++)
            all->item[all->n++] = (item) { .step = &plan->steps[s], .phase = &g->phase[i] };
    }
}

/* ---------------------------------------------------------------------- rows, flow, and barriers
 */

/* What a phase needs of row is kept in 8 bits, and apart. */
static bool rounds(const tg_single_rules *rules, const item *it) {
    return rules->int8 && it->phase->rounds && it->phase->rounds(&it->step->args);
}

/* Whether a phase leaves what is in row as it was. */
static bool keeps_row(const item *it) { return !it->phase->gives_row && !it->phase->row_floats; }

/* Whether a phase reads v, or a view of it. *takes: as v itself, and by operands that may lie in
 * row, all of them, since one of them that is looked for in the workspace would find nothing there.
 */
static bool reads(const item *it, const tg_value *v, bool *takes) {
    bool found = false;
    *takes = true;
    for (unsigned k = 0; k < TG_MAX_BIND; k++) {
        const tg_value *o = operand(it, k);
        if (!o || writes(it, k) || root_of(o) != v) continue;
        found = true;
        *takes = *takes && o == v && it->phase->takes_row >> k & 1;
    }
    return found;
}

/* Output 0 of a phase may lie in row if all that read it come at once, and nobody before the last
 * of them has another use for row. There is one row in a workgroup, so a reader that overwrites it
 * is the last one that may read. An output of the plan is read by the host, which has no row. */
static bool may_give_row(const items *all, size_t i) {
    const tg_value *v = &all->item[i].step->node->out[0];
    bool takes, reading = true;
    if (!all->item[i].phase->gives_row || v->is_output) return false;
    for (size_t k = i + 1; k < all->n; k++) {
        const bool one = reads(&all->item[k], v, &takes);
        if (one && (!reading || !takes)) return false;
        if (!one || !keeps_row(&all->item[k])) reading = false;
    }
    return true;
}

/* s->row_floats: as many as the largest use of row wants, in whole sixty-fours, and likewise of
 * what is rounded. Both are constants of the kernel's text, and only ever grow here, so that bind
 * finds the same numbers as fits did. */
static void find_rows(const tg_single_rules *rules, items *all, tg_single *s) {
    for (size_t i = 0; i < all->n; i++) {
        item *it = &all->item[i];
        size_t want = it->phase->row_floats ? it->phase->row_floats(&it->step->args) : 0;
        if (rounds(rules, it)) {
            if (want > s->row_rounded) s->row_rounded = want;
            want = 0;
        }
        it->gives_row = may_give_row(all, i);
        if (it->gives_row) {
            const size_t n = tg_type_elems(&it->step->args.out_type[0]);
            if (n > want) want = n;
        }
        if (want > s->row_floats) s->row_floats = want;
    }
    s->row_floats = (s->row_floats + 63) / 64 * 64;
    s->row_rounded = (s->row_rounded + 63) / 64 * 64;
}

/* Whether a value lies in row as item i has it: its giver is the last one before that may give it.
 */
static bool lies_in_row(const items *all, size_t i, const tg_value *v) {
    for (size_t k = i + 1; k-- > 0;)
        if (&all->item[k].step->node->out[0] == v && all->item[k].phase->gives_row)
            return all->item[k].gives_row;
    return false;
}

/* Whether phases hand a value on from workgroup to workgroup, and nobody else reads it: the host
 * has outputs of the plan, and a step that is left out has what it reads, from the workspace. */
static bool is_handed_on(const tg_plan *plan, size_t n_steps, const tg_value *v) {
    if (is_state(plan, v) || root_of(v) != v || v->type.dtype != TG_F32 || v->is_output)
        return false;
    for (size_t s = n_steps; s < plan->n_steps; s++)
        for (int k = 0; k < plan->steps[s].node->n_in; k++)
            if (root_of(plan->steps[s].node->in[k]) == v) return false;
    return true;
}

/* Words at the end of what there is, from a multiple of 32 bytes on. */
static uint32_t take_flow(size_t *n_words, size_t bytes) {
    const size_t at = *n_words;
    *n_words += (bytes / 4 + 7) / 8 * 8;
    return (uint32_t)at;
}

/* Each value that is handed on has its own place, so that it is written once in a dispatch, and who
 * reads it knows by itself whether it is there. Both phases of a step have the step's places. */
static void find_flow(const tg_plan *plan, items *all, tg_single *s) {
    s->flow_words = 0;
    for (size_t i = 0; i < all->n; i++) {
        item *it = &all->item[i];
        const tg_node *n = it->step->node;
        const tg_grid *g = grid_of(it->step);
        if (it->phase != g->phase) {
            memcpy(it->flow, it[-1].flow, sizeof it->flow);
            it->scratch = it[-1].scratch;
            continue;
        }
        for (unsigned k = 0; k < TG_MAX_OUT; k++) {
            const bool handed = k < n->n_out && is_handed_on(plan, s->n_steps, &n->out[k]);
            it->flow[k] =
                handed ? take_flow(&s->flow_words, tg_type_bytes(&n->out[k].type)) : NO_FLOW;
        }
        it->scratch =
            take_flow(&s->flow_words, g->scratch_bytes ? g->scratch_bytes(&it->step->args) : 0);
    }
}

/* Of a value as item i has it; NO_FLOW: it is not handed on. */
static uint32_t flow_of(const items *all, size_t i, const tg_value *v) {
    size_t offset;
    const tg_value *root = tg_value_root(v, &offset);
    for (size_t k = i + 1; k-- > 0;) {
        const item *it = &all->item[k];
        if (it->step->node != root->node) continue;
        const uint32_t at = it->flow[root->index];
        return at == NO_FLOW ? at : at + (uint32_t)offset;
    }
    return NO_FLOW;
}

typedef struct access {
    const tg_value *v;
    bool writes;
} access;

/* Two accesses need a barrier between them if one writes and their bytes overlap. Places, and not
 * values, are compared: the plan gives memory whose value is dead to another one. */
static bool meet_in_memory(const tg_plan *plan, const access *a, const access *b) {
    if (!a->writes && !b->writes) return false;
    const tg_place *p = tg_plan_place_of(plan, a->v), *q = tg_plan_place_of(plan, b->v);
    if (p->kind != q->kind || (p->kind == TG_PLACE_STATE && p->state != q->state)) return false;
    return p->offset_bytes < q->offset_bytes + q->bytes &&
           q->offset_bytes < p->offset_bytes + p->bytes;
}

/* What a phase reads and writes that other workgroups may write and read, and that does not tell by
 * itself whether it is there. Row is each workgroup's own; reads_old is of a state that this
 * dispatch writes elsewhere than where it reads. */
static size_t accesses_of(const items *all, size_t i, access out[TG_MAX_BIND]) {
    const item *it = &all->item[i];
    size_t n = 0;
    for (unsigned k = 0; k < TG_MAX_BIND && it->phase->bind[k]; k++) {
        const tg_value *v = operand(it, k);
        if (!v || it->phase->reads_old >> k & 1) continue;
        if (lies_in_row(all, i, v) || flow_of(all, i, v) != NO_FLOW) continue;
        out[n++] = (access) { v, writes(it, k) };
    }
    return n;
}

/* since: all accesses behind the last barrier. A barrier is before the phase, and orders all that
 * came before it, so the list begins anew with the phase's own accesses. A list that is full is no
 * error: one barrier too many is slow and right. */
static void find_meets(const tg_plan *plan, items *all) {
    access since[MAX_ACCESSES];
    size_t n_since = 0;
    for (size_t i = 0; i < all->n; i++) {
        access now[TG_MAX_BIND];
        const size_t n = accesses_of(all, i, now);
        bool meets = n_since + n > MAX_ACCESSES;
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n_since; b++)
                meets = meets || meet_in_memory(plan, &now[a], &since[b]);
        if (meets) n_since = 0;
        memcpy(since + n_since, now, n * sizeof *now);
        n_since += n;
        all->item[i].meets = meets;
    }
}

/* Of a workgroup's memory: row, what is rounded (a byte each, and 4 a block of 32), 28 bytes a
 * thread (parts, sums, and two floats of attention's packs), and the rest. It must not be less than
 * what all texts of phases declare. */
static size_t own_bytes(const tg_single *s) {
    return s->row_floats * 4 + s->row_rounded * 36 / 32 + (size_t)s->threads * 28 + OWN_BYTES;
}

/* The last step may be left out, with a dispatch of its own behind this one: that of sampling has
 * no phase. Any other step without one refuses the plan. Where rows are long, workgroups have fewer
 * threads, and there are more of them. */
static bool fits(tg_single *s, const tg_single_rules *rules, const tg_gpu_info *info,
                 const tg_plan *plan, char *why, size_t room) {
    items all;
    size_t n = 0;
    s->n_steps = plan->n_steps;
    for (size_t i = 0; i < s->n_steps; i++) {
        if (!step_fits(plan, &plan->steps[i], why, room)) {
            if (i + 1 < plan->n_steps) return false;
            why[0] = '\0';
            s->n_steps = i;
            break;
        }
        const tg_grid *g = grid_of(&plan->steps[i]);
        for (int k = 0; k < TG_MAX_GRID_PHASES && g->phase[k].call; k++) n++;
    }
    if (n > MAX_ITEMS) {
        snprintf(why, room, "want at most %d phases, have %zu", MAX_ITEMS, n);
        return false;
    }
    list_items(plan, s->n_steps, &all);
    find_rows(rules, &all, s);
    find_flow(plan, &all, s);
    s->threads = rules->threads;
    while (own_bytes(s) > info->max_group_bytes && s->threads > 64) s->threads /= 2;
    if (own_bytes(s) > info->max_group_bytes) {
        snprintf(why, room, "a workgroup has %" PRIu32 " bytes of memory, %zu are wanted",
                 info->max_group_bytes, own_bytes(s));
        return false;
    }
    if (8 * s->flow_words > info->max_binding_bytes) {
        snprintf(why, room, "a binding has %" PRIu64 " bytes at most, %zu are wanted",
                 info->max_binding_bytes, 8 * s->flow_words);
        return false;
    }
    return true;
}

/* A plan that does not fit is no error: it runs as one dispatch a step, and n_steps 0 says so. */
bool tg_single_fits(tg_single *s, const tg_single_rules *rules, tg_ctx *ctx,
                    const tg_gpu_info *info, const tg_plan *plan) {
    char why[256] = "";
    *s = (tg_single) { .on = false };
    s->on = fits(s, rules, info, plan, why, sizeof why);
    if (!s->on) s->n_steps = 0;
    if (why[0]) tg_say(ctx, TG_LOG_INFO, "plan %s is not one dispatch: %s", plan->name, why);
    return s->on;
}

/* ------------------------------------------------------------------------------------- the kernel
 */

/* What the list says of a phase; a plan's list is of fours of it. */
typedef struct entry {
    uint32_t four[ITEM_FOURS][4];
} entry;
enum { ENTRY_WORD = 2, ENTRY_OPERANDS = 3 };

/* The functions of a plan, in the order in which they are met first. Where a card's compiler is to
 * know shapes, one of its own for each that differs in more than in places; else one for each text,
 * which looks into the list. */
typedef struct kinds {
    const tg_grid_phase *phase[MAX_KINDS];
    entry entry[MAX_KINDS];
    size_t n;
    bool of_shapes;
} kinds;

/* As phases of the same kind have it: without the function's number, the barrier, and where
 * operands are. Homes stay, since they choose a binding, which the text has to name. */
static entry without_places(const entry *e) {
    entry of = *e;
    of.four[0][0] = of.four[0][1] = 0;
    for (int k = 0; k < TG_MAX_BIND; k++)
        of.four[ENTRY_OPERANDS + k][0] &= ~((UINT32_C(1) << HOME_BIT) - 1);
    return of;
}

static bool is_kind(const kinds *k, size_t i, const tg_grid_phase *p, const entry *of) {
    return strcmp(k->phase[i]->call, p->call) == 0 &&
           (!k->of_shapes || memcmp(&k->entry[i], of, sizeof *of) == 0);
}

/* Writes the number of its function to each entry. False: there are too many, as of a model whose
 * layers have many shapes; then there is one for each text, which cannot be too many. */
static bool find_kinds(kinds *k, const items *all, entry *list, bool of_shapes) {
    *k = (kinds) { .of_shapes = of_shapes };
    for (size_t i = 0; i < all->n; i++) {
        const tg_grid_phase *p = all->item[i].phase;
        const entry of = without_places(&list[i]);
        size_t kind = 0;
        while (kind < k->n && !is_kind(k, kind, p, &of)) kind++;
        if (kind == MAX_KINDS) return false;
        if (kind == k->n) {
            k->phase[k->n] = p;
            k->entry[k->n++] = of;
        }
        list[i].four[0][0] = (uint32_t)kind;
    }
    return true;
}

/* Appends, or only counts where there is no text yet. */
typedef struct writer {
    char *text;
    size_t n;
} writer;

static void put(writer *w, const char *piece) { w->n = tg_shader_put(w->text, w->n, piece); }
static void put_lines(writer *w, const char *const *lines) {
    w->n = tg_shader_put_lines(w->text, w->n, lines);
}
/* For lines made here, of names of up to 23 bytes and numbers: all of them are well below 256. */
static void __attribute__((format(printf, 2, 3))) put_line(writer *w, const char *format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put(w, line);
}

static bool are_same(const char *const *a, const char *const *b) {
    while (*a && *b && strcmp(*a, *b) == 0) a++, b++;
    return !*a && !*b;
}

/* Of a line, with what the phase has instead of PHASE_. */
static void put_named(writer *w, const char *line, const char *name) {
    for (const char *at; (at = strstr(line, "PHASE_")); line = at + strlen("PHASE_")) {
        if (w->text) memcpy(w->text + w->n, line, (size_t)(at - line));
        w->n += (size_t)(at - line);
        put(w, name);
    }
    put(w, line);
}

static bool is_of_a_phase(const char *const *lines) {
    for (; *lines; lines++)
        if (strstr(*lines, "PHASE_")) return true;
    return false;
}

/* Lines that are not of a phase stand once: WGSL takes no function twice. Several phases bring the
 * same piece, and not always by the same array, so texts are compared. */
static bool is_new(const kinds *k, size_t i, int piece) {
    const char *const *lines = k->phase[i]->wgsl[piece];
    if (is_of_a_phase(lines)) return true;
    for (size_t a = 0; a <= i; a++)
        for (int b = 0; b < 5 && (a < i || b < piece); b++) {
            const char *const *other = k->phase[a]->wgsl[b];
            if (other && are_same(other, lines)) return false;
        }
    return true;
}

/* A function of four numbers that are constants, but for its end. */
static void write_numbers(writer *w, const char *name, const char *function, const char *type,
                          const char *cast, const uint32_t numbers[4]) {
    put_line(w, "fn %s%s(p: u32, k: u32) -> %s {\n    switch k {\n", name, function, type);
    for (int a = 0; a < 4; a++)
        put_line(w, "        case %du: { return %s(%" PRIu32 "u); }\n", a, cast, numbers[a]);
}

/* What the list says, as a phase asks for it: out of the list, or as constants. */
static void write_entry(writer *w, const kinds *k, size_t i, const char *name) {
    static const char *const from_list[] = {
        "fn PHASE_operand(p: u32, k: u32) -> Operand {\n"
        "    let o = list[p + 3u + k];\n"
        "    return Operand(o.x & 0xfffffffu, o.y, o.z, o.w, o.x >> 28u);\n}\n"
        "fn PHASE_i(p: u32, k: u32) -> i32 { return bitcast<i32>(list[p + 2u][k]); }\n"
        "fn PHASE_f(p: u32, k: u32) -> f32 { return as_float(list[p + 1u][k]); }\n"
        "fn PHASE_word(p: u32) -> u32 { return list[p].z; }\n"
        "fn PHASE_share(p: u32) -> u32 { return list[p].w; }\n"
    };
    const entry *e = &k->entry[i];
    if (!k->of_shapes) {
        put_named(w, from_list[0], name);
        return;
    }
    put_line(w, "fn %sword(p: u32) -> u32 { return %" PRIu32 "u; }\n", name, e->four[0][2]);
    put_line(w, "fn %sshare(p: u32) -> u32 { return %" PRIu32 "u; }\n", name, e->four[0][3]);
    write_numbers(w, name, "f", "f32", "as_float", e->four[1]);
    put(w, "        default: { return 0.0; }\n    }\n}\n");
    write_numbers(w, name, "i", "i32", "bitcast<i32>", e->four[ENTRY_WORD]);
    put_line(w,
             "        default: { return 0; }\n    }\n}\n"
             "fn %soperand(p: u32, k: u32) -> Operand {\n    switch k {\n",
             name);
    for (int a = 0; a < TG_MAX_BIND; a++) {
        const uint32_t *o = e->four[ENTRY_OPERANDS + a];
        put_line(w,
                 "        case %du: { return Operand(list[p + %du].x & 0xfffffffu, %" PRIu32
                 "u, %" PRIu32 "u, %" PRIu32 "u, %" PRIu32 "u); }\n",
                 a, ENTRY_OPERANDS + a, o[1], o[2], o[3], o[0] >> HOME_BIT);
    }
    put(w, "        default: { return Operand(); }\n    }\n}\n");
}

/* A switch over the functions: WGSL has no pointers to any. Numbers without a case do nothing: the
 * trial's barriers have such a one. */
static void write_calls(writer *w, const kinds *k) {
    put(w, "fn phase(kind: u32, p: u32, group: u32, lane: u32) {\n    switch kind {\n");
    for (size_t i = 0; i < k->n; i++)
        put_line(w, "        case %zuu: { p%zu_%s(p, group, lane); }\n", i, i, k->phase[i]->call);
    put(w, "        default: {}\n    }\n}\n");
}

/* Called twice with the same arguments, to count and to write: nothing in it may depend on w->text.
 */
static void write_kernel(writer *w, const tg_single_rules *rules, const tg_single *s,
                         const kinds *k) {
    char name[24];
    w->n = 0;
    if (rules->subgroups) put(w, TG_GPU_ENABLE_SUBGROUPS);
    put_line(w, "const THREADS = %" PRIu32 "u;\nconst ROW = %zuu;\nconst ROUNDED = %zuu;\n",
             s->threads, s->row_floats, s->row_rounded);
    put_line(w, "const SOFTWARE = %s;\n", rules->software ? "true" : "false");
    put_lines(w, tg_shader_functions());
    put_lines(w, text_single);
    put_lines(w, rules->subgroups ? text_subgroups : text_sums);
    for (size_t i = 0; i < k->n; i++) {
        snprintf(name, sizeof name, "p%zu_", i);
        write_entry(w, k, i, name);
        for (int piece = 0; piece < 5; piece++) {
            const char *const *lines = k->phase[i]->wgsl[piece];
            if (!lines || !is_new(k, i, piece)) continue;
            for (; *lines; lines++) put_named(w, *lines, name);
        }
    }
    write_calls(w, k);
    put_lines(w, text_main);
}

/* FNV-1a with 64 bits. Texts are all of one process's making, so nobody seeks collisions. */
static uint64_t hash_of(const char *text, size_t n) {
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    return h;
}

/* The kernel of such phases, of which rules keeps some, and replaces them in turn: a plan that is
 * bound anew has the same text as a rule, and compiling it is slow. Pipelines belong to the GPU and
 * go with it, so one that is replaced stays until then. */
static tg_status find_pipeline(const tg_single *s, tg_single_rules *rules, tg_ctx *ctx, tg_gpu *gpu,
                               const kinds *k, uint32_t *pipeline) {
    const size_t room = sizeof rules->kernels / sizeof *rules->kernels;
    writer w = { NULL, 0 };
    write_kernel(&w, rules, s, k);
    const size_t bytes = w.n + 1;
    w.text = tg_alloc(&ctx->mem, bytes);
    if (!w.text) return tg_fail_memory(ctx, "text of a kernel", bytes);
    write_kernel(&w, rules, s, k);
    w.text[w.n] = '\0';
    const uint64_t hash = hash_of(w.text, w.n);
    *pipeline = 0;
    for (size_t i = 0; i < rules->n_kernels && i < room; i++)
        if (rules->kernels[i].text == hash) *pipeline = rules->kernels[i].pipeline;
    tg_status status = TG_OK;
    if (!*pipeline) {
        status = tg_gpu_pipeline_new(gpu, "single", w.text, "single", TG_GPU_MAX_STORAGE, pipeline);
        const size_t at = rules->n_kernels++ % room;
        rules->kernels[at].text = hash;
        rules->kernels[at].pipeline = *pipeline;
    }
    tg_free(&ctx->mem, w.text, bytes);
    return status;
}

/* --------------------------------------------------------------------------------------- the list
 */

/* The buffers of states: the written one last. */
typedef struct state_buffers {
    uint32_t buffer[STATE_BUFFERS];
    uint64_t end[STATE_BUFFERS];
    bool too_many;
} state_buffers;

/* The home of a state: the place of its buffer among the four, or WRITTEN. WebGPU has eight storage
 * bindings on every adapter, of which three are sync, work and scratch; and as all of them are
 * writable, a buffer may be bound once alone. end: as far as it is bound. */
static uint32_t state_buffer(state_buffers *b, const tg_gpu_range *r, bool is_written) {
    uint32_t i = is_written ? WRITTEN : 0;
    while (i < WRITTEN && b->buffer[i] && b->buffer[i] != r->buffer) i++;
    if (i == WRITTEN && (!is_written || (b->buffer[i] && b->buffer[i] != r->buffer)))
        b->too_many = true;
    b->buffer[i] = r->buffer;
    if (r->offset + r->bytes > b->end[i]) b->end[i] = r->offset + r->bytes;
    return i;
}

/* By the whole plan: what one phase reads another one writes, and both must name the same binding.
 */
static bool is_written_state(const tg_plan *plan, const tg_value *v) {
    const size_t state = tg_plan_place_of(plan, v)->state;
    for (size_t s = 0; s < plan->n_steps; s++)
        for (int k = 0; k < plan->steps[s].node->n_out; k++) {
            const tg_place *p = tg_plan_place_of(plan, &plan->steps[s].node->out[k]);
            if (p->kind == TG_PLACE_STATE && p->state == state) return true;
        }
    return false;
}

/* The upper 4 bits are the home, the lower 28 a place: counted in floats in the workspace and among
 * what is handed on, and in fours of 16 bytes in a state. That reaches 1 GiB and 4 GiB, and
 * webgpu.c takes no plan whose workspace is larger than a segment, at most 1 GiB; a binding is less
 * than 4 GiB. States begin at multiples of TG_GPU_ALIGN, so that 16 divides. */
static void write_operand(const tg_plan *plan, const tg_single_buffers *b, const items *all,
                          size_t i, unsigned k, state_buffers *states, uint32_t out[4]) {
    const item *it = &all->item[i];
    const tg_value *v = operand(it, k);
    tg_gpu_range r;
    out[0] = (uint32_t)ABSENT << HOME_BIT;
    if (it->phase->bind[k] == TG_BIND_SCRATCH) out[0] = (uint32_t)IN_FLOW << HOME_BIT | it->scratch;
    if (!v || !b->locate(b->user, v, &r)) return;
    const tg_type *t = &v->type;
    out[1] = (uint32_t)tg_type_rows(t);
    out[2] = (uint32_t)tg_type_cols(t);
    out[3] = (uint32_t)t->dim[0];
    if (lies_in_row(all, i, v))
        out[0] = (uint32_t)IN_ROW << HOME_BIT;
    else if (flow_of(all, i, v) != NO_FLOW)
        out[0] = (uint32_t)IN_FLOW << HOME_BIT | flow_of(all, i, v);
    else if (!is_state(plan, v))
        out[0] = (uint32_t)IN_WORK << HOME_BIT | (uint32_t)(r.offset / 4);
    else
        out[0] = state_buffer(states, &r, is_written_state(plan, v)) << HOME_BIT |
                 (uint32_t)(r.offset / 16);
}

/* All of an entry but the number of its function, which find_kinds adds when it has compared them.
 */
static void write_list(const tg_single *s, const tg_plan *plan, const tg_single_buffers *b,
                       const items *all, state_buffers *states, entry *list) {
    for (size_t i = 0; i < all->n; i++) {
        const item *it = &all->item[i];
        const tg_args *a = &it->step->args;
        const tg_grid *g = grid_of(it->step);
        uint32_t(*to)[4] = list[i].four;
        to[0][1] = it->meets;
        to[0][2] = g->word ? g->word(a) : 0;
        to[0][3] = g->share ? g->share(a, s->groups, s->threads) : 0;
        memcpy(to[1], a->attr.f, sizeof a->attr.f);
        _Static_assert(sizeof a->attr.f <= sizeof to[1], "a four of the list");
        memcpy(to[ENTRY_WORD], a->attr.i, sizeof to[ENTRY_WORD]);
        for (unsigned k = 0; k < TG_MAX_BIND; k++)
            write_operand(plan, b, all, i, k, states, to[ENTRY_OPERANDS + k]);
    }
}

/* Two halves, of which a dispatch has one and clears the other. */
static size_t flow_bytes(const tg_single *s) { return (8 * s->flow_words + 255) / 256 * 256; }

/* Bindings as single.wgsl has them: written is 5, and the four that are read are 6 to 9. What the
 * plan lacks is bound to a piece of dummies, each to one of its own, as no two ranges of a dispatch
 * may overlap. */
static void find_ranges(const tg_single *s, const tg_single_buffers *b, const state_buffers *states,
                        tg_gpu_range r[2 + TG_GPU_MAX_STORAGE]) {
    r[0] = (tg_gpu_range) { s->list, 0, LIST_FOURS * 16 };
    r[1] = (tg_gpu_range) { b->call, 0, TG_CALL_BYTES };
    r[2] = (tg_gpu_range) { s->sync, 0, SYNC_WORDS * 4 };
    r[3] = (tg_gpu_range) { b->work, 0, b->work_bytes };
    r[4] = (tg_gpu_range) { s->flow, 0, flow_bytes(s) };
    for (uint32_t i = 0; i < STATE_BUFFERS; i++)
        r[5 + (i + 1) % STATE_BUFFERS] =
            (tg_gpu_range) { states->buffer[i], 0, (states->end[i] + 15) / 16 * 16 };
    for (uint32_t i = 2; i < 2 + TG_GPU_MAX_STORAGE; i++)
        if (!r[i].buffer || !r[i].bytes)
            r[i] = (tg_gpu_range) { b->dummies, (i - 2) * TG_GPU_ALIGN, TG_GPU_ALIGN };
}

/* As many threads as the rules say, in workgroups that may be smaller. */
static uint32_t groups_of(const tg_single *s, const tg_single_rules *rules) {
    return rules->given ? rules->groups : rules->groups * (rules->threads / s->threads);
}

/* List, kernel and bind group, in memory that the caller gives. Buffers that were made stay with s
 * after an error, for tg_single_free. */
static tg_status bind(tg_single *s, tg_single_rules *rules, tg_ctx *ctx, tg_gpu *gpu,
                      const tg_plan *plan, const tg_single_buffers *b, uint32_t (*list)[4],
                      tg_gpu_dispatch *d) {
    items all;
    state_buffers states = { .too_many = false };
    tg_gpu_range ranges[2 + TG_GPU_MAX_STORAGE];
    kinds k;
    entry *entries = (entry *)(void *)(list + 1);
    list_items(plan, s->n_steps, &all);
    find_rows(rules, &all, s);
    find_flow(plan, &all, s);
    find_meets(plan, &all);
    s->of_rules = rules->groups;
    s->groups = groups_of(s, rules);
    list[0][0] = (uint32_t)all.n;
    list[0][1] = s->groups;
    list[0][2] = rules->looks;
    list[0][3] = (uint32_t)s->flow_words;
    write_list(s, plan, b, &all, &states, entries);
    s->too_many = states.too_many;
    if (states.too_many) return TG_E_UNSUPPORTED;
    if (!rules->of_shapes || !find_kinds(&k, &all, entries, true))
        find_kinds(&k, &all, entries, false);
    TG_TRY(find_pipeline(s, rules, ctx, gpu, &k, &d->pipeline));
    if (!s->list) TG_TRY(tg_gpu_buffer_new(gpu, "phases", LIST_FOURS * 16, true, &s->list));
    if (!s->sync) TG_TRY(tg_gpu_buffer_new(gpu, "barrier", TG_GPU_ALIGN, false, &s->sync));
    if (!s->flow) TG_TRY(tg_gpu_buffer_new(gpu, "flow", flow_bytes(s), false, &s->flow));
    TG_TRY(tg_gpu_write(gpu, s->list, 0, list, LIST_FOURS * 16));
    find_ranges(s, b, &states, ranges);
    d->x = s->groups;
    d->y = d->z = 1;
    return tg_gpu_group_new(gpu, d->pipeline, ranges, &d->group);
}

tg_status tg_single_bind(tg_single *s, tg_single_rules *rules, tg_ctx *ctx, tg_gpu *gpu,
                         const tg_plan *plan, const tg_single_buffers *b, tg_gpu_dispatch *d) {
    const size_t bytes = LIST_FOURS * 16;
    uint32_t(*list)[4] = tg_alloc(&ctx->mem, bytes);
    if (!list) return tg_fail_memory(ctx, "list of phases", bytes);
    memset(list, 0, bytes);
    const tg_status status = bind(s, rules, ctx, gpu, plan, b, list, d);
    tg_free(&ctx->mem, list, bytes);
    return status;
}

/* ----------------------------------------------------------------------------- running, and trials
 */

/* Counters begin at 0, and the halves of flow take turns. Queue order makes that write precede the
 * dispatch, and follow the last one. */
tg_status tg_single_begin(tg_single *s, const tg_single_rules *rules, tg_gpu *gpu,
                          tg_gpu_dispatch *d) {
    s->half = !s->half;
    const uint32_t words[SYNC_WORDS] = { [2] = s->half };
    d->x = s->groups - (rules->missing < s->groups ? rules->missing : s->groups);
    return tg_gpu_write(gpu, s->sync, 0, words, sizeof words);
}

tg_gpu_piece tg_single_piece(tg_single *s) {
    return (tg_gpu_piece) { s->sync, 0, sizeof s->come, s->come };
}

/* Who is through the list has had what it was to read, unless it has given up. */
bool tg_single_came(const tg_single *s) {
    return s->groups > 0 && s->come[1] == s->groups && s->come[3] == 0;
}

/* Overwrites the head of the list and the first entries with barriers whose function is none. The
 * caller binds anew afterwards, which writes the whole list. */
static tg_status try_groups(tg_single *s, tg_single_rules *rules, tg_gpu *gpu, tg_gpu_dispatch *d) {
    const tg_gpu_piece piece = tg_single_piece(s);
    s->of_rules = rules->groups;
    s->groups = groups_of(s, rules);
    const uint32_t head[4] = { TRIAL_MEETS, s->groups, rules->looks, 0 };
    uint32_t reading;
    TG_TRY(tg_gpu_write(gpu, s->list, 0, head, sizeof head));
    for (uint32_t i = 0; i < TRIAL_MEETS; i++) {
        const uint32_t barrier[4] = { UINT32_MAX, 1, 0, 0 };
        TG_TRY(tg_gpu_write(gpu, s->list, 16 * (1 + ITEM_FOURS * i), barrier, sizeof barrier));
    }
    TG_TRY(tg_single_begin(s, rules, gpu, d));
    TG_TRY(tg_gpu_submit(gpu, d, 1));
    TG_TRY(tg_gpu_read_begin(gpu, &piece, 1, &reading));
    return tg_gpu_read_end(gpu, reading, &piece, 1);
}

/* A card that runs fewer workgroups at once than it was given stops at the first barrier. What came
 * through holds for all plans, as rules are of the backend: plans that were bound for more are
 * compiled anew (compile in webgpu.c). */
tg_status tg_single_try(tg_single *s, tg_single_rules *rules, tg_gpu *gpu, tg_gpu_dispatch *d) {
    TG_TRY(try_groups(s, rules, gpu, d));
    while (!tg_single_came(s) && !rules->given && rules->groups > 1) {
        rules->groups /= 2;
        TG_TRY(try_groups(s, rules, gpu, d));
    }
    return TG_OK;
}

/* A warning and no error: the same plan runs without, as one dispatch a step. */
void tg_single_give_up(const tg_single *s, tg_single_rules *rules, tg_ctx *ctx,
                       const tg_plan *plan) {
    if (!s->too_many)
        tg_say(ctx, TG_LOG_WARNING,
               "plan %s: want %" PRIu32 " workgroups that meet in one dispatch, %" PRIu32
               " came through: lever single_dispatch off",
               plan->name, s->groups, s->come[1]);
    else
        tg_say(ctx, TG_LOG_WARNING,
               "plan %s: its weights and caches lie in more buffers than one dispatch binds: lever "
               "single_dispatch off",
               plan->name);
    rules->groups = 0;
}

void tg_single_free(tg_single *s, tg_gpu *gpu) {
    tg_gpu_buffer_free(gpu, s->list);
    tg_gpu_buffer_free(gpu, s->sync);
    tg_gpu_buffer_free(gpu, s->flow);
    *s = (tg_single) { .on = false };
}
