/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_eval.c - tinygpt eval: how well a model predicts a text.
 *
 * One number in three costumes: the mean loss L in nats a token, perplexity exp(L), and L / ln 2
 * bits, which is what an arithmetic coder with this model would need. Tokens are bytes but for GGUF
 * files, whose numbers compare only between models of one vocabulary.
 */
#include "app.h"
#include "format.h"

#include <math.h>
#include <string.h>

/* val and windows mean what they mean to train, so that its validation can be repeated by hand. */
typedef struct values {
    const char *data;
    double val;
    int64_t windows;
} values;

static const tg_option options[] = {
    TG_PATH("--data", values, data, "FILE", "text to predict"),
    TG_REAL("--val", values, val, 0, 0.9, "FRACTION",
            "only this part, from the end: the one that train --val holds back; 0: all"),
    TG_INT("--windows", values, windows, 0, 1000000000, "N",
           "windows of the context's length, spread evenly; 0: all"),
};

static const tg_command_spec spec = {
    .name = "eval",
    .uses = TG_USES_ALL,
    .usage = "MODEL --data FILE [options]",
    .about =
        "Measures the mean loss of a model on a text, cut into windows of the model's context; of a "
        "GGUF file in windows of at most 512 tokens.",
    .pos = { "MODEL" },
    .pos_min = 1,
    .pos_max = 1,
    .examples = "  tinygpt eval run.tinygpt --data book.txt --val 0.1\n",
};

/* How many were measured: those that tile the part which --val names, or as many as were asked for.
 * null of third-party models, whose windows are of tokens. */
static void put_windows(tg_jout *j, const values *v, const tg_model_info *info, uint64_t bytes) {
    const uint64_t part = v->val > 0 ? (uint64_t)((double)bytes * v->val) : bytes;
    const uint64_t all = part > 0 ? (part - 1) / (uint64_t)info->config.ctx : 0;
    const bool fewer = v->windows > 0 && (uint64_t)v->windows < all;
    if (strcmp(info->family, "tinygpt") != 0)
        tg_jout_text(j, "windows", NULL);
    else
        tg_jout_uint(j, "windows", fewer ? (uint64_t)v->windows : all);
}

/* The JSON has all digits: it is what two machines are compared by. */
static void print_result(const tg_app *app, const values *v, const tg_model *model, double loss,
                         uint64_t bytes) {
    tg_model_info info = { .format = "" };
    (void)tg_model_get_info(model, &info);
    const bool bytewise = strcmp(info.family, "tinygpt") == 0;
    if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_double(&j, "loss", loss);
        tg_jout_double(&j, "perplexity", tg_fmt_perplexity(loss));
        if (bytewise) tg_jout_double(&j, "bits_per_byte", loss / TG_LN2);
        tg_jout_uint(&j, "bytes", bytes);
        put_windows(&j, v, &info, bytes);
        tg_app_put_file_read(&j, model, app->args.pos[0]);
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    /* Beyond four digits a loss tells builds apart and not models; JSON has them for that. */
    printf("loss          %.4f nats a %s\n", loss, bytewise ? "byte" : "token");
    printf("perplexity    %.3f\n", tg_fmt_perplexity(loss));
    printf("bits a %s  %s%.4f\n", bytewise ? "byte" : "token", bytewise ? " " : "", loss / TG_LN2);
}

/* What fails here is the model's file or the text, so every error of input is code 2. */
int tg_cmd_eval(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    if (!v.data) return tg_args_refuse(&app.args, "--data FILE is missing");
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_model *model = NULL;
    tg_text *text = NULL;
    double loss = NAN;
    /* Each step is skipped after an error, and everything is freed below, where NULL is fine. */
    tg_status status = tg_model_open(app.ctx, app.args.pos[0], &model);
    if (status == TG_OK) status = tg_text_open(app.ctx, v.data, &text);
    if (status == TG_OK)
        status = tg_model_eval(app.ctx, model, text, v.val, (int32_t)v.windows, &loss);
    if (status == TG_OK) {
        print_result(&app, &v, model, loss, tg_text_bytes(text));
        code = TG_EXIT_DONE;
    } else {
        code = tg_app_failed(&app, app.ctx, status, TG_READING);
    }
    tg_text_free(text);
    tg_model_free(model);
    return tg_app_end(&app, code);
}
