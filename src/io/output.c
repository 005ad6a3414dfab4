/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - looks at what an output would replace. See output.h.
 *
 * A file is known by its first bytes. Those of GGUF and safetensors are anybody's, so ours have a
 * mark in their metadata, which stands near the beginning of both.
 */
#include "io/output.h"

enum { LOOK_BYTES = 16384 };

const char *const tg_output_folder_names[] = {
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "special_tokens_map.json",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "model.safetensors",
    "1_Pooling/",
    "2_Dense/",
    "3_Dense/",
    NULL,
};

static bool begins(const uint8_t *bytes, size_t n, const char *with, size_t n_with) {
    return n >= n_with && memcmp(bytes, with, n_with) == 0;
}

static bool has_mark(const uint8_t *bytes, size_t n) {
    static const char mark[] = TG_OUTPUT_MARK;
    for (size_t i = 0; i + sizeof mark - 1 <= n; i++)
        if (memcmp(bytes + i, mark, sizeof mark - 1) == 0) return true;
    return false;
}

static bool is_safetensors(const uint8_t *bytes, size_t n) {
    return n > 8 && bytes[8] == '{' && bytes[6] == 0 && bytes[7] == 0;
}

/* The kind of a file by its first bytes; -1: none of these. */
static int kind_of(const uint8_t *bytes, size_t n) {
    if (begins(bytes, n, "TGPT", 4)) return TG_OUTPUT_MODEL; /* v3's magic begins alike */
    if (begins(bytes, n, TG_OUTPUT_SESSION_BEGINS, sizeof TG_OUTPUT_SESSION_BEGINS - 1))
        return TG_OUTPUT_SESSION;
    if (begins(bytes, n, "GGUF", 4)) return TG_OUTPUT_GGUF;
    if (is_safetensors(bytes, n)) return TG_OUTPUT_SAFETENSORS;
    return -1;
}

static const char *const names[] = {
    [TG_OUTPUT_MODEL] = "a model or run of tinygpt",
    [TG_OUTPUT_GGUF] = "a GGUF file of tinygpt's making",
    [TG_OUTPUT_SAFETENSORS] = "a safetensors file of tinygpt's making",
    [TG_OUTPUT_SESSION] = "a session of tinygpt",
};

static bool is_right(const tg_output_rule *o, const uint8_t *bytes, size_t n) {
    if (n == 0) return true; /* nothing is lost */
    if (o->kind == TG_OUTPUT_OTHER) {
        const size_t some = n < o->begins_bytes ? n : o->begins_bytes;
        return o->begins && begins(bytes, n, o->begins, some);
    }
    if (kind_of(bytes, n) != (int)o->kind) return false;
    return (o->kind != TG_OUTPUT_GGUF && o->kind != TG_OUTPUT_SAFETENSORS) || has_mark(bytes, n);
}

/* What stands there, in words. */
static const char *found(const uint8_t *bytes, size_t n) {
    const int kind = kind_of(bytes, n);
    if (kind == TG_OUTPUT_MODEL || kind == TG_OUTPUT_SESSION) return names[kind];
    if (kind >= 0 && has_mark(bytes, n)) return names[kind];
    if (kind == TG_OUTPUT_GGUF) return "a GGUF file that tinygpt did not write";
    if (kind == TG_OUTPUT_SAFETENSORS) return "a safetensors file that tinygpt did not write";
    return "a file of another kind";
}

static tg_status look(tg_ctx *ctx, const char *path, uint8_t bytes[LOOK_BYTES], size_t *n,
                      uint64_t *total) {
    tg_os_file *file;
    TG_TRY(tg_os_file_open(ctx, path, &file));
    *total = tg_os_file_bytes(file);
    *n = *total < LOOK_BYTES ? (size_t)*total : LOOK_BYTES;
    const tg_status s = tg_os_file_read(ctx, file, 0, bytes, *n);
    tg_os_file_close(file);
    return s;
}

/* A look at an output is no reading of an input. */
static tg_status look_unseen(tg_ctx *ctx, const char *path, uint8_t bytes[LOOK_BYTES], size_t *n,
                             uint64_t *total) {
    tg_os_seen *seen = ctx->files.seen;
    ctx->files.seen = NULL;
    const tg_status s = look(ctx, path, bytes, n, total);
    ctx->files.seen = seen;
    return s;
}

static const char *what_it_is(const tg_output_rule *o) {
    return o->kind == TG_OUTPUT_OTHER ? o->what : names[o->kind];
}

/* keep: there is something that the output takes the place of. */
static tg_status want_place(tg_ctx *ctx, const char *path, const tg_output_rule *o, bool *keep) {
    uint8_t bytes[LOOK_BYTES];
    size_t n;
    uint64_t total;
    *keep = false;
    TG_TRY(tg_os_want_unseen(ctx, path));
    /* Before the question whose lock it has: names of pipes in /dev/fd lead to no place. */
    if (o->stream && tg_os_kind_of(path) == TG_OS_OTHER) return TG_OK;
    TG_TRY(tg_os_want_unlocked(ctx, path));
    if (tg_os_kind_of(path) == TG_OS_NONE) return TG_OK;
    TG_TRY(look_unseen(ctx, path, bytes, &n, &total)); /* refuses what is no regular file */
    *keep = n > 0;
    if (is_right(o, bytes, n) || ctx->files.force) return TG_OK;
    return tg_fail(ctx, TG_E_ARG,
                   "%s: want nothing or %s there, have %s (%" PRIu64
                   " bytes), which would be replaced: --force (tg_context_force) does it",
                   path, what_it_is(o), found(bytes, n), total);
}

/* What path has goes to path.prev, so what is there has to be as little of a loss. */
static tg_status want_previous(tg_ctx *ctx, const char *path, const tg_output_rule *o) {
    uint8_t bytes[LOOK_BYTES];
    char previous[8192];
    size_t n;
    uint64_t total;
    TG_TRY(tg_os_previous(ctx, path, previous, sizeof previous));
    TG_TRY(tg_os_want_unseen(ctx, previous));
    if (tg_os_kind_of(previous) == TG_OS_NONE) return TG_OK;
    TG_TRY(look_unseen(ctx, previous, bytes, &n, &total));
    if (is_right(o, bytes, n) || ctx->files.force) return TG_OK;
    return tg_fail(ctx, TG_E_ARG,
                   "%s: want nothing or %s there, where the one before is kept, have %s (%" PRIu64
                   " bytes), which would be lost: move it away, or --force (tg_context_force)",
                   previous, what_it_is(o), found(bytes, n), total);
}

tg_status tg_output_want(tg_ctx *ctx, const char *path, const tg_output_rule *o, bool *keep) {
    bool kept;
    TG_TRY(want_place(ctx, path, o, &kept));
    if (keep) *keep = kept;
    return kept ? want_previous(ctx, path, o) : TG_OK;
}

tg_status tg_output_want_saves(tg_ctx *ctx, const char *path, const tg_output_rule *o) {
    bool kept;
    TG_TRY(want_place(ctx, path, o, &kept));
    return o->stream && tg_os_kind_of(path) == TG_OS_OTHER ? TG_OK : want_previous(ctx, path, o);
}

tg_status tg_output_want_kind(tg_ctx *ctx, const char *path, tg_output_kind kind, bool *keep) {
    const tg_output_rule o = { .kind = kind };
    return tg_output_want(ctx, path, &o, keep);
}

/* ---------------------------------------------------------------------------------------- folders
 */

typedef struct names_seen {
    tg_ctx *ctx;
    const char *folder;
    bool any, weights;
    char strange[256]; /* the first name that is not ours */
    tg_status status;
} names_seen;

/* A folder of ours has one file at most, which is read under its own name. */
static tg_status want_unseen(tg_ctx *ctx, const char *folder, const char *name) {
    char path[8192];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n >= (int)sizeof path) return tg_fail(ctx, TG_E_IO, "%s: the name is too long", folder);
    return tg_os_want_unseen(ctx, path);
}

static bool on_name(void *user, const char *name) {
    names_seen *s = user;
    bool ours = false;
    for (size_t i = 0; tg_output_folder_names[i]; i++) {
        const size_t n = strcspn(tg_output_folder_names[i], "/");
        ours = ours || (strlen(name) == n && memcmp(name, tg_output_folder_names[i], n) == 0);
    }
    s->any = true;
    s->weights = s->weights || strcmp(name, "model.safetensors") == 0;
    if (!ours && !s->strange[0]) snprintf(s->strange, sizeof s->strange, "%s", name);
    s->status = want_unseen(s->ctx, s->folder, name);
    return s->status == TG_OK;
}

/* What would become .prev is not lost; what is .prev already would be. */
static tg_status refuse_folder(tg_ctx *ctx, const char *path, const char *have, bool previous) {
    if (previous)
        return tg_fail(ctx, TG_E_ARG,
                       "%s: want nothing there, or a folder of tinygpt's making, have %s in it, "
                       "which would be removed: move it away",
                       path, have);
    return tg_fail(ctx, TG_E_ARG,
                   "%s: want an empty folder or one of tinygpt's making, which is replaced as a "
                   "whole, have %s in it: --force (tg_context_force) moves all of it to %s.prev",
                   path, have, path);
}

static tg_status want_one_folder(tg_ctx *ctx, const char *path, bool previous) {
    names_seen s = { .ctx = ctx, .folder = path };
    char weights[8192];
    if (tg_os_kind_of(path) != TG_OS_FOLDER) return TG_OK; /* tg_save_folder says what it is */
    TG_TRY(tg_os_each_name(ctx, path, on_name, &s));
    TG_TRY(s.status);
    static const char *const inside[] = { "1_Pooling/config.json", "2_Dense/config.json",
                                          "2_Dense/model.safetensors", "3_Dense/config.json",
                                          "3_Dense/model.safetensors" };
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        TG_TRY(want_unseen(ctx, path, inside[i]));
    if (!s.any || (ctx->files.force && !previous)) return TG_OK;
    if (s.strange[0]) return refuse_folder(ctx, path, s.strange, previous);
    if (snprintf(weights, sizeof weights, "%s/model.safetensors", path) >= (int)sizeof weights)
        return tg_fail(ctx, TG_E_IO, "%s: the name is too long", path);
    if (s.weights) return tg_output_want_kind(ctx, weights, TG_OUTPUT_SAFETENSORS, NULL);
    return refuse_folder(ctx, path, "files of another model", previous);
}

tg_status tg_output_want_folder(tg_ctx *ctx, const char *path) {
    char previous[8192];
    TG_TRY(want_one_folder(ctx, path, false));
    if (snprintf(previous, sizeof previous, "%s.prev", path) >= (int)sizeof previous)
        return tg_fail(ctx, TG_E_IO, "%s: the name is too long", path);
    return want_one_folder(ctx, previous, true);
}

/* -------------------------------------------------------------------------------- the writer */

struct tg_writer {
    tg_ctx *ctx;
    tg_save *save;
    tg_os_stream *stream; /* instead of save */
    bool keep;
    tg_status status;
};

tg_status tg_writer_open(tg_ctx *ctx, const char *path, const tg_output_rule *output,
                         tg_writer **out) {
    bool keep;
    *out = NULL;
    TG_TRY(tg_output_want(ctx, path, output, &keep));
    tg_writer *w = tg_alloc(&ctx->mem, sizeof *w);
    if (!w) return tg_fail_memory(ctx, path, sizeof *w);
    *w = (tg_writer) { .ctx = ctx, .keep = keep };
    const tg_status s = output->stream && tg_os_kind_of(path) == TG_OS_OTHER
                            ? tg_os_stream_new(ctx, path, &w->stream)
                            : tg_save_begin(ctx, path, &w->save);
    if (s == TG_OK)
        *out = w;
    else
        tg_free(&ctx->mem, w, sizeof *w);
    return s;
}

tg_status tg_writer_write(tg_writer *w, const char *bytes, size_t n_bytes) {
    if (w->status == TG_OK)
        w->status = w->stream ? tg_os_stream_write(w->ctx, w->stream, bytes, n_bytes)
                              : tg_save_write(w->save, bytes, n_bytes);
    return w->status;
}

tg_status tg_writer_publish(tg_writer *w) {
    if (w->status == TG_OK && w->save) w->status = tg_save_publish(w->save, w->keep);
    return w->status;
}

static tg_status end(tg_writer *w, bool commit) {
    tg_ctx *ctx = w->ctx;
    tg_status s = w->status;
    if (w->save && commit && s == TG_OK)
        s = tg_save_commit(w->save, w->keep);
    else
        tg_save_abort(w->save);
    tg_os_stream_free(w->stream);
    tg_free(&ctx->mem, w, sizeof *w);
    return s;
}

tg_status tg_writer_commit(tg_writer *w) { return w ? end(w, true) : TG_OK; }
void tg_writer_abort(tg_writer *w) {
    if (w) (void)end(w, false);
}
