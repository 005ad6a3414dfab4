/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gguf_split.c - models that are split over GGUF files: "-00001-of-00003.gguf" and so on.
 *
 * The first file has the metadata; each has a table of its own tensors. All are opened, and their
 * tables become one.
 */
#include "io/gguf/gguf.h"

enum { FILES_MAX = 1000, TAIL_BYTES = 20 }; /* of "-00001-of-00003.gguf" */

/* split.no counts from 0, names from 1. */
static tg_status other_path(tg_gguf *g, int32_t number, int32_t count, const char **out) {
    char want[TAIL_BYTES + 16];
    const size_t n = strlen(g->path);
    snprintf(want, sizeof want, "-%05d-of-%05d.gguf", 1, (int)count);
    if (n < TAIL_BYTES || strcmp(g->path + n - TAIL_BYTES, want) != 0)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: want a name that ends with %s, as the first of %d files, have another",
                       g->path, want, (int)count);
    char *path = tg_arena_sprintf(&g->arena, "%.*s-%05d-of-%05d.gguf", (int)(n - TAIL_BYTES),
                                  g->path, (int)number + 1, (int)count);
    *out = path;
    return path ? TG_OK : tg_fail_memory(g->ctx, g->path, n);
}

static tg_status open_other(tg_gguf *g, int32_t number, int32_t count, tg_gguf *out) {
    const char *path;
    int32_t no = -1, of = -1;
    TG_TRY(other_path(g, number, count, &path));
    TG_TRY(tg_gguf_open_one(g->ctx, path, out));
    TG_TRY(tg_gguf_get_int(out, "split.no", 0, FILES_MAX, &no));
    TG_TRY(tg_gguf_get_int(out, "split.count", 0, FILES_MAX, &of));
    if (no == number && of == count) return TG_OK;
    return tg_fail(g->ctx, TG_E_FORMAT, "%s: split: want file %d of %d, have %d of %d", path,
                   (int)number, (int)count, (int)no, (int)of);
}

static tg_status merge(tg_gguf *g, int32_t wanted) {
    size_t n = g->n_tensors;
    for (size_t i = 1; i < g->n_files; i++) n += g->others[i - 1].n_tensors;
    tg_gguf_tensor *all = tg_arena_array(&g->arena, n + 1, sizeof *all);
    tg_gguf_place *places = tg_arena_array(&g->arena, g->n_files, sizeof *places);
    if (!all || !places) return tg_fail_memory(g->ctx, "table of tensors", n * sizeof *all);
    if (wanted >= 0 && n != (size_t)wanted)
        return tg_fail(g->ctx, TG_E_FORMAT,
                       "%s: split.tensors.count: want %zu, as all files have, "
                       "have %d",
                       g->path, n, (int)wanted);
    size_t at = g->n_tensors;
    if (at) memcpy(all, g->tensors, at * sizeof *all);
    for (size_t i = 1; i < g->n_files; i++) {
        const tg_gguf *o = &g->others[i - 1];
        places[i].reader = o->reader;
        for (size_t k = 0; k < o->n_tensors; k++, at++) {
            all[at] = o->tensors[k];
            all[at].place = &places[i];
        }
        g->total_bytes += o->total_bytes;
    }
    tg_gguf_value *values = tg_arena_array(&g->arena, g->n_values + 1, sizeof *values);
    if (!values) return tg_fail_memory(g->ctx, "metadata", g->n_values * sizeof *values);
    if (g->n_values) memcpy(values, g->values, g->n_values * sizeof *values);
    return tg_gguf_set_tables(g, values, g->n_values, all, n);
}

tg_status tg_gguf_open_others(tg_gguf *g) {
    int32_t count = 1, no = 0, tensors = -1;
    TG_TRY(tg_gguf_get_int(g, "split.count", 0, FILES_MAX, &count));
    TG_TRY(tg_gguf_get_int(g, "split.no", 0, FILES_MAX, &no));
    TG_TRY(tg_gguf_get_int(g, "split.tensors.count", 0, INT32_MAX, &tensors));
    if (count <= 1) return TG_OK;
    if (no != 0)
        return tg_fail(g->ctx, TG_E_ARG, "%s: want the first of its %d files, have number %d",
                       g->path, (int)count, (int)no + 1);
    g->others = tg_arena_array(&g->arena, (size_t)count, sizeof *g->others);
    if (!g->others) return tg_fail_memory(g->ctx, g->path, (size_t)count * sizeof *g->others);
    g->n_files = (size_t)count;
    for (int32_t i = 1; i < count; i++) TG_TRY(open_other(g, i, count, &g->others[i - 1]));
    return merge(g, tensors);
}
