/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_tokenize.c - tinygpt tokenize: the tokens of a text, as the model sees them.
 *
 * A piece that is no whole UTF-8 character (a byte model's view of "é" is two of them) is shown
 * as <0xC3>, on the terminal and in JSON, so that nothing is lost. The file may be a model, of ours
 * or GGUF, of which only the vocabulary is read, or a tokenizer.json.
 */
#include "app.h"
#include "out_file.h"
#include "print/format.h"
#include "print/pieces.h"
#include "train/train_data.h"

#include <stdlib.h>
#include <string.h>

/* The ids of a text take four times its size, hence a limit. */
enum { TEXT_LIMIT = 256 << 20, BYTE_VOCABULARY = 256, DEFAULT_VOCABULARY = 4096 };

typedef struct values {
    const char *file;
    bool special, ends;
    tg_args_list train;
    const char *kind, *out;
    int64_t vocab;
    bool force;
} values;

static const tg_option options[] = {
    TG_PATH("--file", values, file, "F", "the text is in this file; - is standard input"),
    TG_FLAG("--special", values, special, "special tokens that the text spells are taken as such"),
    TG_FLAG("--ends", values, ends, "with the tokens that the file asks for at the ends"),
};

static const tg_option train_options[] = {
    TG_PATHS("--train", values, train, "TEXT",
             "train a vocabulary on this text instead; a folder: all texts in it; -: standard "
             "input; given again: more text"),
    TG_INT("--vocab", values, vocab, 2, 1 << 20, "N",
           "tokens of the vocabulary (default 4096; of chars as many as the text has)",
           .hide_default = true),
    TG_TEXT("--kind", values, kind, "KIND",
            "bpe (default): pieces of words, over bytes; wordpiece: BERT's, lower case; chars: "
            "every character of the text"),
    TG_PATH("--out", values, out, "FILE", "where it is written (default tokenizer.json)",
            .written = true),
    TG_FLAG("--force", values, force, "replace files of other kinds"),
};

static const tg_command_spec spec = {
    .name = "tokenize",
    .usage = "MODEL [TEXT | --file F] | --train TEXT.. [options]",
    .about =
        "Shows the tokens of a text: how many, their ids and what each stands for. With --train "
        "it makes a vocabulary out of texts, which train --tokenizer takes.",
    .pos = { "MODEL", "TEXT" },
    .pos_min = 0,
    .pos_max = 2,
    .examples =
        "  tinygpt tokenize run.tinygpt \"To be, or not to be\"\n"
        "  tinygpt tokenize tokenizer.json --file notes.txt --json\n"
        "  tinygpt tokenize --train book.txt --vocab 2048 --out tokenizer.json\n"
        "  tinygpt train --data book.txt --preset modern-small --tokenizer tokenizer.json\n",
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

/* ------------------------------------------------------------------------------ --train */

static int write_piece(void *user, const char *bytes, size_t n_bytes) {
    return fwrite(bytes, 1, n_bytes, user) != n_bytes;
}

/* What it does to its own text: the larger it is, the more bytes are a token. */
static void tell_trained(tg_app *app, const values *v, const tg_text *text, const char *out) {
    tg_tokenizer *tok = NULL;
    if (tg_tokenizer_open(app->ctx, out, &tok) != TG_OK) return;
    const size_t n = tg_tokenizer_count(tok);
    char name[256];
    if (app->globals.json) {
        tg_jout j = tg_jout_to(stdout);
        tg_jout_open(&j, NULL, '{');
        tg_jout_text(&j, "out", out);
        tg_jout_text(&j, "kind", v->kind);
        tg_jout_uint(&j, "tokens", n);
        tg_jout_uint(&j, "text_bytes", tg_text_bytes(text));
        tg_jout_close(&j);
        tg_jout_line(&j);
    } else {
        printf("%s: %s tokens (%s) from %s of text\n", tg_fmt_safe(name, sizeof name, out),
               TG_COUNT(n), v->kind, TG_BYTES(tg_text_bytes(text)));
    }
    tg_tokenizer_free(tok);
}

/* The place is tried before the work, and written to behind it. */
static int train(tg_app *app, values *v) {
    const char *const out = v->out ? v->out : "tokenizer.json";
    const tg_args_list none = { .n = 0 };
    tg_text *text = NULL;
    tg_outfile file = { .file = NULL };
    if (!v->kind) v->kind = tg_tokenizer_kind_at(0);
    if (!v->vocab && strcmp(v->kind, "chars") != 0) v->vocab = DEFAULT_VOCABULARY;
    tg_context_force(app->ctx, v->force);
    const int code = tg_traindata_open(app, "--train", &v->train, &none, NULL, &out, 1,
                                       app->globals.json, &text);
    if (code != TG_ARGS_GO_ON) return code;
    tg_status s = tg_outfile_open(app->ctx, out, &tg_output_vocabulary, &file);
    if (s == TG_OK) s = tg_tokenizer_train(text, v->kind, (size_t)v->vocab, write_piece, file.file);
    if (s == TG_OK)
        s = tg_outfile_commit(&file);
    else
        tg_outfile_abort(&file);
    if (s == TG_OK) tell_trained(app, v, text, out);
    tg_text_free(text);
    return s == TG_OK ? TG_EXIT_DONE : tg_app_failed(app, app->ctx, s, TG_READING);
}

/* The options of one use do not go with the other. */
static int check_options(const tg_args *args, const values *v) {
    static const char *const of_training[] = { "--vocab", "--kind", "--out", "--force" };
    const bool has_text = args->n_pos == 2;
    if (v->train.n) {
        if (args->n_pos) return tg_args_refuse(args, "want MODEL or --train TEXT, have both");
        if (v->file || v->special || v->ends)
            return tg_args_refuse(args, "--file, --special and --ends do not go with --train");
        return TG_ARGS_GO_ON;
    }
    for (size_t i = 0; i < sizeof of_training / sizeof of_training[0]; i++)
        if (tg_args_given(args, of_training[i]))
            return tg_args_refuse(args, "%s wants --train TEXT", of_training[i]);
    if (args->n_pos == 0) return tg_args_refuse(args, "MODEL is missing");
    if (has_text == (v->file != NULL)) { /* exactly one; an empty TEXT is one, of no tokens */
        return tg_args_refuse(args, "want TEXT or --file F, have %s", has_text ? "both" : "none");
    }
    return TG_ARGS_GO_ON;
}

/* ---------------------------------------------------------------------------- the command */

/* The text is read before the model is opened, so that a pipe's writer is not kept waiting by
 * it. */
int tg_cmd_tokenize(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group groups[] = { TG_GROUP("Options", options, &v),
                                       TG_GROUP("A new vocabulary", train_options, &v) };
    tg_app app;
    int code = tg_app_parse(&app, &spec, groups, 2, argc, argv);
    if (code == TG_ARGS_GO_ON) code = check_options(&app.args, &v);
    if (code == TG_ARGS_GO_ON) code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.train.n) return tg_app_end(&app, train(&app, &v));
    const bool has_text = app.args.n_pos == 2;
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
