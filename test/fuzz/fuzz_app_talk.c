/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_app_talk.c - conversations in files. One that is read, written and read again is the same;
 * one that is refused leaves what was there.
 */
#include "fuzz.h"

#include "talk.h"

static bool same(const tg_talk *a, const tg_talk *b) {
    bool is = a->n == b->n;
    for (size_t i = 0; is && i < a->n; i++)
        is = a->turns[i].role == b->turns[i].role && a->turns[i].n_bytes == b->turns[i].n_bytes &&
             memcmp(a->turns[i].text, b->turns[i].text, a->turns[i].n_bytes) == 0;
    return is;
}

static void want_order(const tg_talk *t) {
    for (size_t i = 1; i < t->n; i++) PROMISE(t->turns[i].role != TG_SYSTEM);
}

static void write_and_read(const tg_talk *t, const tg_talk_settings *s) {
    tg_app_buffer text = { 0 }, second = { 0 };
    tg_talk again = { 0 };
    tg_talk_settings settings = { .sampling = tg_sampling_default() };
    PROMISE(tg_talk_write(t, s, &text));
    PROMISE(tg_talk_read(&again, &settings, text.bytes, text.n) == NULL);
    PROMISE(same(t, &again) && settings.seed == s->seed && settings.answers == s->answers);
    PROMISE(tg_talk_write(&again, &settings, &second));
    PROMISE(text.n == second.n && memcmp(text.bytes, second.bytes, text.n) == 0);
    tg_talk_free(&again);
    tg_app_buffer_free(&text);
    tg_app_buffer_free(&second);
}

static void edit(tg_talk *t) {
    while (tg_talk_drop_oldest(t)) want_order(t);
    tg_talk_drop_last(t);
    PROMISE(tg_talk_set_system(t, "x", 1) && tg_talk_has_system(t) && t->turns[0].n_bytes == 1);
    tg_talk_reset(t);
    PROMISE(t->n == 1);
    PROMISE(tg_talk_set_system(t, "", 0) && t->n == 0);
}

static void fuzz_one(const uint8_t *data, size_t n) {
    tg_talk t = { 0 };
    tg_talk_settings s = { .seed = 7, .answers = 3, .sampling = tg_sampling_default() };
    uint8_t *bytes = fuzz_copy(data, n);
    PROMISE(tg_talk_add(&t, TG_USER, "before", 6));
    const char *fault = tg_talk_read(&t, &s, (const char *)bytes, n);
    free(bytes);
    if (fault) {
        PROMISE(*fault && t.n == 1 && s.seed == 7 && s.answers == 3);
    } else {
        want_order(&t);
        write_and_read(&t, &s);
        edit(&t);
    }
    tg_talk_free(&t);
}
