/*
 * talk.c - turns in an array, each with a copy of its text.
 */
#include "talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const roles[] = { "system", "user", "assistant" };
static const char headline[] = "tinygpt chat 1\n";

/* A turn longer than this is not read: no window could hold it. */
#define TURN_LIMIT ((size_t)64 << 20)

static char *copy_of(const char *text, size_t n_bytes) {
    char *copy = malloc(n_bytes + 1);
    if (!copy) return NULL;
    if (n_bytes > 0) memcpy(copy, text, n_bytes);
    copy[n_bytes] = '\0';
    return copy;
}

/* Takes over the text, which was malloced. */
static bool insert(tg_talk *t, size_t at, tg_role role, char *text, size_t n_bytes) {
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 16;
        tg_turn *grown = realloc(t->turns, room * sizeof *grown);
        if (!grown) return false;
        t->turns = grown;
        t->room = room;
    }
    memmove(t->turns + at + 1, t->turns + at, (t->n - at) * sizeof *t->turns);
    t->turns[at] = (tg_turn) { role, text, n_bytes };
    t->n++;
    return true;
}

static void take_out(tg_talk *t, size_t at) {
    free((void *)(uintptr_t)t->turns[at].text);
    t->n--;
    memmove(t->turns + at, t->turns + at + 1, (t->n - at) * sizeof *t->turns);
}

static bool add_at(tg_talk *t, size_t at, tg_role role, const char *text, size_t n_bytes) {
    char *copy = copy_of(text, n_bytes);
    if (copy && insert(t, at, role, copy, n_bytes)) return true;
    free(copy);
    return false;
}

bool tg_talk_add(tg_talk *t, tg_role role, const char *text, size_t n_bytes) {
    return add_at(t, t->n, role, text, n_bytes);
}

bool tg_talk_has_system(const tg_talk *t) { return t->n > 0 && t->turns[0].role == TG_SYSTEM; }

bool tg_talk_set_system(tg_talk *t, const char *text, size_t n_bytes) {
    if (n_bytes > 0 && !add_at(t, 0, TG_SYSTEM, text, n_bytes)) return false;
    const size_t old = n_bytes > 0 ? 1 : 0;
    if (t->n > old && t->turns[old].role == TG_SYSTEM) take_out(t, old);
    return true;
}

void tg_talk_drop_last(tg_talk *t) {
    if (t->n > 0) take_out(t, t->n - 1);
}

bool tg_talk_drop_oldest(tg_talk *t) {
    const size_t first = tg_talk_has_system(t) ? 1 : 0;
    if (t->n < first + 3) return false;
    take_out(t, first);
    while (t->n > first + 1 && t->turns[first].role == TG_ASSISTANT) take_out(t, first);
    return true;
}

void tg_talk_reset(tg_talk *t) {
    const size_t kept = tg_talk_has_system(t) ? 1 : 0;
    while (t->n > kept) take_out(t, t->n - 1);
}

void tg_talk_free(tg_talk *t) {
    while (t->n > 0) take_out(t, t->n - 1);
    free(t->turns);
    *t = (tg_talk) { 0 };
}

/* ------------------------------------------------------------------------------------- files */

const char *tg_talk_save(const tg_talk *t, const char *path) {
    FILE *f = fopen(path, "wb");
    if (!f) return strerror(errno);
    fputs(headline, f);
    for (size_t i = 0; i < t->n; i++) {
        fprintf(f, "%s %zu\n", roles[t->turns[i].role], t->turns[i].n_bytes);
        fwrite(t->turns[i].text, 1, t->turns[i].n_bytes, f);
        fputc('\n', f);
    }
    const bool failed = ferror(f) != 0;
    return fclose(f) != 0 || failed ? "it could not be written" : NULL;
}

/* One turn; *end if there is no more. */
static const char *load_turn(FILE *f, tg_talk *t, bool *end) {
    static const char damaged[] = "it is damaged";
    char line[64], name[16];
    size_t n_bytes, role = 0;
    *end = !fgets(line, sizeof line, f);
    if (*end) return NULL;
    if (sscanf(line, "%15s %zu", name, &n_bytes) != 2 || n_bytes > TURN_LIMIT) return damaged;
    while (role < 3 && strcmp(name, roles[role]) != 0) role++;
    if (role == 3 || (role == TG_SYSTEM && t->n > 0)) return damaged;
    char *text = malloc(n_bytes + 1);
    if (!text) return "there is not enough memory";
    text[n_bytes] = '\0';
    const bool whole = fread(text, 1, n_bytes, f) == n_bytes && fgetc(f) == '\n';
    if (whole && insert(t, t->n, (tg_role)role, text, n_bytes)) return NULL;
    free(text);
    return whole ? "there is not enough memory" : damaged;
}

const char *tg_talk_load(tg_talk *t, const char *path) {
    char line[64];
    FILE *f = fopen(path, "rb");
    if (!f) return strerror(errno);
    const char *fault = NULL;
    tg_talk loaded = { 0 };
    bool end = false;
    if (!fgets(line, sizeof line, f) || strcmp(line, headline) != 0)
        fault = "it is no conversation";
    while (!fault && !end) fault = load_turn(f, &loaded, &end);
    fclose(f);
    if (fault) {
        tg_talk_free(&loaded);
        return fault;
    }
    tg_talk_free(t);
    *t = loaded;
    return NULL;
}
