/*
 * cmd_convert.c - tinygpt convert: a model file in another layout.
 */
#include "app.h"
#include "format.h"

#include <string.h>

/* Both are indices of words, in the order of the enums below, which tie the table's rows to
 * them. */
typedef struct values {
    int dtype, format;
} values;

enum { F32, F16, INT4 };
enum { AUTO, V1, V2, V3 };

static const tg_option options[] = {
    TG_CHOICE("--dtype", values, dtype, "f32|f16|int4", "numbers in the new file"),
    TG_CHOICE("--format", values, format, "auto|v1|v2|v3",
              "version of the layout; auto: v3 for f32, v2 for f16 and int4"),
};

static const tg_command_spec spec = {
    .name = "convert",
    .usage = "IN OUT [--dtype f32|f16|int4] [--format v1|v2|v3]",
    .about = "Writes a model file in another layout. v3 is tinygpt's own: checksummed, and it can "
             "hold a run with all that resuming needs. v2 and v1 are those of the browser lab.",
    .pos = { "IN", "OUT" },
    .pos_min = 2,
    .pos_max = 2,
    .examples = "  tinygpt convert run.tinygpt small.tinygpt --dtype int4\n",
};

/* What exists of the product of numbers and layouts; a missing name is a combination that no reader
 * knows. v3 holds whole runs, so it is in f32 only. */
static const struct {
    tg_file_kind kind;
    const char *name;
} kinds[3][4] = {
    [F32] = { [AUTO] = { TG_FILE_V3, "v3 f32" },
              [V1] = { TG_FILE_V1_F32, "v1 f32" },
              [V2] = { TG_FILE_V2_F32, "v2 f32" },
              [V3] = { TG_FILE_V3, "v3 f32" } },
    [F16] = { [AUTO] = { TG_FILE_V2_F16, "v2 f16" }, [V2] = { TG_FILE_V2_F16, "v2 f16" } },
    [INT4] = { [AUTO] = { TG_FILE_V2_INT4, "v2 int4" }, [V2] = { TG_FILE_V2_INT4, "v2 int4" } },
};

/* Both lengths are asked of the file system, after the fact: what counts is what lies there. */
static void print_result(const tg_app *app, const char *in, const char *out, const char *layout) {
    const uint64_t in_bytes = tg_app_file_bytes(in), out_bytes = tg_app_file_bytes(out);
    if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "in", in);
        tg_jout_text(&j, "out", out);
        tg_jout_text(&j, "layout", layout);
        tg_jout_uint(&j, "in_bytes", in_bytes);
        tg_jout_uint(&j, "out_bytes", out_bytes);
        tg_jout_close(&j);
        tg_jout_line(&j);
        return;
    }
    printf("%s: %s, %s (was %s)\n", out, layout, TG_BYTES(out_bytes), TG_BYTES(in_bytes));
}

int tg_cmd_convert(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    char why[512];
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const char *in = app.args.pos[0], *out = app.args.pos[1];
    const char *layout = kinds[v.dtype][v.format].name;
    if (!layout) {
        return tg_args_refuse(&app.args, "f16 and int4 exist in the v2 layout only: leave --format "
                                         "out");
    }
    /* It would work, the writer being atomic; but moments and history may not survive the change of
     * layout, and with the original gone nobody could get them back. */
    if (tg_app_same_file(in, out)) {
        return tg_args_refuse(&app.args, "IN and OUT are the same file");
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    /* Asked first, since the library would only find out after reading all of IN's header. */
    if (!tg_app_can_write(out, why, sizeof why)) {
        tg_app_error(&app, "%s cannot be written: %s", out, why);
        return tg_app_end(&app, TG_EXIT_USAGE);
    }
    /* Moments go along where the new layout has room for them; v1 and v2 in f32 get zeros where the
     * input has none. f16 and int4 keep weights alone. Numbers that f16 cannot hold are an error
     * that names the tensor, never an infinity. */
    const tg_status status = tg_file_convert(app.ctx, in, out, kinds[v.dtype][v.format].kind);
    if (status == TG_OK) {
        print_result(&app, in, out, layout);
        code = TG_EXIT_DONE;
    } else {
        /* OUT could be written to a moment ago, so E_IO speaks of IN unless the disk is full; then
         * IN can be read, and checking it tells the two apart. */
        char message[1024];
        snprintf(message, sizeof message, "%s", tg_context_error(app.ctx));
        const bool in_is_good = tg_file_check(app.ctx, in) == TG_OK;
        tg_app_error(&app, "%s", *message ? message : tg_status_text(status));
        code = tg_app_exit_code(status, in_is_good ? TG_WRITING : TG_READING);
    }
    return tg_app_end(&app, code);
}
