/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk.h - the turns of a conversation, and the file that keeps them.
 *
 *     tinygpt chat 2            a line, two of settings, then for each turn
 *     seed 42 1                 the seed, and how many answers were drawn with it
 *     sampling 40 64 0.8 ..     sampling.c
 *     user 12                   its role and bytes
 *     Hello there.              those bytes, and a line end
 *
 * The same text goes with a session's file, as its note. Files of version 1 have no settings.
 */
#ifndef TG_APP_TALK_H
#define TG_APP_TALK_H

#include "sampling.h"
#include "tinygpt.h"

#include <stdbool.h>

/* turns [n]: a system turn, if there is one, comes first. The texts are the talk's own. */
typedef struct tg_talk {
    tg_turn *turns;
    size_t n, room;
} tg_talk;

bool tg_talk_add(tg_talk *t, tg_role role, const char *text, size_t n_bytes); /* false: no memory */
/* Sets, replaces or (n_bytes 0) takes away the system turn. */
bool tg_talk_set_system(tg_talk *t, const char *text, size_t n_bytes);
bool tg_talk_has_system(const tg_talk *t);
void tg_talk_drop_last(tg_talk *t);
/* Forgets the oldest turn of the user and its answer; false if there is but one question left. */
bool tg_talk_drop_oldest(tg_talk *t);
/* Keeps the system turn. */
void tg_talk_reset(tg_talk *t);
void tg_talk_free(tg_talk *t);

/* What goes with the turns: with them, it decides what is answered next. */
typedef struct tg_talk_settings {
    uint64_t seed, answers;
    tg_sampling sampling;
} tg_talk_settings;

/* The text of a file; false: no memory. */
bool tg_talk_write(const tg_talk *t, const tg_talk_settings *s, tg_app_buffer *out);
/* NULL, or what went wrong. Turns and settings are replaced only if all of them could be read, and
 * the file as a whole. */
const char *tg_talk_read(tg_talk *t, tg_talk_settings *s, const char *bytes, size_t n_bytes);
/* Saved as every output is (tg_output_rule of tinygpt.h): only a conversation is replaced. */
const char *tg_talk_save(tg_context *ctx, const tg_talk *t, const tg_talk_settings *s,
                         const char *path);
const char *tg_talk_load(tg_talk *t, tg_talk_settings *s, const char *path);

/* --template: the name of one that is built in, or else a file, whose text it is; NULL stays NULL.
 * *text is to be freed. TG_ARGS_GO_ON, or an exit code after a message. */
int tg_talk_template(tg_app *app, const char *wanted, const char **name, char **text);
/* To standard error: what --template takes. */
void tg_talk_template_names(void);

/* The day that a template writes: of --date, or NULL; else today's where we are, as transformers
 * has it, which is said unless quiet, if the template asks. A date that no template of tok's or of
 * that name writes is refused. tok NULL: nobody has it yet, and a date that is given is only
 * checked. TG_ARGS_GO_ON, or an exit code after a message. */
int tg_talk_date(tg_app *app, const char *date, const char *name, const tg_tokenizer *tok,
                 bool quiet);

#endif
