/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_dump.c - tinygpt dump: the plans that a model runs, as text.
 */
#include "app.h"
#include "print/format.h"

#include <string.h>

typedef struct values {
    const char *preset;
    int plan;
    int64_t batch;
} values;

/* The library's names, in the order of the words behind --plan: there, "all" is number 0, so plan i
 * of this list is word i + 1. */
static const char *const plans[] = { "train", "eval", "decode", "prefill" };
enum { N_PLANS = sizeof plans / sizeof plans[0], N_TRAINING = 2 };

/* The batch of a preset is not used: a plan's shapes should not change with the preset's advice. */
static const tg_option options[] = {
    TG_TEXT("--preset", values, preset, "NAME", "plans of a preset instead of a file's"),
    TG_CHOICE("--plan", values, plan, "all|train|eval|decode|prefill", "which plan"),
    TG_INT("--batch", values, batch, 1, 65536, "B", "rows a step, for train and eval (default 16)",
           .hide_default = true),
};

static const tg_command_spec spec = {
    .name = "dump",
    .uses = TG_USES_CPU | TG_USES_DEVICE,
    .usage = "[MODEL | --preset NAME] [options]",
    .about = "Prints the plans of a model: every step with its op, kernel, shapes and the place of "
             "its values in memory.",
    .pos = { "MODEL" },
    .pos_min = 0,
    .pos_max = 1,
    .examples = "  tinygpt dump --preset small --plan decode\n",
};

/* Streams to the terminal; for JSON the text is collected, since it becomes one string, under the
 * plan's name. What was collected before an error is printed all the same. */
static tg_status dump_one(tg_app *app, const tg_preset *preset, tg_model *model, const char *plan,
                          int32_t batch, tg_jout *json) {
    tg_app_buffer text = { 0 };
    const tg_text_fn write = json ? tg_app_buffer_add : tg_app_write_text;
    void *const to = json ? (void *)&text : stdout;
    if (!json)
        printf("%s# %s%s\n", tg_term_style(&app->out, TG_BOLD), plan,
               tg_term_style(&app->out, TG_PLAIN));
    const tg_status status = model ? tg_model_dump(model, plan, batch, write, to)
                                   : tg_dump(app->ctx, &preset->config, plan, batch, write, to);
    if (!json) return status;
    tg_jout_text_n(json, plan, text.bytes ? text.bytes : "", text.n);
    tg_app_buffer_free(&text);
    return status;
}

/* A plan depends on the configuration, the types of weights, the batch and the context's ISA,
 * levers and threads, but on no weight. What cannot be trained has no such plans. The dump is what
 * a refactoring is compared by, so it has no times and no addresses. */
int tg_cmd_dump(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    /* Exactly one of the two: a preset's name would be taken for a file, or the other way round. */
    if ((app.args.n_pos == 1) == (v.preset != NULL)) {
        return tg_args_refuse(&app.args, "want MODEL or --preset NAME, have %s",
                              v.preset ? "both" : "none");
    }
    const tg_preset *preset = v.preset ? tg_preset_find(v.preset) : NULL;
    if (v.preset && !preset) {
        char shown[64];
        return tg_args_refuse(&app.args, "--preset: no preset \"%s\"; train --help lists them",
                              tg_fmt_safe(shown, sizeof shown, v.preset));
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_model *model = NULL;
    tg_status status = preset ? TG_OK : tg_model_open(app.ctx, app.args.pos[0], &model);
    const bool trains = preset || (model && tg_model_can(model, TG_CAN_TRAIN));
    const bool trains_alone = trains && model && !tg_model_can(model, TG_CAN_WRITE);
    tg_jout j = tg_jout_to(stdout);
    /* JSON is begun only once the model is open; an object that was begun is closed even
     * if a plan fails in the middle, so that what was printed can be parsed. */
    const bool json = app.globals.json && status == TG_OK;
    if (json) tg_jout_open(&j, NULL, '{');
    for (size_t i = 0; i < N_PLANS && status == TG_OK; i++) {
        if (v.plan == 0 ? (i < N_TRAINING ? !trains : trains_alone) : (size_t)v.plan != i + 1)
            continue;
        status = dump_one(&app, preset, model, plans[i], (int32_t)v.batch, json ? &j : NULL);
    }
    tg_model_free(model);
    if (json) {
        tg_jout_close(&j);
        tg_jout_line(&j);
    }
    /* A reader that has seen enough (dump | head) stops the text; main reports the pipe. */
    const bool reader_gone = status == TG_STOPPED && ferror(stdout);
    code = status == TG_OK || reader_gone ? TG_EXIT_DONE
                                          : tg_app_failed(&app, app.ctx, status, TG_READING);
    return tg_app_end(&app, code);
}
