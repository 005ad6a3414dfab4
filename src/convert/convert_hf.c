/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_hf.c - writes a model as a folder of safetensors.
 *
 * Rows come as GGUF has them, and leave as transformers wants them: heads that rotate with their
 * halves side by side, GPT-2's linear layers as [in, out], Gemma's gains less 1. A folder has one
 * file of tensors, which are all of one type. A source that is a folder gives its own files beside
 * them; of a GGUF file they are made out of its metadata.
 */
#include "base/str.h"
#include "convert/convert.h"
#include "dtype/quantize.h"
#include "io/hf/hf_writer.h"
#include "io/output.h"
#include "io/run/tools.h"
#include "load/vocabulary.h"

enum { PIECE_ELEMS = 4 << 20 };

/* A tensor that is turned needs all of it at once; others go by pieces of whole heads. */
typedef struct piece {
    const tg_gguf_tensor *from;
    tg_dtype type;
    size_t rows, cols, head_size; /* head_size 0: rows keep their order */
    bool turned, plus_one;
    const tg_tensor *use; /* or NULL */
    const tg_model_config *config;
    bool reorder; /* heads of values, out of GGUF's order */
    uint8_t *in, *out;
    float *floats; /* [rows, cols] and a row */
} piece;

/* Where row i of a head comes from: GGUF pairs what rotates together (rope.c). */
static size_t source_row(const piece *p, size_t i) {
    if (p->reorder && !tg_turns_columns(p->use->want))
        return tg_head_in_turns(p->config, p->use->want, i);
    return p->head_size ? tg_row_paired(i, p->head_size) : i;
}

static void convert(const piece *p, size_t n) {
    const tg_dtype_desc *from = &tg_dtype_table[p->from->type];
    const size_t in_bytes = p->cols / from->cols * from->bytes;
    const size_t each = tg_dtype_table[p->type].bytes;
    float *row = p->floats + p->rows * p->cols;
    for (size_t i = 0; i < n; i++) {
        float *to = p->floats + i * p->cols;
        tg_block_to_f32_n(p->from->type, to, p->in + source_row(p, i) * in_bytes, p->cols);
        for (size_t c = 0; p->plus_one && c < p->cols; c++) to[c] -= 1;
        if (p->use) tg_tensor_logs(p->use, to, p->cols);
        if (p->reorder && tg_turns_columns(p->use->want))
            tg_head_columns(p->config, p->use->want, tg_head_in_row, to, row, p->cols);
        if (!p->turned)
            tg_block_from_f32_n(p->type, p->out + i * p->cols * each, to, p->cols, NULL);
    }
    for (size_t c = 0; p->turned && c < p->cols; c++) {
        for (size_t i = 0; i < n; i++) row[i] = p->floats[i * p->cols + c];
        tg_block_from_f32_n(p->type, p->out + c * n * each, row, n, NULL);
    }
}

/* Rows [begin, end) of a tensor; end 0: all. */
static tg_status write_tensor(tg_conversion *c, const tg_hf_out *o, size_t source, uint64_t begin,
                              uint64_t end, tg_save *save) {
    const tg_gguf_tensor *from = &c->g.tensors[source];
    const tg_tensor *use = tg_convert_use(c, from);
    piece p = { .from = from,
                .type = c->type,
                .cols = (size_t)from->dim[0],
                .turned = o->turned,
                .plus_one = o->plus_one,
                .use = use,
                .config = &c->table.config,
                .reorder = use && use->reorder && !c->g.heads_plain };
    if (use && use->turns && !c->g.heads_plain) p.head_size = (size_t)c->table.config.head_size;
    if (p.head_size && from->n_dims == 1) p.cols = 1; /* elements of a bias are its rows */
    const uint64_t all = from->elems / p.cols, rows = end ? end - begin : all;
    const size_t unit = p.head_size ? p.head_size : 1;
    p.rows = (size_t)(PIECE_ELEMS / p.cols) / unit * unit;
    if (p.rows == 0) p.rows = unit;
    if (p.rows > rows || p.turned || p.reorder || p.cols == 1) p.rows = (size_t)rows;
    const size_t elems = p.rows * p.cols, row_in = (size_t)(from->bytes / all);
    const size_t floats = elems + p.cols + p.rows, each = tg_dtype_table[p.type].bytes;
    tg_block buffer;
    TG_TRY(tg_block_new(&c->ctx->err, floats * sizeof(float) + p.rows * row_in + elems * each,
                        &buffer));
    p.floats = buffer.data;
    p.in = (uint8_t *)(p.floats + floats);
    p.out = p.in + p.rows * row_in;
    tg_status s = TG_OK;
    for (uint64_t first = 0; s == TG_OK && first < rows; first += p.rows) {
        const size_t n = rows - first < p.rows ? (size_t)(rows - first) : p.rows;
        s = tg_gguf_read_rows(&c->g, from, begin + first, n * p.cols / from->dim[0], p.in);
        if (s != TG_OK) break;
        convert(&p, n);
        s = tg_save_write(save, p.out, n * p.cols * each);
    }
    tg_block_free(&buffer);
    return s;
}

/* One behind the other; of halves the first and the second of each expert in turns. */
static tg_status write_rows(tg_conversion *c, const tg_hf_out *o, tg_save *save) {
    const tg_gguf_tensor *t = &c->g.tensors[o->source];
    const uint64_t each = t->dim[1];
    if (!o->halves)
        return write_tensor(c, o, o->source, o->first_row, o->first_row + o->n_rows, save);
    for (uint64_t e = 0; e < t->dim[2]; e++) {
        TG_TRY(write_tensor(c, o, o->source, e * each, (e + 1) * each, save));
        TG_TRY(write_tensor(c, o, o->second, e * each, (e + 1) * each, save));
    }
    return TG_OK;
}

static tg_status write_tensors(tg_conversion *c, const char *path, const tg_hf_out *out, size_t n) {
    tg_save *save;
    TG_TRY(tg_hf_save_begin(&c->g, path, out, n, c->type, &save));
    tg_status s = TG_OK;
    for (size_t i = 0; s == TG_OK && i < n; i++) {
        c->report->n_tensors += c->g.tensors[out[i].source].n_dims > 1;
        s = write_rows(c, &out[i], save);
    }
    c->report->out_bytes += tg_save_offset(save);
    if (s == TG_OK) return tg_save_commit(save, false);
    tg_save_abort(save);
    return s;
}

static tg_status write_bytes(tg_ctx *ctx, const char *path, const char *bytes, size_t n) {
    tg_save *save;
    TG_TRY(tg_save_begin(ctx, path, &save));
    const tg_status s = tg_save_write(save, bytes, n);
    if (s == TG_OK) return tg_save_commit(save, false);
    tg_save_abort(save);
    return s;
}

/* "temp/name", for as long as the conversion; NULL without memory, which is recorded. */
static const char *inside(tg_conversion *c, const char *name) {
    const char *path = tg_arena_sprintf(&c->arena, "%s/%s", c->temp, name);
    if (!path) tg_fail_memory(&c->ctx->err, name, strlen(name));
    return path;
}

/* A file of the folder with what fill writes, or nothing where that is nothing. */
typedef tg_status (*fill_fn)(tg_conversion *c, const tg_hf_family *family, tg_buf *text);

static tg_status write_text(tg_conversion *c, const tg_hf_family *family, const char *name,
                            fill_fn fill) {
    const char *path = inside(c, name);
    tg_buf text;
    if (!path) return TG_E_MEMORY;
    tg_buf_init(&text, &c->ctx->err.mem);
    tg_status s = fill(c, family, &text);
    if (s == TG_OK) s = tg_buf_status(&c->ctx->err, &text, path);
    if (s == TG_OK && text.length > 0) s = write_bytes(&c->ctx->err, path, text.data, text.length);
    tg_buf_deinit(&text);
    return s;
}

/* A folder's own file says more than metadata do, and is kept. */
static tg_status copy_own(tg_conversion *c, const char *name, bool *done) {
    tg_reader r;
    const char *text, *path;
    *done = c->g.hf && tg_folder_has(&c->g.hf->folder, name);
    if (!*done) return TG_OK;
    TG_TRY(tg_folder_file(&c->g.hf->folder, name, &r));
    const uint64_t n = tg_reader_left(&r);
    TG_TRY(tg_read_text(&r, &c->arena, name, n, &text));
    path = inside(c, name);
    if (!path) return TG_E_MEMORY;
    return write_bytes(&c->ctx->err, path, text, (size_t)n);
}

static tg_status fill_config(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    return tg_hf_put_config(&c->g, family, c->type, text);
}

/* Not one that speaks of quantised weights, nor one whose numbers are in the weights by now. */
static tg_status write_config(tg_conversion *c, const tg_hf_family *family) {
    bool others = c->g.method, done = false;
    for (size_t i = 0; i < c->g.n_tensors; i++)
        others = others || (c->g.tensors[i].place && c->g.tensors[i].place->times);
    if (!others) TG_TRY(copy_own(c, "config.json", &done));
    if (done) return TG_OK;
    return write_text(c, family, "config.json", fill_config);
}

/* -------------------------------------------------------------------------------- the tokenizer */

static tg_status fill_tokenizer(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    (void)family;
    if (c->g.tokenizer_json)
        tg_buf_append(text, c->g.tokenizer_json, c->g.tokenizer_bytes);
    else if (c->tok)
        return tg_tok_put_json(&c->ctx->err, c->tok, text);
    return tg_buf_status(&c->ctx->err, text, "tokenizer.json");
}

/* What transformers wants to know beside tokenizer.json: which tokens have which part, the length
 * of the context, and the chat template as it stands in the file. */
static tg_status fill_tokenizer_config(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    const bool encoder = family && family->encoder && !family->both_ways;
    if (!c->tok) return TG_OK;
    /* Of several texts at once transformers wants to make all as long as the longest. */
    const int32_t pad = tg_tok_pad(c->tok), unknown = tg_tok_unknown(c->tok);
    const struct {
        const char *key;
        int32_t id;
    } parts[] = { { encoder ? "cls_token" : "bos_token", tg_tok_bos(c->tok) },
                  { encoder ? "sep_token" : "eos_token", tg_tok_eos(c->tok) },
                  { "unk_token", unknown },
                  { "pad_token", pad < 0 && encoder ? unknown : pad } };
    tg_gguf_string chat = { NULL, 0 };
    TG_TRY(tg_gguf_get_string(&c->g, "tokenizer.chat_template", &chat));
    tg_json_writer w;
    tg_json_writer_init(&w, text);
    tg_json_begin_object(&w);
    tg_json_key(&w, "tokenizer_class");
    tg_json_put_string(&w, "PreTrainedTokenizerFast");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t n;
        const char *name = tg_tok_piece(c->tok, parts[i].id, &n);
        if (!name) continue;
        tg_json_key(&w, parts[i].key);
        tg_json_put_string_n(&w, name, n);
    }
    tg_json_key(&w, "clean_up_tokenization_spaces");
    tg_json_put_bool(&w, false);
    tg_json_key(&w, "model_max_length");
    tg_json_put_int(&w, c->table.config.ctx);
    /* The kinds of a pair's tokens are among what a tokenizer gives if it is told so alone. */
    const bool kinds = tg_gguf_tensor_find(&c->g, "token_types.weight") != NULL;
    if (!encoder || kinds) {
        tg_json_key(&w, "model_input_names");
        tg_json_begin_array(&w);
        tg_json_put_string(&w, "input_ids");
        if (kinds) tg_json_put_string(&w, "token_type_ids");
        tg_json_put_string(&w, "attention_mask");
        tg_json_end_array(&w);
    }
    if (chat.bytes) {
        tg_json_key(&w, "chat_template");
        tg_json_put_string_n(&w, chat.bytes, chat.n_bytes);
    }
    tg_json_end_object(&w);
    return tg_buf_status(&c->ctx->err, text, "tokenizer_config.json");
}

static tg_status fill_generation(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    (void)family;
    size_t n = 0;
    const int32_t *ends = c->tok ? tg_tok_ends(c->tok, &n) : NULL;
    return tg_hf_put_generation(&c->g, ends, n, text);
}

static tg_status fill_modules(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    (void)family;
    return tg_hf_put_modules(&c->g, text);
}

static tg_status fill_most_tokens(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    return tg_hf_put_most_tokens(&c->g, family, text);
}

static tg_status fill_prompts(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    return tg_hf_put_prompts(&c->g, family, text);
}

static tg_status fill_pooling(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    return tg_hf_put_pooling(&c->g, family, text);
}

/* The files beside config.json and the tensors: those of the source's folder, or made. */
static tg_status write_others(tg_conversion *c, const tg_hf_family *family) {
    static const struct {
        const char *name;
        fill_fn fill; /* NULL: kept, never made */
    } files[] = { { "tokenizer.json", fill_tokenizer },
                  { "tokenizer_config.json", fill_tokenizer_config },
                  { "generation_config.json", fill_generation },
                  { "chat_template.jinja", NULL },
                  { "chat_template.json", NULL },
                  { "special_tokens_map.json", NULL } };
    TG_TRY(tg_vocabulary_gguf(&c->g, (size_t)c->table.config.vocab, &c->tok));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        bool done;
        TG_TRY(copy_own(c, files[i].name, &done));
        const bool made = files[i].fill && !(family->encoder && files[i].fill == fill_generation);
        if (!done && made) TG_TRY(write_text(c, family, files[i].name, files[i].fill));
    }
    const bool ranks = c->table.embed.type == TG_POOLING_TYPE_RANK; /* config.json says it all */
    if (!c->table.embed.ways.n || ranks) return TG_OK;
    const char *path = inside(c, "1_Pooling");
    if (!path) return TG_E_MEMORY;
    TG_TRY(tg_os_make_folder(&c->ctx->err, path));
    TG_TRY(write_text(c, family, "1_Pooling/config.json", fill_pooling));
    TG_TRY(write_text(c, family, "modules.json", fill_modules));
    TG_TRY(write_text(c, family, "sentence_bert_config.json", fill_most_tokens));
    return write_text(c, family, "config_sentence_transformers.json", fill_prompts);
}

/* --------------------------------------------------------------------------------- the whole */

/* A matrix behind the pooling, "2_Dense/linear.weight": it has a folder of its own, with its sizes.
 */
static tg_status write_dense(tg_conversion *c, const tg_hf_out *o) {
    const char *slash = strchr(o->name, '/');
    const int n = (int)(slash - o->name);
    const tg_gguf_tensor *t = &c->g.tensors[o->source];
    tg_hf_out one = *o;
    tg_buf text;
    one.name = slash + 1;
    const char *folder = tg_arena_sprintf(&c->arena, "%s/%.*s", c->temp, n, o->name);
    const char *path =
        tg_arena_sprintf(&c->arena, "%s/%.*s/model.safetensors", c->temp, n, o->name);
    const char *config = tg_arena_sprintf(&c->arena, "%s/%.*s/config.json", c->temp, n, o->name);
    if (!folder || !path || !config) return tg_fail_memory(&c->ctx->err, o->name, 64);
    TG_TRY(tg_os_make_folder(&c->ctx->err, folder));
    TG_TRY(write_tensors(c, path, &one, 1));
    tg_buf_init(&text, &c->ctx->err.mem);
    tg_status s = tg_hf_put_dense(&c->g, t->dim[0], t->dim[1], &text);
    if (s == TG_OK) s = write_bytes(&c->ctx->err, config, text.data, text.length);
    tg_buf_deinit(&text);
    return s;
}

static tg_status write_files(tg_conversion *c) {
    const tg_hf_family *family;
    tg_hf_out *out;
    size_t n, all;
    const char *path = inside(c, "model.safetensors");
    if (!path) return TG_E_MEMORY;
    TG_TRY(tg_hf_outline(&c->g, &c->arena, &family, &out, &all));
    n = 0;
    for (size_t i = 0; i < all; i++) {
        if (strchr(out[i].name, '/'))
            TG_TRY(write_dense(c, &out[i]));
        else
            out[n++] = out[i];
    }
    TG_TRY(write_tensors(c, path, out, n));
    TG_TRY(write_others(c, family));
    return write_config(c, family);
}

static tg_status length_of(tg_ctx *ctx, const char *path, uint64_t *out) {
    tg_os_file *f;
    TG_TRY(tg_os_file_open(ctx, path, &f));
    *out = tg_os_file_bytes(f);
    tg_os_file_close(f);
    return TG_OK;
}

static int to_buf(void *user, const char *bytes, size_t n_bytes) {
    tg_buf_append(user, bytes, n_bytes);
    return 0;
}

static tg_status fill_own_config(tg_conversion *c, const tg_hf_family *family, tg_buf *text) {
    (void)family;
    return tg_io_transformers_config(&c->ctx->err, &c->table.config, to_buf, text);
}

/* The weights go over piece by piece, and their header with the story of the run. Tokens are bytes,
 * under the names that GPT-2 has for them. */
static tg_status write_own_files(tg_conversion *c) {
    const char *path = inside(c, "model.safetensors");
    if (!path) return TG_E_MEMORY;
    TG_TRY(tg_io_convert(&c->ctx->err, c->in, path, TG_FILE_SAFETENSORS));
    TG_TRY(length_of(&c->ctx->err, path, &c->report->out_bytes));
    TG_TRY(tg_vocabulary_gguf(&c->g, 256, &c->tok));
    TG_TRY(write_text(c, NULL, "config.json", fill_own_config));
    TG_TRY(write_text(c, NULL, "tokenizer.json", fill_tokenizer));
    return write_text(c, NULL, "tokenizer_config.json", fill_tokenizer_config);
}

static tg_status write_folder(tg_conversion *c, tg_status (*write)(tg_conversion *c)) {
    tg_save_folder *folder;
    TG_TRY(tg_save_folder_begin(&c->ctx->err, c->out, &folder));
    c->temp = tg_save_folder_temp(folder);
    tg_status s = write(c);
    if (s == TG_OK) s = tg_convert_check(c->ctx, c->in, c->temp, c->kind, c->report);
    if (s == TG_OK) return tg_save_folder_commit(folder);
    tg_save_folder_abort(folder);
    return s;
}

tg_status tg_convert_write_hf(tg_conversion *c) {
    if (tg_dtype_table[c->type].cols != 1)
        return tg_fail(&c->ctx->err, TG_E_UNSUPPORTED,
                       "%s: safetensors: want f32, f16 or bf16, have %s", c->out,
                       tg_dtype_table[c->type].label);
    return write_folder(c, write_files);
}

tg_status tg_convert_write_own_hf(tg_conversion *c) { return write_folder(c, write_own_files); }
