/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_chats.c - see train_chats.h. Files are read whole, and forgotten when their conversations
 * have become tokens.
 */
#include "train/train_chats.h"

#include "print/format.h"
#include "talk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const size_t file_max = (size_t)1 << 32;

static bool is_named(const char *path) {
    const size_t n = strlen(path);
    return n > 6 && strcmp(path + n - 6, ".jsonl") == 0;
}

bool tg_trainchats_named(const tg_args_list *data) {
    for (size_t i = 0; i < data->n; i++)
        if (is_named(data->item[i])) return true;
    return false;
}

/* Lines of files one behind the other; a last line without an end gets one, so that the numbers in
 * messages are those of the first file, and go on in the next. */
static int add_files(tg_app *app, const tg_args_list *list, tg_app_buffer *all) {
    for (size_t i = 0; i < list->n; i++) {
        char *bytes;
        size_t n;
        if (!is_named(list->item[i])) {
            tg_app_error(app,
                         "%s: want lines of JSON (.jsonl), as the other files have, or texts "
                         "alone",
                         list->item[i]);
            return TG_EXIT_USAGE;
        }
        const int code = tg_app_read_file(app, list->item[i], file_max, &bytes, &n);
        if (code != TG_ARGS_GO_ON) return code;
        int failed = tg_app_buffer_add(all, bytes, n);
        if (!failed && n && bytes[n - 1] != '\n') failed = tg_app_buffer_add(all, "\n", 1);
        free(bytes);
        if (failed) {
            tg_app_error(app, "not enough memory for %s", list->item[i]);
            return TG_EXIT_FAILED;
        }
    }
    return TG_ARGS_GO_ON;
}

static void tell(const tg_app *app, const char *name, bool pairs, const tg_chats_info *info) {
    char safe[256];
    fprintf(app->out.file, "%s\n\n", tg_context_banner(app->ctx));
    fprintf(app->out.file,
            "  %-9s %s: %s %s, %s tokens, %s of them answers; the longest row has %s\n", "text",
            tg_fmt_safe(safe, sizeof safe, name), TG_COUNT(info->conversations),
            pairs ? "pairs" : "conversations", TG_COUNT(info->tokens), TG_COUNT(info->targets),
            TG_COUNT(info->longest));
}

int tg_trainchats_open(tg_app *app, const char *vocabulary, bool resumed, const char *wanted,
                       const char *date, double beta, const tg_args_list *data,
                       const tg_args_list *val, bool quiet, tg_text **out) {
    const char *template_name;
    char *template_text = NULL;
    tg_app_buffer all = { 0 };
    tg_tokenizer *tok = NULL;
    tg_chats_info info;
    int code = tg_talk_template(app, wanted, &template_name, &template_text);
    if (code == TG_ARGS_GO_ON) code = add_files(app, data, &all);
    const uint64_t val_from = val->n ? all.n : 0;
    if (code == TG_ARGS_GO_ON) code = add_files(app, val, &all);
    if (code == TG_ARGS_GO_ON) {
        tg_status s = tg_tokenizer_open(app->ctx, vocabulary, &tok);
        if (s == TG_OK && (date || !resumed))
            code = tg_talk_date(app, date, template_name, tok, quiet);
        if (s == TG_OK && code == TG_ARGS_GO_ON)
            s = beta > 0 ? tg_text_of_pairs(app->ctx, tok, template_name, data->item[0], all.bytes,
                                            all.n, val_from, beta, &info, out)
                         : tg_text_of_chats(app->ctx, tok, template_name, data->item[0], all.bytes,
                                            all.n, val_from, &info, out);
        if (s != TG_OK) code = tg_app_failed(app, app->ctx, s, TG_READING);
        if (s == TG_E_UNSUPPORTED) tg_talk_template_names();
    }
    if (code == TG_ARGS_GO_ON && !quiet) tell(app, data->item[0], beta > 0, &info);
    tg_tokenizer_free(tok);
    tg_app_buffer_free(&all);
    free(template_text);
    return code;
}
