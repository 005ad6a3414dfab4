/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - looking inside a model: the graph with taps, edits as modes of its chooses. See
 * probe.h.
 */
#include "inspect/probe.h"

#include "engine/all_rows.h"
#include "ops/build.h"

static const char *const site_names[TG_SITE_COUNT] = { "heads", "attention", "mlp", "stream" };

/* ---------------------------------------------------------------------------------------- graph */

static size_t groups_of(const tg_probe *p, tg_site site) {
    return site == TG_SITE_HEADS ? (size_t)p->model->layout.config.heads : 1;
}

/* A layer without attention has no heads, one that is an MLP alone no mixer, and the others of such
 * a family no MLP: an edit of what a layer lacks changes nothing. */
static bool has_site(const tg_probe *p, int layer, tg_site site) {
    const tg_model_config *c = &p->model->layout.config;
    const tg_layer_kind kind = tg_layer_kind_of(c, layer);
    switch (site) {
    case TG_SITE_HEADS: return kind == TG_LAYER_ATTENTION;
    case TG_SITE_ATTENTION: return kind != TG_LAYER_MLP;
    case TG_SITE_MLP: return kind == TG_LAYER_MLP || !tg_has_mlps_alone(c);
    default: return true;
    }
}

/* A name that lives as long as the graph; "" after an error, which is the graph's by then. */
static const char *named(tg_graph *g, const char *what, int layer, tg_site site) {
    const char *name = tg_arena_sprintf(&g->arena, "%s.%d.%s", what, layer, site_names[site]);
    if (!name && g->status == TG_OK) g->status = tg_fail_memory(g->ctx, "name of a site", 32);
    return name ? name : "";
}

/* A block that is zeroed is one that is not there: the stream in front of it goes on. Elsewhere
 * zero is zero, which an absent source of choose stands for. */
static tg_value *edited(tg_probe *p, tg_graph *g, tg_site site, int layer, tg_value *x) {
    tg_probe_site *s = &p->layer[layer].site[site];
    tg_graph_scope(g, "%s", "");
    s->donor = named(g, "donor", layer, site);
    tg_value *donor = tg_state(g, s->donor, x->type);
    s->bytes = tg_type_bytes(&x->type);
    if (s->bytes > p->zeros_bytes) p->zeros_bytes = s->bytes;
    s->mode =
        tg_input(g, named(g, "mode", layer, site), tg_type_2d(TG_I32, p->n, groups_of(p, site)));
    s->kept = tg_choose(g, s->mode, x, site == TG_SITE_STREAM ? p->stream : NULL, donor);
    if (g->status == TG_OK) tg_output(g, s->kept, named(g, "kept", layer, site));
    return s->kept;
}

static void look(tg_graph *g, tg_value *v, const char *what, int layer) {
    const char *name = tg_arena_sprintf(&g->arena, "%s.%d", what, layer);
    if (g->status != TG_OK) return;
    if (name)
        tg_output(g, v, name);
    else
        g->status = tg_fail_memory(g->ctx, "name of an output", 32);
}

/* The lens behind the last block is what the whole graph gives, and is left to it. */
static tg_value *tap(void *user, tg_graph *g, tg_site site, int layer, tg_value *x) {
    tg_probe *p = user;
    const tg_layout *l = &p->model->layout;
    if (g->status != TG_OK) return x;
    if (site == TG_SITE_HEADS) {
        p->layer[layer].attention = tg_attention_probs(g, x);
        look(g, p->layer[layer].attention, "attention", layer);
    }
    if (layer >= 0) x = edited(p, g, site, layer, x);
    if (site == TG_SITE_STREAM) {
        p->stream = x;
        if (layer + 1 < l->config.layers) {
            tg_net end = tg_net_of(g, l);
            p->lens[layer + 1] = tg_net_head(&end, x);
            look(g, p->lens[layer + 1], "lens", layer + 1);
        }
    }
    return x;
}

static tg_status build_graph(tg_probe *p) {
    const tg_layout *l = &p->model->layout;
    const size_t layers = (size_t)l->config.layers;
    tg_graph *g = &p->graph;
    p->layer = tg_arena_array(&g->arena, layers, sizeof *p->layer);
    p->lens = tg_arena_array(&g->arena, layers + 1, sizeof *p->lens);
    if (!p->layer || !p->lens)
        return tg_fail_memory(&p->ctx->err, "sites of a probe", layers * sizeof *p->layer);
    p->tokens = tg_input(g, "tokens", tg_type_2d(TG_I32, 1, p->n));
    const tg_tap t = { tap, p };
    tg_net net;
    tg_weights_net(p->model, g, &net);
    net.tap = &t;
    p->lens[layers] = tg_net_logits(&net, p->tokens);
    look(g, p->lens[layers], "lens", (int)layers);
    return tg_graph_finish(g);
}

/* ------------------------------------------------------------------------------------- open, close
 */

/* All that is kept is at once in memory, and [H,n,n] a layer is soon more than the address space of
 * WebAssembly: sizes must not wrap before the allocator gets to refuse them. A quarter leaves room
 * for the rest of the workspace. */
static tg_status check_room(const tg_probe *p) {
    const tg_model_config *c = &p->model->layout.config;
    const double n = (double)p->n, rows = 4.0 * c->width + 3 + (double)c->heads * (n + 1);
    const double bytes = 4 * n * (c->layers * rows + (c->layers + 1.0) * c->vocab);
    if (bytes > (double)(SIZE_MAX / 4)) return tg_fail_memory(&p->ctx->err, "probe", SIZE_MAX / 4);
    return TG_OK;
}

static tg_status build(tg_probe *p) {
    TG_TRY(check_room(p));
    TG_TRY(build_graph(p));
    const tg_plan_options o = tg_runtime_plan_options(p->ctx, "probe");
    TG_TRY(tg_plan_build(&p->plan, &p->graph, &o));
    TG_TRY(tg_runtime_block(p->ctx, tg_plan_memory_bytes(&p->plan), &p->memory));
    TG_TRY(tg_runtime_block(p->ctx, p->zeros_bytes, &p->zeros));
    tg_plan_place(&p->plan, p->memory.data);
    return tg_weights_bind(p->model, &p->plan);
}

tg_status tg_probe_open(tg_context *ctx, tg_model *model, size_t n_tokens, tg_probe **out) {
    *out = NULL;
    TG_TRY(tg_weights_want_floats(model, "probe"));
    TG_TRY(tg_all_rows_want_writer(ctx, model, "probe"));
    const int32_t T = model->layout.config.ctx;
    if (n_tokens < 1 || n_tokens > (size_t)T)
        return tg_fail(&ctx->err, TG_E_ARG, "probe: tokens: want 1..%d, have %zu", (int)T,
                       n_tokens);
    tg_probe *p = tg_alloc(&ctx->err.mem, sizeof *p);
    if (!p) return tg_fail_memory(&ctx->err, "probe", sizeof *p);
    p->ctx = ctx;
    p->model = model;
    p->n = n_tokens;
    tg_status s = tg_graph_init(&p->graph, &ctx->err, ctx->levers);
    if (s == TG_OK) s = build(p);
    if (s != TG_OK) {
        tg_probe_close(p);
        return s;
    }
    *out = p;
    return TG_OK;
}

void tg_probe_close(tg_probe *p) {
    if (!p) return;
    const tg_mem mem = p->ctx->err.mem;
    tg_runtime_block_free(p->ctx, &p->zeros);
    tg_runtime_block_free(p->ctx, &p->memory);
    tg_graph_deinit(&p->graph);
    tg_free(&mem, p, sizeof *p);
}

/* ---------------------------------------------------------------------------------------- edits */

static tg_status want_index(const tg_probe *p, size_t edit, const char *field, int32_t least,
                            size_t end, int32_t have) {
    if (have >= least && (have < 0 || (size_t)have < end)) return TG_OK;
    return tg_fail(&p->ctx->err, TG_E_RANGE, "probe: edit %zu: %s: want %d..%zu, have %d", edit,
                   field, (int)least, end - 1, (int)have);
}

/* Enums are compared as numbers: they come from other languages, too. */
static tg_status check_edit(const tg_probe *p, size_t i, const tg_edit *e, const tg_probe *donor) {
    const tg_model_config *c = &p->model->layout.config;
    TG_TRY(want_index(p, i, "layer", 0, (size_t)c->layers, e->layer));
    TG_TRY(want_index(p, i, "position", -1, p->n, e->position));
    TG_TRY(want_index(p, i, "part", 0, TG_SITE_COUNT, (int32_t)e->part));
    TG_TRY(want_index(p, i, "kind", 0, TG_EDIT_DONOR + 1, (int32_t)e->kind));
    if (e->part == TG_PART_HEAD) TG_TRY(want_index(p, i, "head", 0, (size_t)c->heads, e->head));
    if (e->kind == TG_EDIT_DONOR && !donor)
        return tg_fail(&p->ctx->err, TG_E_ARG,
                       "probe: edit %zu: want a donor to take from, have none", i);
    return TG_OK;
}

/* A donor of another model is fine, such as an earlier save of this one: values are taken, not
 * weights. Its memory must not be the one that is written. */
static tg_status check_donor(const tg_probe *p, const tg_probe *donor) {
    tg_ctx *err = &p->ctx->err;
    const tg_model_config *want = &p->model->layout.config;
    if (donor == p)
        return tg_fail(err, TG_E_ARG, "probe: donor: want another probe, have the same one");
    if (!donor->has_run)
        return tg_fail(err, TG_E_ARG, "probe: donor: want one that has run, have one that has not");
    if (donor->n != p->n)
        return tg_fail(err, TG_E_ARG, "probe: donor: want %zu tokens, have %zu", p->n, donor->n);
    if (!tg_config_same(want, &donor->model->layout.config))
        return tg_fail(err, TG_E_ARG, "probe: donor: want a model of the same sizes");
    return TG_OK;
}

static int32_t *modes(const tg_probe *p, int layer, tg_site site) {
    return tg_plan_data(&p->plan, p->layer[layer].site[site].mode);
}

/* The public parts are the sites, in their order; mode 0 is no edit, 1 zero and 2 donor. */
static void apply_edit(const tg_probe *p, const tg_edit *e) {
    const tg_site site = (tg_site)e->part;
    const size_t groups = groups_of(p, site);
    const size_t group = site == TG_SITE_HEADS ? (size_t)e->head : 0;
    const size_t first = e->position < 0 ? 0 : (size_t)e->position;
    const size_t end = e->position < 0 ? p->n : first + 1;
    if (!has_site(p, e->layer, site)) return;
    int32_t *mode = modes(p, e->layer, site);
    for (size_t t = first; t < end; t++) mode[t * groups + group] = (int32_t)e->kind + 1;
}

_Static_assert((int)TG_PART_HEAD == (int)TG_SITE_HEADS &&
                   (int)TG_PART_ATTENTION == (int)TG_SITE_ATTENTION &&
                   (int)TG_PART_MLP == (int)TG_SITE_MLP &&
                   (int)TG_PART_BLOCK == (int)TG_SITE_STREAM,
               "parts are sites");

/* Binds every site to the donor's kept value, or to zeros, which then nothing is taken from. Heads
 * together need not be as wide as the model. */
static tg_status bind_donor(tg_probe *p, const tg_probe *donor) {
    for (int l = 0; l < p->model->layout.config.layers; l++)
        for (int s = 0; s < TG_SITE_COUNT; s++) {
            if (!has_site(p, l, (tg_site)s)) continue;
            void *data =
                donor ? tg_plan_data(&donor->plan, donor->layer[l].site[s].kept) : p->zeros.data;
            const tg_probe_site *site = &p->layer[l].site[s];
            TG_TRY(tg_plan_bind(&p->plan, site->donor, data, site->bytes));
            TG_TRY(tg_backend_touched(p->ctx->backend, data, site->bytes));
        }
    return TG_OK;
}

/* ------------------------------------------------------------------------------------------ run */

/* All checks come first: a run that is refused leaves what the last one gave. */
tg_status tg_probe_begin(tg_probe *p, const int32_t *tokens, const tg_edit *edits, size_t n_edits,
                         const tg_probe *donor) {
    const tg_model_config *c = &p->model->layout.config;
    for (size_t i = 0; i < p->n; i++)
        if (tokens[i] < 0 || tokens[i] >= c->vocab)
            return tg_fail(&p->ctx->err, TG_E_RANGE,
                           "probe: token %zu: want an id in [0,%d), have %d", i, (int)c->vocab,
                           (int)tokens[i]);
    if (donor) TG_TRY(check_donor(p, donor));
    for (size_t i = 0; i < n_edits; i++) TG_TRY(check_edit(p, i, &edits[i], donor));
    TG_TRY(bind_donor(p, donor));
    p->has_run = false;
    memcpy(tg_plan_data(&p->plan, p->tokens), tokens, p->n * sizeof *tokens);
    for (int l = 0; l < c->layers; l++)
        for (int s = 0; s < TG_SITE_COUNT; s++)
            if (has_site(p, l, (tg_site)s))
                memset(modes(p, l, (tg_site)s), 0,
                       p->n * groups_of(p, (tg_site)s) * sizeof(int32_t));
    for (size_t i = 0; i < n_edits; i++) apply_edit(p, &edits[i]);
    p->run = (tg_run) { .next = 0 };
    p->generation = p->ctx->generation;
    return TG_OK;
}

/* Another device has nothing of a run that began on a lost one, whoever noticed the loss. All that
 * it needs is on the host. */
static void begin_anew(tg_probe *p) {
    if (p->generation == p->ctx->generation) return;
    p->generation = p->ctx->generation;
    tg_ctx_clear(&p->ctx->err);
    tg_run_restart(&p->run);
}

tg_status tg_probe_go_on(tg_probe *p, double deadline_ms) {
    const tg_scalars rt = { .rows = 0 };
    p->run.deadline_ms = deadline_ms;
    tg_status s;
    do {
        begin_anew(p);
        s = tg_runtime_run(p->ctx, "probe", &p->plan, &rt, &p->run);
    } while (p->generation != p->ctx->generation);
    TG_TRY(s);
    p->has_run = true;
    return TG_OK;
}

/* -------------------------------------------------------------------------------------- looking */

const float *tg_probe_attention(const tg_probe *p, int32_t layer, int32_t head) {
    if (!p || !p->has_run) return NULL;
    const tg_model_config *c = &p->model->layout.config;
    if (layer < 0 || layer >= c->layers || head < 0 || head >= c->heads) return NULL;
    if (!p->layer[layer].attention) return NULL; /* it is none */
    const float *all = tg_plan_data(&p->plan, p->layer[layer].attention);
    return all + (size_t)head * p->n * p->n;
}

const float *tg_probe_lens(const tg_probe *p, int32_t layer) {
    if (!p || !p->has_run || layer < 0 || layer > p->model->layout.config.layers) return NULL;
    return tg_plan_data(&p->plan, p->lens[layer]);
}
