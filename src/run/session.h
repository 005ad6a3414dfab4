/*
 * session.h - what a tg_session is inside: a KV cache, and a plan for each size of call.
 *
 *   decode   1 row      chunk   up to 32 rows      prompt   up to 512 rows
 *
 * The three run the same graph over the same cache; a prompt is cut into pieces of the largest. A
 * row's numbers do not depend on how the prompt was cut. Sampling is a plan of its own.
 */
#ifndef TG_RUN_SESSION_H
#define TG_RUN_SESSION_H

#include "run/weights.h"

enum { TG_SESSION_CLASSES = 3, TG_RECENT_MAX = 1024 };

typedef struct tg_session_class {
    int32_t rows; /* at most */
    tg_graph graph;
    tg_plan plan;
    tg_value *tokens, *logits;
    bool built;
} tg_session_class;

struct tg_session {
    tg_context *ctx;
    tg_model *model;
    int32_t capacity, n_tokens;
    int32_t *fed; /* [capacity] tokens in the cache */
    tg_session_class by_rows[TG_SESSION_CLASSES];
    tg_graph sample_graph;
    tg_plan sample;
    tg_value *sample_logits, *recent, *token;
    bool sample_built;
    tg_block cache, memory; /* all layers' caches; workspace of the plans in turn */
    float *logits;          /* [V] after the last eval */
    tg_arena arena;
};

tg_status tg_session_open(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_session **out);
void tg_session_close(tg_session *s);
tg_status tg_session_feed(tg_session *s, const int32_t *tokens, size_t n, const float **logits);
tg_status tg_session_draw(tg_session *s, const tg_sample_options *o, uint64_t index,
                          int32_t *token);
/* Keeps the newest half of the window and evaluates it anew. */
tg_status tg_session_make_room(tg_session *s);
tg_status tg_sample_options_check(tg_ctx *err, const tg_sample_options *o);

/* generate.c */
tg_status tg_session_write(tg_session *s, const char *prompt, size_t prompt_bytes,
                           const tg_sample_options *o, size_t n_tokens, tg_text_fn write,
                           tg_cancel_fn cancel, void *user, int32_t *ids, tg_generate_stats *stats);

#endif
