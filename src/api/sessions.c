/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - the public calls about conversations in a session: what of it is kept when they
 * change, and in files. They check, and pass on.
 */
#include "api/jobs.h"
#include "api/want.h"
#include "engine/session.h"

/* The last token is always left to be fed: its logits are what is wanted. */
tg_status tg_session_reuse(tg_session *session, const int32_t *tokens, size_t n, size_t *same) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    if (n) WANT(session->ctx, tokens);
    WANT(session->ctx, same);
    TG_TRY(tg_session_want_idle(session));
    *same = tg_session_keep_common(session, tokens, n);
    return TG_OK;
}

tg_status tg_session_set_mask(tg_session *session, tg_mask_fn mask, void *user) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    TG_TRY(tg_session_want_idle(session));
    session->mask = mask;
    session->mask_user = user;
    return TG_OK;
}

size_t tg_session_held(const tg_session *session) { return session ? (size_t)session->n_held : 0; }

tg_status tg_session_save(tg_session *session, const char *path, const void *note,
                          size_t note_bytes) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, path);
    if (note_bytes) WANT(session->ctx, note);
    TG_TRY(tg_session_want_idle(session));
    TG_TRY(tg_weights_want_steady(session->model));
    return tg_session_write(session, path, note, note_bytes);
}

tg_status tg_session_load(tg_session *session, const char *path, tg_text_fn note, void *user) {
    if (!session) return TG_E_ARG;
    ENTER(session->ctx);
    WANT(session->ctx, path);
    TG_TRY(tg_session_want_idle(session));
    TG_TRY(tg_weights_want_steady(session->model));
    tg_os_own(&session->ctx->err, path); /* it goes on, and is saved where it was */
    return tg_session_read(session, path, note, user);
}
