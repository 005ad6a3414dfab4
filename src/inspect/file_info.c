/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_info.c - what a file is, as lines or as JSON, out of its head alone.
 *
 * A file that metadata describe is told of here: a family's sizes, a vocabulary, types and layouts.
 * A file of a run has another story, of steps and losses, and tensors that are floats at an offset:
 * tg_io_info tells that.
 *
 *     io/detect.h            which of the two it is, and the folder of a model.safetensors
 *     tg_gguf_open_any       GGUF, safetensors, .tinygpt of packed weights: all with GGUF's keys
 *     tg_tensors_read        sizes, types and layouts as the family has them; no weight is read
 *     put_lines, put_json    the same for people and for programs
 *
 * Whatever a file says is bytes of a stranger. Lengths were checked when the head was read; here
 * strings go to a terminal or into JSON, and are made harmless for it. Text grows in one tg_buf,
 * whose errors are sticky, and goes to `write` in one piece at the end: nothing is written of a
 * file that turns out to be broken.
 */
#include "base/buf.h"
#include "base/json.h"
#include "chat/chat.h"
#include "inspect/inspect.h"
#include "io/detect.h"
#include "io/hf.h"
#include "io/tools.h"

/* Bytes of a cache of so many positions with keys and values of this type, as sessions make it: a
 * layer's window has room for the rows of the longest run as well, and states are as they are. */
static uint64_t cache_bytes(const tg_model_config *c, tg_dtype type, int32_t positions) {
    return tg_model_state_bytes(c, type, positions, TG_SESSION_ROWS_MAX);
}

/* Of a million bytes, as disks and downloads are counted. */
static double megabytes(uint64_t bytes) { return (double)bytes / 1e6; }

/* A file may mix types by tensor, so a name such as Q4_K_M says little: each type with its share,
 * in the order of the table of types. A loop over all tensors for each type is quick enough for the
 * some thousand tensors of a large model. */
static void put_types(const tg_tensors *table, tg_buf *out) {
    for (int type = 0; type < TG_DTYPE_COUNT; type++) {
        size_t n = 0;
        uint64_t bytes = 0;
        for (size_t i = 0; i < table->n_tensors; i++) {
            if (table->tensors[i].source->type != (tg_dtype)type) continue;
            n++;
            bytes += table->tensors[i].source->bytes;
        }
        if (n)
            tg_buf_printf(out, "  %-8s  %zu tensor%s, %.1f MB\n", tg_dtype_table[type].label, n,
                          n == 1 ? "" : "s", megabytes(bytes));
    }
}

/* A line for a text that a file may have or not: 120 bytes of it, which is enough to know it by. */
static void put_text(const tg_gguf *g, const char *key, const char *label, tg_buf *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v || v->type != TG_GGUF_STRING || v->text.n_bytes == 0) return;
    tg_buf_printf(out, "%s", label);
    /* Text of a file goes to a terminal: controls do not. */
    for (size_t i = 0; i < v->text.n_bytes && i < 120; i++) {
        const unsigned char c = (unsigned char)v->text.bytes[i];
        tg_buf_putc(out, c < 0x20 || c == 0x7f ? ' ' : (char)c);
    }
    tg_buf_puts(out, "\n");
}

#define TEMPLATE "tokenizer.chat_template"

static const tg_gguf_value *template_of(const tg_gguf *g) {
    const tg_gguf_value *v = tg_gguf_find(g, TEMPLATE);
    return v && v->type == TG_GGUF_STRING ? v : NULL;
}

/* Why the file's chat template cannot be read; "": it can. A context of its own takes the message,
 * as a template that is not known is no error of a call that only tells of the file. It has the
 * same allocator and no log. A template that is read is thrown away again: what matters is whether.
 */
static void template_fault(const tg_gguf *g, const tg_gguf_value *v, char out[TG_MESSAGE_BYTES]) {
    tg_ctx quiet;
    tg_chat_template t = { 0 };
    tg_ctx_init(&quiet, &g->ctx->mem, NULL, NULL);
    (void)tg_chat_template_new(&quiet, g->path, v->text.bytes, v->text.n_bytes, &t);
    tg_chat_template_deinit(&t);
    memcpy(out, quiet.message, TG_MESSAGE_BYTES);
}

/* At 1024, 4096 and 16384 tokens, and at the model's whole context: what a person may choose. The
 * other two types are told for the whole context alone. */
static void put_cache(const tg_model_config *c, tg_buf *out) {
    tg_buf_puts(out, "cache       ");
    for (int32_t n = 1024; n < c->ctx && n <= 16384; n *= 4)
        tg_buf_printf(out, "%.1f MB for %d tokens, ", megabytes(cache_bytes(c, TG_F32, n)), (int)n);
    tg_buf_printf(out, "%.1f MB for %d tokens, in f32; %.1f MB in f16, %.1f MB in int8\n",
                  megabytes(cache_bytes(c, TG_F32, c->ctx)), (int)c->ctx,
                  megabytes(cache_bytes(c, TG_F16, c->ctx)),
                  megabytes(cache_bytes(c, TG_U8, c->ctx)));
}

/* For people: `tinygpt info`. What the file does not say has no line. Labels are twelve columns, so
 * that facts stand below each other; a label with two spaces before it belongs to the line above.
 * An encoder keeps nothing of the texts that it reads, so it has no cache to tell of. */
static void put_lines(const tg_gguf *g, const tg_tensors *table, tg_buf *out) {
    const tg_model_config *c = &table->config;
    tg_buf_printf(out, "file        %s\n", g->path);
    tg_buf_printf(out, "format      %s, %" PRIu64 " bytes in %zu file%s, %s\n", tg_gguf_format(g),
                  g->total_bytes, g->n_files, g->n_files == 1 ? "" : "s",
                  g->checks.crc            ? "CRC-32C of chunks and SHA-256"
                  : tg_gguf_checksummed(g) ? "CRC-32 of members"
                                           : "no checksums");
    put_text(g, "general.name", "name        ", out);
    tg_buf_printf(
        out,
        "model       %s, layers %d, width %d, heads %d of %d (%d for keys), mlp %d, vocab "
        "%d, ctx %d\n",
        c->family, (int)c->layers, (int)c->width, (int)c->heads, (int)c->head_size,
        (int)c->kv_heads, (int)c->mlp, (int)c->vocab, (int)c->ctx);
    if (c->window && c->window_every == 0)
        tg_buf_printf(out, "window      %d, in all layers\n", (int)c->window);
    else if (c->window)
        tg_buf_printf(out, "window      %d, in all layers but one of %d\n", (int)c->window,
                      (int)c->window_every);
    if (c->ssm_heads > 0)
        tg_buf_printf(
            out, "kinds       %.*s: a for attention, %s of %d heads of %d, states of %d\n",
            (int)c->layers, c->layer_kind,
            tg_family_of(c)->other == TG_LAYER_DELTA ? "d for a gated delta net" : "m for Mamba2",
            (int)c->ssm_heads, (int)c->ssm_head_size, (int)c->ssm_state);
    else if (c->conv_taps > 0)
        tg_buf_printf(out, "kinds       %.*s: a for attention, c for a convolution over %d\n",
                      (int)c->layers, c->layer_kind, (int)c->conv_taps);
    if (c->experts > 0)
        tg_buf_printf(out,
                      "experts     %d in a layer, %d of them for a token, which meets %" PRIu64
                      " parameters\n",
                      (int)c->experts, (int)c->experts_used, tg_config_active_params(c));
    tg_buf_printf(out, "parameters  %" PRIu64 ", stored as\n", table->elems);
    put_types(table, out);
    if (g->tokenizer_json) tg_buf_puts(out, "tokenizer   tokenizer.json\n");
    put_text(g, "tokenizer.ggml.model", "tokenizer   ", out);
    put_text(g, "tokenizer.ggml.pre", "  splitter  ", out);
    const tg_gguf_value *written = template_of(g);
    if (written) {
        char fault[TG_MESSAGE_BYTES];
        template_fault(g, written, fault);
        tg_buf_printf(out, "template    %" PRIu64 " bytes of Jinja%s%s\n",
                      (uint64_t)written->text.n_bytes, *fault ? ", which cannot be read: " : "",
                      fault);
    }
    put_text(g, TEMPLATE, "  begins    ", out);
    tg_buf_printf(out, "memory      %.1f MB of weights\n", megabytes(table->bytes));
    if (!tg_family_of(c)->encode) put_cache(c, out);
}

static void put_number(tg_json_writer *w, const char *key, int64_t value) {
    tg_json_key(w, key);
    tg_json_put_int(w, value);
}

/* The member is left out where the file has no such string. Whole, unlike in a line: a program can
 * have the template from here. The writer escapes it. */
static void put_string(tg_json_writer *w, const char *key, const tg_gguf *g, const char *name) {
    const tg_gguf_value *v = tg_gguf_find(g, name);
    if (!v || v->type != TG_GGUF_STRING) return;
    tg_json_key(w, key);
    tg_json_put_string_n(w, v->text.bytes, v->text.n_bytes);
}

/* What a cache takes at several lengths, so that a reader need not know how one is made: powers of
 * 2 from 1,024 up to the context, and 131,072 at most. Empty for encoders and for shorter contexts.
 */
static void put_caches(tg_json_writer *w, const tg_model_config *c) {
    tg_json_key(w, "caches");
    tg_json_begin_array(w);
    for (int32_t n = 1024; !tg_family_of(c)->encode && n <= c->ctx && n <= 1 << 17; n *= 2) {
        tg_json_begin_object(w);
        put_number(w, "tokens", n);
        put_number(w, "bytes", (int64_t)cache_bytes(c, TG_F32, n));
        put_number(w, "bytes_f16", (int64_t)cache_bytes(c, TG_F16, n));
        put_number(w, "bytes_int8", (int64_t)cache_bytes(c, TG_U8, n));
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

/* The same for programs. Keys are stable, so one whose value a file lacks is left out, and none is
 * ever renamed; sizes are in bytes, numbers of weights in elements. */
static void put_json(const tg_gguf *g, const tg_tensors *table, tg_buf *out) {
    const tg_model_config *c = &table->config;
    tg_json_writer w;
    tg_json_writer_init(&w, out);
    tg_json_begin_object(&w);
    tg_json_key(&w, "file");
    tg_json_put_string(&w, g->path);
    tg_json_key(&w, "format");
    tg_json_put_string(&w, tg_gguf_kind(g));
    put_number(&w, "version", g->version);
    put_number(&w, "bytes", (int64_t)g->total_bytes);
    tg_json_key(&w, "checksummed");
    tg_json_put_bool(&w, tg_gguf_checksummed(g));
    put_string(&w, "name", g, "general.name");
    tg_json_key(&w, "family");
    tg_json_put_string(&w, c->family);
    put_number(&w, "layers", c->layers);
    put_number(&w, "width", c->width);
    put_number(&w, "heads", c->heads);
    put_number(&w, "kv_heads", c->kv_heads);
    put_number(&w, "head_size", c->head_size);
    put_number(&w, "mlp", c->mlp);
    put_number(&w, "vocab", c->vocab);
    put_number(&w, "ctx", c->ctx);
    put_number(&w, "window", c->window);
    if (g->tokenizer_json) {
        tg_json_key(&w, "tokenizer");
        tg_json_put_string(&w, "tokenizer.json");
    } else {
        put_string(&w, "tokenizer", g, "tokenizer.ggml.model");
        put_string(&w, "splitter", g, "tokenizer.ggml.pre");
    }
    const tg_gguf_value *written = template_of(g);
    if (written) {
        tg_json_key(&w, "template");
        tg_json_put_string_n(&w, written->text.bytes, written->text.n_bytes);
    }
    put_number(&w, "params", (int64_t)table->elems);
    if (c->experts > 0) {
        put_number(&w, "experts", c->experts);
        put_number(&w, "experts_used", c->experts_used);
        put_number(&w, "active_params", (int64_t)tg_config_active_params(c));
    }
    put_number(&w, "weight_bytes", (int64_t)table->bytes);
    put_caches(&w, c);
    tg_json_key(&w, "tensors");
    tg_json_begin_array(&w);
    for (size_t i = 0; i < table->n_tensors; i++) {
        const tg_tensor *t = &table->tensors[i];
        tg_json_begin_object(&w);
        tg_json_key(&w, "name");
        tg_json_put_string(&w, t->name);
        tg_json_key(&w, "type");
        tg_json_put_string(&w, tg_dtype_table[t->source->type].label);
        tg_json_key(&w, "layout"); /* in memory */
        tg_json_put_string(&w, t->type.layout ? tg_packing_table[t->type.layout].text : "rows");
        put_number(&w, "rows", (int64_t)t->source->dim[1]);
        put_number(&w, "cols", (int64_t)t->source->dim[0]);
        tg_json_end_object(&w);
    }
    tg_json_end_array(&w);
    tg_json_end_object(&w);
}

/* The arena has what tg_tensors_read makes, and the table points into it and into g: so both stay
 * until the text is whole. Everything is given back whatever fails; a writer that stops is
 * TG_STOPPED. */
static tg_status described(tg_ctx *ctx, const char *path, bool json, tg_text_fn write, void *user) {
    tg_gguf g;
    tg_tensors table;
    tg_arena arena;
    tg_buf text;
    TG_TRY(tg_gguf_open_any(ctx, path, &g));
    tg_arena_init(&arena, &ctx->mem);
    tg_buf_init(&text, &ctx->mem);
    tg_status s = tg_tensors_read(&g, &arena, false, &table);
    if (s == TG_OK) {
        if (json)
            put_json(&g, &table, &text);
        else
            put_lines(&g, &table, &text);
        s = tg_buf_status(ctx, &text, "text");
    }
    if (s == TG_OK && write(user, tg_buf_text(&text), text.length) != 0) s = tg_stopped(ctx, path);
    tg_buf_deinit(&text);
    tg_arena_deinit(&arena);
    tg_gguf_close(&g);
    return s;
}

/* folder is what is to be opened: path itself, or the folder that a model.safetensors lies in. It
 * outlives described, which closes all that it opens. */
tg_status tg_inspect_file_info(tg_ctx *ctx, const char *path, bool json, tg_text_fn write,
                               void *user) {
    char folder[TG_GGUF_PATH_BYTES];
    bool takes;
    TG_TRY(tg_gguf_takes(ctx, path, folder, &takes));
    return takes ? described(ctx, folder, json, write, user)
                 : tg_io_info(ctx, path, json, write, user);
}
