/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_embed.c - tinygpt embed: texts as vectors, and how near to each other they are.
 *
 * Without options a line a text, its numbers with blanks between them, as other programs read a
 * matrix; --similar prints the table of cosines in its place.
 */
#include "app.h"
#include "print/format.h"
#include "texts.h"

#include <stdlib.h>
#include <string.h>

typedef struct values {
    const char *file;
    bool similar, raw, cut;
    int pooling;
    const char *prompt, *prompt_name;
} values;

static const tg_option options[] = {
    TG_PATH("--file", values, file, "F", "a text a line of this file; - is standard input"),
    TG_FLAG("--similar", values, similar, "the cosines of all pairs instead of the vectors"),
    TG_CHOICE("--pooling", values, pooling, "model|mean|cls|last|max|mean-sqrt-len|weighted-mean",
              "how the vectors of tokens become one"),
    TG_TEXT(
        "--prompt-name", values, prompt_name, "NAME",
        "the prompt of this name in the model's files goes in front of each text, such as query or "
        "document"),
    TG_TEXT("--prompt", values, prompt, "TEXT",
            "goes in front of each text, such as \"search_query: \" for nomic-embed"),
    TG_FLAG("--raw", values, raw, "vectors as they are, not of length 1"),
    TG_FLAG(
        "--cut", values, cut,
        "of a text with more tokens than the model looks at (its files may say 256, say) only the "
        "beginning counts; what is cut is said"),
};

static const tg_command_spec spec = {
    .name = "embed",
    .uses = TG_USES_ALL,
    .usage = "MODEL [TEXT.. | --file F] [options]",
    .about =
        "Turns texts into vectors: texts that mean the same have vectors that point the same "
        "way. Encoders such as MiniLM, ModernBERT, nomic-embed and EmbeddingGemma are made for it, "
        "and decoders such as Qwen3-Embedding; "
        "any other third-party model does it less well. Special tokens that a text spells, "
        "such as [CLS], are text.",
    .pos = { "MODEL", "TEXT" },
    .pos_min = 1,
    .pos_max = TG_ARGS_POS_MAX,
    .examples = "  tinygpt embed minilm.zip \"a cat\" \"a kitten\" \"a car\" --similar\n"
                "  tinygpt embed minilm.zip --file lines.txt --json\n"
                "  tinygpt embed qwen3-embedding \"why is the sky blue?\" --prompt-name query\n",
};

/* Of vectors of length 1, which is why --raw has no cosines. */
static double cosine(const float *a, const float *b, size_t width) {
    double dot = 0;
    for (size_t c = 0; c < width; c++) dot += (double)a[c] * (double)b[c];
    return dot;
}

static double entry(const values *v, const float *vectors, size_t width, size_t row, size_t col) {
    if (!v->similar) return (double)vectors[row * width + col];
    return cosine(vectors + row * width, vectors + col * width, width);
}

static void print_json(const values *v, const float *vectors, size_t n, size_t width) {
    tg_jout j = tg_jout_to(stdout);
    const size_t cols = v->similar ? n : width;
    tg_jout_open(&j, NULL, '{');
    tg_jout_uint(&j, "texts", n);
    tg_jout_uint(&j, "width", width);
    tg_jout_open(&j, v->similar ? "cosines" : "vectors", '[');
    for (size_t r = 0; r < n; r++) {
        tg_jout_open(&j, NULL, '[');
        for (size_t c = 0; c < cols; c++)
            tg_jout_rounded(&j, NULL, entry(v, vectors, width, r, c), 8);
        tg_jout_close(&j);
    }
    tg_jout_close(&j);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

static void print_matrix(const values *v, const float *vectors, size_t n, size_t width) {
    const size_t cols = v->similar ? n : width;
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < cols; c++)
            printf(v->similar ? "%7.4f%c" : "%.8g%c", entry(v, vectors, width, r, c),
                   c + 1 < cols ? ' ' : '\n');
}

static int embed(tg_app *app, const values *v, tg_model *model, const tg_texts *t) {
    tg_embedder *embedder = NULL;
    tg_embed_options o = tg_embed_options_default();
    o.pooling = (tg_pooling)v->pooling;
    o.raw = v->raw;
    o.prompt = v->prompt;
    o.prompt_name = v->prompt_name;
    o.cut = v->cut;
    tg_status s = tg_embedder_new(app->ctx, model, &o, &embedder);
    const size_t width = tg_embedder_width(embedder);
    if (s == TG_OK && width == 1 && tg_model_can(model, TG_CAN_RANK)) {
        tg_embedder_free(embedder);
        tg_app_error(app,
                     "%s is a reranker: tinygpt rerank scores texts with it, and embed "
                     "--pooling cls or mean gives vectors",
                     app->args.pos[0]);
        return TG_EXIT_USAGE;
    }
    float *vectors = s == TG_OK ? calloc(t->n * width + 1, sizeof *vectors) : NULL;
    int code = TG_EXIT_DONE;
    if (s == TG_OK && !vectors) {
        tg_app_error(app, "not enough memory for %s vectors", TG_COUNT(t->n));
        code = TG_EXIT_FAILED;
    } else if (s == TG_OK) {
        s = tg_embedder_run(embedder, t->text, t->n, vectors);
    }
    if (s != TG_OK) {
        code = tg_app_failed(app, app->ctx, s, s == TG_E_FULL ? TG_READING : TG_WORKING);
    } else if (code == TG_EXIT_DONE && app->globals.json) {
        print_json(v, vectors, t->n, width);
    } else if (code == TG_EXIT_DONE) {
        print_matrix(v, vectors, t->n, width);
    }
    free(vectors);
    tg_embedder_free(embedder);
    return code;
}

int tg_cmd_embed(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    code = tg_texts_want(&app, v.file, 1);
    if (code != TG_ARGS_GO_ON) return code;
    if (v.similar && v.raw)
        return tg_args_refuse(&app.args, "--similar compares vectors of length 1: leave out --raw");
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_texts t = { .n = 0 };
    tg_model *model = NULL;
    code = tg_texts_get(&app, v.file, 1, &t);
    if (code == TG_ARGS_GO_ON) {
        const tg_status s = tg_model_open(app.ctx, app.args.pos[0], &model);
        code =
            s == TG_OK ? embed(&app, &v, model, &t) : tg_app_failed(&app, app.ctx, s, TG_READING);
    }
    tg_model_free(model);
    tg_texts_free(&t);
    return tg_app_end(&app, code);
}
