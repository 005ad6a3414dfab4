/*
 * file_maps.c - weights that are used where the model's file has them.
 *
 * Tables of floats whose rows are looked up, a few a token, need not be read, packed or copied: the
 * file is mapped, and a row is read when a token asks for it. What is multiplied with is packed all
 * the same (lm.c): matrices of f16 that were turned from the map, block by block, as they were used
 * had decoding at 0.73 of the speed of packed ones in huge pages.
 */
#include "run/lm.h"

bool tg_file_maps_wanted(void) { return true; }

/* Tensors of one file share its map. */
tg_status tg_file_maps_begin(tg_context *ctx, tg_lm_model *m) {
    const size_t n = m->lm.n_tensors;
    const tg_os_file **files = tg_arena_array(&m->arena, n, sizeof *files);
    m->maps = tg_arena_array(&m->arena, n, sizeof *m->maps);
    m->stays = tg_arena_array(&m->arena, n, sizeof *m->stays);
    if (!files || !m->maps || !m->stays)
        return tg_fail_memory(&ctx->err, "table of maps", n * sizeof *m->maps);
    for (size_t i = 0; i < n; i++) {
        const tg_lm_tensor *t = &m->lm.tensors[i];
        if (!t->stays) continue;
        const tg_os_file *file = tg_gguf_lies_plain(&m->file, t->source);
        size_t k = 0;
        while (k < m->n_maps && files[k] != file) k++;
        if (k == m->n_maps) {
            TG_TRY(tg_os_map_file(&ctx->err, file, &m->maps[k]));
            files[m->n_maps++] = file;
        }
        m->stays[i] = (const char *)m->maps[k].data + t->offset_bytes;
    }
    return TG_OK;
}

void tg_file_maps_end(tg_context *ctx, tg_lm_model *m) {
    for (size_t i = 0; i < m->n_maps; i++) {
        tg_backend_forget(ctx->backend, m->maps[i].data, m->maps[i].bytes);
        tg_os_map_free(&m->maps[i]);
    }
    m->n_maps = 0;
}

bool tg_file_maps_broken(const tg_lm_model *m) {
    for (size_t i = 0; i < m->n_maps; i++)
        if (tg_os_map_broken(&m->maps[i])) return true;
    return false;
}
