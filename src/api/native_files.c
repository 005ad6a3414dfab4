/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_files.c - the public calls about files that no page makes: to compare two, to convert any
 * model, to write files as the library does, and to tell whether one has checksums and how long
 * opening took; and texts of rows, of mixes and of conversations. They check, and pass on.
 *
 * The Makefile leaves this file out of WebAssembly (WASM_SRC), and with it what it alone calls: a
 * page has no file system, and its modules are close to their budget of bytes. What a page can do
 * as well is in tinygpt.c.
 *
 *     tg_file_compare, _has_checksums     io/run/tools.h, convert/convert.h; load/model_file.h
 *     tg_model_convert                    convert/convert.h, or a job of jobs_model.c
 *     tg_output_check, tg_writer_new      io/output.h
 *     tg_memory_file_.., tg_lock_..       base/os/os.h: the same object behind another pointer
 *     tg_text_of_rows, _mix, _of_chats    training/data/text.h, training/data/chats.h
 *     tg_model_eval_tokens                training/train.h
 */
#include "api/jobs.h"
#include "api/tokens.h"
#include "api/want.h"
#include "base/time.h"
#include "convert/convert.h"
#include "io/detect.h"
#include "io/output.h"
#include "io/run/tools.h"
#include "load/model_file.h"
#include "training/data/chats.h"
#include "training/train.h"

/* Two runs are compared with all that resuming needs; where one file is a model alone, the models
 * are. */
tg_status tg_file_compare(tg_context *ctx, const char *path_a, const char *path_b, bool *equal,
                          tg_text_fn write, void *user) {
    ENTER(ctx);
    WANT(ctx, path_a);
    WANT(ctx, path_b);
    WANT(ctx, equal);
    char folder[TG_GGUF_PATH_BYTES];
    bool model[2];
    *equal = false;
    TG_TRY(tg_fail_named(&ctx->err, path_a, tg_gguf_takes(&ctx->err, path_a, folder, &model[0])));
    TG_TRY(tg_fail_named(&ctx->err, path_b, tg_gguf_takes(&ctx->err, path_b, folder, &model[1])));
    return (model[0] || model[1] ? tg_convert_compare : tg_io_compare)(&ctx->err, path_a, path_b,
                                                                       equal, write, user);
}

/* Opening a file tells whether it has any; whether they are right is what tg_file_check asks. */
tg_status tg_file_has_checksums(tg_context *ctx, const char *path, bool *has) {
    tg_model_file f;
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, has);
    TG_TRY(tg_fail_named(&ctx->err, path, tg_model_file_open(&ctx->err, path, &f)));
    *has = tg_model_file_checksummed(&f);
    tg_model_file_close(&f);
    return TG_OK;
}

/* A question about an object, so it has no ENTER and leaves the last message. Bytes are those that
 * this opening had to go through: all of a mapped cache of packed weights, since they are checked;
 * else the sources of tensors that were packed. Those that stay in the mapped file cost nothing. */
tg_status tg_model_load_times(const tg_model *model, tg_load_times *out) {
    if (!model || !out) return TG_E_ARG;
    const tg_tensors *t = &model->table;
    *out = (tg_load_times) { model->open_ms, model->tok_ms, model->pack_ms, 0, false };
    out->mapped = model->map.data != NULL;
    if (out->mapped) out->bytes = t->bytes;
    for (size_t i = 0; !out->mapped && i < t->n_tensors; i++)
        if (!t->tensors[i].stays) out->bytes += t->tensors[i].source->bytes;
    return TG_OK;
}

/* Runs stay runs in another .tinygpt file of floats; all else is read as a model, and held against
 * what was made of it. */
static tg_status by_model(tg_context *ctx, const char *path_in, tg_file_kind kind,
                          tg_weight_type type, bool *answer) {
    char folder[TG_GGUF_PATH_BYTES];
    *answer = kind == TG_FILE_GGUF || kind == TG_FILE_FOLDER ||
              (kind == TG_FILE_V3 && type != TG_WEIGHT_F32);
    if (*answer || kind != TG_FILE_V3) return TG_OK;
    return tg_gguf_takes(&ctx->err, path_in, folder, answer);
}

/* The enums are checked by their ends: a value from a program in another language may be any
 * number. A conversion that is held against the original is src/convert's, at one go; of the other
 * one there is a job, which this runs to its end. report is filled after a conversion that failed
 * as well, with what was known by then. */
static tg_status convert(tg_context *ctx, const char *path_in, const char *path_out,
                         tg_file_kind kind, tg_weight_type type, const tg_calibration *calibration,
                         tg_convert_report *report) {
    if (type < TG_WEIGHT_F32 || type > TG_WEIGHT_Q5_K_M || kind < TG_FILE_V3 || kind > TG_FILE_GGUF)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "conversion: want a kind of 0..%d and a type of 0..%d, "
                       "have %d and %d",
                       TG_FILE_GGUF, TG_WEIGHT_Q5_K_M, (int)kind, (int)type);
    bool compared;
    tg_convert_report own = { .in_bytes = 0 };
    tg_status s = by_model(ctx, path_in, kind, type, &compared);
    if (s == TG_OK && compared) {
        s = tg_convert(ctx, path_in, path_out, kind, type, calibration, &own);
    } else if (s == TG_OK) {
        tg_job *job;
        TG_TRY(tg_model_convert_job(ctx, path_in, path_out, kind, &job));
        s = tg_job_finish(job);
    }
    if (report) *report = own;
    return s;
}

tg_status tg_model_convert(tg_context *ctx, const char *path_in, const char *path_out,
                           tg_file_kind kind, tg_weight_type type, tg_convert_report *report) {
    ENTER(ctx);
    WANT(ctx, path_in);
    WANT(ctx, path_out);
    return convert(ctx, path_in, path_out, kind, type, NULL, report);
}

tg_status tg_model_convert_calibrated(tg_context *ctx, const char *path_in, const char *path_out,
                                      tg_file_kind kind, tg_weight_type type,
                                      const tg_calibration *calibration,
                                      tg_convert_report *report) {
    ENTER(ctx);
    WANT(ctx, path_in);
    WANT(ctx, path_out);
    WANT(ctx, calibration);
    if (!calibration->text == !calibration->imatrix)
        return tg_fail(&ctx->err, TG_E_ARG, "calibration: want a text or an imatrix, have %s",
                       calibration->text ? "both" : "neither");
    if (calibration->text && calibration->text->train_row)
        return tg_fail(&ctx->err, TG_E_ARG,
                       "calibration: want a plain text, whose tokens are all learnt, have rows");
    if (type < TG_WEIGHT_Q4_0 || (kind != TG_FILE_GGUF && kind != TG_FILE_V3))
        return tg_fail(&ctx->err, TG_E_ARG,
                       "calibration: want GGUF or v3 with blocks of 4 to 6 bits, whose scales it "
                       "is for, have another kind or type");
    return convert(ctx, path_in, path_out, kind, type, calibration, report);
}

/* ------------------------------------------------------------------------------ files written */

/* Set by whoever fails, where errno or an allocator says why (base/err.h); cleared with the
 * message. */
bool tg_context_machine_failed(const tg_context *ctx) { return ctx && ctx->err.by_machine; }

/* This and the next one are settings, which stay until they are set again: they lie in the
 * context's tg_ctx, which goes down to where files are written. */
tg_status tg_context_force(tg_context *ctx, bool force) {
    ENTER(ctx);
    ctx->err.files.force = force;
    if (ctx->err.files.seen == &ctx->inputs) tg_os_seen_end(&ctx->err);
    if (!ctx->err.files.seen) tg_os_seen_begin(&ctx->err, &ctx->inputs);
    return TG_OK;
}

tg_status tg_context_cancel(tg_context *ctx, tg_cancel_fn cancel, void *user) {
    ENTER(ctx);
    ctx->err.files.cancel = cancel;
    ctx->err.files.cancel_user = user;
    return TG_OK;
}

/* Only outputs of kind OTHER say what they are: the others have their words in io/output.c. */
static tg_status want_output(tg_context *ctx, const tg_output_rule *output) {
    if (output->kind < TG_OUTPUT_MODEL || output->kind > TG_OUTPUT_OTHER)
        return tg_fail(&ctx->err, TG_E_ARG, "output: want a kind of 0..%d, have %d",
                       TG_OUTPUT_OTHER, (int)output->kind);
    if (output->kind == TG_OUTPUT_OTHER) WANT(ctx, output->what);
    return TG_OK;
}

/* For a program that computes for hours before it writes: it is told at once that it may not. The
 * answer may be another one by then, so tg_writer_new asks again. */
tg_status tg_output_check(tg_context *ctx, const char *path, const tg_output_rule *output) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, output);
    TG_TRY(want_output(ctx, output));
    return tg_output_want_saves(&ctx->err, path, output);
}

tg_status tg_writer_new(tg_context *ctx, const char *path, const tg_output_rule *output,
                        tg_writer **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, output);
    WANT(ctx, out);
    TG_TRY(want_output(ctx, output));
    return tg_writer_open(&ctx->err, path, output, out);
}

/* Files in memory of base/os/os.h under the name that callers know, and so the lock below. The
 * public type is declared and never defined: pointers are cast, and no call looks into it. bytes
 * are not copied. After an error *out is what base/os/os.h has set it to. */
tg_status tg_memory_file_new(tg_context *ctx, const char *name, const void *bytes, size_t n_bytes,
                             tg_memory_file **out) {
    ENTER(ctx);
    WANT(ctx, name);
    WANT(ctx, out);
    if (n_bytes) WANT(ctx, bytes);
    tg_os_memory_file *file;
    const tg_status s = tg_os_memory_file_new(&ctx->err, name, bytes, n_bytes, &file);
    *out = (tg_memory_file *)file;
    return s;
}

const char *tg_memory_file_path(const tg_memory_file *file) {
    return file ? tg_os_memory_file_path((const tg_os_memory_file *)file) : "";
}

void tg_memory_file_free(tg_memory_file *file) {
    tg_os_memory_file_free((tg_os_memory_file *)file);
}

/* The lock of base/os/os.h under the name that callers know: a file beside path, which the system
 * lets go of when the process ends, however it does. */
tg_status tg_lock_new(tg_context *ctx, const char *path, tg_lock **out) {
    ENTER(ctx);
    WANT(ctx, path);
    WANT(ctx, out);
    tg_os_lock *lock;
    const tg_status s = tg_os_lock_new(&ctx->err, path, &lock);
    *out = (tg_lock *)lock;
    return s;
}

void tg_lock_free(tg_lock *lock) { tg_os_lock_free((tg_os_lock *)lock); }

/* Called from a signal handler: no context, no memory and no lock. base/os/os_posix_save.c keeps
 * the paths in atomic slots, and unlinks them. */
void tg_drop_temporary_files(void) { tg_os_drop_temps(); }

/* A text without bytes, whose rows come from the program: training/data/windows.c asks train_row
 * where it would read bytes. The functions and user are borrowed until the text is freed. */
tg_status tg_text_of_rows(tg_context *ctx, tg_row_fn train, tg_row_fn val, uint64_t n_val,
                          uint32_t mark, void *user, tg_text **out) {
    ENTER(ctx);
    WANT(ctx, train);
    WANT(ctx, out);
    if (n_val) WANT(ctx, val);
    if (n_val > UINT32_MAX)
        return tg_fail(&ctx->err, TG_E_ARG, "rows: want at most %" PRIu32 " to validate on",
                       UINT32_MAX);
    TG_TRY(tg_text_new_memory(ctx, NULL, 0, out));
    tg_text *t = *out;
    t->train_row = train;
    t->val_row = val;
    t->n_val_rows = n_val;
    t->rows_mark = mark;
    t->rows_user = user;
    return TG_OK;
}

tg_status tg_model_eval_tokens(tg_context *ctx, tg_model *model, tg_text *text, double val_fraction,
                               int32_t eval_windows, tg_token_loss_fn told, void *user,
                               double *loss) {
    ENTER(ctx);
    WANT(ctx, model);
    WANT(ctx, text);
    WANT(ctx, told);
    WANT(ctx, loss);
    TG_TRY(tg_weights_want_steady(model));
    tg_model_evaluating e = { .told = told, .told_user = user };
    tg_status s = tg_model_evaluating_begin(&e, ctx, model, text, val_fraction, eval_windows);
    while (s == TG_OK && (s = tg_model_evaluating_go_on(&e, 0, loss)) == TG_PENDING) s = TG_OK;
    tg_model_evaluating_deinit(&e);
    return s;
}

/* Parts are given by their ends, and must tile what is trained on:
 *
 *     0 ..... end 0 ..... end 1 ..... train         the last part's end is not looked at
 *
 * A text has one mix, set once, so that nothing which was drawn by it can change. Weights are not
 * summed here; the bound of 1e30 keeps their sum finite. Copied, and freed with the text. */
tg_status tg_text_mix(tg_text *text, const tg_mix_part *parts, size_t n) {
    if (!text) return TG_E_ARG;
    ENTER(text->ctx);
    WANT(text->ctx, parts);
    tg_ctx *err = &text->ctx->err;
    if (n < 1 || n > INT32_MAX || text->n_mix || text->train_row)
        return tg_fail(err, TG_E_ARG, "mix: want a part or more of a text that has none");
    const uint64_t train = text->held_from ? text->held_from : text->n_bytes;
    for (size_t k = 0; k < n; k++) {
        const uint64_t first = k ? parts[k - 1].end : 0, end = k + 1 < n ? parts[k].end : train;
        if (first >= end || end > train)
            return tg_fail(err, TG_E_ARG,
                           "mix: part %zu: want an end in (%" PRIu64 ",%" PRIu64 "], have %" PRIu64,
                           k + 1, first, train, end);
        if (!(parts[k].weight > 0 && parts[k].weight <= 1e30))
            return tg_fail(err, TG_E_ARG, "mix: part %zu: want a weight above 0, have %g", k + 1,
                           parts[k].weight);
    }
    text->mix = tg_alloc(&err->mem, n * sizeof *parts);
    if (!text->mix) return tg_fail_memory(err, "parts of a mix", n * sizeof *parts);
    memcpy(text->mix, parts, n * sizeof *parts);
    text->n_mix = n;
    return TG_OK;
}

/* The day that a template writes which asks for one: the caller's, that of the run which the
 * tokenizer is of, or today's where the template has none of its own. */
static tg_jinja_date date_of(const tg_context *ctx, const tg_tokenizer *tok,
                             const tg_chat_template *chat) {
    bool todays;
    if (!chat || !tg_chat_asks_date(chat, &todays)) return (tg_jinja_date) { 0, 0, 0 };
    const int *given = ctx->date[2] ? ctx->date : tok->date;
    if (given[2]) return (tg_jinja_date) { given[0], given[1], given[2] };
    return todays ? tg_chat_date_of(tg_time_unix()) : (tg_jinja_date) { 0, 0, 0 };
}

/* made is a template that was read for this call, which chat points into, or nothing where it is
 * one that the tokenizer has: either way deinit is right. Rows are made before tg_chats_new
 * returns, so the template can go. Pairs may be texts, which want none. */
static tg_status text_of(tg_context *ctx, const tg_tokenizer *tok, const char *template_name,
                         const char *name, const char *bytes, size_t n_bytes, uint64_t val_from,
                         double beta, tg_chats_info *info, tg_text **out) {
    tg_chat_template made = { 0 };
    const tg_chat_template *chat = NULL;
    tg_chats_info own;
    ENTER(ctx);
    WANT(ctx, tok);
    WANT(ctx, name);
    WANT(ctx, out);
    if (n_bytes) WANT(ctx, bytes);
    if (beta == 0 || template_name || tok->template_text)
        TG_TRY(tg_template_want(ctx, tok, template_name, &made, &chat));
    const tg_status s = tg_chats_new(ctx, tok->tok, chat, date_of(ctx, tok, chat), name, bytes,
                                     n_bytes, val_from, beta, info ? info : &own, out);
    tg_chat_template_deinit(&made);
    return s;
}

tg_status tg_text_of_chats(tg_context *ctx, const tg_tokenizer *tok, const char *template_name,
                           const char *name, const char *bytes, size_t n_bytes, uint64_t val_from,
                           tg_chats_info *info, tg_text **out) {
    return text_of(ctx, tok, template_name, name, bytes, n_bytes, val_from, 0, info, out);
}

tg_status tg_text_of_pairs(tg_context *ctx, const tg_tokenizer *tok, const char *template_name,
                           const char *name, const char *bytes, size_t n_bytes, uint64_t val_from,
                           double beta, tg_chats_info *info, tg_text **out) {
    ENTER(ctx);
    if (!(beta > 0 && beta <= 1000))
        return tg_fail(&ctx->err, TG_E_ARG, "beta: want more than 0 and at most 1000, have %g",
                       beta);
    return text_of(ctx, tok, template_name, name, bytes, n_bytes, val_from, beta, info, out);
}

tg_status tg_trainer_preferences(const tg_trainer *trainer, tg_preferences *out) {
    if (!trainer || !out) return TG_E_ARG;
    *out = trainer->preferences;
    return tg_train_pairs(trainer->text) ? TG_OK : TG_E_ARG;
}
