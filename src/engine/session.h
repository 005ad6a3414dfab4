/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - what a tg_session is inside: a sequence of tokens in a cache, and what computes it, a
 * decoder with a plan for each size of call. A lone session has a decoder of its own; those of a
 * batch share one, with a place in its cache for each.
 *
 *   decode   1 row      chunk   up to 32 rows      prompt   up to 512 rows
 *
 * The three run the same graph over the same cache; a prompt is cut into pieces of the largest. A
 * row's numbers do not depend on how the prompt was cut. Sampling is a plan of its own.
 *
 * A layer with a window keeps the newest positions alone (model/state.h). Going back to where
 * its window has left the ring leaves the tokens, and an empty cache: they are computed again
 * before whatever is fed next. Where layers keep states, n_held goes back to the newest of them
 * (cache.h) before anything is fed.
 *
 *   fed      0 ............ n_held ............ n_tokens           n_held = n_tokens, as a rule
 *             in the cache  |  to be computed  |
 */
#ifndef TG_ENGINE_SESSION_H
#define TG_ENGINE_SESSION_H

#include "chat/reply.h"
#include "engine/cache.h"
#include "engine/logits.h"
#include "runtime/job.h"
#include "tok/tok.h"

enum {
    TG_SESSION_CLASSES = 3,
    TG_SESSION_ROWS_MAX = 512,
    TG_SESSION_USUAL_CTX = 4096,
    TG_RECENT_MAX = 1024,
    TG_AHEAD_MAX = 16
};

typedef struct tg_session_class {
    int32_t rows; /* at most */
    tg_graph graph;
    tg_plan plan;
    tg_value *tokens, *logits;
    tg_value *recent, *drawn; /* of a GPU's plan of one row, which draws, too; else NULL */
    tg_cache_inputs rows_in;
    bool built;
    bool every_row;  /* gives the logits of all rows, not of the last one alone */
    tg_block memory; /* of that one: what it gave is read later */
} tg_session_class;

/*
 * ahead.c: tokens that were fed on trial behind one that is certain, by a plan that gives the
 * logits of each.
 *
 *   fed      0 .................... certain | guess | guess | guess
 *   logits                          row 0     row 1   row 2   row 3
 *                          n_tokens --------^            n = 3, row = 0
 */
typedef struct tg_ahead {
    int32_t n;   /* guesses in the cache behind n_tokens */
    int32_t row; /* of the plan, whose logits the session has */
} tg_ahead;

/*
 * A GPU's plan of one row draws as the next draw will most likely want it: as the last one did,
 * with the next number. And where a text goes on with what it has drawn, the run of the next token
 * is submitted before this one has come back, so that the device never waits for the host; the
 * token is taken over on the device. If another one is fed, the run has been in vain: what it wrote
 * is behind all that counts, as rows of guesses are.
 */
typedef struct tg_running_on {
    tg_run run;
    int32_t position; /* of its row; -1: there is no such run */
    uint64_t version; /* of the weights */
    tg_scalars rt;    /* what it draws by */
} tg_running_on;

/* copies.c: weights in the order in which the decode plan reads them fastest. */
typedef struct tg_copies {
    tg_block block;
    uint64_t version; /* of the weights that were decoded with last, and 1; 0: none yet */
    size_t n_steps;   /* of the plan, from its front: these read theirs, if they have any */
    size_t n_bytes;   /* of the block, that those take */
    bool refused;     /* nothing to be won, too large, or no memory for it */
} tg_copies;

/* cache_pages.c: how far it has looked for pages of the cache to be joined. */
typedef struct tg_cache_pages {
    bool split;
    size_t at_bytes;            /* of the cache, in the pass that is going on */
    int32_t begin_tok, end_tok; /* tokens in the cache at the last pass, and at this one */
} tg_cache_pages;

/* What sessions compute with. */
typedef struct tg_decoder {
    tg_context *ctx;
    tg_model *model;
    int32_t capacity; /* tokens of a session */
    tg_dtype kv;      /* of the cache: ops/attention/cache/kv_row.h */
    tg_arena arena;   /* of the cache's tables */
    tg_cache cache;   /* of one sequence for each session */
    tg_session_class by_rows[TG_SESSION_CLASSES];
    tg_block memory;       /* workspace of these plans in turn */
    tg_session_class rows; /* that gives the logits of every row; made when it is wanted */
    tg_cache_pages pages;
    tg_copies copies;
    const tg_job *job; /* pending on one of the sessions; NULL: none */
} tg_decoder;

struct tg_session {
    tg_context *ctx;
    tg_model *model;
    tg_decoder *d;
    bool of_batch;    /* whose decoder it is; else the session's own */
    int32_t sequence; /* its place in the cache */
    int32_t capacity, n_tokens;
    int32_t n_held; /* of n_tokens, how many the cache has; the others are computed again first */
    int32_t n_lost; /* positions that have left the rings of layers with windows */
    int32_t *fed;   /* [capacity] tokens that were fed */
    tg_graph sample_graph;
    tg_plan sample;
    tg_value *sample_logits, *recent, *token;
    bool sample_built;
    tg_block sample_memory;
    tg_ahead ahead;
    float *logits;       /* [V] after the last eval */
    int32_t drawn;       /* from the logits, by the plan that gave them; -1: nothing */
    tg_scalars drawn_by; /* and how */
    tg_scalars expected; /* how the next draw will be, most likely; n_recent: at most */
    bool follows;        /* the token fed last was the one that had been drawn */
    tg_running_on on;
    tg_run drawing; /* of the sampling plan, while it is PENDING */
    tg_arena arena;
    tg_logit_bias *bias; /* [n_bias] */
    size_t n_bias;
    tg_logits_texts *banned, *stops; /* NULL: none were ever set */
    tg_mask_fn mask;                 /* or NULL */
    void *mask_user;
    tg_block logit_work; /* of the first draw that processes logits: scratch of draw.c */
    unsigned generation; /* of the context's device, that has the cache */
    uint64_t version;    /* of the weights that the cache was computed with */
};

tg_status tg_decoder_open(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_kv_type kv,
                          int32_t n_sessions, tg_decoder **out);
void tg_decoder_close(tg_decoder *d);
/* A session with a decoder of its own; or one with place `sequence` of a batch's. */
tg_status tg_session_open(tg_context *ctx, tg_model *model, int32_t ctx_tokens, tg_kv_type kv,
                          tg_session **out);
tg_status tg_session_open_in(tg_decoder *d, int32_t sequence, tg_session **out);
void tg_session_close(tg_session *s);

/* Tokens on their way into the cache, in slices. */
typedef struct tg_feeding {
    const int32_t *tokens; /* [n] borrowed; may be part of the session's own `fed` */
    size_t n, done;
    int32_t before; /* tokens in the cache when it began */
    bool ahead;     /* only the first token is certain */
    tg_scalars rt;  /* of the run */
    tg_run run;     /* of the piece that is being run */
} tg_feeding;

/* Checks everything, and runs nothing. */
tg_status tg_feeding_begin(tg_session *s, const int32_t *tokens, size_t n, tg_feeding *f);
/* To slide: keeps the newest half of the window, which has to be fed anew, and in front of it the
 * token that begins texts, if the text began with it. */
void tg_feeding_begin_slide(tg_session *s, tg_feeding *f);
/* TG_PENDING or TG_STOPPED: not done yet. Deadlines are on tg_time_ms's clock; 0: none. */
tg_status tg_feeding_go_on(tg_session *s, tg_feeding *f, double deadline_ms);
/* Leaves the session as it was when it began; a slide leaves it empty. */
void tg_feeding_abandon(tg_session *s, const tg_feeding *f);
/* All at once. */
tg_status tg_session_feed(tg_session *s, const int32_t *tokens, size_t n);

tg_status tg_session_draw(tg_session *s, const tg_sample_options *o, uint64_t index,
                          int32_t *token);
/* draw.c: what the first draw of a session is expected to be, and the one behind a draw. */
tg_scalars tg_draw_greedy(void);
tg_scalars tg_draw_next(tg_scalars rt);
tg_status tg_session_keep_bias(tg_session *s, const tg_logit_bias *bias, size_t n);
tg_status tg_session_keep_texts(tg_session *s, const char *const *texts, size_t n,
                                tg_logits_texts **out);
/* Forgets all but the first n <= n_tokens. */
void tg_session_go_back(tg_session *s, int32_t n);
/* Goes back to the longest beginning, below n, that the session has in common with tokens [n] and
 * that a new feed would give again; returns its length. */
size_t tg_session_keep_common(tg_session *s, const int32_t *tokens, size_t n);
tg_status tg_sample_options_check(tg_ctx *err, const tg_sample_options *o);

/* session.c, for all that runs a session's plans. find_cache: what a lost device had of the cache
 * counts as not held; true: there was a loss, and a run that was begun begins anew. run_plan is
 * tg_runtime_run of the session; recovered tells whether its status was that of a lost device, and
 * makes it TG_OK: the plan, with the tokens that are not held any more in front, is to run again.
 */
bool tg_session_find_cache(tg_session *s);
tg_status tg_session_run_plan(tg_session *s, tg_plan *plan, const tg_scalars *rt, tg_run *run);
bool tg_session_recovered(tg_session *s, tg_run *run, tg_status *status);
/* session.c, for ahead.c and batch.c: makes the plan that gives every row's logits, once. */
tg_status tg_decoder_want_rows(tg_decoder *d);
/* Before a run: the plans are those of the backend that computes now. Where the last device is lost
 * they are of a GPU, with ops in one that only its shaders have so. */
tg_status tg_decoder_want_plans(tg_decoder *d);
/* The smallest class that takes n rows, or the largest. */
tg_session_class *tg_decoder_class_for(tg_decoder *d, size_t n);
/* Before a run that brings the cache to n positions. */
void tg_session_note_run(tg_session *s, int32_t n);
/* After a run, whose rows the cache has: n_held grows. */
void tg_session_take_rows(tg_session *s, size_t rows);
/* E_NUMBER, unless all logits [V] are finite; they are those behind a position, and the message
 * names the layer if it is still in the cache. */
tg_status tg_session_want_numbers(const tg_session *s, const float *logits, size_t position);
/* E_NUMBER, unless all logits [V] are finite. */
tg_status tg_session_want_finite(const tg_session *s, const float *logits);

/* ------------------------------------------------------------------------------------- ahead.c */

/* Makes what is needed, once. */
tg_status tg_ahead_open(tg_session *s);
/* A certain token, and n - 1 < TG_AHEAD_MAX guesses of what follows. */
tg_status tg_ahead_begin(tg_session *s, const int32_t *tokens, size_t n, tg_feeding *f);
/* Once they are fed: the session is as if the first alone had been. */
void tg_ahead_end(tg_session *s, size_t n);
/* *taken: the next guess is this token, and the session is as if it had been fed. Else the guesses
 * are forgotten. */
tg_status tg_ahead_take(tg_session *s, int32_t token, bool *taken);

/* copies.c: before a run of the decode plan begins. */
void tg_copies_use(tg_decoder *d, double deadline_ms);

/* cache_pages.c: of a cache that is new, and after a run of so many rows, the last at a position.
 */
void tg_cache_pages_begin(tg_decoder *d);
void tg_cache_pages_go_on(tg_decoder *d, size_t rows, int32_t n_held);

/* ------------------------------------------------------------------------------------- batch.c */

/* Feedings of several sessions of one decoder, in slices; each ends as it would alone. */
typedef struct tg_together_entry {
    tg_session *s;
    tg_feeding *f;
    size_t rows;      /* of the run that is going on; 0: none are its */
    bool alone;       /* fed by the plans for one session */
    tg_status status; /* not OK: the session is as it was before its feeding */
} tg_together_entry;
typedef struct tg_together {
    tg_decoder *d;
    tg_together_entry entry[TG_BATCH_MAX]; /* [n] set by the caller; the rest is zero at first */
    size_t n;
    tg_cancel_fn cancel; /* or NULL */
    void *user;
    /* ---- where it is */
    enum { TG_TOGETHER_NEW, TG_TOGETHER_ALONE, TG_TOGETHER_BEGINNINGS, TG_TOGETHER_LAST } stage;
    size_t at;                 /* ALONE: the entry that is fed */
    tg_session_class *running; /* whose plan; NULL: none */
    size_t rows;               /* of that run */
    tg_run run;
} tg_together;
/* Answers TG_PENDING, what held for all, or else the first status that is not OK. */
tg_status tg_together_go_on(tg_together *w, double deadline_ms);
/* Before its end: sessions are as they were, but for those that have been fed whole by then, which
 * stay so: their logits are the new ones. */
void tg_together_abandon(tg_together *w);
/* Makes `to` what `from` is, both of one decoder: tokens, cache and logits. */
tg_status tg_session_copy_from(tg_session *to, const tg_session *from);

/* ------------------------------------------------------------------------------ session_file.c */

tg_status tg_session_write(const tg_session *s, const char *path, const void *note,
                           size_t note_bytes);
/* note gets the caller's bytes. Unchanged where the file is refused. */
tg_status tg_session_read(tg_session *s, const char *path, tg_text_fn note, void *user);

/* ---------------------------------------------------------------------------------- generate.c */

/*
 * A prompt, and the text that follows it, in slices.
 *
 *     PROMPT --> DRAW --> FEED --> DRAW ..         the text ends in DRAW
 *       ^          |        ^
 *       |          +-> SLIDE                       the window is full: its newest half is fed anew
 *       +----------+                               or what make_room answers, and what was made
 */
typedef struct tg_generating {
    tg_session *session;
    tg_generation o; /* prompt, ids and chat_template (its text by now): borrowed until begin has
                        returned; sample is below */
    tg_sample_options sample;
    int32_t ends[TG_ENDS_MAX];
    /* ---- where it is */
    enum {
        TG_GENERATING_PROMPT,
        TG_GENERATING_DRAW,
        TG_GENERATING_SLIDE,
        TG_GENERATING_FEED
    } stage;
    tg_ids prompt;   /* what is fed before the next draw */
    size_t at;       /* of it, how many are in the session, on their way there, or dropped */
    size_t n_before; /* tokens of the session that are no tokens of this generation */
    tg_feeding feed; /* the one that is on its way, or ended last */
    int32_t token;   /* drawn last */
    int32_t guesses[TG_AHEAD_MAX]; /* it, and what may follow */
    tg_utf8_holdback holdback;
    tg_stop_match stop;
    tg_reply reply;           /* without o.parts all is the answer */
    tg_buf text;              /* that goes out with the next token, all of one part */
    tg_reply_part part;       /* of text */
    int32_t telling;          /* the token that goes out with it; -1: it has */
    tg_status told;           /* the first error of what went out while a token was taken in */
    tg_block likely;          /* room for o.n_best */
    bool refused;             /* by a receiver, which is not called again */
    bool ended;               /* by what stats.end says */
    tg_generate_stats stats;  /* up to date after every slice */
    double busy_ms, slice_ms; /* in earlier slices; when this one began */
} tg_generating;

/* Checks the options, and goes back in the session to what it has of the prompt. What is above the
 * line is set by the caller (of ends, o.n_ends), the rest is zero. */
tg_status tg_generating_begin(tg_generating *g);
tg_status tg_generating_go_on(tg_generating *g, double deadline_ms);
void tg_generating_abandon(tg_generating *g);
/* Several, of sessions of one decoder, in slices; each gets its status. Drafts are read by each
 * session for itself. */
typedef struct tg_generating_all {
    tg_generating *g;  /* [n] each has begun */
    tg_status *status; /* [n] OK at first */
    size_t n;
    tg_together feed; /* of entry k: g[who[k]]; n = 0: none is going on */
    size_t who[TG_BATCH_MAX];
} tg_generating_all;
/* TG_PENDING, or TG_OK: all have ended. */
tg_status tg_generating_all_go_on(tg_generating_all *all, double deadline_ms);

#endif
