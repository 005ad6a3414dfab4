/*
 * generate.c - from a prompt to a stream of text.
 *
 * A byte model speaks bytes, a terminal wants characters: up to three bytes are held back until the
 * character is whole; a byte that can never become one goes out as U+FFFD.
 */
#include "base/str.h"
#include "base/time.h"
#include "run/session.h"

/* Invariant between two bytes: held is the start of a character that could still become whole, so n
 * is at most 3. stopped stays set: once the receiver has refused, it is not called again. */
typedef struct utf8_gate {
    tg_text_fn write;
    void *user;
    char held[8];
    size_t n;
    bool stopped;
} utf8_gate;

static void pass(utf8_gate *g, const char *bytes, size_t n) {
    if (!g->stopped && g->write && g->write(g->user, bytes, n) != 0) g->stopped = true;
}

/* Could more bytes make the held ones a character? By the length that the first byte promises, and
 * the ranges its followers must keep (RFC 3629): tg_utf8_next would accept some completion. */
static bool may_become_whole(const char *held, size_t n) {
    static const char tries[] = "\x80\xa0\x90\xbf\x8f\x9f";
    char whole[4];
    uint32_t code;
    for (size_t length = n + 1; length <= 4; length++) {
        for (size_t i = 0; i < sizeof tries - 1; i++) {
            memcpy(whole, held, n);
            memset(whole + n, '\x80', 4 - n);
            whole[n] = tries[i];
            if (tg_utf8_next(whole, length, &code) == length) return true;
        }
    }
    return false;
}

/* One replacement for each byte that leads nowhere. What followed it is looked at again, since it
 * may begin a character of its own. */
static void flush_bad(utf8_gate *g, size_t n) {
    pass(g, "\xef\xbf\xbd", 3);
    memmove(g->held, g->held + n, g->n - n);
    g->n -= n;
}

/* A byte can end one character, or spoil several held ones: hence the loop. */
static void gate_push(utf8_gate *g, char byte) {
    g->held[g->n++] = byte;
    while (g->n > 0) {
        uint32_t code;
        const size_t k = tg_utf8_next(g->held, g->n, &code);
        if (k > 0) {
            pass(g, g->held, k);
            memmove(g->held, g->held + k, g->n - k);
            g->n -= k;
        } else if (may_become_whole(g->held, g->n)) {
            return;
        } else {
            flush_bad(g, 1);
        }
    }
}

/* What is held at the end is one unfinished character, so it is one replacement, however many bytes
 * it has. */
static void gate_end(utf8_gate *g) {
    if (g->n > 0) pass(g, "\xef\xbf\xbd", 3);
    g->n = 0;
}

/* Feeds the newest part of the prompt that leaves room for one token; an empty one is a newline. */
static tg_status feed_prompt(tg_session *s, const char *prompt, size_t n,
                             tg_generate_stats *stats) {
    const size_t room = s->capacity > 1 ? (size_t)s->capacity - 1 : 1;
    if (n == 0) {
        prompt = "\n";
        n = 1;
    }
    s->n_tokens = 0;
    stats->prompt_tokens = n;
    stats->prompt_dropped = n > room ? n - room : 0;
    int32_t piece[256];
    for (size_t at = stats->prompt_dropped; at < n;) {
        size_t k = 0;
        for (; k < sizeof piece / sizeof piece[0] && at < n; k++, at++)
            piece[k] = (uint8_t)prompt[at];
        TG_TRY(tg_session_feed(s, piece, k, NULL));
    }
    return TG_OK;
}

/* The last token is drawn but not fed: nobody asks what follows it, and a step of the model is what
 * costs. So after n tokens the cache holds the prompt and n - 1 of them. first_token_ms counts from
 * the call, prompt included; tok_per_s does not, and spans the n draws and n - 1 evaluations. ids,
 * write, cancel and stats may be NULL. */
tg_status tg_session_write(tg_session *s, const char *prompt, size_t prompt_bytes,
                           const tg_sample_options *o, size_t n_tokens, tg_text_fn write,
                           tg_cancel_fn cancel, void *user, int32_t *ids,
                           tg_generate_stats *stats) {
    tg_generate_stats own;
    if (!stats) stats = &own;
    *stats = (tg_generate_stats) { .prompt_tokens = 0 };
    TG_TRY(tg_sample_options_check(&s->ctx->err, o));
    const double start = tg_time_ms();
    TG_TRY(feed_prompt(s, prompt, prompt_bytes, stats));
    stats->prompt_ms = tg_time_ms() - start;

    utf8_gate gate = { .write = write, .user = user };
    bool cancelled = false;
    const double first = tg_time_ms();
    for (size_t i = 0; i < n_tokens && !gate.stopped; i++) {
        int32_t token;
        TG_TRY(tg_session_draw(s, o, i, &token));
        if (ids) ids[i] = token;
        if (i == 0) stats->first_token_ms = tg_time_ms() - start;
        stats->new_tokens++;
        gate_push(&gate, (char)token);
        if (i + 1 == n_tokens || gate.stopped) break;
        cancelled = cancel && cancel(user);
        if (cancelled) break;
        if (s->n_tokens == s->capacity) {
            TG_TRY(tg_session_make_room(s));
            stats->slides++;
        }
        TG_TRY(tg_session_feed(s, &token, 1, NULL));
    }
    gate_end(&gate);
    const double ms = tg_time_ms() - first;
    stats->tok_per_s = ms > 0 ? (double)stats->new_tokens / ms * 1e3 : 0;
    return gate.stopped || cancelled ? TG_STOPPED : TG_OK;
}
