/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_corpus.c - tinygpt corpus stories: a text to train on, made on the spot.
 */
#include "app.h"
#include "out_file.h"
#include "print/format.h"
#include "signals.h"

#include <string.h>

/* bytes is int64_t, as all sizes of the parser are; it is 1 at least, so the casts below are
 * safe. */
typedef struct values {
    const char *out;
    int64_t bytes;
    uint64_t seed;
    bool force;
} values;

static const tg_option options[] = {
    TG_SIZE("--bytes", values, bytes, 1, INT64_MAX, "N",
            "length of the text; 500k, 2M and 1G work"),
    TG_SEED("--seed", values, seed, "S", "same seed, same stories"),
    TG_PATH("--out", values, out, "FILE", "write there instead of to standard output",
            .written = true),
    TG_FLAG("--force", values, force, "let --out replace a file that is not of the same stories"),
};

static const tg_command_spec spec = {
    .name = "corpus stories",
    .usage = "[options]",
    .about =
        "Writes small stories from a built-in grammar: something to train on when no text is at "
        "hand. The same seed gives the same text everywhere, and a longer one only extends a "
        "shorter one.",
    .examples = "  tinygpt corpus stories --bytes 2M --out stories.txt\n",
};

/* A long text is given up at a signal. */
static int write_text(void *user, const char *bytes, size_t n_bytes) {
    return tg_signals_caught() || tg_app_write_text(user, bytes, n_bytes);
}

static int failed(tg_app *app, tg_status status) {
    if (tg_signals_caught()) return TG_EXIT_INTERRUPTED;
    return tg_app_failed(app, app->ctx, status, TG_WRITING);
}

/* Stories have no mark, being text; but those of one seed all begin alike, and a longer text of it
 * extends a shorter one. So what begins otherwise is somebody else's. */
static int write_stories(tg_app *app, const values *v, const tg_app_buffer *beginning) {
    const tg_output_rule output = { .kind = TG_OUTPUT_OTHER,
                                    .what = "the same stories",
                                    .begins = beginning->bytes,
                                    .begins_bytes = beginning->n,
                                    .stream = true };
    tg_outfile f;
    tg_status status = tg_outfile_open(app->ctx, v->out, &output, &f);
    if (status != TG_OK) {
        tg_app_error(app, "--out %s", tg_app_why(app->ctx, status));
        return tg_app_code_of(app->ctx, status, TG_READING);
    }
    const tg_status told = tg_stories(v->seed, (uint64_t)v->bytes, write_text, f.file);
    if (tg_signals_caught())
        tg_outfile_abort(&f);
    else
        status = tg_outfile_commit(&f);
    if (status == TG_OK) status = told;
    return status == TG_OK ? TG_EXIT_DONE : failed(app, status);
}

/* The context is for the file alone: no kernels, and no threads of its own. */
static int write_file(tg_app *app, const values *v) {
    enum { BEGINNING = 256 };
    tg_app_buffer beginning = { 0 };
    tg_status status = tg_app_context(app, 1, "", &app->ctx);
    if (status == TG_OK) status = tg_context_force(app->ctx, v->force);
    if (status == TG_OK) status = tg_stories(v->seed, BEGINNING, tg_app_buffer_add, &beginning);
    /* The buffer stops them for want of memory alone. */
    if (status == TG_STOPPED) status = TG_E_MEMORY;
    const int code = status == TG_OK ? write_stories(app, v, &beginning) : failed(app, status);
    tg_app_buffer_free(&beginning);
    return tg_app_end(app, code);
}

/* For standard output no context is opened: the grammar needs no kernels and no threads. */
static int stories(int argc, char **argv) {
    values v = { .bytes = 1000000, .seed = 42 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    /* Standard output would carry the text as well as the JSON, and neither could be parsed. */
    if (app.globals.json && !v.out) {
        return tg_args_refuse(&app.args,
                              "--json wants --out FILE: standard output carries the JSON");
    }
    /* The file's own name is repeated below: whoever scripts this wants to see where the text
     * went. */
    tg_signals_install();
    if (v.out) {
        code = write_file(&app, &v);
        if (code != TG_EXIT_DONE) return code;
    } else {
        const tg_status status = tg_stories(v.seed, (uint64_t)v.bytes, write_text, stdout);
        if (tg_signals_caught()) return TG_EXIT_INTERRUPTED;
        if (status == TG_OK || ferror(stdout)) return TG_EXIT_DONE; /* main reports the stream */
        return tg_app_failed(&app, NULL, status, TG_WRITING);
    }
    if (app.globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "out", v.out);
        tg_jout_int(&j, "bytes", v.bytes);
        tg_jout_uint(&j, "seed", v.seed);
        tg_jout_close(&j);
        tg_jout_line(&j);
    } else {
        printf("%s: %s of stories, seed %llu\n", v.out, TG_BYTES((uint64_t)v.bytes),
               (unsigned long long)v.seed);
    }
    return TG_EXIT_DONE;
}

/* A list of one, so that a second corpus is a line here and no new command. */
int tg_cmd_corpus(int argc, char **argv) {
    static const tg_subcommand list[] = {
        { "stories", stories, "small stories from a built-in grammar" },
    };
    return tg_app_subcommand("corpus", "Writes a text to train on.", list, 1, argc, argv);
}
