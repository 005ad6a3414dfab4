/*
 * talk.h - the turns of a conversation, and the file that keeps them.
 *
 *     tinygpt chat 1            one line, then for each turn
 *     user 12                   its role and bytes
 *     Hello there.              those bytes, and a line end
 */
#ifndef TG_APP_TALK_H
#define TG_APP_TALK_H

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

/* NULL, or what went wrong. Loading replaces the turns only if all of them could be read. */
const char *tg_talk_save(const tg_talk *t, const char *path);
const char *tg_talk_load(tg_talk *t, const char *path);

#endif
