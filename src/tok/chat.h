/*
 * chat.h - conversations as the tokens that a model was tuned on.
 *
 * Model files carry a template, which is a program. It is never run: its text says which of the
 * templates below it is (tg_chat_detect), and those are written out as data. A file whose template
 * is none of them says so, and the user may name one.
 *
 * Special tokens come from the template alone. What people and models have written is encoded as
 * text, so that nobody can end their turn and begin another one's by spelling it.
 */
#ifndef TG_TOK_CHAT_H
#define TG_TOK_CHAT_H

#include "base/buf.h"
#include "tok/tok.h"

typedef enum tg_chat_role { TG_CHAT_SYSTEM, TG_CHAT_USER, TG_CHAT_ASSISTANT } tg_chat_role;

typedef struct tg_chat_turn {
    tg_chat_role role;
    const char *text; /* borrowed */
    size_t n_bytes;
} tg_chat_turn;

typedef struct tg_chat_template tg_chat_template;

/* What there is, for lists and for --template NAME; NULL: no such one. */
const tg_chat_template *tg_chat_at(size_t i);
const tg_chat_template *tg_chat_named(const char *name);
const char *tg_chat_name(const tg_chat_template *t);
/* Can it be told to think or not to (TG_CHAT_NO_THINKING)? */
bool tg_chat_thinks(const tg_chat_template *t);

/* The template that a file's template text is; NULL: none of ours. */
const tg_chat_template *tg_chat_detect(const char *text, size_t n_bytes);

enum { TG_CHAT_NO_THINKING = 1 };

/*
 * Appends the conversation and the beginning of the model's answer.
 *   turns [n]   a system turn may come first; then the user's and the model's; the user's comes
 * last A model's thinking in earlier turns is left out where the template does so. Errors: TG_E_ARG
 * for an order of turns that the template does not know; TG_E_FORMAT if the vocabulary lacks one of
 * its special tokens; what tg_tok_encode says.
 */
tg_status tg_chat_encode(tg_ctx *ctx, const tg_chat_template *t, const tg_tok *tok,
                         const tg_chat_turn *turns, size_t n, unsigned flags, tg_ids *ids);
/* The same as text, for people. */
tg_status tg_chat_render(tg_ctx *ctx, const tg_chat_template *t, const tg_chat_turn *turns,
                         size_t n, unsigned flags, tg_buf *out);

/* The tokens that end an answer: the template's, and the vocabulary's. Returns how many. */
enum { TG_CHAT_ENDS_MAX = 32 };
size_t tg_chat_ends(const tg_chat_template *t, const tg_tok *tok, int32_t ends[TG_CHAT_ENDS_MAX]);

#endif
