/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_losses.c - eval --losses: each token of a text and its loss, a JSON object a line. Windows
 * are those of eval (training/eval_tokens.c; of models of bytes a window begins with the last byte
 * of the one before), so that the mean is what eval prints.
 */
#include "eval/eval_losses.h"

#include "eval/eval_score.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW = 512 };

typedef struct losses {
    tg_scorer score;
    bool of_bytes;
    size_t step;     /* tokens of a window */
    int32_t *ids;    /* [step + 1], of one, behind what texts begin with */
    double *logprob; /* [step + 1] */
    double sum;
    uint64_t n_predicted;
} losses;

static void put_token(const losses *l, size_t at, int32_t id, double loss) {
    size_t n;
    const char *bytes = tg_tokenizer_bytes(l->score.tok, id, &n);
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_uint(&j, "token", at);
    tg_jout_int(&j, "id", id);
    tg_jout_text_n(&j, "text", bytes, n);
    tg_jout_double(&j, "loss", loss);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

/* Tokens [first, first + n) of the text, of which the first has something to be predicted from
 * only behind a token that texts begin with. */
static tg_status window(losses *l, size_t first, size_t n, size_t ahead) {
    memcpy(l->ids, l->score.ids, ahead * sizeof *l->ids);
    memcpy(l->ids + ahead, l->score.ids + ahead + first, n * sizeof *l->ids);
    const tg_status status = tg_scorer_run(&l->score, l->ids, n + ahead, 1, l->logprob, NULL);
    for (size_t i = 1; status == TG_OK && i < n + ahead; i++) {
        put_token(l, first + i - ahead, l->ids[i], -l->logprob[i - 1]);
        l->sum -= l->logprob[i - 1];
        l->n_predicted++;
    }
    return status;
}

static tg_status all_windows(losses *l, const char *bytes, size_t n_bytes) {
    tg_status status = tg_scorer_encode(&l->score, bytes, n_bytes);
    const size_t ahead = l->score.begins, n = l->score.n - ahead, own = l->step - ahead;
    for (size_t first = 0; status == TG_OK && first < n; first += own - l->of_bytes) {
        const size_t now = n - first < own ? n - first : own;
        if ((l->of_bytes && now < own) || tg_app_reader_gone()) break;
        status = window(l, first, now, ahead);
    }
    return status;
}

/* A last line with what eval prints. */
static int put_mean(tg_app *app, const losses *l) {
    if (l->n_predicted == 0) {
        tg_app_error(app, "--losses: want a text of a window of %zu tokens, have %zu", l->step,
                     l->score.n);
        return TG_EXIT_USAGE;
    }
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_bool(&j, "done", true);
    tg_jout_uint(&j, "tokens", l->n_predicted);
    tg_jout_double(&j, "loss", l->sum / (double)l->n_predicted);
    tg_jout_close(&j);
    tg_jout_line(&j);
    return TG_EXIT_DONE;
}

/* As eval decides it: floats that may be trained, and tokens that are bytes, in whatever family. */
static bool is_of_bytes(const tg_model *model) {
    const tg_tokenizer *tok = tg_model_tokenizer(model);
    if (!tg_model_can(model, TG_CAN_TRAIN) || tg_tokenizer_count(tok) != 256) return false;
    for (int32_t i = 0; i < 256; i++) {
        size_t n;
        const char *piece = tg_tokenizer_piece(tok, i, &n);
        if (n != 1 || (uint8_t)*piece != i) return false;
    }
    return true;
}

/* A window of bytes has one more than the session: the last one is predicted alone. */
int tg_eval_losses(tg_app *app, tg_model *model, const char *bytes, size_t n_bytes) {
    tg_model_info info;
    losses l = { .sum = 0 };
    tg_status status = tg_model_get_info(model, &info);
    if (status != TG_OK) return tg_app_failed(app, app->ctx, status, TG_READING);
    l.of_bytes = is_of_bytes(model);
    const size_t most = (size_t)info.config.ctx,
                 limit = l.of_bytes && info.config.vocab == 256 ? most : WINDOW,
                 short_of = most < limit ? most : limit;
    int code = tg_scorer_open(&l.score, app, model, short_of);
    l.step = short_of + l.of_bytes;
    if (code == TG_ARGS_GO_ON) {
        l.ids = malloc((l.step + 1) * sizeof *l.ids);
        l.logprob = malloc((l.step + 1) * sizeof *l.logprob);
        status = l.ids && l.logprob ? all_windows(&l, bytes, n_bytes) : TG_E_MEMORY;
        code =
            status == TG_OK ? put_mean(app, &l) : tg_app_failed(app, app->ctx, status, TG_READING);
    }
    free(l.ids);
    free(l.logprob);
    tg_scorer_free(&l.score);
    return code;
}
