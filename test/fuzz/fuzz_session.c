/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_session.c - files of sessions, loaded into a session of a smallest model.
 *
 * Each input is tried as it is, and with its checksum and the model's own made right. A file that
 * is refused leaves the session as it was, to the bit; one that is taken can be gone on with, and
 * saved again.
 */
#include "fuzz_api.h"

#include "base/codec/crc.h"
#include "io/reader.h"

enum { CTX = 8, V = 256 };

static tg_model *model;
static tg_session *session;
static uint8_t own[16]; /* the magic and the model's two checksums */

static void prepare(void) {
    static const tg_model_config config = {
        .layers = 2, .width = 4, .heads = 2, .ctx = CTX, .vocab = V, .mlp = 16
    };
    char path[FUZZ_PATH_BYTES];
    if (model) return;
    PROMISE(tg_model_new(fuzz_context(), &config, 1, &model) == TG_OK);
    PROMISE(tg_session_new(api_context, model, CTX, &session) == TG_OK);
    PROMISE(tg_session_save(session, fuzz_path(path, "own"), NULL, 0) == TG_OK);
    FILE *f = fopen(path, "rb");
    PROMISE(f && fread(own, 1, sizeof own, f) == sizeof own);
    fclose(f);
}

static int take_note(void *user, const char *bytes, size_t n) {
    *(size_t *)user += n;
    return n > 0 && bytes[0] == 0x7f; /* a note that its reader refuses */
}

static void try_file(const uint8_t *data, size_t n) {
    static const int32_t ids[] = { 'a', 'b' };
    char path[FUZZ_PATH_BYTES];
    float before[V];
    size_t note = 0;
    PROMISE(tg_session_rewind(session, 0) == TG_OK);
    PROMISE(tg_session_eval(session, ids, 2, NULL) == TG_OK);
    memcpy(before, tg_session_logits(session), sizeof before);
    fuzz_file(fuzz_path(path, "s"), data, n);
    const tg_status status = tg_session_load(session, path, take_note, &note);
    if (status == TG_OK) {
        const size_t have = tg_session_tokens(session);
        PROMISE(have <= CTX && note <= n);
        PROMISE(tg_session_save(session, path, "n", 1) == TG_OK);
        PROMISE(tg_session_load(session, path, NULL, NULL) == TG_OK);
        PROMISE(tg_session_tokens(session) == have);
        if (have < CTX) api_ok(tg_session_eval(session, ids, 1, NULL));
        int32_t token;
        (void)tg_session_sample(session, NULL, 0, &token);
    } else if (note == 0) {
        PROMISE(tg_context_error(api_context)[0]);
        PROMISE(tg_session_tokens(session) == 2);
        PROMISE(memcmp(before, tg_session_logits(session), sizeof before) == 0);
    } else {
        PROMISE(tg_session_tokens(session) == 0);
    }
}

static void fuzz_one(const uint8_t *data, size_t n) {
    prepare();
    try_file(data, n);
    if (n < sizeof own + 4) return;
    uint8_t *copy = fuzz_copy(data, n);
    memcpy(copy, own, sizeof own);
    tg_put_u32(copy + n - 4, tg_crc32c(0, copy, n - 4));
    try_file(copy, n);
    free(copy);
}
