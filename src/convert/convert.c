/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - a model of any kind as GGUF or as .tinygpt v3 (gguf_out.c) or as a folder
 * (convert_hf.c), read back (convert_check.c) to see what became of it.
 *
 *     source   a tg_gguf: of GGUF, of a folder of safetensors, of our own family (own_gguf.c)
 */
#include "convert/convert.h"

#include "convert/own_gguf.h"
#include "io/hf/hf.h"
#include "io/output.h"
#include "io/run/meta.h"
#include "load/model_file.h"
#include "tok/tok_inside.h"

/* The type of matrices, whether some of them are of a finer one (gguf_out.c), and
 * general.file_type, as llama.cpp numbers what most of a file is. */
static const struct {
    tg_dtype dtype;
    bool mixed;
    uint32_t number;
} types[] = {
    [TG_WEIGHT_F32] = { TG_F32, false, 0 },     [TG_WEIGHT_F16] = { TG_F16, false, 1 },
    [TG_WEIGHT_BF16] = { TG_BF16, false, 32 },  [TG_WEIGHT_Q8_0] = { TG_Q8_0, false, 7 },
    [TG_WEIGHT_Q4_0] = { TG_Q4_0, false, 2 },   [TG_WEIGHT_Q4_K] = { TG_Q4_K, false, 15 },
    [TG_WEIGHT_Q5_0] = { TG_Q5_0, false, 8 },   [TG_WEIGHT_IQ4_NL] = { TG_IQ4_NL, false, 25 },
    [TG_WEIGHT_Q5_K] = { TG_Q5_K, false, 17 },  [TG_WEIGHT_Q6_K] = { TG_Q6_K, false, 18 },
    [TG_WEIGHT_Q4_K_M] = { TG_Q4_K, true, 15 }, [TG_WEIGHT_Q5_K_M] = { TG_Q5_K, true, 17 },
};

/* -------------------------------------------------------------------------------------- the whole
 */

/* Is it a run of the byte GPT, which goes into a folder of floats with its story? */
static tg_status is_own(tg_conversion *c, bool *own) {
    tg_model_file f;
    TG_TRY(tg_model_file_open(&c->ctx->err, c->in, &f));
    c->table.config = f.table.config;
    *own = f.run && tg_meta_is_own(&f.table.config);
    tg_model_file_close(&f);
    return TG_OK;
}

/* Of such a run the tokenizer is all that is wanted here: tools.h has its weights. */
static tg_status open_source(tg_conversion *c, char folder[TG_GGUF_PATH_BYTES], bool *own) {
    *own = false;
    if (c->kind == TG_FILE_FOLDER && c->type == TG_F32) TG_TRY(is_own(c, own));
    if (*own) return tg_own_gguf(&c->ctx->err, c->in, NULL, &c->g);
    TG_TRY(tg_any_gguf(&c->ctx->err, c->in, folder, &c->run, &c->g));
    return tg_tensors_read(&c->g, &c->arena, false, &c->table);
}

/* Asked between the last byte and the rename; the weights of a model of ours are not needed any
 * more. */
static tg_status check_temp(void *user, const char *temp) {
    tg_conversion *c = user;
    tg_own_run_close(&c->run);
    return tg_convert_check(c->ctx, c->in, temp, c->kind, c->report);
}

static tg_status write_file(tg_conversion *c) {
    tg_ctx *ctx = &c->ctx->err;
    const bool gguf = c->kind == TG_FILE_GGUF;
    TG_TRY(tg_output_want_kind(ctx, c->out, gguf ? TG_OUTPUT_GGUF : TG_OUTPUT_MODEL, &c->keep));
    ctx->files.check = check_temp;
    ctx->files.check_user = c;
    const tg_status s = gguf ? tg_convert_write_gguf(c) : tg_convert_write_v3(c);
    ctx->files.check = NULL;
    return s;
}

/* FOLDER/model.safetensors stands for its folder, as an input does. */
static tg_status name_folder(tg_conversion *c) {
    static const char file[] = "model.safetensors";
    const char *slash = strrchr(c->out, '/'), *base = slash ? slash + 1 : c->out;
    if (strcmp(base, file) != 0 || tg_os_kind_of(c->out) == TG_OS_FOLDER) return TG_OK;
    c->out = slash
                 ? tg_arena_strndup(&c->arena, c->out, (size_t)(slash - c->out) + (slash == c->out))
                 : ".";
    return c->out ? TG_OK : tg_fail_memory(&c->ctx->err, file, sizeof file);
}

static tg_status convert(tg_conversion *c, const tg_calibration *calibration) {
    char folder[TG_GGUF_PATH_BYTES];
    bool own = false;
    if (c->kind == TG_FILE_FOLDER) TG_TRY(name_folder(c));
    TG_TRY(tg_fail_named(&c->ctx->err, c->in, open_source(c, folder, &own)));
    if (calibration) TG_TRY(tg_convert_measure(c, calibration));
    if (c->kind != TG_FILE_FOLDER) return write_file(c);
    TG_TRY(tg_output_want_folder(&c->ctx->err, c->out));
    return own ? tg_convert_write_own_hf(c) : tg_convert_write_hf(c);
}

tg_status tg_convert(tg_context *ctx, const char *in, const char *out, tg_file_kind kind,
                     tg_weight_type type, const tg_calibration *calibration,
                     tg_convert_report *report) {
    *report = (tg_convert_report) { .n_tensors = 0 };
    tg_conversion c = { .ctx = ctx,
                        .in = in,
                        .out = out,
                        .kind = kind,
                        .type = types[type].dtype,
                        .mixed = types[type].mixed,
                        .file_type = types[type].number,
                        .report = report };
    tg_os_seen seen;
    tg_arena_init(&c.arena, &ctx->err.mem);
    tg_os_seen_begin(&ctx->err, &seen);
    const tg_status s = convert(&c, calibration);
    tg_os_seen_end(&ctx->err);
    report->in_bytes = c.g.total_bytes;
    if (s == TG_OK) tg_convert_count_weighed(&c);
    tg_tok_free(c.tok);
    tg_gguf_close(&c.g);
    tg_own_run_close(&c.run);
    tg_arena_deinit(&c.arena);
    return s;
}
