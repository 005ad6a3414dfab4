/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_tiles.c - see gpu_tiles.h.
 */
#include "backend/webgpu/device/gpu_tiles.h"

#include "backend/webgpu/device/gpu_cache.h"
#include "base/str.h"

/* Scratch that every adapter can bind. */
#define SCRATCH_BYTES ((size_t)128 << 20)

struct tg_gpu_tiles {
    tg_gpu_cache *file;
    const tg_gpu_info *info;
    char name[64]; /* that was found last */
};

tg_gpu_tiles *tg_gpu_tiles_open(const tg_gpu_info *info) {
    const tg_mem heap = tg_mem_default();
    tg_gpu_tiles *t = tg_alloc(&heap, sizeof *t);
    if (!t) return NULL;
    *t = (tg_gpu_tiles) { .file = tg_gpu_cache_open("tiles.cache"), .info = info };
    if (t->file) return t;
    tg_free(&heap, t, sizeof *t);
    return NULL;
}

void tg_gpu_tiles_close(tg_gpu_tiles *t) {
    if (!t) return;
    const tg_mem heap = tg_mem_default();
    tg_gpu_cache_close(t->file);
    tg_free(&heap, t, sizeof *t);
}

typedef struct text {
    char at[800];
} text;

static text key_of(const tg_gpu_tiles *t, const char *op, const tg_args *a, unsigned n_members) {
    text key = { "" };
    const char *slash = strrchr(t->info->library, '/');
    tg_str_append(key.at, sizeof key.at, "%s\n%s\n%s\n%s\n", t->info->adapter, t->info->driver,
                  slash ? slash + 1 : t->info->library, op);
    for (unsigned m = 0; m < n_members; m++) {
        tg_str_append(key.at, sizeof key.at, "%d", (int)a[m].attr.i[0]);
        for (int k = 0; k < 2; k++)
            tg_str_append(key.at, sizeof key.at, " %zu %zu", tg_type_rows(&a[m].in_type[k]),
                          tg_type_cols(&a[m].in_type[k]));
        tg_str_append(key.at, sizeof key.at, "\n");
    }
    return key;
}

static const char *find(tg_gpu_tiles *t, const char *op, const tg_args *a, unsigned n_members) {
    const text key = key_of(t, op, a, n_members);
    const size_t n = strlen(key.at), bytes = tg_gpu_cache_load(key.at, n, NULL, 0, t->file);
    if (bytes == 0 || bytes >= sizeof t->name) return NULL;
    t->name[tg_gpu_cache_load(key.at, n, t->name, bytes, t->file)] = '\0';
    return t->name[0] == '-' ? NULL : t->name;
}

/* A value has at least a byte: "-" is the rule. */
static void put(tg_gpu_tiles *t, const char *op, const tg_args *a, unsigned n_members,
                const char *name) {
    const text key = key_of(t, op, a, n_members);
    tg_gpu_cache_store(key.at, strlen(key.at), name, strlen(name), t->file);
}

const char *tg_gpu_tiles_find(tg_gpu_tiles *t, const tg_op_desc *d, const tg_args *a,
                              unsigned n_members) {
    return t ? find(t, d->name, a, n_members) : NULL;
}

void tg_gpu_tiles_put(tg_gpu_tiles *t, const tg_op_desc *d, const tg_args *a, unsigned n_members,
                      const char *name) {
    if (t) put(t, d->name, a, n_members, name[0] ? name : "-");
}

bool tg_gpu_tiles_tuned(tg_gpu_tiles *t) { return t && find(t, "all", NULL, 0); }

void tg_gpu_tiles_put_tuned(tg_gpu_tiles *t) {
    if (!t) return;
    put(t, "all", NULL, 0, "tuned");
    tg_gpu_cache_save(t->file);
}

/* What needs levers goes by them alone. */
static bool can(const tg_shader *s, const tg_args *a) {
    if (s->needs || (s->fits && !s->fits(a))) return false;
    const size_t bytes = s->scratch_bytes ? s->scratch_bytes(a) : 1;
    return bytes > 0 && bytes <= SCRATCH_BYTES;
}

const tg_shader *tg_gpu_tiles_candidate(const tg_op_desc *d, const tg_args *a, unsigned n_members,
                                        size_t number) {
    for (size_t i = 0; n_members > 1 && i < d->n_merges; i++)
        if (d->merges[i].n_members == n_members && can(&d->merges[i].shader, a) && number-- == 0)
            return &d->merges[i].shader;
    for (size_t i = 0; n_members == 1 && i < d->n_shaders; i++)
        if (can(&d->shaders[i], a) && number-- == 0) return &d->shaders[i];
    return NULL;
}
