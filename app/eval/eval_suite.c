/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_suite.c - see eval_suite.h. An answer's likelihood is the sum of its tokens' logarithms, and
 * beside it the same a byte, which does not prefer short ones: acc and acc_norm of EleutherAI's
 * lm-evaluation-harness. Its tokens are those of question and answer together behind what they have
 * in common with the question's, so that a border may fall as the vocabulary has it.
 */
#include "eval/eval_suite.h"

#include "eval/eval_score.h"
#include "eval/suite_forms.h"
#include "print/format.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 17 }; /* a question and 16 answers */

typedef struct line {
    size_t number; /* from 1 */
    char *field[FIELDS_MAX];
    size_t n;
} line;

typedef struct tally {
    size_t asked, right, right_per_byte;
    double by_chance;
} tally;

typedef struct suite {
    tg_app *app;
    const char *name;
    tg_scorer score;
    int32_t *asked; /* [room] of the question */
    double *logprob;
    bool *likeliest;
    size_t room;
    tg_app_buffer text; /* of question and answer */
    tally choice, exact;
} suite;

/* --------------------------------------------------------------------------------------- reading
 */

/* In place; false: a backslash before something else. */
static bool unescape(char *text) {
    char *to = text;
    for (; *text; text++) {
        if (*text == '\\') {
            text++;
            if (*text != 't' && *text != 'n' && *text != '\\') return false;
            *to++ = (char)(*text == 't' ? '\t' : *text == 'n' ? '\n' : '\\');
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
    return true;
}

/* text is terminated, and cut at its tabs. NULL, or what is wrong. */
static const char *parse(char *text, line *out) {
    out->n = 0;
    for (char *tab = text; tab; text = tab + 1) {
        if (out->n == FIELDS_MAX) return "want at most 16 answers, have more";
        tab = strchr(text, '\t');
        if (tab) *tab = '\0';
        if (!unescape(text)) return "want \\t, \\n or \\\\ behind a backslash, have another one";
        if (out->n > 0 && !*text) return "want an answer between tabs, have none";
        out->field[out->n++] = text;
    }
    return out->n < 2 ? "want a question, a tab and an answer, have no tab" : NULL;
}

static int fault(const suite *s, const line *l, const char *what) {
    char safe[256];
    tg_app_error(s->app, "%s: line %zu: %s", tg_fmt_safe(safe, sizeof safe, s->name), l->number,
                 what);
    return TG_EXIT_USAGE;
}

/* --------------------------------------------------------------------------------------- scoring
 */

static bool join(suite *s, const char *question, const char *answer) {
    const size_t n = strlen(question);
    const bool apart = n > 0 && !strchr(" \t\n", question[n - 1]);
    s->text.n = 0;
    return tg_app_buffer_add(&s->text, question, n) == 0 &&
           (!apart || tg_app_buffer_add(&s->text, " ", 1) == 0) &&
           tg_app_buffer_add(&s->text, answer, strlen(answer)) == 0;
}

/* Sum of logarithms of an answer's tokens; all_likeliest: whether each was the likeliest. */
static int ask(suite *s, const line *l, const char *answer, double *sum, bool *all_likeliest) {
    tg_scorer *score = &s->score;
    const char *question = l->field[0];
    tg_status status = tg_scorer_encode(score, question, strlen(question));
    const size_t n_asked = score->n < s->room ? score->n : s->room;
    if (status == TG_OK) memcpy(s->asked, score->ids, n_asked * sizeof *s->asked);
    if (status == TG_OK && !join(s, question, answer)) status = TG_E_MEMORY;
    if (status == TG_OK) status = tg_scorer_encode(score, s->text.bytes, s->text.n);
    if (status != TG_OK) return tg_app_failed(s->app, s->app->ctx, status, TG_READING);
    if (score->n > s->room) return fault(s, l, "question and answer leave the context");
    size_t from = 0;
    while (from < n_asked && from < score->n && s->asked[from] == score->ids[from]) from++;
    if (from == 0 || from == score->n)
        return fault(s, l, "want an answer behind at least a token of a question, have none");
    status = tg_scorer_run(score, score->ids, score->n, from, s->logprob, s->likeliest);
    if (status != TG_OK) return tg_app_failed(s->app, s->app->ctx, status, TG_WORKING);
    *sum = 0;
    *all_likeliest = true;
    for (size_t i = 0; i < score->n - from; i++) {
        *sum += s->logprob[i];
        *all_likeliest = *all_likeliest && s->likeliest[i];
    }
    return TG_ARGS_GO_ON;
}

static void put_line(const suite *s, const line *l, const double *sum, size_t chosen, bool right) {
    if (!s->app->globals.json) return;
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_uint(&j, "line", l->number);
    tg_jout_text(&j, "kind", l->n > 2 ? "choice" : "exact");
    tg_jout_bool(&j, "right", right);
    tg_jout_text(&j, "chosen", l->n > 2 ? l->field[1 + chosen] : NULL);
    tg_jout_open(&j, "logprobs", '[');
    for (size_t i = 0; i + 1 < l->n; i++) tg_jout_double(&j, NULL, sum[i]);
    tg_jout_close(&j);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

/* Ties go to the later answer, so that a model which tells nothing apart gains nothing. */
static int ask_line(suite *s, const line *l) {
    double sum[FIELDS_MAX];
    bool likeliest = false;
    size_t best = 0, best_per_byte = 0;
    for (size_t i = 0; i + 1 < l->n; i++) {
        const int code = ask(s, l, l->field[i + 1], &sum[i], &likeliest);
        if (code != TG_ARGS_GO_ON) return code;
        const double length = (double)strlen(l->field[i + 1]);
        const double of_best = (double)strlen(l->field[best_per_byte + 1]);
        if (sum[i] >= sum[best]) best = i;
        if (sum[i] / length >= sum[best_per_byte] / of_best) best_per_byte = i;
    }
    tally *t = l->n > 2 ? &s->choice : &s->exact;
    const bool right = l->n > 2 ? best == 0 : likeliest;
    t->asked++;
    t->right += right;
    t->right_per_byte += best_per_byte == 0;
    t->by_chance += 1 / (double)(l->n - 1);
    put_line(s, l, sum, best, right);
    return TG_ARGS_GO_ON;
}

/* ----------------------------------------------------------------------------------------- whole
 */

static line *more(line **lines, size_t *n, size_t *room) {
    if (*n == *room) {
        const size_t wanted = 2 * *room + 64;
        line *grown = realloc(*lines, wanted * sizeof *grown);
        if (!grown) return NULL;
        *lines = grown;
        *room = wanted;
    }
    return &(*lines)[(*n)++];
}

static int read_lines(suite *s, char *bytes, size_t n_bytes, line **lines, size_t *n) {
    size_t room = 0, number = 0;
    for (size_t at = 0; at < n_bytes;) {
        char *nl = memchr(bytes + at, '\n', n_bytes - at);
        char *const end = nl ? nl : bytes + n_bytes; /* which has a zero behind it */
        char *const text = bytes + at;
        at = (size_t)(end - bytes) + 1;
        number++;
        *end = '\0';
        const bool is_text = strlen(text) == (size_t)(end - text);
        if (is_text && end > text && end[-1] == '\r') end[-1] = '\0';
        if (is_text && !*text) continue;
        line *l = more(lines, n, &room);
        if (!l) return tg_app_failed(s->app, s->app->ctx, TG_E_MEMORY, TG_READING);
        *l = (line) { .number = number };
        const char *what = is_text ? parse(text, l) : "want a text, have a zero byte";
        if (what) return fault(s, l, what);
    }
    if (*n > 0) return TG_ARGS_GO_ON;
    tg_app_error(s->app, "%s: want questions, have none", s->name);
    return TG_EXIT_USAGE;
}

static void put_tally(const suite *s, const char *name, const tally *t) {
    if (t->asked == 0) return;
    const double n = (double)t->asked;
    printf("%-13s %zu of %zu right, %.1f %%", name, t->right, t->asked, 100 * (double)t->right / n);
    if (t == &s->choice)
        printf("; by likelihood a byte %.1f %%, by chance %.1f %%",
               100 * (double)t->right_per_byte / n, 100 * t->by_chance / n);
    putchar('\n');
}

static void put_json_tally(tg_jout *j, const char *name, const tally *t, bool choice) {
    tg_jout_open(j, name, '{');
    tg_jout_uint(j, "asked", t->asked);
    tg_jout_uint(j, "right", t->right);
    if (choice) tg_jout_uint(j, "right_per_byte", t->right_per_byte);
    tg_jout_close(j);
}

static void put_end(const suite *s) {
    if (!s->app->globals.json) {
        put_tally(s, "choices", &s->choice);
        put_tally(s, "exact answers", &s->exact);
        return;
    }
    tg_jout j = tg_jout_to(stdout);
    tg_jout_open(&j, NULL, '{');
    tg_jout_bool(&j, "done", true);
    put_json_tally(&j, "choice", &s->choice, true);
    put_json_tally(&j, "exact", &s->exact, false);
    tg_jout_close(&j);
    tg_jout_line(&j);
}

static bool take_room(suite *s) {
    s->room = s->score.most + 1; /* the last token is not fed */
    s->asked = malloc(s->room * sizeof *s->asked);
    s->logprob = malloc(s->room * sizeof *s->logprob);
    s->likeliest = malloc(s->room * sizeof *s->likeliest);
    return s->asked && s->logprob && s->likeliest;
}

int tg_eval_suite(tg_app *app, tg_model *model, const char *name, char *bytes, size_t n_bytes) {
    suite s = { .app = app, .name = name };
    line *lines = NULL;
    size_t n = 0;
    tg_app_buffer told = { 0 };
    int code = TG_ARGS_GO_ON;
    if (tg_suite_is_json(name)) {
        code = tg_suite_from_json(app, tg_model_tokenizer(model), name, bytes, n_bytes, &told);
        bytes = told.bytes;
        n_bytes = told.n;
    }
    if (code == TG_ARGS_GO_ON) code = read_lines(&s, bytes, n_bytes, &lines, &n);
    if (code == TG_ARGS_GO_ON) code = tg_scorer_open(&s.score, app, model, 0);
    if (code == TG_ARGS_GO_ON && !take_room(&s))
        code = tg_app_failed(app, app->ctx, TG_E_MEMORY, TG_READING);
    for (size_t i = 0; code == TG_ARGS_GO_ON && i < n; i++) code = ask_line(&s, &lines[i]);
    if (code == TG_ARGS_GO_ON) {
        put_end(&s);
        code = TG_EXIT_DONE;
    }
    tg_scorer_free(&s.score);
    free(s.asked);
    free(s.logprob);
    free(s.likeliest);
    tg_app_buffer_free(&s.text);
    tg_app_buffer_free(&told);
    free(lines);
    return code;
}
