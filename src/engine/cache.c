/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - the pages of a cache: their sizes, their tables, how plans find them, and who shares
 * them. cache.h draws the memory, ops/attention/cache/pages.h says which row of which page a
 * position has.
 *
 * Invariant: of each kind, uses[p] is how often the tables name page p. The tables have S * C
 * places and there are S * C pages, so the uses sum up to S * C: where a page is named twice,
 * another one is named by nobody. So sharing a page and leaving it allocates nothing and cannot
 * fail.
 *
 *   two sequences of three pages     after share(1, 0, two pages)     after own(1, the second page)
 *     0 | 0 1 2 |                      0 | 0 1 2 |                      0 | 0 1 2 |
 *     1 | 3 4 5 |                      1 | 0 1 5 |                      1 | 0 3 5 |
 *     uses 1 1 1 1 1 1                 uses 2 2 1 0 0 1                 uses 2 1 1 1 0 1
 *
 * Tables are on the host, and a run gets copies of them as inputs. On a GPU runs write the
 * backend's mirror of the block, so that nothing here can copy a page that becomes a sequence's own
 * (tg_cache_own). Whoever calls has the rows computed again.
 */
#include "engine/cache.h"

#include "ops/attention/cache/pages.h"
#include "ops/build.h"

/* Layers of the same kind have as many pages, so that one table serves them all. The arena's memory
 * is zeros: slots begin as position 0, which is no state. Each sequence begins with pages of its
 * own, in order. After an error the arena has what was made so far, and tg_cache_deinit is fine. */
static tg_status make_tables(tg_cache *c, tg_arena *arena) {
    for (int32_t i = 0; i < c->n_layers; i++) c->n_cols[c->layers[i].keeps] = c->layers[i].n_pages;
    const size_t n_slots = (size_t)c->n_sequences * TG_STATE_SLOTS;
    c->slots = tg_arena_array(arena, n_slots, sizeof *c->slots);
    c->filling = tg_arena_array(arena, (size_t)c->n_sequences, sizeof *c->filling);
    if (!c->slots || !c->filling) return tg_fail_memory(&c->ctx->err, "slots of a cache", n_slots);
    for (int kind = 0; kind < TG_KEEPS_COUNT; kind++) {
        const size_t n = (size_t)c->n_sequences * c->n_cols[kind];
        if (n == 0) continue;
        c->pages[kind] = tg_arena_array(arena, n, sizeof *c->pages[kind]);
        c->uses[kind] = tg_arena_array(arena, n, sizeof *c->uses[kind]);
        if (!c->pages[kind] || !c->uses[kind])
            return tg_fail_memory(&c->ctx->err, "pages of a cache", n * 8);
        for (size_t k = 0; k < n; k++) {
            c->pages[kind][k] = (int32_t)k;
            c->uses[kind][k] = 1;
        }
    }
    return TG_OK;
}

/* All layers lie in one block, at offsets that are rounded as those of a workspace are, so that
 * each layer can be bound as a state of its own. The block comes last: it is the only thing here
 * that tg_cache_deinit has to give back. */
tg_status tg_cache_init(tg_cache *c, tg_context *ctx, tg_arena *arena,
                        const tg_model_config *config, tg_dtype dtype, int32_t positions,
                        int32_t rows, int32_t n_sequences) {
    const size_t n = (size_t)tg_model_states(config);
    tg_layer_state *layers = tg_arena_array(arena, n, sizeof *layers);
    size_t *offsets = tg_arena_array(arena, n + 1, sizeof *offsets);
    *c = (tg_cache) { .ctx = ctx,
                      .layers = layers,
                      .offsets = offsets,
                      .n_layers = (int32_t)n,
                      .n_sequences = n_sequences,
                      .positions = positions };
    if (!layers || !offsets)
        return tg_fail_memory(&ctx->err, "layers of a cache", n * sizeof *layers);
    offsets[0] = 0;
    for (size_t i = 0; i < n; i++) {
        layers[i] = tg_layer_state_of(config, (int)i, dtype, positions, rows);
        const tg_type type = tg_layer_state_type(&layers[i], (size_t)n_sequences);
        offsets[i + 1] = offsets[i] + tg_plan_round(tg_type_bytes(&type));
    }
    TG_TRY(make_tables(c, arena));
    return tg_runtime_block(ctx, offsets[n], &c->block);
}

void tg_cache_deinit(tg_cache *c) {
    if (c->ctx) tg_runtime_block_free(c->ctx, &c->block);
}

/* By value, since the name is wanted for as long as one call only. It ties the two halves together:
 * tg_cache_net declares the state by it, and tg_cache_bind finds it. 32 bytes hold any int32_t. */
typedef struct state_name {
    char text[32];
} state_name;
static state_name name_of(int32_t layer) {
    state_name name;
    snprintf(name.text, sizeof name.text, "cache.%d", (int)layer);
    return name;
}

/* Errors of the graph are sticky, so that nothing but the two arrays is looked at here. A kind that
 * no layer has gets no input. Names are by tg_keeps. Of states a run sees two columns whatever the
 * sequence has, the one that it goes on from and the one that it fills: begin_slot chooses. */
const tg_net_cache *tg_cache_net(const tg_cache *c, tg_graph *g, size_t rows, tg_cache_inputs *in) {
    static const char *const names[] = { "pages", "window.pages", "slots" };
    tg_net_cache *net = tg_arena_alloc(&g->arena, sizeof *net);
    tg_value **layers = tg_arena_array(&g->arena, (size_t)c->n_layers, sizeof *layers);
    if (!net || !layers) return NULL;
    in->at = tg_input_rows(g, "at", tg_type_2d(TG_I32, rows, 2));
    for (int kind = 0; kind < TG_KEEPS_COUNT; kind++) {
        const size_t cols = kind == TG_KEEPS_STATES ? 2 : c->n_cols[kind];
        const tg_type type = tg_type_2d(TG_I32, (size_t)c->n_sequences, cols);
        in->pages[kind] = c->n_cols[kind] > 0 ? tg_input(g, names[kind], type) : NULL;
    }
    for (int32_t i = 0; i < c->n_layers; i++)
        layers[i] = tg_state(g, name_of(i).text,
                             tg_layer_state_type(&c->layers[i], (size_t)c->n_sequences));
    *net = (tg_net_cache) { .layers = layers,
                            .all = { in->at, in->pages[TG_KEEPS_ALL] },
                            .window = { in->at, in->pages[TG_KEEPS_WINDOW] },
                            .state = { in->at, in->pages[TG_KEEPS_STATES] },
                            .positions = (size_t)c->positions };
    return net;
}

tg_status tg_cache_bind(const tg_cache *c, tg_plan *plan) {
    for (int32_t i = 0; i < c->n_layers; i++) {
        const tg_type type = tg_layer_state_type(&c->layers[i], (size_t)c->n_sequences);
        TG_TRY(tg_plan_bind(plan, name_of(i).text, (char *)c->block.data + c->offsets[i],
                            tg_type_bytes(&type)));
    }
    return TG_OK;
}

/* NULL: no layer is of this kind. */
static int32_t *table_of(const tg_cache *c, int kind, int32_t sequence) {
    return c->pages[kind] ? c->pages[kind] + (size_t)sequence * c->n_cols[kind] : NULL;
}

/* -------------------------------------------------------------------------------------- states */

static struct tg_cache_slot *slots_of(const tg_cache *c, int32_t sequence) {
    return c->slots + (size_t)sequence * TG_STATE_SLOTS;
}

/*
 * A state cannot be taken back by positions, and a run that is broken off must not have destroyed
 * the one that it went on from. So each run reads one slot and fills another. The slot that is
 * filled counts as none (position 0) until tg_cache_take_rows says that the run has ended:
 *
 *     begin_slot    from: position n        to: position 0, being filled
 *     take_rows     from: position n        to: position n + rows
 */

/* The column that has the state behind n positions; TG_STATE_SLOTS: none has. */
static size_t find_slot(const tg_cache *c, int32_t sequence, int32_t n) {
    const struct tg_cache_slot *slots = slots_of(c, sequence);
    size_t k = 0;
    while (k < TG_STATE_SLOTS && (n == 0 || slots[k].position != n)) k++;
    return k;
}

int32_t tg_cache_reach(const tg_cache *c, int32_t sequence, int32_t n) {
    int32_t best = 0;
    if (c->n_cols[TG_KEEPS_STATES] == 0) return n;
    for (size_t k = 0; k < TG_STATE_SLOTS; k++) {
        const int32_t position = slots_of(c, sequence)[k].position;
        if (position <= n && position > best) best = position;
    }
    return best;
}

/* Is slot a to be lost before b? Runs of as many rows as guesses have are short. Of short ones the
 * newest goes first: it is a token of an answer, to which nobody returns. Of long ones, the ends of
 * prompts, the oldest goes first. */
static bool goes_first(const struct tg_cache_slot *a, const struct tg_cache_slot *b) {
    const bool brief = a->rows <= TG_STATE_SHORT_ROWS, other = b->rows <= TG_STATE_SHORT_ROWS;
    if (a->position == 0 || b->position == 0) return b->position != 0;
    if (brief != other) return brief;
    return brief ? a->position > b->position : a->position < b->position;
}

/* A page that others have, too, is left to them: one that nobody uses takes its place. There is one
 * (see the head of this file), so the loop needs no bound: only pages with uses above 1 come here.
 */
static void take_unused(int32_t *uses, int32_t *page) {
    int32_t unused = 0;
    while (uses[unused] > 0) unused++;
    uses[*page]--;
    uses[unused]++;
    *page = unused;
}

/* What is beyond a position is of other tokens from now on. The slot that is lost may be shared:
 * then one that nobody uses takes its place.
 *
 * position is one that tg_cache_reach has answered, so that a slot has its state, or it is 0. At 0
 * no slot is gone on from: both numbers name the page that is filled, and the ops that read states
 * begin with zeros there. in_and_out: the row of the input "slots" that this sequence has. */
static void begin_slot(tg_cache *c, int32_t sequence, int32_t position, int32_t in_and_out[2]) {
    struct tg_cache_slot *slots = slots_of(c, sequence);
    int32_t *table = table_of(c, TG_KEEPS_STATES, sequence), *uses = c->uses[TG_KEEPS_STATES];
    const size_t from = find_slot(c, sequence, position);
    size_t to = from == 0;
    for (size_t k = 0; k < TG_STATE_SLOTS; k++) {
        if (slots[k].position > position) slots[k].position = 0;
        if (k != from && goes_first(&slots[k], &slots[to])) to = k;
    }
    slots[to].position = 0;
    if (uses[table[to]] > 1) take_unused(uses, &table[to]);
    c->filling[sequence] = (int32_t)to;
    in_and_out[0] = table[from < TG_STATE_SLOTS ? from : to];
    in_and_out[1] = table[to];
}

void tg_cache_take_rows(tg_cache *c, int32_t sequence, size_t n, int32_t position) {
    if (c->n_cols[TG_KEEPS_STATES] > 0)
        slots_of(c, sequence)[c->filling[sequence]] =
            (struct tg_cache_slot) { position, (int32_t)n };
}

uint8_t *tg_cache_state(const tg_cache *c, int32_t layer, int32_t sequence, int32_t n) {
    const size_t found = find_slot(c, sequence, n);
    const size_t k = found < TG_STATE_SLOTS ? found : (size_t)c->filling[sequence];
    const int32_t slot = table_of(c, TG_KEEPS_STATES, sequence)[k];
    return (uint8_t *)c->block.data + c->offsets[layer] +
           (size_t)slot * tg_layer_state_page_bytes(&c->layers[layer]);
}

/* For a state that comes from a file: as if a run from the beginning had filled a slot. The bytes
 * themselves are written after this, to where tg_cache_state then says. */
void tg_cache_put_state(tg_cache *c, int32_t sequence, int32_t n) {
    int32_t unused[2];
    if (c->n_cols[TG_KEEPS_STATES] == 0) return;
    begin_slot(c, sequence, 0, unused);
    tg_cache_take_rows(c, sequence, (size_t)n, n);
}

/* The table comes with the rows: inputs are memory that steps of the run before have used. Tables
 * of sequences that have no rows in this run stay garbage in there; no row leads to them. */
void tg_cache_place_rows(tg_cache *c, const tg_plan *plan, const tg_cache_inputs *in, size_t first,
                         size_t n, int32_t sequence, int32_t position) {
    int32_t *at = tg_plan_data(plan, in->at);
    for (size_t i = 0; i < n; i++) {
        at[2 * (first + i)] = sequence;
        at[2 * (first + i) + 1] = position + (int32_t)i;
    }
    tg_cache_own(c, sequence, (size_t)position, n);
    for (int kind = 0; kind < TG_KEEPS_STATES; kind++) {
        if (!in->pages[kind]) continue;
        int32_t *tables = tg_plan_data(plan, in->pages[kind]);
        memcpy(tables + (size_t)sequence * c->n_cols[kind], table_of(c, kind, sequence),
               c->n_cols[kind] * sizeof *tables);
    }
    if (in->pages[TG_KEEPS_STATES])
        begin_slot(c, sequence, position,
                   (int32_t *)tg_plan_data(plan, in->pages[TG_KEEPS_STATES]) + 2 * sequence);
}

/* --------------------------------------------------------------------------------------- sharing
 */

/* All layers that keep rows have pages of the same length, since that follows from the positions of
 * a sequence alone (model/state.c). Where all layers keep states, any length will do: 1. */
size_t tg_cache_page_rows(const tg_cache *c) {
    for (int32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].keeps != TG_KEEPS_STATES) return c->layers[i].page_rows;
    return 1;
}

int32_t tg_cache_window(const tg_cache *c) {
    int32_t most = 0;
    for (int32_t i = 0; i < c->n_layers; i++)
        if (c->layers[i].window > most) most = c->layers[i].window;
    return most;
}

/* Nothing is copied: the tables of `to` name the pages of `from`, and its own lose a use each. A
 * page that is not full is shared as well. A ring that has come round is shared as a whole. States
 * are not counted in positions, so all slots go along, with what is known of them. */
void tg_cache_share(tg_cache *c, int32_t to, int32_t from, size_t n) {
    const size_t used = (n + tg_cache_page_rows(c) - 1) / tg_cache_page_rows(c);
    for (int kind = 0; kind < TG_KEEPS_COUNT; kind++) {
        const bool states = kind == TG_KEEPS_STATES;
        int32_t *mine = table_of(c, kind, to);
        const int32_t *other = table_of(c, kind, from);
        for (size_t k = 0; k < c->n_cols[kind] && (states || k < used); k++) {
            c->uses[kind][mine[k]]--;
            c->uses[kind][other[k]]++;
            mine[k] = other[k];
        }
    }
    memcpy(slots_of(c, to), slots_of(c, from), TG_STATE_SLOTS * sizeof *c->slots);
}

/* States do not count: begin_slot gives a sequence another slot at any position, and copies none.
 */
bool tg_cache_is_shared(const tg_cache *c, int32_t sequence, size_t position) {
    const size_t page = position / tg_cache_page_rows(c);
    for (int kind = 0; kind < TG_KEEPS_STATES; kind++)
        if (c->n_cols[kind] > 0 &&
            c->uses[kind][table_of(c, kind, sequence)[page % c->n_cols[kind]]] > 1)
            return true;
    return false;
}

/* One number names the page of all layers of a kind, so all of them are copied, whole pages: that
 * some rows of it are to be written anew is not worth the looking. */
static void copy_page(tg_cache *c, int kind, int32_t to, int32_t from) {
    for (int32_t i = 0; i < c->n_layers; i++) {
        const tg_layer_state *s = &c->layers[i];
        if ((int)s->keeps != kind) continue;
        uint8_t *pages = (uint8_t *)c->block.data + c->offsets[i];
        const size_t bytes = tg_layer_state_page_bytes(s);
        memcpy(pages + (size_t)to * bytes, pages + (size_t)from * bytes, bytes);
    }
}

/* On the CPU rows before `first` in the page are still wanted, and come along in the copy. A GPU
 * has its pages where nothing here can copy them: callers go back to the page's first position
 * before (leave_shared_page in session.c), and lose no more than page_rows - 1 rows, which they
 * compute again. */
void tg_cache_own(tg_cache *c, int32_t sequence, size_t first, size_t n) {
    if (n == 0) return;
    const size_t R = tg_cache_page_rows(c);
    for (int kind = 0; kind < TG_KEEPS_STATES; kind++) {
        for (size_t k = first / R; c->n_cols[kind] > 0 && k <= (first + n - 1) / R; k++) {
            int32_t *page = table_of(c, kind, sequence) + k % c->n_cols[kind];
            const int32_t shared = *page;
            if (c->uses[kind][shared] == 1) continue;
            take_unused(c->uses[kind], page);
            if (c->ctx->backend == c->ctx->cpu) copy_page(c, kind, *page, shared);
        }
    }
}

/* For session files, which read and write the host's copy. The arithmetic is that of the kernels:
 * both go by ops/attention/cache/pages.h. */
uint8_t *tg_cache_row(const tg_cache *c, int32_t layer, int32_t sequence, size_t head,
                      size_t position) {
    const tg_layer_state *s = &c->layers[layer];
    const tg_paged pages = { c->pages[s->keeps] + (size_t)sequence * s->n_pages, s->n_pages,
                             s->heads, s->page_rows };
    return (uint8_t *)c->block.data + c->offsets[layer] +
           tg_paged_row(&pages, head, position) * tg_layer_state_row_bytes(s);
}
