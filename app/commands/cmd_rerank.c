/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_rerank.c - tinygpt rerank: texts in the order in which they answer a query, best first.
 */
#include "app.h"
#include "print/format.h"
#include "texts.h"

#include <math.h>
#include <stdlib.h>

typedef struct values {
    const char *file;
    int64_t top;
    bool cut;
} values;

static const tg_option options[] = {
    TG_PATH("--file", values, file, "F", "a text a line of this file; - is standard input"),
    TG_INT("--top", values, top, 1, INT32_MAX, "N", "the best N alone (default: all)"),
    TG_FLAG("--cut", values, cut,
            "of a text that does not fit beside the query only the beginning counts; what is cut "
            "is said"),
};

static const tg_command_spec spec = {
    .name = "rerank",
    .uses = TG_USES_ALL,
    .usage = "MODEL QUERY [TEXT.. | --file F] [options]",
    .about = "Scores how well each text answers the query, and prints them, best first: a line of "
             "the score, the text's number, and the text. MODEL is a reranker (a cross-encoder): "
             "BERT or ModernBERT with a head for one label, such as ms-marco-MiniLM and "
             "gte-reranker-modernbert. Scores are the head's numbers as they are, of any size.",
    .pos = { "MODEL", "QUERY", "TEXT" },
    .pos_min = 2,
    .pos_max = TG_ARGS_POS_MAX,
    .examples =
        "  tinygpt rerank minilm-reranker.zip \"how do cats purr?\" --file lines.txt --top 3\n"
        "  tinygpt rerank minilm-reranker.zip \"how do cats purr?\" \"a text\" \"another\" "
        "--json\n",
};

typedef struct scored {
    size_t number;
    double score;
} scored;

/* Best first; of equal ones the first. A score that is no number comes last. */
static int by_score(const void *a, const void *b) {
    const scored *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score)) return isnan(x->score) ? 1 : -1;
    if (x->score != y->score && !isnan(x->score)) return x->score < y->score ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

static void print_json(const scored *s, size_t n, size_t top) {
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_uint(&j, "texts", n);
    tg_jout_open(&j, "ranking", '[');
    for (size_t i = 0; i < top; i++) {
        tg_jout_open(&j, NULL, '{');
        tg_jout_uint(&j, "text", s[i].number);
        tg_jout_rounded(&j, "score", s[i].score, 8);
        tg_jout_close(&j);
    }
    tg_jout_close(&j);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

/* A text is one line here, whatever is in it. */
static void print_lines(const scored *s, const tg_texts *t, size_t top) {
    for (size_t i = 0; i < top; i++) {
        const tg_embed_text *text = &t->text[s[i].number - 1];
        printf("%10.5f %5zu  ", s[i].score, s[i].number);
        for (size_t k = 0; k < text->n_bytes; k++) {
            const unsigned char c = (unsigned char)text->text[k];
            const bool c1 = c == 0xc2 && k + 1 < text->n_bytes &&
                            ((unsigned char)text->text[k + 1] & 0xe0) == 0x80;
            putchar(c < 0x20 || c == 0x7f || c1 ? ' ' : c);
            k += c1;
        }
        putchar('\n');
    }
}

static int print(const tg_app *app, const values *v, const tg_texts *t, const float *scores,
                 scored *list) {
    const size_t top = v->top && (size_t)v->top < t->n ? (size_t)v->top : t->n;
    for (size_t i = 0; i < t->n; i++) list[i] = (scored) { i + 1, (double)scores[i] };
    qsort(list, t->n, sizeof *list, by_score);
    if (app->globals.json)
        print_json(list, t->n, top);
    else
        print_lines(list, t, top);
    return TG_EXIT_DONE;
}

static int rerank(tg_app *app, const values *v, tg_model *model, const tg_texts *t) {
    tg_embedder *embedder = NULL;
    tg_embed_options o = tg_embed_options_default();
    o.pooling = TG_POOLING_RANK;
    o.cut = v->cut;
    float *scores = calloc(t->n + 1, sizeof *scores);
    scored *list = calloc(t->n + 1, sizeof *list);
    int code = TG_EXIT_FAILED;
    if (!scores || !list) {
        tg_app_error(app, "not enough memory for %s scores", TG_COUNT(t->n));
    } else {
        tg_status s = tg_embedder_new(app->ctx, model, &o, &embedder);
        if (s == TG_OK) s = tg_embedder_query(embedder, app->args.pos[1]);
        if (s == TG_OK) s = tg_embedder_run(embedder, t->text, t->n, scores);
        code = s == TG_OK
                   ? print(app, v, t, scores, list)
                   : tg_app_failed(app, app->ctx, s, s == TG_E_FULL ? TG_READING : TG_WORKING);
    }
    free(scores);
    free(list);
    tg_embedder_free(embedder);
    return code;
}

int tg_cmd_rerank(int argc, char **argv) {
    values v = { 0 };
    const tg_option_group group = TG_GROUP("Options", options, &v);
    tg_app app;
    int code = tg_app_parse(&app, &spec, &group, 1, argc, argv);
    if (code != TG_ARGS_GO_ON) return code;
    code = tg_texts_want(&app, v.file, 2);
    if (code != TG_ARGS_GO_ON) return code;
    code = tg_app_open(&app);
    if (code != TG_ARGS_GO_ON) return code;
    tg_texts t = { .n = 0 };
    tg_model *model = NULL;
    code = tg_texts_get(&app, v.file, 2, &t);
    if (code == TG_ARGS_GO_ON) {
        const tg_status s = tg_model_open(app.ctx, app.args.pos[0], &model);
        code =
            s == TG_OK ? rerank(&app, &v, model, &t) : tg_app_failed(&app, app.ctx, s, TG_READING);
    }
    tg_model_free(model);
    tg_texts_free(&t);
    return tg_app_end(&app, code);
}
