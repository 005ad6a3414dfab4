/* SPDX-License-Identifier: Apache-2.0 */
/* sampling.h - how tokens are drawn: the options that sample and chat have in common. */
#ifndef TG_APP_SAMPLING_H
#define TG_APP_SAMPLING_H

#include "app.h"

typedef struct tg_sampling {
    int64_t top_k, repeat_last;
    double temp, top_p, min_p, typical_p, repeat_penalty, frequency_penalty, presence_penalty;
} tg_sampling;

/* The rows of an option table; S is the command's struct of values, whose member `sampling` they
 * set. */
#define TG_SAMPLING_OPTIONS(S)                                                                     \
    TG_REAL("--temp", S, sampling.temp, 0, 100, "X", "temperature; 0: always the likeliest"),      \
        TG_INT("--top-k", S, sampling.top_k, 0, 1000000, "K", "only the K likeliest; 0: all"),     \
        TG_REAL("--top-p", S, sampling.top_p, 0, 1, "P",                                           \
                "only the likeliest that make up P; 1: all", .above_low = true),                   \
        TG_REAL("--min-p", S, sampling.min_p, 0, 1, "P",                                           \
                "only those at least P times the likeliest"),                                      \
        TG_REAL("--typical-p", S, sampling.typical_p, 0, 1, "P",                                   \
                "locally typical sampling; 0: off"),                                               \
        TG_REAL("--repeat-penalty", S, sampling.repeat_penalty, 0, 100, "X",                       \
                "above 1: disfavours recent tokens", .above_low = true),                           \
        TG_REAL("--frequency-penalty", S, sampling.frequency_penalty, -100, 100, "X",              \
                "taken off a recent token's logit for each time that it occurs"),                  \
        TG_REAL("--presence-penalty", S, sampling.presence_penalty, -100, 100, "X",                \
                "taken off a recent token's logit once"),                                          \
        TG_INT("--repeat-last", S, sampling.repeat_last, 0, 1024, "N",                             \
               "how many tokens are recent")

/* What is never drawn, what is favoured, and what a text ends at. */
typedef struct tg_logit_options {
    tg_args_list stop, ban;
    const char *bias;
} tg_logit_options;

/* Rows for a member `logits`. */
#define TG_LOGIT_OPTIONS(S)                                                                        \
    TG_TEXTS("--stop", S, logits.stop, "TEXT",                                                     \
             "ends the text, and is not written; may be repeated. A special token of the model, "  \
             "such as <|im_end|>, is that token"),                                                 \
        TG_TEXTS("--ban", S, logits.ban, "TEXT", "is never written; may be repeated"),             \
        TG_TEXT("--bias", S, logits.bias, "ID:X,..",                                               \
                "added to the logits of these tokens; -inf: never")

/* Speculative decoding. */
typedef struct tg_draft_options {
    int64_t n;
    const char *file;
} tg_draft_options;
typedef struct tg_draft {
    tg_model *model;
    tg_session *session; /* NULL: what came before is guessed from */
} tg_draft;

/* Rows for a member `draft`. */
#define TG_DRAFT_OPTIONS(S)                                                                        \
    TG_INT("--draft", S, draft.n, 0, TG_DRAFT_MAX, "N",                                            \
           "guess up to N tokens by what followed the same ones before, and read them at once: "   \
           "the same text, sooner where it repeats itself"),                                       \
        TG_PATH("--draft-model", S, draft.file, "FILE",                                            \
                "this smaller model with the same vocabulary guesses them (default: up to 4)",     \
                .hide_default = true)

/* Opens the model that guesses, if there is one; TG_ARGS_GO_ON or an exit code. Freed before the
 * context, also if it was not opened. */
int tg_draft_open(tg_app *app, tg_draft_options *o, tg_session *session, tg_draft *draft);
void tg_draft_free(tg_draft *draft);
void tg_draft_set(const tg_draft_options *o, const tg_draft *draft, tg_generation *what);

/* Sets it for a session. TG_ARGS_GO_ON or an exit code. */
int tg_logit_options_set(tg_app *app, const tg_logit_options *s, tg_session *session);

/* What the library does if nothing is asked for. */
tg_sampling tg_sampling_default(void);

/* Takes what the model's file says for what the command line does not; tells of it on standard
 * error. */
void tg_sampling_of_model(tg_app *app, const tg_model *model, tg_sampling *s);

tg_sample_options tg_sampling_options(const tg_sampling *s, uint64_t seed);

/* Why a text ended, in a word: what --json says. */
const char *tg_sampling_end(tg_end end);

/* All of it as a line of numbers, and back; false: no memory; a number is missing or out of range,
 * and s is as it was. */
bool tg_sampling_write(const tg_sampling *s, tg_app_buffer *out);
bool tg_sampling_read(tg_sampling *s, const char *line);
/* Takes over what the command line has named. */
void tg_sampling_keep(tg_sampling *s, const tg_sampling *asked, const tg_args *args);

#endif
