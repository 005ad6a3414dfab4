/*
 * lm_probe.c - is a file one that lm.h is for? Asked of every file that is opened.
 */
#include "run/lm.h"

bool tg_lm_is_gguf(const char *path) {
    tg_ctx quiet;
    uint8_t first[4] = { 0 };
    tg_reader r;
    tg_ctx_init(&quiet, NULL, NULL, NULL);
    if (tg_reader_open(&quiet, path, &r) != TG_OK) return false;
    const tg_status s = tg_read_bytes(&r, "magic", first, sizeof first);
    tg_reader_close(&r);
    return s == TG_OK && tg_gguf_probe(first, sizeof first);
}
