/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tiles.c - tinygpt bench tiles: the fastest tiles of products on this GPU, kept for later
 * runs.
 */
#include "bench/bench.h"
#include "print/format.h"

#include <string.h>

typedef struct values {
    const char *preset;
    int64_t batch, rounds;
} values;

static const tg_option options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "size of the model"),
    TG_INT("--batch", values, batch, 1, 65536, "B", "rows a step (default: the preset's)",
           .hide_default = true),
    TG_INT("--rounds", values, rounds, 3, 15, "N", "rounds through all candidates"),
};

static const tg_command_spec spec = {
    .name = "bench tiles",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "[options] --device webgpu",
    .about = "Times every tile and every cut of the products of a training step on this GPU, and "
             "keeps the fastest of each for this adapter and driver: later runs take them "
             "(--levers -tuned_tiles: by rule again).",
    .examples = "  tinygpt bench tiles --device webgpu --preset huge\n",
};

typedef struct table {
    bool json;
    tg_jout j;
    double rule_ms, best_ms; /* of all products of a gradient */
} table;

static void on_row(void *user, const tg_tile_row *row) {
    table *t = user;
    t->rule_ms += row->rule_ms * row->count;
    t->best_ms += row->best_ms * row->count;
    if (!t->json) {
        printf("%-52s %4d %9.4f %9.4f  %+6.1f %%  %s%s%s\n", row->what, (int)row->count,
               row->rule_ms, row->best_ms, 100 * (row->rule_ms / row->best_ms - 1), row->rule,
               strcmp(row->rule, row->best) == 0 ? "" : " -> ",
               strcmp(row->rule, row->best) == 0 ? "" : row->best);
        return;
    }
    tg_jout_open(&t->j, NULL, '{');
    tg_jout_text(&t->j, "what", row->what);
    tg_jout_int(&t->j, "count", row->count);
    tg_jout_text(&t->j, "rule", row->rule);
    tg_jout_text(&t->j, "best", row->best);
    tg_jout_rounded(&t->j, "rule_ms", row->rule_ms, 5);
    tg_jout_rounded(&t->j, "best_ms", row->best_ms, 5);
    tg_jout_close(&t->j);
}

/* A GPU in software is refused before a trainer is made. */
static int measure(tg_app *app, const values *v, const tg_preset *p) {
    table t = { .json = app->globals.json };
    tg_rig rig = { 0 };
    double gflops;
    tg_gpu_facts gpu;
    tg_status status = tg_context_gpu(app->ctx, &gpu);
    if (status == TG_OK) status = tg_bench_peak(app, &gflops);
    if (status == TG_OK)
        status = tg_rig_open(&rig, app->ctx, &p->config, v->batch ? (int32_t)v->batch : p->batch);
    if (status == TG_OK && t.json) tg_bench_json_open(app, &t.j, "tiles", 0);
    if (status == TG_OK && !t.json)
        printf("%s\n%s\n\n%-52s %4s %9s %9s\n", tg_context_banner(app->ctx), p->name, "product",
               "n", "rule ms", "best ms");
    const bool begun = status == TG_OK;
    if (begun) status = tg_trainer_tune(rig.trainer, (int)v->rounds, on_row, &t);
    if (begun && t.json) tg_bench_json_close(&t.j);
    if (status == TG_OK && !t.json)
        printf("\nall products of a gradient: %.3f ms by rule, %.3f ms so; kept for this adapter\n",
               t.rule_ms, t.best_ms);
    tg_rig_close(&rig);
    return status == TG_OK ? TG_EXIT_DONE : tg_app_failed(app, app->ctx, status, TG_WORKING);
}

int tg_bench_tiles(int argc, char **argv) {
    values v = { .preset = "small", .rounds = 7 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_start(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const tg_preset *p = tg_bench_preset(&app.args, v.preset);
    code = p ? tg_bench_room(&app, p, (int32_t)v.batch, 1) : TG_EXIT_USAGE;
    if (code == TG_ARGS_GO_ON) code = measure(&app, &v, p);
    return tg_app_end(&app, code);
}
