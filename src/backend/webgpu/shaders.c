/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shaders.c - pipelines of ops, made once, and the words that tell them shapes and attributes.
 *
 *   word  0..5  attr.i      6..9  attr.f     10  what accumulates     11  what is dynamic
 *        12..43  inputs, four each: rows, cols, dim[0], dim[1]; absent: zeros
 *        44..59  outputs, likewise
 *        60  numbers of dimensions of the inputs, four bits each
 *        61  what accumulates of the other members of a merge, eight bits each
 *        62  what the shader's own word() says
 *        63  workgroups of the first pass
 */
#include "backend/webgpu/shaders.h"

#include "backend/webgpu/device/self_test/gpu_self_test.h"

static const char *const prelude[] = {
#include "backend/webgpu/prelude.wgsl.h"
};
static const char *const functions[] = {
#include "backend/webgpu/functions.wgsl.h"
};
static const char *const reduce[] = {
#include "ops/reduce.wgsl.h"
};
static const char *const matrices[] = {
#include "ops/matrices.wgsl.h"
};
static const char *const matrices_plain[] = {
#include "ops/matrices_plain.wgsl.h"
};
/* Which subgroups go where is plain in our shaders, but not to Tint. */
static const char enable_matrices[] = "enable f16; enable chromium_experimental_subgroup_matrix;\n"
                                      "diagnostic(off, chromium.subgroup_matrix_uniformity);\n";

typedef struct tg_shader_entry {
    const tg_shader_pass *pass;
    uint32_t levers; /* of those that change its text */
    uint32_t pipeline;
} tg_shader_entry;

_Static_assert(sizeof(tg_scalars) <= TG_CALL_BYTES, "the prelude's struct Call");
_Static_assert(TG_MAX_BIND == TG_GPU_MAX_STORAGE, "bindings of a pass");

const char *const *tg_shader_functions(void) { return functions; }

unsigned tg_shader_passes(const tg_shader *s) {
    unsigned n = 0;
    while (n < TG_MAX_PASSES && s->pass[n].entry) n++;
    return n;
}

unsigned tg_shader_bindings(const tg_shader_pass *p) {
    unsigned n = 0;
    while (n < TG_MAX_BIND && p->bind[n]) n++;
    return n;
}

/* ----------------------------------------------------------------------------------------- text */

size_t tg_shader_put(char *text, size_t at, const char *piece) {
    const size_t n = strlen(piece);
    if (text) memcpy(text + at, piece, n);
    return at + n;
}

size_t tg_shader_put_lines(char *text, size_t at, const char *const *lines) {
    for (; *lines; lines++) at = tg_shader_put(text, at, *lines);
    return at;
}

static bool is_merged(const tg_shader_pass *p) {
    for (unsigned i = 0; i < tg_shader_bindings(p); i++)
        if (p->bind[i] >= TG_BIND_OF(1, 0)) return true;
    return false;
}

/* All text of a pass, without the final zero; its length. has_matrices: of the GPU. */
static size_t write_text(const tg_shader_pass *p, uint32_t levers, bool has_matrices, char *text) {
    const bool subgroups = p->reduces && (levers & TG_LEVER_BIT(subgroups));
    size_t at = subgroups ? tg_shader_put(text, 0, TG_GPU_ENABLE_SUBGROUPS) : 0;
    if (p->matrices && has_matrices) at = tg_shader_put(text, at, enable_matrices);
    at = tg_shader_put_lines(text, at, prelude);
    at = tg_shader_put_lines(text, at, functions);
    if (p->fours)
        at = tg_shader_put(text, at, tg_gpu_fours(levers & TG_LEVER_BIT(vec4_loads), is_merged(p)));
    if (p->reduces)
        at = tg_shader_put_lines(text, at, subgroups ? tg_gpu_reduce_subgroups() : reduce);
    if (p->constants) at = tg_shader_put(text, at, p->constants);
    if (p->matrices) at = tg_shader_put_lines(text, at, has_matrices ? matrices : matrices_plain);
    for (size_t i = 0; i < sizeof p->wgsl / sizeof *p->wgsl; i++)
        if (p->wgsl[i]) at = tg_shader_put_lines(text, at, p->wgsl[i]);
    return at;
}

static tg_status make(tg_shader_cache *c, const tg_shader *shader, const tg_shader_pass *pass,
                      uint32_t *pipeline) {
    const bool has_matrices = tg_gpu_get_info(c->gpu)->has_matrices;
    const size_t n = write_text(pass, c->levers, has_matrices, NULL);
    char *text = tg_alloc(&c->ctx->mem, n + 1);
    if (!text) return tg_fail_memory(c->ctx, "text of a shader", n + 1);
    write_text(pass, c->levers, has_matrices, text);
    char label[96];
    snprintf(label, sizeof label, "%s, %s", shader->name, pass->entry);
    const tg_status s =
        tg_gpu_pipeline_new(c->gpu, label, text, pass->entry, tg_shader_bindings(pass), pipeline);
    tg_free(&c->ctx->mem, text, n + 1);
    return s;
}

/* ---------------------------------------------------------------------------------------- cache */

uint32_t tg_shader_pass_levers(const tg_shader_pass *p) {
    return (p->reduces ? TG_LEVER_BIT(subgroups) : 0) | (p->fours ? TG_LEVER_BIT(vec4_loads) : 0);
}

tg_status tg_shader_pipeline(tg_shader_cache *c, const tg_shader *shader,
                             const tg_shader_pass *pass, uint32_t *pipeline) {
    const uint32_t levers = c->levers & tg_shader_pass_levers(pass);
    for (size_t i = 0; i < c->n; i++) {
        if (c->entries[i].pass != pass || c->entries[i].levers != levers) continue;
        *pipeline = c->entries[i].pipeline;
        return TG_OK;
    }
    if (c->n == c->room) {
        const size_t room = c->room ? 2 * c->room : 64;
        tg_shader_entry *entries =
            tg_realloc(&c->ctx->mem, c->entries, c->room * sizeof *entries, room * sizeof *entries);
        if (!entries) return tg_fail_memory(c->ctx, "list of shaders", room * sizeof *entries);
        c->entries = entries;
        c->room = room;
    }
    TG_TRY(make(c, shader, pass, pipeline));
    c->entries[c->n++] = (tg_shader_entry) { pass, levers, *pipeline };
    return TG_OK;
}

void tg_shader_cache_deinit(tg_shader_cache *c) {
    if (!c->ctx) return;
    tg_free(&c->ctx->mem, c->entries, c->room * sizeof *c->entries);
    *c = (tg_shader_cache) { .gpu = c->gpu, .ctx = c->ctx, .levers = c->levers };
}

/* ---------------------------------------------------------------------------------------- words */

/* dtype TG_F32 of no dimensions is a scalar, which has a row; a zeroed type is absent. */
static void put_shape(const tg_type *t, uint32_t words[4]) {
    if (t->dim[0] == 0) return;
    words[0] = (uint32_t)tg_type_rows(t);
    words[1] = (uint32_t)tg_type_cols(t);
    words[2] = (uint32_t)t->dim[0];
    words[3] = (uint32_t)t->dim[1];
}

void tg_shader_words(const tg_shader *s, const tg_args *a, uint8_t acc, uint8_t dynamic_in,
                     uint8_t dynamic_out, uint32_t words[TG_STEP_WORDS]) {
    memset(words, 0, TG_STEP_WORDS * sizeof *words);
    if (s->word) words[62] = s->word(a);
    words[63] = (uint32_t)s->pass[0].groups(a);
    memcpy(words, a->attr.i, sizeof a->attr.i);
    memcpy(words + 6, a->attr.f, sizeof a->attr.f);
    words[10] = acc;
    words[11] = dynamic_in | (uint32_t)dynamic_out << 8;
    for (int k = 0; k < TG_MAX_IN; k++) {
        put_shape(&a->in_type[k], words + 12 + 4 * k);
        words[60] |= (uint32_t)a->in_type[k].n_dims << 4 * k;
    }
    for (int k = 0; k < TG_MAX_OUT; k++) put_shape(&a->out_type[k], words + 44 + 4 * k);
}

void tg_shader_fold(size_t n, tg_gpu_dispatch *d) {
    d->x = n < TG_GPU_MAX_GROUPS ? (uint32_t)n : TG_GPU_MAX_GROUPS;
    d->y = d->x ? (uint32_t)((n + d->x - 1) / d->x) : 0;
    d->z = 1;
}
