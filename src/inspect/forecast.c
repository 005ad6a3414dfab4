/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forecast.c - what a run will need, before it starts: plans are made, nothing is allocated.
 *
 * Memory is what will really be touched: flat arrays, the plans' block, the copy of the best
 * weights, and what the program itself takes.
 */
#include "base/os/os.h"
#include "base/str.h"
#include "base/time.h"
#include "training/train.h"

/* Program, libraries, stacks, tables of plans: measured on Linux with glibc. */
#define PROGRAM_BYTES (UINT64_C(5) << 20)
/* A first guess of how much of the peak a step reaches, until steps have been timed. */
#define EXPECTED_SHARE 0.6

/* Per token forward: 2 per weight of the matrices, in the byte GPT 12 C^2 a layer (qkv 3, o 1, mlp
 * 8) and the head's V C; backward takes twice that, so 6. Attention: dots and values, 2 T H D each,
 * halved by causality, times 3. Norms, gelu and softmax are left out, as is usual; so shares of the
 * peak compare with other programs'. */
double tg_train_flop(const tg_model_config *c, const tg_train_options *o) {
    const double C = c->width, V = c->vocab;
    const double T = tg_train_options_of(o, c).row_tokens;
    const double N = (double)o->batch * o->accum * T;
    tg_model_config whole = *c;
    if (tg_config_complete(NULL, "", &whole) != TG_OK) return 0;
    double heads = 0; /* of all layers that have attention, whose heads may differ */
    for (int i = 0; i < whole.layers; i++)
        if (tg_layer_kind_of(&whole, i) == TG_LAYER_ATTENTION)
            heads += (double)tg_size_of(&whole, TG_SIZE_QUERIES, i);
    return 6 * N * (tg_config_products(&whole) + V * C) + 6 * N * T * heads;
}

/* The last preset with at least a third of a byte of text for each parameter, which keeps it above
 * the limit of write_advice; the smallest if none has. Of a family, presets are sorted by size. */
static const tg_preset *fitting(const tg_family *family, uint64_t bytes) {
    const tg_preset *best = NULL;
    for (size_t i = 0; i < tg_preset_count(); i++) {
        const tg_preset *p = tg_preset_at(i);
        if (tg_family_of(&p->config) == family &&
            (!best || tg_param_count(&p->config) <= bytes * 3))
            best = p;
    }
    return best ? best : tg_preset_at(0);
}

/* Text and size of a new model. Bytes and not tokens are held against its parameters: what a text
 * has to teach does not grow when it is cut finer. */
static void advise_size(tg_forecast *f, const tg_family *family, bool of_bytes) {
    char *const advice = f->advice;
    const size_t room = sizeof f->advice;
    char amount[96];
    snprintf(amount, sizeof amount, "%.2f bytes a parameter", f->bytes_per_param);
    if (!of_bytes && f->train_tokens)
        snprintf(amount, sizeof amount, "%.2f tokens, %.2f bytes a parameter",
                 (double)f->train_tokens / (double)f->params, f->bytes_per_param);
    const tg_preset *better = fitting(family, f->train_bytes);
    const bool smaller =
        tg_family_of(&better->config) == family && tg_param_count(&better->config) < f->params;
    if (f->bytes_per_param < 0.3 && smaller)
        tg_str_append(
            advice, room,
            "text: %s: the model will learn it by heart; '%s' suits %.1f %s better, or add text\n",
            amount, better->name, (double)f->train_bytes / (f->train_bytes < 100000 ? 1e3 : 1e6),
            f->train_bytes < 100000 ? "KB" : "MB");
    else if (f->bytes_per_param < 0.3)
        tg_str_append(advice, room,
                      "text: %s: the model will learn it by heart; %.0f KB or more would suit it\n",
                      amount, 0.3 * (double)f->params / 1e3);
    else if (f->bytes_per_param > 200 && f->epochs > 0 && f->epochs < 0.5)
        tg_str_append(
            advice, room,
            "text: the run will see %.0f %% of it: a larger preset or more steps would make use "
            "of the rest\n",
            100 * f->epochs);
}

/* Advice is about what the user can change, and names the option or preset. The limits are rules of
 * thumb for small models on plain text; none of them keeps a run from starting. Whoever trains a
 * model that has learnt before has chosen its size, and the question is how often it may see a text
 * that is small for it. */
static void write_advice(tg_forecast *f, const tg_family *family, bool of_bytes, bool trained,
                         const tg_train_options *o) {
    char *const advice = f->advice; /* lines, each ending in \n */
    const size_t room = sizeof f->advice;
    const double many = trained && f->bytes_per_param < 0.3 ? 5 : 20;
    if (f->memory_bytes > f->memory_available_bytes)
        tg_str_append(
            advice, room,
            "memory: %.1f GB are needed and %.1f GB are free: take a smaller preset, batch or "
            "context\n",
            (double)f->memory_bytes / 1e9, (double)f->memory_available_bytes / 1e9);
    if (f->train_bytes == 0) return;
    if (!trained) advise_size(f, family, of_bytes);
    if (f->epochs > many)
        tg_str_append(advice, room,
                      "steps: every %s will be seen %.0f times: watch the validation loss, and set "
                      "--patience to stop when it turns\n",
                      of_bytes ? "byte" : "token", f->epochs);
    if (o->val_fraction > 0 && f->val_bytes == 0)
        tg_str_append(
            advice, room,
            "validation: its part of the text is shorter than a window, so there is none\n");
    const bool is_muon = o->optimizer == TG_MUON;
    if (o->lr > (is_muon ? 5e-2 : 5e-3))
        tg_str_append(advice, room, "rate: %g is high for this optimizer; %s is usual\n", o->lr,
                      is_muon ? "1e-3 to 2e-2" : "3e-4 to 3e-3");
}

/* The same cut as check_windows of train.c: a validation part shorter than a window is none. */
static tg_status forecast_text(tg_forecast *f, const tg_model_config *c, tg_text *text,
                               const tg_train_options *o, const tg_trainer *t) {
    if (!text) return TG_OK;
    const tg_split bytes = tg_text_split(text, o->val_fraction);
    tg_split tokens = { 0, 0 };
    tg_token_sample sample = { 0 };
    if (!t) TG_TRY(tg_text_sample_tokens(text, &sample));
    if (t)
        tokens = t->split;
    else if (text->tok || c->vocab == 256)
        tokens = text->held_from
                     ? (tg_split) { tg_tokens_about(&sample, bytes.train),
                                    tg_tokens_about(&sample, bytes.val) }
                     : tg_split_of(tg_tokens_about(&sample, text->n_bytes), o->val_fraction);
    const bool known = tokens.train > 0;
    const bool too_short = (known ? tokens.val : bytes.val) < (uint64_t)o->row_tokens + 1;
    if (too_short) tokens.val = 0;
    f->train_bytes = bytes.train;
    f->val_bytes = too_short ? 0 : bytes.val;
    f->bytes_per_param = (double)f->train_bytes / (double)f->params;
    const double seen = (double)o->batch * o->accum * o->row_tokens * (double)o->steps;
    f->train_tokens = tokens.train;
    f->val_tokens = tokens.val;
    f->epochs = known ? seen / (double)tokens.train : 0;
    return TG_OK;
}

/* A run on pairs asks the model of all rows before its first step, which is a forward pass, and
 * keeps what it said: a float in memory, some twelve bytes of text in a save. */
static void forecast_pairs(tg_forecast *f, const tg_text *text, const tg_train_options *o,
                           const tg_trainer *t) {
    const uint64_t rows = text ? text->n_pair_rows : 0;
    const double steps = (double)rows / o->batch / o->accum;
    f->memory_bytes += rows * sizeof(float);
    f->save_bytes += rows * 12;
    f->disk_bytes += 3 * rows * 12;
    if (!t || t->step == 0) f->seconds += f->ms_per_step * steps / 3 / 1e3;
}

/* Four flat arrays: weights, gradients, both moments; one more beside an average. A save holds all
 * but the gradients (12 bytes a parameter, or 16) and its header. On disk there are at worst the
 * file, its .prev and a temporary one, and the same three of the best weights alone. */
static tg_status fill(tg_context *ctx, const tg_model_config *c, const tg_layout *l, tg_text *text,
                      const tg_train_options *o, const tg_train_plans *plans, const tg_trainer *t,
                      tg_forecast *f) {
    const uint64_t flat = (uint64_t)l->n_elems * sizeof(float);
    f->params = tg_config_params(c);
    f->weights_bytes = f->gradients_bytes = flat;
    f->moments_bytes = 2 * flat;
    f->workspace_bytes = plans->memory_bytes;
    TG_TRY(forecast_text(f, c, text, o, t));
    const bool validates =
        f->val_bytes > 0 || (text && text->train_row && tg_text_validates(text, o->val_fraction));
    f->best_bytes = o->keep_best && validates ? flat : 0;
    f->memory_bytes =
        (o->ema > 0 ? 5 : 4) * flat + f->best_bytes + f->workspace_bytes + PROGRAM_BYTES;
    f->save_bytes = (o->ema > 0 ? 16 : 12) * f->params + 65536;
    f->disk_bytes = 3 * f->save_bytes + (o->keep_best ? 3 * 4 * f->params : 0);
    f->flop_per_step = tg_train_flop(c, o);
    f->peak_gflops = ctx->backend == ctx->cpu ? ctx->peak_gflops : 0;
    if (f->peak_gflops > 0)
        f->ms_per_step = f->flop_per_step / (f->peak_gflops * EXPECTED_SHARE) / 1e6;
    f->seconds = f->ms_per_step * (double)o->steps / 1e3;
    forecast_pairs(f, text, o, t);
    return TG_OK;
}

/* Has its model learnt before this run began? A resumed run was given its advice at its start. */
static bool trained_before(const tg_trainer *t) {
    return t && (t->step > 0 || strcmp(t->model->format, "new") != 0);
}

static tg_status forecast(tg_context *ctx, const tg_model_config *config, tg_text *text,
                          const tg_train_options *options, const tg_trainer *t, tg_forecast *out) {
    *out = (tg_forecast) { .params = 0 };
    const tg_train_options o = tg_train_options_of(options, config);
    TG_TRY(tg_train_options_check(&ctx->err, &o));
    tg_os_memory memory;
    TG_TRY(tg_os_memory_get(&ctx->err, &memory));
    out->memory_available_bytes = memory.available_bytes;

    tg_arena arena;
    tg_arena_init(&arena, &ctx->err.mem);
    tg_layout layout;
    tg_train_plans own = { .built = false };
    tg_status s = tg_layout_make(&ctx->err, &arena, config, &layout);
    if (s == TG_OK && !t) s = tg_train_plans_build(ctx, &layout, &o, text ? text->beta : 0, &own);
    if (s == TG_OK) s = fill(ctx, config, &layout, text, &o, t ? &t->plans : &own, t, out);
    if (s == TG_OK) {
        const bool of_bytes = t ? !t->windows.tok : config->vocab == 256 && !(text && text->tok);
        write_advice(out, tg_family_of(config), of_bytes, trained_before(t), &o);
    }
    tg_train_plans_free(&own);
    tg_arena_deinit(&arena);
    return s;
}

/* The peak is measured if nobody has yet, which takes a moment; after that it is in the context. A
 * GPU's is not known, nor then the time. */
tg_status tg_forecasting_go_on(tg_forecasting *f, tg_context *ctx, const tg_model_config *config,
                               tg_text *text, const tg_train_options *o, const tg_trainer *t,
                               double deadline_ms, tg_forecast *out) {
    double gflops;
    if (ctx->peak_gflops <= 0 && ctx->backend == ctx->cpu) {
        TG_TRY(tg_peak_measuring_go_on(&f->peak, ctx, deadline_ms, &gflops));
        if (tg_time_over(deadline_ms)) return TG_PENDING;
    }
    return forecast(ctx, config, text, o, t, out);
}
