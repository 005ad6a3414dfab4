/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_maps.c - weights that are used where the model's file has them.
 *
 * Tables of floats whose rows are looked up, a few a token, and matrices of f16 and bf16 need not
 * be read, packed or copied: the file is mapped, and is read when a product asks for it
 * (ops/matmul/packed/packed_rows.h). Other matrices are packed (packing.c), out of the map, which
 * saves the copy that reading would make: those of f32, multiplied with where they lie, had
 * decoding at 0.95 of the speed of packed ones in huge pages.
 *
 * So that memory need not hold all of it twice, what was packed is dropped from time to time: not
 * after each piece, as all processors are told. A map in which nothing stays goes with the packing.
 */
#include "load/packing.h"

bool tg_file_maps_wanted(void) { return true; }

/* Tensors of one file share its map. */
static tg_status map_file(tg_model *m, size_t tensor, const tg_os_file *file) {
    size_t k = 0;
    while (k < m->n_maps && m->maps[k].file != file) k++;
    if (k == m->n_maps) {
        TG_TRY(tg_os_map_file(&m->ctx->err, file, &m->maps[k].map));
        m->maps[m->n_maps++].file = file;
    }
    m->maps[k].stays |= m->table.tensors[tensor].stays;
    m->in_file[tensor] =
        (const uint8_t *)m->maps[k].map.data + m->table.tensors[tensor].source->offset;
    return TG_OK;
}

tg_status tg_file_maps_begin(tg_model *m) {
    const size_t n = m->table.n_tensors;
    m->maps = tg_arena_array(&m->arena, n, sizeof *m->maps);
    m->in_file = tg_arena_array(&m->arena, n, sizeof *m->in_file);
    if (!m->maps || !m->in_file)
        return tg_fail_memory(&m->ctx->err, "table of maps", n * sizeof *m->maps);
    for (size_t i = 0; i < n; i++)
        if (m->table.tensors[i].stays)
            TG_TRY(map_file(m, i, tg_gguf_lies_plain(&m->file, m->table.tensors[i].source)));
    return TG_OK;
}

/* A file that cannot be mapped is read. */
void tg_file_maps_begin_packing(tg_model *m) {
    const tg_ctx before = m->ctx->err;
    for (size_t i = 0; i < m->table.n_tensors; i++) {
        const tg_tensor *t = &m->table.tensors[i];
        const tg_os_file *file = tg_gguf_lies_in_rows(&m->file, t->source);
        if (!t->type.layout || !file) continue;
        if (map_file(m, i, file) == TG_OK) continue;
        m->ctx->err = before;
        return;
    }
}

void tg_file_maps_drop(const tg_model *m) {
    for (size_t i = 0; i < m->n_maps; i++) tg_os_map_drop(&m->maps[i].map);
}

void tg_file_maps_end_packing(tg_model *m) {
    size_t n = 0;
    for (size_t i = 0; i < m->table.n_tensors; i++)
        if (!m->table.tensors[i].stays) m->in_file[i] = NULL;
    for (size_t k = 0; k < m->n_maps; k++) {
        if (m->maps[k].stays)
            m->maps[n++] = m->maps[k];
        else
            tg_os_map_free(&m->maps[k].map);
    }
    m->n_maps = n;
}

void tg_file_maps_end(tg_model *m) {
    for (size_t i = 0; i < m->n_maps; i++) {
        tg_backend_forget(m->ctx->backend, m->maps[i].map.data, m->maps[i].map.bytes);
        tg_os_map_free(&m->maps[i].map);
    }
    m->n_maps = 0;
}

bool tg_file_maps_broken(const tg_model *m) {
    for (size_t i = 0; i < m->n_maps; i++)
        if (tg_os_map_broken(&m->maps[i].map)) return true;
    return false;
}
