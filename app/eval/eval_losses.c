/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_losses.c - eval --losses: each token of a text and its loss, a JSON object a line, as the
 * library tells of them while it finds the mean that eval prints.
 */
#include "eval/eval_losses.h"

typedef struct losses {
    const tg_tokenizer *tok;
    uint64_t n;
} losses;

static int put_token(void *user, uint64_t token, int32_t id, double loss) {
    losses *l = user;
    size_t n;
    const char *bytes = tg_tokenizer_bytes(l->tok, id, &n);
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_uint(&j, "token", token);
    tg_jout_int(&j, "id", id);
    tg_jout_text_n(&j, "text", bytes, n);
    tg_jout_double(&j, "loss", loss);
    tg_jout_close(&j);
    tg_jout_line(&j);
    l->n++;
    return tg_app_reader_gone();
}

tg_status tg_eval_losses(tg_app *app, tg_model *model, tg_text *text, double val) {
    losses l = { .tok = tg_model_tokenizer(model) };
    double mean;
    const tg_status status =
        tg_model_eval_tokens(app->ctx, model, text, val, 0, put_token, &l, &mean);
    if (status != TG_OK) return status == TG_STOPPED ? TG_OK : status;
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_bool(&j, "done", true);
    tg_jout_uint(&j, "tokens", l.n);
    tg_jout_double(&j, "loss", mean);
    tg_jout_close(&j);
    tg_jout_line(&j);
    return TG_OK;
}
