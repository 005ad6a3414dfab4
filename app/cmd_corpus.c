/*
 * cmd_corpus.c - tinygpt corpus stories: a text to train on, made on the spot.
 */
#define _XOPEN_SOURCE 700 /* lstat, unlink */
#include "app.h"
#include "format.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* bytes is int64_t, as all sizes of the parser are; it is 1 at least, so the casts below are
 * safe. */
typedef struct values {
    const char *out;
    int64_t bytes;
    uint64_t seed;
} values;

static const tg_option options[] = {
    TG_SIZE("--bytes", values, bytes, 1, INT64_MAX, "N",
            "length of the text; 500k, 2M and 1G work"),
    TG_SEED("--seed", values, seed, "S", "same seed, same stories"),
    TG_PATH("--out", values, out, "FILE", "write there instead of to standard output"),
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

/* Writes to the file, and takes away what a failed attempt left of a file that was not there. One
 * that was there has been emptied by fopen, and stays: its owner may have linked it, or be reading
 * it. lstat, so that a dangling link counts as there. The text is written in place and not renamed
 * into it: /dev/stdout and pipes are fine targets for it. */
static int write_file(tg_app *app, const values *v) {
    struct stat before;
    const bool existed = lstat(v->out, &before) == 0;
    errno = 0;
    FILE *f = fopen(v->out, "wb");
    if (!f) {
        tg_app_error(app, "--out %s: %s", v->out, strerror(errno));
        return TG_EXIT_USAGE;
    }
    const tg_status status = tg_stories(v->seed, (uint64_t)v->bytes, tg_app_write_text, f);
    /* A full disk may show in a write or only in the last flush, which fclose does. */
    const bool lost = ferror(f) != 0;
    int reason = errno;
    bool closed = true;
    if (fclose(f) != 0) {
        closed = false;
        if (!lost) reason = errno;
    }
    if (status == TG_OK && !lost && closed) return TG_EXIT_DONE;
    if (!existed) unlink(v->out);
    if (lost || !closed) {
        tg_app_error(app, "%s could not be written: %s", v->out, strerror(reason));
        return TG_EXIT_FAILED;
    }
    return tg_app_failed(app, NULL, status, TG_WRITING);
}

/* No context is opened: the grammar needs no kernels, no threads and no memory to speak of. */
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
    if (v.out) {
        code = write_file(&app, &v);
        if (code != TG_EXIT_DONE) return code;
    } else {
        const tg_status status = tg_stories(v.seed, (uint64_t)v.bytes, tg_app_write_text, stdout);
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
