/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_info.c - what a file is, as lines or as JSON, out of its head alone.
 *
 * A run is told of as any other file is: family, sizes, layers, vocabulary, caches, tensors. What
 * stands beside its model follows: steps, options, losses.
 *
 *     tg_model_file_open     any file: sizes, metadata, tensors; no weight is read
 *     put_lines, put_json    the same for people and for programs
 *
 * Whatever a file says is bytes of a stranger. Lengths were checked when the head was read; here
 * strings go to a terminal or into JSON, and are made harmless for it. Text grows in one tg_buf,
 * whose errors are sticky, and goes to `write` in one piece at the end: nothing is written of a
 * file that turns out to be broken.
 */
#include "base/buf.h"
#include "base/codec/json.h"
#include "chat/chat.h"
#include "inspect/inspect.h"
#include "io/run/meta.h"
#include "load/model_file.h"

/* Bytes of a cache of so many positions with keys and values of this type, as sessions make it: a
 * layer's window has room for the rows of the longest run as well, and states are as they are. */
static uint64_t cache_bytes(const tg_model_config *c, tg_dtype type, int32_t positions) {
    return tg_model_state_bytes(c, type, positions, TG_SESSION_ROWS_MAX);
}

/* Of a million bytes, as disks and downloads are counted. */
static double megabytes(uint64_t bytes) { return (double)bytes / 1e6; }

/* Types of runs have names alone; a label is the name in capitals. Returns out. */
enum { LABEL_BYTES = 16 };
static const char *label_of(const char *name, char out[LABEL_BYTES]) {
    size_t n = 0;
    for (; name[n] && n + 1 < LABEL_BYTES; n++)
        out[n] = (char)(name[n] >= 'a' && name[n] <= 'z' ? name[n] - 'a' + 'A' : name[n]);
    out[n] = '\0';
    return out;
}

static void put_share(const char *label, size_t n, uint64_t bytes, tg_buf *out) {
    if (n)
        tg_buf_printf(out, "  %-8s  %zu tensor%s, %.1f MB\n", label, n, n == 1 ? "" : "s",
                      megabytes(bytes));
}

/* A file may mix types by tensor, so a name such as Q4_K_M says little: each type with its share,
 * in the order of the table of types. A loop over all tensors for each type is quick enough for the
 * some thousand tensors of a large model. The weights of a run are of one type; what stands beside
 * them is f32 always. */
static void put_types(const tg_model_file *f, tg_buf *out) {
    const tg_tensors *table = &f->table;
    char label[LABEL_BYTES];
    for (int type = 0; type < TG_DTYPE_COUNT; type++) {
        size_t n = 0;
        uint64_t bytes = 0;
        for (size_t i = 0; i < table->n_tensors; i++) {
            if (table->tensors[i].source->type != (tg_dtype)type) continue;
            n++;
            bytes += table->tensors[i].source->bytes;
        }
        put_share(tg_dtype_table[type].label, n, bytes, out);
    }
    uint64_t bytes = 0;
    const size_t n = f->run ? f->run->manifest.n : 0;
    for (size_t i = 0; i < n; i++) bytes += f->run->tensor[i].bytes;
    put_share(label_of(tg_model_file_dtype(f), label), n, bytes, out);
}

/* A line for a text that a file may have or not: 120 bytes of it, which is enough to know it by, or
 * a few less where the last character would be cut. */
static void put_text(const tg_gguf *g, const char *key, const char *label, tg_buf *out) {
    const tg_gguf_value *v = tg_gguf_find(g, key);
    if (!v || v->type != TG_GGUF_STRING || v->text.n_bytes == 0) return;
    tg_buf_printf(out, "%s", label);
    size_t n = v->text.n_bytes < 120 ? v->text.n_bytes : 120;
    while (n > 0 && n < v->text.n_bytes && ((unsigned char)v->text.bytes[n] & 0xc0) == 0x80) n--;
    /* Text of a file goes to a terminal: controls do not. */
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)v->text.bytes[i];
        tg_buf_putc(out, c < 0x20 || c == 0x7f ? ' ' : (char)c);
    }
    tg_buf_puts(out, n < v->text.n_bytes ? " ...\n" : "\n");
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

/* What stands beside the model of a run. Facts that the file does not know are left out. */
static void put_training(const tg_file *f, const tg_meta *meta, tg_buf *out) {
    char text[TG_NUMBER_BYTES], other[TG_NUMBER_BYTES];
    tg_buf_printf(out, "training    step %" PRId64 ", %s%s%s\n", f->step,
                  f->has_moments ? "with the optimizer's moments" : "weights only",
                  meta->train.ema > 0 ? "; the weights are an average" : "",
                  f->has_raw ? ", kept with what is trained" : "");
    if (meta->final.step >= 0)
        tg_buf_printf(out, "final loss  %s, validation %s, at step %" PRId64 "\n",
                      tg_meta_loss_text(meta->final.loss, text),
                      tg_meta_loss_text(meta->final.val_loss, other), meta->final.step);
    if (meta->best_step >= 0)
        tg_buf_printf(out, "best        validation %s at step %" PRId64 "\n",
                      tg_meta_loss_text(meta->best_val_loss, text), meta->best_step);
    if (meta->n_history == 0) return;
    const tg_history_point *first = &meta->history[0];
    const tg_history_point *last = &meta->history[meta->n_history - 1];
    tg_buf_printf(out,
                  "history     %zu points, loss %s at step %" PRId64 " to %s at step %" PRId64 "\n",
                  meta->n_history, tg_meta_loss_text(first->loss, text), first->step,
                  tg_meta_loss_text(last->loss, other), last->step);
}

/* A line for each tensor of a run. Offsets and lengths are those of the file, so that a tensor can
 * be found with a hex editor; behind them the name in the file, where that is another one. Shapes
 * are of the bytes (manifest.h says what trap that is). */
static void put_places(const tg_file *f, tg_buf *out) {
    char shape[TG_SHAPE_BYTES];
    tg_buf_printf(out, "tensors     %zu: name, type, shape of the bytes, offset, bytes\n",
                  f->n_tensors);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const tg_file_tensor *t = &f->tensor[i];
        tg_buf_printf(out, "  %-40s %-5s %-16s %12" PRIu64 " %12" PRIu64 "%s%s\n", t->name,
                      tg_file_dtype_name(t->dtype), tg_file_shape_text(t->n_dims, t->dim, shape),
                      t->offset, t->bytes, t->stored_as ? "  " : "",
                      t->stored_as ? t->stored_as : "");
    }
}

/* How a changed byte can be told. */
static const char *checks_text(const tg_model_file *f) {
    return (f->run && f->run->checksummed) || f->gguf.checks.crc ? "CRC-32C of chunks and SHA-256"
           : tg_model_file_checksummed(f)                        ? "CRC-32 of members"
                                                                 : "no checksums";
}

static uint64_t bytes_of(const tg_model_file *f) {
    return f->run ? f->run->total_bytes : f->gguf.total_bytes;
}

/* For people: `tinygpt info`. What the file does not say has no line. Labels are twelve columns, so
 * that facts stand below each other; a label with two spaces before it belongs to the line above.
 * An encoder keeps nothing of the texts that it reads, so it has no cache to tell of. */
static void put_lines(const tg_model_file *f, const tg_meta *meta, tg_buf *out) {
    const tg_model_config *c = &f->table.config;
    const tg_gguf *g = f->metadata;
    const size_t n_files = f->run ? 1 : f->gguf.n_files;
    tg_buf_printf(out, "file        %s\n", f->run ? f->run->path : f->gguf.path);
    tg_buf_printf(out, "format      %s, %" PRIu64 " bytes in %zu file%s, %s\n",
                  tg_model_file_format(f), bytes_of(f), n_files, n_files == 1 ? "" : "s",
                  checks_text(f));
    put_text(g, "general.name", "name        ", out);
    tg_buf_printf(
        out,
        "model       %s, layers %d, width %d, heads %d of %d (%d for keys), mlp %d, vocab "
        "%d, ctx %d\n",
        c->family, (int)c->layers, (int)c->width, (int)c->heads, (int)c->head_size,
        (int)c->kv_heads, (int)c->mlp, (int)c->vocab, (int)c->ctx);
    if (c->window) tg_buf_printf(out, "window      %d, in all layers", (int)c->window);
    if (c->window && c->window_every > 0)
        tg_buf_printf(out, " but one of %d", (int)c->window_every);
    if (c->window && c->window_head_size > 0)
        tg_buf_printf(out, ", with heads of %d", (int)c->window_head_size);
    if (c->window) tg_buf_puts(out, "\n");
    if (c->kv_shared > 0)
        tg_buf_printf(out, "shared      keys and values, in the last %d layers, of mlp %d\n",
                      (int)c->kv_shared, (int)tg_layer_mlp(c, c->layers - 1));
    if (tg_family_of(c)->beside)
        tg_buf_printf(out,
                      "kinds       all layers: attention, and beside it Mamba2 of %d heads of %d, "
                      "states of %d\n",
                      (int)c->ssm_heads, (int)c->ssm_head_size, (int)c->ssm_state);
    else if (c->ssm_heads > 0)
        tg_buf_printf(
            out, "kinds       %.*s: a for attention, %s%s of %d heads of %d, states of %d\n",
            (int)c->layers, c->layer_kind, tg_has_mlps_alone(c) ? "f for an MLP, " : "",
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
    tg_buf_printf(out, "parameters  %" PRIu64 ", stored as\n", f->table.elems);
    put_types(f, out);
    if (g->method)
        tg_buf_printf(out, "  of        %s, whose matrices are read as these\n", g->method);
    if (f->run && !f->keys) tg_buf_puts(out, "tokenizer   bytes\n");
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
    tg_buf_printf(out, "memory      %.1f MB of weights\n", megabytes(f->table.bytes));
    if (!tg_family_of(c)->encode) put_cache(c, out);
    if (!f->run) return;
    put_training(f->run, meta, out);
    put_places(f->run, out);
}

static void put_number(tg_json_writer *w, const char *key, int64_t value) {
    tg_json_key(w, key);
    tg_json_put_int(w, value);
}

static void put_literal(tg_json_writer *w, const char *key, const char *text) {
    tg_json_key(w, key);
    tg_json_put_string_n(w, text, strlen(text));
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
 * 2 from 1,024 up to the context, and 131,072 at most; a shorter context alone. Empty for encoders.
 */
static void put_caches(tg_json_writer *w, const tg_model_config *c) {
    const int32_t first = c->ctx < 1024 ? c->ctx : 1024;
    tg_json_key(w, "caches");
    tg_json_begin_array(w);
    for (int32_t n = first; !tg_family_of(c)->encode && n <= c->ctx && n <= 1 << 17; n *= 2) {
        tg_json_begin_object(w);
        put_number(w, "tokens", n);
        put_number(w, "bytes", (int64_t)cache_bytes(c, TG_F32, n));
        put_number(w, "bytes_f16", (int64_t)cache_bytes(c, TG_F16, n));
        put_number(w, "bytes_int8", (int64_t)cache_bytes(c, TG_U8, n));
        tg_json_end_object(w);
    }
    tg_json_end_array(w);
}

/* A tensor as both kinds of files have it. dim [n_dims] is of the bytes, the slowest first; layout
 * is that in memory. */
typedef struct told_tensor {
    const char *name, *stored_as, *dtype, *layout;
    uint64_t rows, cols, offset, bytes;
    uint32_t n_dims;
    uint64_t dim[4];
} told_tensor;

static told_tensor of_model(const tg_tensor *t) {
    const tg_gguf_tensor *s = t->source;
    const bool turned = s->place && s->place->turned; /* columns are stored as rows */
    told_tensor told = { .name = t->name,
                         .dtype = tg_dtype_table[s->type].name,
                         .layout = t->type.layout ? tg_packing_table[t->type.layout].text : "rows",
                         .rows = s->dim[1],
                         .cols = s->dim[0],
                         .offset = s->offset,
                         .bytes = s->bytes,
                         .n_dims = s->n_dims };
    for (uint32_t i = 0; i < s->n_dims; i++) told.dim[i] = s->dim[turned ? i : s->n_dims - 1 - i];
    return told;
}

static told_tensor of_run(const tg_file_tensor *t) {
    told_tensor told = { .name = t->name,
                         .stored_as = t->stored_as,
                         .dtype = tg_file_dtype_name(t->dtype),
                         .layout = "rows",
                         .rows = t->n_dims == 2 ? t->dim[0] : 1,
                         .cols = t->dim[t->n_dims - 1],
                         .offset = t->offset,
                         .bytes = t->bytes,
                         .n_dims = t->n_dims };
    memcpy(told.dim, t->dim, sizeof told.dim);
    return told;
}

static void put_tensor(tg_json_writer *w, const told_tensor *t) {
    char label[LABEL_BYTES];
    tg_json_begin_object(w);
    put_literal(w, "name", t->name);
    if (t->stored_as) put_literal(w, "stored_as", t->stored_as);
    put_literal(w, "dtype", t->dtype);
    put_literal(w, "type", label_of(t->dtype, label));
    put_literal(w, "layout", t->layout);
    put_number(w, "rows", (int64_t)t->rows);
    put_number(w, "cols", (int64_t)t->cols);
    tg_json_key(w, "shape");
    tg_json_begin_array(w);
    for (uint32_t i = 0; i < t->n_dims; i++) tg_json_put_uint(w, t->dim[i]);
    tg_json_end_array(w);
    put_number(w, "offset", (int64_t)t->offset);
    put_number(w, "bytes", (int64_t)t->bytes);
    tg_json_end_object(w);
}

static void put_tensors(tg_json_writer *w, const tg_model_file *f) {
    const size_t n = f->run ? f->run->n_tensors : f->table.n_tensors;
    tg_json_key(w, "tensors");
    tg_json_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        const told_tensor t = f->run ? of_run(&f->run->tensor[i]) : of_model(&f->table.tensors[i]);
        put_tensor(w, &t);
    }
    tg_json_end_array(w);
}

/* Which sizes there are, and what the texts of a vocabulary are cut by. */
static void put_model(tg_json_writer *w, const tg_model_file *f) {
    const tg_model_config *c = &f->table.config;
    const tg_gguf *g = f->metadata;
    put_string(w, "name", g, "general.name");
    put_literal(w, "family", c->family);
    put_number(w, "layers", c->layers);
    put_number(w, "width", c->width);
    put_number(w, "heads", c->heads);
    put_number(w, "kv_heads", c->kv_heads);
    put_number(w, "head_size", c->head_size);
    put_number(w, "mlp", c->mlp);
    put_number(w, "vocab", c->vocab);
    put_number(w, "ctx", c->ctx);
    put_number(w, "window", c->window);
    tg_meta_put_config(w, c);
    if (f->run && !f->keys) {
        put_literal(w, "tokenizer", "bytes");
    } else if (g->tokenizer_json) {
        put_literal(w, "tokenizer", "tokenizer.json");
    } else {
        put_string(w, "tokenizer", g, "tokenizer.ggml.model");
        put_string(w, "splitter", g, "tokenizer.ggml.pre");
    }
    if (template_of(g)) put_string(w, "template", g, TEMPLATE);
    put_number(w, "params", (int64_t)f->table.elems);
    if (c->experts > 0) {
        put_number(w, "experts", c->experts);
        put_number(w, "experts_used", c->experts_used);
        put_number(w, "active_params", (int64_t)tg_config_active_params(c));
    }
    put_literal(w, "dtype", tg_model_file_dtype(f));
    if (g->method) put_literal(w, "quantization", g->method);
    put_number(w, "weight_bytes", (int64_t)f->table.bytes);
    put_caches(w, c);
}

/* The same for programs. Keys are stable, so one whose value a file lacks is left out, and none is
 * ever renamed; sizes are in bytes, numbers of weights in elements. Keys of a run's story are those
 * of a v3 header, but in snake_case, as everything that is printed (docs/json.md) and nothing that
 * is in a file. The history is complete, as a plot needs it. */
static void put_json(const tg_model_file *f, const tg_meta *meta, tg_buf *out) {
    const tg_file *run = f->run;
    tg_json_writer w;
    tg_json_writer_init(&w, out);
    w.snake = true;
    tg_json_begin_object(&w);
    put_literal(&w, "file", run ? run->path : f->gguf.path);
    put_literal(&w, "format", tg_model_file_kind(f));
    put_number(&w, "version", run ? run->version : f->gguf.version);
    put_number(&w, "bytes", (int64_t)bytes_of(f));
    tg_json_key(&w, "checksummed");
    tg_json_put_bool(&w, tg_model_file_checksummed(f));
    put_model(&w, f);
    tg_json_key(&w, "has_moments");
    tg_json_put_bool(&w, run && run->has_moments);
    if (run) {
        put_number(&w, "step", run->step);
        if (meta->train_known) tg_meta_put_train(&w, &meta->train, meta->train_known);
        tg_meta_put_history(&w, meta, 0);
    }
    put_tensors(&w, f);
    tg_json_end_object(&w);
    tg_buf_putc(out, '\n');
}

/* The file stays open until the text is whole, which points into it. Everything is given back
 * whatever fails; a writer that stops is TG_STOPPED. */
tg_status tg_inspect_file_info(tg_ctx *ctx, const char *path, bool json, tg_text_fn write,
                               void *user) {
    tg_model_file f;
    tg_meta meta;
    tg_buf text;
    TG_TRY(tg_model_file_open(ctx, path, &f));
    tg_meta_init(&meta);
    tg_buf_init(&text, &ctx->mem);
    tg_status s = f.run ? tg_meta_read(f.run, &meta) : TG_OK;
    if (s == TG_OK) {
        (json ? put_json : put_lines)(&f, &meta, &text);
        s = tg_buf_status(ctx, &text, "text");
    }
    if (s == TG_OK && write && write(user, tg_buf_text(&text), text.length) != 0)
        s = tg_stopped(ctx, path);
    tg_buf_deinit(&text);
    tg_model_file_close(&f);
    return s;
}
