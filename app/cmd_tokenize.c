/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tokenize.c - tinygpt tokenize: the tokens of a text, as the model sees them.
 *
 * A piece that is no whole UTF-8 character (a byte model's view of "é" is two of them) is shown
 * as <0xC3>, on the terminal and in JSON, so that nothing is lost. The file may be a model, of ours
 * or GGUF, of which only the vocabulary is read, or a tokenizer.json.
 */
#include "app.h"
#include "format.h"
#include "pieces.h"

#include <stdlib.h>
#include <string.h>

/* The ids of a text take four times its size, hence a limit. */
enum { TEXT_LIMIT = 256 << 20, BYTE_VOCABULARY = 256 };

typedef struct values {
    const char *file;
    bool special, ends;
} values;

static const tg_option options[] = {
    TG_PATH("--file", values, file, "F", "the text is in this file; - is standard input"),
    TG_FLAG("--special", values, special, "special tokens that the text spells are taken as such"),
    TG_FLAG("--ends", values, ends, "with the tokens that the file asks for at the ends"),
};

static const tg_command_spec spec = {
    .name = "tokenize",
    .usage = "MODEL [TEXT | --file F] [options]",
    .about = "Shows the tokens of a text: how many, their ids and what each stands for.",
    .pos = { "MODEL", "TEXT" },
    .pos_min = 1,
    .pos_max = 2,
    .examples = "  tinygpt tokenize run.tinygpt \"To be, or not to be\"\n"
                "  tinygpt tokenize tokenizer.json --file notes.txt --json\n",
};

/* The ids are exact; the pieces are for reading. Both lists have the same length, so that a program
 * can walk them together. */
static void print_json(const tg_tokenizer *tok, const int32_t *ids, size_t n) {
    char piece[TG_PIECE_BYTES];
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_open(&j, "ids", '[');
    for (size_t i = 0; i < n; i++) tg_jout_int(&j, NULL, ids[i]);
    tg_jout_close(&j);
    tg_jout_open(&j, "pieces", '[');
    for (size_t i = 0; i < n; i++) {
        tg_piece_text(tok, ids[i], piece);
        /* A piece may be a zero byte, which a C string ends at. */
        size_t n_bytes = 0;
        const char *raw = tg_tokenizer_bytes(tok, ids[i], &n_bytes);
        const bool zero = raw && n_bytes == 1 && raw[0] == '\0';
        tg_jout_text_n(&j, NULL, piece, zero ? 1 : strlen(piece));
    }
    tg_jout_close(&j);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

/* A token a line: id, bytes, and the text between bars, so that its blanks can be seen. */
static void print_lines(const tg_app *app, const tg_tokenizer *tok, const int32_t *ids, size_t n) {
    enum { BYTES_SHOWN = 8 };
    char safe[TG_PIECE_BYTES];
    const tg_term *out = &app->out;
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes = 0;
        char hex[3 * BYTES_SHOWN + 4] = "";
        const char *bytes = tg_tokenizer_bytes(tok, ids[i], &n_bytes);
        for (size_t k = 0; k < n_bytes && k < BYTES_SHOWN; k++) {
            snprintf(hex + 3 * k, 4, "%02x ", (unsigned char)bytes[k]);
        }
        if (n_bytes > BYTES_SHOWN) memcpy(hex + 3 * BYTES_SHOWN, "..", 3);
        tg_piece_visible(tok, ids[i], safe);
        printf("%s%8d%s  %-27s|%s|\n", tg_term_style(out, TG_DIM), (int)ids[i],
               tg_term_style(out, TG_PLAIN), hex, safe);
    }
}

/* %-6s counts bytes, so a piece of several of them makes its cell wider; pieces of a byte model
 * have one. A cell is 13 columns: six for the id, a blank, six for the piece. */
static void print_cells(const tg_app *app, const tg_tokenizer *tok, const int32_t *ids, size_t n) {
    char safe[TG_PIECE_BYTES];
    const tg_term *out = &app->out;
    const int per_line = tg_term_width(out) / 13 > 0 ? tg_term_width(out) / 13 : 1;
    for (size_t i = 0; i < n; i++) {
        tg_piece_visible(tok, ids[i], safe);
        printf("%s%6d%s %-6s", tg_term_style(out, TG_DIM), (int)ids[i],
               tg_term_style(out, TG_PLAIN), safe);
        if ((int)(i % (size_t)per_line) == per_line - 1 || i + 1 == n) putchar('\n');
    }
}

static void print_table(const tg_app *app, const tg_tokenizer *tok, const int32_t *ids, size_t n) {
    const tg_term *out = &app->out;
    if (tg_tokenizer_count(tok) == BYTE_VOCABULARY) {
        print_cells(app, tok, ids, n);
    } else {
        print_lines(app, tok, ids, n);
    }
    printf("%s%s token%s%s\n", tg_term_style(out, TG_BOLD), TG_COUNT(n), n == 1 ? "" : "s",
           tg_term_style(out, TG_PLAIN));
}

/* As many ids as a text has bytes are nearly always enough. Where they are not, E_FULL says how
 * many there are, and the text goes through once more. */
static int tokenize(tg_app *app, const tg_tokenizer *tok, const values *v, const char *text,
                    size_t n_bytes) {
    const unsigned flags = (v->special ? TG_ENCODE_SPECIAL : 0u) | (v->ends ? TG_ENCODE_ENDS : 0u);
    enum { ENDS = 8 };
    size_t n = n_bytes + ENDS;
    int32_t *ids = NULL;
    tg_status status = TG_E_FULL;
    for (int turn = 0; turn < 2 && status == TG_E_FULL; turn++) {
        const size_t room = n;
        free(ids);
        ids = malloc(room * sizeof *ids);
        if (!ids) {
            tg_app_error(app, "not enough memory for %s tokens", TG_COUNT(room));
            return TG_EXIT_FAILED;
        }
        status = tg_tokenizer_encode(app->ctx, tok, text, n_bytes, flags, ids, room, &n);
    }
    int code = TG_EXIT_DONE;
    if (status != TG_OK) {
        code = tg_app_failed(app, app->ctx, status, TG_WORKING);
    } else if (app->globals.json) {
        print_json(tok, ids, n);
    } else {
        print_table(app, tok, ids, n);
    }
    free(ids);
    return code;
}

/* The text is read before the model is opened, so that a pipe's writer is not kept waiting by
 * it. */
int tg_cmd_tokenize(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    /* Exactly one source. An empty TEXT is one: it has no tokens, which is a fair answer. */
    const bool has_text = app.args.n_pos == 2;
    if (has_text == (v.file != NULL)) {
        return tg_args_refuse(&app.args, "want TEXT or --file F, have %s",
                              has_text ? "both" : "none");
    }
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    char *owned = NULL;
    const char *text = has_text ? app.args.pos[1] : "";
    size_t n_bytes = strlen(text);
    if (v.file) {
        code = tg_app_read_file(&app, v.file, TEXT_LIMIT, &owned, &n_bytes);
        text = owned;
    }
    tg_tokenizer *tok = NULL;
    if (code == TG_ARGS_GO_ON) {
        const tg_status status = tg_tokenizer_open(app.ctx, app.args.pos[0], &tok);
        code = status == TG_OK ? tokenize(&app, tok, &v, text, n_bytes)
                               : tg_app_failed(&app, app.ctx, status, TG_READING);
    }
    tg_tokenizer_free(tok);
    free(owned);
    return tg_app_end(&app, code);
}
