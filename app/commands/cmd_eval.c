/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_eval.c - tinygpt eval: how well a model predicts a text.
 *
 * One number in three costumes: the mean loss L in nats a token, perplexity exp(L), and L / ln 2
 * bits, which is what an arithmetic coder with this model would need. Tokens are bytes but for GGUF
 * files, whose numbers compare only between models of one vocabulary.
 */
#include "app.h"
#include "eval/eval_losses.h"
#include "eval/eval_suite.h"
#include "print/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* val and windows mean what they mean to train, so that its validation can be repeated by hand. */
typedef struct values {
    const char *data, *suite;
    double val;
    int64_t windows;
    bool losses;
} values;

static const tg_option options[] = {
    TG_PATH("--data", values, data, "FILE", "text to predict"),
    TG_REAL("--val", values, val, 0, 0.9, "FRACTION",
            "only this part, from the end: the one that train --val holds back; 0: all"),
    TG_INT("--windows", values, windows, 0, 1000000000, "N",
           "windows of the context's length, spread evenly; 0: all"),
    TG_FLAG("--losses", values, losses, "each token of the text and its loss, as JSON lines"),
    TG_PATH("--suite", values, suite, "FILE",
            "questions instead of a text, a line each: question, tab, answer (exact), or several "
            "answers, the first of them right (by their likelihood); FILE.jsonl: an object a line, "
            "as data sets have them (question, choices, answer, ..)"),
};

static const tg_command_spec spec = {
    .name = "eval",
    .uses = TG_USES_ALL,
    .usage = "MODEL --data FILE | --suite FILE [options]",
    .about =
        "Measures the mean loss of a model on a text, cut into windows of the model's context; of "
        "vocabularies other than bytes in windows of at most 512 tokens.",
    .pos = { "MODEL" },
    .pos_min = 1,
    .pos_max = 1,
    .examples = "  tinygpt eval run.tinygpt --data book.txt --val 0.1\n"
                "  tinygpt eval smollm2.gguf --suite questions.tsv\n",
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

static int eval_questions(tg_app *app, const values *v, tg_model *model) {
    static const size_t largest = (size_t)1 << 32;
    char *bytes;
    size_t n;
    int code = tg_app_read_file(app, v->suite, largest, &bytes, &n);
    if (code != TG_ARGS_GO_ON) return code;
    code = tg_eval_suite(app, model, v->suite, bytes, n);
    free(bytes);
    return code;
}

static int eval_text(tg_app *app, const values *v, tg_model *model) {
    tg_text *text = NULL;
    double loss = NAN;
    tg_status status = tg_text_open(app->ctx, v->data, &text);
    if (status == TG_OK && v->losses)
        status = tg_eval_losses(app, model, text, v->val);
    else if (status == TG_OK)
        status = tg_model_eval(app->ctx, model, text, v->val, (int32_t)v->windows, &loss);
    if (status == TG_OK && !v->losses) print_result(app, v, model, loss, tg_text_bytes(text));
    tg_text_free(text);
    return status == TG_OK ? TG_EXIT_DONE : tg_app_failed(app, app->ctx, status, TG_READING);
}

static int check_options(const tg_args *args, const values *v) {
    if (!v->data && !v->suite) return tg_args_refuse(args, "--data FILE is missing");
    if (v->suite && (v->data || v->losses || v->val > 0 || v->windows > 0))
        return tg_args_refuse(args, "--suite has questions of its own: it contradicts --data, "
                                    "--losses, --val and --windows");
    if (v->losses && v->windows > 0)
        return tg_args_refuse(args, "--losses is of all windows: it contradicts --windows");
    return TG_ARGS_GO_ON;
}

/* What fails here is the model's file or the text, so every error of input is code 2. */
int tg_cmd_eval(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code == TG_ARGS_GO_ON) code = check_options(&app.args, &v);
    if (code == TG_ARGS_GO_ON) code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_model *model = NULL;
    const tg_status status = tg_model_open(app.ctx, app.args.pos[0], &model);
    if (status != TG_OK)
        code = tg_app_failed(&app, app.ctx, status, TG_READING);
    else
        code = (v.suite ? eval_questions : eval_text)(&app, &v, model);
    tg_model_free(model);
    return tg_app_end(&app, code);
}
