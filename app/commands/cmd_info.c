/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_info.c - tinygpt info: what is in a file, without loading it.
 */
#include "app.h"

/* Reads header and tables, not the tensors; their checksums are verify's affair. */
static const tg_command_spec spec = {
    .name = "info",
    .usage = "FILE",
    .about = "Describes a model file: its format, sizes, tensors and history.",
    .pos = { "FILE" },
    .pos_min = 1,
    .pos_max = 1,
};

int tg_cmd_info(int argc, char **argv) {
    tg_app app;
    int code = tg_app_start(&app, &spec, NULL, 0, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    /* The text is collected first: half a description followed by an error would be worse. */
    tg_app_buffer text = { 0 };
    const tg_status status =
        tg_file_info(app.ctx, app.args.pos[0], app.globals.json, tg_app_buffer_add, &text);
    code = TG_EXIT_DONE;
    if (status != TG_OK) {
        code = tg_app_failed(&app, app.ctx, status, TG_READING);
    } else if (text.n > 0) {
        fwrite(text.bytes, 1, text.n, stdout);
        if (text.bytes[text.n - 1] != '\n') putchar('\n');
    }
    tg_app_buffer_free(&text);
    return tg_app_end(&app, code);
}
