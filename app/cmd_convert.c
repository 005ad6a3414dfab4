/*
 * cmd_convert.c - tinygpt convert: a model file in another layout.
 *
 * A .safetensors file gets a config.json beside it, without which transformers does not know what
 * the tensors are. Many programs have a config.json: one that is not of our making stays, and the
 * command is refused before anything is written.
 */
#include "app.h"
#include "format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Both are indices of words, in the order of the enums below, which tie the table's rows to
 * them. */
typedef struct values {
    int dtype, format;
} values;

enum { F32, F16, INT4, BF16, Q8_0, Q4_0, Q4_K, N_DTYPES };
enum { AUTO, V1, V2, V3, SAFETENSORS, GGUF, N_FORMATS };

static const tg_option options[] = {
    TG_CHOICE("--dtype", values, dtype, "f32|f16|int4|bf16|q8_0|q4_0|q4_k",
              "numbers in the new file; the last four in gguf, and in v3 of models of others"),
    TG_CHOICE("--format", values, format, "auto|v1|v2|v3|safetensors|gguf",
              "the layout; auto: by the name of OUT, then v3 for f32, v2 for f16 and int4"),
};

static const tg_command_spec spec = {
    .name = "convert",
    .uses = TG_USES_CPU,
    .usage = "IN OUT [--dtype TYPE] [--format v1|v2|v3|safetensors|gguf]",
    .about =
        "Writes a model file in another layout. v3 is tinygpt's own: checksummed, and it can "
        "hold a run with all that resuming needs. v2 and v1 are those of the browser lab. "
        "safetensors is a GPT-2 for transformers: name it model.safetensors in a folder of its "
        "own, which gets a config.json, and from_pretrained(folder) opens it. gguf is for "
        "llama.cpp, and is written of any model that can be opened, as is v3 of models of others; "
        "it is read back, and what the change did to the model's answers is shown.",
    .pos = { "IN", "OUT" },
    .pos_min = 2,
    .pos_max = 2,
    .examples = "  tinygpt convert run.tinygpt small.tinygpt --dtype int4\n"
                "  tinygpt convert run.tinygpt run.gguf --dtype q8_0\n"
                "  tinygpt convert smollm2.gguf smollm2.tinygpt --dtype q4_k\n"
                "  tinygpt convert run.tinygpt folder/model.safetensors\n"
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
              [V3] = { TG_FILE_V3, "v3 f32" },
              [SAFETENSORS] = { TG_FILE_SAFETENSORS, "safetensors f32" } },
    [F16] = { [AUTO] = { TG_FILE_V2_F16, "v2 f16" }, [V2] = { TG_FILE_V2_F16, "v2 f16" } },
    [INT4] = { [AUTO] = { TG_FILE_V2_INT4, "v2 int4" }, [V2] = { TG_FILE_V2_INT4, "v2 int4" } },
};

/* ------------------------------------------------------------------------------- config.json */

#define CONFIG_NAME "config.json"

static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* "folder/config.json" for "folder/model.safetensors", with something behind it; freed by the
 * caller, NULL without memory. */
static char *config_path(const char *out, const char *suffix) {
    const char *slash = strrchr(out, '/');
    const size_t folder = slash ? (size_t)(slash - out) + 1 : 0;
    const size_t room = folder + sizeof CONFIG_NAME + strlen(suffix);
    char *path = malloc(room);
    if (path) snprintf(path, room, "%.*s" CONFIG_NAME "%s", (int)folder, out, suffix);
    return path;
}

/* Is there none, or one that tinygpt wrote (or transformers kept from one)? */
static bool config_is_ours(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) return errno == ENOENT;
    static char text[65536];
    const size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    return strstr(text, "\"gpt2\"") && strstr(text, "\"tinygpt\"");
}

/* A temporary file and a rename, so that there is never half a configuration. */
static int write_config(tg_app *app, const char *out, const char *path) {
    tg_gpt_config config;
    tg_status status = tg_file_config(app->ctx, out, &config);
    char suffix[32];
    snprintf(suffix, sizeof suffix, ".tmp-%ld", (long)getpid());
    char *temporary = config_path(out, suffix);
    FILE *f = status == TG_OK && temporary ? fopen(temporary, "wb") : NULL;
    if (f) {
        status = tg_transformers_config(app->ctx, &config, tg_app_write_text, f);
        if (fclose(f) != 0 && status == TG_OK) status = TG_E_IO;
        if (status == TG_OK && rename(temporary, path) != 0) status = TG_E_IO;
        if (status != TG_OK) remove(temporary);
    } else if (status == TG_OK) {
        status = TG_E_IO;
    }
    if (status != TG_OK) tg_app_error(app, "%s could not be written: %s", path, strerror(errno));
    free(temporary);
    return status == TG_OK ? TG_EXIT_DONE : TG_EXIT_FAILED;
}

/* ----------------------------------------------------------------------------------- the command
 */

/* Both lengths are asked of the file system, after the fact: what counts is what lies there. */
static void print_result(const tg_app *app, const char *in, const char *out, const char *layout,
                         const char *config) {
    const uint64_t in_bytes = tg_app_file_bytes(in), out_bytes = tg_app_file_bytes(out);
    if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "in", in);
        tg_jout_text(&j, "out", out);
        tg_jout_text(&j, "layout", layout);
        tg_jout_uint(&j, "in_bytes", in_bytes);
        tg_jout_uint(&j, "out_bytes", out_bytes);
        if (config) tg_jout_text(&j, "config", config);
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    printf("%s: %s, %s (was %s)\n", out, layout, TG_BYTES(out_bytes), TG_BYTES(in_bytes));
    if (!config) return;
    printf("%s: what transformers wants to know of it\n", config);
    const char *slash = strrchr(out, '/');
    if (strcmp(slash ? slash + 1 : out, "model.safetensors") != 0)
        printf("from_pretrained looks for the name model.safetensors: rename it for that\n");
}

/* Writes OUT, then its config.json if it has one. */
static int convert(tg_app *app, const char *in, const char *out, tg_file_kind kind,
                   const char *layout, const char *config) {
    /* Moments go along where the new layout has room for them; v1 and v2 in f32 get zeros where the
     * input has none. f16, int4 and safetensors keep weights alone. Numbers that f16 cannot hold
     * are an error that names the tensor, never an infinity. */
    const tg_status status = tg_file_convert(app->ctx, in, out, kind);
    if (status == TG_OK) {
        const int code = config ? write_config(app, out, config) : TG_EXIT_DONE;
        if (code == TG_EXIT_DONE) print_result(app, in, out, layout, config);
        return code;
    }
    /* OUT could be written to a moment ago, so E_IO speaks of IN unless the disk is full; then IN
     * can be read, and checking it tells the two apart. */
    char message[1024];
    snprintf(message, sizeof message, "%s", tg_context_error(app->ctx));
    const bool in_is_good = tg_file_check(app->ctx, in) == TG_OK;
    tg_app_error(app, "%s", *message ? message : tg_status_text(status));
    return tg_app_exit_code(status, in_is_good ? TG_WRITING : TG_READING);
}

/* ----------------------------------------------------------------------------- models of others */

static const struct {
    tg_weight_type type;
    const char *name;
} weights[N_DTYPES] = {
    [F32] = { TG_WEIGHT_F32, "f32" },    [F16] = { TG_WEIGHT_F16, "f16" },
    [BF16] = { TG_WEIGHT_BF16, "bf16" }, [Q8_0] = { TG_WEIGHT_Q8_0, "q8_0" },
    [Q4_0] = { TG_WEIGHT_Q4_0, "q4_0" }, [Q4_K] = { TG_WEIGHT_Q4_K, "q4_k" },
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
    tg_jout_close(&j);
    tg_jout_line(&j);
}

static void print_report(const char *out, const char *layout, const tg_convert_report *r) {
    printf("%s: %s, %s (was %s)\n", out, layout, TG_BYTES(r->out_bytes), TG_BYTES(r->in_bytes));
    if (r->n_finer)
        printf("finer       %zu of %zu matrices, whose rows its blocks do not divide: %s\n",
               r->n_finer, r->n_tensors, r->finer);
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

static const char *const kinds_of_others[] = {
    [TG_CONVERT_GGUF] = "gguf",
    [TG_CONVERT_SAFETENSORS] = "safetensors",
    [TG_CONVERT_TINYGPT] = "v3",
};

static int convert_any(tg_app *app, const char *in, const char *out, tg_convert_kind kind,
                       int dtype) {
    tg_convert_report r;
    char layout[48];
    snprintf(layout, sizeof layout, "%s %s", kinds_of_others[kind], weights[dtype].name);
    const tg_status s = tg_model_convert(app->ctx, in, out, kind, weights[dtype].type, &r);
    if (s != TG_OK) return tg_app_failed(app, app->ctx, s, TG_READING);
    if (app->globals.json)
        print_report_json(in, out, layout, &r);
    else
        print_report(out, layout, &r);
    if (kind == TG_CONVERT_SAFETENSORS || r.n_texts_same == r.n_texts) return TG_EXIT_DONE;
    tg_app_error(app, "%s cuts texts into other tokens than %s", out, in);
    return TG_EXIT_FAILED;
}

static int drop(void *user, const char *bytes, size_t n_bytes) {
    (void)user;
    (void)bytes;
    (void)n_bytes;
    return 0;
}

/* Is IN a model of others? Its head tells. */
static bool is_model(tg_app *app, const char *in) {
    return tg_file_info(app->ctx, in, true, drop, NULL) == TG_OK;
}

int tg_cmd_convert(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    char why[512];
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const char *in = app.args.pos[0], *out = app.args.pos[1];
    const int format = v.format != AUTO                 ? v.format
                       : ends_with(out, ".safetensors") ? SAFETENSORS
                       : ends_with(out, ".gguf")        ? GGUF
                                                        : AUTO;
    /* It would work, the writer being atomic; but moments and history may not survive the change of
     * layout, and with the original gone nobody could get them back. */
    if (tg_app_same_file(in, out)) {
        return tg_args_refuse(&app.args, "IN and OUT are the same file");
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    /* A folder is what a model of others becomes; our own, of bytes, is a file in one. */
    tg_gpt_config own;
    const bool others = format != GGUF && format != V1 && format != V2 && weights[v.dtype].name &&
                        tg_file_config(app.ctx, in, &own) != TG_OK && is_model(&app, in);
    if (others || format == GGUF) {
        const tg_convert_kind kind = format == GGUF          ? TG_CONVERT_GGUF
                                     : format == SAFETENSORS ? TG_CONVERT_SAFETENSORS
                                                             : TG_CONVERT_TINYGPT;
        const bool folder = kind == TG_CONVERT_SAFETENSORS;
        if (!weights[v.dtype].name) {
            tg_app_error(&app, "int4 exists in the v2 layout only");
            code = TG_EXIT_USAGE;
        } else if (!folder && !tg_app_can_write(out, why, sizeof why)) {
            tg_app_error(&app, "%s cannot be written: %s", out, why);
            code = TG_EXIT_USAGE;
        } else {
            code = convert_any(&app, in, out, kind, v.dtype);
        }
        return tg_app_end(&app, code);
    }
    const char *layout = kinds[v.dtype][format].name;
    if (!layout) {
        code = tg_args_refuse(
            &app.args, "f16 and int4 exist in the v2 layout only, bf16 and the q types in gguf "
                       "alone: leave --format out, and name OUT .tinygpt or .gguf");
        return tg_app_end(&app, code);
    }
    /* Asked first, since the library would only find out after reading all of IN's header. */
    char *config = format == SAFETENSORS ? config_path(out, "") : NULL;
    if (!tg_app_can_write(out, why, sizeof why)) {
        tg_app_error(&app, "%s cannot be written: %s", out, why);
        code = TG_EXIT_USAGE;
    } else if (config && !config_is_ours(config)) {
        tg_app_error(&app, "%s belongs to something else: write to another folder", config);
        code = TG_EXIT_USAGE;
    } else {
        code = convert(&app, in, out, kinds[v.dtype][format].kind, layout, config);
    }
    free(config);
    return tg_app_end(&app, code);
}
