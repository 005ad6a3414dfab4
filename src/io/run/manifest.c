/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.c - the list of tensors, from a configuration alone.
 *
 * The limits of a configuration keep the sum of all tensors below 2^40 elements, so that sizes in
 * bytes (12 an element at most) never wrap in 64 bits. They are checked before anything is
 * multiplied: a configuration comes from a file or from a command line.
 */
#include "io/run/manifest.h"

#define LAYERS_MAX 256
#define WIDTH_MAX  16384
#define CTX_MAX    65536
#define VOCAB      256

/* where names the file or the option, field the number in it. */
static tg_status want_range(tg_ctx *ctx, const char *where, const char *field, int32_t have,
                            int32_t max) {
    if (have < 1 || have > max) {
        return tg_fail(ctx, TG_E_RANGE, "%s: %s: want 1..%d, have %d", where, field, max, have);
    }
    return TG_OK;
}

/* In this order nothing divides by zero, and 4 * width fits, because what it needs came before. */
tg_status tg_gpt_config_check(tg_ctx *ctx, const char *where, const tg_model_config *config) {
    const tg_model_config *c = config;
    TG_TRY(want_range(ctx, where, "layers", c->layers, LAYERS_MAX));
    TG_TRY(want_range(ctx, where, "width", c->width, WIDTH_MAX));
    TG_TRY(want_range(ctx, where, "heads", c->heads, c->width));
    TG_TRY(want_range(ctx, where, "ctx", c->ctx, CTX_MAX));
    if (c->width % c->heads != 0) {
        return tg_fail(ctx, TG_E_RANGE, "%s: heads: want a divisor of the width %d, have %d", where,
                       c->width, c->heads);
    }
    if (c->vocab != VOCAB) {
        return tg_fail(ctx, TG_E_UNSUPPORTED, "%s: vocabulary: want %d (bytes), have %d", where,
                       VOCAB, c->vocab);
    }
    if (c->mlp != 4 * c->width) {
        return tg_fail(ctx, TG_E_RANGE, "%s: mlp: want 4 * width = %d, have %d", where,
                       4 * c->width, c->mlp);
    }
    return TG_OK;
}

/*
 * A block: two norms with gain and bias, 4C; four projections, 4 (C*C + C); an MLP that widens to
 * 4C and back, C*4C + 4C + 4C*C + C. In all 12 C*C + 13 C.
 */
uint64_t tg_manifest_elems(const tg_model_config *config) {
    const uint64_t v = (uint64_t)config->vocab, t = (uint64_t)config->ctx;
    const uint64_t c = (uint64_t)config->width, layers = (uint64_t)config->layers;
    return v * c + t * c + 2 * c + layers * (12 * c * c + 13 * c);
}

/* The list while it grows. A name that found no memory sets failed, which is looked at once, at the
 * end, so that the list itself reads like the table in the header. */
typedef struct builder {
    tg_arena *arena;
    tg_manifest_entry *entry;
    size_t n;
    uint64_t elems;
    bool failed;
} builder;

/* cols 0: a vector. Where a tensor begins among all elements is the sum of those before it. */
static void add(builder *b, const char *prefix, const char *name, const char *suffix, uint64_t rows,
                uint64_t cols, bool linear) {
    tg_manifest_entry *e = &b->entry[b->n++];
    e->name = tg_arena_sprintf(b->arena, "%s%s%s", prefix, name, suffix);
    e->n_dims = cols ? 2 : 1;
    e->dim[0] = rows;
    e->dim[1] = cols ? cols : 1;
    e->linear = linear;
    e->elems = rows * e->dim[1];
    e->first_elem = b->elems;
    b->elems += e->elems;
    b->failed = b->failed || !e->name;
}

static void add_norm(builder *b, const char *prefix, const char *name, uint64_t width) {
    add(b, prefix, name, ".weight", width, 0, false);
    add(b, prefix, name, ".bias", width, 0, false);
}

/* y = x W + b, W stored [in, out]. Only these matrices are marked linear: the embeddings, also 2-D,
 * are stored as PyTorch states them. */
static void add_linear(builder *b, const char *prefix, const char *name, uint64_t n_in,
                       uint64_t n_out) {
    add(b, prefix, name, ".weight", n_in, n_out, true);
    add(b, prefix, name, ".bias", n_out, 0, false);
}

/* The order is that of the original's files, and decides which random stream fills which tensor:
 * it can never change. */
tg_status tg_manifest_new(tg_ctx *ctx, tg_arena *arena, const tg_model_config *config,
                          tg_manifest *out) {
    *out = (tg_manifest) { 0 };
    const size_t n = 4 + 16 * (size_t)config->layers;
    const uint64_t c = (uint64_t)config->width, m = (uint64_t)config->mlp;
    builder b = { .arena = arena, .entry = tg_arena_array(arena, n, sizeof(tg_manifest_entry)) };
    if (!b.entry) {
        return tg_fail_memory(ctx, "manifest", n * sizeof(tg_manifest_entry));
    }
    add(&b, "", "token_embedding", ".weight", (uint64_t)config->vocab, c, false);
    add(&b, "", "position_embedding", ".weight", (uint64_t)config->ctx, c, false);
    add_norm(&b, "", "ln_final", c);
    for (int32_t i = 0; i < config->layers; i++) {
        char block[32];
        snprintf(block, sizeof block, "blocks.%d.", i);
        add_norm(&b, block, "ln1", c);
        add_linear(&b, block, "attn.q_proj", c, c);
        add_linear(&b, block, "attn.k_proj", c, c);
        add_linear(&b, block, "attn.v_proj", c, c);
        add_linear(&b, block, "attn.o_proj", c, c);
        add_norm(&b, block, "ln2", c);
        add_linear(&b, block, "mlp.fc_in", c, m);
        add_linear(&b, block, "mlp.fc_out", m, c);
    }
    if (b.failed) {
        return tg_fail_memory(ctx, "names of the manifest", n * 32);
    }
    TG_ASSERT(b.n == n && b.elems == tg_manifest_elems(config));
    *out = (tg_manifest) { .entry = b.entry, .n = n, .elems = b.elems };
    return TG_OK;
}
