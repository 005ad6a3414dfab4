/*
 * native_files.c - the public calls about files that no page makes: to compare two, to keep a
 * session in one, and to tell whether one has checksums and how long opening took. They check, and
 * pass on. Not in WebAssembly.
 */
#include "api/want.h"
#include "io/file.h"
#include "io/tools.h"
#include "run/jobs.h"
#include "run/lm.h"
#include "run/session.h"

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
    return tg_session_read(session, path, note, user);
}

tg_status tg_file_compare(tg_context *ctx, const char *path_a, const char *path_b, bool *equal,
                          tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, path_a);
    WANT(ctx, path_b);
    WANT(ctx, equal);
    return tg_io_compare(&ctx->err, path_a, path_b, equal, write, user);
}

static tg_status has_checksums(tg_context *ctx, const char *path, bool *has) {
    char folder[TG_LM_PATH_BYTES];
    bool takes;
    TG_TRY(tg_lm_takes(&ctx->err, path, folder, &takes));
    if (takes) return tg_lm_has_checksums(ctx, folder, has);
    tg_file *file;
    TG_TRY(tg_file_open(&ctx->err, path, &file));
    *has = file->checksummed;
    tg_file_close(file);
    return TG_OK;
}

tg_status tg_file_has_checksums(tg_context *ctx, const char *path, bool *has) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, has);
    return tg_fail_named(&ctx->err, path, has_checksums(ctx, path, has));
}

tg_status tg_model_load_times(const tg_model *model, tg_load_times *out) {
    if (!model || !out) return TG_E_ARG;
    const tg_lm_model *m = model->lm;
    *out = (tg_load_times) { .open_ms = 0 };
    if (!m) return TG_OK;
    *out = (tg_load_times) { m->open_ms, m->tok_ms, m->pack_ms, 0, false };
    out->mapped = m->map.data != NULL;
    if (out->mapped) out->bytes = m->lm.bytes;
    for (size_t i = 0; !out->mapped && i < m->lm.n_tensors; i++)
        if (!m->lm.tensors[i].stays) out->bytes += m->lm.tensors[i].source->bytes;
    return TG_OK;
}
