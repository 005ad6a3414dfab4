/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - the sizes of what layers remember.
 */
#include "model/state.h"

#include "ops/attention/cache/kv_row.h"
#include "ops/attention/cache/pages.h"
#include "ops/mamba2/mamba2_rules.h"

/* The last row of a call still sees its window, the first of whose positions the others must not
 * have overwritten: so a ring is as long as the window and the rows. */
static size_t room_of(size_t window, size_t positions, size_t rows) {
    const size_t ring = window + rows - 1;
    return window > 0 && positions > rows && ring < positions ? ring : positions;
}

/* Those of a gated delta net have the sizes of Mamba2's (ops/delta_net/delta_net_rules.h). */
static tg_layer_state states_of(const tg_model_config *c) {
    const tg_attr a = { .i = { c->ssm_heads, c->ssm_head_size, c->ssm_groups, c->ssm_state } };
    const mamba m = mamba_of(&a, (size_t)c->conv_taps);
    return (tg_layer_state) { .dtype = TG_F32,
                              .heads = 1,
                              .row_elems = mamba_state_elems(&m),
                              .page_rows = 1,
                              .n_pages = TG_STATE_SLOTS,
                              .keeps = TG_KEEPS_STATES };
}

int32_t tg_state_layer(const tg_model_config *c, int32_t i) {
    TG_ASSERT(i < tg_model_states(c));
    if (i >= c->layers) return i - c->layers;
    int32_t layer = 0;
    while (!tg_layer_remembers(c, layer) || i-- > 0) layer++;
    return layer;
}

/* A context shorter than a page has a page of its own length. */
tg_layer_state tg_layer_state_of(const tg_model_config *c, int i, tg_dtype dtype, int32_t positions,
                                 int32_t rows) {
    if (i >= c->layers) return states_of(c);
    const int32_t layer = tg_state_layer(c, i);
    const tg_layer_kind kind = tg_layer_kind_of(c, layer);
    if (tg_layer_has_state(kind)) return states_of(c);
    const bool conv = kind == TG_LAYER_CONV;
    const int32_t window = conv ? c->conv_taps : tg_windowed(c, layer) ? c->window : 0;
    const size_t room = room_of((size_t)window, (size_t)positions, (size_t)rows);
    const size_t page_rows = positions < TG_PAGE_TILE ? (size_t)positions : TG_PAGE_TILE;
    return (tg_layer_state) {
        .dtype = conv ? TG_F32 : dtype,
        .heads = conv ? 1 : 2 * (size_t)c->kv_heads,
        .row_elems =
            conv ? (size_t)c->width : tg_kv_row_elems(dtype, (size_t)tg_layer_head_size(c, layer)),
        .page_rows = page_rows,
        .n_pages = (room + page_rows - 1) / page_rows,
        .window = window,
        .keeps = window > 0 ? TG_KEEPS_WINDOW : TG_KEEPS_ALL,
    };
}

uint64_t tg_model_state_bytes(const tg_model_config *c, tg_dtype dtype, int32_t positions,
                              int32_t rows) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < tg_model_states(c); i++) {
        const tg_layer_state s = tg_layer_state_of(c, i, dtype, positions, rows);
        bytes += (uint64_t)s.n_pages * tg_layer_state_page_bytes(&s);
    }
    return bytes;
}
