/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_verify.c - tinygpt verify: is a file whole, and are two of them the same run?
 *
 * Exit codes: 0 whole or equal, 1 different, 2 not readable or damaged.
 */
#include "app.h"

/* Code 1 for "different", as diff and cmp have it, so that a script can tell it from a bad file. */
static const tg_command_spec spec = {
    .name = "verify",
    .usage = "A [B]",
    .about =
        "With one file: checks all its checksums and ranges. With two: compares them tensor by "
        "tensor, bit for bit, then step, options and history of runs; a run, a GGUF file and a "
        "folder of one model are equal. Exit code 0: whole or equal, 1: different, 2: not readable "
        "or damaged.",
    .pos = { "A", "B" },
    .pos_min = 1,
    .pos_max = 2,
};

/* The library's message says which checksum or range it was. */
static int check_one(tg_app *app, const char *path) {
    bool checksummed = false;
    tg_status status = tg_file_check(app->ctx, path);
    if (status == TG_OK) status = tg_file_has_checksums(app->ctx, path, &checksummed);
    if (status != TG_OK) {
        const int code = tg_app_failed(app, app->ctx, status, TG_READING);
        return status == TG_E_NUMBER ? TG_EXIT_USAGE
                                     : code; /* damaged, and nothing that was done */
    }
    if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_bool(&j, "whole", true);
        tg_jout_bool(&j, "checksummed", checksummed);
        tg_jout_close(&j);
        tg_jout_line(&j);
    } else if (checksummed) {
        printf("%s is whole\n", path);
    } else {
        printf("%s: tables, sizes and numbers are right; it has no checksums to try its bytes by\n",
               path);
    }
    return TG_EXIT_DONE;
}

/* The library's line names the first difference: tensor, element and both values. */
static int compare_two(tg_app *app, const char *a, const char *b) {
    bool equal = false;
    tg_app_buffer line = { 0 };
    const tg_status status = tg_file_compare(app->ctx, a, b, &equal, tg_app_buffer_add, &line);
    int code = equal ? TG_EXIT_DONE : TG_EXIT_FAILED;
    /* The library ends its line; here the line becomes part of JSON, or gets its end from
     * printf. */
    while (line.n > 0 && line.bytes[line.n - 1] == '\n') line.bytes[--line.n] = '\0';
    if (status != TG_OK) {
        code = tg_app_failed(app, app->ctx, status, TG_READING);
    } else if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_bool(&j, "equal", equal);
        tg_jout_text(&j, "text", line.bytes);
        tg_jout_close(&j);
        tg_jout_line(&j);
    } else {
        printf("%s\n", line.bytes ? line.bytes : equal ? "equal" : "different");
    }
    tg_app_buffer_free(&line);
    return code;
}

int tg_cmd_verify(int argc, char **argv) {
    tg_app app;
    int code = tg_app_start(&app, &spec, NULL, 0, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    const char *const *files = app.args.pos;
    /* One name is a question about damage, two are one about identity: a file of another layout, or
     * one without checksums, can be equal without being provably whole. */
    code = app.args.n_pos == 1 ? check_one(&app, files[0]) : compare_two(&app, files[0], files[1]);
    return tg_app_end(&app, code);
}
