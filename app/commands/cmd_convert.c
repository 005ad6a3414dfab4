/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_convert.c - tinygpt convert: a model file in another layout.
 *
 * The library decides what may be replaced, and checks what was written before it takes its name;
 * here the layout and the numbers in it are chosen, and what the change did is shown.
 */
#include "app.h"
#include "print/format.h"
#include "signals.h"

#include <inttypes.h>
#include <string.h>

/* Both are indices of words, in the order of the enums below, which tie the table's rows to
 * them. */
typedef struct values {
    int dtype, format;
    const char *calibrate, *imatrix;
    bool force;
} values;

enum { F32, F16, INT4, BF16, Q8_0, Q4_0, Q4_K, Q5_0, IQ4_NL, Q5_K, Q6_K, Q4_K_M, Q5_K_M, N_DTYPES };
enum { AUTO, V1, V2, V3, SAFETENSORS, GGUF, N_FORMATS };

static const tg_option options[] = {
    TG_CHOICE(
        "--dtype", values, dtype,
        "f32|f16|int4|bf16|q8_0|q4_0|q4_k|q5_0|iq4_nl|q5_k|q6_k|q4_k_m|q5_k_m",
        "numbers in the new file; from bf16 on in gguf, folders (bf16) and v3; q4_k_m and q5_k_m have the matrices that matter more in q6_k"),
    TG_PATH(
        "--calibrate", values, calibrate, "TEXT",
        "a text like those that the model is for: what it multiplies columns with there decides "
        "which of their errors matter, for types of 4 to 6 bits"),
    TG_PATH("--imatrix", values, imatrix, "FILE", "the same, measured by llama-imatrix (GGUF)"),
    TG_CHOICE("--format", values, format, "auto|v1|v2|v3|safetensors|gguf",
              "the layout; auto: by the name of OUT, then v3 for f32, v2 for f16 and int4"),
    TG_FLAG("--force", values, force,
            "replace what is at OUT, whatever it is; it stays as OUT.prev"),
};

static const tg_command_spec spec = {
    .name = "convert",
    .uses = TG_USES_CPU,
    .usage = "IN OUT [--dtype TYPE] [--calibrate TEXT] [--format v1|v2|v3|safetensors|gguf]",
    .about =
        "Writes a model file in another layout. v3 is tinygpt's own: checksummed, and it can "
        "hold a run with all that resuming needs. v2 and v1 are those of the browser lab. "
        "safetensors is a folder that from_pretrained of transformers opens, with its "
        "config.json and tokenizer. gguf is for "
        "llama.cpp, and is written of any model that can be opened, as is v3 of third-party models; "
        "it is read back, and what the change did to the model's answers is shown. What was at OUT "
        "becomes OUT.prev, if tinygpt wrote it; anything else is replaced with --force alone.",
    .pos = { "IN", "OUT" },
    .pos_min = 2,
    .pos_max = 2,
    .pos_out = 2,
    .examples = "  tinygpt convert run.tinygpt small.tinygpt --dtype int4\n"
                "  tinygpt convert run.tinygpt run.gguf --dtype q8_0\n"
                "  tinygpt convert smollm2.gguf smollm2.tinygpt --dtype q4_k_m\n"
                "  tinygpt convert f16.gguf small.gguf --dtype q4_k_m --calibrate book.txt\n"
                "  tinygpt convert run.tinygpt folder --format safetensors\n"
                "  tinygpt convert folder/model.safetensors back.tinygpt\n",
};

/* What exists of the product of numbers and layouts; a missing name is a combination that no reader
 * knows. v3 holds whole runs, so it is in f32 only. */
static const struct {
    tg_file_kind kind;
    const char *name;
} kinds[N_DTYPES][N_FORMATS] = {
    [F32] = { [AUTO] = { TG_FILE_V3, "v3 f32" },
              [V1] = { TG_FILE_V1_F32, "v1 f32" },
              [V2] = { TG_FILE_V2_F32, "v2 f32" },
              [V3] = { TG_FILE_V3, "v3 f32" } },
    [F16] = { [AUTO] = { TG_FILE_V2_F16, "v2 f16" }, [V2] = { TG_FILE_V2_F16, "v2 f16" } },
    [INT4] = { [AUTO] = { TG_FILE_V2_INT4, "v2 int4" }, [V2] = { TG_FILE_V2_INT4, "v2 int4" } },
};

/* What a layout that is asked for may have; v3 of a model has all types of its tensors. */
static const struct {
    const char *name, *dtypes;
} layouts[] = {
    [V1] = { "v1", "f32" }, [V2] = { "v2", "f32, f16 or int4" }, [V3] = { "v3", "any but int4" }
};

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* ----------------------------------------------------------------------------------- the command
 */

/* Both lengths are asked of the file system, after the fact: what counts is what lies there. */
static void print_result(const tg_app *app, const char *in, const char *out, const char *layout,
                         bool replaced) {
    const uint64_t in_bytes = tg_app_file_bytes(in), out_bytes = tg_app_file_bytes(out);
    if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "in", in);
        tg_jout_text(&j, "out", out);
        tg_jout_text(&j, "layout", layout);
        tg_jout_uint(&j, "in_bytes", in_bytes);
        tg_jout_uint(&j, "out_bytes", out_bytes);
        tg_jout_bool(&j, "replaced", replaced);
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    printf("%s: %s, %s (was %s)\n", out, layout, TG_BYTES(out_bytes), TG_BYTES(in_bytes));
    if (replaced) printf("%s.prev: what was there before\n", out);
}

/* A signal is no failure: nothing of OUT was written, and what was there is whole. */
static int failed(tg_app *app, tg_status status, const char *out) {
    if (status != TG_STOPPED) return tg_app_failed(app, app->ctx, status, TG_READING);
    fprintf(stderr, "\nInterrupted: %s is as it was.\n", out);
    return TG_EXIT_INTERRUPTED;
}

/* Moments go along where the new layout has room for them; v1 and v2 in f32 get zeros where the
 * input has none. f16 and int4 keep weights alone. Numbers that f16 cannot hold are an error that
 * names the tensor, never an infinity. */
static int convert(tg_app *app, const char *in, const char *out, tg_file_kind kind,
                   const char *layout) {
    const bool replaced = tg_app_file_bytes(out) > 0;
    const tg_status status = tg_model_convert(app->ctx, in, out, kind, TG_WEIGHT_F32, NULL);
    if (status != TG_OK) return failed(app, status, out);
    print_result(app, in, out, layout, replaced);
    return TG_EXIT_DONE;
}

/* ---------------------------------------------------------------------------- third-party models
 */

static const struct {
    tg_weight_type type;
    const char *name;
} weights[N_DTYPES] = {
    [F32] = { TG_WEIGHT_F32, "f32" },          [F16] = { TG_WEIGHT_F16, "f16" },
    [BF16] = { TG_WEIGHT_BF16, "bf16" },       [Q8_0] = { TG_WEIGHT_Q8_0, "q8_0" },
    [Q4_0] = { TG_WEIGHT_Q4_0, "q4_0" },       [Q4_K] = { TG_WEIGHT_Q4_K, "q4_k" },
    [Q5_0] = { TG_WEIGHT_Q5_0, "q5_0" },       [IQ4_NL] = { TG_WEIGHT_IQ4_NL, "iq4_nl" },
    [Q5_K] = { TG_WEIGHT_Q5_K, "q5_k" },       [Q6_K] = { TG_WEIGHT_Q6_K, "q6_k" },
    [Q4_K_M] = { TG_WEIGHT_Q4_K_M, "q4_k_m" }, [Q5_K_M] = { TG_WEIGHT_Q5_K_M, "q5_k_m" },
};

static void print_report_json(const char *in, const char *out, const char *layout,
                              const tg_convert_report *r) {
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_text(&j, "in", in);
    tg_jout_text(&j, "out", out);
    tg_jout_text(&j, "layout", layout);
    tg_jout_uint(&j, "in_bytes", r->in_bytes);
    tg_jout_uint(&j, "out_bytes", r->out_bytes);
    tg_jout_uint(&j, "matrices", r->n_tensors);
    tg_jout_uint(&j, "finer", r->n_finer);
    tg_jout_text(&j, "finer_ones", r->finer);
    tg_jout_uint(&j, "positions", r->n_positions);
    tg_jout_double(&j, "max_error", r->max_error);
    tg_jout_double(&j, "tanh_error", r->tanh_error);
    tg_jout_double(&j, "mean_kl", r->mean_kl);
    tg_jout_double(&j, "max_kl", r->max_kl);
    tg_jout_double(&j, "same_best", r->same_best);
    tg_jout_uint(&j, "texts", r->n_texts);
    tg_jout_uint(&j, "texts_same", r->n_texts_same);
    tg_jout_uint(&j, "vectors", r->n_vectors);
    tg_jout_double(&j, "min_cosine", r->min_cosine);
    tg_jout_uint(&j, "weighed", r->n_weighed);
    tg_jout_uint(&j, "calibration_tokens", r->n_calibration);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

static void print_report(const char *out, const char *layout, const tg_convert_report *r) {
    printf("%s: %s, %s (was %s)\n", out, layout, TG_BYTES(r->out_bytes), TG_BYTES(r->in_bytes));
    if (r->n_finer)
        printf("finer       %zu of %zu matrices, whose rows its blocks do not divide: %s\n",
               r->n_finer, r->n_tensors, r->finer);
    if (r->n_weighed || r->n_calibration) {
        printf("calibrated  %zu of %zu matrices by what their columns are multiplied with",
               r->n_weighed, r->n_tensors);
        if (r->n_calibration)
            printf(" in %" PRIu64 " token%s", r->n_calibration, r->n_calibration == 1 ? "" : "s");
        printf("%s\n", r->n_weighed ? "" : ": all are of a type without such scales");
    }
    if (r->n_positions)
        printf("read back   logits at %zu positions: largest difference %.3g, KL divergence "
               "%.3g (at most %.3g), likeliest token the same at %.1f %%\n",
               r->n_positions, r->max_error, r->mean_kl, r->max_kl, 100 * r->same_best);
    if (r->n_vectors)
        printf("read back   vectors of %zu texts: largest difference %.3g, cosine at least %.6f\n",
               r->n_vectors, r->max_error, r->min_cosine);
    if (r->tanh_error > 0)
        printf("llama.cpp   its GPT-2 has another gelu, the one by tanh: largest difference there "
               "%.3g\n",
               r->tanh_error);
    printf("tokens      %zu of %zu texts alike\n", r->n_texts_same, r->n_texts);
}

static const char *const kinds_of_any[] = {
    [TG_FILE_GGUF] = "gguf",
    [TG_FILE_FOLDER] = "safetensors",
    [TG_FILE_V3] = "v3",
};

/* By the text or the file of the options, if there is one. */
static tg_status convert_by(tg_app *app, const values *v, const char *in, const char *out,
                            tg_file_kind kind, tg_convert_report *r) {
    tg_calibration by = { .imatrix = v->imatrix };
    const tg_weight_type type = weights[v->dtype].type;
    if (!v->calibrate && !v->imatrix) return tg_model_convert(app->ctx, in, out, kind, type, r);
    tg_status s = v->calibrate ? tg_text_open(app->ctx, v->calibrate, &by.text) : TG_OK;
    if (s == TG_OK) s = tg_model_convert_calibrated(app->ctx, in, out, kind, type, &by, r);
    tg_text_free(by.text);
    return s;
}

static int convert_any(tg_app *app, const values *v, const char *in, const char *out,
                       tg_file_kind kind) {
    const bool replaced = tg_app_file_bytes(out) > 0;
    tg_convert_report r;
    char layout[48];
    snprintf(layout, sizeof layout, "%s %s", kinds_of_any[kind], weights[v->dtype].name);
    const tg_status s = convert_by(app, v, in, out, kind, &r);
    if (s != TG_OK) return failed(app, s, out);
    if (r.in_bytes == 0) { /* a run that stays one: nothing was compared */
        print_result(app, in, out, layout, replaced);
        return TG_EXIT_DONE;
    }
    if (app->globals.json)
        print_report_json(in, out, layout, &r);
    else
        print_report(out, layout, &r);
    if (kind == TG_FILE_FOLDER || r.n_texts_same == r.n_texts) return TG_EXIT_DONE;
    tg_app_error(app, "%s cuts texts into other tokens than %s", out, in);
    return TG_EXIT_FAILED;
}

/* *by_model: is IN converted as a model, by tg_model_convert, and not by the original's layouts?
 * GGUF files and folders always are. A .tinygpt file is, unless it has a byte GPT in a type that
 * those layouts have. A file that cannot be read is left to the conversion, which says why; only a
 * fault of the machine ends it here, with an exit code. */
static int choose_way(tg_app *app, const char *in, int format, int dtype, bool *by_model) {
    tg_model_config config;
    *by_model = format == GGUF || format == SAFETENSORS;
    if (*by_model || (format != AUTO && format != V3) || !weights[dtype].name) return TG_ARGS_GO_ON;
    const tg_status s = tg_file_config(app->ctx, in, &config);
    if (s != TG_OK && tg_context_machine_failed(app->ctx))
        return tg_app_failed(app, app->ctx, TG_E_IO, TG_READING);
    *by_model = !kinds[dtype][format].name || (s == TG_OK && strcmp(config.family, "tinygpt") != 0);
    return TG_ARGS_GO_ON;
}

/* Types whose scales are the program's to choose: blocks but for Q8_0. */
static int check_calibration(tg_app *app, const values *v, const char *out, int format) {
    const char *option = v->calibrate ? "--calibrate" : "--imatrix";
    if (!v->calibrate && !v->imatrix) return TG_ARGS_GO_ON;
    if (v->calibrate && v->imatrix)
        return tg_args_refuse(&app->args, "--calibrate and --imatrix: want one of them");
    if (v->dtype < Q4_0 || format == SAFETENSORS)
        return tg_args_refuse(&app->args,
                              "%s: want --dtype of 4 to 6 bits in gguf or .tinygpt, have %s%s",
                              option, format == SAFETENSORS ? "a folder of " : "",
                              v->dtype == INT4 ? "int4" : weights[v->dtype].name);
    if (v->calibrate && tg_app_same_file(v->calibrate, out))
        return tg_args_refuse(&app->args, "--calibrate TEXT and OUT are the same file");
    return TG_ARGS_GO_ON;
}

static int run(tg_app *app, const values *v, int format) {
    const char *in = app->args.pos[0], *out = app->args.pos[1];
    char why[512];
    const char *layout = kinds[v->dtype][format].name;
    bool by_model;
    int code = choose_way(app, in, format, v->dtype, &by_model);
    if (code != TG_ARGS_GO_ON) return code;
    code = check_calibration(app, v, out, format);
    if (code != TG_ARGS_GO_ON) return code;
    if (!weights[v->dtype].name && (by_model || !layout)) {
        tg_app_error(app, "int4 exists in the v2 layout only: leave --format out, and name OUT "
                          ".tinygpt");
        return TG_EXIT_USAGE;
    }
    if (!by_model && !layout)
        return tg_args_refuse(&app->args,
                              "--format %s: want --dtype %s, have %s: leave --format out, and "
                              "name OUT .tinygpt or .gguf",
                              layouts[format].name, layouts[format].dtypes, weights[v->dtype].name);
    /* Asked first, since the library would only find out after reading all of IN's header. */
    if (format != SAFETENSORS && !tg_app_can_write(out, why, sizeof why, &code)) {
        tg_app_error(app, "%s cannot be written: %s", out, why);
        return code;
    }
    if (!by_model) return convert(app, in, out, kinds[v->dtype][format].kind, layout);
    return convert_any(app, v, in, out,
                       format == GGUF          ? TG_FILE_GGUF
                       : format == SAFETENSORS ? TG_FILE_FOLDER
                                               : TG_FILE_V3);
}

int tg_cmd_convert(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const char *in = app.args.pos[0], *out = app.args.pos[1];
    const int format =
        v.format != AUTO ? v.format
        : ends_with(out, ".safetensors") || ends_with(out, ".hf") || ends_with(out, "/")
            ? SAFETENSORS
        : ends_with(out, ".gguf") ? GGUF
                                  : AUTO;
    /* The library refuses every file of the input; this is the case that can be told in few words.
     */
    if (tg_app_same_file(in, out)) {
        return tg_args_refuse(&app.args, "IN and OUT are the same file");
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_signals_install_patient();
    tg_context_force(app.ctx, v.force);
    tg_context_cancel(app.ctx, tg_signals_cancel, NULL);
    return tg_app_end(&app, run(&app, &v, format));
}
