/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions.c - the public calls about conversations in a session: what of it is kept when they
 * change. They check, and pass on.
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
