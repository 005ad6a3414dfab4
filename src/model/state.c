/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - the sizes of what layers remember.
 */
#include "model/state.h"

#include "ops/attention/kv_row.h"
#include "ops/attention/pages.h"

/* The last row of a call still sees its window, the first of whose positions the others must not
 * have overwritten: so a ring is as long as the window and the rows. */
static size_t room_of(const tg_model_config *c, int layer, size_t positions, size_t rows) {
    const size_t ring = (size_t)c->window + rows - 1;
    return tg_windowed(c, layer) && positions > rows && ring < positions ? ring : positions;
}

/* A context shorter than a page has a page of its own length. */
tg_layer_state tg_layer_state_of(const tg_model_config *c, int layer, tg_dtype dtype,
                                 int32_t positions, int32_t rows) {
    const size_t room = room_of(c, layer, (size_t)positions, (size_t)rows);
    const size_t page_rows = positions < TG_PAGE_TILE ? (size_t)positions : TG_PAGE_TILE;
    return (tg_layer_state) {
        .dtype = dtype,
        .heads = 2 * (size_t)c->kv_heads,
        .row_elems = tg_kv_row_elems(dtype, (size_t)c->head_size),
        .page_rows = page_rows,
        .n_pages = (room + page_rows - 1) / page_rows,
        .windowed = tg_windowed(c, layer),
    };
}

uint64_t tg_model_state_bytes(const tg_model_config *c, tg_dtype dtype, int32_t positions,
                              int32_t rows) {
    uint64_t bytes = 0;
    for (int32_t i = 0; i < c->layers; i++) {
        const tg_layer_state s = tg_layer_state_of(c, i, dtype, positions, rows);
        bytes += (uint64_t)s.n_pages * tg_layer_state_page_bytes(&s);
    }
    return bytes;
}
